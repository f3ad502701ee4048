/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka slab check: compare the kernel's lists of free objects with the map.
 *
 * Called through mc_run(). The VM is stopped or paused during the check. A line
 * of a finding is followed by the blocks of its slot and of the slot below.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

static void put_list(GString *s, const KtSlabFinding *f)
{
    g_string_append_printf(s, "%s%u %s", kt_slab_list_owner(f->list), f->number,
                           kt_slab_list_name(f->list));
}

/* Append what was found: numbers, or an address. */
static void put_value(GString *s, const KtSlabFinding *f)
{
    switch (f->kind) {
    case KT_FOUND_LIVE:
    case KT_FOUND_EARLY:
    case KT_FOUND_FOREIGN:
        return;
    case KT_FOUND_COUNT:
    case KT_FOUND_LENGTH:
    case KT_FOUND_BAD_SLAB:
    case KT_FOUND_BAD_SHEAF:
    case KT_FOUND_TOO_LONG:
        g_string_append_printf(s, ": %" PRIu64 " for %" PRIu64, f->value,
                               f->expected);
        return;
    default:
        g_string_append_printf(s, ": %016" PRIx64, f->value);
    }
}

static char *describe(const KtSlabFinding *f)
{
    GString *s = g_string_new("! ");

    g_string_append_printf(s, "%s ", kt_slab_finding_name(f->kind));
    mc_put_word(s, f->cache.name);
    if (f->slot != KT_NO_SLOT) {
        g_string_append_printf(s, " slot %u of", f->slot);
    }
    if (f->slab) {
        g_string_append_printf(s, " slab %016" PRIx64, f->slab);
    }
    g_string_append(s, ", ");
    put_list(s, f);
    if (f->position != KT_NO_COUNT) {
        g_string_append_printf(s, " at %" PRIu64, f->position);
    }
    g_string_append_printf(s, ": %s", kt_slab_finding_text(f->kind));
    put_value(s, f);
    return g_string_free(s, FALSE);
}

static void print_block(McOut *out, const KtBlock *b, uint64_t object)
{
    out->format->row(out, &(McRow) {
        .block = b, .hit = object, .offset = object - b->va });
}

static void print_finding(McOut *out, const KtSlabFinding *f)
{
    g_autofree char *text = describe(f);
    g_autofree char *list = NULL;
    GString *s = g_string_new(NULL);

    put_list(s, f);
    list = g_string_free(s, FALSE);
    out->format->sum(out, MC_OBJ_FINDING, (McStat[]) {
        { .key = "kind", .s = kt_slab_finding_name(f->kind) },
        { .key = "cache", .s = f->cache.name },
        { .key = "cache_va", .u = f->cache.va, .hex = true },
        { .key = "list", .s = list },
        { .key = "position", .u = f->position,
          .unknown = f->position == KT_NO_COUNT },
        { .key = "slab", .u = f->slab, .hex = true, .unknown = !f->slab },
        { .key = "slot", .u = f->slot, .unknown = f->slot == KT_NO_SLOT },
        { .key = "object", .u = f->object, .hex = true,
          .unknown = !f->object },
        { .key = "found", .u = f->value, .hex = true },
        { .key = "expected", .u = f->expected, .hex = true },
    }, 10, text);
    if (f->has_below) {
        print_block(out, &f->below, 0);
    }
    if (f->has_block) {
        print_block(out, &f->block, f->object);
    }
}

static void print_findings(McOut *out, const McArgs *args,
                           const GArray *findings)
{
    for (unsigned i = 0; i < findings->len && !out->closed; i++) {
        if (i == args->limit) {
            out->format->more(out, findings->len - i);
            return;
        }
        print_finding(out, &g_array_index(findings, KtSlabFinding, i));
    }
}

/* Print what was not checked. */
static void print_missing(McOut *out, const KtSlabReport *r)
{
    if (r->no_cpus) {
        out->format->none(out, "not checked: the lists of CPUs, as it is not "
                          "known where they are");
    }
    if (r->no_form) {
        out->format->none(out, "not checked: the lists of slabs, as it is not "
                          "known how free pointers are stored");
    }
    if (r->why) {
        g_autofree char *line = g_strconcat(
            "not compared with the map: ", r->why, NULL);

        out->format->none(out, line);
    }
}

static char *sum_up(const KtSlabReport *r, uint64_t n)
{
    GString *s = g_string_new(NULL);

    if (n) {
        g_string_append_printf(s, "! %" PRIu64 " %s in ", n,
                               n == 1 ? "finding" : "findings");
    } else {
        g_string_append(s, "nothing found in ");
    }
    g_string_append_printf(s, "%" PRIu64 " caches, %" PRIu64 " slabs, %" PRIu64
                           " free objects in %" PRIu64 " ms; %" PRIu64
                           " in transit", r->caches, r->slabs, r->objects,
                           r->us / 1000, r->transit);
    if (r->unsure) {
        g_string_append_printf(s, ", %" PRIu64 " unsure", r->unsure);
    }
    if (r->unreadable) {
        g_string_append_printf(s, ", %" PRIu64 " caches make no sense",
                               r->unreadable);
    }
    if (r->dropped) {
        g_string_append_printf(s, ", %" PRIu64 " findings not listed",
                               r->dropped);
    }
    return g_string_free(s, FALSE);
}

bool mc_cmd_slab_check(McOut *out, const McArgs *args, GError **errp)
{
    KtObjects o = {
        .tracer = out->ctx->tracer, .vm = out->ctx->vm,
        .kernel = out->ctx->kernel_found ? out->ctx->kernel : NULL,
    };
    g_auto(KtSlabReport) r = { 0 };
    g_autofree char *text = NULL;
    uint64_t n;

    if (!kt_slab_check(&o, args->name, &r, errp)) {
        return false;
    }
    n = r.findings->len + r.dropped;
    print_findings(out, args, r.findings);
    print_missing(out, &r);
    text = sum_up(&r, n);
    out->format->sum(out, MC_OBJ_SLAB_CHECK, (McStat[]) {
        { .key = "findings", .u = n },
        { .key = "caches", .u = r.caches },
        { .key = "slabs", .u = r.slabs },
        { .key = "free_objects", .u = r.objects },
        { .key = "transit", .u = r.transit },
        { .key = "unsure", .u = r.unsure },
        { .key = "unreadable", .u = r.unreadable },
        { .key = "dropped", .u = r.dropped },
        { .key = "why", .s = r.why, .unknown = !r.why },
        { .key = "host_us", .u = r.us },
    }, 10, text);
    return true;
}
