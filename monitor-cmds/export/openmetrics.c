/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * OpenMetrics: the sums of each cache as samples for Prometheus.
 *
 *     # TYPE ka_live_bytes gauge
 *     # UNIT ka_live_bytes bytes
 *     # HELP ka_live_bytes ...
 *     ka_live_bytes{cache="kmalloc-64"} 64
 *     # EOF
 *
 * A file in which two samples have the same name and labels is refused whole,
 * so caches of one name are added up. There are at most MAX_CACHES of them, the
 * ones with the most live bytes; all others are the cache "(other)", so the
 * samples of a metric always add up to the sum of everything. The format has no
 * comments: notes are labels, of gauges: readers of Prometheus's older format,
 * such as the textfile collector of node_exporter, do not know the type info.
 */
#include "monitor-cmds/export/export.h"

#include <string.h>

#define MAX_CACHES  200u
#define OTHER       "(other)"

/** struct Metric - @unit: "" or the end of the name; @counter: it only grows */
typedef struct Metric {
    const char *name, *unit;
    bool counter;
    McTopId id;
} Metric;

static const Metric metrics[] = {
    { "ka_live_bytes", "bytes", false, MC_TOP_live },
    { "ka_live_requested_bytes", "bytes", false, MC_TOP_live_asked },
    { "ka_live_blocks", "", false, MC_TOP_blocks },
    { "ka_allocations", "", true, MC_TOP_allocs },
    { "ka_allocated_bytes", "bytes", true, MC_TOP_reserved },
    { "ka_frees", "", true, MC_TOP_frees },
    { "ka_freed_bytes", "bytes", true, MC_TOP_freed_reserved },
};

/** struct Cache - a row; @name: borrowed */
typedef struct Cache {
    const char *name;
    int64_t value[MC_TOP__COUNT];
} Cache;

static Cache *cache_of(GPtrArray *caches, GHashTable *by_name,
                       const char *name)
{
    Cache *c = g_hash_table_lookup(by_name, name);

    if (!c && caches->len >= MAX_CACHES) {
        name = OTHER;
        c = g_hash_table_lookup(by_name, name);
    }
    if (!c) {
        c = g_new0(Cache, 1);
        c->name = name;
        g_ptr_array_add(caches, c);
        g_hash_table_insert(by_name, (gpointer)name, c);
    }
    return c;
}

/* Return (owned) the caches, the largest first, as in ka top. */
static GPtrArray *collect(const McHeapProfile *p)
{
    GPtrArray *caches = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);

    for (unsigned i = 0; i < p->stack->len; i++) {
        const McProfileStack *s = &g_array_index(p->stack, McProfileStack, i);
        unsigned frame = g_array_index(p->path, unsigned, s->first);
        Cache *c = cache_of(caches, by_name,
                            g_array_index(p->frame, McProfileFrame,
                                          frame).function);

        for (unsigned j = 0; j < MC_TOP__COUNT; j++) {
            c->value[j] += s->value[j];
        }
    }
    return caches;
}

/* Write a text between quotes. */
static void put_quoted(const char *text, FILE *to)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', to);
        }
        fputc(*text, to);
    }
}

static void put_head(const char *name, const char *type, const char *unit,
                     const char *help, FILE *to)
{
    fprintf(to, "# TYPE %s %s\n", name, type);
    if (*unit) {
        fprintf(to, "# UNIT %s %s\n", name, unit);
    }
    fprintf(to, "# HELP %s %s\n", name, help);
}

static void put_metric(const Metric *m, const GPtrArray *caches, FILE *to)
{
    put_head(m->name, m->counter ? "counter" : "gauge", m->unit,
             mc_top_columns[m->id].help, to);
    for (unsigned i = 0; i < caches->len; i++) {
        const Cache *c = caches->pdata[i];

        fprintf(to, "%s%s{cache=\"", m->name, m->counter ? "_total" : "");
        put_quoted(c->name, to);
        fprintf(to, "\"} %" PRId64 "\n", c->value[m->id]);
    }
}

static void put_notes(const McHeapProfile *p, FILE *to)
{
    put_head("ka_missing", "gauge", "", "reasons why the sums are too small; "
             "0: they are complete", to);
    fprintf(to, "ka_missing %u\n", p->missing);
    put_head("ka_note_info", "gauge", "", "where the sums are from, and what "
             "is missing", to);
    for (unsigned i = 0; i < p->note->len; i++) {
        fprintf(to, "ka_note_info{number=\"%u\",text=\"", i + 1);
        put_quoted(p->note->pdata[i], to);
        fprintf(to, "\"} 1\n");
    }
    if (p->banner) {
        put_head("ka_kernel_info", "gauge", "", "version of the kernel", to);
        fprintf(to, "ka_kernel_info{banner=\"");
        put_quoted(p->banner, to);
        fprintf(to, "\"} 1\n");
    }
}

bool mc_export_openmetrics(const McExport *e, FILE *to, GError **errp)
{
    g_autoptr(GPtrArray) caches = collect(e->profile);

    for (unsigned i = 0; i < G_N_ELEMENTS(metrics); i++) {
        put_metric(&metrics[i], caches, to);
    }
    put_notes(e->profile, to);
    fprintf(to, "# EOF\n");
    return true;
}
