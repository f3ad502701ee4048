/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format of a journal: docs/journal.md in numbers. The fixed parts are used
 * by the frame writer and the frame reader; what frames contain follows them.
 *
 *     offset 0       64          128                           size - 24
 *           +-------+-----------+---------+-- --+-------------+------+
 *           | head  | live      | frame 0 | ... | index frame | tail |
 *           | once  | rewritten |         |     | if ended    |      |
 *           +-------+-----------+---------+-- --+-------------+------+
 *
 * A frame is a header and one section or, of events, a section for each column:
 *
 *     offset  0       4      8        12   16       20
 *            +-------+------+--------+----+--------+-----+---
 *            | magic | kind | number | n  | stored | raw | ...
 *            +-------+------+--------+----+--------+-----+---
 *     offset  24          32         40         48        56    60
 *         ---+-----------+----------+----------+---------+-----+---------+
 *        ... | first_seq | last_seq | first_us | last_us | crc | crc of  |
 *            |           |          |          |         |     | 0 to 59 |
 *         ---+-----------+----------+----------+---------+-----+---------+
 *
 *     section: unpacked length (4), stored length (4), bytes; the bytes are
 *     packed with zstd if the stored length is less
 *
 * Integers are little-endian. Head, live, header and tail each end with a
 * checksum of the bytes before it. Pure functions: any thread.
 */
#ifndef KT_JOURNAL_FORMAT_H
#define KT_JOURNAL_FORMAT_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/api/kt-event.h"
#include "kalloc-tracer/api/kt-journal.h"
#include "kalloc-tracer/api/kt-query.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/base/tasks-and-caches.h"

#define KT_JOURNAL_MAGIC        "KAJRNL"
#define KT_JOURNAL_VERSION      3

#define KT_HEAD_BYTES           128
#define KT_HEAD_LIVE            64      /* offset of the second half */
#define KT_FRAME_BYTES          64      /* of a header */
#define KT_TAIL_BYTES           24

/* Limits of what a reader accepts. */
#define KT_STORED_MAX           (64u << 20)     /* bytes behind a header */
#define KT_SECTION_MAX          (64u << 20)     /* bytes of a section, unpacked;
                                                 * columns: KT_COLUMN_MAX */
#define KT_MEM_BYTES (8u << 20)                 /* checkpoint bytes a frame */
#define KT_CHECKPOINT_MAX       (1u << 30)      /* bytes of a checkpoint */
#define KT_NAMED_PCS            (1u << 20)      /* program counters that get a
                                                 * number */

/** What a frame contains. A reader stops at a kind that it does not know, and
 *  skips it if the number is KT_FRAME_MAY_SKIP or more. */
typedef enum KtFrameKind {
    KT_FRAME_EVENTS = 1,  /* columns of event-codec.c, a section each */
    KT_FRAME_DEFS,        /* stacks, tasks, caches: definitions.c */
    KT_FRAME_HOOKS,       /* the hook table: replay/replay-ids.h */
    KT_FRAME_KERNEL,      /* a byte: found or not; then gs_kernel_save() */
    KT_FRAME_MODULE,      /* gs_kernel_save_module() */
    KT_FRAME_MODULE_GONE, /* address of a module that was unloaded */
    KT_FRAME_CONTROL,     /* KtControl and a value */
    KT_FRAME_STATUS,      /* counters, sizes, hooks: status-frame.c */
    KT_FRAME_GAP,         /* number of events that were not written */
    KT_FRAME_CHECKPOINT,  /* a part of a snapshot: a byte, more parts follow or
                             * not; then bytes. Events continue from that
                             * state */
    KT_FRAME_MAY_SKIP = 0x80,
    KT_FRAME_INDEX = 0x80, /* headers of all frames before it */
    KT_FRAME_MARK,         /* a mark: a byte, set or dropped; its name */
    KT_FRAME_INHERITED,    /* a module of a VM state that was loaded: a byte,
                             * loaded or unloaded; then as KT_FRAME_MODULE */
    KT_FRAME_CALLS,        /* watched calls: calls/call-journal.h */
    KT_FRAME_FAULTS,       /* calls that fault rules selected:
                            * faults/fault-journal.h */
    KT_FRAME_LOG,          /* lines of the kernel's log: log/log-lines.h */
    KT_FRAME_ALIAS,        /* another name of a cache: tracer/alias-frame.h */
} KtFrameKind;

