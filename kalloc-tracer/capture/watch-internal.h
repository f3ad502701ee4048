/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files watch-*.c share. */
#ifndef KT_WATCH_INTERNAL_H
#define KT_WATCH_INTERNAL_H

#include "kalloc-tracer/access/arming.h"
#include "kalloc-tracer/access/shadow.h"
#include "kalloc-tracer/access/verify.h"
#include "kalloc-tracer/access/vm-areas.h"
#include "kalloc-tracer/objects/slab-slots.h"
#include "kalloc-tracer/access/code-classes.h"
#include "kalloc-tracer/capture/record-internal.h"

/** struct KtPageAt - size of struct page, and offsets in it */
typedef struct KtPageAt {
    uint32_t size, refcount, lru;
} KtPageAt;

/** Calls were not recorded, so the shadow may be wrong. When calls are recorded
 *  again, it is cleared while no vCPU executes; until then nothing is
 *  judged. */
typedef enum KtStale {
    KT_STALE_NOT,
    KT_STALE,
    KT_STALE_CLEARING,
} KtStale;

/** Functions that say how much was reserved for a block. */
#define KT_KSIZES 2

/** struct KtSlotReader - reads the lists of free objects of the running guest;
 *  see watch-verify.c */
typedef struct KtSlotReader KtSlotReader;

/**
 * struct KtAccessLook - the shadows, as on_access() needs them
 * @map: (atomic) that of the direct map
 * @vm: (atomic) that of areas of vmalloc()
 *
 * Neither is NULL: kt_shadow_none stands for a shadow that does not exist yet.
 */
typedef struct KtAccessLook {
    const KtShadow *map, *vm;
} KtAccessLook;

/**
 * struct KtAccessWatch - what is watched in the running boot
 * @look: what accesses are compared with: @shadow and that of @vm_areas
 * @few: few blocks are armed, and none of vmalloc()
 * @arming: the tracer's part: filters, and what explains accesses
 * @shadow: (atomic, nullable) NULL until the direct map is known
 * @refused: (atomic) @shadow cannot be made
 * @said: (static, nullable) why checks do not begin, as it was printed last
 * @vm_areas: of vmalloc()
 * @classes: of the kernel's code
 * @areas: (nullable) only this code is checked, and calls of memcpy() and the
 *         like from there. Changed while no vCPU executes
 * @rules: (nullable, borrowed) the user's, for @classes
 * @verify: (nullable) suspects that wait, if errors are verified
 * @read_lists: looks at the lists for @verify; no vCPU executes
 * @on_timer: asks for @read_lists in time; QEMU's main loop
 * @timer: its GSource, 0: none; @timer_us: guest time of the look that it is
 *         for, UINT64_MAX: none. With the capture's lock
 * @stands: (atomic) accesses wait, and the VM did not run when @on_timer was
 *          called
 * @find_code: finds @classes and @areas anew; no vCPU executes
 * @filter: which blocks, which accesses
 * @budget: (borrowed) of the shadow
 * @stale: (atomic) see KtStale
 * @slots: (atomic, nullable) made when a list of free objects is first read
 * @roundup: kmalloc_size_roundup() exists: ksize() grants no slack
 * @ksize: if not: entries of functions that grant it; 0: none
 * @cache_flags: offset in struct kmem_cache, KT_NO_MEMBER: unknown
 * @typesafe, @ext_in_object: bits of it
 * @cache_kind: (atomic) by cache id: 0 unknown, else KT_CACHE_* bits
 */
struct KtAccessWatch {
    KtAccessLook look;
    bool few;
    KtArming *arming;
    KtShadow *shadow;
    bool refused;
    const char *said;
    KtVmAreas *vm_areas;
    KtCodeClasses *classes;
    KtCodeAreas *areas;
    const KtAccessRules *rules;
    void (*find_code)(void *unused);
    KtVerify *verify;
    void (*read_lists)(void *unused);
    GSourceFunc on_timer;
    unsigned timer;
    uint64_t timer_us;
    bool stands;
    KtAccessFilter *filter;
    KtBudget *budget;
    KtStale stale;
    KtSlotReader *slots;
    bool roundup;
    uint64_t ksize[KT_KSIZES];
    uint32_t cache_flags;
    uint32_t typesafe, ext_in_object;
    KtPageAt page;
    uint8_t cache_kind[UINT16_MAX + 1];
};

/** KT_CACHE_* - what is known of a cache */
enum {
    KT_CACHE_KNOWN = 1,
    KT_CACHE_TYPESAFE = 2,      /* readers may use freed objects */
    KT_CACHE_EXT = 4,           /* the kernel keeps data behind objects */
};

/**
 * struct KtSuspect - an access to a bad byte
 * @pc: the instruction; the entry of a function if @range
 * @va, @len: what is accessed; @bad: its first bad byte; @state: of this byte
 * @shadow: the shadow that has the bad byte: of the direct map, or of vmalloc()
 * @range: the call of a mem*() function, at its entry
 */
