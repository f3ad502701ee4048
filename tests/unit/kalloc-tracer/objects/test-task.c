/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a task's words mean. Oracle: task_state_array[] in fs/proc/array.c. */
#include "kalloc-tracer/objects/objects-internal.h"
#include "tests/lib/test-main.h"

#include <string.h>

static char letter_of(uint64_t state, uint64_t exit_state)
{
    KtTask t = { 0 };

    kt_task_set(&t, KT_TASK_STATE, state);
    kt_task_set(&t, KT_TASK_EXIT_STATE, exit_state);
    return kt_task_state(&t);
}

TEST(test_state, "/task/state")
{
    static const struct {
        uint32_t state, exit_state;
        char letter;
    } row[] = {
        { 0, 0, 'R' }, { 1, 0, 'S' }, { 2, 0, 'D' }, { 0x402, 0, 'I' },
        { 4, 0, 'T' }, { 8, 0, 't' }, { 0x80, 0x20, 'Z' },
        { 0x80, 0x10, 'X' }, { 0x40, 0, 'P' }, { 0x2001, 0, 'S' },
        { 0x102, 0, 'D' },              /* TASK_KILLABLE */
        { 0x2402, 0, 'I' },             /* and TASK_FREEZABLE */
        { 0x1000, 0, 'D' },             /* waits for a lock, PREEMPT_RT */
        { 0x8000, 0, 'D' },             /* frozen */
        { 0x800, 0, 'R' },              /* TASK_NEW */
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_assert_cmpint(letter_of(row[i].state, row[i].exit_state), ==,
                        row[i].letter);
    }
}

TEST(test_unknown, "/task/unknown")
{
    KtTask t = { 0 };
    uint64_t v;

    g_assert_cmpint(kt_task_state(&t), ==, '-');
    for (unsigned i = 0; i < KT_TASK__COUNT; i++) {
        g_assert_false(kt_task_fact(&t, i, &v));
        g_assert_cmpuint(strlen(kt_task_fact_name(i)), >, 1);
    }
}
