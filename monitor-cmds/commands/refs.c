/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka refs: list every word of the guest's memory that points into a block.
 *
 * Called through mc_run(). The VM is stopped or paused during the search. The
 * tracer's lock is held only while blocks are copied.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/commands/guest-access.h"
#include "monitor-cmds/commands/ref-names.h"

#include <string.h>

static void print_ref(McOut *out, const KtRef *r, uint64_t lo)
{
    if (r->place == KT_PLACE_BLOCK) {
        uint64_t off = r->va - r->owner.va;
        g_autofree char *member = mc_ref_member(out, &r->owner, off);
        McRefRow ref = { r->value - lo, member };

        out->format->row(out, &(McRow) {
            .block = &r->owner, .hit = true, .offset = off, .ref = &ref });
    } else {
        g_autofree char *symbol = mc_ref_symbol(out, r);

        out->format->ref(out, r, r->value - lo, symbol);
    }
}

static void find_margin(McOut *out, const GArray *refs)
{
    unsigned width = MC_MARGIN;

    for (unsigned i = 0; i < refs->len; i++) {
        const KtRef *r = &g_array_index(refs, KtRef, i);
        unsigned digits = 1;

        for (uint64_t off = r->va - r->owner.va; off >> 4; off >>= 4) {
            digits++;
        }
        width = r->place == KT_PLACE_BLOCK ?
                MAX(width, digits + (unsigned)strlen("> + ")) : width;
    }
    out->margin = width;
}

static void print_refs(McOut *out, const McArgs *args, const GArray *refs,
                       uint64_t lo, uint64_t more)
{
    find_margin(out, refs);
    for (unsigned i = 0; i < refs->len && !out->closed; i++) {
        if (i == args->limit) {
            more += refs->len - i;
            break;
        }
        print_ref(out, &g_array_index(refs, KtRef, i), lo);
    }
    if (more) {
        out->format->more(out, more);
    }
}

bool mc_cmd_refs(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    gint64 begun = g_get_monotonic_time();
    McProgress progress = { out, mc_given(args, MC_OPT_JSON), begun };
    KtLeakPlan plan = {
        .vm = mc_vm(out, "refs", errp), .kernel = out->ctx->kernel_found ?
                                                 out->ctx->kernel : NULL,
        .progress = mc_on_progress, .opaque = &progress,
    };
    uint64_t lo = args->va.lo, hi = lo, more, bytes, us;
    g_autoptr(GArray) refs = NULL;
    g_autofree char *text = NULL;
    KtBlock b;

    if (!plan.vm) {
        return false;
    }
    kt_query_begin(t);
    if (kt_query_find(t, lo, &b)) {
        lo = b.va;
        hi = MAX(lo, lo + kt_block_len(&b) - 1);
    }
    kt_query_end(t);
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
    out->format->sum(out, MC_OBJ_REFS, (McStat[]) {
        { .key = "refs", .u = refs->len + more },
        { .key = "read_bytes", .u = bytes },
        { .key = "host_us", .u = us },
    }, 3, text);
    return true;
}