/** What happened to the boot; the content of KT_FRAME_CONTROL. */
typedef enum KtControl {
    KT_CONTROL_RESET = 1, /* the VM was reset: a new boot */
    KT_CONTROL_CLEAR,     /* `ka clear`; a gap follows */
    KT_CONTROL_COMPLETE,  /* kt_tracer_set_complete(), with its value */
    KT_CONTROL_ENABLED,   /* `ka on`, `ka off`: 1, 0 */
} KtControl;

/**
 * struct KtFrame - the header of a frame, and its place in the file
 * @number: 0, 1, 2, ... in the file
 * @n: events in the frame
 * @stored: bytes behind the header
 * @raw: bytes of the sections, unpacked
 * @first_seq, @last_seq: numbers of its first and last event
 * @first_us, @last_us: least and greatest time of its events. Without events,
 *                      these four are those of the last event before
 * @crc: checksum of the stored bytes
 */
typedef struct KtFrame {
    uint64_t offset;
    uint8_t kind;
    uint32_t number;
    uint32_t n;
    uint32_t stored;
    uint32_t raw;
    uint64_t first_seq, last_seq;
    uint64_t first_us, last_us;
    uint32_t crc;
} KtFrame;

/** struct KtHead - first half of the head: limits of the tracer that wrote the
 *  file. @begun: the host's clock, seconds since 1970 */
typedef struct KtHead {
    uint64_t history_bytes;
    uint64_t map_bytes;
    uint32_t max_stacks;
    uint32_t n_cpus;
    uint64_t begun;
} KtHead;

/**
 * struct KtLive - second half of the head, rewritten while the guest runs
 * @promised: the file will have events up to this number
 * @dropped: events that it will never have: writing failed
 */
typedef struct KtLive {
    uint64_t promised;
    uint64_t dropped;
} KtLive;

/** struct KtTail - the last bytes. @index: offset of the index frame */
typedef struct KtTail {
    uint64_t index;
} KtTail;

/** The parts: the struct with their contents, and their bytes. */
typedef enum KtPart {
    KT_PART_HEAD,       /* KtHead, KT_HEAD_LIVE */
    KT_PART_LIVE,       /* KtLive, KT_HEAD_LIVE */
    KT_PART_FRAME,      /* KtFrame without @offset, KT_FRAME_BYTES */
    KT_PART_TAIL,       /* KtTail, KT_TAIL_BYTES */
    KT_PART__COUNT
} KtPart;

/** kt_part_pack() - Write a part as bytes, with its checksum. */
void kt_part_pack(KtPart part, const void *row, uint8_t *out);
/** kt_part_unpack() - Read a part. Returns: false if the checksum is wrong or
 *  it is no such part. */
bool kt_part_unpack(KtPart part, void *row, const uint8_t *in);

/** kt_crc() - return zlib's crc32 of @data. */
uint32_t kt_crc(const void *data, size_t len);

/* ---- frames of events: event-codec.c ------------------------------------- */

/*
 * Events are columns of bytes. The frame writer encodes, the replay decodes. A
 * column has one field of all events of a frame, or a few that change together.
 * Neighbours in a column are alike, which zstd makes small. Each frame starts
 * anew, so it can be read without the frames before it.
 */

/** Most events of a frame. */
#define KT_RUN_EVENTS 16384
/** Most bytes of a column. */
#define KT_COLUMN_MAX (64 * KT_RUN_EVENTS)

/** The columns. Numbers are varints; "difference" means the signed difference
 *  from the event before. */
