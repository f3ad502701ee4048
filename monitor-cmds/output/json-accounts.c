/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of accounts (ka top, ka diff, ka mark) as JSON: see json-parts.h. */
#include "monitor-cmds/output/json-parts.h"

static void put_caller(McOut *o, const McFrame *f)
{
    g_autoptr(GString) name = g_string_new(NULL);

    mc_json_key(o->line, "caller");
    if (!f->pc) {
        g_string_append(o->line, "null");
        return;
    }
    mc_json_address(o->line, f->pc);
    if (o->symbols) {
        mc_json_key(o->line, "caller_symbol");
        mc_put_pc(name, o->symbols, f);
        mc_json_string(o->line, name->str);
    }
    if (o->pcs) {
        mc_json_key(o->line, "caller_at");
        mc_json_address(o->line, mc_frame_at(mc_symbols(o->ctx), f));
    }
}

static void put_or_null(McOut *o, const char *key, const char *text)
{
    mc_json_key(o->line, key);
    if (text && *text) {
        mc_json_string(o->line, text);
    } else {
        g_string_append(o->line, "null");
    }
}

static void put_task(McOut *o, KtTaskId task)
{
    uint32_t pid = 0;
    char comm[17] = "";

    if (kt_tracer_task(o->ctx->tracer, task, &pid, comm)) {
        mc_json_number(o->line, "pid", pid);
    } else {
        put_or_null(o, "pid", NULL);
    }
    put_or_null(o, "comm", comm);
}

static void put_top_key(McOut *o, const McTopTable *t, const McTopRow *row)
{
    const KtAccountKey *key = &row->key;
    KtCacheInfo cache = { 0 };

    switch (t->by) {
    case MC_BY_STACK:
        mc_json_event_stack(o, key->stack, false);
        break;
    case MC_BY_CACHE:
        kt_tracer_cache(o->ctx->tracer, key->cache, &cache);
        put_or_null(o, "cache", cache.name);
        mc_json_word(o, "layer",
                     key->cache.v ? NULL : kt_layer_name(key->layer));
        break;
    case MC_BY_TASK:
        put_task(o, key->task);
        break;
    case MC_BY_MODULE:
        put_or_null(o, "module", row->module);
        break;
    case MC_BY_SIZE:
        mc_json_number(o->line, "size_from", key->lo);
        mc_json_number(o->line, "size_to", key->hi);
        break;
    default:
        put_caller(o, &(McFrame) { key->pc, 0, key->era });
        break;
    }
}

static void put_columns(McOut *o, const McTopTable *t, const McTopRow *row)
{
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        int64_t v;

        if (!mc_top_shows(t, i, true)) {
            continue;
        }
        mc_json_key(o->line, mc_top_columns[i].key);
        if (!mc_top_value(t, row, i, &v)) {
            g_string_append(o->line, "null");
        } else if (t->diff) {
            g_string_append_printf(o->line, "%" PRId64, v);
        } else {
            mc_put_decimal(o->line, v);
        }
    }
    if (!t->diff) {
        mc_json_number(o->line, "lives", row->ends);
    }
}

static void put_totals(McOut *o, const KtTotals *t)
{
    mc_json_number(o->line, "us", t->us);
    mc_json_number(o->line, "resizes", t->resizes);
    mc_json_number(o->line, "grown", t->grown);
    mc_json_number(o->line, "shrunk", t->shrunk);
    mc_json_number(o->line, "splits", t->splits);
    mc_json_number(o->line, "lost", t->lost);
    mc_json_number(o->line, "lost_asked", t->lost_asked);
    mc_json_number(o->line, "lost_reserved", t->lost_reserved);
    mc_json_number(o->line, "stray", t->stray);
}

void mc_json_top_begin(McOut *o, McTopTable *t, const GPtrArray *rows,
                       unsigned n)
{
    mc_json_begin(o, t->diff ? MC_OBJ_DIFF_ALL : MC_OBJ_TOP_ALL);
    put_columns(o, t, &t->all);
    if (!t->diff && t->all.peak_known) {
        put_totals(o, &t->totals);
    }
    if (t->counted) {
        mc_json_number(o->line, "dropped", t->dropped);
    }
    mc_json_end(o);
}

void mc_json_top_row(McOut *o, const McTopTable *t, const McTopRow *row)
{
    mc_json_begin(o, t->diff ? MC_OBJ_DIFF : MC_OBJ_TOP);
    put_top_key(o, t, row);
    put_columns(o, t, row);
    mc_json_end(o);
}

/* Print nothing: the object "top_all" has these figures as keys. */
void mc_json_top_note(McOut *o, const char *format, ...)
{
}

void mc_json_stray(McOut *o, const KtStray *s, bool by_stack)
{
    McStack stack = mc_stack(o->ctx->tracer, s->stack);
    McFrame caller = mc_caller(&stack);

    mc_json_begin(o, MC_OBJ_STRAY);
    if (by_stack) {
        mc_json_event_stack(o, s->stack, false);
    } else {
        put_caller(o, &caller);
    }
    mc_json_number(o->line, "unknown", s->unknown);
    mc_json_number(o->line, "invalid", s->invalid);
    mc_json_number(o->line, "pages", s->pages);
    mc_json_end(o);
}

void mc_json_mark(McOut *o, const KtMarkInfo *p)
{
    const KtAccount *a = &p->totals.sum;

    mc_json_begin(o, MC_OBJ_POINT);
    mc_json_key(o->line, "name");
    mc_json_string(o->line, p->name);
    mc_json_number(o->line, "live", a->reserved - a->freed_reserved);
    mc_json_number(o->line, "blocks", a->allocs - a->frees);
    mc_json_number(o->line, "allocs", a->allocs);
    put_totals(o, &p->totals);
    mc_json_end(o);
}
