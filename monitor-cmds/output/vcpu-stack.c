/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stack of a vCPU as text, a frame a line, or as JSON. Called by ka bt, on
 * its thread.
 *
 *     vcpu0 3 frames, end
 *     #0  ffffffff81234567 pv_native_safe_halt+0xb
 *     #1  ffffffff81345678 default_idle+0x9
 *     ...
 */
#include "monitor-cmds/output/vcpu-stack.h"
#include "monitor-cmds/parse/expr.h"

static bool is_json(const McOut *o)
{
    return o->format == &mc_format_json;
}

/* The first frame is where the vCPU stands. */
static McFrame frame_of(const McStack *stack, unsigned i)
{
    McFrame frame = mc_frame(stack, i);

    frame.exact = !i;
    return frame;
}

/* ---- text --------------------------------------------------------------- */

static void text_frame(McOut *o, const McStack *stack, unsigned i)
{
    const GsKernel *k = mc_symbols(o->ctx);
    McFrame frame = frame_of(stack, i);

    g_string_append_printf(o->line, "#%-3u", i);
    mc_put_hex(o->line, frame.pc, 16);
    if (k) {
        g_string_append_c(o->line, ' ');
        mc_put_pc(o->line, k, &frame);
    }
    mc_out_end_line(o);
}

/* ---- JSON --------------------------------------------------------------- */

static void begin(McOut *o, unsigned vcpu, const char *stop)
{
    g_string_append_printf(o->line, "{\"schema\":%d,\"type\":\"%s\",\"cpu\":%u,"
                           "\"stop\":", MC_JSON_SCHEMA,
                           mc_objects[MC_OBJ_VCPU_STACK].type, vcpu);
    mc_json_string(o->line, stop);
}

static void json_frames(McOut *o, const McStack *stack, unsigned n,
                        const GsKernel *k)
{
    g_autoptr(GString) word = g_string_new(NULL);

    for (unsigned i = 0; i < n; i++) {
        McFrame frame = frame_of(stack, i);

        g_string_truncate(word, 0);
        if (k) {
            mc_put_pc(word, k, &frame);
        } else {
            g_string_append(word, "0x");
            mc_put_hex(word, frame.pc, 16);
        }
        g_string_append_c(o->line, i ? ',' : '[');
        mc_json_string(o->line, word->str);
    }
    g_string_append(o->line, n ? "]" : "[]");
}

static void json_stack(McOut *o, unsigned vcpu, const McStack *stack,
                       unsigned n)
{
    begin(o, vcpu, gs_stop_name(stack->stop));
    g_string_append(o->line, ",\"stack\":");
    json_frames(o, stack, n, NULL);
    if (mc_symbols(o->ctx)) {
        g_string_append(o->line, ",\"stack_symbols\":");
        json_frames(o, stack, n, mc_symbols(o->ctx));
    }
    g_string_append_c(o->line, '}');
    mc_out_end_line(o);
}

/* ---- both --------------------------------------------------------------- */

void mc_vcpu_stack(McOut *o, unsigned vcpu, const McStack *stack, unsigned n)
{
    n = MIN(n, stack->n);
    if (is_json(o)) {
        json_stack(o, vcpu, stack, n);
        return;
    }
    mc_out_printf(o, "vcpu%u %u frame%s, %s", vcpu, stack->n,
                  stack->n == 1 ? "" : "s", gs_stop_name(stack->stop));
    for (unsigned i = 0; i < n; i++) {
        text_frame(o, stack, i);
    }
    if (n < stack->n) {
        mc_out_printf(o, "... %u more", stack->n - n);
    }
}

void mc_vcpu_no_stack(McOut *o, unsigned vcpu, const char *stop,
                      const char *why)
{
    if (is_json(o)) {
        begin(o, vcpu, stop);
        g_string_append(o->line, ",\"stack\":[]}");
        mc_out_end_line(o);
    } else {
        mc_out_printf(o, "vcpu%u %s", vcpu, why);
    }
}
