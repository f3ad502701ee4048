/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy of guest memory reads only the pages that are used, once, within its
 * limit. Memory that cannot be read is zeros.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/image/guest-copy.h"

#include <string.h>

#define START   0xffffffff81000000ull
#define PAGE    4096u
#define LEN     (5u << 20)      /* two chunks and a half */
#define CHUNK   (2u << 20)

/* @reads: bytes that were read; a page of @hole cannot be. */
typedef struct Memory {
    uint8_t *bytes;
    size_t reads;
    uint64_t hole;
} Memory;

static bool read_memory(void *opaque, uint64_t va, void *buf, size_t len)
{
    Memory *m = opaque;
    uint64_t off = va - START;

    g_assert_cmpuint(off + len, <=, LEN);
    if (off / PAGE == m->hole / PAGE) {
        return false;
    }
    m->reads += len;
    memcpy(buf, m->bytes + off, len);
    return true;
}

static void set_up(Memory *m, GsMem *mem)
{
    *m = (Memory) { .bytes = g_malloc(LEN), .hole = UINT64_MAX };
    *mem = (GsMem) { .read = read_memory, .opaque = m };
    for (size_t i = 0; i < LEN; i++) {
        m->bytes[i] = i / PAGE * 7 + i % 251 + 1;
    }
}

TEST(test_only_what_is_asked_for_is_read, "/memory-copy/asked-for")
{
    GsMem mem;
    Memory m;
    g_autoptr(GsGuestCopy) c = NULL;

    set_up(&m, &mem);
    c = gs_guest_copy_new(&mem, START, START + LEN);
    g_assert_cmpuint(m.reads, ==, 0);
    gs_guest_copy_need(c, START + CHUNK + 5, 1);
    g_assert_cmpuint(m.reads, ==, CHUNK);
    g_assert_cmpmem(gs_guest_copy_data(c) + CHUNK, CHUNK, m.bytes + CHUNK,
                    CHUNK);
    gs_guest_copy_need(c, START, LEN);
    g_assert_cmpuint(m.reads, ==, LEN);
    g_assert_cmpmem(gs_guest_copy_data(c), LEN, m.bytes, LEN);
    g_free(m.bytes);
}

TEST(test_what_was_copied_stays, "/memory-copy/stays")
{
    GsMem mem;
    Memory m;
    g_autoptr(GsGuestCopy) c = NULL;
    uint8_t before;

    set_up(&m, &mem);
    before = m.bytes[100];
    c = gs_guest_copy_new(&mem, START, START + LEN);
    gs_guest_copy_need(c, START + 100, 1);
    m.bytes[100] ^= 0xff;
    gs_guest_copy_need(c, START, CHUNK);
    g_assert_cmphex(gs_guest_copy_data(c)[100], ==, before);
    g_free(m.bytes);
}

TEST(test_what_cannot_be_read_is_zeros, "/memory-copy/zeros")
{
    GsMem mem;
    Memory m;
    g_autoptr(GsGuestCopy) c = NULL;

    set_up(&m, &mem);
    m.hole = 3 * PAGE;
    c = gs_guest_copy_new(&mem, START, START + LEN);
    gs_guest_copy_need(c, START, LEN);
    for (size_t i = 0; i < LEN; i++) {
        bool hole = i / PAGE == 3;

        g_assert_cmphex(gs_guest_copy_data(c)[i], ==, hole ? 0 : m.bytes[i]);
    }
    g_free(m.bytes);
}

TEST(test_a_range_that_is_not_inside_is_cut, "/memory-copy/cut")
{
    GsMem mem;
    Memory m;
    g_autoptr(GsGuestCopy) c = NULL;

    set_up(&m, &mem);
    c = gs_guest_copy_new(&mem, START, START + LEN);
    gs_guest_copy_need(c, START - 1, LEN);
    gs_guest_copy_need(c, START + LEN, LEN);
    gs_guest_copy_need(c, 0, SIZE_MAX);
    gs_guest_copy_need(c, START, 0);
    gs_guest_copy_need(NULL, START, 1);
    g_assert_cmpuint(m.reads, ==, 0);
    gs_guest_copy_need(c, START + LEN - 1, SIZE_MAX);
    g_assert_cmpuint(m.reads, ==, LEN - 2 * CHUNK);
    g_free(m.bytes);
}

TEST(test_no_more_is_copied_than_there_is_room_for, "/memory-copy/room")
{
    GsMem mem;
    Memory m;
    g_autoptr(GsGuestCopy) c = NULL;

    set_up(&m, &mem);
    mem.room = 2 * CHUNK - 1;
    c = gs_guest_copy_new(&mem, START, START + LEN);
    gs_guest_copy_need(c, START + CHUNK, CHUNK);
    gs_guest_copy_need(c, START + CHUNK, CHUNK);
    g_assert_false(gs_guest_copy_full(c));
    gs_guest_copy_need(c, START, 1);
    g_assert_true(gs_guest_copy_full(c));
    g_assert_cmpuint(m.reads, ==, CHUNK);
    g_assert_cmphex(gs_guest_copy_data(c)[0], ==, 0);
    g_free(m.bytes);
}

/* Hits at each place around the border of what is looked at in one go. */
TEST(test_bytes_are_found_wherever_they_lie, "/memory-copy/found")
{
    static const uint8_t what[] = { 0, 0xfe, 0, 0xfd, 0, 0xfc, 0 };
    GsMem mem;
    Memory m;
    g_autoptr(GsGuestCopy) c = NULL;

    set_up(&m, &mem);
    c = gs_guest_copy_new(&mem, START, START + LEN);
    for (unsigned i = 0; i < 16; i++) {
        size_t at = i < 15 ? (64u << 10) - 9 + i : LEN - sizeof(what);
        uint8_t kept[sizeof(what)];
        uint64_t va;

        memcpy(kept, m.bytes + at, sizeof(what));
        memcpy(m.bytes + at, what, sizeof(what));
        for (size_t from = 0; from <= at; from += MAX(at, 1)) {
            va = START + from;
            g_assert_true(gs_guest_copy_find(c, what, sizeof(what), &va));
            g_assert_cmphex(va, ==, START + at);
        }
        va = START + at + 1;
        g_assert_false(gs_guest_copy_find(c, what, sizeof(what), &va));
        memcpy(m.bytes + at, kept, sizeof(what));
    }
    g_free(m.bytes);
}

TEST(test_what_is_not_there_is_not_found, "/memory-copy/not-found")
{
    static const uint8_t what[GS_FIND_MAX + 1];
    GsMem mem;
    Memory m;
    g_autoptr(GsGuestCopy) c = NULL;
    uint64_t va = START;

    set_up(&m, &mem);
    c = gs_guest_copy_new(&mem, START, START + LEN);
    g_assert_false(gs_guest_copy_find(c, what, GS_FIND_MAX, &va));
    g_assert_false(gs_guest_copy_find(c, what, GS_FIND_MAX + 1, &va));
    g_assert_false(gs_guest_copy_find(c, what, 0, &va));
    g_assert_false(gs_guest_copy_find(NULL, what, 1, &va));
    va = START - 1;
    g_assert_false(gs_guest_copy_find(c, what, 1, &va));
    g_free(m.bytes);
}
