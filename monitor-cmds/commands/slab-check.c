/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka slab check: compare the kernel's lists of free objects with the map.
 *
 * Called through mc_run(). The VM is stopped or paused during the check. A line
 * of a finding is followed by the blocks of its slot and of the slot below.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

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
    mc_print(out, &mc_block_object, &(McBlockRow) {
        .block = b, .hit = object, .offset = object - b->va });
}

typedef struct FindingRow {
    const KtSlabFinding *f;
    const char *kind, *list;
} FindingRow;

#define F(key_, member_, look_, help_, ...) \
    MC_VIA(key_, FindingRow, f, member_, look_, NULL, help_, __VA_ARGS__)

static const McObject finding_object = MC_LINE_OBJECT("finding",
    "ka slab check, before the blocks of the slot below and of the slot; "
    "null: none, or not known",
    MC_COLUMN(FindingRow, kind, TEXT, NULL, "as in docs/objects.md"),
    F("cache", cache.name, CHARS, "the cache"),
    F("cache_va", cache.va, HEX, "its kmem_cache"),
    MC_COLUMN(FindingRow, list, TEXT, NULL, "whose it is, and its name"),
    F("position", position, NUMBER, "on the list", .flags = MC_MOST),
    F("slab", slab, HEX, "address of its memory", .flags = MC_ZERO),
    F("slot", slot, NUMBER, "number of the slot", .flags = MC_MOST),
    F("object", object, HEX, "its address", .flags = MC_ZERO),
    F("found", value, HEX, "a number, or an address"),
    F("expected", expected, HEX, "a number"));

typedef struct SumRow {
    uint64_t findings;
    const KtSlabReport *r;
} SumRow;

#define R(key_, member_, help_) \
    MC_VIA(key_, SumRow, r, member_, NUMBER, NULL, help_)

static const McObject sum_object = MC_LINE_OBJECT("slab_check",
    "ka slab check, at the end",
    MC_COLUMN(SumRow, findings, NUMBER, NULL, "their number"),
    R("caches", caches, "that were checked"),
    R("slabs", slabs, "that were checked"),
    R("free_objects", objects, "that were checked"),
    R("transit", transit,
      "objects that are in use for the kernel and not in the map, as a call "
      "is under way"),
    R("unsure", unsure, "contradictions that are no findings"),
    R("unreadable", unreadable, "caches whose numbers make no sense"),
    R("dropped", dropped, "findings that are not listed"),
    MC_VIA("why", SumRow, r, why, TEXT, NULL,
           "why there are unsure ones, else null"),
    R("host_us", us, "duration"));

MC_OBJECTS(mc_slab_check_objects, &finding_object, &sum_object);

static void print_finding(McOut *out, const KtSlabFinding *f)
{
    g_autofree char *text = describe(f);
    g_autoptr(GString) list = g_string_new(NULL);

    put_list(list, f);
    mc_print_line(out, &finding_object, &(FindingRow) {
        f, kt_slab_finding_name(f->kind), list->str }, text);
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
    for (unsigned i = 0; mc_goes_on(out, i, findings->len, args->limit); i++) {
        print_finding(out, &g_array_index(findings, KtSlabFinding, i));
    }
}

/* Print what was not checked. */
static void print_missing(McOut *out, const KtSlabReport *r)
{
    if (r->no_cpus) {
        mc_remark(out, "not checked: the lists of CPUs, as it is not "
                  "known where they are");
    }
    if (r->no_form) {
        mc_remark(out, "not checked: the lists of slabs, as it is not "
                  "known how free pointers are stored");
    }
    if (r->why) {
        mc_remarkf(out, "not compared with the map: %s", r->why);
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
    mc_print_line(out, &sum_object, &(SumRow) { n, &r }, text);
    return true;
}
