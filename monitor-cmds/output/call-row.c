/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of ka calls: see calls-text.h. */
#include "monitor-cmds/output/calls-text.h"

static const KtCall *call_of(const void *row)
{
    return ((const McCallRow *)row)->view.call;
}

/* ---- where --------------------------------------------------------------- */

MC_GETTER(us)
{
    v->u = call_of(row)->start_ns / 1000;
    return true;
}

static void put_task(McOut *o, GString *s, const void *of, bool json)
{
    const McCallRow *row = of;

    if (row->has_task) {
        mc_put_word(s, row->comm);
        g_string_append_printf(s, "-%" PRIu32, row->pid);
    } else {
        g_string_append_c(s, '?');
    }
}

MC_GETTER(comm)
{
    v->s = ((const McCallRow *)row)->comm;
    return true;
}

MC_WHEN(has_task)
{
    return ((const McCallRow *)row)->has_task;
}

static const McColumn where_columns[] = {
    MC_GET("us", get_us, NUMBER, "@%us", "time of the entry"),
    MC_VIA("cpu", McCallRow, view.call, cpu, NUMBER, " cpu%", "vCPU"),
    MC_COLUMN(McCallRow, pid, NUMBER, NULL, "task", .when = has_task),
    MC_GET("comm", get_comm, TEXT, NULL, "its name", .when = has_task),
    MC_PUT(NULL, put_task, " %", NULL),
    MC_END
};

/* ---- begin and end of a session ------------------------------------------ */

MC_GETTER(kind)
{
    bool begins = call_of(row)->flags & KT_CALL_BEGIN;

    v->s = c->key ? (begins ? "begin" : "end") : begins ? "begins" : "ends";
    return true;
}

static void put_module(McOut *o, GString *s, const void *row, bool json)
{
    g_autofree char *module = mc_call_mark_module(row);

    if (json) {
        mc_json_string(s, module);
    } else {
        mc_put_word(s, module);
    }
}

static const McColumn session_columns[] = {
    MC_GET("kind", get_kind, WORD, NULL, "begin or end"),
    MC_PUT("module", put_module, " session of %", "the module"),
    MC_GET(NULL, get_kind, WORD, " %", NULL),
    MC_END
};
const McObject mc_session_object = {
    "session", "ka calls: a module of --module was loaded or is unloaded",
    { where_columns, session_columns },
};

/* ---- arguments ----------------------------------------------------------- */

MC_GETTER(args_from)
{
    v->s = ((const McCallRow *)row)->name.proto ? "types" : "registers";
    return true;
}

static void begin_member(GString *s, const char *name)
{
    mc_json_next(s);
    g_string_append_c(s, '{');
    mc_json_text(s, "name", name);
}

static void put_json_arg(void *opaque, const char *name, const char *value)
{
    GString *s = opaque;

    begin_member(s, name);
    mc_json_text(s, "value", value);
    g_string_append_c(s, '}');
}

static void put_args(McOut *o, GString *s, const void *row, bool json)
{
    if (json) {
        g_string_append_c(s, '[');
        mc_call_foreach_arg(row, put_json_arg, s);
        g_string_append_c(s, ']');
    } else {
        mc_put_call_args(s, row);
    }
}

static void put_json_deref(void *opaque, const KtCallDeref *d,
                           const char *value)
{
    const GsParam *param = gs_deref_value(d->expr);
    GString *s = opaque;

    begin_member(s, param->name);
    mc_json_text(s, "type", param->type);
    if (d->state == KT_DEREF_UNREADABLE) {
        mc_json_key(s, "value");
        g_string_append(s, "null");
    } else {
        mc_json_text(s, "value", value);
    }
    g_string_append_c(s, '}');
}

static void put_derefs(McOut *o, GString *s, const void *row, bool json)
{
    g_string_append_c(s, '[');
    mc_call_foreach_deref(row, put_json_deref, s);
    g_string_append_c(s, ']');
}

static void count_deref(void *opaque, const KtCallDeref *d, const char *value)
{
    ++*(unsigned *)opaque;
}

MC_GETTER(derefs)
{
    unsigned n = 0;

    mc_call_foreach_deref(row, count_deref, &n);
    return n;
}

