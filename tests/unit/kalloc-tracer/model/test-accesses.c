/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accesses that may be errors: which are, which are counted as unjudged or as
 * contradictions, repeats, and the live block beside.
 */
#include "tests/lib/fed-tracer.h"
#include "tests/lib/test-main.h"

#define UAF "use-after-free"
#define OOB "out-of-bounds"

static void access_of(FedTracer *w, uint64_t va, uint64_t size, uint64_t bad,
                      unsigned flags)
{
    push(w, (KtEvent) { .kind = KT_EV_ACCESS, .va = va, .size = size,
                        .actual = bad, .flags = flags });
}

static void read_of(FedTracer *w, uint64_t va)
{
    access_of(w, va, 8, 0, 0);
}

static bool keep_error(const KtError *e, void *opaque)
{
    *(KtError *)opaque = *e;
    return true;
}

/* Return the last error. */
static KtError last_error(FedTracer *w)
{
    KtError e = { 0 };

    kt_query_begin(w->t);
    kt_query_errors(w->t, 0, UINT64_MAX, keep_error, &e);
    kt_query_end(w->t);
    return e;
}

/* Assert what became of all accesses, and free the tracer. */
static void judged(FedTracer *w, const char *kinds, uint64_t unjudged,
                   uint64_t disagreed)
{
    g_assert_cmpuint(counter(w, KT_CNT_ACCESS_UNJUDGED), ==, unjudged);
    g_assert_cmpuint(counter(w, KT_CNT_ACCESS_DISAGREED), ==, disagreed);
    expect(w, kinds);
}

static void alloc_slack(FedTracer *w, uint64_t va, uint64_t size,
                        uint64_t actual)
{
    push(w, (KtEvent) { .kind = KT_EV_ALLOC, .va = va, .size = size,
                        .actual = actual, .layer = KT_LAYER_KMALLOC });
}

/* ---- what is an error ---------------------------------------------------- */

TRACER_TEST(freed_memory, "/access/freed")
{
    KtError e;

    alloc(&w, VA, 64);
    kfree(&w, VA);
    access_of(&w, VA + 60, 8, 0, KT_EVF_WRITE | KT_EVF_RANGE);
    e = last_error(&w);
    g_assert_cmphex(e.va, ==, VA + 60);
    g_assert_cmpuint(e.size, ==, 8);
    g_assert_true(e.has_block);
    g_assert_cmphex(e.block.va, ==, VA);
    g_assert_cmpint(e.block.state, ==, KT_BLOCK_FREED);
    g_assert_cmpuint(e.access.offset, ==, 60);
    g_assert_cmpuint(e.access.count, ==, 1);
    g_assert_cmphex(e.access.flags, ==, KT_EVF_WRITE | KT_EVF_RANGE);
    g_assert_false(e.access.has_neighbour);
    g_assert_cmpuint(counter(&w, KT_CNT_EV_ACCESS), ==, 1);
    judged(&w, UAF, 0, 0);
}

TRACER_TEST(behind_the_request, "/access/behind-the-request")
{
    KtError e;

    alloc_slack(&w, VA, 100, 128);
    access_of(&w, VA + 96, 8, 4, 0);
    e = last_error(&w);
    g_assert_cmphex(e.va, ==, VA + 96);
    g_assert_cmpuint(e.access.offset, ==, 100);
    g_assert_cmpint(e.block.state, ==, KT_BLOCK_ALLOCATED);
    /* krealloc() in place gives the bytes to the owner. */
    resize(&w, VA, 128);
    access_of(&w, VA + 96, 8, 4, 0);
    judged(&w, OOB, 0, 1);
}

/* The block begins inside the access: its first bad byte counts. */
TRACER_TEST(the_first_bad_byte_decides, "/access/first-bad-byte")
{
    alloc(&w, VA, 64);
    alloc(&w, VA + 64, 64);
    kfree(&w, VA + 64);
    access_of(&w, VA + 56, 16, 8, 0);
    g_assert_cmphex(last_error(&w).block.va, ==, VA + 64);
    g_assert_cmpuint(last_error(&w).access.offset, ==, 0);
    judged(&w, UAF, 0, 0);
}

