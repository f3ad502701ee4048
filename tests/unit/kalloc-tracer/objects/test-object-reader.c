/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading kernel memory for the views of objects: what is unreadable fails as a
 * whole, strings are bounded, and per-CPU memory is found by the kernel's
 * variables, by registers, or not at all.
 */
#include "kalloc-tracer/objects/objects-internal.h"
#include "tests/lib/fake-vm.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define OFFSETS 0xffffffff82000000ull
#define MASK    0xffffffff82001000ull
#define IDS     0xffffffff82002000ull
#define DATA    0xffff888000001000ull
#define POINTER 0x20000ull

#define START   "ffffffff81000000 T _stext\n"
#define MANY    "ffffffff81001000 T smp_call_function_many\n"
#define SINGLE  "ffffffff81002000 T smp_call_function_single\n"
#define END     "ffffffff81400000 T _etext\n"
#define OFFSET_SYMBOL "ffffffff82000000 D __per_cpu_offset\n"
#define MASK_SYMBOLS  "ffffffff82001000 D __cpu_possible_mask\n" \
                      "ffffffff82002000 D nr_cpu_ids\n"

typedef struct World {
    TestVm *vm;
    KtTracer *tracer;
    GsKernel *kernel;
    KtObjects o;
} World;

static World *world_new(const char *map)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(GError) err = NULL;
    World *w = g_new0(World, 1);

    w->vm = test_vm_new();
    w->tracer = kt_tracer_new(&config, NULL);
    w->kernel = gs_kernel_new_from_data(map, strlen(map), "map", &err);
    g_assert_no_error(err);
    gs_kernel_set_slide(w->kernel, 0);
    test_vm_set(w->vm, 4, false);
    w->o = (KtObjects) { w->tracer, w->kernel, test_vm_look(w->vm) };
    return w;
}

static void world_free(World *w)
{
    kt_tracer_free(w->tracer);
    gs_kernel_free(w->kernel);
    test_vm_free(w->vm);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

TEST(test_numbers, "/object-reader/numbers")
{
    g_autoptr(World) w = world_new(START END OFFSET_SYMBOL);
    uint64_t v = 1;

    test_vm_word(w->vm, DATA, 0x8877665544332211ull);
    g_assert_true(kt_objects_number(&w->o, DATA, 1, &v));
    g_assert_cmphex(v, ==, 0x11);
    g_assert_true(kt_objects_number(&w->o, DATA + 4, 4, &v));
    g_assert_cmphex(v, ==, 0x88776655);
    g_assert_true(kt_objects_pointer(&w->o, DATA, &v));
    g_assert_cmphex(v, ==, 0x8877665544332211ull);
    g_assert_false(kt_objects_number(&w->o, DATA + 0x1000, 8, &v));
    g_assert_cmphex(v, ==, 0);
    g_assert_false(kt_objects_number(&w->o, DATA, 9, &v));
    w->o.vm = NULL;
    g_assert_false(kt_objects_number(&w->o, DATA, 8, &v));
}

TEST(test_strings, "/object-reader/strings")
{
    g_autoptr(World) w = world_new(START END OFFSET_SYMBOL);
    const uint64_t last = DATA + 0xfff;
    char buf[256];

    test_vm_bytes(w->vm, DATA + 60, "kworker", 8);
    g_assert_true(kt_objects_text(&w->o, DATA + 60, buf, sizeof(buf)));
    g_assert_cmpstr(buf, ==, "kworker");
    g_assert_true(kt_objects_text(&w->o, DATA + 60, buf, 4));
    g_assert_cmpstr(buf, ==, "kwo");
    /* A string that ends with the page needs nothing behind it. */
    test_vm_bytes(w->vm, last - 1, "a", 2);
    g_assert_true(kt_objects_text(&w->o, last - 1, buf, sizeof(buf)));
    g_assert_cmpstr(buf, ==, "a");
    test_vm_bytes(w->vm, last, "b", 1);
    g_assert_false(kt_objects_text(&w->o, last - 1, buf, sizeof(buf)));
    g_assert_cmpstr(buf, ==, "");
    g_assert_true(kt_objects_text(&w->o, last - 1, buf, 1));
}

TEST(test_percpu_by_symbol, "/object-reader/percpu-by-symbol")
{
    g_autoptr(World) w = world_new(START END OFFSET_SYMBOL MASK_SYMBOLS);
    uint64_t v;

    test_vm_word(w->vm, OFFSETS + 8, 0xffff888100000000ull);
    test_vm_word(w->vm, MASK, 0x2);
    g_assert_cmpuint(kt_objects_n_cpus(&w->o), ==, 4);
    test_vm_word(w->vm, IDS, 2);
    g_assert_cmpuint(kt_objects_n_cpus(&w->o), ==, 2);
    g_assert_true(kt_objects_percpu(&w->o, 1, POINTER, &v));
    g_assert_cmphex(v, ==, 0xffff888100020000ull);
    g_assert_false(kt_objects_percpu(&w->o, 0, POINTER, &v));
    g_assert_false(kt_objects_percpu(&w->o, 2, POINTER, &v));
    g_assert_cmphex(v, ==, 0);
    test_vm_word(w->vm, IDS, UINT32_MAX);
    g_assert_cmpuint(kt_objects_n_cpus(&w->o), ==, KT_CPUS_MAX);
}

TEST(test_percpu_of_one_cpu, "/object-reader/percpu-of-one-cpu")
{
    static const struct {
        const char *map;
        bool known;
    } row[] = {
        { START SINGLE END, true },
        { START MANY SINGLE END, false },
        { START END, false },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(World) w = world_new(row[i].map);
        uint64_t v;

        g_assert_true(kt_objects_percpu(&w->o, 0, DATA, &v) == row[i].known);
        g_assert_cmphex(v, ==, row[i].known ? DATA : 0);
    }
}

/* In user mode the kernel's GS base is in the other register. */
TEST(test_percpu_by_register, "/object-reader/percpu-by-register")
{
    g_autoptr(World) w = world_new(START MANY SINGLE END);
    uint64_t v;

    test_vm_reg(w->vm, 1, "gs_base", 0x7f0000001000ull);
    test_vm_reg(w->vm, 1, "k_gs_base", 0xffff888100000000ull);
    test_vm_reg(w->vm, 2, "gs_base", 0xffff888200000000ull);
    g_assert_true(kt_objects_percpu(&w->o, 1, POINTER, &v));
    g_assert_cmphex(v, ==, 0xffff888100020000ull);
    g_assert_true(kt_objects_percpu(&w->o, 2, POINTER, &v));
    g_assert_cmphex(v, ==, 0xffff888200020000ull);
    g_assert_false(kt_objects_percpu(&w->o, 3, POINTER, &v));
    test_vm_set(w->vm, 4, true);
    g_assert_false(kt_objects_percpu(&w->o, 1, POINTER, &v));
}
