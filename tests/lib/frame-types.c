/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/frame-types.h"
#include "tests/lib/types-writer.h"

GsBtf *frame_types_new(bool meta)
{
    struct btf *b = btf__new_empty();
    int t_long = btf__add_int(b, "long", 8, BTF_INT_SIGNED);
    int frame;

    frame = btf__add_struct(b, meta ? "frame_record_meta" : "other", 24);
    btf__add_field(b, "type", t_long, 128, 0);
    btf__add_struct(b, "pt_regs", FRAME_REGS_AT + 24);
    btf__add_field(b, "stackframe", frame, FRAME_REGS_AT * 8, 0);
    return types_end(b);
}
