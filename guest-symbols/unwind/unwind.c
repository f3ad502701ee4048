/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stack walk of x86-64 by ORC: frame for frame what the kernel's own
 * arch_stack_walk() reports (arch/x86/kernel/{stacktrace,unwind_orc}.c). Owns
 * GsUnwinder. Without ORC, frame-records.c walks.
 *
 * vCPU threads call it for each recorded event, one GsUnwinder a thread: this
 * is the hot path of the tracer. The rule of a frame is found in three steps:
 *
 *     shorts   8 bytes an entry, two ways: nineteen frames of twenty
 *     cache    16 bytes an entry, two ways: other rules
 *     orc-set  binary search in the tables, after a miss in both
 *
 * Both caches are emptied when the generation of the ORC set has changed; at
 * worst the unwind that runs at that moment uses an old rule.
 *
 * A tracer in the guest can replace return addresses: return-records.c finds
 * the true ones. Such walks are never cached.
 *
 * Every walk ends, whatever the stack contains: each frame takes one of @max,
 * and only 8-byte words in the kernel's half of the address space are read.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/unwind/frame-records.h"
#include "guest-symbols/unwind/return-records.h"
#include "guest-symbols/unwind/unwind-internal.h"
#include "guest-symbols/unwind/walk-cache.h"
#include "guest-symbols/base/name-hash.h"
#include "guest-symbols/unwind/walk.h"

#include <string.h>

/* Task, irq, softirq, and five exception stacks; NMIs nest once. */
#define MAX_SWITCHES 10

/* The rule for BPF and other code without a table, which pushes bp: its frame
 * starts two words below the caller's. */
static const GsOrcRule frame_pointer_rule = {
    .type = GS_ORC_CALL, .sp = GS_ORC_SP_BP, .sp_off = 16,
    .bp = GS_ORC_BP_AT_CFA, .bp_off = -16,
};

/* A call through a NULL pointer: only the return address was pushed. */
static const GsOrcRule null_call_rule = {
    .type = GS_ORC_CALL, .sp = GS_ORC_SP, .sp_off = 8,
};

/* RETPOLINE_THUNK_SIZE (asm/nospec-branch.h) */
#define RETPOLINE_SIZE 32

/* A step returns this if the walk continues. */
#define GO_ON GS_STOP__COUNT

/* Before the first page: zeros, at an address that no guest page can have. */
#define NO_PAGE_VA (1ull << 63)
static const uint64_t no_page[512];

/* ---- rules ------------------------------------------------------------ */

/* A guessed frame pointer must point up the same stack. If modules cannot be
 * read, the code may be a module's, which keeps none. */
static bool plausible_bp(const GsUnwinder *u, const Walk *w)
{
    return !u->no_modules && w->bp >= w->sp && w->bp - w->sp < MAX_STACK;
}

/* Returns the address whose rule is needed: one byte below a return address,
 * because code behind a call that does not return may be another function's. */
static inline uint64_t pc_of(const Walk *w)
{
    return w->ip - !w->exact;
}

static ShortSet *short_set(GsUnwinder *u, uint64_t pc)
{
    return &u->shorts[(pc ^ pc >> SHORT_BITS) & ((1 << SHORT_BITS) - 1)];
}

static CacheSet *cache_set(GsUnwinder *u, uint64_t pc)
{
    return &u->cache[(pc ^ pc >> CACHE_BITS) & ((1 << CACHE_BITS) - 1)];
}

static inline bool short_is(const ShortEntry *e, uint64_t pc)
{
    return (uint64_t)(int64_t)e->pc == pc && e->sp_off;
}

static bool is_short(const GsOrcRule *rule, uint64_t pc)
{
    return (uint64_t)(int64_t)(int32_t)pc == pc && !rule->exact &&
           rule->type == GS_ORC_CALL && rule->sp == GS_ORC_SP &&
           rule->sp_off > 0 &&
           (rule->bp == GS_ORC_BP_KEEP ||
            (rule->bp == GS_ORC_BP_AT_CFA && rule->bp_off));
}

static void remember(GsUnwinder *u, uint64_t pc, const GsOrcRule *rule)
{
    ShortSet *shorts = short_set(u, pc);
    CacheSet *set = cache_set(u, pc);

    if (is_short(rule, pc)) {
        shorts->way[1] = shorts->way[0];
        shorts->way[0] = (ShortEntry) {
            pc, rule->sp_off,
            rule->bp == GS_ORC_BP_KEEP ? 0 : rule->bp_off
        };
    } else {
        set->way[1] = set->way[0];
        set->way[0] = (CacheEntry) { pc, *rule };
    }
}

