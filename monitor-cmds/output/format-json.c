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

void mc_put_json_string(GString *s, const char *text)
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

void mc_json_address(GString *s, uint64_t va)
{
    g_string_append(s, "\"0x");
    mc_put_hex(s, va, 16);
    g_string_append_c(s, '"');
}

/* Append ,"key": to the object. */
void mc_json_key(GString *s, const char *key)
{
    g_string_append(s, ",\"");
    g_string_append(s, key);
    g_string_append(s, "\":");
}

void mc_json_number(GString *s, const char *key, uint64_t v)
{
    mc_json_key(s, key);
    mc_put_decimal(s, v);
}

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

void mc_json_stack(McOut *o, KtStackId id, const GsKernel *symbols)
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
            mc_put_json_string(o->line, name->str);
        } else {
            mc_json_address(o->line, frame.pc);
        }
    }
    g_string_append_c(o->line, ']');
}

static void put_stacks(McOut *o, const McField *f, KtStackId id)
{
    mc_json_stack(o, id, NULL);
    if (o->symbols) {
        g_string_append_printf(o->line, ",\"%s_symbols\":", f->key);
        mc_json_stack(o, id, o->symbols);
    }
}

static void put_value(McOut *o, const McField *f, const McValue *v)
{
    char letter[2] = { v->u, 0 };

    switch (f->type) {
    case MC_TYPE_LETTER:
        mc_put_json_string(o->line, letter);
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
        put_stacks(o, f, v->stack);
        break;
    case MC_TYPE_WORD:
    case MC_TYPE_NAME:
    case MC_TYPE_LABEL:
        mc_put_json_string(o->line, v->s);
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
        /* an error always has its address; only the text saves the space */
        bool verbose = o->verbose || f->group == MC_GROUP_AWAY;
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
    mc_put_json_string(o->line, text);
    mc_json_end(o);
}

static void json_fail(McOut *o, const char *text)
{
    g_string_append(o->line, "{\"fail\":");
    mc_put_json_string(o->line, text);
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
    } else if (s->s) {
        mc_put_json_string(o->line, s->s);
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

void mc_json_text(GString *line, const char *key, const char *text)
{
    if (text) {
        mc_json_key(line, key);
        mc_put_json_string(line, text);
    }
}

static void json_hook(McOut *o, const McHookStatus *h)
{
    mc_json_begin(o, MC_OBJ_HOOK);
    mc_json_key(o->line, "name");
    mc_put_json_string(o->line, h->name);
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

void mc_json_word(McOut *o, const char *key, const char *word)
{
    if (word && *word) {
        mc_json_key(o->line, key);
        mc_put_json_string(o->line, word);
    }
}

static void put_key_number(McOut *o, const char *key, uint64_t v)
{
    mc_json_number(o->line, key, v);
}

void mc_json_event_stack(McOut *o, KtStackId id)
{
    mc_json_key(o->line, "stack");
    mc_json_stack(o, id, NULL);
    if (o->symbols) {
        mc_json_key(o->line, "stack_symbols");
        mc_json_stack(o, id, o->symbols);
    }
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
        mc_json_event_stack(o, ev->stack);
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

/* ---- accounts ------------------------------------------------------------ */

static void put_caller(McOut *o, const McFrame *f)
{
    g_autoptr(GString) name = g_string_new(NULL);

    mc_json_key(o->line, "caller");
    if (!f->pc) {
        g_string_append(o->line, "null");
        return;
    }
    mc_json_address(o->line, f->pc);
    if (o->symbols) {
        mc_json_key(o->line, "caller_symbol");
        mc_put_pc(name, o->symbols, f);
        mc_put_json_string(o->line, name->str);
    }
}

static void put_or_null(McOut *o, const char *key, const char *text)
{
    mc_json_key(o->line, key);
    if (text && *text) {
        mc_put_json_string(o->line, text);
    } else {
        g_string_append(o->line, "null");
    }
}

static void put_task(McOut *o, KtTaskId task)
{
    uint32_t pid = 0;
    char comm[17] = "";

    if (kt_tracer_task(o->ctx->tracer, task, &pid, comm)) {
        mc_json_number(o->line, "pid", pid);
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
        mc_json_event_stack(o, key->stack);
        break;
    case MC_BY_CACHE:
        kt_tracer_cache(o->ctx->tracer, key->cache, &cache);
        put_or_null(o, "cache", cache.name);
        mc_json_word(o, "layer",
                     key->cache.v ? NULL : kt_layer_name(key->layer));
        break;
    case MC_BY_TASK:
        put_task(o, key->task);
        break;
    case MC_BY_MODULE:
        put_or_null(o, "module", row->module);
        break;
    case MC_BY_SIZE:
        mc_json_number(o->line, "size_from", key->lo);
        mc_json_number(o->line, "size_to", key->hi);
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
        mc_json_key(o->line, mc_top_columns[i].key);
        if (!mc_top_value(t, row, i, &v)) {
            g_string_append(o->line, "null");
        } else if (t->diff) {
            g_string_append_printf(o->line, "%" PRId64, v);
        } else {
            mc_put_decimal(o->line, v);
        }
    }
    if (!t->diff) {
        mc_json_number(o->line, "lives", row->ends);
    }
}

static void put_totals(McOut *o, const KtTotals *t)
{
    mc_json_number(o->line, "us", t->us);
    mc_json_number(o->line, "resizes", t->resizes);
    mc_json_number(o->line, "grown", t->grown);
    mc_json_number(o->line, "shrunk", t->shrunk);
    mc_json_number(o->line, "splits", t->splits);
    mc_json_number(o->line, "lost", t->lost);
    mc_json_number(o->line, "lost_asked", t->lost_asked);
    mc_json_number(o->line, "lost_reserved", t->lost_reserved);
    mc_json_number(o->line, "stray", t->stray);
}

void mc_json_top_begin(McOut *o, McTopTable *t, const GPtrArray *rows,
                       unsigned n)
{
    mc_json_begin(o, t->diff ? MC_OBJ_DIFF_ALL : MC_OBJ_TOP_ALL);
    put_columns(o, t, &t->all);
    if (!t->diff && t->all.peak_known) {
        put_totals(o, &t->totals);
    }
    if (t->counted) {
        mc_json_number(o->line, "dropped", t->dropped);
    }
    mc_json_end(o);
}

void mc_json_top_row(McOut *o, const McTopTable *t, const McTopRow *row)
{
    mc_json_begin(o, t->diff ? MC_OBJ_DIFF : MC_OBJ_TOP);
    put_top_key(o, t, row);
    put_columns(o, t, row);
    mc_json_end(o);
}

/* Print nothing: the object "top_all" has these figures as keys. */
void mc_json_top_note(McOut *o, const char *format, ...)
{
}

void mc_json_stray(McOut *o, const KtStray *s, bool by_stack)
{
    McStack stack = mc_stack(o->ctx->tracer, s->stack);
    McFrame caller = mc_caller(&stack);

    mc_json_begin(o, MC_OBJ_STRAY);
    if (by_stack) {
        mc_json_event_stack(o, s->stack);
    } else {
        put_caller(o, &caller);
    }
    mc_json_number(o->line, "unknown", s->unknown);
    mc_json_number(o->line, "invalid", s->invalid);
    mc_json_number(o->line, "pages", s->pages);
    mc_json_end(o);
}

void mc_json_mark(McOut *o, const KtMarkInfo *p)
{
    const KtAccount *a = &p->totals.sum;

    mc_json_begin(o, MC_OBJ_POINT);
    mc_json_key(o->line, "name");
    mc_put_json_string(o->line, p->name);
    mc_json_number(o->line, "live", a->reserved - a->freed_reserved);
    mc_json_number(o->line, "blocks", a->allocs - a->frees);
    mc_json_number(o->line, "allocs", a->allocs);
    put_totals(o, &p->totals);
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
    .call = mc_json_call,
    .call_request = mc_json_call_request,
    .call_point = mc_json_call_point,
    .sum = json_sum,
};
