/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tracer that loads a snapshot has the other names of caches that the one
 * that saved it had, with who asked for them, and none of its own. A snapshot
 * of version 3 is loaded as it was saved, without names.
 */
#include <string.h>

#include "kalloc-tracer/api/kt-aliases.h"
#include "kalloc-tracer/snapshot/snapshot.h"
#include "tests/lib/bare-tracer.h"
#include "tests/lib/snapshot-dump.h"
#include "tests/lib/test-main.h"

static KtStackId stack_of(KtTracer *t, uint64_t at)
{
    const uint64_t pc[] = { 0xffffffff81000000 + at, 0xffffffff81000020 };

    return kt_tracer_intern_stack(t, pc, G_N_ELEMENTS(pc), 0);
}

static void add(KtTracer *t, uint64_t va, const char *name)
{
    char comm[16] = "modprobe";

    kt_cache_alias_add(t, &(KtCacheAlias) {
        .cache_va = va, .name = name, .us = va * 3,
        .stack = va % 2 ? stack_of(t, va) : (KtStackId) { 0 },
        .task = va % 3 ? kt_tracer_intern_task(t, va, comm)
                       : (KtTaskId) { 0 } });
}

static bool load(KtTracer *t, const GByteArray *bytes)
{
    GsBytes in = gs_bytes(bytes->data, bytes->len);

    return kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL);
}

/* The ids of the two tracers differ. */
TEST(test_same, "/snapshot-aliases/same")
{
    g_autoptr(KtTracer) t = bare_tracer(0), other = bare_tracer(0);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autofree char *want = NULL, *got = NULL;

    for (unsigned i = 1; i < 100; i++) {
        g_autofree char *name = g_strdup_printf("name-%u", i);

        add(t, i % 40, name);
        add(other, 100 + i, name);
    }
    kt_snapshot_save(t, gs_stream_to_array, bytes);
    g_assert_true(load(other, bytes));
    kt_tracer_count(t, KT_CNT_LOADS, 1);
    want = snapshot_dump(t);
    got = snapshot_dump(other);
    g_assert_cmpstr(got, ==, want);
    g_assert_nonnull(strstr(want, "alias name-99 of 13 "));
}

/* ---- version 3 ----------------------------------------------------------- */

static void push_some(KtTracer *t)
{
    KtStackId stack = stack_of(t, 16);

    for (unsigned i = 0; i < ADDRESSES; i++) {
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = i % 3 ? KT_EV_ALLOC : KT_EV_FREE, .va = VA + i / 3 * 64,
            .size = i, .us = i, .stack = stack, .layer = KT_LAYER_KMALLOC });
    }
}

/* Write the snapshot of a tracer without aliases as version 3 did: these are
 * the last byte, their number. */
static GByteArray *save_version_3(KtTracer *t)
{
    g_autoptr(GByteArray) all = g_byte_array_new();
    GByteArray *bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut out = gs_out(all);
    unsigned version = 1 + strlen("ka state");

    kt_snapshot_pack(t, &out);
    g_assert_cmpuint(all->data[version], ==, KT_SNAPSHOT_VERSION);
    g_assert_cmpuint(all->data[all->len - 1], ==, 0);
    all->data[version] = 3;
    gs_out_bytes(gs_stream_out(writer), all->data, all->len - 1);
    gs_stream_out_end(writer);
    return bytes;
}

TEST(test_version_3, "/snapshot-aliases/version-3")
{
    g_autoptr(KtTracer) t = bare_tracer(0), other = bare_tracer(0);
    g_autoptr(GByteArray) bytes = NULL;
    g_autofree char *want = NULL, *got = NULL;

    push_some(t);
    add(other, 1, "name");
    bytes = save_version_3(t);
    g_assert_true(load(other, bytes));
    kt_tracer_count(t, KT_CNT_LOADS, 1);
    want = snapshot_dump(t);
    got = snapshot_dump(other);
    g_assert_cmpstr(got, ==, want);
}
