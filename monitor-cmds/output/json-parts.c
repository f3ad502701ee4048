/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of JSON objects: see json-parts.h. */
#include "monitor-cmds/output/json-parts.h"

void mc_json_begin(McOut *o, McObjectId id)
{
    g_string_append_printf(o->line, "{\"schema\":%d,\"type\":\"%s\"",
                           MC_JSON_SCHEMA, mc_objects[id].type);
}

void mc_json_end(McOut *o)
{
    g_string_append_c(o->line, '}');
    mc_out_end_line(o);
}

void mc_json_stack(McOut *o, KtStackId id, bool exact,
                   const GsKernel *symbols)
{
    McStack stack = mc_stack(o->ctx->tracer, id);
    g_autoptr(GString) name = g_string_new(NULL);

    stack.exact = exact;
    g_string_append_c(o->line, '[');
    for (unsigned i = 0; i < stack.n; i++) {
        McFrame frame = mc_frame(&stack, i);

        if (i) {
            g_string_append_c(o->line, ',');
        }
        if (symbols) {
            g_string_truncate(name, 0);
            mc_put_pc(name, symbols, &frame);
            mc_json_string(o->line, name->str);
        } else {
            mc_json_address(o->line, frame.pc);
        }
    }
    g_string_append_c(o->line, ']');
}

void mc_json_stack_at(McOut *o, const char *key, KtStackId id, bool exact)
{
    McStack stack = mc_stack(o->ctx->tracer, id);

    if (!o->pcs) {
        return;
    }
    stack.exact = exact;
    g_string_append_printf(o->line, ",\"%s_at\":[", key);
    for (unsigned i = 0; i < stack.n; i++) {
        McFrame frame = mc_frame(&stack, i);

        g_string_append(o->line, i ? "," : "");
        mc_json_address(o->line, mc_frame_at(mc_symbols(o->ctx), &frame));
    }
    g_string_append_c(o->line, ']');
}

void mc_json_word(McOut *o, const char *key, const char *word)
{
    if (word && *word) {
        mc_json_key(o->line, key);
        mc_json_string(o->line, word);
    }
}

void mc_json_event_stack(McOut *o, KtStackId id, bool exact)
{
    McStack stack = mc_stack(o->ctx->tracer, id);

    mc_json_key(o->line, "stack");
    mc_json_stack(o, id, exact, NULL);
    if (o->symbols) {
        mc_json_key(o->line, "stack_symbols");
        mc_json_stack(o, id, exact, o->symbols);
    }
    mc_json_stack_at(o, "stack", id, exact);
    if (stack.n) {
        mc_json_word(o, "stop", gs_stop_name(stack.stop));
    }
}
