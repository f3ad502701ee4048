/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Timeline: see timeline.h. */
#include "monitor-cmds/export/timeline.h"

#include <string.h>

#include "monitor-cmds/output/block-row.h"

/**
 * struct Reader - @open: address of a loaded module -> number of its lifetime
 * @steps: (nullable) sums over time
 * @n: instants of each kind
 * @read: events before the frame that is read
 * @us: time of the last event
 */
typedef struct Reader {
    const McExport *e;
    KtReplay *replay;
    KtTracer *tracer;
    McTimeline *t;
    McLiveBytes *live;
    McTimeSteps *steps;
    GHashTable *open;
    unsigned n[MC_INSTANT__COUNT];
    uint64_t read, us;
} Reader;

const char *mc_instant_kind_name(McInstantKind kind)
{
    static const char *const names[MC_INSTANT__COUNT] = {
        [MC_INSTANT_MISSING] = "missing",
        [MC_INSTANT_RECORDING] = "recording",
        [MC_INSTANT_GAP] = "gap",
        [MC_INSTANT_MODULE] = "module",
        [MC_INSTANT_MARK] = "mark",
        [MC_INSTANT_ERROR] = "error",
    };

    return names[kind];
}

/* ---- instants ------------------------------------------------------------ */

/* Keep a text of the guest. */
static const char *keep(Reader *r, const char *text)
{
    g_autofree char *clean = mc_profile_clean(text);

    return g_string_chunk_insert_const(r->t->names, clean);
}

static McInstant *add_instant(Reader *r, McInstantKind kind, uint64_t us,
                              const char *name)
{
    const McInstant i = { .kind = kind, .us = us, .name = keep(r, name) };

    if (r->n[kind] >= MC_TIMELINE_INSTANTS) {
        r->t->left_out++;
        return NULL;
    }
    r->n[kind]++;
    g_array_append_val(r->t->instant, i);
    return &g_array_index(r->t->instant, McInstant, r->t->instant->len - 1);
}

static void add_figure(McInstant *i, const char *key, uint64_t value)
{
    if (i) {
        i->key = key;
        i->value = value;
    }
}

/* ---- modules ------------------------------------------------------------- */

static void end_lifetime(Reader *r, uint64_t va, bool unloaded)
{
    gpointer number = g_hash_table_lookup(r->open, &va);

    if (number) {
        McLifetime *m = &g_array_index(r->t->lifetime, McLifetime,
                                       GPOINTER_TO_UINT(number) - 1);

        m->until = r->us;
        m->unloaded = unloaded;
        g_hash_table_remove(r->open, &va);
    }
}

static void begin_lifetime(Reader *r, uint64_t va, const char *name,
                           bool earlier)
{
    const McLifetime m = {
        .name = keep(r, name), .since = r->us, .earlier = earlier,
    };

    end_lifetime(r, va, false);
    if (r->t->lifetime->len >= MC_TIMELINE_INSTANTS) {
        r->t->left_out++;
        return;
    }
    g_array_append_val(r->t->lifetime, m);
    g_hash_table_insert(r->open, g_memdup2(&va, sizeof(va)),
                        GUINT_TO_POINTER(r->t->lifetime->len));
}

static void on_module(void *opaque, KtReplayModule what, uint64_t va,
                      const char *name)
{
    Reader *r = opaque;
    g_autofree char *text = g_strdup_printf(
        "%s %s", name, what == KT_REPLAY_UNLOADED ? "unloaded" : "loaded");

    if (what != KT_REPLAY_INHERITED) {
        add_instant(r, MC_INSTANT_MODULE, r->us, text);
    }
    if (what == KT_REPLAY_UNLOADED) {
        end_lifetime(r, va, true);
    } else {
        begin_lifetime(r, va, name, what == KT_REPLAY_INHERITED);
    }
}

