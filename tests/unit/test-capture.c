/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture: the kernel is found, its calls become events; switching off and on,
 * resets.
 */
#include "capture-world.h"

static void calls_become_events(void)
{
    g_autoptr(World) w = world_new(NULL, false);

    test_qemu_run(START);
    g_assert_true(kt_capture_found(w->capture));
    run_kmalloc(w, BLOCK);
    run_kmalloc(w, BLOCK + 64);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/capture/calls-become-events", calls_become_events);
    return g_test_run();
}
