/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write a journal of 1000 allocations, at the microseconds 1, 2, 3...
 *
 * usage: ka-journal FILE
 */
#include <stdio.h>

#include "kalloc-tracer/kt.h"

#define EVENTS  1000
#define BLOCKS  0xffff888000001000

int main(int argc, char **argv)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(GError) err = NULL;
    KtTracer *t;

    if (argc != 2) {
        fprintf(stderr, "usage: ka-journal FILE\n");
        return 2;
    }
    config.journal = argv[1];
    t = kt_tracer_new(&config, &err);
    if (!t) {
        fprintf(stderr, "ka-journal: %s\n", err->message);
        return 2;
    }
    kt_tracer_set_complete(t, true);
    for (unsigned i = 0; i < EVENTS; i++) {
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_ALLOC, .va = BLOCKS + 64 * i, .us = i + 1,
            .size = 64, .actual = 64, .layer = KT_LAYER_KMALLOC });
    }
    kt_tracer_free(t);
    return 0;
}
