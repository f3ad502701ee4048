/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the types of a found kernel are from: its own, those of types=FILE
 * until the file is refused, or none. The user gets one line about it, and a
 * journal says the same.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-file.h"
#include "tests/lib/types-writer.h"
#include "kalloc-tracer/capture/capture-internal.h"

#include <elf.h>

#define RODATA      (KS_RODATA - KS_TEXT)
#define TYPES_AT    0x8000

static char *said;
static unsigned n_said;

static void say(const char *line)
{
    g_free(said);
    said = g_strdup(line);
    n_said++;
}

static void assert_said(unsigned n, const char *part)
{
    g_assert_cmpuint(n_said, ==, n);
    g_assert_nonnull(strstr(said, part));
    g_assert_null(strchr(said, '\n'));
}

/* Types that say where a kmem_cache has its name. */
static GBytes *make_btf(void)
{
    struct btf *types = btf__new_empty();
    int t_long = btf__add_int(types, "long", 8, 0);

    btf__add_struct(types, "kmem_cache", 256);
    btf__add_field(types, "name", t_long, 96 * 8, 0);
    return types_bytes(types);
}

static GsTypesFile *file_of(const char *banner)
{
    g_autoptr(GBytes) btf = make_btf();
    g_autoptr(GBytes) elf = types_elf(EM_X86_64, banner, btf);
    g_autoptr(GError) err = NULL;
    GsTypesFile *f = types_file(elf, &err);

    g_assert_no_error(err);
    return f;
}

static FakeCapture *start(const char *journal, const GsTypesFile *f)
{
    FakeCapture *w = fake_capture_new(journal, false);

    n_said = 0;
    kt_capture_set_types(w->capture, f, say);
    return w;
}

static const char *types_from(const FakeCapture *w)
{
    return gs_kernel_types_from(kt_capture_kernel(w->capture));
}

/* Let the file be refused: by it, the idle task has another name. */
static void refuse(FakeCapture *w)
{
    static const char comm[16] = "init";

    g_assert_false(kt_types_fit_task(&w->capture->fit, 0, comm));
}

TEST(no_types_is_said_once, "/boot-types/no-types-is-said-once")
{
    g_autoptr(FakeCapture) w = start(NULL, NULL);

    test_qemu_run(START);
    g_assert_cmpstr(types_from(w), ==, "none");
    assert_said(1, "this kernel has no types");
    test_qemu_reset();
    test_qemu_run(START);
    assert_said(1, "this kernel has no types");
}

TEST(own_types_come_first, "/boot-types/own-types-come-first")
{
    g_autoptr(GsTypesFile) f = file_of("Linux version 6.0.0-test");
    g_autoptr(GBytes) btf = make_btf();
    g_autoptr(FakeCapture) w = start(NULL, f);

    memcpy(w->image + RODATA + TYPES_AT, g_bytes_get_data(btf, NULL),
           g_bytes_get_size(btf));
    test_qemu_run(START);
    g_assert_cmpstr(types_from(w), ==, "BTF");
    assert_said(1, "types=FILE is not used");
}

TEST(file_of_another_kernel, "/boot-types/file-of-another-kernel")
{
    g_autoptr(GsTypesFile) f = file_of("Linux version 5.4 of others");
    g_autoptr(FakeCapture) w = start(NULL, f);

    test_qemu_run(START);
    g_assert_cmpstr(types_from(w), ==, "none");
    assert_said(1, "5.4 of others");
}

static GsTypesFile *fitting_file(void)
{
    return file_of("Linux version 6.0.0-test (somebody@somewhere) #1");
}

/* What was hooked is hooked again, and no event is missing. */
TEST(file_is_used_until_it_is_refused,
     "/boot-types/file-is-used-until-it-is-refused")
{
    g_autoptr(GsTypesFile) f = fitting_file();
    g_autoptr(FakeCapture) w = start(NULL, f);

    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    g_assert_cmpstr(types_from(w), ==, "file");
    g_assert_cmpuint(n_said, ==, 0);
    refuse(w);
    g_assert_cmpstr(types_from(w), ==, "none");
    assert_said(1, "not called swapper; it is not used");
    run_kmalloc(w, BLOCK + 64);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK + 64);
    g_assert_cmpuint(stats_of(w).events, ==, 4);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}

/* The next boot tries the file again. */
TEST(file_is_tried_at_each_boot, "/boot-types/file-is-tried-at-each-boot")
{
    g_autoptr(GsTypesFile) f = fitting_file();
    g_autoptr(FakeCapture) w = start(NULL, f);

    test_qemu_run(START);
    refuse(w);
    test_qemu_reset();
    test_qemu_run(START);
    g_assert_cmpstr(types_from(w), ==, "file");
    refuse(w);
    assert_said(1, "not called swapper");
}

/* Write a journal of a boot in which a module is loaded before the file is
 * refused. */
static void write_journal(const char *path, bool refused)
{
    g_autoptr(GsTypesFile) f = fitting_file();
    g_autoptr(FakeCapture) w = start(path, f);

    test_qemu_run(START);
    load_module(w, MODULES, "m", "f");
    kt_tracer_save_module(w->t, kt_capture_kernel(w->capture),
                          MODULES + 0x10000);
    run_kmalloc(w, BLOCK);
    if (refused) {
        refuse(w);
    }
    run_kfree(w, BLOCK);
}

static void expect_journal(bool refused, const char *types)
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtReplay) r = NULL;
    GsSymbol sym;

    write_journal(path, refused);
    r = read_all(path);
    g_assert_cmpstr(gs_kernel_types_from(kt_replay_kernel(r)), ==, types);
    g_assert_true(gs_kernel_lookup(kt_replay_kernel(r), "m:f", &sym));
}

TEST(journal_says_where_types_are_from,
     "/boot-types/journal-says-where-types-are-from")
{
    expect_journal(false, "file");
    expect_journal(true, "none");
}

int main(int argc, char **argv)
{
    int rc = test_run(argc, argv);

    g_free(said);
    return rc;
}
