/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: values by their types, and members that arguments lead to.
 *
 * Byte 0 is the length of the value, whose bytes follow. The rest are type
 * records; a header and names are added. The target prints the value as each
 * of the first types. Then it follows the pointers among the parameters of
 * function "f", and finds and prints members of the structs; what was packed
 * has to print the same. Each text has to be printable and short. Last, the
 * input is read as a packed expression.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/base/printable.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/prototype.h"
#include "guest-symbols/types/value.h"

#define TYPES_MAX   64

static const char names[] = "\0a\0b\0c\0d\0e\0f\0char\0gfp_t\0"
                            "___GFP_b_BIT\0flags\0g\x1b";

static const char *const exprs[] = {
    "a", "ret->b", "a->b", "a->b.c", "*a", "a->b->c->d", "*a->b", "b->a.b.c",
    "c->",
};

static void check_text(const GString *s)
{
    if (s->len > GS_VALUE_TEXT_MAX || !gs_is_printable(s->str)) {
        abort();
    }
}

static void print_type(const GsBtf *btf, uint32_t id, const uint8_t *bytes,
                       size_t len)
{
    g_autoptr(GString) s = g_string_new(NULL);
    GsLeaf value = {
        .type = id, .name = id % 2 ? "flags" : "", .names = id % 4,
    };

    if (!gs_btf_size(gs_btf_records(btf), id, &value.size)) {
        value.size = 0;
    }
    gs_value_print(s, btf, &value, bytes, len);
    check_text(s);
}

static void check_packed(const GsDeref *d, const uint8_t *bytes, size_t len,
                         const char *text)
{
    g_autoptr(GByteArray) packed = g_byte_array_new();
    g_autoptr(GString) s = g_string_new(NULL);
    g_autoptr(GsDeref) e = NULL;

    if (!gs_deref_pack(d, packed)) {
        return;
    }
    e = gs_deref_unpack(packed->data, packed->len);
    if (e) {
        gs_deref_print(s, e, bytes, len);
    }
    if (!e || strcmp(s->str, text)) {
        abort();
    }
}

static void print_deref(GsPrototype *p, const char *expr,
                        const uint8_t *bytes, size_t len)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsDeref) d = gs_deref_new(p, expr, &err);
    g_autoptr(GString) s = g_string_new(NULL);

    if (!d != !!err) {
        abort();
    }
    if (d) {
        gs_deref_print(s, d, bytes, len);
        check_text(s);
        check_packed(d, bytes, len, s->str);
    }
}

static void print_packed(const uint8_t *packed, size_t n)
{
    g_autoptr(GsDeref) d = gs_deref_unpack(packed, n);
    g_autoptr(GString) s = g_string_new(NULL);

    if (d) {
        gs_deref_print(s, d, packed, n);
        check_text(s);
    }
}

static void use(GsBtf *btf, const uint8_t *bytes, size_t len)
{
    uint32_t n = MIN(gs_btf_records(btf)->n, TYPES_MAX);
    g_autoptr(GsPrototype) p = NULL;
    const char *why;

    for (uint32_t id = 0; id <= n; id++) {
        print_type(btf, id, bytes, len);
    }
    p = gs_prototype_new(btf, &gs_arch_x86_64, "f", &why);
    for (size_t i = 0; p && i < G_N_ELEMENTS(exprs); i++) {
        print_deref(p, exprs[i], bytes, len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t n = len ? MIN(data[0], len - 1) : 0;
    g_autofree uint8_t *bytes = g_memdup2(len ? data + 1 : data, n);
    g_autoptr(GByteArray) raw = NULL;
    g_autoptr(GsBtf) btf = NULL;
    g_autoptr(GString) text = g_string_new(NULL);

    gs_value_print_text(text, bytes, n);
    check_text(text);
    print_packed(data, len);
    if (len <= n + 1) {
        return 0;
    }
    raw = types_section(data + 1 + n, len - 1 - n, names, sizeof(names));
    btf = gs_btf_new(raw->data, raw->len, NULL);
    if (btf) {
        use(btf, bytes, n);
    }
    return 0;
}
