/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write a journal of 1000 allocations, at the microseconds 1, 2, 3..., and of
 * two faults, at the microsecond 123; or of a script of events
 * (tests/lib/events.h).
 *
 * usage: ka-journal FILE [SCRIPT]
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/events.h"
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

/* Write the events of a script, and then its kernel and modules. A script with
 * the statement kernel has written these in their places. */
static int write_script(const char *path, const char *script_path)
{
    g_autofree char *script = NULL;
    g_autoptr(GError) err = NULL;
    g_autoptr(TestWorld) w = NULL;
    const GsKernel *k;
    GsModule m;

    if (!g_file_get_contents(script_path, &script, NULL, &err)) {
        fprintf(stderr, "ka-journal: %s\n", err->message);
        return 2;
    }
    w = test_world_new_at(script, path);
    kt_log_save(test_world_tracer(w));
    k = strstr(script, "\nkernel\n") ? NULL : test_world_context(w)->kernel;
    if (k) {
        kt_tracer_save_kernel(test_world_tracer(w), k, true);
    }
    for (unsigned i = 0; k && gs_kernel_nth_module(k, i, &m); i++) {
        kt_tracer_save_module(test_world_tracer(w), k, m.va);
    }
    return 0;
}

int main(int argc, char **argv)
{
    FaultWorld *w;

    if (argc == 3) {
        return write_script(argv[1], argv[2]);
    }
    if (argc != 2) {
        fprintf(stderr, "usage: ka-journal FILE [SCRIPT]\n");
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
