/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka refs: list every word of the guest's memory that points into a block.
 *
 * Called through mc_run(). The VM is stopped or paused during the search. The
 * tracer's lock is held only while blocks are copied.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

#include <string.h>

/* ---- rows ---------------------------------------------------------------- */

/**
 * struct RefRow - a word that refers to the block in question
 * @b: the block that contains the word, if one does
 * @r: the word
 * @ref, @ref_at: where in the block in question it points to
 * @module: (nullable) that caused the block that contains the word
 * @member: (nullable) which contains the word; @symbol: (nullable) the same of
 *          a word outside of blocks
 */
typedef struct RefRow {
    McBlockRow b;
    const KtRef *r;
    const char *ref;
    uint64_t ref_at;
    const char *module, *member, *symbol;
} RefRow;

static const McColumn block_columns[] = {
    MC_COLUMN(RefRow, ref, WORD, " ref[%",
              "how the word in this block points to the block that was asked "
              "for: to its start, or into its interior"),
    MC_COLUMN(RefRow, ref_at, HEX, " +%",
              "offset in the block that was asked for, to which the word "
              "points"),
    MC_KEY("ref_member", RefRow, member, WORD, " %]",
           "member of this block's type that contains the word"),
    MC_KEY("ref_module", RefRow, module, WORD, " ref_module=%",
           "module that caused this block: the first frame in one",
           .flags = MC_OMIT),
    MC_END
};
static const McObject block_object = {
    "block", "a block",
    { mc_margin_columns, mc_block_columns, block_columns,
      mc_block_more_columns }, .is_block = true,
};

#define IN(place_, ...) \
    MC_IF_VIA(RefRow, r, place, .one_of = 1u << KT_PLACE_##place_, __VA_ARGS__)

static const McColumn word_columns[] = {
    MC_VIA("place", RefRow, r, place, WORD, "% ",
           "data, percpu, stack, register, struct-page, page, code or "
           "freelist", .name = kt_place_name),
    MC_VIA("register", RefRow, r, name, WORD, "%", "which register",
           IN(REGISTER)),
    MC_VIA("cpu", RefRow, r, number, NUMBER, " of vCPU %", "its vCPU",
           IN(REGISTER)),
    MC_VIA("va", RefRow, r, va, ADDRESS, "%", "address of the word",
           IN(REGISTER, .no = true)),
    MC_VIA("pid", RefRow, r, number, NUMBER, " pid=%", "owner of the stack",
           IN(STACK)),
    MC_VIA("cpu", RefRow, r, number, NUMBER, " cpu=%", "CPU of the memory",
           IN(PERCPU)),
    MC_COLUMN(RefRow, symbol, WORD, " %", "variable that has the word",
              .flags = MC_OMIT),
    MC_COLUMN(RefRow, ref, WORD, " ref[%", "as in the fields"),
    MC_COLUMN(RefRow, ref_at, HEX, " +%]", "as in the fields"),
    MC_END
};
static const McObject word_object = {
    "ref", "ka refs: a word outside of all blocks (a word in a block is an "
    "object block)", { mc_margin_columns, word_columns },
};

typedef struct SumRow {
    uint64_t refs, read_bytes, host_us;
} SumRow;

static const McObject sum_object = MC_LINE_OBJECT("refs",
    "ka refs, at the end",
    MC_COLUMN(SumRow, refs, NUMBER, NULL, "number of words"),
    MC_COLUMN(SumRow, read_bytes, NUMBER, NULL,
              "bytes that were searched"),
    MC_COLUMN(SumRow, host_us, NUMBER, NULL, "duration"));

MC_OBJECTS(mc_refs_objects, &block_object, &word_object, &sum_object);

/* ---- the listing --------------------------------------------------------- */

static void print_ref(McOut *out, const KtRef *r, uint64_t lo)
{
    McStack stack = mc_stack(out->ctx->tracer, r->owner.alloc_stack);
    g_autofree char *name = NULL, *module = NULL;
    RefRow row = {
        .r = r, .ref_at = r->value - lo,
        .ref = r->value == lo ? "start" : "interior",
    };

    if (r->place == KT_PLACE_BLOCK) {
        uint64_t off = r->va - r->owner.va;

        name = mc_ref_member(out, &r->owner, off);
        module = g_strdup(mc_stack_module(mc_symbols(out->ctx), &stack));
        row.member = name;
        row.module = module;
        row.b = (McBlockRow) { .block = &r->owner, .hit = true,
                               .offset = off };
        mc_print(out, &block_object, &row);
    } else {
        name = mc_ref_symbol(out, r);
        row.symbol = name;
        mc_print(out, &word_object, &row);
    }
}

static void set_margin(McOut *out, const GArray *refs)
{
    out->margin = MC_MARGIN;
    for (unsigned i = 0; i < refs->len; i++) {
        const KtRef *r = &g_array_index(refs, KtRef, i);

        if (r->place == KT_PLACE_BLOCK) {
            mc_set_margin(out, r->va - r->owner.va);
        }
    }
}

static void print_refs(McOut *out, const McArgs *args, const GArray *refs,
                       uint64_t lo, uint64_t more)
{
    uint64_t n = MIN(refs->len, args->limit);

    set_margin(out, refs);
    for (unsigned i = 0; i < n && !out->closed; i++) {
        print_ref(out, &g_array_index(refs, KtRef, i), lo);
    }
    if (more + refs->len > n) {
        mc_more(out, more + refs->len - n);
    }
}

bool mc_cmd_refs(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    gint64 begun = g_get_monotonic_time();
    McProgress progress;
    KtLeakPlan plan = mc_leak_plan(out, mc_vm(out, "refs", errp),
                                   mc_given(args, MC_OPT_JSON), &progress);
    uint64_t lo = args->va.lo, hi = lo, more, bytes, us;
    g_autoptr(GArray) refs = NULL;
    g_autofree char *text = NULL;
    KtBlock b;

    if (!plan.vm) {
        return false;
    }
    if (mc_find_block(out, lo, &b)) {
        lo = b.va;
        hi = MAX(lo, lo + kt_block_len(&b) - 1);
    }
    if (!kt_refs(t, &plan, lo, hi, &refs, &more, &bytes, errp)) {
        return false;
    }
    print_refs(out, args, refs, lo, more);
    us = g_get_monotonic_time() - begun;
    text = g_strdup_printf("%" PRIu64 " words refer to %016" PRIx64 "-%016"
                           PRIx64 "; %" PRIu64 " MiB searched in %" PRIu64
                           " ms",
                           refs->len + more, lo, hi, bytes >> 20,
                           us / 1000);
    mc_print_line(out, &sum_object, &(SumRow) {
        refs->len + more, bytes, us }, text);
    return true;
}
