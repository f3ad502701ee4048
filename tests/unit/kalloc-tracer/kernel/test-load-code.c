/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Symbols of modules and BPF code count in the memory limit, and are refused if
 * they exceed it.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kernel/load-code.h"

#include <string.h>

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/tracer/tracer.h"

#define CODE 0xffffffffc0000000ull
#define MEM  ((uint64_t)64 << 20)

static const char symbols[] = "ffffffff81000000 T _stext\n"
                              "ffffffff81000800 T _etext\n"
                              "ffffffff82001000 B _end\n";

typedef struct World {
    GsKernel *k;
    KtTracer *t;
    KtGuest *g;
} World;

static const void *no_memory(uint64_t va, size_t *avail)
{
    return NULL;
}

static World world_new(void)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    World w;

    config.mem_bytes = MEM;
    w.k = gs_kernel_new_from_data(symbols, strlen(symbols), "test", NULL);
    w.t = kt_tracer_new(&config, NULL);
    w.g = kt_guest_new(w.k, w.t, no_memory);
    return w;
}

static void world_free(World *w)
{
    kt_guest_free(w->g);
    kt_tracer_free(w->t);
    gs_kernel_free(w->k);
}

/* Add code as BPF does: each piece has the same name. */
static bool add_one(GsKernel *k, const GsMem *mem, uint64_t va, GError **errp)
{
    const GsModuleSymbol f = { .va = va, .name = "bpf_prog_f", .type = 't' };

    g_assert_cmpuint(mem->room, ==, MEM / 64);
    return gs_kernel_add_module_data(k, va, "bpf", va, 0x100, &f, 1, 0, NULL,
                                     NULL, 0, errp);
}

TEST(test_is_told, "/learn/is-told")
{
    World w = world_new();
    KtBudget *b = kt_tracer_budget(w.t);
    uint64_t before = gs_kernel_bytes(w.k);

    for (unsigned i = 0; i < 100; i++) {
        g_assert_true(kt_load_code(w.t, w.k, w.g, add_one, CODE + i * 0x100));
        g_assert_cmpuint(kt_budget_used(b, KT_MEM_KERNEL), ==,
                         gs_kernel_bytes(w.k));
    }
    g_assert_cmpuint(gs_kernel_bytes(w.k), >, before);
    world_free(&w);
}

TEST(test_does_not_fit, "/learn/does-not-fit")
{
    World w = world_new();
    KtBudget *b = kt_tracer_budget(w.t);

    kt_budget_charge(b, KT_MEM_FIXED, kt_budget_room(b, KT_MEM_KERNEL));
    kt_budget_charge(b, KT_MEM_FIXED, kt_budget_room(b, KT_MEM_KERNEL));
    g_assert_cmpuint(kt_budget_room(b, KT_MEM_KERNEL), ==, 0);
    g_assert_false(kt_load_code(w.t, w.k, w.g, add_one, CODE));
    world_free(&w);
}

/* Return (owned) the modules of @k, packed as for a snapshot. */
static GByteArray *packed(GsKernel *k)
{
    GByteArray *bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);

    gs_kernel_pack_modules(k, p);
    gs_stream_out_end(writer);
    return bytes;
}

static void learn_modules(World *w, const GByteArray *bytes)
{
    GsBytes in = { bytes->data, bytes->len };
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(gs_stream_from_bytes, &in, 1 << 24);
    GsBytes *u = gs_stream_in(reader);

    kt_load_modules(w->t, w->k, u, true);
    g_assert_true(gs_stream_in_end(reader, NULL));
}

/* The snapshot is loaded without the modules that do not fit; they are
 * counted. */
TEST(test_state_does_not_fit, "/learn/state-does-not-fit")
{
    World w = world_new();
    KtBudget *b = kt_tracer_budget(w.t);
    g_autoptr(GByteArray) bytes = NULL;

    for (unsigned i = 0; i < 100; i++) {
        kt_load_code(w.t, w.k, w.g, add_one, CODE + i * 0x100);
    }
    bytes = packed(w.k);
    learn_modules(&w, bytes);
    g_assert_cmpuint(gs_kernel_n_modules(w.k), ==, 100);
    g_assert_cmpuint(kt_tracer_counter(w.t, KT_CNT_MODULES_FAILED), ==, 0);
    gs_kernel_set_slide(w.k, 0);
    kt_budget_set(b, KT_MEM_KERNEL, gs_kernel_bytes(w.k));
    kt_budget_charge(b, KT_MEM_FIXED, MEM);
    learn_modules(&w, bytes);
    g_assert_cmpuint(gs_kernel_n_modules(w.k), ==, 0);
    g_assert_cmpuint(kt_tracer_counter(w.t, KT_CNT_MODULES_FAILED), ==, 100);
    g_assert_cmpuint(kt_budget_used(b, KT_MEM_KERNEL), ==,
                     gs_kernel_bytes(w.k));
    world_free(&w);
}

#define MODULES 8192u       /* the most, each with the most areas */
#define AREAS   8u

static uint64_t area(unsigned module, unsigned i)
{
    return CODE + (uint64_t)((MODULES - 1 - module) * AREAS + i) * 0x1000;
}

static void pack_module(GsOut *p, unsigned nth)
{
    g_autofree char *name = g_strdup_printf("m%u", nth);

    gs_out_varint(p, area(nth, 0));
    gs_out_text(p, name);
    gs_out_varint(p, 1);          /* live */
    gs_out_varint(p, nth + 1);    /* its load */
    gs_out_varint(p, 0);
    for (unsigned text = 0; text < 2; text++) {
        gs_out_varint(p, AREAS);
        for (unsigned i = 0; i < AREAS; i++) {
            gs_out_varint(p, area(nth, i));
            gs_out_varint(p, 0x1000);
        }
    }
    gs_out_varint(p, 1);          /* symbols */
    gs_out_step(p, area(nth, 0), area(nth, AREAS - 1));
    gs_out_bytes(p, "t", 1);
    gs_out_text(p, name);
    gs_out_varint(p, 0);          /* rules */
}

/* Loading is about linear in the number of areas. Comparing each area with all
 * others would take many seconds. */
TEST(test_state_of_many_modules, "/learn/state-of-many-modules")
{
    World w = world_new();
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);

    gs_out_varint(p, MODULES);
    for (unsigned i = 0; i < MODULES; i++) {
        pack_module(p, i);
    }
    gs_stream_out_end(writer);
    learn_modules(&w, bytes);
    kt_tracer_inherit_modules(w.t, w.k);
    kt_query_begin(w.t);
    for (unsigned i = 0; i < MODULES; i += MODULES / 8 - 1) {
        g_autofree char *name = g_strdup_printf("m%u", i);
        GsSymbol sym;

        g_assert_true(kt_query_module_loaded(w.t, name));
        g_assert_true(gs_kernel_symbolize(w.k, area(i, AREAS - 1), &sym));
        g_assert_cmpstr(sym.name, ==, name);
        g_assert_cmpstr(sym.module, ==, name);
        g_assert_true(gs_kernel_is_text(w.k, area(i, 0)));
    }
    kt_query_end(w.t);
    world_free(&w);
}
