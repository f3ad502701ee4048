/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write a journal of 1000 allocations, at the microseconds 1, 2, 3..., and of
 * two faults, at the microsecond 123.
 *
 * usage: ka-journal FILE
 */
#include <stdio.h>

#include "tests/lib/fault-calls.h"

#define EVENTS  1000
#define BLOCKS  0xffff888000001000

static void push_events(KtTracer *t)
{
    for (unsigned i = 0; i < EVENTS; i++) {
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_ALLOC, .va = BLOCKS + 64 * i, .us = i + 1,
            .size = 64, .actual = 64, .layer = KT_LAYER_KMALLOC });
    }
}

static void make_faults(FaultWorld *w)
{
    fault_add(w, "size == 320");
    fault_call(w, 0);
    fault_call(w, 0);
    kt_faults_save(w->t);
}

int main(int argc, char **argv)
{
    FaultWorld *w;

    if (argc != 2) {
        fprintf(stderr, "usage: ka-journal FILE\n");
        return 2;
    }
    w = fault_world_new_at(argv[1]);
    kt_tracer_save_kernel(w->t, w->k, true);
    kt_tracer_save_module(w->t, w->k, 0x7000);
    kt_tracer_set_complete(w->t, true);
    push_events(w->t);
    make_faults(w);
    fault_world_free(w);
    return 0;
}
