/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which words of stacks are scanned: the guest has a task, a stack without a
 * task, an interrupt stack, and blocks that only words on these stacks refer
 * to.
 */
#include <string.h>

#include <bpf/btf.h>

#include "tests/lib/test-main.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/kernel/kernel.h"
#include "kalloc-tracer/leak/leak-internal.h"

#define INIT    0xffff800081000000ull   /* init_task */
#define POINTER 0xffff800081800000ull   /* irq_stack_ptr */
#define STACKS  0xffff800090000000ull
#define SIZE    0x4000ull
#define HEAP    0xffff000000000000ull
#define FORK    0xffff800080012340ull
#define OTHER   0xffff800080045678ull
#define FREE_RCU 0xffff800080020000ull  /* thread_stack_free_rcu() */

/* Blocks by number: vmalloc'ed ones, then what the words on each refer to. */
enum { TASK, SPARE, NO_STACK, IRQ, N_STACKS };

typedef struct World {
    KtLiveSet w;
    KtLeakPlan plan;
    GsKernel *kernel;
    KtTracer *tracer;
    GHashTable *words;          /* va -> value */
    KtReader reader;
} World;

/* Read guest memory: all of it is readable, and 0 unless it was set. */
static bool read_world(void *opaque, uint64_t va, void *buf, size_t len)
{
    World *t = opaque;

    memset(buf, 0, len);
    for (size_t i = 0; i + 4 <= len; i += 4) {
        gpointer value = g_hash_table_lookup(t->words,
                                             GSIZE_TO_POINTER((va + i) & ~7));
        uint64_t word = GPOINTER_TO_SIZE(value);

        memcpy((char *)buf + i, (char *)&word + ((va + i) & 4), 4);
    }
    return true;
}

static void put(World *t, uint64_t va, uint64_t value)
{
    g_hash_table_insert(t->words, GSIZE_TO_POINTER(va),
                        GSIZE_TO_POINTER(value));
}

static uint64_t stack_at(unsigned i)
{
    return STACKS + i * 0x10000;
}

/* struct task_struct { void *stack; int on_cpu, pid; struct { struct { u64
 * sp; } cpu_context; } thread; }, struct vm_stack { struct callback_head rcu;
 * void *stack_vm_area; } */
static GsBtf *make_types(void)
{
    struct btf *b = btf__new_empty();
    int word = btf__add_int(b, "long", 8, 0), context, thread;
    int half = btf__add_int(b, "int", 4, 0), rcu;
    const void *raw;
    GsBtf *types;
    __u32 len;

    context = btf__add_struct(b, "cpu_context", 8);
    btf__add_field(b, "sp", word, 0, 0);
    thread = btf__add_struct(b, "thread_struct", 8);
    btf__add_field(b, "cpu_context", context, 0, 0);
    btf__add_struct(b, "task_struct", 24);
    btf__add_field(b, "stack", word, 0, 0);
    btf__add_field(b, "on_cpu", half, 64, 0);
    btf__add_field(b, "pid", half, 96, 0);
    btf__add_field(b, "thread", thread, 128, 0);
    rcu = btf__add_struct(b, "callback_head", 16);
    btf__add_field(b, "next", word, 0, 0);
    btf__add_field(b, "func", word, 64, 0);
    btf__add_struct(b, "vm_stack", 24);
    btf__add_field(b, "rcu", rcu, 0, 0);
    btf__add_field(b, "stack_vm_area", word, 128, 0);
    raw = btf__raw_data(b, &len);
    types = gs_btf_new(raw, len, NULL);
    btf__free(b);
    return types;
}

static GsKernel *make_kernel(void)
{
    static const char map[] = "ffff800080010000 T _stext\n"
                              "ffff800080010000 T __primary_switched\n"
                              "ffff800080020000 t thread_stack_free_rcu\n"
                              "ffff800080900000 T _etext\n"
                              "ffff800080a00000 R linux_banner\n"
                              "ffff800081000000 D init_task\n"
                              "ffff800081800000 d irq_stack_ptr\n";
    GsKernel *k = gs_kernel_new_from_data(map, strlen(map), "map", NULL);

    g_assert_nonnull(k);
    k->btf = make_types();
    return k;
}

