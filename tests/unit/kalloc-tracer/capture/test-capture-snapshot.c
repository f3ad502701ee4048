/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The VM's state includes what capture knows. It is loaded with or without
 * kernel=FILE, at once or when the kernel runs.
 */
#include "tests/lib/elf-writer.h"
#include "tests/lib/fake-capture.h"
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"

/* Saved with one block live, and a call under way. */
static GByteArray *state_of(bool file)
{
    g_autoptr(FakeCapture) w = fake_capture_new(NULL, file);

    test_qemu_run(START);
    g_assert_true(kt_capture_found(w->capture));
    run_kmalloc(w, BLOCK);
    enter_kmalloc(w, 2);
    return test_qemu_save();
}

static FakeCapture *load_with(const char *journal, const GByteArray *state,
                        bool file, bool hidden)
{
    FakeCapture *w = fake_capture_new(journal, file);
    g_autofree char *why = NULL;

    set_slabs_up(w);
    test_qemu_hide(hidden);
    why = test_qemu_load(state);
    g_assert_null(why);
    return w;
}

static FakeCapture *load(const GByteArray *state, bool file, bool hidden)
{
    return load_with(NULL, state, file, hidden);
}

/* At once: nothing is missed. */
/* Saved with kernel=FILE, loaded with it. */
static const bool with_file[][2] = {
    { false, false }, { true, true }, { false, true }, { true, false },
};

static void goes_on(gconstpointer data)
{
    const bool *file = data;
    g_autoptr(GByteArray) state = state_of(file[0]);
    g_autoptr(FakeCapture) w = load(state, file[1], false);

    g_assert_true(kt_capture_found(w->capture));
    leave_kmalloc(w, 2, BLOCK + 64);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 2);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK + 64);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 0);
}

TEST_WITH(goes_on, "/capture-state/without-file", with_file[0])
TEST_WITH(goes_on, "/capture-state/with-file", with_file[1])
TEST_WITH(goes_on, "/capture-state/then-with-file", with_file[2])

/* No stopped vCPU maps it. What happened until it was found is a gap: BLOCK
 * may have been freed, and handed out anew. */
static void found_as_soon_as_it_runs(gconstpointer data)
{
    const bool *file = data;
    g_autoptr(GByteArray) state = state_of(file[0]);
    g_autoptr(FakeCapture) w = load(state, file[1], true);

    g_assert_false(kt_capture_found(w->capture));
    test_qemu_run(TEXT + 0x600);
    g_assert_true(kt_capture_found(w->capture));
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 1);
    leave_kmalloc(w, 2, BLOCK + 64);
    run_kfree(w, BLOCK + 64);
    run_kmalloc(w, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_RETIRED_GAP), ==, 1);
}

TEST_WITH(found_as_soon_as_it_runs, "/capture-state/late", with_file[0])
TEST_WITH(found_as_soon_as_it_runs, "/capture-state/late-with-file",
          with_file[1])
TEST_WITH(found_as_soon_as_it_runs, "/capture-state/late-then-with-file",
          with_file[2])
TEST_WITH(found_as_soon_as_it_runs, "/capture-state/late-then-without-file",
          with_file[3])

/* As above, but what runs is not what was saved. */
TEST(another_kernel_runs, "/capture-state/another-kernel-runs")
{
    g_autoptr(GByteArray) state = state_of(false);
    g_autoptr(FakeCapture) w = load(state, false, true);

    set_banner(w, "Linux version 5.0 (nobody) #2");
    test_qemu_run(TEXT + 0x600);
    g_assert_true(kt_capture_found(w->capture));
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 1);
    run_kmalloc(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}

/* What was saved is certainly not the file's: it cannot be kept up. */
TEST(of_another_kernel_than_the_file,
     "/capture-state/of-another-kernel-than-the-file")
{
    g_autoptr(GByteArray) state = NULL;
    g_autoptr(FakeCapture) w = fake_capture_new(NULL, false);

    set_banner(w, "Linux version 5.0 (nobody) #2");
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    state = test_qemu_save();
    g_clear_pointer(&w, fake_capture_free);
    w = load(state, true, false);
    g_assert_false(kt_capture_found(w->capture));
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_LOADS_BLIND), ==, 1);
}

/* It is told once when the kernel is nowhere. */
TEST(never_found_again, "/capture-state/never-found-again")
{
    g_autoptr(GByteArray) state = state_of(true);
    g_autoptr(FakeCapture) w = load(state, true, true);

    set_banner(w, "something else");
    for (unsigned i = 0; i < 5000; i++) {
        test_qemu_run(TEXT + 0x600);
    }
    g_assert_false(kt_capture_found(w->capture));
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 1);
}

/* The VM's state came without a map. */
static void blind(gconstpointer data)
{
    const bool *file = data;
    g_autoptr(FakeCapture) w = load(NULL, *file, false);

    g_assert_false(kt_capture_found(w->capture));
    test_qemu_run(TEXT + 0x600);
    g_assert_true(kt_capture_found(w->capture));
    run_kfree(w, BLOCK);
    run_kmalloc(w, BLOCK + 64);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}

TEST_WITH(blind, "/capture-state/blind", with_file[0])
TEST_WITH(blind, "/capture-state/blind-with-file", with_file[1])

/* A call that met a breakpoint before the load is not the one that comes
 * again behind it. */
CAPTURE_TEST(not_retried_after_a_load, "/capture-state/not-retried")
{
    g_autoptr(GByteArray) state = NULL;

    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    state = test_qemu_save();
    test_qemu_trap(true);
    run_kfree(w, BLOCK);
    test_qemu_trap(false);
    g_assert_null(test_qemu_load(state));
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
}

/* ---- what was loaded ---------------------------------------------------- */