static G_GNUC_NO_INLINE GsOrcRule rule_slow(GsUnwinder *u, Walk *w)
{
    uint64_t pc = pc_of(w);
    const CacheSet *set = cache_set(u, pc);
    GsOrcRule rule = { .type = GS_ORC_NONE };

    for (unsigned i = 0; i < G_N_ELEMENTS(set->way); i++) {
        if (set->way[i].pc == pc) {
            return set->way[i].rule;
        }
    }
    switch (gs_orc_reader_find(u->reader, pc, &rule)) {
    case GS_ORC_FOUND:
        if (rule.type == GS_ORC_END && pc >= u->retpolines.start &&
            pc < u->retpolines.end) {
            rule.type = GS_ORC_UNDEFINED;
        }
        remember(u, pc, &rule);
        return rule;
    case GS_ORC_NO_TABLE:
        w->trail->plain = false;
        if (gs_trampoline_rule(u->k, u->reader, w, pc, &rule)) {
            return rule;
        }
        return plausible_bp(u, w) ? frame_pointer_rule :
                                    (GsOrcRule) { .type = GS_ORC_UNDEFINED };
    case GS_ORC_NOT_TEXT:
        break;
    }
    return (GsOrcRule) { .type = GS_ORC_NONE };
}

/* Returns: NULL if rule_slow() has to find the rule. */
static inline const ShortEntry *short_for(GsUnwinder *u, const Walk *w)
{
    uint64_t pc = pc_of(w);
    const ShortSet *set = short_set(u, pc);

    if (G_LIKELY(short_is(&set->way[0], pc))) {
        return &set->way[0];
    }
    return short_is(&set->way[1], pc) ? &set->way[1] : NULL;
}

/*
 * Finds the rule of a frame that has no short one. If a tracer replaced the
 * return address, @w->ip becomes the true one, which may have a short rule. No
 * rule is remembered for the addresses that tracers write.
 */
static G_GNUC_NO_INLINE GsStop rule_other(GsUnwinder *u, Walk *w,
                                          const ShortEntry **e, GsOrcRule *rule)
{
    if (gs_return_records_replaced(&u->returns, w->ip)) {
        w->trail->plain = false;
        if (!gs_return_records_find(&u->returns, &u->cursor, w, w->sp - 8,
                                    &w->ip)) {
            return GS_STOP_REPLACED;
        }
        *e = short_for(u, w);
        if (*e) {
            return GO_ON;
        }
    }
    *rule = rule_slow(u, w);
    return rule->type == GS_ORC_NONE ? GS_STOP_UNKNOWN_PC : GO_ON;
}

/* ---- one frame -------------------------------------------------------- */

/* Returns: the address of a word in the registers that the frame was
 * interrupted with; 0, which is not readable, if they are not saved. */
static uint64_t saved_reg(const Walk *w, unsigned off)
{
    uint64_t regs = w->full ? w->regs : w->prev;

    return w->regs && regs ? regs + off : 0;
}

/* Reads at @va the pointer that the stack continues from. */
static bool read_base(Walk *w, uint64_t va, uint64_t *base)
{
    if (!read_word(w, va, base)) {
        return false;
    }
    gs_trail_base(w->trail, va, *base);
    return true;
}

static bool find_cfa(Walk *w, const GsOrcRule *rule, uint64_t *cfa)
{
    switch (rule->sp) {
    case GS_ORC_SP:
        *cfa = w->sp + rule->sp_off;
        return true;
    case GS_ORC_SP_BP:
        *cfa = w->bp + rule->sp_off;
        w->trail->plain &= !w->trail->bp_at || !w->trail->bp_far;
        gs_trail_base(w->trail, w->trail->bp_at, w->bp);
        return w->bp != 0;
    case GS_ORC_SP_AT_SP:
        if (!read_base(w, w->sp, cfa)) {
            return false;
        }
        *cfa += rule->sp_off;
        return true;
    case GS_ORC_SP_AT_SP_OFF:
        return read_base(w, w->sp + rule->sp_off, cfa);
    case GS_ORC_SP_AT_BP_OFF:
        w->trail->plain = false;
        return read_word(w, w->bp + rule->sp_off, cfa);
    case GS_ORC_SP_REG:
        w->trail->plain = false;
        return read_word(w, saved_reg(w, rule->sp_off), cfa);
    default:
        return false;
    }
}

