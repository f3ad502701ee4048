/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Searches of a stopped VM's memory: leaked blocks, and who refers to a
 * block. */
#ifndef KT_LEAK_API_H
#define KT_LEAK_API_H

#include "kalloc-tracer/api/kt-types.h"
#include "kalloc-tracer/api/kt-vm.h"

/**
 * struct KtLeakPlan - how to search
 * @vm: (borrowed) stopped
 * @kernel: (borrowed) that runs in it
 * @no_stacks: leave the stacks of tasks out
 * @seconds: give up after so many, 0 for KT_LEAK_SECONDS
 * @progress: (nullable) called now and then with bytes read so far; false
 *            ends the search
 * @opaque: handed to @progress
 */
typedef struct KtLeakPlan {
    const KtVm *vm;
    const GsKernel *kernel;
    bool no_stacks;
    unsigned seconds;
    bool (*progress)(void *opaque, uint64_t bytes);
    void *opaque;
} KtLeakPlan;
#define KT_LEAK_SECONDS         120u
#define KT_LEAK_WATCH_SECONDS   10u     /* where a guest waits for its end */

/** How surely a leaked block is one. */
typedef enum KtLeakHold {
    KT_LEAK_NOTHING,        /* no word of memory refers to it */
    KT_LEAK_INTERIOR,       /* only into it, and only other leaked blocks */
    KT_LEAK_START,          /* leaked blocks have its address */
    KT_LEAK__COUNT
} KtLeakHold;
/** kt_leak_hold_name() - (static) "nothing", "interior", "start". */
const char *kt_leak_hold_name(KtLeakHold hold);

/** struct KtLeak - a block that nothing reaches */
typedef struct KtLeak {
    KtBlock block;
    KtLeakHold hold;
} KtLeak;

/**
 * struct KtLeakReport - what a scan found
 * @leaks: (owned) KtLeak, by address; @fresh: of these, not reported by the
 *         scan before
 * @missing: (owned) texts: what could not be looked at, and why
 * @blocks: that were examined; @excused: by rules, of those that nothing
 *          reaches; @cleared: likewise, by `ka leak clear`
 * @interior: reached by interior pointers only
 * @unplaced: blocks that count as reached, as they overlap others
 * @tasks: whose stacks were looked at
 * @bytes: of guest memory that were read; @guest_bytes: that the guest has;
 *         @unreadable: pages of what should be there and is not
 * @us: host microseconds that it took
 */
typedef struct KtLeakReport {
    GArray *leaks;
    GPtrArray *missing;
    unsigned fresh;
    uint64_t blocks, excused, cleared, interior, unplaced;
    uint64_t tasks;
    uint64_t bytes, guest_bytes, unreadable;
    uint64_t us;
} KtLeakReport;

/**
 * kt_leak_scan() - find live blocks that nothing in use refers to
 * @out: (out) to be given to kt_leak_report_clear()
 * @errp: the VM runs, or its memory cannot be read now, or @plan->progress
 *        ended it
 *
 * On the thread of a monitor command, which holds no lock of the tracer's.
 * Pages of the page allocator are no blocks here, whatever pages= says.
 */
bool kt_leak_scan(KtTracer *t, const KtLeakPlan *plan, KtLeakReport *out,
                  GError **errp);
void kt_leak_report_clear(KtLeakReport *r);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KtLeakReport, kt_leak_report_clear)

/** kt_leak_clear() - what the last scan reported is not reported again, as
 *  long as it lives. Returns: how many. */
uint64_t kt_leak_clear(KtTracer *t);
/** kt_leak_scanned() - was there a scan? @us: (out) guest's time of it */
bool kt_leak_scanned(KtTracer *t, uint64_t *us);
/** kt_leak_known() - did the last scan report the block (that was allocated
 *  at @alloc_us)? */
bool kt_leak_known(KtTracer *t, uint64_t va, uint64_t alloc_us,
                   KtLeakHold *hold);
/** kt_leak_cleared() - did a scan report it that kt_leak_clear() was called
 *  after? */
bool kt_leak_cleared(KtTracer *t, uint64_t va, uint64_t alloc_us,
                     KtLeakHold *hold);

/**
 * kt_leak_list() - what the last scan reported and still lives
 * @out: (out, owned) KtLeak, by address
 * @us: (out) guest's time of that scan
 * Returns: false: there was no scan, and @out is empty.
 */
bool kt_leak_list(KtTracer *t, GArray **out, uint64_t *us);

/** kt_leak_set_every() - have kt_leak_periodic_due() be true each @seconds; 0:
 *  never. As all of these, on the thread of monitor commands. */
void kt_leak_set_every(KtTracer *t, unsigned seconds);
#define KT_LEAK_EVERY_MAX 86400
unsigned kt_leak_every(KtTracer *t);
/** kt_leak_periodic_due() - to be asked each second that the VM runs: is a scan
 *  wanted now? */
bool kt_leak_periodic_due(KtTracer *t);
/**
 * kt_leak_periodic() - make it
 * @plan: as for kt_leak_scan(): the VM stands still
 * Returns: (owned, nullable) a line for the user: there are new leaked blocks,
 * or there was no scan. One that cannot be made just now is due again.
 */
char *kt_leak_periodic(KtTracer *t, const KtLeakPlan *plan);

/**
 * kt_leak_rules_load() - rules of a file, beside those that are built in
 * @path: see docs/leaks.md
 * @errp: FILE:LINE: what is wrong with it
 *
 * Before the first scan. Of a file that is refused nothing is kept.
 */
bool kt_leak_rules_load(KtTracer *t, const char *path, GError **errp);

/* ---- who refers to a block ---------------------------------------------- */

/** What kind of memory it is. */
typedef enum KtPlace {
    KT_PLACE_BLOCK,
    KT_PLACE_DATA,          /* variables of the kernel proper */
    KT_PLACE_PERCPU,        /* of one CPU */
    KT_PLACE_STACK,         /* of a task */
    KT_PLACE_REGISTER,
    KT_PLACE_STRUCT_PAGE,
    KT_PLACE_PAGE,          /* of the kernel's, and no block */
    KT_PLACE_FREELIST,      /* of a struct page: what its slab has, or had, on
                             * its list of free objects; of a struct
                             * slab_sheaf: what it has, or had, as free; holds
                             * no block */
    KT_PLACE__COUNT
} KtPlace;
/** kt_place_name() - (static) "block", "data" and so on. */
const char *kt_place_name(KtPlace place);

/**
 * struct KtRef - a word that refers to a block
 * @place: where it is
 * @va: its address, 0 for a register
 * @value: the word
 * @owner: of a KT_PLACE_BLOCK the block; else @number tells
 * @number: pid, CPU, or vCPU of the register
 * @name: (borrowed from the VM) the register's
 */
typedef struct KtRef {
    KtPlace place;
    uint64_t va, value;
    KtBlock owner;
    uint32_t number;
    const char *name;
} KtRef;

/**
 * kt_refs() - all words that refer to [@lo, @hi]
 * @out: (out, owned) KtRef: those to @lo first, then by place and address
 * @more: (out) those that did not fit into KT_REFS_MAX
 * @bytes: (out) of memory that was read
 */
bool kt_refs(KtTracer *t, const KtLeakPlan *plan, uint64_t lo, uint64_t hi,
             GArray **out, uint64_t *more, uint64_t *bytes, GError **errp);
#define KT_REFS_MAX 65536

#endif /* KT_LEAK_API_H */
