/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/bare-tracer.h"
#include "tests/lib/fake-capture.h"

static void name_kernel(KsSymbol syms[N_SYMBOLS], uint64_t slide)
{
    const KsSymbol linked[N_SYMBOLS] = {
        { KS_TEXT, 'T', "_stext" },
        { KS_TEXT + 0x200, 'T', "start_kernel" },
        { KS_TEXT + 0x300, 'T', "__kmalloc" },
        { KS_TEXT + 0x400, 'T', "kfree" },
        { KS_TEXT + 0x600, 'T', "kmem_cache_free" },
        { KS_TEXT + 0x680, 'T', "kmem_cache_alloc" },
        { KS_TEXT + 0x690, 'T', "kvfree_rcu_cb" },
        { KS_TEXT + 0x6a0, 'T', "vmap" },
        { KS_TEXT + 0x6b0, 'T', "vunmap" },
        { KS_TEXT + 0x6c0, 't', "not_hooked" },
        { KS_TEXT + 0x6e0, 'T', "memset" },
        { KS_TEXT + 0x700, 'T', "__kmem_cache_free_bulk" },
        { KS_TEXT + 0x780, 't', "module_unload_free" },
        { KS_TEXT + 0x7a0, 'T', "__vmalloc_node_range" },
        { KS_TEXT + 0x7c0, 'T', "vfree" },
        { KS_TEXT + 0x7e0, 'T', "vfree_atomic" },
        { KS_TEXT + 0x820, 't', "delayed_vfree_work" },
        { KS_TEXT + 0x840, 't', "flush_work" },
        { KS_TEXT + 0x860, 'T', "return_to_handler" },
        { KS_TEXT + 0x880, 'T', "kfree_sensitive" },
        { KS_TEXT + 0x8a0, 'T', "krealloc" },
        { KS_TEXT + 0xa00, 'T', "__kmem_cache_alloc_node" },
        { KS_TEXT + 0xa20, 'T', "__kmem_cache_free" },
        { KS_TEXT + 0xa40, 'T', "swsusp_save" },
        { KS_TEXT + 0xa60, 'T', "swsusp_arch_resume" },
        { KS_TEXT + 0xa80, 'T', "restore_processor_state" },
        { KS_TEXT + 0x1000, 'T', "_etext" },
        { KS_RODATA + STATE, 'D', "slab_state" },
        { KS_RODATA + JIFFIES, 'D', "jiffies_64" },
        { KS_RODATA + KS_BANNER_AT, 'D', "linux_banner" },
    };

    for (unsigned i = 0; i < N_SYMBOLS; i++) {
        syms[i] = linked[i];
        syms[i].va += slide;
    }
}

static GsKernel *kernel_file(void)
{
    KsSymbol syms[N_SYMBOLS];
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_PERCPU, .syms = syms, .n = N_SYMBOLS,
    };
    g_autoptr(GError) err = NULL;
    g_autoptr(GBytes) elf = NULL;
    GsKernel *k;

    name_kernel(syms, 0);
    elf = ks_kernel(&w, 0x1000);
    g_byte_array_unref(w.out);
    k = gs_kernel_new_from_data(g_bytes_get_data(elf, NULL),
                                g_bytes_get_size(elf), "made", &err);
    g_assert_no_error(err);
    return k;
}

/* Map the kernel from its text to its read-only data. */
static void map_kernel(FakeCapture *w)
{
    KsSymbol syms[N_SYMBOLS];
    KsWriter ks = {
        .order = KS_6_4, .addresses = KS_PERCPU, .syms = syms, .n = N_SYMBOLS,
        .va = KS_RODATA + SLIDE + KS_TABLE,
    };
    uint8_t *ro;

    name_kernel(syms, SLIDE);
    ks_write(&ks);
    w->image = test_qemu_map(TEXT, KS_RODATA - KS_TEXT + 0x200000);
    ro = w->image + (KS_RODATA - KS_TEXT);
    memcpy(ro + KS_BANNER_AT, KS_BANNER, sizeof(KS_BANNER));
    memcpy(ro + KS_TABLE, ks.out->data, ks.out->len);
    g_byte_array_unref(ks.out);
}

