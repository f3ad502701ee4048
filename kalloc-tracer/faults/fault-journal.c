/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log of faults and the journal: records that are not written yet go into
 * frames, and frames become records again. See fault-journal.h.
 *
 *     log --kt_faults_save()--> frames --> journal --> kt_faults_replay()
 *
 * Records stay in the log, so a number says which are written.
 */
#include "kalloc-tracer/faults/fault-journal.h"

#include <string.h>

#include "kalloc-tracer/base/fields.h"
#include "kalloc-tracer/tracer/frame-ids.h"
#include "kalloc-tracer/tracer/tracer.h"

/* Flag of a frame. */
#define FULL 1u

/* Flags of a rule. */
enum {
    HAS_CONDITION = 1, HAS_VALUE = 2, HAS_MODULE = 4, HAS_TASK = 8,
    EARLY = 16, FORCE = 32, RULE_FLAGS = 63,
};

static const KtField record_fields[] = {
    KT_DELTA(KtFaultRecord, us), KT_FIXED(KtFaultRecord, hash, 8),
    KT_NUMBER(KtFaultRecord, n), KT_NUMBER(KtFaultRecord, times),
    KT_NUMBER(KtFaultRecord, value), KT_NUMBER(KtFaultRecord, size),
    KT_NUMBER(KtFaultRecord, flags),
    KT_UPTO(KtFaultRecord, chance, KT_CHANCE_LIKELY, NULL),
    KT_UPTO(KtFaultRecord, cut, 1, NULL), KT_NUMBER(KtFaultRecord, cpu),
    { 0 }
};

void kt_fault_batch_init(KtFaultBatch *b)
{
    *b = (KtFaultBatch) {
        .records = kt_fault_records_new(), .names = g_string_chunk_new(64),
    };
}

void kt_fault_batch_deinit(KtFaultBatch *b)
{
    g_ptr_array_unref(b->records);
    g_string_chunk_free(b->names);
}

/* ---- writing a frame ---------------------------------------------------- */

static void write_rule(uint32_t id, const KtFaultSpec *s, GsOut *out)
{
    const char *const strings[] = {
        s->what, s->condition, s->value, s->module, s->task,
    };

    gs_out_varint(out, id);
    gs_out_varint(out, s->times);
    gs_out_u8(out, s->action);
    gs_out_u8(out, (s->condition ? HAS_CONDITION : 0) |
                   (s->value ? HAS_VALUE : 0) | (s->module ? HAS_MODULE : 0) |
                   (s->task ? HAS_TASK : 0) | (s->early ? EARLY : 0) |
                   (s->force ? FORCE : 0));
    for (unsigned i = 0; i < G_N_ELEMENTS(strings); i++) {
        if (strings[i]) {
            gs_out_text(out, strings[i]);
        }
    }
}

/* (owned) Write the rules of the records, each once. Return their places: spec
 * -> its number in the frame. */
static GHashTable *write_rules(const KtFaultBatch *b, GsOut *out)
{
    GHashTable *place = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) first = g_ptr_array_new();

    for (unsigned i = 0; i < b->records->len; i++) {
        const KtFaultRecord *r = b->records->pdata[i];

        if (!g_hash_table_contains(place, r->spec)) {
            g_hash_table_insert(place, (void *)r->spec,
                                GUINT_TO_POINTER(first->len));
            g_ptr_array_add(first, (void *)r);
        }
    }
    gs_out_varint(out, first->len);
    for (unsigned i = 0; i < first->len; i++) {
        const KtFaultRecord *r = first->pdata[i];

        write_rule(r->rule, r->spec, out);
    }
    return place;
}

