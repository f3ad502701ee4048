/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A journal's numbers become the reader's. What a file makes its reader keep
 * is bounded by what a tracer would have written, and by the file's size.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/model/blocks.h"
#include "kalloc-tracer/journal/journal-format.h"
#include "tests/lib/journal-files.h"

/* A stack's entry: its number, one from the one before; one frame that is
 * new, one word from the last that was; then with the frame of before. */
static const uint8_t new_stack[] = { 1, 2, 1, 0, 0, 0, 2 };
static const uint8_t same_stack[] = { 1, 2, 1, 0, 1 };

/* ---- help --------------------------------------------------------------- */

static GByteArray *entries(const uint8_t *entry, size_t len, unsigned n)
{
    GByteArray *out = g_byte_array_sized_new(n * len);

    for (unsigned i = 0; i < n; i++) {
        g_byte_array_append(out, entry, len);
    }
    return out;
}

static GByteArray *stack_entry(uint32_t id)
{
    GByteArray *out = g_byte_array_new();
    GsOut w = gs_out(out);

    gs_out_u8(&w, 1);
    gs_out_varint(&w, gs_zigzag(id));
    gs_out_u8(&w, 1);          /* frames */
    gs_out_u8(&w, GS_STOP_END);
    gs_out_u8(&w, 0);
    gs_out_varint(&w, 0);
    gs_out_varint(&w, gs_zigzag(0x1000));
    return out;
}

static GByteArray *task_entry(uint32_t id)
{
    GByteArray *out = g_byte_array_new();
    GsOut w = gs_out(out);

    gs_out_u8(&w, 2);
    gs_out_varint(&w, id);
    gs_out_varint(&w, 42);
    gs_out_str(&w, "init");
    return out;
}

static void expect(GByteArray *data, bool taken)
{
    g_autoptr(KtReplay) r = read_note(KT_FRAME_DEFS, data);

    g_assert_cmpstr(kt_replay_info(r)->damage, ==,
                    taken ? NULL : "a frame makes no sense");
}

/* ---- tests -------------------------------------------------------------- */

TEST(numbers_of_a_tracer, "/replay-ids/numbers-of-a-tracer")
{
    expect(stack_entry(1), true);
    expect(stack_entry(KT_MAX_STACKS), true);
    expect(stack_entry(KT_MAX_STACKS + 1), false);
    expect(stack_entry(UINT32_MAX), false);
    expect(task_entry(1), true);
    expect(task_entry(KT_MAX_TASKS), true);
    expect(task_entry(KT_MAX_TASKS + 1), false);
    expect(task_entry(UINT32_MAX), false);
}

/* A kilobyte that unpacks to megabytes. */
TEST(more_than_the_file_can_have, "/replay-ids/more-than-the-file-can-have")
{
    const unsigned n = 1 << 20;
    g_autoptr(KtReplay) r = NULL;

    r = read_note(KT_FRAME_DEFS, entries(new_stack, sizeof(new_stack), n));
    g_assert_cmpuint(kt_replay_info(r)->bytes, <, 4096);
    g_assert_cmpstr(kt_replay_info(r)->damage, ==, "a frame makes no sense");
    g_assert_cmpuint(tracer_stats(kt_replay_tracer(r)).stacks, <, n / 16);
}

TEST(many_numbers_of_one_stack, "/replay-ids/many-numbers-of-one-stack")
{
    GByteArray *data = entries(same_stack, sizeof(same_stack), 1 << 20);

    g_byte_array_prepend(data, new_stack, sizeof(new_stack));
    expect(data, false);
}

/* Each event names a stack and a task that none did before, as alike as they
 * can be: no file of a tracer has more of them for its size. */
TEST(all_new, "/replay-ids/all-new")
{
    static const char comm[KT_COMM_LEN] = "init";
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    unsigned n = 4 * KT_RUN_EVENTS;

    for (unsigned i = 1; i <= n; i++) {
        const uint64_t pc = i * 16;

        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_RESIZE,
            .stack = kt_tracer_intern_stack(t, &pc, 1, GS_STOP_END),
            .task = kt_tracer_intern_task(t, i, comm) });
    }
    kt_tracer_free(t);
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, n);
    g_assert_cmpuint(tracer_stats(kt_replay_tracer(r)).stacks, ==, n);
    g_assert_cmpuint(tracer_stats(kt_replay_tracer(r)).tasks, ==, n);
    g_assert_cmpuint(kt_replay_info(r)->bytes, >, 2 * n);
}

/* A run without the events that its definitions are for. */
TEST(torn_behind_definitions, "/replay-ids/torn-behind-definitions")
{
    g_autoptr(KtReplay) r = read_note(KT_FRAME_DEFS, entries(
        new_stack, sizeof(new_stack), KT_RUN_EVENTS));

    g_assert_null(kt_replay_info(r)->damage);
    g_assert_cmpuint(tracer_stats(kt_replay_tracer(r)).stacks, ==,
                     KT_RUN_EVENTS);
}