static void add_live(World *t, uint64_t va, uint64_t len, uint8_t layer,
                     uint64_t site)
{
    KtLiveBlock b = {
        .va = va, .len = len, .requested = len, .layer = layer,
        .stack = kt_tracer_intern_stack(t->tracer, &site, 1, GS_STOP_END),
    };

    g_array_append_val(t->w.live, b);
    kt_marker_add(t->w.scan, va, len, 0);
}

/* Blocks of the heap have the lowest addresses, so they come first. */
static void add_all_live(World *t)
{
    for (unsigned i = 0; i < N_STACKS; i++) {
        add_live(t, HEAP + i * 0x100, 0x80, KT_LAYER_KMALLOC, OTHER);
        put(t, stack_at(i) + SIZE - 0x100, HEAP + i * 0x100);
    }
    for (unsigned i = 0; i < N_STACKS; i++) {
        add_live(t, stack_at(i), SIZE, KT_LAYER_VMALLOC,
                 i == TASK || i == SPARE ? FORK : OTHER);
    }
}

static World *world_new(void)
{
    static KtVm vm = { .n_vcpus = 1 };
    const KtConfig config = KT_CONFIG_DEFAULT;
    World *t = g_new0(World, 1);
    uint64_t no_offset = 0;

    t->kernel = make_kernel();
    t->tracer = kt_tracer_new(&config, NULL);
    t->words = g_hash_table_new(NULL, NULL);
    t->plan = (KtLeakPlan) { .vm = &vm, .kernel = t->kernel };
    t->w = (KtLiveSet) {
        .plan = &t->plan,
        .tracer = t->tracer,
        .stack_size = SIZE,
        .mem = { .read = read_world, .opaque = t },
        .live = g_array_new(FALSE, FALSE, sizeof(KtLiveBlock)),
        .region = g_array_new(FALSE, FALSE, sizeof(KtRegion)),
        .registers = g_array_new(FALSE, FALSE, sizeof(KtRegister)),
        .offset = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
        .missing = g_ptr_array_new_with_free_func(g_free),
        .scan = kt_marker_new(),
    };
    kt_layout_init(&t->w.layout, t->kernel);
    g_array_append_val(t->w.offset, no_offset);
    add_all_live(t);
    put(t, INIT, stack_at(TASK));
    put(t, INIT + 16, stack_at(TASK) + SIZE - 0x200);
    put(t, POINTER, stack_at(IRQ));
    t->reader.mem = t->w.mem;
    kt_reader_init(&t->reader);
    return t;
}