TRACER_TEST(freed_pages, "/access/pages")
{
    uint64_t va = VA & ~4095ull;

    push(&w, (KtEvent) { .kind = KT_EV_ALLOC, .va = va, .size = 4096,
                         .layer = KT_LAYER_PAGES });
    read_of(&w, va);
    push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = va, .size = 4096,
                         .family = KT_FAMILY_PAGES });
    read_of(&w, va + 100);
    judged(&w, UAF, 0, 1);
}

TRACER_TEST(pages_of_a_slab_that_went_on, "/access/newer-pages")
{
    uint64_t va = VA & ~4095ull;
    const KtEvent pages = { .kind = KT_EV_ALLOC, .va = va, .size = 4096,
                            .layer = KT_LAYER_PAGES };
    const KtEvent given = { .kind = KT_EV_FREE, .va = va, .size = 4096,
                            .family = KT_FAMILY_PAGES };

    alloc(&w, va, 64);
    kfree(&w, va);
    push(&w, pages);
    push(&w, given);
    read_of(&w, va);
    g_assert_cmpint(last_error(&w).block.layer, ==, KT_LAYER_PAGES);
    judged(&w, UAF, 0, 0);
}

TRACER_TEST(slots_that_nobody_had, "/access/slots")
{
    alloc(&w, VA, 64);
    access_of(&w, VA + 64, 8, 0, KT_EVF_FREE_SLOT);
    g_assert_false(last_error(&w).has_block);
    g_assert_true(last_error(&w).access.has_neighbour);
    /* A live block is there. */
    access_of(&w, VA, 8, 0, KT_EVF_FREE_SLOT);
    judged(&w, "free-slot", 0, 1);
}

/* The allocator's list had the slot, so earlier events do not matter. */
TEST(free_slots_when_tracing_began_late, "/access/slots-late")
{
    g_auto(FedTracer) w = fed_tracer_new(false);

    access_of(&w, VA, 8, 0, KT_EVF_FREE_SLOT);
    access_of(&w, VA + 64, 8, 0, 0);
    judged(&w, "free-slot", 1, 0);
}

/* Allocate 32 KiB and free them, then allocate 64 bytes at the same address. */
static void alloc_in_freed(FedTracer *w)
{
    alloc_in(w, KT_LAYER_LARGE, VA, 32768, 0);
    kfree(w, VA);
    alloc(w, VA, 64);
}

TRACER_TEST(rest_of_a_freed_block, "/access/rest")
{
    KtError e;

    alloc_in_freed(&w);
    read_of(&w, VA + 64);
    e = last_error(&w);
    g_assert_true(e.has_block && e.block.past);
    g_assert_cmphex(e.block.va, ==, VA);
    g_assert_cmpuint(e.block.requested, ==, 32768);
    g_assert_cmpuint(e.access.offset, ==, 64);
    /* It may be an overflow of the block in front. */
    g_assert_true(e.access.has_neighbour);
    g_assert_cmphex(e.access.neighbour.va, ==, VA);
    g_assert_cmpuint(e.access.neighbour.requested, ==, 64);
    read_of(&w, VA + 32767);
    g_assert_cmpuint(last_error(&w).access.count, ==, 2);
    read_of(&w, VA + 32768);
    judged(&w, UAF, 0, 1);
}

/* ---- what is not certain ------------------------------------------------- */

/* An access that was made up to @before microseconds ago. Each event is one
 * microsecond later than the last. */
static void access_before(FedTracer *w, uint32_t before, unsigned cpu,
                          unsigned flags)
{
    push(w, (KtEvent) { .kind = KT_EV_ACCESS, .va = VA, .size = 4,
                        .gfp = before, .cpu = cpu, .flags = flags });
}

