/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log of faults and the journal: records that are not written yet go into
 * frames, and frames become records again. See fault-frame.h.
 *
 *     log --kt_faults_save()--> frames --> journal --> kt_faults_replay()
 *
 * Records stay in the log, so a number says which are written.
 */
#include "kalloc-tracer/faults/fault-journal.h"

#include "kalloc-tracer/faults/fault-frame.h"
#include "kalloc-tracer/tracer/tracer.h"

/* ---- writing ------------------------------------------------------------- */

static void copy_entry(const KtFaults *f, unsigned i, KtFaultBatch *b)
{
    KtFaultEntry e = {
        .record = *(const KtFaultRecord *)g_ptr_array_index(f->log, i),
        .text = g_atomic_rc_box_acquire(g_ptr_array_index(f->log_text, i)),
    };

    g_array_append_val(b->entry, e);
}

/* Copy the next records that are not saved, and take them for saved. Return
 * false if nothing is new. */
static bool take_unsaved(KtFaults *f, KtFaultBatch *b)
{
    bool new;

    g_mutex_lock(&f->lock);
    while (f->saved < f->log->len && b->entry->len < KT_FAULT_FRAME_RECORDS) {
        copy_entry(f, f->saved++, b);
    }
    b->full = f->log_full;
    new = b->entry->len || b->full != f->saved_full;
    f->saved_full = b->full;
    g_mutex_unlock(&f->lock);
    return new;
}

static bool save_frame(KtTracer *t, KtFaults *f)
{
    g_auto(KtFaultBatch) b;
    GByteArray *frame;

    kt_fault_batch_init(&b);
    if (!take_unsaved(f, &b)) {
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

/* ---- reading ------------------------------------------------------------- */

/* Return true if no record was later. */
static bool append_all(KtFaults *f, const KtFaultBatch *b, uint64_t until_us)
{
    bool all = true;

    for (unsigned i = 0; i < b->entry->len; i++) {
        KtFaultEntry *e = &g_array_index(b->entry, KtFaultEntry, i);

        if (e->record.us > until_us) {
            all = false;
            continue;
        }
        if (f->log->len < KT_FAULT_LOG_MAX) {
            e->record.function = g_intern_string(e->record.function);
            kt_faults_append(f, e->text, &e->record);
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
