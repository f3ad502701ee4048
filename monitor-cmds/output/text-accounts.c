/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of accounts (ka top, ka diff, ka mark) as text: see format-text.c. */
#include "monitor-cmds/output/format.h"

#include <string.h>

/* Append a value; a difference that is positive has a plus sign. */
static void put_top_value(GString *s, const McTopTable *t,
                          const McTopRow *row, McTopId id)
{
    int64_t v;

    if (!mc_top_value(t, row, id, &v)) {
        g_string_append_c(s, '-');
    } else if (t->diff) {
        g_string_append_printf(s, v ? "%+" PRId64 : "%" PRId64, v);
    } else {
        mc_put_decimal(s, v);
    }
}

static void widen(McTopTable *t, const McTopRow *row)
{
    g_autoptr(GString) s = g_string_new(NULL);

    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        g_string_truncate(s, 0);
        put_top_value(s, t, row, i);
        t->width[i] = MAX(t->width[i], s->len);
    }
}

static void put_columns(McOut *o, const McTopTable *t, const McTopRow *row)
{
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        size_t from = o->line->len;

        if (!mc_top_shows(t, i, o->verbose)) {
            continue;
        }
        if (row) {
            put_top_value(o->line, t, row, i);
        } else {
            g_string_append(o->line, mc_top_columns[i].key);
        }
        mc_put_padded(o->line, from, t->width[i]);
        g_string_append(o->line, "  ");
    }
}

static void put_caller(McOut *o, const McFrame *f)
{
    if (f->pc) {
        mc_put_pc(o->line, o->symbols, f);
    } else {
        g_string_append_c(o->line, '-');
    }
}

static void put_task(McOut *o, KtTaskId task)
{
    uint32_t pid;
    char comm[17];

    if (kt_tracer_task(o->ctx->tracer, task, &pid, comm)) {
        mc_put_word(o->line, *comm ? comm : "-");
        g_string_append_printf(o->line, " %u", pid);
    } else {
        g_string_append_c(o->line, '-');
    }
}

static void put_cache(McOut *o, const KtAccountKey *key)
{
    KtCacheInfo cache;

    if (kt_tracer_cache(o->ctx->tracer, key->cache, &cache)) {
        mc_put_word(o->line, cache.name);
    } else {
        g_string_append_printf(o->line, "[%s]", key->layer ?
                               kt_layer_name(key->layer) : "-");
    }
}

/* Append a stack; the long form has it on lines of their own. */
static void put_stack(McOut *o, KtStackId id)
{
    if (o->long_form) {
        g_string_append(o->line, "stack");
        return;
    }
    g_string_append_c(o->line, '[');
    mc_text_stack(o, id, false);
    g_string_append_c(o->line, ']');
}

static void put_top_key(McOut *o, const McTopTable *t, const McTopRow *row)
{
    switch (t->by) {
    case MC_BY_STACK:
        put_stack(o, row->key.stack);
        break;
    case MC_BY_CACHE:
        put_cache(o, &row->key);
        break;
    case MC_BY_TASK:
        put_task(o, row->key.task);
        break;
    case MC_BY_MODULE:
        mc_put_word(o->line, row->module);
        break;
    case MC_BY_SIZE:
        g_string_append_printf(o->line, "%" PRIx64 "-%" PRIx64, row->key.lo,
                               row->key.hi);
        break;
    default:
        put_caller(o, &(McFrame) { row->key.pc, 0, row->key.era });
        break;
    }
}

void mc_text_top_begin(McOut *o, McTopTable *t, const GPtrArray *rows,
                       unsigned n)
{
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        t->width[i] = strlen(mc_top_columns[i].key);
    }
    widen(t, &t->all);
    for (unsigned i = 0; i < n; i++) {
        widen(t, rows->pdata[i]);
    }
    put_columns(o, t, NULL);
    g_string_append(o->line, mc_by_name(t->by));
    mc_out_end_line(o);
    put_columns(o, t, &t->all);
    g_string_append(o->line, "all");
    mc_out_end_line(o);
}

void mc_text_top_row(McOut *o, const McTopTable *t, const McTopRow *row)
{
    put_columns(o, t, row);
    put_top_key(o, t, row);
    mc_out_end_line(o);
    if (o->long_form && t->by == MC_BY_STACK) {
        mc_long_stack(o, row->key.stack, false);
    }
}

void mc_text_top_note(McOut *o, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    g_string_append_vprintf(o->line, format, ap);
    va_end(ap);
    mc_out_end_line(o);
}

void mc_text_stray(McOut *o, const KtStray *s, bool by_stack)
{
    McStack stack = mc_stack(o->ctx->tracer, s->stack);
    McFrame caller = mc_caller(&stack);

    g_string_append_printf(o->line, "%8" PRIu64 " unknown %8" PRIu64
                           " invalid %8" PRIu64 " pages  ", s->unknown,
                           s->invalid, s->pages);
    if (by_stack) {
        put_stack(o, s->stack);
    } else {
        put_caller(o, &caller);
    }
    mc_out_end_line(o);
    if (o->long_form && by_stack) {
        mc_long_stack(o, s->stack, false);
    }
}

void mc_text_point(McOut *o, const KtMarkInfo *p)
{
    const KtAccount *a = &p->totals.sum;

    g_string_append(o->line, "mark ");
    mc_put_word(o->line, p->name);
    g_string_append_printf(o->line, "@%" PRIu64 "us: %" PRIu64 " live blocks "
                           "of %" PRIu64 " bytes, %" PRIu64 " allocations",
                           p->totals.us, a->allocs - a->frees,
                           a->reserved - a->freed_reserved, a->allocs);
    mc_out_end_line(o);
}
