/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The VM's state with what capture knows: loaded by a ka with or without
 * kernel=FILE, at once or as soon as the kernel runs.
 */
#include "capture-world.h"

/* ---- what was loaded ---------------------------------------------------- */

static void load_module(World *w, uint64_t va, const char *name,
                        const char *function)
{
    const GsModuleSymbol sym = { va + 0x10, function, 'T' };
    GsKernel *k = (GsKernel *)kt_capture_kernel(w->capture);

    g_assert_true(gs_kernel_add_module_data(k, va + 0x10000, name, va, 0x1000,
                                            &sym, 1, 0, NULL, NULL, 0, NULL));
    kt_tracer_save_module(w->t, k, va + 0x10000);
}

/* A function of a module that is not loaded any more, by the name of one that
 * is hooked, is no hook. */
static void hooks_are_the_kernels_own(gconstpointer file)
{
    g_autoptr(World) w = world_new(NULL, *(const bool *)file);
    g_autoptr(GByteArray) state = NULL;

    test_qemu_run(START);
    state = test_qemu_save();
    for (unsigned hidden = 0; hidden < 2; hidden++) {
        load_module(w, MODULES, "m", "kfree_sensitive");
        test_qemu_hide(hidden);
        g_assert_null(test_qemu_load(state));
        g_assert_true(kt_capture_found(w->capture));
        for (unsigned id = 1; id <= kt_hook_count(); id++) {
            uint64_t va = kt_hooks_va(kt_capture_hooks(w->capture),
                                      (KtHookId) { id });

            g_assert_true(va < MODULES);
        }
    }
}

/* ---- of a profile ------------------------------------------------------- */

#define LOW 0x80000000ull

static GsKernel *plain_file(void)
{
    static const uint8_t code[4096] = { 1, 2, 3, 4 };
    const ElfSymbol syms[] = {
        { "_entry", LOW, 1, STT_FUNC }, { "kfree", LOW + 0x100, 1, STT_FUNC },
    };
    const GsElfOptions o = { 0 };
    g_autoptr(GBytes) elf = NULL;
    GsKernel *k;
    ElfWriter w;

    elf_writer_start(&w);
    w.entry = LOW;
    elf_writer_add(&w, ".text", LOW, SHF_EXECINSTR, code, sizeof(code));
    elf_writer_symbols(&w, syms, G_N_ELEMENTS(syms));
    elf = elf_writer_finish(&w);
    k = gs_kernel_new_elf_from_data(g_bytes_get_data(elf, NULL),
                                    g_bytes_get_size(elf), &o, NULL);
    g_assert_nonnull(k);
    return k;
}

static World *plain_world(void)
{
    World *w = world_of(NULL, plain_file());

    gs_kernel_read_image(w->file, LOW, test_qemu_map(LOW, 4096), 4096);
    return w;
}

/* In a new process only what runs tells, which need not be where the
 * architecture has Linux. In the same one it is the one that ran. */
static void a_profiles_kernel_is_found_late(void)
{
    g_autoptr(World) w = plain_world();
    g_autoptr(GByteArray) state = NULL;

    test_qemu_run(LOW);
    g_assert_true(kt_capture_found(w->capture));
    state = test_qemu_save();
    g_clear_pointer(&w, world_free);
    w = plain_world();
    test_qemu_hide(true);
    g_assert_null(test_qemu_load(state));
    g_assert_false(kt_capture_found(w->capture));
    test_qemu_run(LOW + 0x200);
    g_assert_true(kt_capture_found(w->capture));
    g_assert_cmpuint(counter(w, KT_CNT_GAPS), ==, 1);
    g_assert_null(test_qemu_load(state));
    g_assert_true(kt_capture_found(w->capture));
    g_assert_cmpuint(counter(w, KT_CNT_GAPS), ==, 0);
}

int main(int argc, char **argv)
{
    static const bool cases[] = { false, true };

    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/capture-state/hooks", &cases[0],
                         hooks_are_the_kernels_own);
    g_test_add_data_func("/capture-state/hooks-with-file", &cases[1],
                         hooks_are_the_kernels_own);
    g_test_add_func("/capture-state/a-profiles-kernel",
                    a_profiles_kernel_is_found_late);
    return g_test_run();
}
