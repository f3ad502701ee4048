/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Leak scan: report the live blocks that no pointer reaches from the roots.
 *
 *     kt_leak_collect()       live blocks and roots of the stopped VM
 *     kt_leak_apply_rules()   flags of blocks that a rule names
 *     scan()                  mark phase: registers, regions, then blocks
 *     kt_owners_find()        which unreached blocks hold others
 *     report_all()            unreached blocks become findings
 *
 * kt_leak_classify() makes the same scan, for some blocks: which are reached,
 * and by what (holders.c).
 *
 * Runs in the thread of monitor commands. Only report_all() holds the tracer's
 * lock, and reads no guest memory.
 */
#include "kalloc-tracer/leak/leak-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

static const char *const hold_names[] = {
    [KT_LEAK_NOTHING] = "nothing",
    [KT_LEAK_INTERIOR] = "interior",
    [KT_LEAK_START] = "start",
};

const char *kt_leak_hold_name(KtLeakHold hold)
{
    return hold < KT_LEAK__COUNT ? hold_names[hold] : "?";
}

/* ---- scanning ----------------------------------------------------------- */

/*
 * struct Scanning - state of a scan
 * @s: how to walk; must be the first member
 * @excused: by block, as for kt_leak_apply_rules()
 * @owner: by block, as of kt_owners_find()
 * @unplaced: as in KtLeakReport
 */
typedef struct Scanning {
    KtSearch s;
    uint8_t *excused;
    uint32_t *owner;
    uint64_t unplaced;
} Scanning;

