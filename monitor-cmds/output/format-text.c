/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows as text, for people, and for tools that split lines at blanks.
 *
 * Called by the commands through mc_format_text; no lock; any thread, but one
 * thread at a time for each McOut. fields.def has the order of the values in a
 * line; this file has the format of each type of value.
 */
#include "monitor-cmds/output/format.h"

#include <string.h>

/* Only this end of a stack is said: the last frame looks like an end. */
#define CUT " (cut: a tracer replaced the return address)"

static void put_frames(McOut *o, const McStack *stack, bool tail)
{
    for (unsigned i = 0; i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);

        if (i || tail) {
            g_string_append_c(o->line, ' ');
        }
        mc_put_pc(o->line, o->symbols, &frame);
    }
    if (stack->n && stack->stop == GS_STOP_REPLACED) {
        g_string_append(o->line, CUT);
    }
}

static void put_stack(McOut *o, KtStackId id, bool exact, bool tail)
{
    McStack stack = mc_stack(o->ctx->tracer, id);

    stack.exact = exact;
    put_frames(o, &stack, tail);
}

void mc_text_stack(McOut *o, KtStackId id, bool exact)
{
    put_stack(o, id, exact, false);
}

void mc_put_padded(GString *s, size_t from, size_t width)
{
    size_t len = s->len - from;

    while (len++ < width) {
        g_string_insert_c(s, from, ' ');
    }
}

static void put_list(GString *line, char *const *text)
{
    for (unsigned i = 0; text[i]; i++) {
        g_string_append_printf(line, "%s%s", i ? "; " : "", text[i]);
    }
}

static void put_value(McOut *o, const McField *f, const McValue *v)
{
    size_t from = o->line->len;

    switch (f->type) {
    case MC_TYPE_LETTER:
        g_string_append_c(o->line, v->u);
        break;
    case MC_TYPE_ADDR:
        mc_put_hex(o->line, v->u, 16);
        break;
    case MC_TYPE_SIZE:
        mc_put_hex(o->line, v->u, 1);
        mc_put_padded(o->line, from, 5);
        break;
    case MC_TYPE_MARGIN:
    case MC_TYPE_HEX:
        mc_put_hex(o->line, v->u, 1);
        break;
    case MC_TYPE_INDEX:
        mc_put_decimal(o->line, v->u);
        mc_put_padded(o->line, from, 4);
        break;
    case MC_TYPE_US:
    case MC_TYPE_NUMBER:
        mc_put_decimal(o->line, v->u);
        break;
    case MC_TYPE_STACK:
    case MC_TYPE_TAIL:
        put_stack(o, v->stack, v->exact, f->type == MC_TYPE_TAIL);
        break;
    case MC_TYPE_WORD:
        mc_put_word(o->line, v->s);
        break;
    case MC_TYPE_TEXT:
        g_string_append(o->line, v->s);
        break;
    case MC_TYPE_NAME:
    case MC_TYPE_LABEL:
        mc_put_word(o->line, v->s);
        while (o->line->len - from < (f->type == MC_TYPE_NAME ? 5 : 8)) {
            g_string_append_c(o->line, ' ');
        }
        break;
    case MC_TYPE_LIST:
        put_list(o->line, v->list);
        break;
    case MC_TYPE__COUNT:
        break;
    }
}

static void put_field(McOut *o, const McField *f, const McRow *row)
{
    McValue v = { 0 };

    g_string_append(o->line, f->before);
    if (f->get(o->ctx->tracer, row, &v)) {
        put_value(o, f, &v);
    } else {
        g_string_append(o->line, f->type == MC_TYPE_SIZE ? "    -" : "-");
    }
    g_string_append(o->line, f->after);
}

void mc_text_fields(McOut *o, const McRow *row, unsigned end)
{
    for (unsigned i = 0; i < end; i++) {
        const McField *f = &mc_fields[i];
        size_t from = o->line->len;

        if (mc_field_applies(f, row, o->verbose)) {
            put_field(o, f, row);
        }
        if (f->type == MC_TYPE_MARGIN) {
            do {
                g_string_append_c(o->line, ' ');
            } while (o->line->len - from < o->margin);
        }
    }
}

static void text_row(McOut *o, const McRow *row)
{
    if (o->long_form) {
        mc_long_row(o, row);
        return;
    }
    mc_text_fields(o, row, MC_FIELD__COUNT);
    mc_out_end_line(o);
}

static void text_miss(McOut *o, uint64_t va)
{
    mc_out_printf(o, "%-*sno block at %016" PRIx64,
                  (int)o->margin, "> -", va);
}