static void world_free(World *t)
{
    g_array_unref(t->w.live);
    g_array_unref(t->w.region);
    g_array_unref(t->w.registers);
    g_array_unref(t->w.offset);
    g_ptr_array_unref(t->w.missing);
    kt_marker_free(t->w.scan);
    kt_reader_deinit(&t->reader);
    g_hash_table_unref(t->words);
    kt_tracer_free(t->tracer);
    gs_kernel_free(t->kernel);
    g_free(t);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

/* Scan from the roots, and from pointers to all blocks of vmalloc. */
static void scan(World *t)
{
    kt_roots_find_stacks(&t->w);
    kt_marker_seal(t->w.scan);
    for (unsigned i = 0; i < t->w.region->len; i++) {
        const KtRegion *r = &g_array_index(t->w.region, KtRegion, i);

        kt_reader_each(&t->reader, r->va, r->len, kt_marker_span, t->w.scan);
    }
    for (unsigned i = 0; i < N_STACKS; i++) {
        kt_marker_span(t->w.scan, 0, &(uint64_t) { stack_at(i) }, 1);
    }
    kt_marker_run(t->w.scan, &t->reader);
}

static void set_named(World *t, const char *name, uint64_t value)
{
    KtRegister r = { name, value };

    g_array_append_val(t->w.registers, r);
}

static void set_register(World *t, uint64_t value)
{
    set_named(t, "sp", value);
}

/* A case with an empty world @t. */
#define WORLD_TEST(fn, path) \
    TEST_IN(g_autoptr(World), World *t, world_new(), fn, path)

WORLD_TEST(a_task_stack_counts_from_its_pointer_on,
           "/stacks/a-task-stack-counts-from-its-pointer-on")
{
    put(t, stack_at(TASK) + 0x100, HEAP + SPARE * 0x100);   /* below sp */
    scan(t);
    g_assert_cmpuint(t->w.tasks, ==, 1);
    g_assert_true(kt_marker_reached(t->w.scan, TASK));
    g_assert_false(kt_marker_reached(t->w.scan, SPARE));
}

WORLD_TEST(a_running_one_from_its_register_on,
           "/stacks/a-running-one-from-its-register-on")
{
    set_register(t, stack_at(TASK) + SIZE - 0x80);
    scan(t);
    g_assert_false(kt_marker_reached(t->w.scan, TASK));
}

/* The task was interrupted: a register that points into its stack is no sp. */
WORLD_TEST(all_counts_while_its_task_is_on_another,
           "/stacks/all-counts-while-its-task-is-on-another")
{
    put(t, INIT + 8, 1);                                    /* on_cpu */
    put(t, stack_at(TASK) + 0x100, HEAP + SPARE * 0x100);
    set_named(t, "x19", stack_at(TASK) + SIZE - 0x80);
    set_register(t, stack_at(IRQ) + SIZE - 0x180);
    scan(t);
    g_assert_true(kt_marker_reached(t->w.scan, TASK));
    g_assert_true(kt_marker_reached(t->w.scan, SPARE));
}

/* The task sleeps; a CPU that wakes it has an address in its stack. */
WORLD_TEST(of_one_that_sleeps_registers_say_nothing,
           "/stacks/of-one-that-sleeps-registers-say-nothing")
{
    put(t, stack_at(TASK) + 0x100, HEAP + SPARE * 0x100);
    set_named(t, "x19", stack_at(TASK) + SIZE - 0x80);
    scan(t);
    g_assert_true(kt_marker_reached(t->w.scan, TASK));
    g_assert_false(kt_marker_reached(t->w.scan, SPARE));
}

WORLD_TEST(nobodys_stack_has_no_words, "/stacks/nobodys-stack-has-no-words")
{
    scan(t);
    g_assert_false(kt_marker_reached(t->w.scan, SPARE));
    /* same size, but allocated by another call: no stack */
    g_assert_true(kt_marker_reached(t->w.scan, NO_STACK));
}

/* A stack that waits for a grace period: only its rcu_head is scanned, which
 * refers to the next callback. */
TEST(one_that_waits_for_rcu_is_a_link,
     "/stacks/one-that-waits-for-rcu-is-a-link")
{
    g_autoptr(World) waits = world_new(), kept = world_new();

    put(waits, stack_at(SPARE), HEAP + IRQ * 0x100);
    put(waits, stack_at(SPARE) + 8, FREE_RCU);
    scan(waits);
    g_assert_true(kt_marker_reached(waits->w.scan, IRQ));
    g_assert_false(kt_marker_reached(waits->w.scan, SPARE));
    put(kept, stack_at(SPARE), HEAP + IRQ * 0x100);
    put(kept, stack_at(SPARE) + 8, FORK);
    scan(kept);
    g_assert_false(kt_marker_reached(kept->w.scan, IRQ));
}

TEST(an_interrupt_stack_has_words_while_one_uses_it,
     "/stacks/an-interrupt-stack-has-words-while-one-uses-it")
{
    g_autoptr(World) idle = world_new(), busy = world_new();

    scan(idle);
    g_assert_false(kt_marker_reached(idle->w.scan, IRQ));
    set_register(busy, stack_at(IRQ) + SIZE - 0x180);
    put(busy, stack_at(IRQ) + 0x100, HEAP + SPARE * 0x100);
    scan(busy);
    g_assert_true(kt_marker_reached(busy->w.scan, IRQ));
    g_assert_false(kt_marker_reached(busy->w.scan, SPARE));
}

WORLD_TEST(no_stack_counts_when_told_so, "/stacks/no-stack-counts-when-told-so")
{
    t->plan.no_stacks = true;
    set_register(t, stack_at(IRQ) + SIZE - 0x180);
    scan(t);
    g_assert_cmpuint(t->w.region->len, ==, 0);
    g_assert_false(kt_marker_reached(t->w.scan, TASK));
    g_assert_false(kt_marker_reached(t->w.scan, IRQ));
}

WORLD_TEST(without_types_no_leak_is_certain,
           "/stacks/without-types-no-leak-is-certain")
{
    g_clear_pointer(&t->kernel->btf, gs_btf_free);
    kt_layout_init(&t->w.layout, t->kernel);
    kt_roots_find_stacks(&t->w);
    g_assert_cmpuint(t->w.missing->len, ==, 1);
    g_assert_cmpstr(t->w.unknown_roots, ==,
                    "stacks of tasks: no type task_struct");
    kt_marker_seal(t->w.scan);
}
