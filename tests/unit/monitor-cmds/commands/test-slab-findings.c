/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What `ka slab check` prints, as text and as JSON: each finding with its
 * blocks, what was not checked, and the sum.
 */
#include "monitor-cmds/mc.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define CACHE   1u
#define OTHER   2u
#define SIZE    256u            /* 16 slots in a slab */
#define PAGE    16u

static void push(SlabGuest *g, unsigned slot, KtEventKind kind)
{
    KtEvent ev = { .kind = kind, .va = sg_object(g, CACHE, PAGE, slot),
                   .size = 200, .actual = SIZE, .us = 10 + slot,
                   .layer = KT_LAYER_KMALLOC, .family = KT_FAMILY_KMALLOC };

    kt_tracer_push(g->t, 0, &ev);
}

/* Slots 3, 5 and 7 of a slab are free; 4 and 5 were allocated, 5 was freed. */
static SlabGuest *guest_new(bool complete)
{
    SlabGuest *g = slab_guest_new(SG_6_12, SG_SWAP);

    kt_tracer_set_complete(g->t, complete);
    sg_add_cache(g, OTHER, "dentry", SIZE);
    for (unsigned page = 30; page < 36; page++) {
        sg_add_slab(g, OTHER, page, (unsigned[]) { 2, 9 }, 2);
    }
    sg_set_partial(g, OTHER, (unsigned[]) { 30, 31, 32, 33, 34, 35, 0 });
    sg_add_cache(g, CACHE, "kmalloc-256", SIZE);
    sg_add_slab(g, CACHE, PAGE, (unsigned[]) { 3, 5, 7 }, 3);
    sg_set_partial(g, CACHE, (unsigned[]) { PAGE, 0 });
    push(g, 4, KT_EV_ALLOC);
    push(g, 5, KT_EV_ALLOC);
    push(g, 5, KT_EV_FREE);
    return g;
}

static bool append(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* Run a command, and compare its output, with N in place of host times. */
static void expect(SlabGuest *g, const char *line, const char *expected)
{
    g_autoptr(GRegex) times = g_regex_new("(objects in |\"host_us\":)\\d+", 0,
                                          0, NULL);
    g_autoptr(GString) out = g_string_new(NULL);
    McContext ctx = { .tracer = g->t, .kernel = &g->k, .kernel_found = true,
                      .vm = &g->vm, .puts = append, .puts_opaque = out };
    g_autofree char *got = NULL;

    mc_run(&ctx, line);
    got = g_regex_replace(times, out->str, -1, 0, "\\1N", 0, NULL);
    g_assert_cmpstr(got, ==, expected);
}

TEST(test_nothing, "/slab-findings/nothing")
{
    g_autoptr(SlabGuest) g = guest_new(true);

    expect(g, "slab check kmalloc-256 -w",
           "nothing found in 1 caches, 1 slabs, 3 free objects in N ms; "
           "12 in transit\n");
    expect(g, "slab check kmalloc-2 -w",
           "ka: \"kmalloc-2\": no cache has this name; it may contain * and "
           "?\n");
}

TEST(test_finding, "/slab-findings/finding")
{
    g_autoptr(SlabGuest) g = guest_new(true);

    sg_set_next(g, CACHE, PAGE, 5, 0x4141414141414141);
    expect(g, "slab check kmalloc-* -w",
           "! outside kmalloc-256 slot 5 of slab ffff888000010000, node0 "
           "partial at 1: the next object is no slot of the slab: "
           "4141414141414141\n"
           "      A ffff888000010400-ffff8880000104c7 (   c8/  100) alloc[]"
           "@14us\n"
           "> +0  F ffff888000010500-ffff8880000105c7 (   c8/  100) alloc[]"
           "@15us free[]@15us\n"
           "! 1 finding in 1 caches, 1 slabs, 2 free objects in N ms; "
           "13 in transit\n");
    sg_set_next(g, CACHE, PAGE, 5, sg_object(g, CACHE, PAGE, 4));
    sg_set_next(g, CACHE, PAGE, 4, 0);
    expect(g, "slab check kmalloc-* -n 1 -w",
           "! live-on-list kmalloc-256 slot 4 of slab ffff888000010000, node0 "
           "partial at 2: the block is live: nobody has freed it\n"
           "> +0  A ffff888000010400-ffff8880000104c7 (   c8/  100) alloc[]"
           "@14us\n"
           "! 1 finding in 1 caches, 1 slabs, 3 free objects in N ms; "
           "13 in transit\n");
}

TEST(test_json, "/slab-findings/json")
{
    g_autoptr(SlabGuest) g = guest_new(true);

    sg_set_counts(g, PAGE, 12, 16);
    expect(g, "slab check kmalloc-256 -j -w",
           "{\"schema\":1,\"type\":\"finding\",\"kind\":\"count\",\"cache\":"
           "\"kmalloc-256\",\"cache_va\":\"0xffff888000008200\",\"list\":"
           "\"node0 partial\",\"position\":null,\"slab\":"
           "\"0xffff888000010000\",\"slot\":null,\"object\":null,\"found\":"
           "\"0x3\",\"expected\":\"0x4\",\"text\":\"! count kmalloc-256 slab "
           "ffff888000010000, node0 partial: the slab's list has more or fewer "
           "objects than the slab says: 3 for 4\"}\n"
           "{\"schema\":1,\"type\":\"slab_check\",\"findings\":1,\"caches\":1,"
           "\"slabs\":1,\"free_objects\":3,\"transit\":12,\"unsure\":0,"
           "\"unreadable\":0,\"dropped\":0,\"why\":null,\"host_us\":N,"
           "\"text\":\"! 1 finding in 1 caches, 1 slabs, 3 free objects in N "
           "ms; 12 in transit\"}\n");
}

TEST(test_unsure, "/slab-findings/unsure")
{
    g_autoptr(SlabGuest) g = guest_new(false);

    sg_set_next(g, CACHE, PAGE, 5, sg_object(g, CACHE, PAGE, 4));
    sg_set_next(g, CACHE, PAGE, 4, 0);
    expect(g, "slab check kmalloc-256 -w",
           "not compared with the map: tracing began late\n"
           "nothing found in 1 caches, 1 slabs, 3 free objects in N ms; "
           "13 in transit, 1 unsure\n");
}
