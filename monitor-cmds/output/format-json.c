/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows as JSON lines (RFC 8259): one object a line, with the keys of
 * fields.def.
 *
 * Called by the commands through mc_format_json; no lock; any thread, but one
 * thread at a time for each McOut.
 *
 * The output is ASCII, whatever bytes a name of the guest has: control
 * characters, quotes and backslashes are escaped, and every byte from 7f on
 * becomes \u00NN. Addresses and program counters are strings, 0x and hex;
 * sizes, times and counts are numbers. A key that does not apply is omitted;
 * the value of a key that applies but is unknown is null.
 */
#include "monitor-cmds/output/json-parts.h"

static void put_stacks(McOut *o, const McField *f, const McValue *v)
{
    mc_json_stack(o, v->stack, v->exact, NULL);
    if (o->symbols) {
        g_string_append_printf(o->line, ",\"%s_symbols\":", f->key);
        mc_json_stack(o, v->stack, v->exact, o->symbols);
    }
    mc_json_stack_at(o, f->key, v->stack, v->exact);
}

static void put_list(GString *line, const char *const *word)
{
    g_string_append_c(line, '[');
    for (unsigned i = 0; word[i]; i++) {
        g_string_append(line, i ? "," : "");
        mc_json_string(line, word[i]);
    }
    g_string_append_c(line, ']');
}

static void put_value(McOut *o, const McField *f, const McValue *v)
{
    char letter[2] = { v->u, 0 };

    switch (f->type) {
    case MC_TYPE_LETTER:
        mc_json_string(o->line, letter);
        break;
    case MC_TYPE_ADDR:
        mc_json_address(o->line, v->u);
        break;
    case MC_TYPE_HEX:
        g_string_append_printf(o->line, "\"0x%" PRIx64 "\"", v->u);
        break;
    case MC_TYPE_MARGIN:
    case MC_TYPE_SIZE:
    case MC_TYPE_US:
    case MC_TYPE_INDEX:
    case MC_TYPE_NUMBER:
        mc_put_decimal(o->line, v->u);
        break;
    case MC_TYPE_STACK:
    case MC_TYPE_TAIL:
        put_stacks(o, f, v);
        break;
    case MC_TYPE_WORD:
    case MC_TYPE_TEXT:
    case MC_TYPE_NAME:
    case MC_TYPE_LABEL:
        mc_json_string(o->line, v->s);
        break;
    case MC_TYPE_LIST:
        put_list(o->line, (const char *const *)v->list);
        break;
    case MC_TYPE__COUNT:
        break;
    }
}

static McObjectId row_type(const McRow *row)
{
    if (row->place) {
        return row->place->reg ? MC_OBJ_REGISTER : MC_OBJ_WORD;
    }
    return row->slot ? MC_OBJ_SLOT : row->error ? MC_OBJ_ERROR : MC_OBJ_BLOCK;
}

static void json_row(McOut *o, const McRow *row)
{
    mc_json_begin(o, row_type(row));
    for (unsigned i = 0; i < MC_FIELD__COUNT; i++) {
        const McField *f = &mc_fields[i];
        /* an error always has its address, its count and its identity; only
         * the text saves the space */
        bool verbose = o->verbose || f->group == MC_GROUP_AWAY ||
                       f->group == MC_GROUP_REPEATS ||
                       f->group == MC_GROUP_V_IDENTITY;
        McValue v = { 0 };

        if (!mc_field_applies(f, row, verbose)) {
            continue;
        }
        mc_json_key(o->line, f->key);
        if (f->get(o->ctx->tracer, row, &v)) {
            put_value(o, f, &v);
        } else {
            g_string_append(o->line, "null");
        }
    }
    mc_json_end(o);
}

static void json_miss(McOut *o, uint64_t va)
{
    mc_json_begin(o, MC_OBJ_MISS);
    mc_json_key(o->line, "va");
    mc_json_address(o->line, va);
    mc_json_end(o);
}

