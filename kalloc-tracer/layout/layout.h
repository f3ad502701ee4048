/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layout: where the members of the kernel's structs are that ka reads. The rows
 * are in members.def. Found by their names in the kernel's types, never by its
 * version. Pure functions of the types; any thread. The list of the rows for
 * users is api/kt-structs.h.
 */
#ifndef KT_LAYOUT_H
#define KT_LAYOUT_H

#include "kalloc-tracer/api/kt-types.h"

/** KT_NO_MEMBER - the offset of a member that is not known. */
#define KT_NO_MEMBER UINT32_MAX

/** KtMember - KT_M_* for each row of members.def */
typedef enum KtMember {
#define KT_USE(...)
#define KT_MEMBER(id, ...) KT_M_##id,
#define KT_SOME KT_MEMBER
#include "kalloc-tracer/layout/members.def"
    KT_M__COUNT
} KtMember;

/** struct KtLayout - offset and size of each member in one kernel
 *  @at: KT_NO_MEMBER if it lacks the member
 *  @size: 0 if it lacks it, else at least 1: a flexible array has no size */
typedef struct KtLayout {
    uint32_t at[KT_M__COUNT], size[KT_M__COUNT];
} KtLayout;

/** kt_layout_init() - Find all members. @k: (nullable) without a kernel there
 *  are none. */
void kt_layout_init(KtLayout *l, const GsKernel *k);

/** kt_layout_has() - Return true if the kernel has the member. */
static inline bool kt_layout_has(const KtLayout *l, KtMember m)
{
    return l->at[m] != KT_NO_MEMBER;
}

/** kt_layout_find() - As kt_layout_init(). Returns: true if the kernel has the
 *  members @first to @last, in the order of members.def. */
bool kt_layout_find(KtLayout *l, const GsKernel *k, KtMember first,
                    KtMember last);

/** kt_layout_has_all() - Return true if the kernel has the members @first to
 *  @last. */
bool kt_layout_has_all(const KtLayout *l, KtMember first, KtMember last);

/** kt_member() - Return the offset of one member, KT_NO_MEMBER if the kernel
 *  lacks it. @k: (nullable) */
uint32_t kt_member(const GsKernel *k, KtMember m);
/** kt_member_names() - (static) Return the names of a row. */
const char *kt_member_names(KtMember m);

#endif /* KT_LAYOUT_H */
