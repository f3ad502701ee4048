/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arguments, result and caller of a call: see calls-text.h. */
#include "monitor-cmds/output/calls-text.h"

void mc_call_row(McCallRow *row, KtTracer *t, const GsKernel *kernel,
                 const KtCallView *view)
{
    *row = (McCallRow) { .view = *view, .kernel = kernel, .tracer = t };
    if (!kt_call_point_name(t, view->call->point, &row->name)) {
        row->name.name = "?";
    }
    row->has_task = kt_tracer_task(t, view->call->task, &row->pid, row->comm);
}

bool mc_call_is_mark(const McCallRow *row)
{
    return row->view.call->flags & (KT_CALL_BEGIN | KT_CALL_END);
}

char *mc_call_mark_module(const McCallRow *row)
{
    return g_strndup((const char *)row->view.extra, row->view.call->n_extra);
}

/* ---- values -------------------------------------------------------------- */

/* Append a value that is in @n registers. */
static void put_words(GString *s, const McCallRow *row, const GsParam *param,
                      const uint64_t *word, unsigned n)
{
    uint64_t bytes[GS_PLACE_WORDS];

    for (unsigned i = 0; i < n; i++) {
        bytes[i] = GUINT64_TO_LE(word[i]);
    }
    gs_param_print(s, row->name.proto, param, bytes,
                   MIN(param->size, n * sizeof(*bytes)));
}

/* Append the value of a parameter; "?" if its place was not recorded. */
static void put_param(GString *s, const McCallRow *row, const GsParam *param)
{
    const GsPlace *at = &param->place;
    bool known = at->kind == GS_PLACE_REGISTERS && !at->by_address;
    uint64_t word[GS_PLACE_WORDS];

    for (unsigned i = 0; known && i < at->words; i++) {
        int arg = kt_call_arg_of(at->reg[i]);

        known = arg >= 0 && arg < row->view.call->n_args;
        word[i] = known ? row->view.args[arg] : 0;
    }
    if (known) {
        put_words(s, row, param, word, at->words);
    } else {
        g_string_append(s, "?");
    }
}

static void each_register(const McCallRow *row, McCallArgFn *fn, void *opaque)
{
    for (unsigned i = 0; i < row->view.call->n_args; i++) {
        g_autofree char *name = g_strdup_printf("arg%u", i);
        g_autofree char *value = g_strdup_printf("0x%" PRIx64,
                                                 row->view.args[i]);

        fn(opaque, name, value);
    }
}

void mc_call_foreach_arg(const McCallRow *row, McCallArgFn *fn, void *opaque)
{
    g_autoptr(GString) value = g_string_new(NULL);
    const GsParam *param;

    if (!row->name.proto) {
        each_register(row, fn, opaque);
        return;
    }
    for (unsigned i = 0; (param = gs_prototype_param(row->name.proto, i));
         i++) {
        g_autofree char *unnamed = g_strdup_printf("arg%u", i);

        g_string_truncate(value, 0);
        put_param(value, row, param);
        fn(opaque, param->name ? param->name : unnamed, value->str);
    }
}

static void put_arg(void *opaque, const char *name, const char *value)
{
    GString *s = opaque;

    if (s->len && s->str[s->len - 1] != '(') {
        g_string_append(s, ", ");
    }
    g_string_append_printf(s, "%s=%s", name, value);
}

/* ---- values of --deref --------------------------------------------------- */

typedef struct Derefs {
    McCallDerefFn *fn;
    void *opaque;
    GString *value;
} Derefs;

static void print_deref(void *opaque, const KtCallDeref *d)
{
    Derefs *all = opaque;

    g_string_assign(all->value, d->state == KT_DEREF_NULL ? "0x0" :
                                d->state == KT_DEREF_KNOWN ? "" : "?");
    if (d->state == KT_DEREF_KNOWN) {
        gs_deref_print(all->value, d->expr, d->bytes, d->len);
    }
    all->fn(all->opaque, d, all->value->str);
}

void mc_call_foreach_deref(const McCallRow *row, McCallDerefFn *fn,
                           void *opaque)
{
    g_autoptr(GString) value = g_string_new(NULL);
    Derefs all = { fn, opaque, value };

    if (row->view.call->n_extra) {
        kt_call_foreach_deref(row->tracer, &row->view, print_deref, &all);
    }
}

static void put_arg_deref(void *opaque, const KtCallDeref *d, const char *value)
{
    if (!d->of_result) {
        put_arg(opaque, gs_deref_value(d->expr)->name, value);
    }
}

static void put_result_deref(void *opaque, const KtCallDeref *d,
                             const char *value)
{
    if (d->of_result) {
        g_string_append_printf(opaque, ", %s=%s",
                               gs_deref_value(d->expr)->name, value);
    }
}

void mc_put_call_args(GString *s, const McCallRow *row)
{
    mc_call_foreach_arg(row, put_arg, s);
    mc_call_foreach_deref(row, put_arg_deref, s);
}

void mc_put_call_result_derefs(GString *s, const McCallRow *row)
{
    mc_call_foreach_deref(row, put_result_deref, s);
}

static const GsParam *result_of(const McCallRow *row)
{
    return row->name.proto ? gs_prototype_result(row->name.proto) : NULL;
}

bool mc_call_has_result(const McCallRow *row)
{
    const GsParam *result = result_of(row);

    return !(row->view.call->flags & KT_CALL_UNFINISHED) &&
           !(result && result->kind == GS_VALUE_VOID);
}

bool mc_put_call_result(GString *s, const McCallRow *row)
{
    const GsParam *result = result_of(row);

    if (!mc_call_has_result(row)) {
        return false;
    }
    if (result) {
        put_words(s, row, result, &row->view.call->result, 1);
    } else {
        g_string_append_printf(s, "0x%" PRIx64, row->view.call->result);
    }
    return true;
}

void mc_put_call_caller(GString *s, const McCallRow *row)
{
    const McFrame frame = {
        .pc = row->view.call->caller, .era = row->view.call->era,
    };

    g_string_append(s, "<- ");
    if (row->kernel) {
        mc_put_pc(s, row->kernel, &frame);
    } else {
        mc_put_hex(s, frame.pc, 16);
    }
}