/* An unreadable bp is no error yet: it becomes 0, and only a frame that is
 * found by bp fails then. */
static inline void read_bp(Walk *w, uint64_t va)
{
    if (G_UNLIKELY(!read_word(w, va, &w->bp))) {
        w->bp = 0;
    }
}

static bool find_bp(Walk *w, const GsOrcRule *rule, uint64_t cfa)
{
    bool saved = rule->bp == GS_ORC_BP_KEEP;
    uint64_t at = saved ? saved_reg(w, PT_BP) : cfa + rule->bp_off;

    switch (rule->bp) {
    case GS_ORC_BP_KEEP:
    case GS_ORC_BP_AT_CFA:
        if (at) {
            read_bp(w, at);
            gs_trail_bp(w->trail, at, rule->type != GS_ORC_CALL);
        }
        return true;
    case GS_ORC_BP_AT_BP:
        w->trail->plain = false;
        return read_word(w, w->bp + rule->bp_off, &w->bp);
    default:
        return false;
    }
}

/* Continues from registers saved at @va. @partial: only the iret frame is
 * there, and @va is where the iret frame starts. */
static GsStop take_regs(Walk *w, uint64_t va, bool partial)
{
    uint64_t regs = partial ? va - PT_IP : va;
    uint64_t ip, cs;

    if (!read_word(w, regs + PT_IP, &ip) ||
        !read_word(w, regs + PT_CS, &cs) ||
        !read_word(w, regs + PT_SP, &w->sp)) {
        return GS_STOP_BAD_FRAME;
    }
    gs_trail_bits(w->trail, regs + PT_CS, cs, PATH_BITS_CS);
    if (cs & 3) {
        gs_trail_bits(w->trail, regs + PT_IP, ip, PATH_BITS_NONE);
        gs_trail_bits(w->trail, regs + PT_SP, w->sp, PATH_BITS_NONE);
        w->trail->done = true;
        w->regs = regs;
        w->full = !partial;
        return GS_STOP_USER;
    }
    gs_trail_pc(w->trail, regs + PT_IP, ip);
    gs_trail_base(w->trail, regs + PT_SP, w->sp);
    w->ip = ip;
    if (!partial) {
        w->prev = 0;
    } else if (w->full) {
        w->prev = w->regs;
    }
    w->regs = regs;
    w->full = !partial;
    return GO_ON;
}

/*
 * Is the move from @old_sp possible? Within a stack, sp only moves up. It may
 * jump if the rule can switch stacks: sp was saved in registers or on the other
 * stack, or kept in bp. The kernel knows the bounds of its stacks; here the
 * number of jumps is limited instead.
 */
static bool moved_well(Walk *w, const GsOrcRule *rule, uint64_t old_sp)
{
    if (w->sp > old_sp && w->sp - old_sp < MAX_STACK) {
        return true;
    }
    if (rule->type == GS_ORC_CALL && rule->sp == GS_ORC_SP) {
        return false;
    }
    if (((w->sp ^ old_sp) & PAGE_MASK) == 0) {
        return false;
    }
    return ++w->switches <= MAX_SWITCHES;
}

static G_GNUC_NO_INLINE GsStop step(Walk *w, const GsOrcRule *rule)
{
    uint64_t old_sp = w->sp;
    GsStop stop = GO_ON;
    uint64_t cfa;

    if (rule->type == GS_ORC_END) {
        w->trail->done = true;
        return GS_STOP_END;
    }
    if (rule->type == GS_ORC_UNDEFINED) {
        return GS_STOP_UNKNOWN_PC;
    }
    if (!find_cfa(w, rule, &cfa)) {
        return GS_STOP_BAD_FRAME;
    }
    if (rule->type == GS_ORC_CALL) {
        if (!read_word(w, cfa - 8, &w->ip)) {
            return GS_STOP_BAD_FRAME;
        }
        gs_trail_call(w->trail, cfa - 8, w->ip);
        w->sp = cfa;
        w->regs = 0;
        w->prev = 0;
    } else {
        stop = take_regs(w, cfa, rule->type == GS_ORC_REGS_PARTIAL);
    }
    if (stop != GO_ON) {
        return stop;
    }
    w->exact = rule->exact;
    if (!find_bp(w, rule, cfa) || !moved_well(w, rule, old_sp)) {
        return GS_STOP_BAD_FRAME;
    }
    gs_trail_moved(w->trail);
    return GO_ON;
}

