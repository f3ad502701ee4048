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
#include "monitor-cmds/output/format.h"

static void put_string(GString *s, const char *text)
{
    g_string_append_c(s, '"');
    for (; *text; text++) {
        unsigned char c = *text;

        if (c == '"' || c == '\\') {
            g_string_append_c(s, '\\');
            g_string_append_c(s, c);
        } else if (c < 0x20 || c >= 0x7f) {
            g_string_append(s, "\\u");
            mc_put_hex(s, c, 4);
        } else {
            g_string_append_c(s, c);
        }
    }
    g_string_append_c(s, '"');
}

void mc_put_json_string(GString *s, const char *text)
{
    put_string(s, text);
}

static void put_address(GString *s, uint64_t va)
{
    g_string_append(s, "\"0x");
    mc_put_hex(s, va, 16);
    g_string_append_c(s, '"');
}

/* Append ,"key": to the object. */
static void put_key(GString *s, const char *key)
{
    g_string_append(s, ",\"");
    g_string_append(s, key);
    g_string_append(s, "\":");
}

static void put_number(GString *s, const char *key, uint64_t v)
{
    put_key(s, key);
    mc_put_decimal(s, v);
}

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

static void put_stack(McOut *o, KtStackId id, const GsKernel *symbols)
{
    McStack stack = mc_stack(o->ctx->tracer, id);
    g_autoptr(GString) name = g_string_new(NULL);

    g_string_append_c(o->line, '[');
    for (unsigned i = 0; i < stack.n; i++) {
        McFrame frame = mc_frame(&stack, i);

        if (i) {
            g_string_append_c(o->line, ',');
        }
        if (symbols) {
            g_string_truncate(name, 0);
            mc_put_pc(name, symbols, &frame);
            put_string(o->line, name->str);
        } else {
            put_address(o->line, frame.pc);
        }
    }
    g_string_append_c(o->line, ']');
}

static void put_stacks(McOut *o, const McField *f, KtStackId id)
{
    put_stack(o, id, NULL);
    if (o->symbols) {
        g_string_append_printf(o->line, ",\"%s_symbols\":", f->key);
        put_stack(o, id, o->symbols);
    }
}