typedef enum KtColumn {
    KT_COL_US,              /* time: difference */
    KT_COL_CPU,
    KT_COL_SEQ,             /* sequence number less the one expected */
    KT_COL_STACK,           /* id: difference */
    KT_COL_TASK,            /* id */
    KT_COL_CALL,            /* kind, hook, layer, family, flags: a byte each;
                             * cache, gfp and tag << 32, size, actual - size */
    KT_COL_VA,              /* signed difference from the last address with
                             * the same cache or, without cache, layer */
    KT_COL__COUNT
} KtColumn;

/**
 * kt_event_codec_encode() - write @n events as columns
 * @n: at most KT_RUN_EVENTS
 * @col: (out) emptied, then filled
 */
void kt_event_codec_encode(const KtEvent *ev, unsigned n,
                           GByteArray *col[KT_COL__COUNT]);
/**
 * kt_event_codec_decode() - read the same events
 * @col: untrusted
 * @ev: (out) room for @n
 *
 * Returns: false if the columns do not hold exactly @n events, or a number is
 * too large for its field. @ev has undefined contents then.
 */
bool kt_event_codec_decode(GsBytes col[KT_COL__COUNT], unsigned n,
                           KtEvent *ev);

/* ---- frames of definitions: definitions.c, replay/replay-ids.c ----------- */

/*
 * What the ids in events stand for: backtraces, tasks, caches. Each is written
 * before the first event that names it. A program counter is written once and
 * then named by a number, and a backtrace says how many of its outermost frames
 * it shares with the backtrace before: docs/journal.md has an example. One
 * thread at a time.
 */

/** The first byte of a definition. */
typedef enum KtDefinitionTag {
    KT_DEF_ANEW,            /* numbers of program counters begin anew */
    KT_DEF_STACK,
    KT_DEF_TASK,
    KT_DEF_CACHE,
} KtDefinitionTag;

/** struct KtLastStack - the stack before, which writer and reader remember.
 *  @pc: the program counter that got a number last */
typedef struct KtLastStack {
    uint32_t id;
    uint64_t pc;
    uint64_t frame[KT_MAX_FRAMES];
    unsigned n;
} KtLastStack;

/** kt_last_stack_set() - Remember a stack. */
static inline void kt_last_stack_set(KtLastStack *l, uint32_t id,
                                     const uint64_t *pc, unsigned n)
{
    l->id = id;
    l->n = n;
    memcpy(l->frame, pc, n * sizeof(*pc));
}

typedef struct KtDefinitions KtDefinitions;

/** kt_definitions_new() - make a writer (owned) that has defined nothing yet.
 *  @stacks and @names are borrowed. */
KtDefinitions *kt_definitions_new(const KtDepot *stacks,
                                  const KtTasksCaches *names);
void kt_definitions_free(KtDefinitions *d);
/** kt_definitions_add() - append to @out the definitions of all ids in @ev that
 *  are not defined yet. */
void kt_definitions_add(KtDefinitions *d, const KtEvent *ev, GsOut *out);
/** kt_definitions_reset() - define everything again: what was appended may not
 *  be in the file, or ids mean something else now. */
void kt_definitions_reset(KtDefinitions *d);

/* ---- the status frame: status-frame.c ------------------------------------ */

/*
 * What `ka stat` prints and events do not say. The tracer writes one each
 * second, the replay reads the last.
 */

/** kt_status_put() - append @s, and the sizes and counters of @stats. */
void kt_status_put(GsOut *out, const KtStatus *s, const KtStats *stats);

/** struct KtStoredStatus - a status that was read; all strings are owned */
typedef struct KtStoredStatus {
    bool kernel_found;
    char *why_no_kernel;        /* nullable */
    KtStats stats;              /* what a status has; the rest is 0 */
    uint64_t counter[KT_CNT__COUNT];
    unsigned n_hooks;
    KtHookStatus *hook;         /* strings in @strings */
    GStringChunk *strings;
} KtStoredStatus;

/** kt_status_get() - read a status (owned); NULL if it is malformed. Counters
 *  that this version does not know are skipped. */
KtStoredStatus *kt_status_get(GsBytes *in);
void kt_status_free(KtStoredStatus *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtStoredStatus, kt_status_free)

#endif /* KT_JOURNAL_FORMAT_H */
