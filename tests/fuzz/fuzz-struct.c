/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: members of structs, and values of objects, by hostile types.
 *
 * An input has four parts: a byte that is a mask of unreadable pages, a byte
 * that is the length of the object in units of 4 bytes, the bytes of the
 * object, and type records of BTF. The target adds the header and the names of
 * BTF. It walks over each of the first types as definition and as object, to
 * different depths, and follows paths. Rows are bounded, and their texts
 * printable; what is shown without a limit of depth adds up to the same with
 * zeros and without.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/base/printable.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/struct-place.h"

#define TYPES_MAX   32
#define VA          0xffff888000001ff0ull
#define NAME_BYTES  256

static const char names[] = "\0a\0b\0c\0d\0list_head\0next\0char\0gfp_t\0g\x1b";

static const char *const paths[] = {
    "", "a", "a.b", "a.b.c", "a[1]", "b[0].a", "c[3][2].d", "next.next.a", "d",
};

static void check_row(const GsMember *m, void *opaque)
{
    unsigned *rows = opaque;

    ++*rows;
    if (!gs_is_printable(m->type) || strlen(m->type) > NAME_BYTES ||
        *rows > 8 * GS_STRUCT_MEMBERS || m->n_words > 2 ||
        (m->value && (!gs_is_printable(m->value) ||
                      strlen(m->value) > 4 * NAME_BYTES))) {
        abort();
    }
}

static GsStructSum walk(const GsStruct *s, const GsStructPlan *plan)
{
    unsigned rows = 0;
    GsStructSum sum = gs_struct_walk(s, plan, check_row, &rows);

    if (sum.shown + sum.zeros > GS_STRUCT_MEMBERS || sum.unknown > sum.shown) {
        abort();
    }
    return sum;
}

static void use(const GsStruct *s, const GsObject *o)
{
    GsStructPlan plan = { .depth = s->id % 3, .declare = s->id % 2 };
    GsStructSum some, all;

    walk(s, &plan);
    plan = (GsStructPlan) { .object = o, .hex = s->id % 2 };
    some = walk(s, &plan);
    plan.zeros = true;
    all = walk(s, &plan);
    if (all.zeros || (!some.cut && some.shown + some.zeros != all.shown)) {
        abort();
    }
    plan.depth = 1 + s->id % 3;
    walk(s, &plan);
    if (gs_struct_is_open(s) && s->bits) {
        abort();
    }
}

/* Follow each path from the type; the object begins where the part does. */
static void use_type(GsBtf *btf, uint32_t id, const GsObject *o)
{
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(GError) err = NULL;
        g_autoptr(GsStruct) s = gs_struct_new(btf, id, "t", paths[i], "BTF",
                                              &err);

        if (!s != !!err) {
            abort();
        }
        if (s) {
            use(s, o);
        }
    }
}

static void count_name(const GsStructName *name, void *opaque)
{
    *(unsigned *)opaque += name->n;
}

static void use_types(GsBtf *btf, const GsObject *o)
{
    uint32_t n = MIN(gs_btf_records(btf)->n, TYPES_MAX);
    g_autoptr(GArray) ids = gs_struct_definitions(btf, "a");
    g_autofree char *near = gs_struct_near(btf, "list_hed");
    unsigned found = 0;

    gs_struct_foreach_name(btf, "*", false, count_name, &found);
    if (found > gs_btf_records(btf)->n || ids->len > found ||
        !gs_is_printable(near)) {
        abort();
    }
    for (uint32_t id = 0; id <= n; id++) {
        use_type(btf, id, o);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t n = len > 2 ? MIN(data[1] * 4u, len - 2) : 0;
    g_autofree uint8_t *bytes = g_memdup2(len > 2 ? data + 2 : data, n);
    const GsObject o = {
        .bytes = bytes, .len = n, .va = VA, .missing = len ? data[0] : 0,
    };
    g_autoptr(GByteArray) raw = NULL;
    g_autoptr(GsBtf) btf = NULL;

    if (len <= n + 2) {
        return 0;
    }
    raw = types_section(data + 2 + n, len - 2 - n, names, sizeof(names));
    btf = gs_btf_new(raw->data, raw->len, NULL);
    if (btf) {
        use_types(btf, &o);
    }
    return 0;
}