static void put_value(McOut *o, const McField *f, const McValue *v)
{
    char letter[2] = { v->u, 0 };

    switch (f->type) {
    case MC_TYPE_LETTER:
        put_string(o->line, letter);
        break;
    case MC_TYPE_ADDR:
        put_address(o->line, v->u);
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
        put_stacks(o, f, v->stack);
        break;
    case MC_TYPE_WORD:
    case MC_TYPE_NAME:
    case MC_TYPE_LABEL:
        put_string(o->line, v->s);
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
    begin(o, row_type(row));
    for (unsigned i = 0; i < MC_FIELD__COUNT; i++) {
        const McField *f = &mc_fields[i];
        /* an error always has its address; only the text saves the space */
        bool verbose = o->verbose || f->group == MC_GROUP_AWAY;
        McValue v = { 0 };

        if (!mc_field_applies(f, row, verbose)) {
            continue;
        }
        put_key(o->line, f->key);
        if (f->get(o->ctx->tracer, row, &v)) {
            put_value(o, f, &v);
        } else {
            g_string_append(o->line, "null");
        }
    }
    end(o);
}

static void json_miss(McOut *o, uint64_t va)
{
    begin(o, MC_OBJ_MISS);
    put_key(o->line, "va");
    put_address(o->line, va);
    end(o);
}

static void json_past(McOut *o, uint64_t va, uint64_t n)
{
    begin(o, MC_OBJ_PAST);
    put_key(o->line, "va");
    put_address(o->line, va);
    put_number(o->line, "past_lives", n);
    end(o);
}

static void json_more(McOut *o, uint64_t n)
{
    g_string_append(o->line, "{\"more\":");
    mc_put_decimal(o->line, n);
    end(o);
}

/* Print nothing: a listing without rows has no objects. */
static void json_none(McOut *o, const char *text)
{
}

static void json_clean(McOut *o, uint64_t events, const char *text)
{
    begin(o, MC_OBJ_CLEAN);
    put_number(o->line, "events", events);
    put_key(o->line, "text");
    put_string(o->line, text);
    end(o);
}

static void json_fail(McOut *o, const char *text)
{
    g_string_append(o->line, "{\"fail\":");
    put_string(o->line, text);
    end(o);
}

static void json_stat_group(McOut *o, const char *name)
{
    if (!o->stat_open) {
        begin(o, MC_OBJ_STAT);
        o->stat_open = true;
    }
}

static void json_stat(McOut *o, const McStat *s)
{
    put_key(o->line, s->key);
    if (s->unknown) {
        g_string_append(o->line, "null");
    } else if (s->s) {
        put_string(o->line, s->s);
    } else if (s->hex) {
        g_string_append_printf(o->line, "\"0x%" PRIx64 "\"", s->u);
    } else {
        mc_put_decimal(o->line, s->u);
    }
}

static void json_stat_end(McOut *o)
{
    o->stat_open = false;
    end(o);
}

static void put_text(GString *line, const char *key, const char *text)
{
    if (text) {
        put_key(line, key);
        put_string(line, text);
    }
}

static void json_hook(McOut *o, const McHookStatus *h)
{
    begin(o, MC_OBJ_HOOK);
    put_key(o->line, "name");
    put_string(o->line, h->name);
    put_key(o->line, "va");
    if (h->va) {
        put_address(o->line, h->va);
        put_number(o->line, "hits", h->hits);
    } else {
        g_string_append(o->line, "null");
        put_text(o->line, "note", h->note);
    }
    put_text(o->line, "symbol", h->symbol);
    put_text(o->line, "from", h->from);
    put_text(o->line, "args_from", h->args_from);
    end(o);
}

static void put_word(McOut *o, const char *key, const char *word)
{
    if (word && *word) {
        put_key(o->line, key);
        put_string(o->line, word);
    }
}

static void put_key_number(McOut *o, const char *key, uint64_t v)
{
    put_number(o->line, key, v);
}

static void put_event_stack(McOut *o, KtStackId id)
{
    put_key(o->line, "stack");
    put_stack(o, id, NULL);
    if (o->symbols) {
        put_key(o->line, "stack_symbols");
        put_stack(o, id, o->symbols);
    }
}

static void json_event(McOut *o, const KtEvent *ev, const KtTracedBlock *b)
{
    begin(o, b ? MC_OBJ_TRACED : MC_OBJ_EVENT);
    put_number(o->line, "seq", ev->seq);
    put_number(o->line, "us", ev->us);
    put_word(o, "kind", mc_event_name(ev->kind));
    if (ev->kind != KT_EV_GAP) {
        put_key(o->line, "va");
        put_address(o->line, ev->va);
        put_number(o->line, "size", ev->size);
        put_number(o->line, "actual", ev->actual);
        put_number(o->line, "gfp", ev->gfp);
        mc_walk_event(o, ev, &(McWalk) { put_word, put_key_number });
        put_number(o->line, "flags", ev->flags);
        put_event_stack(o, ev->stack);
    }
    if (b) {
        mc_walk_traced(o, b, &(McWalk) { put_word, put_key_number });
    }
    end(o);
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

    begin(o, MC_OBJ_MODULE);
    put_text(o->line, "name", r->name);
    put_key(o->line, "loaded_us");
    if (r->loaded_us) {
        mc_put_decimal(o->line, r->loaded_us);
    } else {
        g_string_append(o->line, "null");
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(number); i++) {
        put_number(o->line, number[i].key, number[i].value);
    }
    if (m->classified) {
        put_number(o->line, "leaked", m->leaked);
        put_number(o->line, "leaked_bytes", m->leaked_bytes);
        put_number(o->line, "kept", m->kept);
        put_number(o->line, "kept_bytes", m->kept_bytes);
    }
    if (m->filtered) {
        put_number(o->line, "matching", m->matching);
    }
    put_number(o->line, "pages", !m->no_pages);
    end(o);
}

static void json_facts(McOut *o, uint64_t va, const McFact *fact, unsigned n)
{
    begin(o, MC_OBJ_WHATIS);
    put_key(o->line, "va");
    put_address(o->line, va);
    for (unsigned i = 0; i < n; i++) {
        put_text(o->line, fact[i].key, fact[i].text);
    }
    end(o);
}

static void json_control(McOut *o, const char *name, uint64_t value)
{
    begin(o, MC_OBJ_MARK);
    put_word(o, "kind", name);
    put_number(o->line, "value", value);
    end(o);
}

/* ---- accounts ------------------------------------------------------------ */

static void put_caller(McOut *o, const McFrame *f)
{
    g_autoptr(GString) name = g_string_new(NULL);

    put_key(o->line, "caller");
    if (!f->pc) {
        g_string_append(o->line, "null");
        return;
    }
    put_address(o->line, f->pc);
    if (o->symbols) {
        put_key(o->line, "caller_symbol");
        mc_put_pc(name, o->symbols, f);
        put_string(o->line, name->str);
    }
}

static void put_or_null(McOut *o, const char *key, const char *text)
{
    put_key(o->line, key);
    if (text && *text) {
        put_string(o->line, text);
    } else {
        g_string_append(o->line, "null");
    }
}

static void put_task(McOut *o, KtTaskId task)
{
    uint32_t pid = 0;
    char comm[17] = "";

    if (kt_tracer_task(o->ctx->tracer, task, &pid, comm)) {
        put_number(o->line, "pid", pid);
    } else {
        put_or_null(o, "pid", NULL);
    }
    put_or_null(o, "comm", comm);
}

static void put_top_key(McOut *o, const McTopTable *t, const McTopRow *row)
{
    const KtAccountKey *key = &row->key;
    KtCacheInfo cache = { 0 };

    switch (t->by) {
    case MC_BY_STACK:
        put_event_stack(o, key->stack);
        break;
    case MC_BY_CACHE:
        kt_tracer_cache(o->ctx->tracer, key->cache, &cache);
        put_or_null(o, "cache", cache.name);
        put_word(o, "layer", key->cache.v ? NULL : kt_layer_name(key->layer));
        break;
    case MC_BY_TASK:
        put_task(o, key->task);
        break;
    case MC_BY_MODULE:
        put_or_null(o, "module", row->module);
        break;
    case MC_BY_SIZE:
        put_number(o->line, "size_from", key->lo);
        put_number(o->line, "size_to", key->hi);
        break;
    default:
        put_caller(o, &(McFrame) { key->pc, 0, key->era });
        break;
    }
}

static void put_columns(McOut *o, const McTopTable *t, const McTopRow *row)
{
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        int64_t v;

        if (!mc_top_shows(t, i, true)) {
            continue;
        }
        put_key(o->line, mc_top_columns[i].key);
        if (!mc_top_value(t, row, i, &v)) {
            g_string_append(o->line, "null");
        } else if (t->diff) {
            g_string_append_printf(o->line, "%" PRId64, v);
        } else {
            mc_put_decimal(o->line, v);
        }
    }
    if (!t->diff) {
        put_number(o->line, "lives", row->ends);
    }
}