static void scanning_clear(Scanning *s)
{
    g_clear_pointer(&s->excused, g_free);
    g_clear_pointer(&s->owner, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Scanning, scanning_clear)

/* Struct pages point to each other (lists, compound_head); such a pointer keeps
 * no block alive. Nor does a freelist pointer into the page's own slab. */
static void mark_words(void *opaque, uint64_t va, const uint64_t *word,
                       size_t n)
{
    const Scanning *s = opaque;
    KtPlace place = s->s.here.place;

    if (place != KT_PLACE_FREELIST) {
        kt_marker_follow_pages(s->s.w->scan, place != KT_PLACE_STRUCT_PAGE &&
                                                 place != KT_PLACE_PAGE);
        kt_marker_span(s->s.w->scan, va, word, n);
    }
}

static void scan(Scanning *s)
{
    KtMarker *scan = s->s.w->scan;

    kt_search_roots(&s->s);
    kt_marker_follow_pages(scan, true);
    kt_marker_run(scan, &s->s.reader);
    kt_marker_scan_unreached(scan, &s->s.reader);
}

/* ---- reporting ---------------------------------------------------------- */

/* Find the block among the findings of a scan; NULL if it was not reported. */
static const KtLeakFinding *find_finding(const GArray *findings, uint64_t va,
                                         uint64_t alloc_us)
{
    const KtLeakFinding *m = !findings->len ?
                                 NULL :
                                 bsearch(&va, findings->data, findings->len,
                                         sizeof(KtLeakFinding), kt_by_address);

    return m && m->alloc_us == alloc_us ? m : NULL;
}

/* Find the block among the dismissed ones; NULL: it was not dismissed. */
static const KtLeakFinding *find_dismissed(const KtLeakScanner *l, uint64_t va,
                                           uint64_t alloc_us)
{
    const KtLeakFinding *m = g_hash_table_lookup(l->dismissed, &va);

    return m && m->alloc_us == alloc_us ? m : NULL;
}

static KtLeakHold hold_of(const KtMarker *s, uint32_t i)
{
    KtHold hold = kt_marker_hold(s, i);

    return hold == KT_HOLD_START ? KT_LEAK_START :
           hold == KT_HOLD_INTERIOR ? KT_LEAK_INTERIOR : KT_LEAK_NOTHING;
}

static uint64_t owner_of(const Scanning *s, uint32_t i)
{
    return kt_live_set_block(s->s.w, s->owner[i])->va;
}

/* Report an unreached block: count it as dismissed, or add it to @out and to
 * the findings of this scan. @before: findings of the last scan */
static void report(const Scanning *s, uint32_t i, const GArray *before,
                   KtLeakReport *out)
{
    const KtLiveSet *w = s->s.w;
    KtLeakScanner *l = kt_leak_scanner_of(w->tracer);
    KtLeak leak = { .hold = hold_of(w->scan, i), .owner = owner_of(s, i) };
    const KtLiveBlock *b = kt_live_set_block(w, i);
    KtLeakFinding finding = { b->va, b->alloc_us, leak.hold, leak.owner };

    if (find_dismissed(l, b->va, b->alloc_us)) {
        out->dismissed++;
    } else if (kt_query_find(w->tracer, b->va, &leak.block) &&
               leak.block.va == b->va) {
        g_array_append_val(out->leaks, leak);
        g_array_append_val(l->last, finding);
        out->fresh += !find_finding(before, b->va, b->alloc_us);
    }
}

static void report_all(const Scanning *s, KtLeakReport *out)
{
    const KtLiveSet *w = s->s.w;
    KtLeakScanner *l = kt_leak_scanner_of(w->tracer);
    g_autoptr(GArray) before = g_steal_pointer(&l->last);
    KtStats stats;

    l->last = g_array_new(FALSE, FALSE, sizeof(KtLeakFinding));
    kt_query_begin(w->tracer);
    kt_query_stats(w->tracer, &stats);
    for (uint32_t i = 0; i < w->live->len; i++) {
        KtHold hold = kt_marker_hold(w->scan, i);

        if (!kt_marker_reached(w->scan, i)) {
            report(s, i, before, out);
            continue;
        }
        out->excused += hold == KT_HOLD_NONE && s->excused[i];
        out->interior += hold == KT_HOLD_INTERIOR;
    }
    kt_query_end(w->tracer);
    l->scanned = true;
    l->last_us = stats.last_us;
    kt_counters_add(w->tracer->counters, KT_CNT_LEAK_SCANS, 1);
}

/* Mark all blocks of the set, and find the owners of those that are lost. */
static bool mark_all(Scanning *s, GError **errp)
{
    KtLiveSet *w = s->s.w;

    if (w->unknown_roots) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "no block can be called a "
                    "leak, as what may refer to it is not known: %s",
                    w->unknown_roots);
        return false;
    }
    s->excused = g_malloc0(w->live->len + 1);
    kt_leak_apply_rules(kt_leak_scanner_now(w->tracer), w, s->excused);
    if (w->ended) {
        kt_live_set_fail(w, errp);
        return false;
    }
    s->unplaced = kt_marker_seal(w->scan);
    scan(s);
    s->owner = kt_owners_find(w, &s->s.reader);
    kt_reader_deinit(&s->s.reader);
    return !w->ended || kt_live_set_fail(w, errp);
}

bool kt_leak_scan(KtTracer *t, const KtLeakPlan *plan, KtLeakReport *out,
                  GError **errp)
{
    gint64 begun = g_get_monotonic_time();
    g_autoptr(KtLiveSet) w = kt_leak_collect(t, plan, errp);
    g_auto(Scanning) s = { .s = { .w = w, .compare = mark_words } };

    *out = (KtLeakReport) { 0 };
    if (!w || !mark_all(&s, errp)) {
        return false;
    }
    out->unplaced = s.unplaced;
    out->leaks = g_array_new(FALSE, FALSE, sizeof(KtLeak));
    out->missing = g_ptr_array_ref(w->missing);
    out->blocks = w->live->len;
    out->tasks = w->tasks;
    out->bytes = s.s.reader.bytes;
    out->unreadable = s.s.reader.unreadable;
    out->guest_bytes = w->pages ? w->pages->n << w->pages->page_shift : 0;
    report_all(&s, out);
    out->us = g_get_monotonic_time() - begun;
    return true;
}

