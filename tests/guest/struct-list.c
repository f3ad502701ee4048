/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * List all structs and unions of a file of BTF, for test_struct.py: what `ka
 * struct --depth 1` prints of each, without a kernel.
 *
 *   T ID SIZE NAME
 *   M BIT BITS SIZE NAME         a member; BITS is 0 unless it is a bit field
 *
 * usage: struct-list FILE
 */
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/struct-place.h"

#include <inttypes.h>
#include <stdio.h>

static void print_member(const GsMember *m, void *opaque)
{
    if (m->kind == GS_MEMBER_VALUE) {
        printf("M %" PRIu64 " %u %u %s\n", (uint64_t)m->offset * 8 + m->bit,
               m->bits, m->size, m->name);
    }
}

static void print_type(GsBtf *btf, uint32_t id)
{
    const GsBtfRecords *r = gs_btf_records(btf);
    const GsStructPlan plan = { .depth = 1 };
    g_autoptr(GsStruct) s = NULL;
    GsBtfType t;

    if (!gs_btf_type(r, id, &t) || !gs_btf_is_composite(&t)) {
        return;
    }
    s = gs_struct_new(btf, id, "t", "", "BTF", NULL);
    if (s) {
        printf("T %u %u %s\n", id, gs_struct_size(s), gs_btf_name(r, t.name));
        gs_struct_walk(s, &plan, print_member, NULL);
    }
}

int main(int argc, char **argv)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsBtf) btf = NULL;
    g_autofree char *data = NULL;
    gsize len;

    if (argc != 2 || !g_file_get_contents(argv[1], &data, &len, &err) ||
        !(btf = gs_btf_new((const uint8_t *)data, len, &err))) {
        g_printerr("struct-list: %s\n", err ? err->message :
                   "usage: struct-list FILE");
        return 2;
    }
    for (uint32_t id = 1; id < gs_btf_records(btf)->n; id++) {
        print_type(btf, id);
    }
    return 0;
}