static void json_past(McOut *o, uint64_t va, uint64_t n)
{
    mc_json_begin(o, MC_OBJ_PAST);
    mc_json_key(o->line, "va");
    mc_json_address(o->line, va);
    mc_json_number(o->line, "past_lives", n);
    mc_json_end(o);
}

static void json_more(McOut *o, uint64_t n)
{
    g_string_append(o->line, "{\"more\":");
    mc_put_decimal(o->line, n);
    mc_json_end(o);
}

/* Print nothing: a listing without rows has no objects. */
static void json_none(McOut *o, const char *text)
{
}

static void json_clean(McOut *o, uint64_t events, const char *text)
{
    mc_json_begin(o, MC_OBJ_CLEAN);
    mc_json_number(o->line, "events", events);
    mc_json_key(o->line, "text");
    mc_json_string(o->line, text);
    mc_json_end(o);
}

static void json_fail(McOut *o, const char *text)
{
    g_string_append(o->line, "{\"fail\":");
    mc_json_string(o->line, text);
    mc_json_end(o);
}

static void json_stat_group(McOut *o, const char *name)
{
    if (!o->stat_open) {
        mc_json_begin(o, MC_OBJ_STAT);
        o->stat_open = true;
    }
}

static void json_stat(McOut *o, const McStat *s)
{
    mc_json_key(o->line, s->key);
    if (s->unknown) {
        g_string_append(o->line, "null");
    } else if (s->list) {
        put_list(o->line, s->list);
    } else if (s->s) {
        mc_json_string(o->line, s->s);
    } else if (s->hex) {
        g_string_append_printf(o->line, "\"0x%" PRIx64 "\"", s->u);
    } else {
        mc_put_decimal(o->line, s->u);
    }
}

static void json_stat_end(McOut *o)
{
    o->stat_open = false;
    mc_json_end(o);
}

static void json_hook(McOut *o, const McHookStatus *h)
{
    mc_json_begin(o, MC_OBJ_HOOK);
    mc_json_key(o->line, "name");
    mc_json_string(o->line, h->name);
    mc_json_key(o->line, "va");
    if (h->va) {
        mc_json_address(o->line, h->va);
        mc_json_number(o->line, "hits", h->hits);
    } else {
        g_string_append(o->line, "null");
        mc_json_text(o->line, "note", h->note);
    }
    mc_json_text(o->line, "symbol", h->symbol);
    mc_json_text(o->line, "from", h->from);
    mc_json_text(o->line, "args_from", h->args_from);
    mc_json_end(o);
}

static void put_key_number(McOut *o, const char *key, uint64_t v)
{
    mc_json_number(o->line, key, v);
}

static void json_event(McOut *o, const KtEvent *ev, const KtTracedBlock *b)
{
    mc_json_begin(o, b ? MC_OBJ_TRACED : MC_OBJ_EVENT);
    mc_json_number(o->line, "seq", ev->seq);
    mc_json_number(o->line, "us", ev->us);
    mc_json_word(o, "kind", mc_event_name(ev->kind));
    if (ev->kind != KT_EV_GAP) {
        mc_json_key(o->line, "va");
        mc_json_address(o->line, ev->va);
        mc_json_number(o->line, "size", ev->size);
        mc_json_number(o->line, "actual", ev->actual);
        mc_json_number(o->line, "gfp", ev->gfp);
        mc_walk_event(o, ev, &(McWalk) { mc_json_word, put_key_number });
        mc_json_number(o->line, "flags", ev->flags);
        mc_json_event_stack(o, ev->stack, ev->kind == KT_EV_ACCESS);
    }
    if (b) {
        mc_walk_traced(o, b, &(McWalk) { mc_json_word, put_key_number });
    }
    mc_json_end(o);
}