/* The step of a short rule: nineteen frames of twenty. */
static inline GsStop step_short(Walk *w, const ShortEntry *e)
{
    uint64_t cfa = w->sp + e->sp_off;

    if (G_UNLIKELY(e->sp_off < 8 || !read_word(w, cfa - 8, &w->ip))) {
        return GS_STOP_BAD_FRAME;
    }
    if (e->bp_off) {
        read_bp(w, cfa + e->bp_off);
        gs_trail_bp(w->trail, cfa + e->bp_off, false);
    }
    gs_trail_call(w->trail, cfa - 8, w->ip);
    w->sp = cfa;
    w->exact = 0;
    w->regs = 0;
    w->prev = 0;
    return GO_ON;
}

/* ---- the walk --------------------------------------------------------- */

static void sync_generation(GsUnwinder *u)
{
    uint64_t now = atomic_load_explicit(u->generation, memory_order_acquire);

    if (G_UNLIKELY(now != u->seen)) {
        memset(u->shorts, 0, sizeof(u->shorts));
        memset(u->cache, 0, sizeof(u->cache));
        if (u->paths) {
            gs_walk_cache_clear(u->paths);
        }
        u->seen = now;
    }
}

/*
 * Walks from the frame in @w, whose rule is @e or, if that is NULL, @rule. A
 * frame is stored once its ip is known to be code, as the kernel does. So
 * GS_STOP_DEPTH means that there are more frames.
 */
static GsStop walk(GsUnwinder *u, Walk *w, const ShortEntry *e, GsOrcRule rule,
                   uint64_t *frames, unsigned max, unsigned *n)
{
    unsigned count = 0;
    GsStop stop;

    do {
        frames[count++] = w->ip;
        stop = G_LIKELY(e) ? step_short(w, e) : step(w, &rule);
        if (G_UNLIKELY(stop != GO_ON)) {
            break;
        }
        e = short_for(u, w);
        if (G_UNLIKELY(!e)) {
            stop = rule_other(u, w, &e, &rule);
            if (stop != GO_ON) {
                break;
            }
        }
        stop = GS_STOP_DEPTH;
    } while (count < max);
    *n = count;
    return stop;
}

static Walk begin(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                  void *opaque)
{
    sync_generation(u);
    return (Walk) {
        .ip = regs->ip, .sp = regs->sp, .bp = regs->bp,
        .exact = regs->exact_ip, .page = page, .opaque = opaque,
        .page_va = NO_PAGE_VA, .page_host = (const uint8_t *)no_page,
        .low = u->low, .trail = &u->trail,
    };
}

/* Returns: the second return address if one read of the stack finds it, else 0.
 * With the first it is the key of the walk cache. */
static uint64_t second_pc(GsUnwinder *u, Walk *w, const ShortEntry *e)
{
    uint64_t pc = 0, va;

    if (u->by_frames) {
        va = w->bp + u->frames.record_at + 8;
        return va - w->sp < MAX_STACK && read_word(w, va, &pc) ?
               (pc | u->frames.canonical) & ~u->frames.signature : 0;
    }
    return e && read_word(w, w->sp + e->sp_off - 8, &pc) ? pc : 0;
}

/* Walks at most @max frames, from @regs. If it stops at @max, @w is at the next
 * frame. */
static GsStop unwind(GsUnwinder *u, Walk *w, const GsRegs *regs,
                     uint64_t *frames, unsigned max, unsigned *n)
{
    GsOrcRule rule = null_call_rule;
    const ShortEntry *e = NULL;
    GsStop stop = GO_ON;

    *n = 0;
    if (!max) {
        return GS_STOP_DEPTH;
    }
    u->cursor = gs_return_cursor(regs->task);
    gs_trail_begin(&u->trail, w);
    if (regs->ip && !u->by_frames) {
        e = short_for(u, w);
        if (!e) {
            stop = rule_other(u, w, &e, &rule);
            e = short_for(u, w);
        }
    }
    u->trail.first = second_pc(u, w, e);
    if (u->by_frames) {
        return gs_frame_records_walk(&u->frames, w, frames, max, n);
    }
    if (stop != GO_ON) {
        frames[0] = regs->ip;
        *n = stop != GS_STOP_REPLACED;
        return stop;
    }
    return walk(u, w, e, rule, frames, max, n);
}

