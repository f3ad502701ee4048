/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The finder: kernels in memory, kernels of a file, and no kernel at all.
 */
#include "tests/lib/elf-writer.h"
#include "tests/lib/test-main.h"
#include "tests/lib/kallsyms-writer.h"
#include "kalloc-tracer/kernel/kernel-finder.h"

#include <string.h>

#define BASE    0xffffffff9ae00000ull   /* where KASLR put it */
#define HUGE    0x200000ull
#define RODATA  (BASE + HUGE)
#define STATE_AT 0x20
#define STATE   (RODATA + STATE_AT)
#define LOW     0x80000000ull

static const KsSymbol symbols[] = {
    { 0x100, 'A', "pcpu_hot" },
    { BASE, 'T', "_stext" },
    { BASE + 0x200, 'T', "start_kernel" },
    { BASE + 0x300, 'T', "kfree" },
    { BASE + 0x400, 'T', "_etext" },
    { STATE, 'D', "slab_state" },
    { RODATA + KS_BANNER_AT, 'D', "linux_banner" },
};

/* Memory that the guest has mapped. */
static struct {
    uint64_t va;
    uint64_t len;
    uint8_t *bytes;
    uint64_t hole;          /* an unreadable page */
    unsigned views;
} memory;

static const void *view(uint64_t va, size_t *avail)
{
    uint64_t off = va - memory.va;

    memory.views++;
    *avail = 4096 - va % 4096;
    return off < memory.len && (va & ~0xfffull) != memory.hole
           ? memory.bytes + off : NULL;
}

static void clear_memory(void)
{
    g_free(memory.bytes);
    memset(&memory, 0, sizeof(memory));
}

static void map_nothing_known(void)
{
    clear_memory();
    memory.va = BASE;
    memory.len = 2 * HUGE;
    memory.bytes = g_malloc0(memory.len);
    memset(memory.bytes, 0xcc, HUGE);
}

/* Make an image: text, then read-only data, as when a kernel starts. */
static void map_kernel(void)
{
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_PERCPU, .syms = symbols,
        .n = G_N_ELEMENTS(symbols), .va = RODATA + KS_TABLE,
    };
    uint8_t *ro;

    map_nothing_known();
    ks_write(&w);
    ro = memory.bytes + HUGE;
    memcpy(ro + KS_BANNER_AT, KS_BANNER, sizeof(KS_BANNER));
    memcpy(ro + KS_TABLE, w.out->data, w.out->len);
    g_byte_array_unref(w.out);
}

typedef struct Found {
    GsKernel *k;
    uint64_t slide;
    bool complete;
} Found;

static Found look(KtFinder *f, uint64_t va)
{
    Found found = { 0 };

    if (kt_finder_wants(f, va)) {
        found.k = kt_finder_try(f, va, &found.slide, &found.complete);
    }
    return found;
}

/* A case with a finder @f for x86-64. */
#define FINDER_TEST(fn, path) \
    TEST_IN(g_autoptr(KtFinder), KtFinder *f, \
            kt_finder_new(gs_arch_nth(0), NULL, view), fn, path)

/* ---- in memory ---------------------------------------------------------- */

FINDER_TEST(the_first_block_tells, "/find/the-first-block-tells")
{
    GsSymbol sym;
    Found found;

    map_kernel();
    found = look(f, BASE + 0xd3);
    g_assert_nonnull(found.k);
    g_assert_cmphex(found.slide, ==, 0);
    g_assert_true(found.complete);
    g_assert_cmpuint(gs_kernel_n_symbols(found.k), ==,
                     G_N_ELEMENTS(symbols));
    g_assert_cmpstr(gs_kernel_banner(found.k), ==,
                    "Linux version 6.0.0-test (somebody@somewhere) #1");
    g_assert_true(gs_kernel_lookup(found.k, "kfree", &sym));
    g_assert_cmphex(sym.va, ==, BASE + 0x300);
    g_assert_true(gs_kernel_is_text(found.k, BASE + 0x300));
    g_assert_false(gs_kernel_is_text(found.k, RODATA));
}

FINDER_TEST(any_part_of_it, "/find/any-part-of-it")
{
    map_kernel();
    g_assert_nonnull(look(f, RODATA + HUGE - 1).k);
}

