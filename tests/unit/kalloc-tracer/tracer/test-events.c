/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `ka events` lists the events of a journal. It says how many are missing or
 * damaged.
 */
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"
#include "monitor-cmds/mc.h"
#include "kalloc-tracer/snapshot/snapshot.h"

#define VA 0xffff888000001000u

/* ---- help --------------------------------------------------------------- */

static void push(KtTracer *t, KtEventKind kind, uint64_t va, uint64_t us)
{
    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = kind, .va = va, .size = kind == KT_EV_ALLOC ? 64 : 0,
        .us = us, .layer = KT_LAYER_KMALLOC, .family = KT_FAMILY_KFREE });
}

static bool keep(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* (owned) what the command prints. */
static char *run(const char *path, const char *line)
{
    g_autoptr(KtTracer) t = new_tracer(NULL, NULL);
    GString *out = g_string_new(NULL);
    const McContext ctx = {
        .tracer = t, .puts = keep, .puts_opaque = out, .journal = path,
        .until_us = UINT64_MAX,
    };

    g_assert_cmpint(mc_run(&ctx, line), ==, 0);
    return g_string_free(out, FALSE);
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (; (text = strstr(text, what)); text++) {
        n++;
    }
    return n;
}

/* ---- tests -------------------------------------------------------------- */

/* A limit is one of marks, too. */
TEST(marks_behind_the_limit, "/events/marks-behind-the-limit")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *all = NULL, *some = NULL;

    for (unsigned i = 0; i < 4; i++) {
        push(t, KT_EV_ALLOC, VA + 64 * i, 10 + i);
        kt_tracer_set_complete(t, true);
    }
    kt_tracer_free(t);
    all = run(path, "events");
    some = run(path, "events -n 2");
    g_assert_cmpuint(count(all, "complete"), ==, 4);
    g_assert_cmpuint(count(some, "complete"), ==, 1);
}

/* The allocation is in no file, the free is in this one. */
TEST(free_of_a_loaded_block, "/events/free-of-a-loaded-block")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) before = new_tracer(NULL, NULL);
    KtTracer *t = new_tracer(path, NULL);
    g_autoptr(GByteArray) state = g_byte_array_new();
    g_autofree char *out = NULL;
    GsBytes in;

    push(before, KT_EV_ALLOC, VA, 10);
    push(before, KT_EV_ALLOC, VA + 64, 11);
    push(before, KT_EV_FREE, VA + 64, 12);
    kt_snapshot_save(before, gs_stream_to_array, state);
    in = (GsBytes) { state->data, state->len };
    g_assert_true(kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL));
    push(t, KT_EV_FREE, VA, 100);
    push(t, KT_EV_FREE, VA + 64, 101);
    kt_tracer_free(t);
    out = run(path, "events ffff888000001020");
    g_assert_cmpuint(count(out, "ffff888000001000"), ==, 1);
    g_assert_cmpuint(count(out, "ffff888000001040"), ==, 0);
}

TEST(damaged_event, "/events/damaged-event")
{
    char *path = new_path();
    KtTracer *t;
    g_autofree char *data = NULL, *good = NULL, *bad = NULL;
    uint64_t whole;
    gsize len;

    if (!g_getenv("KA_PROGRAM")) {
        g_test_skip("KA_PROGRAM does not tell where ka is");
        remove_path(path);
        return;
    }
    t = new_tracer(path, NULL);
    push(t, KT_EV_ALLOC, VA, 10);
    tracer_stats(t);
    push(t, KT_EV_ALLOC, VA + 64, 11);
    tracer_stats(t);
    whole = size_of(path);
    kt_tracer_free(t);
    good = said_by_ka(path, "events");
    g_assert_cmpstr(good, ==, "");
    g_assert_true(g_file_get_contents(path, &data, &len, NULL));
    data[whole - 1] ^= 1;       /* of the second event */
    put_file(path, data, len);
    bad = said_by_ka(path, "events");
    g_assert_nonnull(strstr(bad, "a frame is damaged"));
    g_assert_nonnull(strstr(bad, "and 1 events are missing"));
    g_assert_cmpuint(count(bad, "\n"), ==, 1);
    remove_path(path);
}