/* Modules that are still loaded live to the end. */
static void end_lifetimes(Reader *r)
{
    GHashTableIter it;
    gpointer number;

    g_hash_table_iter_init(&it, r->open);
    while (g_hash_table_iter_next(&it, NULL, &number)) {
        g_array_index(r->t->lifetime, McLifetime,
                      GPOINTER_TO_UINT(number) - 1).until = r->us;
    }
}

/* Give each lifetime the first lane that is free. */
static void set_lanes(McTimeline *t)
{
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    for (unsigned i = 0; i < t->lifetime->len; i++) {
        McLifetime *m = &g_array_index(t->lifetime, McLifetime, i);

        while (m->lane < ends->len &&
               g_array_index(ends, uint64_t, m->lane) > m->since) {
            m->lane++;
        }
        if (m->lane == ends->len) {
            g_array_append_val(ends, m->until);
        }
        g_array_index(ends, uint64_t, m->lane) = m->until;
    }
    t->lanes = ends->len;
}

/* ---- reading ------------------------------------------------------------- */

/* The sums of ka begin anew, so the timeline does. After ka clear modules stay
 * loaded. */
static void restart(Reader *r, KtReplayControl control)
{
    g_array_set_size(r->t->instant, 0);
    memset(r->n, 0, sizeof(r->n));
    r->t->left_out = 0;
    r->read = kt_replay_info(r->replay)->read_events;
    if (control != KT_REPLAY_CLEAR) {
        g_array_set_size(r->t->lifetime, 0);
        g_hash_table_remove_all(r->open);
        r->us = 0;
    }
    mc_live_bytes_restart(r->live, control == KT_REPLAY_LOAD);
    if (r->steps) {
        mc_time_steps_restart(r->steps);
    }
    if (control == KT_REPLAY_LOAD) {
        r->us = kt_replay_info(r->replay)->read_us;
        mc_live_bytes_compare(r->live, r->us);
    }
}

static bool on_control(void *opaque, KtReplayControl control, uint64_t value)
{
    Reader *r = opaque;
    g_autofree char *text = NULL;

    switch (control) {
    case KT_REPLAY_RESET:
    case KT_REPLAY_CLEAR:
    case KT_REPLAY_LOAD:
        restart(r, control);
        break;
    case KT_REPLAY_ENABLED:
        add_instant(r, MC_INSTANT_RECORDING, r->us,
                    value ? "recording on" : "recording off");
        break;
    case KT_REPLAY_GAP:
        text = g_strdup_printf("%" PRIu64 " events were not written", value);
        add_instant(r, MC_INSTANT_GAP, r->us, text);
        break;
    default:
        break;
    }
    return true;
}

static bool on_event(void *opaque, const KtEvent *ev)
{
    Reader *r = opaque;
    uint64_t read = kt_replay_info(r->replay)->read_events;

    if (read != r->read) {
        r->read = read;
        mc_live_bytes_compare(r->live, r->us);
    }
    r->us = MAX(r->us, ev->us);
    if (ev->kind == KT_EV_GAP) {
        add_instant(r, MC_INSTANT_GAP, r->us, "events were not recorded");
    } else {
        mc_live_bytes_event(r->live, ev, r->us);
    }
    return true;
}

static uint64_t on_pause(void *opaque, uint64_t us)
{
    Reader *r = opaque;

    return mc_time_steps_pause(r->steps, r->tracer, us);
}

/* ---- what the tracer knows at the end ------------------------------------ */

static bool add_error(const KtError *e, void *opaque)
{
    g_array_append_vals(opaque, e, 1);
    return true;
}

