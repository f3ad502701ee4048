/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a journal is made of: docs/journal.md in numbers. For the writer and
 * the reader of it.
 *
 * All integers are little-endian. A file is a head, frames, and, if it was
 * ended, a tail that tells where the index is.
 */
#ifndef KT_JOURNAL_FORMAT_H
#define KT_JOURNAL_FORMAT_H

#include "guest-symbols/base/bytes.h"

#define KT_JOURNAL_MAGIC        "KAJRNL"
#define KT_JOURNAL_VERSION      3

#define KT_HEAD_BYTES           128
#define KT_HEAD_LIVE            64      /* where its second half begins */
#define KT_FRAME_BYTES          64      /* of a frame's header */
#define KT_TAIL_BYTES           24
#define KT_FRAME_MAGIC          0x7246414b      /* "KAFr" */
#define KT_TAIL_MAGIC           0x00444e454a414bull     /* "KAJEND" */

/* Caps of what a reader believes. */
#define KT_STORED_MAX           (64u << 20)     /* bytes of a payload */
#define KT_SECTION_MAX          (64u << 20)     /* bytes of one, unpacked; of
                                                 * columns KT_COLUMN_MAX */
#define KT_MEM_BYTES (8u << 20)                 /* of a checkpoint, a frame */
#define KT_CHECKPOINT_MAX       (1u << 30)      /* bytes of its parts */
#define KT_NAMED_PCS            (1u << 20)      /* that get a number */

/** What a frame is. Readers skip kinds from KT_FRAME_MAY_SKIP on that they
 *  do not know, and stop at others. */
typedef enum KtFrameKind {
    KT_FRAME_EVENTS = 1,  /* columns of event-codec.h, a section each */
    KT_FRAME_DEFS,        /* stacks, tasks, caches */
    KT_FRAME_HOOKS,       /* the hook table */
    KT_FRAME_KERNEL,      /* gs_kernel_save(); begins with a byte: found */
    KT_FRAME_MODULE,      /* gs_kernel_save_module() */
    KT_FRAME_MODULE_GONE, /* its address */
    KT_FRAME_CONTROL,     /* KtControl and a value */
    KT_FRAME_STATUS,      /* counters, sizes, hooks: status-frame.c */
    KT_FRAME_GAP,        /* events that were not written, by number */
    KT_FRAME_CHECKPOINT,  /* a part of kt_snapshot_save()'s stream: a byte,
                             * more follow or not, then its bytes; events go
                             * on from that state */
    KT_FRAME_MAY_SKIP = 0x80,
    KT_FRAME_INDEX = 0x80, /* of all frames before it */
    KT_FRAME_MARK,         /* accounts kept: a byte, set or dropped; a name */
    KT_FRAME_INHERITED,    /* a module that a VM's state came with: a byte,
                             * loaded or not any more; then as
                             * KT_FRAME_MODULE */
} KtFrameKind;

/** What becomes of a boot; the payload of KT_FRAME_CONTROL. */
typedef enum KtControl {
    KT_CONTROL_RESET = 1, /* the VM was reset: a new boot */
    KT_CONTROL_CLEAR,     /* `ka clear`; a gap follows */
    KT_CONTROL_COMPLETE,  /* tracing began before the first allocation, or
                             * not: the value */
    KT_CONTROL_ENABLED,   /* `ka on`, `ka off`: the value */
} KtControl;

/** struct KtFrame - a frame's header, and where it stands
 *  @n: events in it; @seq, @us: their first and last (least and greatest),
 *      of other kinds those of the event before
 *  @stored: bytes behind the header; @raw: of its sections, unpacked */
typedef struct KtFrame {
    uint64_t offset;
    uint8_t kind;
    uint32_t number;        /* from 0, in the file */
    uint32_t n;
    uint32_t stored;
    uint32_t raw;
    uint64_t first_seq, last_seq;
    uint64_t first_us, last_us;
    uint32_t crc;           /* of what is stored */
} KtFrame;

/** struct KtHead - the first half of the head, written once */
typedef struct KtHead {
    uint64_t history_bytes;
    uint64_t map_bytes;
    uint32_t max_stacks;
    uint32_t n_cpus;
    uint64_t begun;         /* host's clock, seconds since 1970 */
} KtHead;

/** struct KtLive - the second half, written while the guest runs
 *  @promised: the file will have events up to this number
 *  @dropped: events that it never will have, because writing failed */
typedef struct KtLive {
    uint64_t promised;
    uint64_t dropped;
} KtLive;

void kt_head_put(const KtHead *h, uint8_t out[KT_HEAD_LIVE]);
bool kt_head_get(KtHead *h, const uint8_t in[KT_HEAD_LIVE]);
void kt_live_put(const KtLive *l, uint8_t out[KT_HEAD_LIVE]);
bool kt_live_get(KtLive *l, const uint8_t in[KT_HEAD_LIVE]);
void kt_tail_put(uint64_t index, uint8_t out[KT_TAIL_BYTES]);
bool kt_tail_get(uint64_t *index, const uint8_t in[KT_TAIL_BYTES]);
void kt_frame_put(const KtFrame *f, uint8_t out[KT_FRAME_BYTES]);
/** kt_frame_get() - @f->offset is the caller's; false for no header. */
bool kt_frame_get(KtFrame *f, const uint8_t in[KT_FRAME_BYTES]);

uint32_t kt_crc(const void *data, size_t len);

#endif /* KT_JOURNAL_FORMAT_H */
