/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reader of frames accepts no more in a frame than a writer would have put
 * there.
 */
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/journal/frame-reader.h"

/* ---- help --------------------------------------------------------------- */

static GByteArray *zeros(guint n)
{
    GByteArray *a = g_byte_array_new();

    g_byte_array_set_size(a, n);
    memset(a->data, 0, n);
    return a;
}

/* A file of one frame that is stored as it is, with so many sections. */
static void put_sections(const char *path, KtFrameKind kind, unsigned n)
{
    g_autoptr(GByteArray) file = g_byte_array_new();
    g_autoptr(GByteArray) none = zeros(n * 2 * sizeof(uint32_t));
    const KtFrame f = {
        .kind = kind, .stored = none->len,
        .crc = kt_crc(none->data, none->len),
    };

    g_byte_array_set_size(file, KT_HEAD_BYTES + KT_FRAME_BYTES);
    kt_part_pack(KT_PART_HEAD, &(KtHead) { 0 }, file->data);
    kt_part_pack(KT_PART_LIVE, &(KtLive) { 0 }, file->data + KT_HEAD_LIVE);
    kt_part_pack(KT_PART_FRAME, &f, file->data + KT_HEAD_BYTES);
    g_byte_array_append(file, none->data, none->len);
    put_file(path, (char *)file->data, file->len);
}

static bool loads(KtFrameKind kind, unsigned n_sections)
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtFrameReader) r = NULL;
    KtSections s = { 0 };
    bool ok;

    put_sections(path, kind, n_sections);
    r = kt_frame_reader_open(path, NULL);
    ok = kt_frame_reader_load(r, 0, &s);
    g_assert_true(!ok || s.n == n_sections);
    kt_sections_clear(&s);
    return ok;
}

/* ---- tests -------------------------------------------------------------- */

TEST(sections_of_a_kind, "/journal-read/sections-of-a-kind")
{
    g_assert_true(loads(KT_FRAME_EVENTS, KT_COL__COUNT));
    g_assert_false(loads(KT_FRAME_EVENTS, KT_COL__COUNT + 1));
    g_assert_true(loads(KT_FRAME_STATUS, 1));
    g_assert_false(loads(KT_FRAME_STATUS, 2));
}

/* They unpack to no more than so many events can have. */
TEST(long_column, "/journal-read/long-column")
{
    g_autoptr(KtReplay) fits = read_note(KT_FRAME_EVENTS,
                                         zeros(KT_COLUMN_MAX));
    g_autoptr(KtReplay) none = read_note(KT_FRAME_EVENTS,
                                         zeros(KT_COLUMN_MAX + 1));

    g_assert_cmpstr(kt_replay_info(fits)->damage, ==,
                    "a frame makes no sense");
    g_assert_cmpstr(kt_replay_info(none)->damage, ==, "a frame is damaged");
}

/* What is packed already is not packed again to next to nothing. */
TEST(state_of_a_small_file, "/journal-read/state-of-a-small-file")
{
    GByteArray *part = zeros(KT_MEM_BYTES);
    g_autoptr(KtReplay) r = NULL;

    part->data[0] = 1;          /* more parts follow */
    r = read_note(KT_FRAME_CHECKPOINT, part);
    g_assert_cmpstr(kt_replay_info(r)->damage, ==, "a frame makes no sense");
}

/* A kernel of few symbols, and what packs well behind it. */
static GByteArray *large_kernel(void)
{
    g_autoptr(GsKernel) k = small_kernel();
    g_autoptr(GByteArray) rest = zeros(100000);
    GByteArray *data = zeros(1);

    data->data[0] = 1;          /* it runs */
    gs_kernel_save(k, data);
    g_byte_array_append(data, rest->data, rest->len);
    return data;
}

static char *damage_of_kernels(unsigned n)
{
    char *path = new_path();
    g_autoptr(KtReplay) r = NULL;
    Bare b = bare_new(path);

    for (unsigned i = 0; i < n; i++) {
        kt_journal_add_frame(b.j, KT_FRAME_KERNEL, large_kernel());
    }
    bare_free(&b);
    r = read_all(path);
    remove_path(path);
    return g_strdup(kt_replay_info(r)->damage);
}

/* Each may be as large as any; a second each is too long when they are many. */
TEST(kernels_of_a_small_file, "/journal-read/kernels-of-a-small-file")
{
    g_autofree char *one = damage_of_kernels(1);
    g_autofree char *many = damage_of_kernels(20);

    g_assert_cmpstr(one, ==, NULL);
    g_assert_cmpstr(many, ==, "a frame makes no sense");
}
