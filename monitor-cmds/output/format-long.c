/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The long form of a row (-l): a paragraph, for people.
 *
 *       A ffff888000001000-ffff88800000103f (   40/   40)
 *         size               64 (0x40) requested, 64 (0x40) reserved
 *         allocated at 120us, 3.2 ms ago, by sh (pid 7) on vCPU 0, in kmalloc
 *             make_it+0x10
 *             init+0x20[module]
 *         layer              kmalloc
 *
 * The first line is the begin of the short form. What happened to the block
 * follows, each with its stack, a frame a line; then the other fields, named by
 * their keys of fields.def. Fields that are unknown are not printed.
 *
 * Called by format-text.c, on the thread of the command; no locks.
 */
#include "monitor-cmds/output/format.h"

#include <string.h>

/* Indentation of a detail, and of a frame of its stack. */
#define DETAIL "        "
#define FRAME  "            "
#define NONE MC_FIELD__COUNT
#define MSEC UINT64_C(1000)
#define SEC  (1000 * MSEC)

/** struct Deed - something that happened; @word: (nullable) NULL is the kind of
 *  an error. The other members are its fields, NONE if there is no such
 *  field. */
typedef struct Deed {
    const char *word;
    McFieldId stack, us, pid, comm, cpu, hook;
} Deed;

static const Deed deeds[] = {
    { "allocated", MC_FIELD_alloc, MC_FIELD_alloc_us, MC_FIELD_pid,
      MC_FIELD_comm, MC_FIELD_cpu, MC_FIELD_hook },
    { "queued by kfree_rcu", MC_FIELD_rcu, MC_FIELD_rcu_us, NONE, NONE, NONE,
      NONE },
    { "freed", MC_FIELD_free, MC_FIELD_free_us, MC_FIELD_free_pid,
      MC_FIELD_free_comm, MC_FIELD_free_cpu, MC_FIELD_free_hook },
    { NULL, MC_FIELD_error_stack, MC_FIELD_error_us, MC_FIELD_error_pid,
      MC_FIELD_error_comm, MC_FIELD_error_cpu, MC_FIELD_error_hook },
    { "neighbour allocated", MC_FIELD_neighbour_alloc, MC_FIELD_neighbour_us,
      MC_FIELD_neighbour_pid, MC_FIELD_neighbour_comm, NONE, NONE },
};

/* Some fields repeat others, if they are not needed in the short form. */
static bool applies(const McField *f, const McRow *row)
{
    return mc_field_applies(f, row, f->group != MC_GROUP_AWAY &&
                                    f->group != MC_GROUP_REPEATS);
}

/* Read a field; return false if it does not apply, or is unknown. */
static bool get(McOut *o, const McRow *row, unsigned id, McValue *v)
{
    const McField *f = &mc_fields[id % NONE];

    *v = (McValue) { 0 };
    return id != NONE && applies(f, row) && f->get(o->ctx->tracer, row, v) &&
           (f->type != MC_TYPE_LIST || *v->list);
}

static void put_both(GString *s, uint64_t v)
{
    g_string_append_printf(s, "%" PRIu64 " (0x%" PRIx64 ")", v, v);
}

static void put_age(GString *s, uint64_t us)
{
    if (us < MSEC) {
        g_string_append_printf(s, "%" PRIu64 " us", us);
    } else if (us < SEC) {
        g_string_append_printf(s, "%" PRIu64 ".%" PRIu64 " ms", us / MSEC,
                               us % MSEC / 100);
    } else if (us < 60 * SEC) {
        g_string_append_printf(s, "%" PRIu64 ".%02" PRIu64 " s", us / SEC,
                               us % SEC / (10 * MSEC));
    } else {
        g_string_append_printf(s, "%" PRIu64 " min %" PRIu64 " s",
                               us / (60 * SEC), us / SEC % 60);
    }
    g_string_append(s, " ago");
}

/* ---- what happened ------------------------------------------------------- */

static void put_time(McOut *o, const McRow *row, unsigned id)
{
    McValue v;

    if (!get(o, row, id, &v)) {
        return;
    }
    g_string_append_printf(o->line, " at %" PRIu64 "us", v.u);
    if (v.u <= o->newest_us) {
        g_string_append(o->line, ", ");
        put_age(o->line, o->newest_us - v.u);
    }
}

