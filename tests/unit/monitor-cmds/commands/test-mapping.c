/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka <va>, ka show and ka whatis of an address that maps a page a second time.
 */
#include "monitor-cmds/mc.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"

#define AREA    0xffffc90000000000ull   /* maps page 20 */
#define PAGE    4096u

static bool translate(void *opaque, unsigned vcpu, uint64_t va, uint64_t *phys)
{
    *phys = va - AREA + 20 * PAGE;
    return va >> 12 == AREA >> 12;
}

/* As slab_guest_new() maps it, and the area. */
static bool (*read_direct)(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                           size_t len);

static bool read_area(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                      size_t len)
{
    uint64_t phys;

    return read_direct(opaque, vcpu, translate(opaque, vcpu, va, &phys) ?
                       SG_DIRECT + phys : va, buf, len);
}

static void push(SlabGuest *g, KtEventKind kind, KtLayer layer, uint64_t va,
                 uint64_t us)
{
    kt_tracer_push(g->t, 0, &(KtEvent) {
        .kind = kind, .va = va, .size = PAGE, .actual = PAGE, .us = us,
        .layer = layer, .family = KT_FAMILY_ANY });
}

/* A page that is a buffer. If @reused, its other address was a block before. */
static SlabGuest *guest_with_buffer(bool reused)
{
    SlabGuest *g = slab_guest_new(SG_6_12, SG_PLAIN);

    read_direct = g->vm.read;
    g->vm.read = read_area;
    g->vm.translate = translate;
    if (reused) {
        push(g, KT_EV_ALLOC, KT_LAYER_VMALLOC, AREA, 10);
        push(g, KT_EV_FREE, KT_LAYER_VMALLOC, AREA, 20);
    }
    push(g, KT_EV_ALLOC, KT_LAYER_PAGES, SG_DIRECT + 20 * PAGE, 30);
    return g;
}

static bool add_text(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

static void expect(SlabGuest *g, const char *line, const char *want)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const McContext ctx = {
        .tracer = g->t, .kernel = &g->k, .kernel_found = true,
        .vm = g->o.vm, .puts = add_text, .puts_opaque = text,
        .until_us = UINT64_MAX,
    };

    mc_run(&ctx, line);
    g_assert_cmpstr(text->str, ==, want);
}

TEST(test_page, "/mapping/leads-to-the-block-of-the-page")
{
    g_autoptr(SlabGuest) g = guest_with_buffer(false);

    expect(g, "ffffc90000000010 -w",
           "no blocks at ffffc90000000010\n"
           "ffffc90000000010 maps ffff888000014010, physical 14010:\n"
           "> +10 A ffff888000014000-ffff888000014fff ( 1000/ 1000) "
           "alloc[]@30us\n");
    expect(g, "whatis ffffc90000000010 -w",
           "ffffc90000000010: maps physical 14010, live block "
           "ffff888000014000-ffff888000014fff +10 (1000/1000) pages "
           "alloc@30us\n");
}

TEST(test_reused, "/mapping/is-told-behind-a-freed-block")
{
    g_autoptr(SlabGuest) g = guest_with_buffer(true);

    expect(g, "ffffc90000000010 -w",
           "      F ffffc90000000000-ffffc90000000fff ( 1000/ 1000) "
           "alloc[]@10us free[]@20us\n"
           "ffffc90000000010 maps ffff888000014010, physical 14010:\n"
           "> +10 A ffff888000014000-ffff888000014fff ( 1000/ 1000) "
           "alloc[]@30us\n");
}

TEST(test_live, "/mapping/is-not-told-of-a-live-block")
{
    g_autoptr(SlabGuest) g = guest_with_buffer(true);

    push(g, KT_EV_ALLOC, KT_LAYER_VMALLOC, AREA, 40);
    expect(g, "ffffc90000000010 -w",
           "      A ffffc90000000000-ffffc90000000fff ( 1000/ 1000) "
           "alloc[]@40us\n");
}

TEST(test_journal, "/mapping/is-unknown-without-a-vm")
{
    g_autoptr(SlabGuest) g = guest_with_buffer(false);

    g->o.vm = NULL;
    expect(g, "ffffc90000000010 -w", "no blocks at ffffc90000000010\n");
}
