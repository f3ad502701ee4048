/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: prototypes of functions, from BTF.
 *
 * The input is type records; a header and the names of the functions a to f are
 * added. Each function's prototype is made for each architecture, packed and
 * unpacked. Its text has to be printable, and its places have to exist. The
 * input is unpacked as well.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/base/printable.h"
#include "guest-symbols/types/prototype.h"

#define STACK_MAX   (GS_PARAMS_MAX * (1u << 17))

static const char *const funcs[] = {
    "a", "b", "c", "d", "e", "f", "a.isra.0", "b.llvm.1", "", "g",
};

static void check_place(const GsPlace *p)
{
    if (p->words > GS_PLACE_WORDS || p->stack > STACK_MAX ||
        (p->kind == GS_PLACE_REGISTERS && !p->words)) {
        abort();
    }
    for (unsigned i = 0; i < p->words; i++) {
        if (p->reg[i] >= GS_REG__COUNT) {
            abort();
        }
    }
}

static void check_param(const GsParam *p)
{
    int64_t value;

    check_place(&p->place);
    gs_param_number(p, 0xfffffffffffffff4ull, &value);
    gs_param_failed(p, 0xfffffffffffffff4ull);
    if (!gs_is_printable(p->type) || (p->name && !gs_is_printable(p->name))) {
        abort();
    }
}

static void check(const GsPrototype *p, const char *func)
{
    g_autofree char *text = gs_prototype_text(p, func);

    if (!gs_is_printable(text)) {
        abort();
    }
    check_param(gs_prototype_result(p));
    for (unsigned i = 0; i < gs_prototype_n(p); i++) {
        const GsParam *param = gs_prototype_param(p, i);

        check_param(param);
        if (param->name && gs_prototype_find(p, param->name) < 0) {
            abort();
        }
    }
}

/* What was packed can be unpacked, unless names or types make no sense. */
static void store(const GsPrototype *p, const char *func)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GsPrototype) again = NULL;

    if (gs_prototype_pack(p, bytes)) {
        again = gs_prototype_unpack(bytes->data, bytes->len);
    }
    if (again) {
        check(again, func);
    }
}

static void one_function(GsBtf *btf, const GsArch *arch, const char *func)
{
    g_autoptr(GsPrototype) p = NULL;
    const char *why = NULL;

    p = gs_prototype_new(btf, arch, func, &why);
    if (!p != !!why) {
        abort();
    }
    if (p) {
        check(p, func);
        store(p, func);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char names[] = "\0a\0b\0c\0d\0e\0f\0char\0g\x1b";
    g_autoptr(GByteArray) raw = types_section(data, len, names, sizeof(names));
    g_autoptr(GsBtf) btf = gs_btf_new(raw->data, raw->len, NULL);

    for (unsigned a = 0; btf && a < GS_N_ARCHS; a++) {
        for (size_t i = 0; i < G_N_ELEMENTS(funcs); i++) {
            one_function(btf, gs_arch_nth(a), funcs[i]);
        }
    }
    return 0;
}
