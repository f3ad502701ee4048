/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka cache and ka slab on a small guest with slabs: the numbers of the kernel
 * beside those of the map, each list, each slot, and what is said if slabs
 * cannot be read.
 */
#include "monitor-cmds/mc.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define CACHE   1u
#define SIZE    1024u           /* 4 slots in a slab */

static bool add_text(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* Return (owned) what the command prints. */
static char *run(SlabGuest *g, const char *line)
{
    GString *text = g_string_new(NULL);
    const McContext ctx = {
        .tracer = g->t, .kernel = &g->k, .kernel_found = true,
        .vm = g->o.vm, .puts = add_text, .puts_opaque = text,
        .until_us = UINT64_MAX,
    };

    mc_run(&ctx, line);
    return g_string_free(text, FALSE);
}

static void expect(SlabGuest *g, const char *line, const char *want)
{
    g_autofree char *text = run(g, line);

    g_assert_cmpstr(text, ==, want);
}

static void expect_part(SlabGuest *g, const char *line, const char *part)
{
    g_autofree char *text = run(g, line);

    if (!strstr(text, part)) {
        g_test_message("%s", text);
    }
    g_assert_nonnull(strstr(text, part));
}

static void push(SlabGuest *g, KtEventKind kind, uint64_t va, KtCacheId id,
                 uint64_t us)
{
    KtEvent ev = { .kind = kind, .va = va, .size = 1000, .actual = SIZE,
                   .us = us, .layer = KT_LAYER_KMALLOC, .cache = id,
                   .family = KT_FAMILY_ANY };

    kt_tracer_push(g->t, 0, &ev);
}

/* Three slabs: CPU 0 allocates from 16, 17 is partial, 18 is full. */
static SlabGuest *guest_with_blocks(SgKind kind)
{
    SlabGuest *g = slab_guest_new(kind, SG_SWAP);
    KtCacheId id;

    sg_add_cache(g, CACHE, "kmalloc-1k", SIZE);
    sg_add_slab(g, CACHE, 16, NULL, 0);
    sg_add_slab(g, CACHE, 17, (unsigned[]) { 3, 1 }, 2);
    sg_add_slab(g, CACHE, 18, NULL, 0);
    sg_set_partial(g, CACHE, (unsigned[]) { 17, 0 });
    sg_set_cpu(g, CACHE, 0, sg_chain(g, CACHE, 16, (unsigned[]) { 2 }, 1),
               16, NULL);
    id = kt_tracer_add_cache(g->t, sg_cache(CACHE), "kmalloc-1k", SIZE, SIZE);
    for (unsigned page = 16; page < 19; page++) {
        for (unsigned slot = 0; slot < 4; slot++) {
            push(g, KT_EV_ALLOC, sg_object(g, CACHE, page, slot), id,
                 100 * page + slot);
        }
    }
    push(g, KT_EV_FREE, sg_object(g, CACHE, 16, 2), id, 5000);
    push(g, KT_EV_FREE, sg_object(g, CACHE, 17, 3), id, 5001);
    push(g, KT_EV_FREE, sg_object(g, CACHE, 17, 1), id, 5002);
    return g;
}

/* A case with a guest @g that has blocks. */
#define BLOCKS_TEST(fn, path) \
    TEST_IN(g_autoptr(SlabGuest), SlabGuest *g, \
            guest_with_blocks(SG_6_12), fn, path)

#define HEAD \
    "name         object     slot  slabs  live  free  transit  active  " \
    "objects  order  each"
#define CACHE_1K \
    "kmalloc-1k  1.0 KiB  1.0 KiB      3     9     3        0      10  " \
    "     12      0     4"

BLOCKS_TEST(test_cache, "/slab-commands/cache")
{
    expect(g, "cache", HEAD "\n"
           CACHE_1K "  hardened\n"
           "kmem_cache    512 B    512 B      2     0     0       16      16"
           "       16      0     8  hardened\n");
    expect(g, "cache kmalloc-1k",
           HEAD "\n"
           CACHE_1K "  hardened\n"
           "cpu0 freelist 1 next=ffff888000010800\n"
           "node0 partial 1 slabs, 2 free next=ffff888000011c00\n"
           "full 1 slabs\n");
    expect(g, "cache kmalloc-1k -v --node 0",
           "              va  " HEAD "  freeptr\n"
           "ffff888000008200  " CACHE_1K "      200  hardened\n"
           "node0 partial 1 slabs, 2 free next=ffff888000011c00\n"
           "      F ffff888000011c00-ffff888000011fe7 (  3e8/  400) "
           "alloc[]@1703us free[]@5001us list=node0-partial:0 "
           "layer=kmalloc hook=- cache=kmalloc-1k gfp=0 cpu=0 pid=- "
           "comm=- stop=- free_hook=- free_cpu=0 free_pid=- "
           "free_comm=-\n"
           "      F ffff888000011400-ffff8880000117e7 (  3e8/  400) "
           "alloc[]@1701us free[]@5002us list=node0-partial:1 "
           "layer=kmalloc hook=- cache=kmalloc-1k gfp=0 cpu=0 pid=- "
           "comm=- stop=- free_hook=- free_cpu=0 free_pid=- "
           "free_comm=-\n");
    expect(g, "cache kmalloc-1k --cpu 0",
           HEAD "\n"
           CACHE_1K "  hardened\n"
           "cpu0 freelist 1 next=ffff888000010800\n");
    expect(g, "cache kmalloc-1k --format line",
           "              va  " HEAD "  freeptr\n"
           "ffff888000008200  " CACHE_1K "      200  hardened\n"
           "ffff888000010000 AAFA on cpu0-slab\n"
           "ffff888000011000 AFAF on node0-partial\n"
           "ffff888000012000 AAAA full\n");
    expect(g, "cache kmalloc-1k -j",
           "{\"schema\":1,\"type\":\"cache\","
           "\"va\":\"0xffff888000008200\",\"name\":\"kmalloc-1k\","
           "\"object_size\":1024,\"size\":1024,\"slabs\":3,\"live\":9,"
           "\"free\":3,\"transit\":0,\"active_objs\":10,\"num_objs\":12,"
           "\"order\":0,\"each\":4,\"freeptr\":512,\"hardened\":\"yes\","
           "\"text\":\"ffff888000008200 kmalloc-1k (400/400) slabs=3 "
           "live=9 free=3 transit=0 slabinfo=10/12 order=0 each=4 "
           "freeptr=+200 hardened\"}\n"
           "{\"schema\":1,\"type\":\"free_list\","
           "\"list\":\"cpu0-freelist\",\"parts\":0,\"free\":1,"
           "\"next\":\"0xffff888000010800\",\"text\":\"cpu0 freelist 1 "
           "next=ffff888000010800\"}\n"
           "{\"schema\":1,\"type\":\"free_list\","
           "\"list\":\"node0-partial\",\"parts\":1,\"free\":2,"
           "\"next\":\"0xffff888000011c00\",\"text\":\"node0 partial 1 "
           "slabs, 2 free next=ffff888000011c00\"}\n"
           "{\"schema\":1,\"type\":\"free_list\",\"list\":\"full\","
           "\"parts\":1,\"text\":\"full 1 slabs\"}\n");
}

BLOCKS_TEST(test_which_cache, "/slab-commands/which-cache")
{
    expect_part(g, "cache ffff888000008200", "\nkmalloc-1k  1.0 KiB ");
    expect_part(g, "cache ffff888000011e04", "\nkmalloc-1k  1.0 KiB ");
    expect_part(g, "cache kmalloc-2k", "ka: \"kmalloc-2k\": no cache of that "
                                       "name");
    expect_part(g, "cache ffff888000030000", "no address of one");
    expect_part(g, "cache --cpu 1", "omit --cpu");
    expect_part(g, "cache --format line", "omit --format");
    expect_part(g, "cache kmalloc-1k --format pprof",
                "a format is text or line");
}

BLOCKS_TEST(test_slab, "/slab-commands/slab")
{
    expect(g, "slab ffff888000011404 -w",
           "slab ffff888000011000-ffff888000011fff of kmalloc-1k, 4 "
           "slots, on node0-partial, inuse 2\n"
           "          0 A ffff888000011000-ffff8880000113e7 (  3e8/  "
           "400) alloc[]@1700us\n"
           "> +4      1 F ffff888000011400-ffff8880000117e7 (  3e8/  "
           "400) alloc[]@1701us free[]@5002us list=node0-partial:1\n"
           "          2 A ffff888000011800-ffff888000011be7 (  3e8/  "
           "400) alloc[]@1702us\n"
           "          3 F ffff888000011c00-ffff888000011fe7 (  3e8/  "
           "400) alloc[]@1703us free[]@5001us list=node0-partial:0\n");
    expect(g, "slab ffff888000010000 -j -n 1",
           "{\"schema\":1,\"type\":\"slab\","
           "\"va\":\"0xffff888000010000\","
           "\"end\":\"0xffff888000010fff\",\"cache\":\"kmalloc-1k\","
           "\"slots\":4,\"inuse\":4,\"list\":\"cpu0-slab\","
           "\"text\":\"slab ffff888000010000-ffff888000010fff of "
           "kmalloc-1k, 4 slots, on cpu0-slab, inuse 4\"}\n"
           "{\"schema\":1,\"type\":\"slot\",\"offset\":0,\"slot\":0,"
           "\"state\":\"A\",\"va\":\"0xffff888000010000\","
           "\"end\":\"0xffff8880000103e7\",\"requested\":1000,"
           "\"actual\":1024,\"alloc\":[],\"alloc_us\":1600}\n"
           "{\"more\":3}\n");
    expect(g, "slab ffff888000011404 --format line",
           "ffff888000011000 A>FAF on node0-partial\n");
    expect_part(g, "slab ffff888000012000", " 4 slots, full, inuse 4\n");
    expect_part(g, "slab ffff888000030000", "is in no slab; ka whatis");
    expect_part(g, "slab 0", "is in no slab");
}

BLOCKS_TEST(test_history, "/slab-commands/history")
{
    uint64_t va = sg_object(g, CACHE, 18, 0);

    push(g, KT_EV_FREE, va, (KtCacheId) { 1 }, 6000);
    push(g, KT_EV_ALLOC, va, (KtCacheId) { 1 }, 6001);
    expect_part(g, "slab ffff888000012000 --history",
                "P ffff888000012000-ffff8880000123e7");
}

/* A slot that had no block, and a slab whose numbers are damaged. */
BLOCKS_TEST(test_odd_slabs, "/slab-commands/odd-slabs")
{
    sg_add_slab(g, CACHE, 19, NULL, 0);
    expect_part(g, "slab ffff888000013000",
                "          2 - ffff888000013800 unseen\n");
    sg_set_counts(g, 19, 4, 5);
    expect_part(g, "slab ffff888000013000", "says that it has 5 objects");
    sg_set_next(g, CACHE, 17, 3, 0x4141414141414140ull);
    expect_part(g, "cache kmalloc-1k",
                "free pointers are stored in a way that is not known: only "
                "sheaves are walked\n");
    expect_part(g, "cache kmalloc-1k", "     9     -        - ");
    /* Lists of another cache say how. */
    sg_add_cache(g, 2, "kmalloc-2k", 2048);
    sg_add_slab(g, 2, 20, (unsigned[]) { 1, 0 }, 2);
    sg_add_slab(g, 2, 21, (unsigned[]) { 1 }, 1);
    sg_set_partial(g, 2, (unsigned[]) { 20, 21, 0 });
    expect_part(g, "cache kmalloc-1k",
                "! outside on node0-partial slab=ffff888000011000 slot=3\n"
                "        value=4141414141414140: the next object is no slot "
                "of the slab\n");
}

/* With pages=on the map has a block for the pages of a slab. It begins at the
 * address of slot 0, but is not the block of that slot. */
BLOCKS_TEST(test_pages_of_a_slab, "/slab-commands/pages")
{
    KtEvent pages = { .kind = KT_EV_ALLOC, .va = 0xffff888000013000,
                      .size = 4096, .us = 6000, .layer = KT_LAYER_PAGES };

    sg_add_slab(g, CACHE, 19, NULL, 0);
    kt_tracer_push(g->t, 0, &pages);
    expect_part(g, "slab ffff888000013000",
                "> +0      0 - ffff888000013000 unseen\n");
    expect_part(g, "slab ffff888000013000 --format line", ">.... ");
}

TEST(test_sheaves, "/slab-commands/sheaves")
{
    g_autoptr(SlabGuest) g = guest_with_blocks(SG_7_3);

    sg_add_sheaf(g, CACHE, 0, (uint64_t[]) {
        sg_object(g, CACHE, 16, 1), sg_object(g, CACHE, 16, 2) }, 2);
    sg_add_sheaf(g, CACHE, 1, (uint64_t[]) { sg_object(g, CACHE, 18, 0) }, 1);
    sg_set_sheaves(g, CACHE, 0, 0, UINT_MAX, 1);
    expect_part(g, "cache kmalloc-1k",
                "cpu0 main 2/4 next=ffff888000010800\n"
                "cpu0 rcu 1/4 next=ffff888000012000\n"
                "node0 partial 1 slabs, 2 free next=ffff888000011c00\n");
    expect_part(g, "cache kmalloc-1k", "     4       -1 ");
    expect_part(g, "cache kmalloc-1k", " rcu=1");
    expect_part(g, "slab ffff888000010000", " list=cpu0-main:0\n");
}

/* Without a VM, or without types, the map says what it knows. */
BLOCKS_TEST(test_without, "/slab-commands/without")
{
    KtVm *vm = (KtVm *)g->o.vm;

    g->o.vm = NULL;
    expect(g, "cache kmalloc-1k",
           "name         object     slot  live\n"
           "kmalloc-1k  1.0 KiB  1.0 KiB     9\n"
           "slabs are in the memory of a VM; a journal has none\n");
    expect(g, "slab ffff888000011404 -w",
           "      A ffff888000011000-ffff8880000113e7 (  3e8/  400) "
           "alloc[]@1700us\n"
           "> +4  F ffff888000011400-ffff8880000117e7 (  3e8/  400) "
           "alloc[]@1701us free[]@5002us\n"
           "      A ffff888000011800-ffff888000011be7 (  3e8/  400) "
           "alloc[]@1702us\n"
           "      F ffff888000011c00-ffff888000011fe7 (  3e8/  400) "
           "alloc[]@1703us free[]@5001us\n"
           "4 blocks in the page ffff888000011000; slabs are in the memory "
           "of a VM; a journal has none\n");
    g->o.vm = vm;
    vm->running = true;
    expect_part(g, "cache", "the VM runs: numbers of different moments");
    vm->vmemmap = 0;
    expect_part(g, "cache", "it is not known yet where the direct map is");
}
