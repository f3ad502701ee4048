/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of the kernel's structs: see layout.h and api/kt-structs.h. */
#include "kalloc-tracer/layout/layout.h"

#include <string.h>

#include "kalloc-tracer/api/kt-structs.h"

enum {
#define KT_USE(id, ...) USE_##id,
#define KT_MEMBER(...)
#define KT_SOME(...)
#include "kalloc-tracer/layout/members.def"
    USE__COUNT
};

static const struct {
    const char *purpose, *without;
} uses[USE__COUNT] = {
#define KT_USE(id, purpose, without) [USE_##id] = { purpose, without },
#define KT_MEMBER(...)
#define KT_SOME(...)
#include "kalloc-tracer/layout/members.def"
};

static const struct {
    const char *names;
    uint8_t use;
    bool some;
} rows[KT_M__COUNT] = {
#define KT_USE(...)
#define KT_MEMBER(id, use, names) [KT_M_##id] = { names, USE_##use, false },
#define KT_SOME(id, use, names) [KT_M_##id] = { names, USE_##use, true },
#include "kalloc-tracer/layout/members.def"
};

/* Find the first of the members "struct.member|struct.member". */
static bool find(const GsKernel *k, KtMember m, uint32_t *at, uint32_t *size)
{
    g_auto(GStrv) name = g_strsplit(rows[m].names, "|", 0);

    for (unsigned i = 0; k && name[i]; i++) {
        char *dot = strchr(name[i], '.');

        *dot = 0;
        if (gs_kernel_member(k, name[i], dot + 1, at, size)) {
            return true;
        }
    }
    return false;
}

void kt_layout_init(KtLayout *l, const GsKernel *k)
{
    memset(l, 0, sizeof(*l));
    for (KtMember m = 0; m < KT_M__COUNT; m++) {
        if (find(k, m, &l->at[m], &l->size[m])) {
            l->size[m] = MAX(l->size[m], 1);
        } else {
            l->at[m] = KT_NO_MEMBER;
        }
    }
}

bool kt_layout_has_all(const KtLayout *l, KtMember first, KtMember last)
{
    for (KtMember m = first; m <= last; m++) {
        if (!kt_layout_has(l, m)) {
            return false;
        }
    }
    return true;
}

bool kt_layout_find(KtLayout *l, const GsKernel *k, KtMember first,
                    KtMember last)
{
    kt_layout_init(l, k);
    return kt_layout_has_all(l, first, last);
}

uint32_t kt_member(const GsKernel *k, KtMember m)
{
    uint32_t at;

    return find(k, m, &at, NULL) ? at : KT_NO_MEMBER;
}

const char *kt_member_names(KtMember m)
{
    return rows[m].names;
}

bool kt_member_row(const GsKernel *k, unsigned i, KtMemberRow *out)
{
    uint32_t size;

    if (i >= KT_M__COUNT) {
        return false;
    }
    *out = (KtMemberRow) {
        .names = rows[i].names, .purpose = uses[rows[i].use].purpose,
        .without = rows[i].some ? "other versions or configurations have it" :
                                  uses[rows[i].use].without,
    };
    out->found = find(k, i, &out->at, &size);
    return true;
}
