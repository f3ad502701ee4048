/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks and stacks inside frames: see frame-ids.h. */
#include "kalloc-tracer/tracer/frame-ids.h"

#define COMM 16

/* How a task or stack is written. */
enum { ID_UNKNOWN, ID_SAME, ID_NEW };

void kt_frame_write_task(KtTracer *t, KtTaskId id, KtTaskId before, GsOut *out)
{
    uint32_t pid;
    char comm[COMM + 1];

    if (id.v && id.v == before.v) {
        gs_out_u8(out, ID_SAME);
    } else if (id.v && kt_tracer_task(t, id, &pid, comm)) {
        gs_out_u8(out, ID_NEW);
        gs_out_varint(out, pid);
        gs_out_bytes(out, comm, COMM);
    } else {
        gs_out_u8(out, ID_UNKNOWN);
    }
}

void kt_frame_write_stack(KtTracer *t, KtStackId id, KtStackId before,
                          GsOut *out)
{
    GsStop stop = 0;
    unsigned n = 0;
    const uint64_t *pc = id.v ? kt_tracer_stack(t, id, &n, &stop) : NULL;

    if (!pc || !n) {
        gs_out_u8(out, ID_UNKNOWN);
        return;
    }
    if (id.v == before.v) {
        gs_out_u8(out, ID_SAME);
        return;
    }
    gs_out_u8(out, ID_NEW);
    gs_out_u8(out, stop);
    gs_out_varint(out, n);
    for (unsigned i = 0; i < n; i++) {
        gs_out_step(out, i ? pc[i - 1] : 0, pc[i]);
    }
}

KtTaskId kt_frame_read_task(KtTracer *t, GsBytes *in, KtTaskId before)
{
    unsigned how = gs_bytes_varint(in, ID_NEW);
    char comm[COMM];
    uint32_t pid;

    if (how != ID_NEW) {
        return how == ID_SAME ? before : (KtTaskId) { 0 };
    }
    pid = gs_bytes_varint(in, UINT32_MAX);
    gs_bytes_copy(in, comm, sizeof(comm));
    return in->failed ? before : kt_tracer_intern_task(t, pid, comm);
}

KtStackId kt_frame_read_stack(KtTracer *t, const GsKernel *k, GsBytes *in,
                              KtStackId before)
{
    unsigned how = gs_bytes_varint(in, ID_NEW);
    uint64_t pc[KT_MAX_FRAMES];
    GsStop stop;
    unsigned n;

    if (how != ID_NEW) {
        return how == ID_SAME ? before : (KtStackId) { 0 };
    }
    stop = gs_bytes_varint(in, GS_STOP__COUNT - 1);
    n = gs_bytes_varint(in, KT_MAX_FRAMES);
    for (unsigned i = 0; i < n; i++) {
        pc[i] = gs_bytes_step(in, i ? pc[i - 1] : 0);
    }
    if (in->failed) {
        return before;
    }
    return k ? kt_tracer_intern_stack_of(t, pc, n, stop,
                                         gs_kernel_era(k, pc, n)) :
               kt_tracer_intern_stack(t, pc, n, stop);
}