/* The kernel has freed some of its memory: the rest is enough. */
FINDER_TEST(a_page_is_gone, "/find/a-page-is-gone")
{
    map_kernel();
    memory.hole = BASE + 0x10000;
    g_assert_nonnull(look(f, BASE).k);
}

FINDER_TEST(user_and_module_addresses_are_not_looked_at,
            "/find/other-addresses")
{
    map_kernel();
    memory.views = 0;
    g_assert_null(look(f, 0x401000).k);
    g_assert_null(look(f, 0xffff888000000000ull).k);
    g_assert_null(look(f, 0xffffffffc0100000ull).k);
    g_assert_cmpuint(memory.views, ==, 0);
}

FINDER_TEST(says_why_not, "/find/says-why-not")
{
    g_assert_null(kt_finder_why_not(f));
    g_assert_false(kt_finder_has_tried(f));
    map_nothing_known();
    g_assert_null(look(f, BASE).k);
    g_assert_true(kt_finder_has_tried(f));
    g_assert_nonnull(strstr(kt_finder_why_not(f), "kallsyms"));
    g_assert_nonnull(strstr(kt_finder_why_not(f), "ffffffff9ae00000"));
    clear_memory();
    g_assert_null(look(f, BASE).k);
    g_assert_nonnull(strstr(kt_finder_why_not(f), "mapped"));
}

/* Other code ran there before: then slab_state says if the map is complete. */
FINDER_TEST(found_late, "/find/late")
{
    Found found;

    map_nothing_known();
    g_assert_null(look(f, BASE).k);
    map_kernel();
    found = look(f, BASE);
    g_assert_nonnull(found.k);
    g_assert_true(found.complete);
    kt_finder_restart(f, false);
    map_nothing_known();
    g_assert_null(look(f, BASE).k);
    map_kernel();
    memory.bytes[STATE - BASE] = 3;
    found = look(f, BASE);
    g_assert_nonnull(found.k);
    g_assert_false(found.complete);
}

FINDER_TEST(gives_up, "/find/gives-up")
{
    unsigned looks = 0;

    map_nothing_known();
    for (unsigned i = 0; i < 5000; i++) {
        memory.views = 0;
        look(f, BASE);
        looks += memory.views > 0;
    }
    g_assert_cmpuint(looks, ==, 12);
    g_assert_false(kt_finder_wants(f, BASE));
    map_kernel();
    g_assert_null(look(f, BASE).k);
    g_assert_true(kt_finder_restart(f, false));
    g_assert_false(kt_finder_restart(f, false));
    g_assert_nonnull(look(f, BASE).k);
}

/* ---- with a file -------------------------------------------------------- */

static void expect_at_its_slide(bool data_symbols)
{
    static const KsSymbol linked[] = {
        { KS_TEXT, 'T', "_stext" },
        { KS_TEXT + 0x200, 'T', "start_kernel" },
        { KS_TEXT + 0x300, 'T', "_etext" },
        { KS_RODATA + KS_BANNER_AT, 'D', "linux_banner" },
    };
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_PERCPU, .syms = linked,
        .n = G_N_ELEMENTS(linked) - !data_symbols,
    };
    g_autoptr(GBytes) elf = ks_kernel(&w, 0x1000);
    g_autoptr(GError) err = NULL;
    size_t len;
    const void *data = g_bytes_get_data(elf, &len);
    g_autoptr(GsKernel) k = gs_kernel_new_from_data(data, len, "made", &err);
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);
    uint64_t slide = BASE - KS_TEXT;
    Found found;

    g_assert_no_error(err);
    g_byte_array_unref(w.out);
    clear_memory();
    memory.va = KS_RODATA + slide;
    memory.len = 4096;
    memory.bytes = g_malloc0(4096);
    g_assert_false(kt_finder_wants(f, BASE));
    g_assert_true(kt_finder_wants(f, BASE + 0x200));
    g_assert_null(look(f, BASE + 0x200).k);
    memcpy(memory.bytes + KS_BANNER_AT, KS_BANNER, sizeof(KS_BANNER));
    g_assert_null(look(f, BASE + HUGE + 0x200).k);
    found = look(f, BASE + 0x200);
    g_assert_true(found.k == k);
    g_assert_cmphex(found.slide, ==, slide);
    g_assert_true(found.complete);
}