/* The words as the registers had them, for programs. */
static void put_registers(McOut *o, GString *s, const void *of, bool json)
{
    const McCallRow *row = of;

    g_string_append_c(s, '[');
    for (unsigned i = 0; i < row->view.call->n_args; i++) {
        mc_json_next(s);
        g_string_append_printf(s, "\"0x%" PRIx64 "\"", row->view.args[i]);
    }
    g_string_append_c(s, ']');
}

/* ---- the end of a call --------------------------------------------------- */

MC_WHEN(is_timed)
{
    return !(call_of(row)->flags & (KT_CALL_UNFINISHED | KT_CALL_INJECTED));
}

static void put_result(McOut *o, GString *s, const void *row, bool json)
{
    if (json) {
        mc_put_call_result(o->word, row);
        mc_json_string(s, o->word->str);
        g_string_truncate(o->word, 0);
    } else {
        mc_put_call_result(s, row);
        mc_put_call_result_derefs(s, row);
    }
}

MC_GETTER(result)
{
    return mc_call_has_result(row);
}

MC_GETTER(took_us)
{
    v->u = call_of(row)->took_ns / 1000;
    return true;
}

MC_GETTER(returned)
{
    v->u = !(call_of(row)->flags & KT_CALL_UNFINISHED);
    return true;
}

MC_GETTER(irq)
{
    v->u = call_of(row)->flags & KT_CALL_IRQ;
    return !(call_of(row)->flags & KT_CALL_IRQ_UNKNOWN);
}

MC_GETTER(caller)
{
    v->frame = (McFrame) { .pc = call_of(row)->caller,
                           .era = call_of(row)->era };
    return true;
}

MC_GETTER(stack)
{
    KtStackId id = call_of(row)->stack;

    v->stack = mc_stack(o->ctx->tracer, id);
    v->stack.stop = GS_STOP_END;
    return id.v && (v->stack.n || o->json);
}

#define OF(flag_, ...) \
    MC_IF_VIA(McCallRow, view.call, flags, .mask = KT_CALL_##flag_, \
              __VA_ARGS__)

static const McColumn call_columns[] = {
    MC_KEY("function", McCallRow, name.name, TEXT, " %(", "its name"),
    MC_KEY("module", McCallRow, name.module, WORD, NULL,
           "of the function", .flags = MC_OMIT),
    MC_GET("args_from", get_args_from, WORD, NULL, "types or registers"),
    MC_PUT("args", put_args, "%)", "name and value of each argument"),
    MC_PUT("regs", put_registers, NULL, "words of the registers"),
    MC_VIA("ret", McCallRow, view.call, result, HEX, NULL,
           "word of the register of the result", OF(UNFINISHED, .no = true)),
    MC_PUT("deref", put_derefs, NULL,
           "name, type and value of each expression of --deref, null if it "
           "could not be read", .get = get_derefs, .flags = MC_OMIT),
    MC_PUT("result", put_result, " = %", "the result",
           .get = get_result, .flags = MC_OMIT),
    MC_GET("returned", get_returned, YES_NO, NULL, "yes or no"),
    MC_VIA("took_ns", McCallRow, view.call, took_ns, NUMBER, NULL,
           "duration", OF(UNFINISHED, .no = true)),
    MC_ONLY_TEXT(" not returned", OF(UNFINISHED)),
    MC_VIA("injected", McCallRow, view.call, rule, NUMBER,
           " INJECTED rule=%", "number of the fault rule",
           OF(INJECTED)),
    MC_GET(NULL, get_took_us, NUMBER, " %us", NULL, .when = is_timed),
    MC_GET("irq", get_irq, YES_NO, NULL, "yes, no or null"),
    MC_ONLY_TEXT(" irq", OF(IRQ)),
    MC_GET("caller", get_caller, CALLER, " <- %", "who called"),
    MC_GET("stack", get_stack, STACK, " stack[%]",
           "with --stack: the stack", .flags = MC_OMIT),
    MC_END
};
const McObject mc_call_object = {
    "call", "ka calls: a call", { where_columns, call_columns },
};

void mc_print_call(McOut *o, const McCallRow *row)
{
    mc_print(o, mc_call_is_mark(row) ? &mc_session_object : &mc_call_object,
             row);
}