static void text_past(McOut *o, uint64_t va, uint64_t n)
{
    mc_out_printf(o, "%" PRIu64 " past %s of %016" PRIx64
                  ", --history prints %s", n, n == 1 ? "life" : "lives", va,
                  n == 1 ? "it" : "them");
}

static void text_more(McOut *o, uint64_t n)
{
    mc_out_printf(o, "... %" PRIu64 " more", n);
}

static void text_line(McOut *o, const char *text)
{
    mc_out_printf(o, "%s", text);
}

static void text_clean(McOut *o, uint64_t events, const char *text)
{
    text_line(o, text);
}

static void text_fail(McOut *o, const char *text)
{
    mc_out_printf(o, "ka: %s", text);
}

static void text_stat(McOut *o, const McStat *s)
{
    g_autoptr(GString) value = g_string_new(NULL);

    if (s->unknown) {
        g_string_append_c(value, '-');
    } else if (s->s) {
        g_string_append(value, s->s);
    } else if (s->hex) {
        mc_put_hex(value, s->u, 1);
    } else {
        mc_put_decimal(value, s->u);
    }
    if (s->help) {
        mc_out_printf(o, "  %-22s %14s  %s", s->key, value->str, s->help);
    } else {
        mc_out_printf(o, "  %-22s %14s", s->key, value->str);
    }
}

static void text_stat_end(McOut *o)
{
}

/* Append how the hook and its arguments were found. */
static void put_how(GString *line, const McHookStatus *h)
{
    if (h->from) {
        g_string_append_printf(line, "  %s", h->from);
    }
    if (h->symbol && strcmp(h->symbol, h->name)) {
        g_string_append_printf(line, " %s", h->symbol);
    }
    if (h->args_from) {
        g_string_append_printf(line, ", arguments by %s", h->args_from);
    }
}

static void text_hook(McOut *o, const McHookStatus *h)
{
    g_string_append_printf(o->line, "  %-32s ", h->name);
    if (h->va) {
        mc_put_hex(o->line, h->va, 16);
        g_string_append_printf(o->line, " %12" PRIu64, h->hits);
        put_how(o->line, h);
    } else {
        g_string_append_printf(o->line, "%16s %12s", "missing", "-");
        if (h->note) {
            g_string_append_printf(o->line, "  %s", h->note);
        }
    }
    mc_out_end_line(o);
}

static void put_word(McOut *o, const char *key, const char *word)
{
    if (word && *word) {
        g_string_append_printf(o->line, " %s=", key);
        mc_put_word(o->line, word);
    }
}

static void put_key_number(McOut *o, const char *key, uint64_t v)
{
    g_string_append_printf(o->line, " %s=%" PRIu64, key, v);
}

/* The key of a block's property without "block_". */
static void put_block_word(McOut *o, const char *key, const char *word)
{
    put_word(o, key + strlen("block_"), word);
}

/* The size comes first, in hex as in all lines. */
static void put_block_number(McOut *o, const char *key, uint64_t v)
{
    if (!strcmp(key, "block_size")) {
        g_string_append_printf(o->line, " of (%5" PRIx64 ")", v);
    } else {
        put_key_number(o, key + strlen("block_"), v);
    }
}

static void text_event(McOut *o, const KtEvent *ev, const KtTracedBlock *b)
{
    bool exact = ev->kind == KT_EV_ACCESS;

    g_string_append_printf(o->line, "%12" PRIu64 "us %-6s ",
                           (uint64_t)ev->us, mc_event_name(ev->kind));
    if (ev->kind != KT_EV_GAP) {
        mc_put_hex(o->line, ev->va, 16);
        g_string_append_printf(o->line, " (%5" PRIx64 "/%5" PRIx64 ")",
                               ev->size, ev->actual);
        mc_walk_event(o, ev, &(McWalk) { put_word, put_key_number });
    }
    if (ev->kind != KT_EV_GAP && !o->long_form) {
        g_string_append(o->line, " [");
        put_stack(o, ev->stack, exact, false);
        g_string_append_c(o->line, ']');
    }
    if (b) {
        mc_walk_traced(o, b, &(McWalk) { put_block_word, put_block_number });
    }
    mc_out_end_line(o);
    if (ev->kind != KT_EV_GAP && o->long_form) {
        mc_long_stack(o, ev->stack, exact);
    }
}

/* Append ", <n> <what>"; nothing if @n is 0. */
static void put_part(GString *s, uint64_t n, const char *what)
{
    if (n) {
        g_string_append_printf(s, ", %" PRIu64 " %s", n, what);
    }
}

