/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A journal has names of their time: of two modules that lay at one address,
 * one after the other, each backtrace leads to its own; also if a VM state was
 * loaded in between. The test knows which module it loaded when.
 */
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/snapshot/snapshot.h"
#include "kalloc-tracer/tracer/tracer.h"

#define VA      0xffff888000001000ull
#define BASE    0xffffffffc0000000ull
#define PC      (BASE + 0x110)
#define FIRST   0xffffffffc0100000ull
#define SECOND  0xffffffffc0200000ull

static void load_module(KtTracer *t, GsKernel *k, uint64_t id,
                        const char *name)
{
    const GsModuleSymbol f = { BASE + 0x100, "f", 't' };

    g_assert_true(gs_kernel_add_module_data(k, id, name, BASE, 0x1000, &f, 1,
                                            0, NULL, NULL, 0, NULL));
    kt_tracer_save_module(t, k, id);
}

static void alloc(KtTracer *t, const GsKernel *k, uint64_t va)
{
    const uint64_t pc[] = { PC, 0xffffffff81000010 };

    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = KT_EV_ALLOC, .va = va, .size = 16, .actual = 16, .us = 10,
        .layer = KT_LAYER_KMALLOC,
        .stack = kt_tracer_intern_stack_of(t, pc, 2, GS_STOP_END,
                                           gs_kernel_era(k, pc, 2)) });
}

static void expect_module(KtTracer *t, const GsKernel *k, uint64_t va,
                          const char *module)
{
    GsSymbol s;
    KtBlock b;

    kt_query_begin(t);
    g_assert_true(kt_query_find(t, va, &b));
    kt_query_end(t);
    g_assert_true(gs_kernel_symbolize_at(
        k, PC, kt_tracer_stack_era(t, b.alloc_stack).all, &s));
    g_assert_cmpstr(s.module, ==, module);
}

static bool count_caller(const KtAccountKey *key, const KtAccount *a,
                         void *opaque)
{
    unsigned *n = opaque;

    *n += key->pc == PC && a->allocs == 1;
    return true;
}

/* Each module is a caller of its own. */
static void expect_callers(KtTracer *t, unsigned want)
{
    unsigned n = 0;

    kt_query_begin(t);
    kt_query_accounts(t, NULL, KT_BY_CALLER, count_caller, &n);
    kt_query_end(t);
    g_assert_cmpuint(n, ==, want);
}

static void expect_names(KtTracer *t, const GsKernel *k)
{
    expect_module(t, k, VA, "first");
    expect_module(t, k, VA + 0x1000, "second");
    expect_callers(t, 2);
}

static GsKernel *begin(KtTracer *t)
{
    GsKernel *k = small_kernel();

    kt_tracer_save_kernel(t, k, true);
    load_module(t, k, FIRST, "first");
    alloc(t, k, VA);
    kt_tracer_drop_module(t, k, FIRST);
    load_module(t, k, SECOND, "second");
    alloc(t, k, VA + 0x1000);
    return k;
}

TEST(one_after_the_other, "/names-of-their-time/journal")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(GsKernel) k = begin(t);
    g_autoptr(KtReplay) r = NULL;

    expect_names(t, k);
    kt_tracer_end_journal(t);
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    expect_names(kt_replay_tracer(r), kt_replay_kernel(r));
}

/* What kt_capture_pack() and its counterpart do with modules. */
static GsKernel *kernel_of_state(const GsKernel *was)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsKernel *k = small_kernel();
    GsStreamIn *reader;
    GsBytes in;

    gs_kernel_pack_modules(was, gs_stream_out(writer));
    gs_stream_out_end(writer);
    in = (GsBytes) { bytes->data, bytes->len };
    reader = gs_stream_in_new(gs_stream_from_bytes, &in, 1 << 20);
    gs_kernel_unpack_modules(k, gs_stream_in(reader), UINT64_MAX, true);
    g_assert_true(gs_stream_in_end(reader, NULL));
    gs_stream_in_free(reader);
    return k;
}

/* Another process loads the state. Both go on: a third module has the place,
 * in both lives. */
TEST(state_of_another, "/names-of-their-time/state")
{
    char *path = new_path(), *other = new_path();
    g_autoptr(KtTracer) from = new_tracer(other, NULL);
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(GByteArray) state = g_byte_array_new();
    g_autoptr(GsKernel) was = begin(from), k = NULL;
    g_autoptr(KtReplay) r = NULL;
    GsBytes in;

    kt_snapshot_save(from, gs_stream_to_array, state);
    in = (GsBytes) { state->data, state->len };
    g_assert_true(kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL));
    k = kernel_of_state(was);
    kt_tracer_save_kernel(t, k, true);
    kt_tracer_inherit_modules(t, k);
    expect_names(t, k);
    kt_tracer_drop_module(t, k, SECOND);
    load_module(t, k, FIRST, "third");
    alloc(t, k, VA + 0x2000);
    expect_module(t, k, VA + 0x2000, "third");
    kt_tracer_end_journal(t);
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    expect_module(kt_replay_tracer(r), kt_replay_kernel(r), VA, "first");
    expect_module(kt_replay_tracer(r), kt_replay_kernel(r), VA + 0x1000,
                  "second");
    expect_module(kt_replay_tracer(r), kt_replay_kernel(r), VA + 0x2000,
                  "third");
    expect_callers(kt_replay_tracer(r), 3);
    remove_path(path);
    remove_path(other);
}