static void write_record(KtTracer *t, const KtFaultRecord *r,
                         const KtFaultRecord *before, GsOut *out)
{
    bool same = before->function && !strcmp(before->function, r->function);

    kt_fields_pack(record_fields, r, before, out);
    gs_out_text(out, same ? "" : r->function);
    for (unsigned i = 0; i < KT_FAULT_ARGS; i++) {
        gs_out_varint(out, r->arg[i]);
    }
    kt_frame_write_task(t, r->task, before->task, out);
    kt_frame_write_stack(t, r->stack, before->stack, out);
}

void kt_fault_frame_write(KtTracer *t, const KtFaultBatch *b, GsOut *out)
{
    g_autoptr(GHashTable) place = NULL;
    const KtFaultRecord none = { 0 }, *before = &none;

    gs_out_u8(out, b->full ? FULL : 0);
    place = write_rules(b, out);
    gs_out_varint(out, b->records->len);
    for (unsigned i = 0; i < b->records->len; i++) {
        const KtFaultRecord *r = b->records->pdata[i];

        gs_out_varint(out,
                      GPOINTER_TO_UINT(g_hash_table_lookup(place, r->spec)));
        write_record(t, r, before, out);
        before = r;
    }
}

/* ---- reading a frame ---------------------------------------------------- */

/** struct Rule - a rule of a frame */
typedef struct Rule {
    uint32_t id;
    KtFaultSpec *spec;
} Rule;

static void clear_rule(gpointer p)
{
    kt_fault_spec_unref(((Rule *)p)->spec);
}

/* (owned) Read a string; "" if it is malformed. */
static char *read_string(GsBytes *in)
{
    uint64_t len = gs_bytes_varint(in, UINT32_MAX);
    const uint8_t *at = gs_bytes_take(in, len);
    char *text = at ? g_strndup((const char *)at, len) : g_strdup("");

    for (char *c = text; *c; c++) {
        *c = g_ascii_isprint(*c) ? *c : '?';
    }
    return text;
}

static char *read_optional(GsBytes *in, bool there)
{
    return there ? read_string(in) : NULL;
}

static void read_rule(GsBytes *in, GArray *rules)
{
    Rule rule = { .id = gs_bytes_varint(in, UINT32_MAX) };
    KtFaultSpec s = { .times = gs_bytes_varint(in, UINT64_MAX) };
    g_autofree char *what = NULL, *condition = NULL, *value = NULL;
    g_autofree char *module = NULL, *task = NULL;
    unsigned flags;

    s.action = gs_bytes_varint(in, KT_FAULT_DO__COUNT - 1);
    flags = gs_bytes_varint(in, RULE_FLAGS);
    s.early = flags & EARLY;
    s.force = flags & FORCE;
    s.what = what = read_string(in);
    s.condition = condition = read_optional(in, flags & HAS_CONDITION);
    s.value = value = read_optional(in, flags & HAS_VALUE);
    s.module = module = read_optional(in, flags & HAS_MODULE);
    s.task = task = read_optional(in, flags & HAS_TASK);
    rule.spec = kt_fault_spec_copy(&s);
    g_array_append_val(rules, rule);
}

/* (owned) Read the rules. */
static GArray *read_rules(GsBytes *in)
{
    uint64_t n = gs_bytes_varint(in, KT_FAULT_FRAME_RECORDS);
    GArray *rules = g_array_new(FALSE, FALSE, sizeof(Rule));

    g_array_set_clear_func(rules, clear_rule);
    for (uint64_t i = 0; i < n && !in->failed; i++) {
        read_rule(in, rules);
    }
    return rules;
}

static void read_function(GsBytes *in, KtFaultRecord *r, GStringChunk *names)
{
    g_autofree char *name = read_string(in);

    if (*name) {
        r->function = g_string_chunk_insert_const(names, name);
    } else if (!r->function) {
        gs_bytes_fail(in, "a fault has no function");
    }
}

