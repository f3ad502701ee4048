/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Periodic leak scans, and the list of leaks that are still live.
 *
 * The plugin calls kt_leak_periodic_due() in each second that the VM runs, in
 * the thread of monitor commands. If a scan is due it stops the VM and calls
 * kt_leak_periodic(). A scan that is impossible now, for example because all
 * vCPUs are in user mode, is tried again each second, TRIES_MAX times.
 */
#include "kalloc-tracer/leak/leak-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

#define TRIES_MAX   10u

/* ---- list --------------------------------------------------------------- */

bool kt_leak_list(KtTracer *t, GArray **out, uint64_t *us)
{
    const KtLeakScanner *l = kt_leak_scanner_now(t);

    *us = l->last_us;
    *out = g_array_new(FALSE, FALSE, sizeof(KtLeak));
    kt_query_begin(t);
    for (unsigned i = 0; i < l->last->len; i++) {
        const KtLeakFinding *m = &g_array_index(l->last, KtLeakFinding, i);
        KtLeak leak = { .hold = m->hold, .owner = m->owner };

        if (kt_query_find(t, m->va, &leak.block) && leak.block.va == m->va &&
            leak.block.alloc_us == m->alloc_us &&
            leak.block.state == KT_BLOCK_ALLOCATED) {
            g_array_append_val(*out, leak);
        }
    }
    kt_query_end(t);
    return l->scanned;
}

/* ---- periodic scans ----------------------------------------------------- */

void kt_leak_set_every(KtTracer *t, unsigned seconds)
{
    KtLeakScanner *l = kt_leak_scanner_of(t);

    l->every = seconds;
    l->waited = l->tries = 0;
}

unsigned kt_leak_every(KtTracer *t)
{
    return kt_leak_scanner_of(t)->every;
}

bool kt_leak_periodic_due(KtTracer *t)
{
    KtLeakScanner *l = kt_leak_scanner_of(t);

    return l->every && ++l->waited >= l->every;
}

static void begin_anew(KtLeakScanner *l)
{
    l->waited = l->tries = 0;
}

/* Count a scan that failed. Return (owned) a line for the user, NULL if it will
 * be tried again, or if the last scan failed for the same reason. */
static char *report_failure(KtTracer *t, const GError *err)
{
    KtLeakScanner *l = kt_leak_scanner_of(t);
    bool is_new = g_strcmp0(l->why_not, err->message) != 0;

    if (!g_error_matches(err, GS_ERROR, GS_ERROR_UNSUPPORTED) &&
        ++l->tries < TRIES_MAX) {
        return NULL;
    }
    begin_anew(l);
    kt_counters_add(t->counters, KT_CNT_LEAK_SCANS_FAILED, 1);
    g_free(l->why_not);
    l->why_not = g_strdup(err->message);
    return is_new ? g_strdup_printf("no leak scan could be made: %s",
                                    err->message) : NULL;
}

char *kt_leak_periodic(KtTracer *t, const KtLeakPlan *plan)
{
    KtLeakScanner *l = kt_leak_scanner_of(t);
    g_autoptr(GError) err = NULL;
    g_auto(KtLeakReport) r = { 0 };

    if (!kt_leak_scan(t, plan, &r, &err)) {
        return report_failure(t, err);
    }
    begin_anew(l);
    g_clear_pointer(&l->why_not, g_free);
    return !r.fresh ? NULL : g_strdup_printf(
        "leak scan at %" G_GUINT64_FORMAT "us: %u leaked blocks, %u of them "
        "new; ka leak list prints them", l->last_us, r.leaks->len, r.fresh);
}