static void json_module(McOut *o, const McModule *m)
{
    const KtModuleReport *r = m->report;
    const struct {
        const char *key;
        uint64_t value;
    } number[] = {
        { "id", r->id }, { "unloaded_us", r->us }, { "blocks", m->blocks },
        { "bytes", m->bytes }, { "withdrawn", m->withdrawn },
        { "bad_frees", r->bad_frees }, { "unsure", r->unsure },
        { "not_listed", r->not_kept },
    };

    mc_json_begin(o, MC_OBJ_MODULE);
    mc_json_text(o->line, "name", r->name);
    mc_json_key(o->line, "loaded_us");
    if (r->loaded_us) {
        mc_put_decimal(o->line, r->loaded_us);
    } else {
        g_string_append(o->line, "null");
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(number); i++) {
        mc_json_number(o->line, number[i].key, number[i].value);
    }
    if (m->classified) {
        mc_json_number(o->line, "leaked", m->leaked);
        mc_json_number(o->line, "leaked_bytes", m->leaked_bytes);
        mc_json_number(o->line, "kept", m->kept);
        mc_json_number(o->line, "kept_bytes", m->kept_bytes);
    }
    if (m->filtered) {
        mc_json_number(o->line, "matching", m->matching);
    }
    mc_json_number(o->line, "pages", !m->no_pages);
    mc_json_end(o);
}

static void json_facts(McOut *o, uint64_t va, const McFact *fact, unsigned n)
{
    mc_json_begin(o, MC_OBJ_WHATIS);
    mc_json_key(o->line, "va");
    mc_json_address(o->line, va);
    for (unsigned i = 0; i < n; i++) {
        mc_json_text(o->line, fact[i].key, fact[i].text);
    }
    mc_json_end(o);
}

static void json_control(McOut *o, const char *name, uint64_t value)
{
    mc_json_begin(o, MC_OBJ_MARK);
    mc_json_word(o, "kind", name);
    mc_json_number(o->line, "value", value);
    mc_json_end(o);
}

static void json_ref(McOut *o, const KtRef *r, uint64_t at, const char *symbol)
{
    mc_json_begin(o, MC_OBJ_REF);
    mc_json_word(o, "place", kt_place_name(r->place));
    if (r->place == KT_PLACE_REGISTER) {
        mc_json_word(o, "register", r->name);
        mc_json_number(o->line, "cpu", r->number);
    } else {
        mc_json_key(o->line, "va");
        mc_json_address(o->line, r->va);
    }
    if (r->place == KT_PLACE_STACK || r->place == KT_PLACE_PERCPU) {
        mc_json_number(o->line, r->place == KT_PLACE_STACK ? "pid" : "cpu",
                       r->number);
    }
    mc_json_word(o, "symbol", symbol);
    mc_json_word(o, "ref", at ? "interior" : "start");
    mc_json_key(o->line, "ref_at");
    g_string_append_printf(o->line, "\"0x%" PRIx64 "\"", at);
    mc_json_end(o);
}

static void json_sum(McOut *o, McObjectId id, const McStat *figure,
                     unsigned n, const char *text)
{
    mc_json_begin(o, id);
    for (unsigned i = 0; i < n; i++) {
        json_stat(o, &figure[i]);
    }
    mc_json_word(o, "text", text);
    mc_json_end(o);
}

const McFormat mc_format_json = {
    .row = json_row,
    .miss = json_miss,
    .past = json_past,
    .more = json_more,
    .none = json_none,
    .clean = json_clean,
    .fail = json_fail,
    .stat_group = json_stat_group,
    .stat = json_stat,
    .stat_end = json_stat_end,
    .hook = json_hook,
    .module = json_module,
    .facts = json_facts,
    .event = json_event,
    .mark = json_control,
    .top_begin = mc_json_top_begin,
    .top_row = mc_json_top_row,
    .top_note = mc_json_top_note,
    .stray = mc_json_stray,
    .point = mc_json_mark,
    .ref = json_ref,
    .log = mc_json_log,
    .log_event = mc_json_log,
    .watched = mc_json_watched,
    .call = mc_json_call,
    .call_request = mc_json_call_request,
    .call_point = mc_json_call_point,
    .sum = json_sum,
};