/* The store may have released the block, and was examined too late. */
TRACER_TEST(store_before_the_free_of_another, "/access/store-before-free")
{
    alloc(&w, VA, 64);
    push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = VA, .cpu = 1,
                         .family = KT_FAMILY_KFREE });
    access_before(&w, 1, 0, KT_EVF_WRITE);
    access_before(&w, UINT32_MAX, 0, KT_EVF_WRITE);
    g_assert_cmpuint(counter(&w, KT_CNT_ACCESS_UNJUDGED), ==, 2);
    /* The vCPU had an event after the free; the same vCPU freed it; a load; a
     * range, which is examined before. */
    access_before(&w, 2, 0, KT_EVF_WRITE);
    access_before(&w, 10, 1, KT_EVF_WRITE);
    access_before(&w, 10, 0, 0);
    access_before(&w, 10, 0, KT_EVF_WRITE | KT_EVF_RANGE);
    g_assert_cmpuint(last_error(&w).access.count, ==, 4);
    judged(&w, UAF, 2, 0);
}

/* The block was freed after the store, and is allocated again. */
TRACER_TEST(store_before_the_block_is_reused, "/access/store-before-reuse")
{
    push(&w, (KtEvent) { .kind = KT_EV_ALLOC, .va = VA, .size = 2,
                         .actual = 64, .layer = KT_LAYER_KMALLOC,
                         .cpu = 1 });
    access_before(&w, 1, 0, KT_EVF_WRITE);
    judged(&w, "", 1, 0);
}

TRACER_TEST(what_the_map_says_is_right, "/access/right")
{
    alloc(&w, VA, 64);
    read_of(&w, VA);
    read_of(&w, VA + 64);
    judged(&w, "", 0, 2);
}

TRACER_TEST(blocks_from_before_a_gap, "/access/gap")
{
    alloc_slack(&w, VA, 20, 32);
    alloc(&w, VA + 64, 64);
    kfree(&w, VA + 64);
    off_and_on(&w);
    access_of(&w, VA + 16, 8, 4, 0);
    read_of(&w, VA + 64);
    read_of(&w, VA + 0x1000);
    judged(&w, "", 3, 0);
}

/* After a call that was not recorded, freed memory may have an owner. */
TRACER_TEST(memory_handed_out_unseen, "/access/unseen")
{
    push(&w, (KtEvent) { .kind = KT_EV_GAP, .flags = KT_EVF_UNSEEN });
    alloc_slack(&w, VA, 20, 32);
    alloc(&w, VA + 64, 64);
    kfree(&w, VA + 64);
    read_of(&w, VA + 64);
    access_of(&w, VA + 16, 8, 4, 0);
    judged(&w, OOB, 1, 0);
}

TRACER_TEST(functions_that_are_not_hooked, "/access/unsure")
{
    alloc(&w, VA, 64);
    kfree(&w, VA);
    access_of(&w, VA, 8, 0, KT_EVF_UNSURE);
    access_of(&w, VA + 0x1000, 8, 0, KT_EVF_UNSURE | KT_EVF_FREE_SLOT);
    judged(&w, "", 2, 0);
}

static void access_in(FedTracer *w, uint64_t va, uint16_t cache)
{
    push(w, (KtEvent) { .kind = KT_EV_ACCESS, .va = va, .size = 8,
                        .cache = { cache } });
}

/* The page of the freed object is a slab of another cache now. */
TRACER_TEST(pages_that_went_on, "/access/other-owner")
{
    alloc_in(&w, KT_LAYER_CACHE, VA, 64, 1);
    free_by(&w, KT_FAMILY_CACHE, VA, 1);
    alloc_in(&w, KT_LAYER_LARGE, VA + 0x10000, 16384, 0);
    kfree(&w, VA + 0x10000);
    access_in(&w, VA, 2);
    access_in(&w, VA + 0x10000, 2);
    access_in(&w, VA, 1);
    judged(&w, UAF, 2, 0);
}

/* Another slab has the page of the rest; the store may have been made before
 * the free. */
TRACER_TEST(rest_of_a_freed_block_that_went_on, "/access/rest-went-on")
{
    alloc_in_freed(&w);
    access_in(&w, VA + 4096, 2);
    push(&w, (KtEvent) { .kind = KT_EV_ACCESS, .va = VA + 8192, .size = 4,
                         .gfp = UINT32_MAX, .flags = KT_EVF_WRITE });
    judged(&w, "", 2, 0);
}

