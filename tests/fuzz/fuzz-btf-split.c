/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: types of a module that continue those of a kernel.
 *
 * The kernel's types are fixed. Byte 0 even: the rest are type records of the
 * module. Odd: byte 1 is the number of words of the records of its small base
 * (.BTF.base), which follow; then come the module's. Headers and names are
 * added; names of the module begin behind those of what it continues. All types
 * and functions are used.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/base/printable.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/prototype.h"
#include "guest-symbols/types/value.h"

#define TYPES_MAX   64

static const char kernel_names[] = "\0int\0a\0b\0c\0d";
enum { NAME_INT = 1, NAME_A = 5, NAME_B = 7, NAME_C = 9, NAME_D = 11 };
static const char names[] = "\0int\0a\0b\0c\0d\0e\0f\0g\x1b";

static GsBtf *kernel;

/* int; struct a { int a; int b; }; a pointer to it; enum c { d }; union b of
 * the size of struct a; struct d, twice. */
static void make_kernel(void)
{
    const uint32_t words[] = {
        NAME_INT, gs_btf_info(GS_BTF_INT, 0, false), 4, 0x01000020,
        NAME_A, gs_btf_info(GS_BTF_STRUCT, 2, false), 8,
        NAME_A, 1, 0, NAME_B, 1, 32,
        0, gs_btf_info(GS_BTF_PTR, 0, false), 2,
        NAME_C, gs_btf_info(GS_BTF_ENUM, 1, false), 4, NAME_D, 0,
        NAME_B, gs_btf_info(GS_BTF_UNION, 1, false), 8, NAME_A, 2, 0,
        NAME_D, gs_btf_info(GS_BTF_STRUCT, 0, false), 4,
        NAME_D, gs_btf_info(GS_BTF_STRUCT, 0, false), 4,
    };
    g_autoptr(GByteArray) raw = types_section((const uint8_t *)words,
                                              sizeof(words), kernel_names,
                                              sizeof(kernel_names));

    kernel = gs_btf_new(raw->data, raw->len, NULL);
    if (!kernel) {
        abort();
    }
}

static void use_types(const GsBtf *btf)
{
    static const uint8_t bytes[32] = { 1, 2, 3 };
    uint32_t n = MIN(gs_btf_records(btf)->n, TYPES_MAX);

    for (uint32_t id = 0; id <= n; id++) {
        g_autoptr(GString) s = g_string_new(NULL);
        GsLeaf value = { .type = id, .name = "" };

        if (!gs_btf_size(gs_btf_records(btf), id, &value.size)) {
            value.size = 0;
        }
        gs_value_print(s, btf, &value, bytes, sizeof(bytes));
        if (s->len > GS_VALUE_TEXT_MAX || !gs_is_printable(s->str)) {
            abort();
        }
    }
}

static void use_names(GsBtf *btf)
{
    static const char *const words[] = { "a", "b", "c", "d", "e", "f" };

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(GsPrototype) p = NULL;
        g_autofree char *text = NULL;
        const char *why;
        uint32_t offset, size;
        int64_t value;

        gs_btf_member(btf, words[i], "a.b", &offset, &size);
        gs_btf_type_size(btf, words[i], &size);
        gs_btf_enum_value(btf, words[i], &value);
        g_free(gs_btf_member_at(btf, words[i], 4));
        p = gs_prototype_new(btf, gs_arch_nth(i % GS_N_ARCHS), words[i], &why);
        text = p ? gs_prototype_text(p, words[i]) : NULL;
        if (text && !gs_is_printable(text)) {
            abort();
        }
    }
}

static GsBtf *parse(const uint8_t *data, size_t len, const uint8_t *base,
                    size_t base_len, GError **errp)
{
    g_autoptr(GByteArray) raw = types_section(data, len, names, sizeof(names));
    g_autoptr(GByteArray) small = NULL;

    if (!base) {
        return gs_btf_new_split(kernel, raw->data, raw->len, NULL, 0, errp);
    }
    small = types_section(base, base_len, names, sizeof(names));
    return gs_btf_new_split(kernel, raw->data, raw->len, small->data,
                            small->len, errp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    bool has_base = len > 1 && data[0] & 1;
    size_t n = has_base ? MIN(data[1] * 4ul, len - 2) : 0;
    size_t at = has_base ? 2 + n : 1;
    g_autoptr(GError) err = NULL;
    g_autoptr(GsBtf) btf = NULL;

    if (!kernel) {
        make_kernel();
    }
    if (len <= at) {
        return 0;
    }
    btf = parse(data + at, len - at, has_base ? data + 2 : NULL, n, &err);
    if (!btf != !!err) {
        abort();
    }
    if (btf) {
        use_types(btf);
        use_names(btf);
    }
    return 0;
}
