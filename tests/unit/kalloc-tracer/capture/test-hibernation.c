/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest saves and loads hibernation images, and the map goes with them. */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"

#define NO_MEMORY ((uint64_t)-12)
#define ELSEWHERE (TEXT + 0x8000000)
#define NEAR      0x10000ull
enum { SAVE = 3, LOAD };        /* places on the stack */

/* BLOCK is live when the image is saved. Then it is freed, and another block
 * is allocated. */
static void save(FakeCapture *w, uint64_t result)
{
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    call(w, SAVE, IMAGE_SAVE, 0);
    leave_kmalloc(w, SAVE, result);
    run_kfree(w, BLOCK);
    run_kmalloc(w, BLOCK + 64);
}

static void expect_restored(FakeCapture *w)
{
    g_assert_cmpuint(counter_of(w, KT_CNT_IMAGES), ==, 1);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 0);
}

/* No free of a block that was there before is an error. */
static void expect_blind(FakeCapture *w)
{
    g_assert_cmpuint(counter_of(w, KT_CNT_IMAGES_BLIND), ==, 1);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    set_slabs_up(w);
    test_qemu_run(TEXT + 0x600);
    g_assert_true(kt_capture_found(w->capture));
    run_kfree(w, BLOCK);
    run_kmalloc(w, BLOCK + 128);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}

CAPTURE_TEST(in_one_boot, "/hibernation/in-one-boot")
{
    save(w, 0);
    call(w, LOAD, IMAGE_LOAD, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_IMAGES), ==, 0);
    test_qemu_run(IMAGE_WAKES);
    expect_restored(w);
}

CAPTURE_TEST(after_a_reset, "/hibernation/after-a-reset")
{
    save(w, 0);
    test_qemu_reset();
    test_qemu_run(START);
    run_kmalloc(w, BLOCK + 256);
    call(w, LOAD, IMAGE_LOAD, 0);
    test_qemu_run(IMAGE_WAKES);
    expect_restored(w);
}

/* Nothing happens if the kernel's function runs for another reason. */
CAPTURE_TEST(not_loaded, "/hibernation/not-loaded")
{
    save(w, 0);
    call(w, LOAD, IMAGE_LOAD, 0);
    leave_kmalloc(w, LOAD, NO_MEMORY);
    test_qemu_run(IMAGE_WAKES);
    g_assert_cmpuint(counter_of(w, KT_CNT_IMAGES), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_IMAGES_BLIND), ==, 0);
    run_kfree(w, BLOCK + 64);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
}

CAPTURE_TEST(not_saved, "/hibernation/not-saved")
{
    save(w, NO_MEMORY);
    call(w, LOAD, IMAGE_LOAD, 0);
    test_qemu_run(IMAGE_WAKES);
    expect_blind(w);
}

/* The image of another boot has its kernel at another address. */
CAPTURE_TEST(unknown_elsewhere, "/hibernation/unknown-elsewhere")
{
    save(w, NO_MEMORY);
    call(w, LOAD, IMAGE_LOAD, 0);
    test_qemu_run(ELSEWHERE);
    expect_blind(w);
}

/* Both kernels overlap. */
CAPTURE_TEST(unknown_near, "/hibernation/unknown-near")
{
    save(w, NO_MEMORY);
    call(w, LOAD, IMAGE_LOAD, 0);
    test_qemu_run(KMALLOC);
    g_assert_cmpuint(counter_of(w, KT_CNT_IMAGES_BLIND), ==, 0);
    test_qemu_run(IMAGE_WAKES + NEAR);
    expect_blind(w);
}

/* A state of the VM is of another time than the image. */
CAPTURE_TEST(load_forgets, "/hibernation/load-forgets")
{
    g_autoptr(GByteArray) state = NULL;
    g_autofree char *why = NULL;

    save(w, 0);
    state = test_qemu_save();
    why = test_qemu_load(state);
    g_assert_null(why);
    call(w, LOAD, IMAGE_LOAD, 0);
    test_qemu_run(IMAGE_WAKES);
    expect_blind(w);
}

/* One image can be loaded once. */
CAPTURE_TEST(loaded_twice, "/hibernation/loaded-twice")
{
    save(w, 0);
    for (unsigned i = 0; i < 2; i++) {
        call(w, LOAD, IMAGE_LOAD, 0);
        test_qemu_run(IMAGE_WAKES);
    }
    g_assert_cmpuint(counter_of(w, KT_CNT_IMAGES), ==, 1);
    expect_blind(w);
}
