/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types that a walk by frame records looks at, as an arm64 kernel has
 * them.
 */
#ifndef FRAME_TYPES_H
#define FRAME_TYPES_H

#include "guest-symbols/types/btf.h"

#include <bpf/btf.h>

/* struct pt_regs { u64 regs[34]; struct frame_record_meta stackframe; } */
#define FRAME_REGS_AT 272

static inline GsBtf *frame_types_new(bool meta)
{
    struct btf *b = btf__new_empty();
    int t_long = btf__add_int(b, "long", 8, BTF_INT_SIGNED);
    int frame;
    GsBtf *types;
    __u32 len;
    const void *raw;

    frame = btf__add_struct(b, meta ? "frame_record_meta" : "other", 24);
    btf__add_field(b, "type", t_long, 128, 0);
    btf__add_struct(b, "pt_regs", FRAME_REGS_AT + 24);
    btf__add_field(b, "stackframe", frame, FRAME_REGS_AT * 8, 0);
    raw = btf__raw_data(b, &len);
    types = gs_btf_new(raw, len, NULL);
    btf__free(b);
    return types;
}

#endif /* FRAME_TYPES_H */
