/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of events: see block-row.h. */
#include "monitor-cmds/output/block-row.h"

typedef struct Row {
    const KtEvent *ev;
    const KtTracedBlock *b;
} Row;

static const KtEvent *event_of(const void *row)
{
    return ((const Row *)row)->ev;
}

/* ---- words --------------------------------------------------------------- */

static const char *kind_name(unsigned kind)
{
    static const char *const names[] = {
        [KT_EV_ALLOC] = "alloc", [KT_EV_FREE] = "free",
        [KT_EV_RESIZE] = "resize", [KT_EV_RCU_QUEUE] = "rcu",
        [KT_EV_GAP] = "gap", [KT_EV_DESTROY] = "destroy",
        [KT_EV_ACCESS] = "access",
    };

    return kind < G_N_ELEMENTS(names) && names[kind] ? names[kind] : "?";
}

MC_GETTER(kind)
{
    const KtEvent *ev = event_of(row);

    v->s = kt_event_removes(ev) ? "remove" : kind_name(ev->kind);
    return true;
}

static const char *family_name(unsigned family)
{
    static const char *const names[] = {
        "any", "kfree", "cache", "vfree", "percpu", "pages", "kmalloc",
        "zone",
    };

    return family < G_N_ELEMENTS(names) ? names[family] : "?";
}

/* ---- numbers ------------------------------------------------------------- */

MC_GETTER(us)
{
    v->u = event_of(row)->us;
    return true;
}

MC_GETTER(cpu)
{
    v->u = event_of(row)->cpu;
    return true;
}

MC_GETTER(hook)
{
    v->s = kt_tracer_hook_name(o->ctx->tracer, event_of(row)->hook);
    return v->s && *v->s;
}

static McStack stack_of(const McOut *o, const KtEvent *ev)
{
    McStack stack = mc_stack(o->ctx->tracer, ev->stack);

    stack.exact = ev->kind == KT_EV_ACCESS;
    return stack;
}

MC_GETTER(stack)
{
    v->stack = stack_of(o, event_of(row));
    return true;
}

/* ---- which events have them ---------------------------------------------- */

/* The long form has the stack on lines of its own. */
MC_WHEN(has_stack)
{
    return event_of(row)->kind != KT_EV_GAP && !o->long_form;
}

/* ---- the tables ---------------------------------------------------------- */

#define E(key_, member_, look_, text_, help_, ...) \
    MC_VIA(key_, Row, ev, member_, look_, text_, help_, __VA_ARGS__)
#define OF(kind_, ...) \
    MC_IF_VIA(Row, ev, kind, .one_of = 1u << KT_EV_##kind_, __VA_ARGS__)
#define NO_GAP OF(GAP, .no = true)
#define B(key_, member_, look_, text_, help_, ...) \
    MC_VIA(key_, Row, b, member_, look_, text_, help_, .flags = MC_OMIT, \
           MC_IF_VIA(Row, b, known), __VA_ARGS__)

static const McColumn event_columns[] = {
    E("seq", seq, NUMBER, NULL, "number of the event"),
    MC_GET("us", get_us, NUMBER, "%12us ", "time"),
    MC_GET("kind", get_kind, WORD, "%-6 ",
           "alloc, free, remove (the guest lost this memory, and the blocks "
           "in it ended), resize, rcu, destroy, access, or gap, which has no "
           "further keys"),
    E("va", va, ADDRESS, "%", "address", NO_GAP),
    E("size", size, BYTES, " (%5", "requested bytes", NO_GAP),
    E("actual", actual, BYTES, "/%5)",
      "reserved bytes (access: distance of the first bad byte)", NO_GAP),
    E("gfp", gfp, NUMBER, NULL, "gfp flags of the call", NO_GAP),
    E("layer", layer, WORD, " layer=%", "of an alloc",
      .name = kt_layer_name, OF(ALLOC)),
    E("family", family, WORD, " family=%",
      "of a free, the allocator whose function was called",
      .name = family_name, OF(FREE)),
    E("access", flags, ACCESS, " access=%", "r or w",
      .mask = KT_EVF_WRITE, OF(ACCESS)),
    E("cache", cache, CACHE, " cache=%", "kmem_cache", .flags = MC_OMIT,
      NO_GAP),
    E("comm", task, COMM, " comm=%", "name of the task", .flags = MC_OMIT,
      NO_GAP),
    E("pid", task, PID, " pid=%", "its pid", .flags = MC_OMIT, NO_GAP),
    MC_GET("cpu", get_cpu, NUMBER, " cpu=%", "vCPU", NO_GAP),
    MC_GET("hook", get_hook, WORD, " hook=%", "function that was called",
           .flags = MC_OMIT, NO_GAP),
    E("flags", flags, NUMBER, NULL, "enum KtEventFlag of ka's header",
      NO_GAP),
    MC_GET("stack", get_stack, STACK, " [%]", "stack, leaf first",
           .when = has_stack),
    E("stop", stack, STOP, NULL,
      "why the backtrace has no more frames, such as user or unknown-pc",
      .flags = MC_OMIT, NO_GAP),
    MC_END
};

static const McColumn block_columns[] = {
    B("block_size", size, BYTES, " of (%5)",
      "requested bytes of the block that the event is about, if a block was "
      "there before"),
    B("block_layer", layer, WORD, " layer=%", "its layer",
      .name = kt_layer_name),
    B("block_cache", cache, CACHE, " cache=%", "its kmem_cache"),
    B("block_comm", task, COMM, " comm=%", "name of the task that allocated"),
    B("block_pid", task, PID, " pid=%", "pid of the task that allocated"),
    MC_END
};

const McObject mc_event_object = {
    "event", "ka events: an event", { event_columns },
};
const McObject mc_traced_object = {
    "traced", "ka trace: an event", { event_columns, block_columns },
};

void mc_print_event(McOut *o, const KtEvent *ev, const KtTracedBlock *b)
{
    mc_print(o, b ? &mc_traced_object : &mc_event_object, &(Row) { ev, b });
    if (ev->kind != KT_EV_GAP && o->long_form) {
        McStack stack = stack_of(o, ev);

        mc_long_stack(o, &stack);
    }
}

/* ---- between events ------------------------------------------------------ */

typedef struct Control {
    const char *kind;
    uint64_t value;
} Control;

const McObject mc_control_object = MC_OBJECT("mark",
    "ka events, ka trace and ka log: a change of the boot or of the "
    "recording, between the rows",
    MC_COLUMN(Control, kind, WORD, "-- %",
              "reset, clear, complete, enabled, hole or load; of ka log "
              "evicted and next, too"),
    MC_COLUMN(Control, value, NUMBER, " %",
              "of complete and enabled 1 or 0, of hole the number of missing "
              "events, of evicted the lines that ka had to remove before they "
              "were asked for, of next the number for --after"));

void mc_print_control(McOut *o, const char *name, uint64_t value)
{
    mc_print(o, &mc_control_object, &(Control) { name, value });
}
