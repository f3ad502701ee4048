/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/two-of-each.h"

#include "kalloc-tracer/tracer/tracer.h"

TwoOfEach two_of_each(void)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    TwoOfEach w = { .t = kt_tracer_new(&config, NULL) };

    for (unsigned i = 0; i < 2; i++) {
        uint64_t frames[] = { 0x1000 + 0x100 * i, 0x5000 };
        g_autofree char *name = g_strdup_printf("cache-%u", i);
        char comm[16] = { 't', '0' + i };

        w.task[i] = kt_tracer_intern_task(w.t, 10 + i, comm);
        w.cache[i] = kt_tracer_add_cache(w.t, 0x100 * (i + 1), name, 8, 8);
        w.stack[i] = kt_tracer_intern_stack(w.t, frames, 2, GS_STOP_END);
    }
    return w;
}

void two_of_each_clear(TwoOfEach *w)
{
    kt_tracer_free(w->t);
}
