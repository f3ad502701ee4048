/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of ka calls as JSON: see format-json.c. */
#include "monitor-cmds/output/calls-text.h"

static void begin(McOut *o, McObjectId id)
{
    g_string_append_printf(o->line, "{\"schema\":%d,\"type\":\"%s\"",
                           MC_JSON_SCHEMA, mc_objects[id].type);
}

static void end(McOut *o)
{
    g_string_append_c(o->line, '}');
    mc_out_end_line(o);
}

static void put_key(GString *s, const char *key)
{
    g_string_append_printf(s, ",\"%s\":", key);
}

static void put_word(GString *s, const char *key, const char *word)
{
    put_key(s, key);
    mc_json_string(s, word);
}

static void put_number(GString *s, const char *key, uint64_t v)
{
    put_key(s, key);
    mc_put_decimal(s, v);
}

static void put_where(McOut *o, const McCallRow *row)
{
    put_number(o->line, "us", row->view.call->start_ns / 1000);
    put_number(o->line, "cpu", row->view.call->cpu);
    if (row->has_task) {
        put_number(o->line, "pid", row->pid);
        put_word(o->line, "comm", row->comm);
    }
}

static void put_mark(McOut *o, const McCallRow *row)
{
    g_autofree char *module = mc_call_mark_module(row);

    begin(o, MC_OBJ_SESSION);
    put_where(o, row);
    put_word(o->line, "kind",
             row->view.call->flags & KT_CALL_BEGIN ? "begin" : "end");
    put_word(o->line, "module", module);
    end(o);
}

static void put_arg(void *opaque, const char *name, const char *value)
{
    GString *s = opaque;

    g_string_append(s, s->str[s->len - 1] == '[' ? "{\"name\":" :
                                                   ",{\"name\":");
    mc_json_string(s, name);
    put_word(s, "value", value);
    g_string_append_c(s, '}');
}

static void put_deref(void *opaque, const KtCallDeref *d, const char *value)
{
    GString *s = opaque;
    const GsParam *param = gs_deref_value(d->expr);

    g_string_append(s, g_str_has_suffix(s->str, "}") ? ",{\"name\":" :
                       ",\"deref\":[{\"name\":");
    mc_json_string(s, param->name);
    put_word(s, "type", param->type);
    if (d->state == KT_DEREF_UNREADABLE) {
        put_key(s, "value");
        g_string_append(s, "null}");
    } else {
        put_word(s, "value", value);
        g_string_append_c(s, '}');
    }
}

static void put_derefs(GString *s, const McCallRow *row)
{
    gsize before = s->len;

    mc_call_foreach_deref(row, put_deref, s);
    g_string_append(s, s->len > before ? "]" : "");
}

static void put_function(McOut *o, const KtPointName *name)
{
    put_word(o->line, "function", name->name);
    if (name->module) {
        put_word(o->line, "module", name->module);
    }
    put_word(o->line, "args_from", name->proto ? "types" : "registers");
}

/* The words as the registers had them, for programs. */
static void put_raw(McOut *o, const McCallRow *row)
{
    const KtCall *call = row->view.call;

    put_key(o->line, "regs");
    for (unsigned i = 0; i < call->n_args; i++) {
        g_string_append_printf(o->line, "%s\"0x%" PRIx64 "\"", i ? "," : "[",
                               row->view.args[i]);
    }
    g_string_append(o->line, call->n_args ? "]" : "[]");
    if (!(call->flags & KT_CALL_UNFINISHED)) {
        g_string_append_printf(o->line, ",\"ret\":\"0x%" PRIx64 "\"",
                               call->result);
    }
}

static void put_end_of_call(McOut *o, const McCallRow *row)
{
    const KtCall *call = row->view.call;
    g_autoptr(GString) result = g_string_new(NULL);

    if (mc_put_call_result(result, row)) {
        put_word(o->line, "result", result->str);
    }
    put_word(o->line, "returned",
             call->flags & KT_CALL_UNFINISHED ? "no" : "yes");
    if (!(call->flags & KT_CALL_UNFINISHED)) {
        put_number(o->line, "took_ns", call->took_ns);
    }
    if (call->flags & KT_CALL_INJECTED) {
        put_number(o->line, "injected", call->rule);
    }
    put_key(o->line, "irq");
    g_string_append(o->line, call->flags & KT_CALL_IRQ_UNKNOWN ? "null" :
                             call->flags & KT_CALL_IRQ ? "\"yes\"" : "\"no\"");
}

static void put_stack(McOut *o, const McCallRow *row, bool symbols)
{
    const McStack stack = mc_stack(o->ctx->tracer, row->view.call->stack);
    g_autoptr(GString) name = g_string_new(NULL);

    put_key(o->line, symbols ? "stack_symbols" : "stack");
    for (unsigned i = 0; i < stack.n; i++) {
        const McFrame frame = mc_frame(&stack, i);

        g_string_truncate(name, 0);
        if (symbols) {
            mc_put_pc(name, o->symbols, &frame);
        } else {
            g_string_append_printf(name, "0x%016" PRIx64, frame.pc);
        }
        g_string_append_c(o->line, i ? ',' : '[');
        mc_json_string(o->line, name->str);
    }
    g_string_append(o->line, stack.n ? "]" : "[]");
}

static void put_caller(McOut *o, const McCallRow *row)
{
    g_autoptr(GString) caller = g_string_new(NULL);

    g_string_append_printf(o->line, ",\"caller\":\"0x%016" PRIx64 "\"",
                           row->view.call->caller);
    if (o->symbols) {
        mc_put_call_caller(caller, row);
        put_word(o->line, "caller_symbol", caller->str + sizeof("<- ") - 1);
    }
    if (row->view.call->stack.v) {
        put_stack(o, row, false);
    }
    if (row->view.call->stack.v && o->symbols) {
        put_stack(o, row, true);
    }
}

void mc_json_call(McOut *o, const McCallRow *row)
{
    if (mc_call_is_mark(row)) {
        put_mark(o, row);
        return;
    }
    begin(o, MC_OBJ_CALL);
    put_where(o, row);
    put_function(o, &row->name);
    g_string_append(o->line, ",\"args\":[");
    mc_call_foreach_arg(row, put_arg, o->line);
    g_string_append_c(o->line, ']');
    put_raw(o, row);
    put_derefs(o->line, row);
    put_end_of_call(o, row);
    put_caller(o, row);
    end(o);
}

void mc_json_call_request(McOut *o, const KtWatchInfo *r)
{
    begin(o, MC_OBJ_CALL_REQUEST);
    put_number(o->line, "id", r->id);
    put_word(o->line, "text", r->text);
    put_number(o->line, "points", r->n_points);
    end(o);
}

void mc_json_call_point(McOut *o, const KtPointInfo *p, uint64_t per_second)
{
    begin(o, MC_OBJ_CALL_POINT);
    put_function(o, &p->name);
    g_string_append_printf(o->line, ",\"va\":\"0x%016" PRIx64 "\"", p->va);
    put_number(o->line, "request", p->request);
    put_number(o->line, "calls", p->calls);
    put_number(o->line, "per_second", per_second);
    if (p->n_derefs) {
        put_number(o->line, "derefs", p->n_derefs);
    }
    end(o);
}
