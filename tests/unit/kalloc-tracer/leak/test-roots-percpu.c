/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which memory of per-CPU chunks is a root: allocated memory that is no known
 * block. Known blocks count if they are reached, free memory never does. The
 * cases run for each kind of chunk, and for chunks that a hostile guest claims.
 */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"

#define OBJECT      LG_OBJECT(5)
#define CHUNK       (LG_IMAGE + 0xb00)      /* the struct pcpu_chunk */
#define MAP         (LG_IMAGE + 0xc00)      /* its alloc_map */
#define LISTS       (LG_IMAGE + 0xa00)
#define MEMORY(cpu) (LG_DIRECT + LG_AT_CHUNK + 4096ull * (cpu))
#define BLOCK       0x2100ull               /* __percpu pointer of MEMORY(0) +
                                             * 0x100 */

typedef enum Kind { FIRST, RESERVED, LATER, LATER_CHARGED } Kind;

/* Words at these offsets of the chunk are allocated. */
#define AT_FREE     0x80u
#define AT_KNOWN    0x120u
#define AT_UNKNOWN  0x200u
#define AT_BEFORE   0x10u           /* before start_offset */
#define AT_AFTER    0xff8u          /* from end_offset on */

static void set_allocated(LeakGuest *g, unsigned at, unsigned bytes)
{
    for (unsigned i = at / 4; i < (at + bytes) / 4; i++) {
        lg_at(g, MAP, 128)[i / 8] |= 1u << i % 8;
    }
}

static void link_chunk(LeakGuest *g, uint64_t head)
{
    lg_put(g, head, CHUNK + LG_CHUNK_LIST);
    lg_put(g, head + 8, CHUNK + LG_CHUNK_LIST);
    lg_put(g, CHUNK + LG_CHUNK_LIST, head);
    lg_put(g, CHUNK + LG_CHUNK_LIST + 8, head);
}

/* Let the kernel's variables lead to the chunk. */
static void place_chunk(LeakGuest *g, Kind kind)
{
    const uint64_t at[] = { [FIRST] = LG_PCPU_FIRST,
                            [RESERVED] = LG_PCPU_RESERVED };

    lg_put(g, LG_IMAGE + LG_PCPU_LISTS, LISTS);
    lg_put(g, LG_IMAGE + LG_PCPU_NR_SLOTS, 2);
    lg_put(g, LG_IMAGE + LG_PCPU_UNIT_PAGES, 1);
    if (kind < LATER) {
        lg_put(g, LG_IMAGE + at[kind], CHUNK);
        return;
    }
    link_chunk(g, LISTS + 16 * (kind == LATER ? 1 : 3));
    for (unsigned cpu = 0; cpu < 2; cpu++) {
        lg_put(g, lg_struct(LG_AT_CHUNK + 4096 * cpu) + LG_PAGE_PRIVATE,
               CHUNK);
    }
}

static LeakGuest *guest_new(Kind kind)
{
    LeakGuest *g = leak_guest_new();

    lg_put(g, LG_IMAGE + LG_PCPU_BASE, LG_DIRECT + LG_AT_PERCPU);
    lg_put(g, CHUNK + LG_CHUNK_BASE, MEMORY(0));
    lg_put(g, CHUNK + LG_CHUNK_MAP, MAP);
    lg_put(g, CHUNK + LG_CHUNK_START, 0x20 | 8ull << 32);
    lg_put(g, CHUNK + LG_CHUNK_PAGES, 1);
    lg_alloc(g, BLOCK, 64, KT_LAYER_PERCPU, (KtCacheId) { 0 });
    set_allocated(g, 0, 0x20);
    set_allocated(g, 0x100, 64);
    set_allocated(g, AT_UNKNOWN, 16);
    set_allocated(g, 0xff8, 8);
    place_chunk(g, kind);
    return g;
}