/* A function of a module that is not loaded any more, by the name of one that
 * is hooked, is no hook. */
static void hooks_are_the_kernels_own(gconstpointer file)
{
    g_autoptr(FakeCapture) w = fake_capture_new(NULL, *(const bool *)file);
    g_autoptr(GByteArray) state = NULL;

    test_qemu_run(START);
    state = test_qemu_save();
    for (unsigned hidden = 0; hidden < 2; hidden++) {
        load_module(w, MODULES, "m", "kfree_sensitive");
        test_qemu_hide(hidden);
        g_assert_null(test_qemu_load(state));
        g_assert_true(kt_capture_found(w->capture));
        for (unsigned id = 1; id <= UINT8_MAX; id++) {
            uint64_t va = kt_hooks_va(kt_capture_hooks(w->capture),
                                      (KtHookId) { id });

            g_assert_true(va < MODULES);
        }
    }
}

TEST_WITH(hooks_are_the_kernels_own, "/capture-state/hooks", with_file[0])
TEST_WITH(hooks_are_the_kernels_own, "/capture-state/hooks-with-file",
          with_file[1])

static bool see_report(const KtModuleReport *r, void *opaque)
{
    g_assert_cmpuint(r->loaded_us, ==, 0);
    (*(unsigned *)opaque)++;
    return true;
}

static unsigned n_reports(KtTracer *t)
{
    unsigned n = 0;

    kt_query_begin(t);
    kt_query_modules(t, see_report, &n);
    kt_query_end(t);
    return n;
}

/* Those of a state came before it, however late its kernel is found. */
static void modules_came_before(gconstpointer hidden)
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(FakeCapture) w = fake_capture_new(NULL, false);
    g_autoptr(GByteArray) state = NULL;
    g_autoptr(KtReplay) r = NULL;

    test_qemu_run(START);
    load_module(w, MODULES, "m", "f");
    run_kmalloc(w, BLOCK);
    state = test_qemu_save();
    g_clear_pointer(&w, fake_capture_free);
    w = load_with(path, state, false, *(const bool *)hidden);
    test_qemu_run(TEXT + 0x600);
    kt_tracer_drop_module(w->t, (GsKernel *)kt_capture_kernel(w->capture),
                          MODULES + 0x10000);
    g_assert_cmpuint(stats_of(w).last_us, >, 0);
    g_assert_cmpuint(n_reports(w->t), ==, 1);
    kt_tracer_save_status(w->t, &(KtStatus) { .kernel_found = true });
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    g_assert_cmpuint(n_reports(kt_replay_tracer(r)), ==, 1);
}

TEST_WITH(modules_came_before, "/capture-state/modules-came-before",
          with_file[0])
TEST_WITH(modules_came_before, "/capture-state/modules-came-before-late",
          with_file[1])

static bool is_loaded(KtTracer *t, const char *name)
{
    bool loaded;

    kt_query_begin(t);
    loaded = kt_query_module_loaded(t, name);
    kt_query_end(t);
    return loaded;
}

/* By the file, too, which makes no reports of them. */
TEST(unloaded_modules_are_named, "/capture-state/unloaded-modules")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(FakeCapture) w = fake_capture_new(NULL, false);
    g_autoptr(GByteArray) state = NULL;
    g_autoptr(KtReplay) r = NULL;
    const GsKernel *k;
    GsSymbol sym;

    test_qemu_run(START);
    load_module(w, MODULES, "gone", "f");
    kt_tracer_drop_module(w->t, (GsKernel *)kt_capture_kernel(w->capture),
                          MODULES + 0x10000);
    load_module(w, MODULES + 0x20000, "again", "g");
    state = test_qemu_save();
    g_clear_pointer(&w, fake_capture_free);
    w = load_with(path, state, false, false);
    kt_tracer_save_status(w->t, &(KtStatus) { .kernel_found = true });
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    g_assert_cmpuint(n_reports(kt_replay_tracer(r)), ==, 0);
    k = kt_replay_kernel(r);
    g_assert_cmpuint(gs_kernel_n_modules(k), ==, 1);
    g_assert_true(gs_kernel_symbolize(k, MODULES + 0x20, &sym));
    g_assert_cmpstr(sym.name, ==, "f");
    g_assert_cmpstr(sym.module, ==, "gone");
    g_assert_true(gs_kernel_symbolize(k, MODULES + 0x20020, &sym));
    g_assert_cmpstr(sym.name, ==, "g");
    g_assert_true(is_loaded(kt_replay_tracer(r), "again"));
    g_assert_false(is_loaded(kt_replay_tracer(r), "gone"));
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

static FakeCapture *plain_world(void)
{
    FakeCapture *w = fake_capture_new_of(NULL, plain_file());

    gs_kernel_read_image(w->file, LOW, test_qemu_map(LOW, 4096), 4096);
    return w;
}

/* In a new process only what runs tells, which need not be where the
 * architecture has Linux. In the same one it is the one that ran. */
TEST(a_profiles_kernel_is_found_late, "/capture-state/a-profiles-kernel")
{
    g_autoptr(FakeCapture) w = plain_world();
    g_autoptr(GByteArray) state = NULL;

    test_qemu_run(LOW);
    g_assert_true(kt_capture_found(w->capture));
    state = test_qemu_save();
    g_clear_pointer(&w, fake_capture_free);
    w = plain_world();
    test_qemu_hide(true);
    g_assert_null(test_qemu_load(state));
    g_assert_false(kt_capture_found(w->capture));
    test_qemu_run(LOW + 0x200);
    g_assert_true(kt_capture_found(w->capture));
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 1);
    g_assert_null(test_qemu_load(state));
    g_assert_true(kt_capture_found(w->capture));
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 0);
}
