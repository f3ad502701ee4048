/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which members of the kernel's structs ka reads, and where this kernel has
 * them. The rows are in layout/members.def. */
#ifndef KT_MEMBERS_H
#define KT_MEMBERS_H

#include "kalloc-tracer/api/kt-types.h"

/**
 * struct KtMemberRow - a member that ka reads
 * @names: "struct.member", with other versions' names behind "|"
 * @purpose: what it is read for
 * @without: what is done in a kernel that lacks it
 * @found: this kernel has it, @at bytes from the begin of the struct
 */
typedef struct KtMemberRow {
    const char *names, *purpose, *without;
    bool found;
    uint32_t at;
} KtMemberRow;

/** kt_member_row() - Get row number @i, from 0. @k: (nullable) Returns: false
 *  after the last row. Any thread. */
bool kt_member_row(const GsKernel *k, unsigned i, KtMemberRow *out);

#endif /* KT_MEMBERS_H */
