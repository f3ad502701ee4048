/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The types of an arm64 kernel that a walk by frame records needs. */
#ifndef FRAME_TYPES_H
#define FRAME_TYPES_H

#include "guest-symbols/types/btf.h"

/* struct pt_regs { u64 regs[34]; struct frame_record_meta stackframe; } */
#define FRAME_REGS_AT 272

/** frame_types_new() - make the types. Without @meta, pt_regs.stackframe is of
 *  another type. Returns: (owned) the types. */
GsBtf *frame_types_new(bool meta);

#endif /* FRAME_TYPES_H */
