/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of modules: copied from guest memory when a module is loaded, dropped
 * when it is unloaded, and counted if they cannot be used or kept. The types
 * are made with libbpf.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/types/prototype.h"

#include <string.h>

#define GUEST   0xffffffffc0000000ull
#define ID      0xffffffffc0800000ull
#define BASE    0xffffffffc0900000ull

typedef struct World {
    GsModules *modules;
    GsOrcSet *orc;
    GsBtf *kernel;
    GBytes *raw;
} World;

/* The kernel has int; the module has int g(int n). */
static World *world_new(void)
{
    World *w = g_new0(World, 1);
    struct btf *kernel = btf__new_empty(), *module;
    int t_int = btf__add_int(kernel, "int", 4, BTF_INT_SIGNED), proto;

    module = btf__new_empty_split(kernel);
    proto = btf__add_func_proto(module, t_int);
    btf__add_func_param(module, "n", t_int);
    btf__add_func(module, "g", BTF_FUNC_GLOBAL, proto);
    w->raw = types_bytes(module);
    w->kernel = types_end(kernel);
    w->orc = gs_orc_set_new();
    w->modules = gs_modules_new();
    return w;
}

static void world_free(World *w)
{
    gs_modules_free(w->modules);
    gs_orc_set_free(w->orc);
    gs_btf_free(w->kernel);
    g_bytes_unref(w->raw);
    g_free(w);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

static bool read_guest(void *opaque, uint64_t va, void *buf, size_t len)
{
    const World *w = opaque;
    size_t size;
    const uint8_t *data = g_bytes_get_data(w->raw, &size);

    if (va < GUEST || va - GUEST > size || len > size - (va - GUEST)) {
        return false;
    }
    memcpy(buf, data + (va - GUEST), len);
    return true;
}

/* @at: where the types are said to be */
static void load(World *w, const GsModuleTypesAt *at)
{
    const GsMem mem = { .read = read_guest, .opaque = w };
    GsModuleInfo info = {
        .name = "alpha", .mem = { { BASE, BASE + 4096 } }, .n_mem = 1,
    };

    gs_module_types_read(&info.types, &mem, at);
    g_assert_true(gs_modules_add(w->modules, w->orc, ID, &info, NULL));
}

static GsModuleTypesAt all_types(const World *w)
{
    return (GsModuleTypesAt) { GUEST, g_bytes_get_size(w->raw), 0, 0 };
}

/* @want: the prototype of g(), or why it is unknown. */
static void expect(World *w, const char *name, const char *want)
{
    const char *why = NULL;
    g_autoptr(GsBtf) btf = gs_modules_types(w->modules, name, w->kernel, &why);
    g_autoptr(GsPrototype) p = NULL;
    g_autofree char *text = NULL;

    if (btf) {
        p = gs_prototype_new(btf, &gs_arch_x86_64, "g", &why);
    }
    text = p ? gs_prototype_text(p, "g") : g_strdup(why);
    if (!strstr(text, want)) {
        g_assert_cmpstr(text, ==, want);
    }
}

TEST(test_life, "/module-types/life")
{
    g_autoptr(World) w = world_new();
    const GsModuleTypesAt at = all_types(w);
    uint64_t bytes;

    expect(w, "alpha", "not loaded");
    load(w, &at);
    bytes = gs_modules_bytes(w->modules);
    expect(w, "alpha", "int g(int n)");
    expect(w, "alpha", "int g(int n)");
    expect(w, "beta", "not loaded");
    gs_modules_drop(w->modules, w->orc, ID);
    expect(w, "alpha", "not loaded");
    g_assert_cmpuint(gs_modules_bytes(w->modules), <, bytes);
    load(w, &at);
    expect(w, "alpha", "int g(int n)");
    load(w, &at);
    expect(w, "alpha", "int g(int n)");
    gs_modules_drop_shape(w->modules);
    expect(w, "alpha", "exchanged");
    gs_modules_clear(w->modules);
    expect(w, "alpha", "not loaded");
    g_assert_cmpuint(gs_modules_n_untyped(w->modules), ==, 0);
}

static const struct {
    GsModuleTypesAt at;
    const char *why;
    unsigned counted;
} bad[] = {
    { { 0, 0, 0, 0 }, "has no types", 0 },
    { { GUEST, 0, 0, 0 }, "has no types", 0 },
    { { GUEST, 1u << 20, 0, 0 }, "could not be read", 1 },
    { { 4096, 64, 0, 0 }, "could not be read", 1 },
    { { GUEST, 56, 4096, 56 }, "could not be read", 1 },
    { { GUEST, UINT32_MAX, 0, 0 }, "too large", 1 },
    { { GUEST, 56, GUEST, UINT32_MAX }, "too large", 1 },
    { { GUEST, 56, 0, 0 }, "make no sense", 1 },
    { { GUEST, 56, GUEST, 56 }, "make no sense", 1 },
};

TEST(test_bad, "/module-types/bad")
{
    g_autoptr(World) w = world_new();

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        load(w, &bad[i].at);
        expect(w, "alpha", bad[i].why);
        g_assert_cmpuint(gs_modules_n_untyped(w->modules), ==,
                         bad[i].counted);
        expect(w, "alpha", bad[i].why);
        g_assert_cmpuint(gs_modules_n_untyped(w->modules), ==, 0);
    }
}

/* Types are refused before names, and dropped before a module is refused. */
TEST(test_room, "/module-types/room")
{
    g_autoptr(World) w = world_new();
    const GsModuleTypesAt at = all_types(w);

    load(w, &at);
    gs_modules_drop(w->modules, w->orc, ID);
    gs_modules_set_room(w->modules, 64);
    load(w, &at);
    expect(w, "alpha", "no memory");
    g_assert_cmpuint(gs_modules_n_untyped(w->modules), ==, 1);
    gs_modules_set_room(w->modules, 1u << 20);
    load(w, &at);
    expect(w, "alpha", "int g(int n)");
}
