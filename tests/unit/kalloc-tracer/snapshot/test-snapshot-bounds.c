/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots of a tracer within a memory limit (mem=). */
#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/base/budget.h"
#include "tests/lib/snapshot-dump.h"
#include "kalloc-tracer/snapshot/snapshot.h"
#include "kalloc-tracer/tracer/tracer.h"

/* (owned) a state with so many backtraces of the greatest length. */
static GByteArray *with_stacks(KtTracer *t, unsigned n)
{
    GByteArray *state = g_byte_array_new();
    uint64_t pc[KT_MAX_FRAMES] = { 0 };

    for (pc[0] = 0; pc[0] < n; pc[0]++) {
        kt_tracer_intern_stack(t, pc, KT_MAX_FRAMES, GS_STOP_END);
    }
    kt_snapshot_save(t, gs_stream_to_array, state);
    return state;
}

/* Backtraces of a state are bounded as the tracer's are: what a tracer of the
 * same bound keeps can be loaded, and no more. */
TEST(stacks_beyond_the_bound, "/state-bounds/stacks-beyond-the-bound")
{
    const unsigned many = 2 * KT_BUDGET_MIN / KT_MAX_FRAMES / 8;
    g_autoptr(KtTracer) any = bare_tracer(0);
    g_autoptr(KtTracer) t = bare_tracer(KT_BUDGET_MIN);
    g_autoptr(GByteArray) too_much = with_stacks(any, many);
    g_autoptr(GByteArray) full = with_stacks(t, many);
    g_autoptr(GError) err = NULL;
    GsBytes in = { too_much->data, too_much->len };
    uint32_t n = kt_depot_count(t->stacks);

    g_assert_cmpuint(n, <, many / 4);
    g_assert_false(kt_snapshot_load(t, gs_stream_from_bytes, &in, &err));
    g_assert_cmpstr(err->message, ==, "its backtraces take more memory than "
                    "mem= has for backtraces");
    in = (GsBytes) { full->data, full->len };
    g_assert_true(kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL));
    g_assert_cmpuint(kt_depot_count(t->stacks), ==, n);
}

/* One block of each of so many callers. */
static void allocate(KtTracer *t, unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        uint64_t pc = 0xffffffff81000000ull + i * 16;

        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_ALLOC, .va = VA + i * 64, .size = 60, .actual = 64,
            .stack = kt_tracer_intern_stack(t, &pc, 1, GS_STOP_END),
            .layer = KT_LAYER_KMALLOC, .us = i,
        });
    }
}

/* They take most of their share; where nothing was traced before, nothing
 * makes room for them. */
TEST(accounts_come_whole, "/state-bounds/accounts-come-whole")
{
    g_autoptr(KtTracer) a = bare_tracer(KT_BUDGET_MIN);
    g_autoptr(KtTracer) b = bare_tracer(KT_BUDGET_MIN);
    g_autoptr(GByteArray) state = g_byte_array_new();
    g_autofree char *before = NULL, *after = NULL;
    GsBytes in;

    allocate(a, 50000);
    before = snapshot_dump(a);
    g_assert_false(a->model->accounts.now.by[KT_BY_STACK].refused);
    kt_snapshot_save(a, gs_stream_to_array, state);
    in = (GsBytes) { state->data, state->len };
    g_assert_true(kt_snapshot_load(b, gs_stream_from_bytes, &in, NULL));
    after = snapshot_dump(b);
    g_assert_cmpuint(kt_budget_used(b->budget, KT_MEM_ACCOUNTS), ==,
                     kt_budget_used(a->budget, KT_MEM_ACCOUNTS));
    g_assert_cmpint(strcmp(after, before), ==, 0);
}
