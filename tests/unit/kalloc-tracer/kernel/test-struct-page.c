/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtStructPages, with memory made by hand: a memory map of a few pages, folios,
 * lists and batches, also broken ones. And kt_guest_slab(), which only compares
 * with known caches.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kernel/struct-page.h"

#include <bpf/btf.h>
#include <string.h>

#include "guest-symbols/types/btf.h"
#include "guest-symbols/kernel/kernel.h"

#define VMEMMAP 0xffffea0000000000ull
#define DIRECT 0xffff888000000000ull
#define VARS 0xffffffff82001000ull
#define CACHE 0xffff888000002000ull
#define NAME 0xffff888000002800ull
#define PG_HEAD (1ull << 6)

/* Guest memory: the first pages of the memory map, variables, three pages. */
static uint64_t map_page[512], vars[512], direct[3][512];

static const void *view(uint64_t va, size_t *avail)
{
    const struct { uint64_t va; const uint64_t *at; size_t len; } mem[] = {
        { VMEMMAP, map_page, sizeof(map_page) },
        { VARS, vars, sizeof(vars) },
        { DIRECT, direct[0], sizeof(direct) },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(mem); i++) {
        if (va >= mem[i].va && va < mem[i].va + mem[i].len) {
            *avail = 4096 - (va & 4095);
            return (const uint8_t *)mem[i].at + (va - mem[i].va);
        }
    }
    return NULL;
}

static uint64_t page_of(unsigned n)
{
    return VMEMMAP + 64 * n;
}

static GsBtf *make_types(void)
{
    struct btf *b = btf__new_empty();
    int t_long = btf__add_int(b, "long", 8, 0);
    int t_int = btf__add_int(b, "int", 4, 0);
    int t_char = btf__add_int(b, "char", 1, 0);
    const void *raw;
    GsBtf *types;
    __u32 len;

    btf__add_struct(b, "page", 64);
    btf__add_field(b, "flags", t_long, 0, 0);
    btf__add_field(b, "lru", t_long, 64, 0);
    btf__add_field(b, "compound_head", t_long, 64, 0);
    btf__add_struct(b, "folio", 128);
    btf__add_field(b, "_flags_1", t_long, 512, 0);
    btf__add_struct(b, "slab", 64);
    btf__add_field(b, "slab_cache", t_long, 192, 0);
    btf__add_struct(b, "kmem_cache", 64);
    btf__add_field(b, "name", t_long, 0, 0);
    btf__add_field(b, "object_size", t_int, 64, 0);
    btf__add_field(b, "size", t_int, 96, 0);
    btf__add_struct(b, "folio_batch", 256);
    btf__add_field(b, "nr", t_char, 0, 0);
    btf__add_field(b, "folios", t_long, 64, 0);
    btf__add_enum(b, "pageflags", 4);
    btf__add_enum_value(b, "PG_head", 6);
    raw = btf__raw_data(b, &len);
    types = gs_btf_new(raw, len, NULL);
    btf__free(b);
    return types;
}

typedef struct World {
    GsKernel *k;
    KtTracer *t;
    KtGuest *g;
    KtStructPages *p;
} World;

static World new_world(bool types)
{
    static const char symbols[] = "ffffffff81000000 T _stext\n"
                                  "ffffffff81000000 T _text\n"
                                  "ffffffff81000010 T kfree\n"
                                  "ffffffff82000000 T _etext\n"
                                  "ffffffff82001000 D vmemmap_base\n"
                                  "ffffffff82001008 D page_offset_base\n"
                                  "ffffffff82100000 R linux_banner\n";
    KtConfig config = KT_CONFIG_DEFAULT;
    World w = { gs_kernel_new_from_data(symbols, strlen(symbols), "map",
                                        NULL) };

    g_assert_nonnull(w.k);
    memset(map_page, 0, sizeof(map_page));
    memset(direct, 0, sizeof(direct));
    vars[0] = VMEMMAP;
    vars[1] = DIRECT;
    w.k->btf = types ? make_types() : NULL;
    w.t = kt_tracer_new(&config, NULL);
    w.g = kt_guest_new(w.k, w.t, view);
    w.p = kt_struct_page_new(w.k, w.g);
    return w;
}

static void end_world(World *w)
{
    kt_struct_page_free(w->p);
    kt_guest_free(w->g);
    kt_tracer_free(w->t);
    gs_kernel_free(w->k);
}

TEST(addresses, "/pages/addresses")
{
    World w = new_world(true);

    g_assert_cmphex(kt_struct_page_va(w.p, page_of(3)), ==, DIRECT + 0x3000);
    g_assert_cmphex(kt_struct_page_va_of(w.p, 7), ==, DIRECT + 0x7000);
    g_assert_cmphex(kt_struct_page_va(w.p, page_of(3) + 8), ==, 0);
    g_assert_cmphex(kt_struct_page_va(w.p, VMEMMAP - 64), ==, 0);
    g_assert_cmphex(kt_struct_page_va(w.p, 0), ==, 0);
    g_assert_cmphex(kt_struct_page_va_of(w.p, UINT64_MAX), ==, 0);
    g_assert_cmphex(kt_struct_page_va_of(w.p, 1ull << 40), ==, 0);
    end_world(&w);
}

