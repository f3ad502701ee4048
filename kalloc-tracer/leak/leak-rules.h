/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtLeakScanner: what the leak room keeps between two scans of a tracer: the
 * rules, the findings of the last scan, the blocks that the user cleared, and
 * when the next periodic scan is due. Only the thread of monitor commands uses
 * it.
 */
#ifndef KT_LEAK_RULES_H
#define KT_LEAK_RULES_H

#include "kalloc-tracer/leak/live-set.h"

/** What a rule does with a block, see leak-rules.def. */
typedef enum KtLeakRuleKind {
    KT_LEAK_RULE_NOT_LEAK,
    KT_LEAK_RULE_IGNORE,
    KT_LEAK_RULE_NO_SCAN,
    KT_LEAK_RULE_SCAN_AREA,
    KT_LEAK_RULE__COUNT
} KtLeakRuleKind;

/** What a rule matches: a function of the allocation's stack, or a cache. */
typedef enum KtLeakRuleBy {
    KT_LEAK_BY_FUNC,
    KT_LEAK_BY_CACHE,
    KT_LEAK_BY__COUNT
} KtLeakRuleBy;

/** struct KtLeakRule - one rule; @name (owned) of the function or cache;
 *  [@lo, @hi): offsets of a scan area */
typedef struct KtLeakRule {
    KtLeakRuleKind kind;
    KtLeakRuleBy by;
    char *name;
    uint64_t lo, hi;
} KtLeakRule;

/** struct KtLeakFinding - a block that a scan reported; it is the same block if
 *  both address and time of allocation are equal. @owner: as in KtLeak */
typedef struct KtLeakFinding {
    uint64_t va, alloc_us;
    KtLeakHold hold;
    uint64_t owner;
} KtLeakFinding;

/**
 * struct KtLeakScanner - of a tracer; the thread of monitor commands
 * @rules: KtLeakRule, those that are built in first
 * @cleared: KtLeakFinding by va: not to be reported again
 * @last: KtLeakFinding by address: what the last scan reported, at @last_us
 * @every: seconds from one scan to the next while the VM runs, 0: none by
 *         itself; @waited: of them; @tries: of the one that is due
 * @why_not: (owned, nullable) could not be made, the last time
 * @epoch: of the boot that @cleared and @last are of, see kt_tracer_epoch()
 */
typedef struct KtLeakScanner {
    GArray *rules;
    GHashTable *cleared;
    GArray *last;
    uint64_t last_us;
    bool scanned;
    unsigned every, waited, tries;
    char *why_not;
    uint64_t epoch;
} KtLeakScanner;

KtLeakScanner *kt_leak_scanner_new(void);
void kt_leak_scanner_free(KtLeakScanner *l);
/** kt_leak_scanner_of() - (borrowed) Return the scanner of a tracer; the first
 *  call makes it. */
KtLeakScanner *kt_leak_scanner_of(KtTracer *t);
/** kt_leak_scanner_now() - (borrowed) Return the scanner of a tracer. Findings
 *  of another epoch are dropped first: their blocks are of another boot. */
KtLeakScanner *kt_leak_scanner_now(KtTracer *t);
/** kt_leaks_parse() - add the rules of a file; none is added on error. @name:
 *  of the file, for @errp */
bool kt_leaks_parse(KtLeakScanner *l, const char *text, const char *name,
                    GError **errp);

/** kt_leak_apply_rules() - set the flags and areas of blocks that a rule
 *  matches. @excused: (out) by block: true if a rule says it is no leak. Stops
 *  early if @w->ended. */
void kt_leak_apply_rules(const KtLeakScanner *l, KtLiveSet *w,
                         uint8_t *excused);

#endif /* KT_LEAK_RULES_H */
