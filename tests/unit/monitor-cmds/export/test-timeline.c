/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Timeline: after a load of a VM state it begins with the blocks of that state,
 * and a peak of before the load is none of this timeline. */
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"

#include "kalloc-tracer/snapshot/snapshot.h"
#include "monitor-cmds/export/timeline.h"

#define VA    0xffff888000001000u
#define BYTES 64
#define LIVE  50            /* blocks of the saved state */
#define FREED 20            /* of these after the load */

static void push(KtTracer *t, KtEventKind kind, unsigned i, uint64_t us)
{
    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = kind, .va = VA + BYTES * i, .size = BYTES, .actual = BYTES,
        .us = us, .layer = KT_LAYER_CACHE, .family = KT_FAMILY_CACHE,
        .cache = kt_tracer_add_cache(t, 0xffff888000c00000, "obj", BYTES,
                                     BYTES) });
}

/* (owned) The state of a tracer that had LIVE + 10 blocks, and has LIVE. */
static GByteArray *saved_state(void)
{
    g_autoptr(KtTracer) t = new_tracer(NULL, NULL);
    GByteArray *state = g_byte_array_new();

    for (unsigned i = 0; i < LIVE + 10; i++) {
        push(t, KT_EV_ALLOC, i, 10 + i);
    }
    for (unsigned i = LIVE; i < LIVE + 10; i++) {
        push(t, KT_EV_FREE, i, 100 + i);
    }
    kt_snapshot_save(t, gs_stream_to_array, state);
    return state;
}

/* A journal with allocations, the load of that state, and frees. */
static void write_journal(const char *path)
{
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(GByteArray) state = saved_state();
    GsBytes in = { state->data, state->len };

    push(t, KT_EV_ALLOC, 1000, 5000);
    g_assert_true(kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL));
    for (unsigned i = 0; i < FREED; i++) {
        push(t, KT_EV_FREE, i, 1000 + i);
    }
}

static void check_points(const McCounter *c)
{
    const GArray *points = mc_counter_series_points(c->series);

    g_assert_cmpuint(points->len, ==, FREED + 1);
    for (unsigned i = 0; i < points->len; i++) {
        const McPoint *p = &g_array_index(points, McPoint, i);

        g_assert_cmpuint(p->value, ==, BYTES * (LIVE - i));
        g_assert_cmpuint(p->us, ==, i ? 1000 + i - 1 : 100 + LIVE + 9);
    }
}

/* Step 0 has what the state had, the others have the frees, in order. */
static void check_steps(const McTimeSteps *steps)
{
    g_autoptr(GArray) cells = mc_time_steps_cells(steps, MC_BY_CACHE);
    const McStepCell *c = (const McStepCell *)cells->data;
    McStepSpan span = mc_time_steps_span(steps);

    g_assert_cmpuint(span.origin, ==, 1000);
    g_assert_cmpuint(span.width, ==, 1);
    g_assert_cmpuint(span.n, ==, FREED);
    g_assert_cmpuint(cells->len, ==, FREED + 1);
    g_assert_cmpint(c[0].value[MC_STEP_ALLOCS], ==, LIVE + 10);
    g_assert_cmpint(c[0].value[MC_STEP_FREES], ==, 10);
    for (unsigned i = 0; i < cells->len; i++) {
        g_assert_cmpuint(c[i].step, ==, i);
        g_assert_cmpuint(c[i].row, ==, 0);
        g_assert_cmpint(c[i].value[MC_STEP_FREED_RESERVED], ==, i ? BYTES :
                        10 * BYTES);
    }
}

/* Steps that are joined keep their sums, and step 0. */
static void check_joined_steps(McTimeSteps *steps)
{
    g_autoptr(GArray) cells = NULL;
    const McStepCell *c;

    mc_time_steps_join(steps);
    cells = mc_time_steps_cells(steps, MC_BY_STACK);
    c = (const McStepCell *)cells->data;
    g_assert_cmpuint(mc_time_steps_span(steps).width, ==, 2);
    g_assert_cmpuint(mc_time_steps_span(steps).n, ==, FREED / 2);
    g_assert_cmpuint(cells->len, ==, FREED / 2 + 1);
    g_assert_cmpint(c[0].value[MC_STEP_FREES], ==, 10);
    g_assert_cmpint(c[FREED / 2].value[MC_STEP_FREES], ==, 2);
}

TEST(a_loaded_state_is_the_beginning, "/timeline/load")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(McHeapProfile) p = mc_heap_profile_new();
    const McExport e = {
        .profile = p, .journal = path, .until_us = UINT64_MAX,
    };
    unsigned id = mc_heap_profile_label(p, "obj");
    g_autoptr(McTimeSteps) steps = mc_time_steps_new();
    g_autoptr(McTimeline) t = NULL;

    mc_profile_set(mc_heap_profile_stack(p, &id, 1), MC_TOP_peak, 1);
    write_journal(path);
    t = mc_timeline_new(&e, steps, NULL);
    g_assert_nonnull(t);
    g_assert_cmpuint(t->counter->len, ==, 2);
    g_assert_cmpstr(g_array_index(t->counter, McCounter, 1).name, ==, "obj");
    for (unsigned i = 0; i < t->counter->len; i++) {
        check_points(&g_array_index(t->counter, McCounter, i));
    }
    g_assert_cmpuint(t->us, ==, 1000 + FREED - 1);
    g_assert_cmpuint(t->corrected, ==, 0);
    check_steps(steps);
    check_joined_steps(steps);
}

TEST(what_is_no_journal_is_refused, "/timeline/no-journal")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(McHeapProfile) p = mc_heap_profile_new();
    const McExport e = { .profile = p, .journal = path };
    g_autoptr(GError) error = NULL;

    g_assert_null(mc_timeline_new(&e, NULL, &error));
    g_assert_nonnull(error);
}