typedef struct KtSuspect {
    uint64_t pc, va, len, bad;
    const KtShadow *shadow;
    KtShadowState state;
    bool write, range;
} KtSuspect;

/** kt_access_watch_suspect() - Judge an access to a bad byte; push an event if
 *  nothing explains it. @m: without backtrace; @m->ra is set if @s->range */
void kt_access_watch_suspect(KtAccessWatch *w, KtHookCall *m, KtSuspect *s);

/** kt_access_watch_refuse() - No shadow can be made: say that accesses are not
 *  checked. @why: (static) */
void kt_access_watch_refuse(const char *why);

/** kt_access_watch_find_code() - Find the classes of the kernel's code, and
 *  which of it is checked, with the modules that are loaded now. No vCPU
 *  executes, or the boot is not published yet. */
void kt_access_watch_find_code(KtAccessWatch *w, KtTracer *t,
                               const GsKernel *k);
/** kt_access_watch_is_range() - Return true if a function begins at @va that is
 *  checked at its entry, by arguments. */
bool kt_access_watch_is_range(const KtAccessWatch *w, uint64_t va);
/** kt_access_watch_is_ksize() - Return true if a function begins at @va that
 *  grants slack. */
static inline bool kt_access_watch_is_ksize(const KtAccessWatch *w, uint64_t va)
{
    return va && (va == w->ksize[0] || va == w->ksize[1]);
}
/** kt_access_watch_in_areas() - Return true if the code at @va is checked. */
static inline bool kt_access_watch_in_areas(const KtAccessWatch *w, uint64_t va)
{
    return !w->areas || kt_code_areas_has(w->areas, va);
}

/** kt_access_watch_recover() - Clear the shadow, soon, because calls were not
 *  recorded. */
void kt_access_watch_recover(KtAccessWatch *w);
/** kt_access_watch_layout() - Find what is needed in a kernel's types. Returns:
 *  false if they do not describe pages. */
bool kt_access_watch_layout(KtAccessWatch *w, const GsKernel *k);
/** kt_cache_flags() - Find flags in kmem_cache.flags of a kernel.
 *  @typesafe: (out) SLAB_TYPESAFE_BY_RCU; @debug: (out) those of caches of
 *  kmemleak and debugobjects */
void kt_cache_flags(const GsKernel *k, uint32_t *typesafe, uint32_t *debug);
/** kt_access_watch_make_shadow() - Make the shadow if the direct map is known.
 *  Any vCPU, or while no vCPU executes. */
void kt_access_watch_make_shadow(KtAccessWatch *w, KtGuest *g);
/** kt_access_watch_slots() - Mark the free slots of the slab that contains @va,
 *  where an object of @cache was just allocated. */
void kt_access_watch_slots(KtAccessWatch *w, KtHookCall *m, uint64_t va,
                           KtCacheId cache);
/** kt_access_watch_slabs() - (borrowed, nullable) Return what reads slabs of
 *  the running guest. */
KtSlabs *kt_access_watch_slabs(KtAccessWatch *w, const KtShared *c, KtGuest *g);
/** kt_access_watch_verify() - Ask the last judge, if errors are verified.
 *  @m->ev is the event. @now: cache of the slab. Returns: true to push it; if
 *  not, it is explained, dropped, or held. */
bool kt_access_watch_verify(KtAccessWatch *w, KtHookCall *m,
                            const KtSuspect *s, KtCacheId now);
/** kt_access_watch_release() - @m->ev is about to be pushed, while accesses are
 *  held: push those to its memory, and ask for a look if one is due. */
void kt_access_watch_release(KtAccessWatch *w, KtHookCall *m);
/** kt_access_watch_look() - Look at the lists for what is held, and set the
 *  timer for the next look. No vCPU executes; the capture's lock is held. */
void kt_access_watch_look(KtAccessWatch *w, const KtShared *c, KtGuest *g);
/** kt_access_watch_on_time() - Ask for the next look if it is due, else set the
 *  timer. With the BQL and the capture's lock. */
void kt_access_watch_on_time(KtAccessWatch *w);
/** kt_access_watch_begin_verify() - Verify errors from now on. */
void kt_access_watch_begin_verify(KtAccessWatch *w);
/** kt_access_watch_end_verify() - Push all that is held, and verify no more. No
 *  vCPU executes. */
void kt_access_watch_end_verify(KtAccessWatch *w, const KtShared *c);
/** kt_access_watch_release_all() - Push all that is held. No vCPU executes. */
void kt_access_watch_release_all(KtAccessWatch *w, const KtShared *c);
/** kt_slot_reader_free() - @r: (owned, nullable) */
void kt_slot_reader_free(KtSlotReader *r);
/** kt_access_watch_fill() - Mark the blocks that the map has. No vCPU
 *  executes. */