void set_banner(FakeCapture *w, const char *banner)
{
    uint8_t *at = w->image + (KS_RODATA - KS_TEXT) + KS_BANNER_AT;

    memset(at, 0, sizeof(KS_BANNER));
    memcpy(at, banner, strlen(banner));
}

void set_jiffies(FakeCapture *w, uint64_t jiffies)
{
    memcpy(w->image + (KS_RODATA - KS_TEXT) + JIFFIES, &jiffies,
           sizeof(jiffies));
}

void set_slabs_up(FakeCapture *w)
{
    w->image[KS_RODATA - KS_TEXT + STATE] = 3;
}

FakeCapture *fake_capture_new_of(const char *journal, GsKernel *file)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(GError) err = NULL;
    FakeCapture *w = g_new0(FakeCapture, 1);

    config.journal = journal;
    w->t = kt_tracer_new(&config, &err);
    g_assert_no_error(err);
    w->file = file;
    w->capture = test_qemu_start(w->t, w->file);
    w->stack = test_qemu_map(STACK, 4096);
    map_kernel(w);
    return w;
}

FakeCapture *fake_capture_new(const char *journal, bool file)
{
    return fake_capture_new_of(journal, file ? kernel_file() : NULL);
}

void fake_capture_free(FakeCapture *w)
{
    test_qemu_end();
    kt_tracer_free(w->t);
    gs_kernel_free(w->file);
    g_free(w);
}

void call(FakeCapture *w, unsigned place, uint64_t va, uint64_t arg)
{
    uint64_t ra = CALLER + 0x10 * place;

    memcpy(w->stack + 64 * place, &ra, sizeof(ra));
    *test_qemu_reg(GS_REG_SP) = STACK + 64 * place;
    *test_qemu_reg(GS_REG_ARG0) = arg;
    test_qemu_run(va);
}

void enter_kmalloc(FakeCapture *w, unsigned place)
{
    call(w, place, KMALLOC, 64);
}

void leave_kmalloc(FakeCapture *w, unsigned place, uint64_t va)
{
    *test_qemu_reg(GS_REG_SP) = STACK + 64 * place + 8;
    *test_qemu_reg(GS_REG_RESULT) = va;
    test_qemu_run(CALLER + 0x10 * place);
}

void run_kmalloc(FakeCapture *w, uint64_t va)
{
    enter_kmalloc(w, 0);
    leave_kmalloc(w, 0, va);
}

void run_kfree(FakeCapture *w, uint64_t va)
{
    call(w, 1, KFREE, va);
}

void load_module(FakeCapture *w, uint64_t va, const char *name,
                 const char *function)
{
    const GsModuleSymbol sym = { va + 0x10, function, 'T' };
    GsKernel *k = (GsKernel *)kt_capture_kernel(w->capture);

    g_assert_true(gs_kernel_add_module_data(k, va + 0x10000, name, va, 0x1000,
                                            &sym, 1, 0, NULL, NULL, 0, NULL));
    kt_tracer_save_module(w->t, k, va + 0x10000);
}

uint32_t watch_functions(FakeCapture *w, const char *functions)
{
    const KtWatchSpec spec = { .functions = functions };
    g_autoptr(GError) err = NULL;
    uint32_t id;

    kt_calls_configure(w->t, 1 << 20, 1);
    id = kt_calls_add(w->t, kt_capture_kernel(w->capture), &spec, &err);
    g_assert_no_error(err);
    return id;
}

KtStats stats_of(FakeCapture *w)
{
    return tracer_stats(w->t);
}

uint64_t counter_of(FakeCapture *w, KtCounter c)
{
    kt_capture_lock(w->capture);
    kt_capture_sync_counters(w->capture);
    kt_capture_unlock(w->capture);
    stats_of(w);
    return kt_tracer_counter(w->t, c);
}