TEST(test_what_counts, "/leak-percpu/what-counts")
{
    static const struct {
        unsigned at;
        bool reached;               /* a variable has the block's address */
        bool counts;
    } row[] = {
        { AT_FREE, true, false },
        { AT_KNOWN, false, false }, { AT_KNOWN, true, true },
        { AT_UNKNOWN, false, true }, { AT_UNKNOWN + 8, false, true },
        { AT_UNKNOWN + 16, false, false },
        { AT_BEFORE, false, false }, { AT_AFTER, false, false },
    };

    for (unsigned i = 0; i < 4 * 2 * G_N_ELEMENTS(row); i++) {
        unsigned n = i % G_N_ELEMENTS(row), cpu = i / G_N_ELEMENTS(row) % 2;
        g_autoptr(LeakGuest) g = guest_new(i / G_N_ELEMENTS(row) / 2);

        g_test_message("kind %u, CPU %u, row %u",
                       (unsigned)(i / G_N_ELEMENTS(row) / 2), cpu, n);
        lg_put(g, LG_IMAGE + LG_ROOT, row[n].reached ? BLOCK : 0);
        lg_put(g, MEMORY(cpu) + row[n].at, OBJECT);
        g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !row[n].counts);
        g_assert_cmpint(lg_is_leaked(g, BLOCK), ==, !row[n].reached);
    }
}

/* A word of a block counts once, though two addresses map it. */
TEST(test_refs_once, "/leak-percpu/refs-once")
{
    for (Kind kind = FIRST; kind <= LATER_CHARGED; kind++) {
        g_autoptr(LeakGuest) g = guest_new(kind);
        const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
        g_autoptr(GArray) refs = NULL;
        uint64_t more, bytes;

        lg_put(g, MEMORY(1) + AT_KNOWN, OBJECT);
        lg_put(g, MEMORY(1) + AT_UNKNOWN, OBJECT);
        lg_put(g, MEMORY(1) + AT_FREE, OBJECT);
        g_assert_true(kt_refs(g->t, &plan, OBJECT, OBJECT + 63, &refs, &more,
                              &bytes, NULL));
        g_assert_cmpuint(refs->len, ==, 2);
        g_assert_cmphex(g_array_index(refs, KtRef, 0).owner.va, ==, BLOCK);
        g_assert_cmpint(g_array_index(refs, KtRef, 1).place, ==,
                        KT_PLACE_PERCPU);
    }
}

/* Make the chunk a block, and let a vmap_area describe its memory. */
static void describe_chunk(LeakGuest *g)
{
    const uint64_t va = LG_DIRECT + LG_AT_SLAB + 0x4000;

    lg_alloc(g, va, LG_CHUNK_SIZE, KT_LAYER_KMALLOC, (KtCacheId) { 0 });
    memcpy(lg_at(g, va, LG_CHUNK_SIZE), lg_at(g, CHUNK, LG_CHUNK_SIZE),
           LG_CHUNK_SIZE);
    lg_put(g, CHUNK + LG_CHUNK_BASE, 0);
    lg_put(g, LISTS + 16, va + LG_CHUNK_LIST);
    lg_put(g, LISTS + 24, va + LG_CHUNK_LIST);
    lg_put(g, LG_VMAP + LG_AREA_START, MEMORY(0));
    lg_put(g, LG_VMAP + LG_AREA_END, MEMORY(0) + 0x2000);
    lg_put(g, LG_VM(2) + LG_VM_ADDR, MEMORY(0));
}

/* The address of a chunk is no reference to the block at its start: not in the
 * chunk, nor in the kernel's lists of vmalloc areas. */
TEST(test_block_at_the_start, "/leak-percpu/block-at-the-start")
{
    g_autoptr(LeakGuest) g = guest_new(LATER);
    const uint64_t block = BLOCK - 0x100;

    describe_chunk(g);
    lg_alloc(g, block, 16, KT_LAYER_PERCPU, (KtCacheId) { 0 });
    lg_put(g, MEMORY(1) + 8, OBJECT);
    g_assert_true(lg_is_leaked(g, block));
    g_assert_true(lg_is_leaked(g, OBJECT));
    g_assert_false(lg_is_leaked(g, LG_VM(2)));
    lg_put(g, LG_IMAGE + LG_ROOT, block);
    g_assert_false(lg_is_leaked(g, block));
    g_assert_false(lg_is_leaked(g, OBJECT));
    /* another area ends where the chunk begins */
    lg_put(g, LG_IMAGE + LG_ROOT, 0);
    lg_put(g, LG_VMAP + LG_AREA_START, MEMORY(0) - 0x2000);
    lg_put(g, LG_VMAP + LG_AREA_END, MEMORY(0));
    lg_put(g, LG_VM(2) + LG_VM_ADDR, MEMORY(0) - 0x2000);
    g_assert_true(lg_is_leaked(g, block));
}

