/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls as trace events in JSON, for Perfetto, chrome://tracing and speedscope:
 *
 *     [
 *     {"ph":"M","pid":6416,"tid":6416,"name":"thread_name","args":{...}},
 *     {"ph":"X","ts":805997615.000,"dur":3.000,"pid":6416,"tid":6416, ...},
 *     {"ph":"B", ...}   a call that has not returned
 *     {"ph":"i", ...}   begin and end of a session
 *     ]
 *
 * An event is one line, and every line but the last event's ends with ",", so a
 * file that was cut after a line can be read. Values of 64 bits are strings: a
 * number of JSON would lose bits.
 *
 * The idle task has pid 0 on each vCPU; it gets a thread of its own for each.
 * Each key of "args" is there once: "caller" and "result" are ours, and an
 * argument of that name is "caller#2".
 */
#include "monitor-cmds/output/format-calls.h"

#define IDLE_TID 0x40000000u

typedef struct Chrome {
    McOut *o;
    GHashTable *named;          /* threads whose name was printed */
    bool any;
} Chrome;

static uint32_t tid_of(const McCallRow *row)
{
    return row->has_task && row->pid ? row->pid :
                                       IDLE_TID + row->view.call->cpu;
}

static void begin_event(Chrome *c)
{
    if (c->any) {
        g_string_append_c(c->o->line, ',');
        mc_out_end_line(c->o);
    }
    c->any = true;
}

static void put_thread(Chrome *c, const McCallRow *row)
{
    uint32_t tid = tid_of(row);
    g_autofree char *idle = g_strdup_printf("swapper/%u",
                                            row->view.call->cpu);

    if (!g_hash_table_add(c->named, GUINT_TO_POINTER(tid))) {
        return;
    }
    begin_event(c);
    g_string_append_printf(c->o->line, "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,"
                           "\"name\":\"thread_name\",\"args\":{\"name\":",
                           row->has_task ? row->pid : 0, tid);
    mc_json_string(c->o->line, tid >= IDLE_TID ? idle : row->comm);
    g_string_append(c->o->line, "}}");
}

static void put_time(GString *s, const char *key, uint64_t ns)
{
    g_string_append_printf(s, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000,
                           ns % 1000);
}

static void put_head(Chrome *c, const McCallRow *row, const char *phase,
                     const char *name)
{
    g_string_append_printf(c->o->line, "{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u",
                           phase, row->has_task ? row->pid : 0, tid_of(row));
    put_time(c->o->line, "ts", row->view.call->start_ns);
    g_string_append(c->o->line, ",\"name\":");
    mc_json_string(c->o->line, name);
}

static void put_mark(Chrome *c, const McCallRow *row)
{
    g_autofree char *module = mc_call_mark_module(row);
    g_autofree char *name = g_strdup_printf(
        "%s %s", module,
        row->view.call->flags & KT_CALL_BEGIN ? "begins" : "ends");

    put_head(c, row, "i", name);
    g_string_append(c->o->line, ",\"cat\":\"session\",\"s\":\"g\"}");
}

/** struct Args - the object "args" of an event. @keys: (owned strings) those
 *  that it has */
typedef struct Args {
    GString *s;
    GHashTable *keys;
} Args;

/* (owned) Return @name, or "@name#2" and so on if there is such a key. */
static char *new_key(Args *a, const char *name)
{
    char *key = g_strdup(name);

    for (unsigned n = 2; g_hash_table_contains(a->keys, key); n++) {
        g_free(key);
        key = g_strdup_printf("%s#%u", name, n);
    }
    return key;
}

static void put_arg(void *opaque, const char *name, const char *value)
{
    Args *a = opaque;
    char *key = new_key(a, name);

    mc_json_string(a->s, key);
    g_string_append_c(a->s, ':');
    mc_json_string(a->s, value);
    g_string_append_c(a->s, ',');
    g_hash_table_add(a->keys, key);
}

static void put_deref(void *opaque, const KtCallDeref *d, const char *value)
{
    put_arg(opaque, gs_deref_value(d->expr)->name, value);
}

static void put_args(GString *s, const McCallRow *row)
{
    g_autoptr(GHashTable) keys = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                       g_free, NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    Args a = { s, keys };

    g_hash_table_add(keys, g_strdup("caller"));
    g_hash_table_add(keys, g_strdup("result"));
    mc_call_foreach_arg(row, put_arg, &a);
    if (mc_put_call_result(text, row)) {
        g_string_append(s, "\"result\":");
        mc_json_string(s, text->str);
        g_string_append_c(s, ',');
    }
    mc_call_foreach_deref(row, put_deref, &a);
    g_string_truncate(text, 0);
    mc_put_call_caller(text, row);
    g_string_append(s, "\"caller\":");
    mc_json_string(s, text->str + 3);
}

static void put_call(Chrome *c, const McCallRow *row)
{
    const KtCall *call = row->view.call;
    bool open = call->flags & KT_CALL_UNFINISHED;
    GString *s = c->o->line;

    put_head(c, row, open ? "B" : "X", row->name.name);
    if (!open) {
        put_time(s, "dur", call->took_ns);
    }
    g_string_append_printf(s, ",\"cat\":\"%s\",\"args\":{",
                           call->flags & KT_CALL_INJECTED ? "injected" :
                                                            "call");
    put_args(s, row);
    g_string_append(s, "}}");
}

void mc_calls_as_chrome(McOut *o, const McCallList *list)
{
    g_autoptr(GHashTable) named = g_hash_table_new(NULL, NULL);
    Chrome c = { .o = o, .named = named };

    mc_out_printf(o, "[");
    for (unsigned i = 0; i < list->rows->len && !o->closed; i++) {
        const McCallRow *row = &g_array_index(list->rows, McCallRow, i);

        put_thread(&c, row);
        begin_event(&c);
        if (mc_call_is_mark(row)) {
            put_mark(&c, row);
        } else {
            put_call(&c, row);
        }
    }
    if (c.any) {
        mc_out_end_line(o);
    }
    mc_out_printf(o, "]");
}