static void add_errors(Reader *r)
{
    const McContext ctx = {
        .tracer = r->tracer, .kernel = r->e->kernel,
        .kernel_found = r->e->kernel != NULL,
    };
    const McOut out = { .ctx = &ctx };
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(KtError));

    kt_query_begin(r->tracer);
    kt_query_errors(r->tracer, 0, UINT64_MAX, add_error, errors);
    kt_query_end(r->tracer);
    for (unsigned i = 0; i < errors->len; i++) {
        const KtError *e = &g_array_index(errors, KtError, i);
        g_autoptr(McIdentity) id = mc_identity_of_error(&out, e);

        add_figure(add_instant(r, MC_INSTANT_ERROR, e->us, id->title), "id",
                   e->id);
    }
}

static bool add_mark(const KtMarkInfo *m, void *opaque)
{
    const KtAccount *a = &m->totals.sum;

    add_figure(add_instant(opaque, MC_INSTANT_MARK, m->totals.us, m->name),
               "live", a->reserved - a->freed_reserved);
    return true;
}

static uint64_t first_time(const McTimeline *t)
{
    const GArray *points = mc_counter_series_points(
        g_array_index(t->counter, McCounter, 0).series);

    return points->len ? g_array_index(points, McPoint, 0).us : 0;
}

/* Readers do not show the comments of a file, so what is missing is in the
 * picture, too. */
static void add_missing(Reader *r)
{
    const GPtrArray *notes = r->e->profile->note;
    const uint64_t us = first_time(r->t);

    for (unsigned i = 0; i < notes->len; i++) {
        if (g_str_has_prefix(notes->pdata[i], "missing: ")) {
            add_instant(r, MC_INSTANT_MISSING, us, notes->pdata[i]);
        }
    }
}

static void read_all(Reader *r)
{
    const KtReplayPlan plan = {
        .until_us = r->e->until_us, .apply = true, .event = on_event,
        .control = on_control, .module = on_module,
        .pause = r->steps ? on_pause : NULL, .opaque = r,
    };

    kt_replay_run(r->replay, &plan);
    mc_live_bytes_compare(r->live, r->us);
    mc_live_bytes_end(r->live, r->t);
    if (r->steps) {
        mc_time_steps_end(r->steps, r->tracer, r->e->kernel);
    }
    r->t->us = r->us;
    end_lifetimes(r);
    set_lanes(r->t);
    add_errors(r);
    kt_query_begin(r->tracer);
    kt_query_marks(r->tracer, add_mark, r);
    kt_query_end(r->tracer);
    add_missing(r);
}

/* ---- life ---------------------------------------------------------------- */

static void clear_counter(gpointer p)
{
    mc_counter_series_free(((McCounter *)p)->series);
}

static McTimeline *new_timeline(void)
{
    McTimeline *t = g_new0(McTimeline, 1);

    t->counter = g_array_new(FALSE, FALSE, sizeof(McCounter));
    g_array_set_clear_func(t->counter, clear_counter);
    t->instant = g_array_new(FALSE, FALSE, sizeof(McInstant));
    t->lifetime = g_array_new(FALSE, FALSE, sizeof(McLifetime));
    t->names = g_string_chunk_new(4096);
    return t;
}

McTimeline *mc_timeline_new(const McExport *e, McTimeSteps *steps,
                            GError **errp)
{
    g_autoptr(KtReplay) replay = kt_replay_open(e->journal, errp);
    g_autoptr(GHashTable) open = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, NULL);
    g_autoptr(McTimeline) t = NULL;
    g_autoptr(McLiveBytes) live = NULL;
    Reader r = { .e = e, .replay = replay, .open = open, .steps = steps };

    if (!replay) {
        return NULL;
    }
    r.tracer = kt_replay_tracer(replay);
    r.t = t = new_timeline();
    r.live = live = mc_live_bytes_new(r.tracer, e->profile);
    read_all(&r);
    return g_steal_pointer(&t);
}

void mc_timeline_free(McTimeline *t)
{
    if (!t) {
        return;
    }
    g_array_unref(t->counter);
    g_array_unref(t->instant);
    g_array_unref(t->lifetime);
    g_string_chunk_free(t->names);
    g_free(t);
}