static void put_totals(McOut *o, const KtTotals *t)
{
    put_number(o->line, "us", t->us);
    put_number(o->line, "resizes", t->resizes);
    put_number(o->line, "grown", t->grown);
    put_number(o->line, "shrunk", t->shrunk);
    put_number(o->line, "splits", t->splits);
    put_number(o->line, "lost", t->lost);
    put_number(o->line, "lost_asked", t->lost_asked);
    put_number(o->line, "lost_reserved", t->lost_reserved);
    put_number(o->line, "stray", t->stray);
}

static void json_top_begin(McOut *o, McTopTable *t, const GPtrArray *rows,
                           unsigned n)
{
    begin(o, t->diff ? MC_OBJ_DIFF_ALL : MC_OBJ_TOP_ALL);
    put_columns(o, t, &t->all);
    if (!t->diff && t->all.peak_known) {
        put_totals(o, &t->totals);
    }
    if (t->counted) {
        put_number(o->line, "dropped", t->dropped);
    }
    end(o);
}

static void json_top_row(McOut *o, const McTopTable *t, const McTopRow *row)
{
    begin(o, t->diff ? MC_OBJ_DIFF : MC_OBJ_TOP);
    put_top_key(o, t, row);
    put_columns(o, t, row);
    end(o);
}

/* Print nothing: the object "top_all" has these figures as keys. */
static void G_GNUC_PRINTF(2, 3)
json_top_note(McOut *o, const char *format, ...)
{
}

static void json_stray(McOut *o, const KtStray *s, bool by_stack)
{
    McStack stack = mc_stack(o->ctx->tracer, s->stack);
    McFrame caller = mc_caller(&stack);

    begin(o, MC_OBJ_STRAY);
    if (by_stack) {
        put_event_stack(o, s->stack);
    } else {
        put_caller(o, &caller);
    }
    put_number(o->line, "unknown", s->unknown);
    put_number(o->line, "invalid", s->invalid);
    put_number(o->line, "pages", s->pages);
    end(o);
}

static void json_mark(McOut *o, const KtMarkInfo *p)
{
    const KtAccount *a = &p->totals.sum;

    begin(o, MC_OBJ_POINT);
    put_key(o->line, "name");
    put_string(o->line, p->name);
    put_number(o->line, "live", a->reserved - a->freed_reserved);
    put_number(o->line, "blocks", a->allocs - a->frees);
    put_number(o->line, "allocs", a->allocs);
    put_totals(o, &p->totals);
    end(o);
}

static void json_ref(McOut *o, const KtRef *r, uint64_t at, const char *symbol)
{
    begin(o, MC_OBJ_REF);
    put_word(o, "place", kt_place_name(r->place));
    if (r->place == KT_PLACE_REGISTER) {
        put_word(o, "register", r->name);
        put_number(o->line, "cpu", r->number);
    } else {
        put_key(o->line, "va");
        put_address(o->line, r->va);
    }
    if (r->place == KT_PLACE_STACK || r->place == KT_PLACE_PERCPU) {
        put_number(o->line, r->place == KT_PLACE_STACK ? "pid" : "cpu",
                   r->number);
    }
    put_word(o, "symbol", symbol);
    put_word(o, "ref", at ? "interior" : "start");
    put_key(o->line, "ref_at");
    g_string_append_printf(o->line, "\"0x%" PRIx64 "\"", at);
    end(o);
}

static void json_sum(McOut *o, McObjectId id, const McStat *figure,
                     unsigned n, const char *text)
{
    begin(o, id);
    for (unsigned i = 0; i < n; i++) {
        json_stat(o, &figure[i]);
    }
    put_word(o, "text", text);
    end(o);
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
    .top_begin = json_top_begin,
    .top_row = json_top_row,
    .top_note = json_top_note,
    .stray = json_stray,
    .point = json_mark,
    .ref = json_ref,
    .log = mc_json_log,
    .log_event = mc_json_log,
    .call = mc_json_call,
    .call_request = mc_json_call_request,
    .call_point = mc_json_call_point,
    .sum = json_sum,
};