/* What is no chunk changes nothing: its pages stay roots. */
TEST(test_chunks_that_cannot_be, "/leak-percpu/chunks-that-cannot-be")
{
    static const struct {
        uint64_t va, word;
    } row[] = {
        { LG_IMAGE + LG_PCPU_BASE, 0 },
        { LG_IMAGE + LG_PCPU_LISTS, 1 },
        { LG_IMAGE + LG_PCPU_UNIT_PAGES, 2 },
        { LG_IMAGE + LG_PCPU_NR_SLOTS, 0 },
        { LISTS + 16, 0 }, { LISTS + 16, ~0ull },
        { CHUNK + LG_CHUNK_LIST + 8, 0 },       /* does not point back */
        { CHUNK + LG_CHUNK_BASE, 0 },
        { CHUNK + LG_CHUNK_BASE, MEMORY(0) + 8 },
        { CHUNK + LG_CHUNK_MAP, 0 },
        { CHUNK + LG_CHUNK_START, 4096 },
        { CHUNK + LG_CHUNK_START, ~0ull },
        { CHUNK + LG_CHUNK_PAGES, 0 },
        { CHUNK + LG_CHUNK_PAGES, ~0ull },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = guest_new(LATER);

        g_test_message("row %u", i);
        lg_put(g, MEMORY(1) + AT_FREE, OBJECT);
        lg_put(g, row[i].va, row[i].word);
        g_assert_false(lg_is_leaked(g, OBJECT));
    }
}

/* The walk of a list that leads back into itself ends. */
TEST(test_lists_without_end, "/leak-percpu/lists-without-end")
{
    g_autoptr(LeakGuest) later = guest_new(LATER);
    g_autoptr(LeakGuest) first = guest_new(LATER);

    lg_put(later, CHUNK + LG_CHUNK_LIST, CHUNK + LG_CHUNK_LIST);
    lg_put(later, MEMORY(1) + AT_FREE, OBJECT);
    g_assert_true(lg_is_leaked(later, OBJECT));
    lg_put(first, LG_IMAGE + LG_PCPU_FIRST, CHUNK);
    lg_put(first, CHUNK + LG_CHUNK_LIST, CHUNK + LG_CHUNK_LIST);
    lg_put(first, MEMORY(1) + AT_FREE, OBJECT);
    g_assert_true(lg_is_leaked(first, OBJECT));
}

/* A struct percpu_ref refers to its per-CPU block, with flags in bits 0 and 1:
 * if its percpu_ref_data points back. */
TEST(test_words_with_flags, "/leak-percpu/words-with-flags")
{
    const uint64_t data = LG_DIRECT + LG_AT_SLAB + 0x4000;
    static const struct {
        uint64_t ref;               /* address of the percpu_ref */
        uint64_t word;
        uint64_t back;
        bool counts;
    } row[] = {
        { LG_IMAGE + LG_ROOT, LG_PERCPU, 0, true },
        { LG_IMAGE + LG_ROOT, LG_PERCPU | 1, 0, false },
        { LG_IMAGE + LG_ROOT, LG_PERCPU | 1, LG_IMAGE + LG_ROOT, true },
        { LG_IMAGE + LG_ROOT, LG_PERCPU | 3, LG_IMAGE + LG_ROOT, true },
        { LG_IMAGE + LG_ROOT, LG_PERCPU | 4, LG_IMAGE + LG_ROOT, false },
        { LG_OBJECT(7), LG_PERCPU | 1, LG_OBJECT(7), false },   /* lost */
        { LG_IMAGE + LG_ROOT, LG_PERCPU | 1, 0x1000, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();

        lg_alloc(g, data, LG_REF_DATA_SIZE, KT_LAYER_KMALLOC,
                 (KtCacheId) { 0 });
        lg_put(g, row[i].ref + LG_REF_COUNT, row[i].word);
        lg_put(g, row[i].ref + LG_REF_DATA, data);
        lg_put(g, data + LG_REF_DATA_REF, row[i].back);
        g_assert_cmpint(lg_is_leaked(g, LG_PERCPU), ==, !row[i].counts);
    }
}
