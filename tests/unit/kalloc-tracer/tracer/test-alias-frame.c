/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Other names of caches come back from a journal: each with its time, task and
 * stack, in their order, and not those of a destroyed cache or of an earlier
 * boot. Names of a snapshot are in the checkpoint. Damaged frames are refused.
 */
#include "kalloc-tracer/tracer/alias-frame.h"

#include <inttypes.h>
#include <string.h>

#include "kalloc-tracer/snapshot/snapshot.h"
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"

static KtCacheAlias alias(KtTracer *t, uint64_t va, const char *name)
{
    const uint64_t pc[] = { 0xffffffff81000010 + va, 0xffffffff81000020 };
    char comm[16] = "modprobe";

    return (KtCacheAlias) {
        .cache_va = va, .name = name, .us = 100 + va, .object_size = 60,
        .stack = kt_tracer_intern_stack(t, pc, G_N_ELEMENTS(pc), 0),
        .task = kt_tracer_intern_task(t, 70 + va, comm),
    };
}

static void add(KtTracer *t, uint64_t va, const char *name)
{
    const KtCacheAlias a = alias(t, va, name);

    kt_cache_alias_add(t, &a);
}

typedef struct Text {
    KtTracer *t;
    GString *s;
} Text;

static void append(const KtCacheAlias *a, void *opaque)
{
    Text *text = opaque;
    uint32_t pid = 0;
    unsigned n = 0;
    char comm[17] = "";
    GsStop stop;
    const uint64_t *pc = kt_tracer_stack(text->t, a->stack, &n, &stop);

    kt_tracer_task(text->t, a->task, &pid, comm);
    g_string_append_printf(text->s, "%" PRIx64 "=%s@%" PRIu64 " %u:%s %u:%"
                           PRIx64 "\n", a->cache_va, a->name, a->us, pid, comm,
                           n, n ? pc[0] : 0);
}

static char *text_of(KtTracer *t)
{
    Text text = { t, g_string_new(NULL) };

    kt_cache_aliases_all(t, append, &text);
    return g_string_free(text.s, FALSE);
}

static char *replayed(const char *path, uint64_t until_us)
{
    g_autoptr(KtReplay) r = kt_replay_open(path, NULL);

    kt_replay_run(r, &(KtReplayPlan) { .until_us = until_us, .apply = true });
    g_assert_null(kt_replay_info(r)->damage);
    return text_of(kt_replay_tracer(r));
}

/* End the VM, and compare its names with those of its journal. */
static void end_and_compare(KtTracer *t, char *path, const char *what)
{
    g_autofree char *want = text_of(t), *got = NULL;

    kt_tracer_free(t);
    got = replayed(path, UINT64_MAX);
    g_assert_cmpstr(got, ==, want);
    g_assert_cmpstr(want, ==, what);
    remove_path(path);
}

TEST(test_same, "/alias-frame/same")
{
    char *path = new_path();
    KtTracer *t = new_tracer(path, NULL);

    add(t, 1, "one");
    push_samples(t);
    add(t, 1, "one");
    add(t, 2, "t w\xc3o");
    add(t, 3, "gone");
    add(t, 1, "other");
    kt_cache_alias_drop(t, 3);
    kt_cache_alias_drop(t, 4);
    end_and_compare(t, path,
                    "1=one@101 71:modprobe 2:ffffffff81000011\n"
                    "2=t?w?o@102 72:modprobe 2:ffffffff81000012\n"
                    "1=other@101 71:modprobe 2:ffffffff81000011\n");
}

/* The replay, too, knows the size that the merge made. */
TEST(test_object_size, "/alias-frame/object-size")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    KtEvent ev = { .kind = KT_EV_ALLOC, .va = 0x4000, .size = 56,
                   .actual = 64, .layer = KT_LAYER_CACHE };
    g_autoptr(KtReplay) r = NULL;
    KtCacheInfo info;

    ev.cache = kt_tracer_add_cache(t, 1, "own", 56, 64);
    kt_tracer_push(t, 0, &ev);
    add(t, 1, "one");
    g_assert_true(kt_tracer_cache(t, ev.cache, &info));
    g_assert_cmpuint(info.object_size, ==, 60);
    kt_tracer_free(t);
    r = read_all(path);
    g_assert_true(kt_tracer_cache(kt_replay_tracer(r), (KtCacheId) { 1 },
                                  &info));
    g_assert_cmpuint(info.object_size, ==, 60);
}

TEST(test_until, "/alias-frame/until")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *got = NULL;

    add(t, 1, "one");
    add(t, 5, "five");
    kt_tracer_free(t);
    got = replayed(path, 104);
    g_assert_cmpstr(got, ==, "1=one@101 71:modprobe 2:ffffffff81000011\n");
}

TEST(test_boots, "/alias-frame/boots")
{
    char *path = new_path();
    KtTracer *t = new_tracer(path, NULL);

    add(t, 1, "first");
    kt_tracer_reset(t);
    add(t, 1, "second");
    kt_tracer_clear(t);
    end_and_compare(t, path, "1=second@101 71:modprobe 2:ffffffff81000011\n");
}

/* A load replaces the names of before, and so does its checkpoint. */
TEST(test_checkpoint, "/alias-frame/checkpoint")
{
    char *path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsBytes in;

    add(t, 1, "kept");
    kt_snapshot_save(t, gs_stream_to_array, bytes);
    add(t, 2, "of-another-time");
    in = gs_bytes(bytes->data, bytes->len);
    g_assert_true(kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL));
    add(t, 3, "later");
    end_and_compare(t, path,
                    "1=kept@101 71:modprobe 2:ffffffff81000011\n"
                    "3=later@103 73:modprobe 2:ffffffff81000013\n");
}

static bool read_bytes(const uint8_t *bytes, size_t len, char **text)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    g_autofree uint8_t *copy = g_memdup2(bytes, len);
    GsBytes in = gs_bytes(copy, len);
    bool ok = kt_alias_frame_replay(t, NULL, &in, UINT64_MAX);

    *text = text_of(t);
    return ok;
}

/* A frame that is cut anywhere is refused. With any bit changed, it is read or
 * refused, and a name has no control characters. */
TEST(test_damaged, "/alias-frame/damaged")
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    const KtCacheAlias a = alias(t, 1, "ext4_io_end");
    g_autoptr(GByteArray) bytes = kt_alias_frame_added(t, &a);

    for (unsigned len = 0; len <= bytes->len; len++) {
        g_autofree char *text = NULL;
        bool ok = read_bytes(bytes->data, len, &text);

        g_assert_true(ok == (len == bytes->len));
        g_assert_true(ok || !*text);
    }
    for (unsigned i = 0; i < bytes->len * 8; i++) {
        g_autofree char *text = NULL, *name = NULL;

        bytes->data[i / 8] ^= 1u << i % 8;
        read_bytes(bytes->data, bytes->len, &text);
        bytes->data[i / 8] ^= 1u << i % 8;
        name = g_strndup(text, strcspn(text, "@"));
        for (const char *p = name; *p; p++) {
            g_assert_true(g_ascii_isgraph(*p));
        }
    }
}
