/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows as JSON lines: one object a line, see row.h and table/put.h. Called on
 * the thread of a command; no locks.
 *
 * Addresses and program counters are strings, 0x and hex; sizes, times and
 * counts are numbers. A key that does not apply is omitted; the value of a key
 * that applies but is unknown is null.
 */
#include "monitor-cmds/output/row.h"

void mc_json_open(McOut *o, const McObject *object)
{
    g_string_append(o->line, "{\"schema\":" G_STRINGIFY(MC_JSON_SCHEMA)
                    ",\"type\":\"");
    g_string_append(o->line, object->type);
    g_string_append_c(o->line, '"');
}

/* ---- stacks -------------------------------------------------------------- */

static void put_names(McOut *o, const McStack *stack)
{
    for (unsigned i = 0; i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);

        mc_json_next(o->line);
        mc_json_string(o->line, mc_frame_name(o, &frame)->full);
    }
}

/* Append the addresses; @at: as debuggers look them up. */
static void put_addresses(McOut *o, const McStack *stack, bool at)
{
    for (unsigned i = 0; i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);

        mc_json_next(o->line);
        mc_json_address(o->line, !at ? frame.pc :
                        mc_frame_at(mc_symbols(o->ctx), &frame));
    }
}

static void put_stack(McOut *o, const McColumn *c, const McStack *stack)
{
    g_string_append_c(o->line, '[');
    put_addresses(o, stack, false);
    if (o->symbols) {
        g_string_append_printf(o->line, "],\"%s_symbols\":[", c->key);
        put_names(o, stack);
    }
    if (o->pcs) {
        g_string_append_printf(o->line, "],\"%s_at\":[", c->key);
        put_addresses(o, stack, true);
    }
    g_string_append_c(o->line, ']');
}

static void put_caller(McOut *o, const McColumn *c, const McFrame *f)
{
    if (!f->pc) {
        g_string_append(o->line, "null");
        return;
    }
    mc_json_address(o->line, f->pc);
    if (o->symbols) {
        g_string_append_printf(o->line, ",\"%s_symbol\":", c->key);
        mc_json_string(o->line, mc_frame_name(o, f)->full);
    }
    if (o->pcs) {
        g_string_append_printf(o->line, ",\"%s_at\":", c->key);
        mc_json_address(o->line, mc_frame_at(mc_symbols(o->ctx), f));
    }
}

/* ---- values -------------------------------------------------------------- */

static void put_hex(GString *s, uint64_t v)
{
    g_string_append(s, "\"0x");
    mc_put_hex(s, v, 1);
    g_string_append_c(s, '"');
}

static void put_list(GString *s, const char *const *word)
{
    g_string_append_c(s, '[');
    for (unsigned i = 0; word[i]; i++) {
        mc_json_next(s);
        mc_json_string(s, word[i]);
    }
    g_string_append_c(s, ']');
}

static void put_number(GString *s, McLook look, uint64_t u)
{
    const char letter[2] = { (char)u, 0 };

    switch (look) {
    case MC_LOOK_INTEGER:
    case MC_LOOK_DIFFERENCE:
        g_string_append_printf(s, "%" PRId64, (int64_t)u);
        break;
    case MC_LOOK_HEX:
    case MC_LOOK_POINTER:
        put_hex(s, u);
        break;
    case MC_LOOK_ADDRESS:
        mc_json_address(s, u);
        break;
    case MC_LOOK_YES_NO:
        mc_json_string(s, u ? "yes" : "no");
        break;
    case MC_LOOK_ACCESS:
        mc_json_string(s, u ? "w" : "r");
        break;
    case MC_LOOK_LETTER:
        mc_json_string(s, letter);
        break;
    default:
        mc_put_decimal(s, u);
        break;
    }
}

static void put_value(McOut *o, const McColumn *c, McValue *v, const void *row)
{
    GString *s = o->line;

    switch (c->look) {
    case MC_LOOK_CUSTOM:
        c->put(o, s, row, true);
        break;
    case MC_LOOK_STACK:
    case MC_LOOK_TAIL:
        put_stack(o, c, &v->stack);
        break;
    case MC_LOOK_FRAMES:
        mc_put_text_value(o, o->word, c, v);
        mc_json_string(s, o->word->str);
        g_string_truncate(o->word, 0);
        break;
    case MC_LOOK_CALLER:
        put_caller(o, c, &v->frame);
        break;
    case MC_LOOK_LIST:
        put_list(s, v->list);
        break;
    case MC_LOOK_WORD:
    case MC_LOOK_CHARS:
    case MC_LOOK_TEXT:
    case MC_LOOK_STOP:
    case MC_LOOK_COMM:
    case MC_LOOK_CACHE:
    case MC_LOOK_HOOK:
    case MC_LOOK_LAYER:
        mc_json_string(s, v->s);
        break;
    default:
        put_number(s, c->look, v->u);
        break;
    }
}

void mc_json_columns(McOut *o, const McColumn *columns, const void *row)
{
    for (const McColumn *c = columns; c->key || c->text; c++) {
        McValue v;
        bool known;

        if (!c->key || !mc_applies(o, c, row)) {
            continue;
        }
        v.u = 0;
        known = mc_value(o, c, row, &v);
        if (known) {
            mc_json_key(o->line, c->key);
            put_value(o, c, &v, row);
        } else if (!(c->flags & MC_OMIT)) {
            mc_json_key(o->line, c->key);
            g_string_append(o->line, "null");
        }
    }
}