GsStop gs_unwind(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                 void *opaque, uint64_t *frames, unsigned max, unsigned *n)
{
    Walk w = begin(u, regs, page, opaque);

    return unwind(u, &w, regs, frames, max, n);
}

uint64_t gs_unwind_saved(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                         void *opaque, uint64_t *frames, unsigned max)
{
    Walk w = begin(u, regs, page, opaque);
    unsigned n;
    GsStop stop = unwind(u, &w, regs, frames, max, &n);
    bool saved = stop == GS_STOP_DEPTH ? w.exact :
                                         stop == GS_STOP_USER && n == max;

    return saved && (w.full || u->by_frames) ? w.regs : 0;
}

uint64_t gs_unwind_return(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                          void *opaque)
{
    Walk w = begin(u, regs, page, opaque);
    uint64_t pc = regs->ip;

    u->cursor = gs_return_cursor(regs->task);
    return gs_return_records_find(&u->returns, &u->cursor, &w,
                                  u->returns.by_slot ? w.sp - 8 : w.bp, &pc) ?
               pc : regs->ip;
}

void gs_unwind_expect(GsUnwinder *u, uint64_t ip)
{
    __builtin_prefetch(short_set(u, ip - 1));
}

GsExpected gs_unwind_expect_walk(GsUnwinder *u, const GsRegs *regs,
                                 GsPageFn page, void *opaque, uint32_t kind)
{
    Walk w = begin(u, regs, page, opaque);
    const ShortEntry *e = u->by_frames ? NULL : short_for(u, &w);
    uint32_t key = !u->paths || regs->exact_ip ? 0 :
        gs_walk_cache_expect(u->paths, w.ip, second_pc(u, &w, e), kind);

    return (GsExpected) { key, kind, w.page_va, w.page_host };
}

bool gs_unwind_find(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                    void *opaque, const GsExpected *e, uint64_t *value)
{
    Walk w = begin(u, regs, page, opaque);

    w.page_va = e->page_va;
    w.page_host = e->page_host;
    return e->key && gs_walk_cache_find(u->paths, &w, e->key, e->kind, value);
}

void gs_unwind_remember(GsUnwinder *u, uint32_t kind, uint64_t value)
{
    if (!u->paths) {
        u->paths = gs_walk_cache_new(&(GsRecords) {
            u->frames.record_at, u->frames.canonical, u->frames.signature
        });
    }
    gs_walk_cache_add(u->paths, &u->trail, kind, value);
}

/* ---- life ------------------------------------------------------------- */

/* Before 6.4 the tables said of retpolines that stacks end there: they had one
 * mark for that and for code that cannot be unwound (kernel commit
 * fb799447ae29). Without these symbols the mark is believed. */
static GsRange find_retpolines(const GsKernel *k)
{
    GsSymbol first, last;

    if (!k->symtab ||
        !gs_kernel_lookup(k, "__x86_indirect_thunk_rax", &first) ||
        !gs_kernel_lookup(k, "__x86_indirect_thunk_r15", &last)) {
        return (GsRange) { 0 };
    }
    return (GsRange) { first.va, last.va + RETPOLINE_SIZE };
}

GsUnwinder *gs_unwinder_new(const GsKernel *k)
{
    GsUnwinder *u = g_aligned_alloc0(1, sizeof(*u), 64);
    const GsFrameRules *rules = gs_frame_rules_find(k);

    gs_secret_make();
    u->k = k;
    u->low = k->low;
    u->no_modules = k->exports_at || (k->symtab && !k->btf);
    u->reader = gs_orc_reader_new(k->orc);
    u->generation = gs_orc_set_generation(k->orc);
    u->retpolines = find_retpolines(k);
    gs_return_records_prepare(&u->returns, k);
    if (rules) {
        u->by_frames = true;
        gs_frame_records_prepare(&u->frames, rules, k, u->reader);
        u->frames.returns = &u->returns;
        u->frames.cursor = &u->cursor;
    }
    return u;
}

void gs_unwinder_free(GsUnwinder *u)
{
    if (u) {
        gs_orc_reader_free(u->reader);
        gs_walk_cache_free(u->paths);
        g_free(u->frames.code);
        g_aligned_free(u);
    }
}