TEST(lengths, "/pages/lengths")
{
    World w = new_world(true);

    g_assert_cmpuint(kt_struct_page_len(w.p, 0), ==, 4096);
    g_assert_cmpuint(kt_struct_page_len(w.p, 9), ==, 2 << 20);
    g_assert_cmpuint(kt_struct_page_len(w.p, UINT32_MAX), ==, 0);
    g_assert_cmpuint(kt_struct_page_folio_len(w.p, page_of(0)), ==, 4096);
    map_page[0] = PG_HEAD;
    map_page[8] = 0xabcd00 | 4;
    g_assert_cmpuint(kt_struct_page_folio_len(w.p, page_of(0)), ==, 65536);
    map_page[8] = 0xff;
    g_assert_cmpuint(kt_struct_page_folio_len(w.p, page_of(0)), ==, 0);
    g_assert_cmpuint(kt_struct_page_folio_len(w.p, page_of(64)), ==, 0);
    end_world(&w);
}

static bool add(uint64_t page, void *opaque)
{
    g_string_append_printf(opaque, " %d", (int)(page - VMEMMAP) / 64);
    return ((GString *)opaque)->len < 30;
}

TEST(walks, "/pages/walks")
{
    World w = new_world(true);
    g_autoptr(GString) got = g_string_new(NULL);

    for (unsigned i = 0; i < 4; i++) {
        direct[0][i] = i == 1 ? 0 : page_of(i);
    }
    g_assert_true(kt_struct_page_walk_array(w.p, DIRECT, 4, add, got));
    g_assert_cmpstr(got->str, ==, " 0 2 3");
    g_assert_false(kt_struct_page_walk_array(w.p, DIRECT, 5000, add, got));

    g_string_truncate(got, 0);
    direct[0][0] = 0xffffffffffffff02;
    direct[0][1] = page_of(5);
    direct[0][2] = page_of(6);
    g_assert_true(kt_struct_page_walk_batch(w.p, DIRECT, add, got));
    g_assert_cmpstr(got->str, ==, " 5 6");
    g_assert_false(kt_struct_page_walk_batch(w.p, DIRECT - 8, add, got));
    end_world(&w);
}

/* head -> page 1 -> page 4 -> head; then an endless list. */
TEST(lists, "/pages/lists")
{
    World w = new_world(true);
    g_autoptr(GString) got = g_string_new(NULL);

    direct[0][0] = page_of(1) + 8;
    map_page[9] = page_of(4) + 8;
    map_page[33] = DIRECT;
    g_assert_true(kt_struct_page_walk_list(w.p, DIRECT, UINT64_MAX, add, got));
    g_assert_cmpstr(got->str, ==, " 1 4");
    g_assert_true(kt_struct_page_walk_list(w.p, DIRECT, 1, add, got));
    g_assert_cmpstr(got->str, ==, " 1 4 1");
    map_page[33] = page_of(4) + 8;
    g_assert_false(kt_struct_page_walk_list(w.p, DIRECT, UINT64_MAX, add, got));
    map_page[33] = 0xdead000000000100;
    g_string_truncate(got, 0);
    g_assert_false(kt_struct_page_walk_list(w.p, DIRECT, UINT64_MAX, add, got));
    end_world(&w);
}

TEST(nothing_without_types, "/pages/nothing-without-types")
{
    World w = new_world(false);
    KtGuestCpu cpu = { 0 };
    KtCacheId cache;

    g_assert_null(w.p);
    g_assert_false(kt_guest_slab(w.g, &cpu, DIRECT, &cache));
    end_world(&w);
}

/* A word of the page that is not the address of a known cache is no cache. */
TEST(slab_of_an_object, "/pages/slab-of-an-object")
{
    World w = new_world(true);
    KtGuestCpu cpu = { 0 }, other = { 0 };
    KtCacheId cache, id;

    direct[2][0] = NAME;
    direct[2][1] = 64ull << 32 | 60;
    memcpy(&direct[2][256], "things", 7);
    map_page[8 + 3] = CACHE;
    g_assert_true(kt_guest_slab(w.g, &cpu, DIRECT + 0x1008, &cache));
    g_assert_cmpuint(cache.v, ==, 0);
    id = kt_guest_cache(w.g, &cpu, CACHE)->id;
    g_assert_cmpuint(id.v, !=, 0);
    g_assert_true(kt_guest_slab(w.g, &cpu, DIRECT + 0x1008, &cache));
    g_assert_cmpuint(cache.v, ==, id.v);
    g_assert_true(kt_guest_slab(w.g, &other, DIRECT + 0x1008, &cache));
    g_assert_cmpuint(cache.v, ==, id.v);
    map_page[8 + 3] = 0;
    g_assert_true(kt_guest_slab(w.g, &cpu, DIRECT + 0x1008, &cache));
    g_assert_cmpuint(cache.v, ==, 0);
    end_world(&w);
}
