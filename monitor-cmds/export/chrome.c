/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chrome: the timeline of a journal as trace events in JSON, for the Perfetto
 * UI and chrome://tracing. Times are microseconds of the guest.
 *
 *     {"displayTimeUnit":"ms","otherData":{...},"traceEvents":[
 *     {"ph":"M", ...}    names of processes and threads, which are groups here
 *     {"ph":"C", ...}    live bytes of a cache
 *     {"ph":"i", ...}    an error, a mark, a gap, a module
 *     {"ph":"X", ...}    a module, from its load to its unload
 *     ]}
 *
 * Events are in the order of time. Those of phase X that overlap are in threads
 * of their own, because a reader expects them to be nested.
 */
#include "monitor-cmds/export/timeline.h"
#include "monitor-cmds/output/format.h"

/* The groups, as numbers of processes. */
enum { PID_ALL = 1, PID_CACHES, PID_MODULES };

typedef enum RowKind { ROW_POINT, ROW_INSTANT, ROW_LIFETIME } RowKind;

/** struct Row - an event. @seq: its place among those of the same time; @of:
 *  number of the counter, instant or lifetime; @value: of a point */
typedef struct Row {
    uint64_t us;
    unsigned seq;
    RowKind kind;
    unsigned of;
    uint64_t value;
} Row;

static gint compare_rows(gconstpointer a, gconstpointer b)
{
    const Row *x = a, *y = b;

    return x->us != y->us ? (x->us < y->us ? -1 : 1) :
           (x->seq > y->seq) - (x->seq < y->seq);
}

static void add_row(GArray *rows, Row row)
{
    row.seq = rows->len;
    g_array_append_val(rows, row);
}

/* Return (owned) Row, in the order of time. */
static GArray *make_rows(const McTimeline *t)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(Row));

    for (unsigned i = 0; i < t->lifetime->len; i++) {
        add_row(rows, (Row) { .kind = ROW_LIFETIME, .of = i, .us =
                g_array_index(t->lifetime, McLifetime, i).since });
    }
    for (unsigned i = 0; i < t->counter->len; i++) {
        const GArray *points = mc_counter_series_points(
            g_array_index(t->counter, McCounter, i).series);

        for (unsigned j = 0; j < points->len; j++) {
            const McPoint *p = &g_array_index(points, McPoint, j);

            add_row(rows, (Row) { .kind = ROW_POINT, .of = i, .us = p->us,
                                  .value = p->value });
        }
    }
    for (unsigned i = 0; i < t->instant->len; i++) {
        add_row(rows, (Row) { .kind = ROW_INSTANT, .of = i, .us =
                g_array_index(t->instant, McInstant, i).us });
    }
    g_array_sort(rows, compare_rows);
    return rows;
}

/* ---- lines --------------------------------------------------------------- */

static void put_head(GString *s, const char *phase, unsigned pid, unsigned tid,
                     uint64_t us, const char *name)
{
    g_string_append_printf(s, "{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%"
                           PRIu64 ",\"name\":", phase, pid, tid, us);
    mc_json_string(s, name);
}

static void put_name(GString *s, const char *what, unsigned pid, unsigned tid,
                     const char *name)
{
    put_head(s, "M", pid, tid, 0, what);
    g_string_append(s, ",\"args\":{\"name\":");
    mc_json_string(s, name);
    g_string_append(s, "}},\n");
}

static void put_names(GString *s, const McTimeline *t)
{
    put_name(s, "process_name", PID_ALL, 0, "all memory");
    put_name(s, "process_name", PID_CACHES, 0, "live bytes by cache");
    put_name(s, "process_name", PID_MODULES, 0, "modules");
    for (unsigned i = 0; i < t->lanes; i++) {
        put_name(s, "thread_name", PID_MODULES, i + 1, "modules");
    }
}

static void put_point(GString *s, const McCounter *c, const Row *row)
{
    put_head(s, "C", c->name ? PID_CACHES : PID_ALL, 0, row->us,
             c->name ? c->name : "live bytes");
    g_string_append_printf(s, ",\"args\":{\"live\":%" PRIu64 "}}", row->value);
}

static void put_instant(GString *s, const McInstant *i)
{
    put_head(s, "i", i->kind == MC_INSTANT_MODULE ? PID_MODULES : PID_ALL, 0,
             i->us, i->name);
    g_string_append_printf(s, ",\"cat\":\"%s\",\"s\":\"g\"",
                           mc_instant_kind_name(i->kind));
    if (i->key) {
        g_string_append_printf(s, ",\"args\":{\"%s\":%" PRIu64 "}", i->key,
                               i->value);
    }
    g_string_append_c(s, '}');
}

static void put_lifetime(GString *s, const McLifetime *m)
{
    put_head(s, "X", PID_MODULES, m->lane + 1, m->since, m->name);
    g_string_append_printf(s, ",\"dur\":%" PRIu64 ",\"cat\":\"module\","
                           "\"args\":{\"unloaded\":%s,\"loaded_earlier\":%s}}",
                           m->until - m->since, m->unloaded ? "true" : "false",
                           m->earlier ? "true" : "false");
}

static void put_row(GString *s, const McTimeline *t, const Row *row)
{
    switch (row->kind) {
    case ROW_POINT:
        put_point(s, &g_array_index(t->counter, McCounter, row->of), row);
        break;
    case ROW_INSTANT:
        put_instant(s, &g_array_index(t->instant, McInstant, row->of));
        break;
    case ROW_LIFETIME:
        put_lifetime(s, &g_array_index(t->lifetime, McLifetime, row->of));
        break;
    }
}

/* ---- the file ------------------------------------------------------------ */

static void put_other_data(GString *s, const McExport *e, const McTimeline *t)
{
    const McHeapProfile *p = e->profile;

    g_string_append(s, "\"otherData\":{\"source\":\"ka\",\"live\":\"bytes as "
                    "reserved\",\"kernel\":");
    mc_json_string(s, p->banner ? p->banner : "");
    g_string_append_printf(s, ",\"complete\":%s",
                           p->missing ? "false" : "true");
    mc_json_number(s, "missing", p->missing);
    mc_json_number(s, "corrected", t->corrected);
    mc_json_number(s, "left_out", t->left_out);
    mc_json_texts(s, "notes", p->note);
    g_string_append_c(s, '}');
}

bool mc_export_chrome(const McExport *e, FILE *to, GError **errp)
{
    g_autoptr(McTimeline) t = mc_timeline_new(e, NULL, errp);
    g_autoptr(GString) s = g_string_new("{\"displayTimeUnit\":\"ms\",");
    g_autoptr(GArray) rows = NULL;

    if (!t) {
        return false;
    }
    rows = make_rows(t);
    put_other_data(s, e, t);
    g_string_append(s, ",\"traceEvents\":[\n");
    put_names(s, t);
    for (unsigned i = 0; i < rows->len; i++) {
        put_row(s, t, &g_array_index(rows, Row, i));
        g_string_append(s, i + 1 < rows->len ? ",\n" : "\n");
        fwrite(s->str, 1, s->len, to);
        g_string_truncate(s, 0);
    }
    fprintf(to, "%s]}\n", s->str);
    return true;
}