TEST(the_files_kernel_at_its_slide, "/find/the-files-kernel")
{
    expect_at_its_slide(true);
}

/* Without KALLSYMS_ALL there is no symbol of the banner. */
TEST(the_files_kernel_without_data_symbols,
     "/find/the-files-kernel-without-data-symbols")
{
    expect_at_its_slide(false);
}

/* ---- with a file, after the kernel has started -------------------------- */

static const KsSymbol file_symbols[] = {
    { KS_TEXT, 'T', "_stext" },
    { KS_TEXT + 0x200, 'T', "start_kernel" },
    { KS_TEXT + 3 * HUGE, 'T', "_etext" },
    { KS_RODATA + STATE_AT, 'D', "slab_state" },
    { KS_RODATA + KS_BANNER_AT, 'D', "linux_banner" },
};
#define N_DATA_SYMBOLS 2        /* the last ones; 0 without KALLSYMS_ALL */

static GsKernel *file_kernel_of(unsigned n_symbols)
{
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_PERCPU, .syms = file_symbols,
        .n = n_symbols,
    };
    g_autoptr(GBytes) elf = ks_kernel(&w, 3 * HUGE);
    GsKernel *k = gs_kernel_new_from_data(g_bytes_get_data(elf, NULL),
                                          g_bytes_get_size(elf), "made", NULL);

    g_assert_nonnull(k);
    g_byte_array_unref(w.out);
    return k;
}

static GsKernel *file_kernel(void)
{
    return file_kernel_of(G_N_ELEMENTS(file_symbols));
}

static GsKernel *system_map(void)
{
    g_autoptr(GString) text =
        g_string_new("0000000000000000 A __per_cpu_start\n");
    GsKernel *k;

    for (unsigned i = 0; i < G_N_ELEMENTS(file_symbols); i++) {
        g_string_append_printf(text, "%016" G_GINT64_MODIFIER "x %c %s\n",
                               file_symbols[i].va, file_symbols[i].type,
                               file_symbols[i].name);
    }
    k = gs_kernel_new_from_data(text->str, text->len, "System.map", NULL);
    g_assert_nonnull(k);
    return k;
}

/* Set what the finder reads: the banner, and slab_state. */
static void map_banner(uint64_t slide, const char *banner)
{
    clear_memory();
    memory.va = KS_RODATA + slide;
    memory.len = 4096;
    memory.bytes = g_malloc0(4096);
    memory.bytes[STATE_AT] = 3;
    memcpy(memory.bytes + KS_BANNER_AT, banner, strlen(banner));
}

static void map_before_slabs(uint64_t slide)
{
    map_banner(slide, KS_BANNER);
    memory.bytes[STATE_AT] = 0;
}

static void expect_late(GsKernel *k)
{
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);
    Found found;

    map_banner(BASE - KS_TEXT, KS_BANNER);
    g_assert_null(look(f, BASE + 0x123456).k);
    kt_finder_late(f, true);
    g_assert_null(look(f, BASE + 0x20000000).k);
    found = look(f, BASE + 0x123456);
    g_assert_true(found.k == k);
    g_assert_cmphex(found.slide, ==, BASE - KS_TEXT);
    g_assert_false(found.complete);
    g_assert_false(kt_finder_wants(f, BASE + 0x123456));
}

TEST(the_files_kernel_runs_already, "/find/the-files-kernel-runs-already")
{
    g_autoptr(GsKernel) k = file_kernel();

    expect_late(k);
}

/* The file has no banner text, but a symbol of it. */
TEST(the_system_maps_kernel_runs_already,
     "/find/the-system-maps-kernel-runs-already")
{
    g_autoptr(GsKernel) k = system_map();

    expect_late(k);
}

