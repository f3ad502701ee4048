/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Leak scans.
 *
 * A scan reads the memory of a stopped VM like a garbage collector: it marks
 * the blocks that can be reached from roots (variables, stacks, registers),
 * and reports live blocks that cannot. docs/leaks.md explains it.
 *
 * Call everything here on the thread of monitor commands, not between
 * kt_query_begin() and kt_query_end().
 */
#ifndef KT_API_LEAK_H
#define KT_API_LEAK_H

#include "kalloc-tracer/api/kt-types.h"
#include "kalloc-tracer/api/kt-vm.h"

/**
 * struct KtLeakPlan - how to search
 * @vm: (borrowed) a stopped VM
 * @kernel: (borrowed) the kernel that runs in it
 * @no_stacks: do not use the stacks of tasks as roots
 * @seconds: give up after so many; 0: KT_LEAK_SECONDS
 * @pages: (nullable) uint64_t, sorted: blocks of the page allocator that are
 *         examined as blocks. All others are roots
 * @progress: (nullable) called now and then with the bytes read so far; false
 *            ends the search
 */
typedef struct KtLeakPlan {
    const KtVm *vm;
    const GsKernel *kernel;
    bool no_stacks;
    unsigned seconds;
    const GArray *pages;
    bool (*progress)(void *opaque, uint64_t bytes);
    void *opaque;
} KtLeakPlan;
#define KT_LEAK_SECONDS         120u
#define KT_LEAK_WATCH_SECONDS   10u     /* of a periodic scan: the VM waits */

/** What still refers to a leaked block: the less, the surer is the leak. */
typedef enum KtLeakHold {
    KT_LEAK_NOTHING,        /* no word of memory */
    KT_LEAK_INTERIOR,       /* other leaked blocks have an address inside it */
    KT_LEAK_START,          /* other leaked blocks have its start */
    KT_LEAK__COUNT
} KtLeakHold;
/** kt_leak_hold_name() - return "nothing", "interior" or "start". */
const char *kt_leak_hold_name(KtLeakHold hold);

/** struct KtLeak - a leaked block: nothing in use refers to it. @owner: address
 *  of the leaked block that alone holds it; its own if there is none */
typedef struct KtLeak {
    KtBlock block;
    KtLeakHold hold;
    uint64_t owner;
} KtLeak;

/**
 * struct KtLeakReport - what a scan found
 * @leaks: (owned) KtLeak, by address
 * @missing: (owned) lines: what could not be read, and why
 * @fresh: of @leaks, those that the scan before did not report
 * @blocks: blocks that were examined
 * @excused: unreached blocks that a rule excuses
 * @dismissed: unreached blocks that the user dismissed by `ka leak dismiss`
 * @interior: blocks reached only by a pointer into them
 * @unplaced: blocks that overlap others, and count as reached
 * @tasks: tasks whose stacks were used
 * @bytes, @guest_bytes: memory that was read, and that the guest has
 * @unreadable: pages that should be there and could not be read
 * @us: host time of the scan, microseconds
 */
typedef struct KtLeakReport {
    GArray *leaks;
    GPtrArray *missing;
    unsigned fresh;
    uint64_t blocks, excused, dismissed, interior, unplaced;
    uint64_t tasks;
    uint64_t bytes, guest_bytes, unreadable;
    uint64_t us;
} KtLeakReport;

/**
 * kt_leak_scan() - report the live blocks that nothing in use refers to
 * @out: (out) free it with kt_leak_report_clear()
 * @errp: the VM runs, its memory cannot be read, @plan->progress ended the
 *        search, or the time is over
 *
 * Pages of the page allocator are not examined, whatever the option pages=
 * says.
 */
bool kt_leak_scan(KtTracer *t, const KtLeakPlan *plan, KtLeakReport *out,
                  GError **errp);
void kt_leak_report_clear(KtLeakReport *r);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KtLeakReport, kt_leak_report_clear)

/** kt_leak_dismiss() - dismiss what the last scan reported: later scans do not
 *  report these blocks while they live. Return their number. */
uint64_t kt_leak_dismiss(KtTracer *t);
/** kt_leak_scanned() - return true if there was a scan. @us: (out) guest time
 *  of the last one. */
bool kt_leak_scanned(KtTracer *t, uint64_t *us);
/** kt_leak_known() - return true if the last scan reported the block at @va
 *  that was allocated at @alloc_us. */
bool kt_leak_known(KtTracer *t, uint64_t va, uint64_t alloc_us,
                   KtLeakHold *hold);
/** kt_leak_dismissed() - return true if the block was reported by a scan and
 *  the user then dismissed that report with kt_leak_dismiss(). */
bool kt_leak_dismissed(KtTracer *t, uint64_t va, uint64_t alloc_us,
                       KtLeakHold *hold);

/**
 * kt_leak_list() - list the blocks of the last report that are still live
 * @out: (out, owned) KtLeak, by address
 * @us: (out) guest time of that scan
 *
 * Returns: false if there was no scan; @out is empty then.
 */
bool kt_leak_list(KtTracer *t, GArray **out, uint64_t *us);

/** kt_leak_set_every() - scan each @seconds while the VM runs; 0: never. */
void kt_leak_set_every(KtTracer *t, unsigned seconds);
#define KT_LEAK_EVERY_MAX 86400
/** kt_leak_every() - return the seconds of kt_leak_set_every(). */
unsigned kt_leak_every(KtTracer *t);
/** kt_leak_periodic_due() - return true if it is time for a periodic scan. Ask
 *  once a second while the VM runs. */
bool kt_leak_periodic_due(KtTracer *t);
/**
 * kt_leak_periodic() - make a periodic scan of the VM, which is stopped
 * @plan: as for kt_leak_scan()
 *
 * A scan that is not possible right now is due again. Returns: (owned,
 * nullable) a line for the user: there are new leaked blocks, or the scan
 * failed.
 */
char *kt_leak_periodic(KtTracer *t, const KtLeakPlan *plan);

/**
 * kt_leak_rules_load() - add the rules of a file to the built-in ones
 * @path: docs/leaks.md has the format
 * @errp: FILE:LINE: what is wrong
 *
 * Call it before the first scan. If there is an error no rule of the file is
 * used.
 */
bool kt_leak_rules_load(KtTracer *t, const char *path, GError **errp);

#endif /* KT_API_LEAK_H */