void kt_leak_report_clear(KtLeakReport *r)
{
    g_clear_pointer(&r->leaks, g_array_unref);
    g_clear_pointer(&r->missing, g_ptr_array_unref);
}

/* ---- classes of blocks -------------------------------------------------- */

/* Sort the blocks by address; keep one of those that are equal. */
static void sort_blocks(GArray *blocks)
{
    KtReached *r = (KtReached *)blocks->data;
    unsigned n = 0;

    g_array_sort(blocks, kt_by_address);
    for (unsigned i = 0; i < blocks->len; i++) {
        if (!n || r[n - 1].va != r[i].va) {
            r[n++] = r[i];
        }
    }
    g_array_set_size(blocks, n);
}

/* Return (owned) the sorted addresses of the blocks that are pages. */
static GArray *pages_of(const GArray *blocks)
{
    GArray *pages = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    for (unsigned i = 0; i < blocks->len; i++) {
        const KtReached *r = &g_array_index(blocks, KtReached, i);

        if (r->layer == KT_LAYER_PAGES) {
            g_array_append_val(pages, r->va);
        }
    }
    return pages;
}

static void classify(const Scanning *s, KtReached *r)
{
    const KtMarker *scan = s->s.w->scan;
    const KtLiveBlock *b = kt_live_set_find(s->s.w, r->va);
    uint32_t i = b ? kt_live_set_index(s->s.w, b) : 0;

    if (b) {
        r->reach = kt_marker_reached(scan, i) ? KT_REACH_KEPT : KT_REACH_LOST;
        r->hold = hold_of(scan, i);
        r->owner = owner_of(s, i);
    }
}

bool kt_leak_classify(KtTracer *t, const KtLeakPlan *plan, GArray *blocks,
                      GError **errp)
{
    g_autoptr(GArray) pages = NULL;
    g_autoptr(KtLiveSet) w = NULL;
    g_auto(Scanning) s = { .s = { .compare = mark_words } };
    KtLeakPlan with_pages = *plan;

    sort_blocks(blocks);
    with_pages.pages = pages = pages_of(blocks);
    s.s.w = w = kt_leak_collect(t, &with_pages, errp);
    if (!w || !mark_all(&s, errp)) {
        return false;
    }
    for (unsigned i = 0; i < blocks->len; i++) {
        classify(&s, &g_array_index(blocks, KtReached, i));
    }
    if (!kt_holders_find(w, blocks)) {
        return kt_live_set_fail(w, errp);
    }
    return true;
}

/* ---- findings of the last scan ------------------------------------------ */

uint64_t kt_leak_dismiss(KtTracer *t)
{
    KtLeakScanner *l = kt_leak_scanner_now(t);
    uint64_t n = l->last->len;

    for (unsigned i = 0; i < l->last->len; i++) {
        KtLeakFinding *m = g_memdup2(&g_array_index(l->last, KtLeakFinding, i),
                                     sizeof(KtLeakFinding));

        g_hash_table_replace(l->dismissed, &m->va, m);
    }
    g_array_set_size(l->last, 0);
    return n;
}

bool kt_leak_scanned(KtTracer *t, uint64_t *us)
{
    const KtLeakScanner *l = kt_leak_scanner_now(t);

    *us = l->last_us;
    return l->scanned;
}

bool kt_leak_known(KtTracer *t, uint64_t va, uint64_t alloc_us,
                   KtLeakHold *hold)
{
    const KtLeakFinding *m = find_finding(kt_leak_scanner_now(t)->last, va,
                                          alloc_us);

    if (m) {
        *hold = m->hold;
    }
    return m;
}

bool kt_leak_dismissed(KtTracer *t, uint64_t va, uint64_t alloc_us,
                       KtLeakHold *hold)
{
    const KtLeakFinding *m = find_dismissed(kt_leak_scanner_now(t), va,
                                            alloc_us);

    if (m) {
        *hold = m->hold;
    }
    return m;
}