TEST(late_is_given_up, "/find/late-is-given-up")
{
    g_autoptr(GsKernel) k = file_kernel();
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);

    kt_finder_late(f, true);
    map_banner(BASE - KS_TEXT, "Linux version 5.0 of others");
    for (unsigned i = 0; i < 5000; i++) {
        g_assert_null(look(f, BASE + 0x1234).k);
    }
    g_assert_false(kt_finder_wants(f, BASE + 0x1234));
    g_assert_true(kt_finder_wants(f, BASE + 0x200));
}

static void run_before_slabs(KtFinder *f)
{
    for (unsigned i = 0; i < 5000; i++) {
        g_assert_null(look(f, BASE + 0x1234).k);
    }
}

/* The kernel runs at its link address first, then at its slide. */
TEST(before_it_starts, "/find/before-it-starts")
{
    g_autoptr(GsKernel) k = file_kernel();
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);
    uint64_t slide = BASE - KS_TEXT;
    Found found;

    gs_kernel_set_slide(k, 7 * HUGE);       /* of the boot before */
    kt_finder_late(f, false);
    map_before_slabs(slide);
    run_before_slabs(f);
    map_before_slabs(slide + HUGE);
    g_assert_null(look(f, BASE + HUGE + 0x1234).k);
    found = look(f, BASE + HUGE + 0x200);
    g_assert_true(found.k == k);
    g_assert_cmphex(found.slide, ==, slide + HUGE);
    g_assert_true(found.complete);
}

/* The snapshot was made after the start and before the first slab. */
TEST(after_its_start_before_slabs, "/find/after-its-start-before-slabs")
{
    g_autoptr(GsKernel) k = file_kernel();
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);
    Found found = { 0 };

    kt_finder_late(f, true);
    map_before_slabs(BASE - KS_TEXT);
    run_before_slabs(f);
    memory.bytes[STATE_AT] = 1;
    for (unsigned i = 0; !found.k && i < 5000; i++) {
        found = look(f, BASE + 0x1234);
    }
    g_assert_true(found.k == k);
    g_assert_cmphex(found.slide, ==, BASE - KS_TEXT);
    g_assert_false(found.complete);
}

/* The file has no symbol slab_state. */
TEST(without_data_symbols_its_start_is_waited_for,
     "/find/without-data-symbols-its-start")
{
    unsigned n = G_N_ELEMENTS(file_symbols) - N_DATA_SYMBOLS;
    g_autoptr(GsKernel) k = file_kernel_of(n);
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);

    map_banner(BASE - KS_TEXT, KS_BANNER);
    kt_finder_late(f, false);
    g_assert_false(kt_finder_wants(f, BASE + 0x1234));
    g_assert_true(look(f, BASE + 0x200).complete);
    kt_finder_restart(f, false);
    kt_finder_late(f, true);
    g_assert_true(look(f, BASE + 0x1234).k == k);
}

/* The snapshot was made without a file: it has the address of the image. */
TEST(the_files_kernel_by_its_image, "/find/the-files-kernel-by-its-image")
{
    g_autoptr(GsKernel) k = file_kernel();
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);
    g_autofree char *banner = g_strchomp(g_strdup(KS_BANNER));
    KtKernelAt at = {
        .banner = banner, .memory = true, .start = BASE - HUGE,
        .end = BASE + 16 * HUGE,
    };

    map_banner(BASE - KS_TEXT, KS_BANNER);
    g_assert_true(kt_finder_return(f, &at, 0, view) == k);
    g_assert_cmphex(gs_kernel_slide(k), ==, BASE - KS_TEXT);
    at.start = KS_RODATA + BASE - KS_TEXT + HUGE;
    g_assert_null(kt_finder_return(f, &at, 0, view));
    at.start = 0xffff800000000000ull;
    at.end = UINT64_MAX;
    memory.views = 0;
    g_assert_null(kt_finder_return(f, &at, 0, view));
    g_assert_cmpuint(memory.views, <=, 2 * 4096);
    at.banner = (char *)"Linux version 5.0";
    g_assert_false(kt_finder_may_return(f, &at));
    at.banner = (char *)"";
    g_assert_null(kt_finder_return(f, &at, 0, view));
}