static void put_doer(McOut *o, const McRow *row, const Deed *d)
{
    McValue v;
    bool named = get(o, row, d->comm, &v);

    if (named) {
        g_string_append(o->line, ", by ");
        mc_put_word(o->line, v.s);
    }
    if (get(o, row, d->pid, &v)) {
        g_string_append_printf(o->line, " (pid %" PRIu64 ")", v.u);
    }
    if (get(o, row, d->cpu, &v)) {
        g_string_append_printf(o->line, "%s on vCPU %" PRIu64,
                               named ? "" : ",", v.u);
    }
    if (get(o, row, d->hook, &v)) {
        g_string_append(o->line, ", in ");
        mc_put_word(o->line, v.s);
    }
}

void mc_long_stack(McOut *o, KtStackId id, bool exact)
{
    McStack stack = mc_stack(o->ctx->tracer, id);

    stack.exact = exact;
    for (unsigned i = 0; i < stack.n && !o->closed; i++) {
        McFrame frame = mc_frame(&stack, i);

        g_string_append(o->line, FRAME);
        mc_put_pc(o->line, o->symbols, &frame);
        if (o->pcs) {
            g_string_append_printf(o->line, " @%016" PRIx64,
                                   mc_frame_at(o->symbols, &frame));
        }
        mc_out_end_line(o);
    }
    if (!stack.n) {
        mc_out_printf(o, FRAME "(no stack was kept)");
    } else if (stack.stop == GS_STOP_REPLACED) {
        mc_out_printf(o, FRAME "(a tracer replaced the return address)");
    }
}

static void print_deed(McOut *o, const McRow *row, const Deed *d)
{
    McValue v;

    bool known = get(o, row, d->stack, &v) || get(o, row, d->us, &v);

    if (!known) {
        return;
    }
    g_string_append_printf(o->line, DETAIL "%s", d->word ? d->word :
                           kt_error_name(row->error->kind));
    put_time(o, row, d->us);
    put_doer(o, row, d);
    mc_out_end_line(o);
    get(o, row, d->stack, &v);
    mc_long_stack(o, v.stack, v.exact);
}

/* ---- the other fields ---------------------------------------------------- */

static bool is_of_deed(unsigned id)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(deeds); i++) {
        const Deed *d = &deeds[i];

        if (id == d->stack || id == d->us || id == d->pid || id == d->comm ||
            id == d->cpu || id == d->hook) {
            return true;
        }
    }
    return id == MC_FIELD_error;
}

static void put_list(GString *s, char *const *list)
{
    for (unsigned i = 0; list[i]; i++) {
        g_string_append(s, i ? ", " : "");
        g_string_append(s, list[i]);
    }
}

static void put_value(McOut *o, McFieldType type, const McValue *v)
{
    switch (type) {
    case MC_TYPE_ADDR:
        mc_put_hex(o->line, v->u, 16);
        break;
    case MC_TYPE_SIZE:
    case MC_TYPE_HEX:
        put_both(o->line, v->u);
        break;
    case MC_TYPE_US:
        g_string_append_printf(o->line, "%" PRIu64 "us", v->u);
        break;
    case MC_TYPE_TEXT:
        g_string_append(o->line, v->s);
        break;
    case MC_TYPE_LIST:
        put_list(o->line, v->list);
        break;
    case MC_TYPE_NUMBER:
    case MC_TYPE_INDEX:
        mc_put_decimal(o->line, v->u);
        break;
    default:
        mc_put_word(o->line, v->s ? v->s : "-");
        break;
    }
}

static void print_field(McOut *o, const McRow *row, unsigned id)
{
    McValue v;

    if (is_of_deed(id) || !get(o, row, id, &v)) {
        return;
    }
    g_string_append_printf(o->line, DETAIL "%-18s ", mc_fields[id].key);
    put_value(o, mc_fields[id].type, &v);
    mc_out_end_line(o);
}

static void print_size(McOut *o, const KtBlock *b)
{
    g_string_append_printf(o->line, DETAIL "%-18s ", "size");
    put_both(o->line, b->requested);
    g_string_append(o->line, " requested, ");
    put_both(o->line, b->actual);
    g_string_append(o->line, " reserved");
    mc_out_end_line(o);
}

void mc_long_row(McOut *o, const McRow *row)
{
    mc_text_fields(o, row, MC_FIELD_actual + 1);
    mc_out_end_line(o);
    if (row->block) {
        print_size(o, row->block);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(deeds); i++) {
        print_deed(o, row, &deeds[i]);
    }
    for (unsigned i = MC_FIELD_actual + 1; i < MC_FIELD__COUNT; i++) {
        print_field(o, row, i);
    }
}