/* Nobody was seen to free the block, so it is an error that it has another
 * owner; of the rest nothing is known. */
TRACER_TEST(rest_of_a_live_block, "/access/rest-of-live")
{
    alloc_in(&w, KT_LAYER_LARGE, VA, 32768, 0);
    alloc(&w, VA, 64);
    read_of(&w, VA + 16384);
    judged(&w, "overlap", 1, 0);
}

/* The slab that has the page now has a free slot there. */
TRACER_TEST(free_slots_of_pages_that_went_on, "/access/free-slot-in-new-slab")
{
    KtEvent ev = { .kind = KT_EV_ACCESS, .va = VA, .size = 8, .cache = { 2 },
                   .flags = KT_EVF_FREE_SLOT };

    alloc_in(&w, KT_LAYER_CACHE, VA, 64, 1);
    free_by(&w, KT_FAMILY_CACHE, VA, 1);
    push(&w, ev);
    g_assert_false(last_error(&w).has_block);
    /* Of its own cache it is the block that was freed. */
    ev.cache.v = 1;
    push(&w, ev);
    g_assert_true(last_error(&w).has_block);
    judged(&w, "free-slot " UAF, 0, 0);
}

/* Another vCPU frees and allocates while the access is made: the events have
 * one time. */
TRACER_TEST(handed_out_meanwhile, "/access/meanwhile")
{
    KtEvent ev = { .kind = KT_EV_ALLOC, .va = VA, .size = 64, .us = 1000,
                   .layer = KT_LAYER_KMALLOC };

    kt_tracer_push(w.t, 0, &ev);
    ev = (KtEvent) { .kind = KT_EV_ACCESS, .va = VA, .size = 8, .us = 1000 };
    kt_tracer_push(w.t, 0, &ev);
    ev.us = 1001;
    kt_tracer_push(w.t, 0, &ev);
    judged(&w, "", 1, 1);
}

/* ---- repeats and neighbours ---------------------------------------------- */

static void access_by(FedTracer *w, uint32_t stack, uint64_t va)
{
    push(w, (KtEvent) { .kind = KT_EV_ACCESS, .va = va, .size = 1,
                        .stack = { stack } });
}

/* Two stacks with one first frame, and one with another. */
TRACER_TEST(repeats_are_counted, "/access/repeats")
{
    const uint64_t a[] = { 0x100, 0x200 }, b[] = { 0x100, 0x300 };
    const uint64_t c[] = { 0x101, 0x200 };
    uint32_t one = kt_tracer_intern_stack(w.t, a, 2, GS_STOP_END).v;
    uint32_t two = kt_tracer_intern_stack(w.t, b, 2, GS_STOP_END).v;
    uint32_t other = kt_tracer_intern_stack(w.t, c, 2, GS_STOP_END).v;
    uint64_t last;

    alloc(&w, VA, 64);
    kfree(&w, VA);
    access_by(&w, one, VA + 3);
    access_by(&w, two, VA + 40);
    access_by(&w, one, VA + 10);
    last = w.us - 1;
    g_assert_cmpuint(last_error(&w).access.count, ==, 3);
    g_assert_cmpuint(last_error(&w).access.offset, ==, 40);
    g_assert_cmpuint(last_error(&w).access.last_us, ==, last);
    g_assert_cmphex(last_error(&w).access.pc, ==, 0x100);
    g_assert_cmphex(last_error(&w).va, ==, VA + 3);
    access_by(&w, other, VA);
    g_assert_cmpuint(last_error(&w).access.count, ==, 1);
    g_assert_cmpuint(stats(&w).errors, ==, 2);
    judged(&w, UAF " " UAF, 0, 0);
}

/* 12 bytes behind a live block, with a freed one between. */
TRACER_TEST(a_live_block_in_front, "/access/neighbour")
{
    KtError e;

    alloc_slack(&w, VA, 50, 64);
    alloc(&w, VA + 64, 64);
    alloc(&w, VA + 128, 64);
    kfree(&w, VA + 64);
    kfree(&w, VA + 128);
    read_of(&w, VA + 130);
    e = last_error(&w);
    g_assert_true(e.access.has_neighbour);
    g_assert_cmphex(e.access.neighbour.va, ==, VA);
    g_assert_cmpuint(e.access.neighbour.requested, ==, 50);
    g_assert_cmpuint(e.access.distance, ==, 80);
    judged(&w, UAF, 0, 0);
}