/* The kernel was found after it had freed and unmapped its init code. */
TEST(the_files_kernel_by_part_of_its_image,
     "/find/the-files-kernel-by-part-of-its-image")
{
    g_autoptr(GsKernel) k = file_kernel();
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);
    g_autofree char *banner = g_strchomp(g_strdup(KS_BANNER));
    uint64_t slide = BASE - KS_TEXT;
    uint64_t va = KS_RODATA + KS_BANNER_AT + slide;
    KtKernelAt at = {
        .banner = banner, .memory = true, .start = va,
        .end = va + strlen(banner),
    };

    map_banner(slide, KS_BANNER);
    g_assert_true(kt_finder_return(f, &at, 0, view) == k);
    g_assert_cmphex(gs_kernel_slide(k), ==, slide);
    at.end--;
    g_assert_null(kt_finder_return(f, &at, 0, view));
}

/* ---- with a profile ----------------------------------------------------- */

/* A kernel that is not Linux: at its link address only, and with its code. */
TEST(a_plain_kernel_where_it_is_linked, "/find/a-plain-kernel")
{
    static const uint8_t code[4096] = { 1, 2, 3, 4 };
    const ElfSymbol syms[] = { { "_entry", LOW, 1, STT_FUNC } };
    const GsElfOptions o = { 0 };
    g_autoptr(GsKernel) k = NULL;
    g_autoptr(KtFinder) f = NULL;
    g_autoptr(GBytes) elf = NULL;
    ElfWriter w;
    Found found;

    elf_writer_start(&w);
    w.entry = LOW;
    elf_writer_add(&w, ".text", LOW, SHF_EXECINSTR, code, sizeof(code));
    elf_writer_symbols(&w, syms, G_N_ELEMENTS(syms));
    elf = elf_writer_finish(&w);
    k = gs_kernel_new_elf_from_data(g_bytes_get_data(elf, NULL),
                                    g_bytes_get_size(elf), &o, NULL);
    f = kt_finder_new(gs_arch_nth(0), k, view);
    g_assert_cmphex(kt_finder_lowest(f), ==, LOW);
    clear_memory();
    memory.va = LOW;
    memory.len = 4096;
    memory.bytes = g_malloc0(4096);
    g_assert_false(kt_finder_wants(f, LOW + HUGE));
    g_assert_true(kt_finder_wants(f, LOW));
    g_assert_null(look(f, LOW).k);
    memcpy(memory.bytes, code, sizeof(code));
    found = look(f, LOW);
    g_assert_true(found.k == k);
    g_assert_cmphex(found.slide, ==, 0);
    g_assert_true(found.complete);
}

/* kexec: the old kernel still runs, until another one is at its address. */
FINDER_TEST(after_kexec, "/find/after-kexec")
{
    GsKernel *before;
    uint32_t up = 3;

    map_kernel();
    before = look(f, BASE).k;
    g_assert_nonnull(before);
    memcpy(memory.bytes + (STATE - memory.va), &up, sizeof(up));
    kt_finder_restart(f, true);
    for (unsigned i = 0; i < 100; i++) {
        g_assert_null(look(f, BASE + 0x300).k);
    }
    map_kernel();
    g_assert_nonnull(look(f, BASE).k);
}

/* ---- a loaded snapshot -------------------------------------------------- */

/* A snapshot was loaded, and all vCPUs are in user mode. */
FINDER_TEST(known_without_a_look, "/find/known-without-a-look")
{
    GsKernel *before;
    KtKernelAt at;

    map_kernel();
    before = look(f, BASE).k;
    g_assert_nonnull(before);
    kt_kernel_at(before, &at);
    g_assert_true(kt_finder_return(f, &at, 0, view) == before);
    clear_memory();
    g_assert_null(kt_finder_return(f, &at, 0, view));
    g_assert_true(kt_finder_known(f, &at) == before);
    at.start += HUGE;
    at.end += HUGE;
    g_assert_null(kt_finder_known(f, &at));
    kt_kernel_at_clear(&at);
}

FINDER_TEST(not_another_one, "/find/not-another-one")
{
    KtKernelAt at;

    map_kernel();
    kt_kernel_at(look(f, BASE).k, &at);
    at.banner[strlen(at.banner) - 1]++;
    g_assert_null(kt_finder_known(f, &at));
    kt_kernel_at_clear(&at);
}