static void put_blocks(GString *s, uint64_t n, const char *what,
                       uint64_t bytes)
{
    g_string_append_printf(s, "%" PRIu64 " %s %s, %" PRIu64 " bytes", n,
                           n == 1 ? "block" : "blocks", what, bytes);
}

/* Print what was not freed: as one number, or, if it is known what is still in
 * use, as two. */
static void put_unfreed(GString *s, const McModule *m)
{
    if (m->blocks && !m->classified) {
        put_blocks(s, m->blocks, "not freed", m->bytes);
        return;
    }
    if (m->leaked) {
        put_blocks(s, m->leaked, "leaked", m->leaked_bytes);
    } else {
        g_string_append(s, m->report->not_kept ? "no leaks listed" :
                                                 "no leaks");
    }
    if (m->kept) {
        g_string_append(s, "; ");
        put_blocks(s, m->kept, "still in use", m->kept_bytes);
    }
}

static void text_module(McOut *o, const McModule *m)
{
    const KtModuleReport *r = m->report;

    g_string_append(o->line, "module ");
    mc_put_word(o->line, r->name);
    g_string_append_printf(o->line, " unloaded@%" PRIu64 "us: ", r->us);
    put_unfreed(o->line, m);
    if (m->filtered && m->blocks) {
        g_string_append_printf(o->line, ", %" PRIu64 " match the options",
                               m->matching);
    }
    put_part(o->line, m->withdrawn, "freed since");
    put_part(o->line, r->bad_frees, "freed without an allocation");
    put_part(o->line, r->unsure, "may have been freed unseen");
    put_part(o->line, r->not_kept, "not listed, no memory");
    if (m->no_pages) {
        g_string_append(o->line, " (pages are not looked at: pages=on)");
    }
    mc_out_end_line(o);
}

static void text_facts(McOut *o, uint64_t va, const McFact *fact, unsigned n)
{
    mc_put_hex(o->line, va, 16);
    for (unsigned i = 0; i < n; i++) {
        g_string_append(o->line, i ? "; " : ": ");
        g_string_append(o->line, fact[i].text);
    }
    if (!n) {
        g_string_append(o->line, ": unknown");
    }
    mc_out_end_line(o);
}

static void text_control(McOut *o, const char *name, uint64_t value)
{
    mc_out_printf(o, "-- %s %" PRIu64, name, value);
}

static void text_ref(McOut *o, const KtRef *r, uint64_t at, const char *symbol)
{
    g_string_append_printf(o->line, "%*s", (int)o->margin, "");
    if (r->place == KT_PLACE_REGISTER) {
        g_string_append_printf(o->line, "register %s of vCPU %u",
                               r->name, r->number);
    } else {
        g_string_append_printf(o->line, "%s ", kt_place_name(r->place));
        mc_put_hex(o->line, r->va, 16);
    }
    if (r->place == KT_PLACE_STACK) {
        g_string_append_printf(o->line, " pid=%u", r->number);
    } else if (r->place == KT_PLACE_PERCPU) {
        g_string_append_printf(o->line, " cpu=%u", r->number);
    }
    if (symbol) {
        g_string_append_c(o->line, ' ');
        mc_put_word(o->line, symbol);
    }
    g_string_append_printf(o->line, " ref[%s +", at ? "interior" : "start");
    mc_put_hex(o->line, at, 1);
    g_string_append_c(o->line, ']');
    mc_out_end_line(o);
}

static void text_sum(McOut *o, McObjectId id, const McStat *figure,
                     unsigned n, const char *text)
{
    mc_out_printf(o, "%s", text);
}

const McFormat mc_format_text = {
    .row = text_row,
    .miss = text_miss,
    .past = text_past,
    .more = text_more,
    .none = text_line,
    .clean = text_clean,
    .fail = text_fail,
    .stat_group = text_line,
    .stat = text_stat,
    .stat_end = text_stat_end,
    .hook = text_hook,
    .module = text_module,
    .facts = text_facts,
    .event = text_event,
    .mark = text_control,
    .top_begin = mc_text_top_begin,
    .top_row = mc_text_top_row,
    .top_note = mc_text_top_note,
    .stray = mc_text_stray,
    .point = mc_text_point,
    .ref = text_ref,
    .log = mc_text_log,
    .log_event = mc_text_log_event,
    .watched = mc_text_watched,
    .call = mc_text_call,
    .call_request = mc_text_call_request,
    .call_point = mc_text_call_point,
    .sum = text_sum,
};