TRACER_TEST(no_live_block_in_front, "/access/no-neighbour")
{
    /* Too far. */
    alloc(&w, VA, 64);
    alloc(&w, VA + 320, 64);
    kfree(&w, VA + 320);
    read_of(&w, VA + 321);
    g_assert_false(last_error(&w).access.has_neighbour);
    /* Perhaps freed in a gap. */
    off_and_on(&w);
    alloc(&w, VA + 64, 64);
    kfree(&w, VA + 64);
    access_by(&w, 1, VA + 64);
    g_assert_false(last_error(&w).access.has_neighbour);
    judged(&w, UAF, 0, 0);
}

/* An access to a free slot by an instruction of its own. */
static KtErrorAccess slot_access(FedTracer *w, uint64_t va)
{
    const uint64_t pc = va;

    push(w, (KtEvent) {
        .kind = KT_EV_ACCESS, .va = va, .size = 1, .flags = KT_EVF_FREE_SLOT,
        .stack = kt_tracer_intern_stack(w->t, &pc, 1, GS_STOP_END),
    });
    return last_error(w).access;
}

/* Free slots from VA + 64 to VA + 192, and of a block that is freed. */
TRACER_TEST(a_live_block_behind, "/access/neighbour-behind")
{
    KtErrorAccess a;

    alloc(&w, VA, 64);
    alloc(&w, VA + 192, 64);
    a = slot_access(&w, VA + 191);
    g_assert_true(a.has_neighbour && a.behind);
    g_assert_cmphex(a.neighbour.va, ==, VA + 192);
    g_assert_cmpuint(a.distance, ==, 1);
    a = slot_access(&w, VA + 128);
    g_assert_true(a.has_neighbour && !a.behind);
    g_assert_cmphex(a.neighbour.va, ==, VA);
    g_assert_cmpuint(a.distance, ==, 64);
    g_assert_true(slot_access(&w, VA - 256).behind);
    g_assert_false(slot_access(&w, VA - 257).has_neighbour);
    /* Of a freed block only the one in front is named. */
    alloc(&w, VA + 0x1000, 64);
    alloc(&w, VA + 0x1040, 64);
    kfree(&w, VA + 0x1000);
    access_by(&w, 1, VA + 0x1000);
    g_assert_false(last_error(&w).access.has_neighbour);
    judged(&w, "free-slot free-slot free-slot free-slot " UAF, 0, 0);
}

TRACER_TEST(the_list_has_an_end, "/access/list")
{
    for (unsigned i = 0; i < 300; i++) {
        push(&w, (KtEvent) { .kind = KT_EV_ALLOC, .va = VA, .size = 64,
                             .layer = KT_LAYER_KMALLOC, .stack = { i + 1 } });
        kfree(&w, VA);
        read_of(&w, VA);
        read_of(&w, VA);
    }
    g_assert_cmpuint(stats(&w).errors, ==, 300);
    kt_tracer_clear(w.t);
    g_assert_cmpuint(stats(&w).errors, ==, 0);
    alloc(&w, VA, 64);
    kfree(&w, VA);
    read_of(&w, VA);
    g_assert_cmpuint(last_error(&w).access.count, ==, 1);
    judged(&w, UAF, 0, 0);
}

/* Nothing is read outside, whatever numbers an event has. */
TRACER_TEST(any_numbers, "/access/any-numbers")
{
    alloc(&w, 0x1000, UINT64_MAX - 0x2000);
    kfree(&w, 0x1000);
    access_of(&w, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0xff);
    access_of(&w, 0, 0, UINT64_MAX, 0);
    access_of(&w, 0, 0, 0, KT_EVF_FREE_SLOT);
    access_of(&w, 0x2000, UINT64_MAX, 5, 0);
    judged(&w, "free-slot " UAF, 1, 1);
}
