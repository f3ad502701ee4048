/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader of a leak scan removes the tags of pointers. */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/leak/mark.h"

#include <string.h>

#define BASE 0xffff000000400000ull
#define PAGE (KT_READER_PAGE / 8)

static uint64_t memory[2 * PAGE];

static bool read_memory(void *opaque, uint64_t va, void *buf, size_t len)
{
    if (va - BASE >= sizeof(memory) || len > sizeof(memory) - (va - BASE)) {
        return false;
    }
    memcpy(buf, (char *)memory + (va - BASE), len);
    return true;
}

static void start(KtReader *r, uint64_t tag_bits)
{
    *r = (KtReader) { .mem = { .read = read_memory }, .tag_bits = tag_bits };
    kt_reader_init(r);
}

static void compare(void *opaque, uint64_t va, const uint64_t *word, size_t n)
{
    const uint64_t *expected = opaque;

    for (size_t i = 0; i < n; i++) {
        g_assert_cmphex(word[i], ==, expected[(va - BASE) / 8 + i]);
    }
}

TEST(words_without_tags, "/page-reader/words-without-tags")
{
    uint64_t expected[2 * PAGE] = { 0 };
    KtReader r;

    memset(memory, 0, sizeof(memory));
    memory[0] = 0x5aff000000400100;
    memory[1] = 0x00000000fff00000;
    memory[PAGE] = 0x00ff000000400108;
    memcpy(expected, memory, sizeof(memory));
    start(&r, 0);
    kt_reader_each(&r, BASE, sizeof(memory), compare, expected);
    kt_reader_deinit(&r);
    expected[0] = 0xffff000000400100;
    expected[PAGE] = 0xffff000000400108;
    start(&r, 0xffull << 56);
    kt_reader_each(&r, BASE, sizeof(memory), compare, expected);
    kt_reader_each(&r, BASE, sizeof(memory), compare, expected);
    g_assert_cmpuint(r.bytes, ==, sizeof(memory));
    kt_reader_deinit(&r);
}

/* A pointer with a tag keeps a block in use. */
TEST(tagged_pointer_is_a_reference,
     "/page-reader/tagged-pointer-is-a-reference")
{
    for (unsigned tags = 0; tags < 2; tags++) {
        g_autoptr(KtMarker) s = kt_marker_new();
        KtReader r;

        memset(memory, 0, sizeof(memory));
        memory[3] = 0x5aff000000401040;
        start(&r, tags ? 0xffull << 56 : 0);
        kt_marker_add(s, BASE + 0x1040, 64, 0);
        kt_marker_seal(s);
        kt_reader_each(&r, BASE, 4096, kt_marker_span, s);
        kt_marker_run(s, &r);
        g_assert_cmpint(kt_marker_reached(s, 0), ==, tags);
        g_assert_cmpint(kt_marker_hold(s, 0), ==,
                        tags ? KT_HOLD_START : KT_HOLD_NONE);
        kt_reader_deinit(&r);
    }
}