/* @r: the record before; (out) this one */
static void read_record(KtTracer *t, const GsKernel *k, GsBytes *in,
                        KtFaultRecord *r, GStringChunk *names)
{
    kt_fields_unpack(record_fields, r, r, NULL, in);
    read_function(in, r, names);
    for (unsigned i = 0; i < KT_FAULT_ARGS; i++) {
        r->arg[i] = gs_bytes_varint(in, UINT64_MAX);
    }
    r->task = kt_frame_read_task(t, in, r->task);
    r->stack = kt_frame_read_stack(t, k, in, r->stack);
}

static void add_record(KtFaultBatch *b, KtFaultRecord *r, const Rule *rule)
{
    r->rule = rule->id;
    r->spec = rule->spec;
    r->action = r->spec->action;
    kt_fault_records_add(b->records, r);
}

bool kt_fault_frame_read(KtTracer *t, const GsKernel *k, GsBytes *in,
                         KtFaultBatch *b)
{
    g_autoptr(GArray) rules = NULL;
    KtFaultRecord r = { 0 };
    uint64_t n;

    b->full = gs_bytes_varint(in, FULL);
    rules = read_rules(in);
    n = gs_bytes_varint(in, rules->len ? KT_FAULT_FRAME_RECORDS : 0);
    for (uint64_t i = 0; i < n && !in->failed; i++) {
        uint64_t rule = gs_bytes_varint(in, rules->len - 1);

        read_record(t, k, in, &r, b->names);
        if (!in->failed) {
            add_record(b, &r, &g_array_index(rules, Rule, rule));
        }
    }
    return !in->failed && !gs_bytes_left(in);
}

/* ---- saving ------------------------------------------------------------- */

/* Copy the next records that are not saved, and count them as saved. Return
 * false if nothing is new. */
static bool copy_unsaved(KtFaults *f, KtFaultBatch *b)
{
    bool new;

    g_mutex_lock(&f->lock);
    while (f->saved < f->log->len && b->records->len < KT_FAULT_FRAME_RECORDS) {
        kt_fault_records_add(b->records, f->log->pdata[f->saved++]);
    }
    b->full = f->log_full;
    new = b->records->len || b->full != f->saved_full;
    f->saved_full = b->full;
    g_mutex_unlock(&f->lock);
    return new;
}

static bool save_frame(KtTracer *t, KtFaults *f)
{
    g_auto(KtFaultBatch) b;
    GByteArray *frame;

    kt_fault_batch_init(&b);
    if (!copy_unsaved(f, &b)) {
        return false;
    }
    frame = g_byte_array_new();
    kt_fault_frame_write(t, &b, &GS_OUT(frame));
    kt_tracer_save_frame(t, KT_MODULE_EVENT_FAULTS, frame);
    return true;
}

void kt_faults_save(KtTracer *t)
{
    KtFaults *f = kt_faults_of(t);

    if (!kt_tracer_has_journal(t)) {
        return;
    }
    g_mutex_lock(&f->save_lock);
    while (save_frame(t, f)) {
    }
    g_mutex_unlock(&f->save_lock);
}

/* ---- replaying ---------------------------------------------------------- */

/* Return true if no record was later. */
static bool append_all(KtFaults *f, const KtFaultBatch *b, uint64_t until_us)
{
    bool all = true;

    for (unsigned i = 0; i < b->records->len; i++) {
        KtFaultRecord *r = b->records->pdata[i];

        if (r->us > until_us) {
            all = false;
            continue;
        }
        if (f->log->len < KT_FAULT_LOG_MAX) {
            r->function = g_intern_string(r->function);
            kt_faults_append(f, r);
        }
    }
    return all;
}

bool kt_faults_replay(KtTracer *t, const GsKernel *k, GsBytes *in,
                      uint64_t until_us)
{
    KtFaults *f = kt_faults_of(t);
    g_auto(KtFaultBatch) b;
    bool all;

    kt_fault_batch_init(&b);
    if (!kt_fault_frame_read(t, k, in, &b)) {
        return false;
    }
    all = append_all(f, &b, until_us);
    f->log_full |= b.full && all;
    return true;
}