void kt_access_watch_fill(KtAccessWatch *w, KtTracer *t, KtGuest *g);

/* ---- code ---------------------------------------------------------------- */
/*
 * What callbacks of accesses know of the code that they are for: the address of
 * the instruction, and the class of its function. Any thread, no lock.
 */

/** kt_watch_pack() - Make the argument of a callback: the address of an
 *  instruction, and @left, the instructions of its block that have not run,
 *  fewer than 4096. @how: what the callback needs to know, 0 to 15.
 *  Kernel code is within the highest 2^48 bytes. */
static inline void *kt_watch_pack(uint64_t pc, unsigned how, size_t left)
{
    return (void *)(uintptr_t)(pc << 16 | (how & 0xf) << 12 | (left & 0xfff));
}

/** kt_watch_pc(), kt_watch_how(), kt_watch_left() - Read this argument. */
static inline uint64_t kt_watch_pc(void *udata)
{
    return (uint64_t)(uintptr_t)udata >> 16 | 0xffffull << 48;
}

static inline unsigned kt_watch_how(void *udata)
{
    return (uintptr_t)udata >> 12 & 0xf;
}

static inline unsigned kt_watch_left(void *udata)
{
    return (uintptr_t)udata & 0xfff;
}

/** struct KtWatchFunction - a function, while a block is translated; zeroed:
 *  not known yet. @is_part: of a RANGE function: its entry is not checked */
typedef struct KtWatchFunction {
    uint64_t start, end;
    KtCodeClass class;
    bool is_part;
} KtWatchFunction;

/** kt_watch_function() - Set @f to the function at @va. Cheap if it is the same
 *  one. */
void kt_watch_function(KtWatchFunction *f, const KtCodeClasses *c, uint64_t va);

/** kt_watch_class() - Return the class of the code at @pc. */
KtCodeClass kt_watch_class(const KtCodeClasses *c, uint64_t pc);

/** kt_watch_string_how() - Return @how of kt_watch_pack() that says what a
 *  string instruction does. */
unsigned kt_watch_string_how(const GsString *s);
/** kt_watch_string() - Reverse kt_watch_string_how(). */
GsString kt_watch_string(unsigned how);
/** kt_watch_string_len() - Return the bytes that a string instruction that has
 *  not begun writes, and reads if it loads, at most 16 MiB. */
uint64_t kt_watch_string_len(const KtVcpu *v, const GsString *s);
/**
 * kt_watch_may_count_down() - Return true if addresses of the string
 * instruction at @pc may go down: its function has std in front of @pc, or
 * cannot be read
 *
 * The direction itself is not known to plugins. Else addresses go up: functions
 * are called so, and an interrupt comes back to the same function. Handlers of
 * exceptions begin with any direction; they have cld in front of all string
 * instructions.
 */
bool kt_watch_may_count_down(const KtHookCall *m, uint64_t pc);

/** kt_watch_range_len() - Return the bytes that a call of a RANGE function, at
 *  its entry, reads or writes, at most 16 MiB. */
uint64_t kt_watch_range_len(const KtHookCall *m, const KtCodeRow *row);

/* ---- stacks -------------------------------------------------------------- */
/* The stack and the task of an access. On the vCPU's own thread. */

/** struct KtWatchStack - @n frames; the first is the instruction */
typedef struct KtWatchStack {
    uint64_t frame[KT_MAX_FRAMES];
    unsigned n;
    GsStop stop;
} KtWatchStack;

/** kt_watch_task() - Set the task of @m->ev. Returns: the address of its
 *  task_struct. */
uint64_t kt_watch_task(KtHookCall *m);
/** kt_watch_walk() - Walk the stack of the access by the instruction at @pc.
 *  @entry: it is the first of its function, and @m->ra is set; @task: of
 *  kt_watch_task() */
void kt_watch_walk(KtHookCall *m, uint64_t pc, bool entry, uint64_t task,
                   KtWatchStack *out);
/** kt_watch_walk_code() - Walk the stack anew if the function at @pc, which is
 *  no entry, may have no frame record: its code says who called it. Does
 *  nothing where all functions have one, or if there were too many such walks.
 *  @out: (in/out) of kt_watch_walk() */
void kt_watch_walk_code(KtHookCall *m, uint64_t pc, uint64_t task,
                        KtWatchStack *out);
/** kt_watch_intern() - Return the id of a stack. */
KtStackId kt_watch_intern(const KtHookCall *m, const KtWatchStack *st);
/** kt_watch_first() - Return the first frame whose code answers for the access:
 *  it is no leaf and no memory function; @st->n if there is none. */
unsigned kt_watch_first(const KtCodeClasses *c, const KtWatchStack *st);
/** kt_watch_frame_class() - Return the class of the code of frame @i. */
KtCodeClass kt_watch_frame_class(const KtCodeClasses *c, const KtWatchStack *st,
                                 unsigned i);

#endif /* KT_WATCH_INTERNAL_H */
