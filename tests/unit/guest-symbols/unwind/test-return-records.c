/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks find the return addresses that the guest's tracers replaced, in each
 * layout of their records. Otherwise they end there, without a false frame.
 */
#include "tests/lib/guest-stacks.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/types/btf.h"

#include <bpf/btf.h>
#include <string.h>

#define TEXT 0xffffffff81000000ull

/* Functions, 0x100 bytes each; a frame in them returns to +0x50. The tracers'
 * code lies behind the padding of a function with a rule. */
enum { LEAF, PUSHES, KTHREAD, PADDING };
#define AT(f) (TEXT + (f) * 0x100 + 0x50)
#define GRAPH (TEXT + 0x400)
#define HOOKED (TEXT + 0x500)

static const OrcRow rows[] = {
    { TEXT + LEAF * 0x100, GS_ORC_CALL, R_SP, 8 },
    { TEXT + PUSHES * 0x100, GS_ORC_CALL, R_SP, 32, R_PREV_SP, -16 },
    { TEXT + KTHREAD * 0x100, GS_ORC_END },
    { TEXT + PADDING * 0x100, GS_ORC_CALL, R_SP, 8 },
};

/* Layouts of the records */
enum {
    ARRAY = 1,          /* function_graph until 6.10 */
    WORDS = 2,          /* since 6.11 */
    NODES = 4,          /* rethook */
    INSTANCES = 8,      /* kretprobes before */
    TABLE = 16,         /* kretprobes until 5.10 */
};

/* The task_struct and its records are in memory that is no stack here. */
#define TASK_STRUCT IRQ
#define RET_STACK   (IRQ + 0x1000)
#define NODE(i)     (NMI + 0x100 * (i))
#define LISTS       (IRQ + 0x800)

enum { AT_STACK = 8, AT_TOP = 20, AT_LIST = 24 };
enum { RET = 0, FP = 16, RETP = 24, RECORD = 32 };
enum { NEXT = 16, RET_ADDR = 32, FRAME = 40 };

static void add_struct(struct btf *b, const char *name, int size)
{
    g_assert_cmpint(btf__add_struct(b, name, size), >, 0);
}

static GsBtf *make_types(unsigned layouts)
{
    struct btf *b = btf__new_empty();
    int t_long = btf__add_int(b, "long", 8, BTF_INT_SIGNED);
    int t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    bool nodes = layouts & NODES;
    GsBtf *types;
    const void *raw;
    __u32 len;

    add_struct(b, "task_struct", 64);
    btf__add_field(b, "ret_stack", t_long, AT_STACK * 8, 0);
    btf__add_field(b, "curr_ret_stack", t_int, AT_TOP * 8, 0);
    if (!(layouts & TABLE)) {
        btf__add_field(b, nodes ? "rethooks" : "kretprobe_instances", t_long,
                       AT_LIST * 8, 0);
    }
    add_struct(b, "ftrace_ret_stack", RECORD);
    btf__add_field(b, "ret", t_long, RET * 8, 0);
    btf__add_field(b, "fp", t_long, FP * 8, 0);
    btf__add_field(b, "retp", t_long, RETP * 8, 0);
    if (layouts & WORDS) {
        add_struct(b, "fgraph_ops", 8);
        btf__add_field(b, "idx", t_int, 0, 0);
    }
    add_struct(b, nodes ? "rethook_node" : "kretprobe_instance", 48);
    btf__add_field(b, layouts & TABLE ? "hlist" : "llist", t_long, NEXT * 8, 0);
    btf__add_field(b, "ret_addr", t_long, RET_ADDR * 8, 0);
    btf__add_field(b, nodes ? "frame" : "fp", t_long, FRAME * 8, 0);
    raw = btf__raw_data(b, &len);
    types = gs_btf_new(raw, len, NULL);
    btf__free(b);
    return types;
}

static GsSymtab *make_symbols(unsigned layouts)
{
    const struct {
        uint64_t va;
        const char *name;
    } list[] = {
        { LISTS, layouts & TABLE ? "kretprobe_inst_table" : "other" },
        { LISTS + 8 * 64, "behind" },
        { TEXT, "leaf" }, { GRAPH, "return_to_handler" },
        { HOOKED, "arch_rethook_trampoline" }, { HOOKED + 0x100, "end" },
    };
    GsSymtab *tab = gs_symtab_new();

    for (size_t i = 0; i < G_N_ELEMENTS(list); i++) {
        gs_symtab_add(tab, list[i].va, 'T', list[i].name,
                      strlen(list[i].name));
    }
    gs_symtab_seal(tab, NULL);
    return tab;
}

/* Let @g have the symbols, and types if @layouts is not 0. */
static Guest *guest_with(unsigned layouts)
{
    Guest *g = guest_new_of(TEXT, rows, G_N_ELEMENTS(rows));

    gs_unwinder_free(g->u);
    g->k.symtab = make_symbols(layouts);
    g->k.btf = layouts ? make_types(layouts) : NULL;
    g->u = gs_unwinder_new(&g->k);
    return g;
}

static void drop(Guest *g)
{
    gs_symtab_free(g->k.symtab);
    gs_btf_free(g->k.btf);
    guest_free(g);
}

static GsStop walk_of(Guest *g, uint64_t task, uint64_t ip, uint64_t sp)
{
    const GsRegs regs = { .ip = ip, .sp = sp, .task = task };

    return gs_unwind(g->u, &regs, guest_page, g, g->frames,
                     G_N_ELEMENTS(g->frames), &g->n);
}

/* ---- records ------------------------------------------------------------ */

static void put_top(Guest *g, uint64_t stack, int32_t top)
{
    guest_put(g, TASK_STRUCT + AT_STACK, stack);
    guest_put(g, TASK_STRUCT + (AT_TOP & ~7), (uint64_t)(uint32_t)top << 32);
}

static void put_graph(Guest *g, uint64_t at, uint64_t ret, uint64_t slot)
{
    guest_put(g, at + RET, ret);
    guest_put(g, at + RETP, slot);
}

static void put_node(Guest *g, unsigned i, uint64_t next, uint64_t ret,
                     uint64_t slot)
{
    guest_put(g, NODE(i) + NEXT, next);
    guest_put(g, NODE(i) + RET_ADDR, ret);
    guest_put(g, NODE(i) + FRAME, slot);
}

/* leaf <- (replaced) pushes <- leaf <- (replaced) kthread */
#define SP (TASK + 0x100)
#define SLOT_1 SP
#define SLOT_2 (SP + 40)

static void put_stack(Guest *g, uint64_t first, uint64_t second)
{
    guest_put(g, SLOT_1, first);
    guest_put(g, SP + 32, AT(LEAF));
    guest_put(g, SLOT_2, second);
}

static void assert_whole(Guest *g)
{
    ASSERT_STOP(walk_of(g, TASK_STRUCT, AT(LEAF), SP), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF), AT(PUSHES), AT(LEAF), AT(KTHREAD));
}

static void assert_cut(Guest *g, uint64_t task)
{
    ASSERT_STOP(walk_of(g, task, AT(LEAF), SP), GS_STOP_REPLACED);
    ASSERT_FRAMES(g, AT(LEAF));
}

/* ---- tests -------------------------------------------------------------- */

TEST(graph_array, "/return-records/graph-array")
{
    Guest *g = guest_with(ARRAY);

    put_stack(g, GRAPH, GRAPH);
    put_graph(g, RET_STACK, AT(KTHREAD), SLOT_2);
    put_graph(g, RET_STACK + RECORD, AT(PUSHES), SLOT_1);
    put_graph(g, RET_STACK + 2 * RECORD, 1, SLOT_1);    /* no longer used */
    put_top(g, RET_STACK, 1);
    assert_whole(g);
    put_top(g, RET_STACK, -1);
    assert_cut(g, TASK_STRUCT);
    drop(g);
}

/* Records of two sizes; the word behind each has its size and other bits. */
static void put_words(Guest *g)
{
    put_graph(g, RET_STACK, AT(KTHREAD), SLOT_2);
    guest_put(g, RET_STACK + 8 * 6, 0x17406);
    put_graph(g, RET_STACK + 8 * 7, AT(PUSHES), SLOT_1);
    guest_put(g, RET_STACK + 8 * 11, 0x3404);
    put_top(g, RET_STACK, 12);
}

TEST(graph_words, "/return-records/graph-words")
{
    Guest *g = guest_with(WORDS);

    put_stack(g, GRAPH, GRAPH);
    put_words(g);
    assert_whole(g);
    put_top(g, RET_STACK, 0);
    assert_cut(g, TASK_STRUCT);
    put_top(g, RET_STACK, 12);
    guest_put(g, RET_STACK + 8 * 11, 0x3400);           /* no distance */
    assert_cut(g, TASK_STRUCT);
    guest_put(g, RET_STACK + 8 * 11, 0x343f);           /* below the stack */
    assert_cut(g, TASK_STRUCT);
    drop(g);
}

/* A traced function jumped to another one: two records for one slot. */
TEST(tail_call, "/return-records/tail-call")
{
    Guest *g = guest_with(ARRAY);

    put_stack(g, GRAPH, AT(KTHREAD));
    put_graph(g, RET_STACK, AT(PUSHES), SLOT_1);
    put_graph(g, RET_STACK + RECORD, GRAPH, SLOT_1);
    put_top(g, RET_STACK, 1);
    assert_whole(g);
    drop(g);
}

TEST(hooks, "/return-records/hooks")
{
    const unsigned layouts[] = { WORDS | NODES, ARRAY | INSTANCES };

    for (unsigned i = 0; i < G_N_ELEMENTS(layouts); i++) {
        Guest *g = guest_with(layouts[i]);

        put_stack(g, HOOKED, HOOKED);
        guest_put(g, TASK_STRUCT + AT_LIST, NODE(0) + NEXT);
        put_node(g, 0, NODE(1) + NEXT, AT(LEAF), SLOT_1 - 8);
        put_node(g, 1, NODE(2) + NEXT, AT(PUSHES), SLOT_1);
        put_node(g, 2, 0, AT(KTHREAD), SLOT_2);
        assert_whole(g);
        drop(g);
    }
}

/* The list of the task has records of another task, too. */
TEST(hook_table, "/return-records/hook-table")
{
    Guest *g = guest_with(TABLE);
    const uint64_t hash = TASK_STRUCT * 0x61c8864680b583ebull;

    put_stack(g, HOOKED, HOOKED);
    guest_put(g, LISTS + 8 * (hash >> 58), NODE(0) + NEXT);
    put_node(g, 0, NODE(1) + NEXT, AT(PUSHES), SLOT_1);
    put_node(g, 1, NODE(2) + NEXT, AT(LEAF), NMI + 0x800);
    put_node(g, 2, 0, AT(KTHREAD), SLOT_2);
    assert_whole(g);
    assert_cut(g, 0);
    assert_cut(g, TASK_STRUCT + 0x40);
    guest_put(g, LISTS + 8 * (hash >> 58), 0);
    assert_cut(g, TASK_STRUCT);
    drop(g);
}

/* Both tracers replaced the address of one frame. */
TEST(two_tracers, "/return-records/two-tracers")
{
    Guest *g = guest_with(WORDS | NODES);

    put_stack(g, HOOKED, GRAPH);
    put_words(g);
    put_graph(g, RET_STACK, HOOKED, SLOT_2);
    guest_put(g, TASK_STRUCT + AT_LIST, NODE(0) + NEXT);
    put_node(g, 0, NODE(1) + NEXT, GRAPH, SLOT_1);
    put_node(g, 1, 0, AT(KTHREAD), SLOT_2);
    assert_whole(g);
    drop(g);
}

/* Nothing says where the records are. */
TEST(unknown, "/return-records/unknown")
{
    Guest *g = guest_with(0);

    put_stack(g, GRAPH, AT(KTHREAD));
    put_words(g);
    assert_cut(g, TASK_STRUCT);
    put_stack(g, HOOKED, AT(KTHREAD));
    assert_cut(g, TASK_STRUCT);
    drop(g);
    g = guest_with(WORDS);
    put_stack(g, GRAPH, AT(KTHREAD));
    put_words(g);
    assert_cut(g, 0);
    assert_cut(g, 0xffff000000000000ull);
    drop(g);
}

/* A list without an end, and a record that leads to itself. */
TEST(hostile, "/return-records/hostile")
{
    Guest *g = guest_with(WORDS | NODES);

    put_stack(g, HOOKED, AT(KTHREAD));
    guest_put(g, TASK_STRUCT + AT_LIST, NODE(0) + NEXT);
    put_node(g, 0, NODE(1) + NEXT, AT(LEAF), 0);
    put_node(g, 1, NODE(0) + NEXT, AT(LEAF), 0);
    assert_cut(g, TASK_STRUCT);
    put_node(g, 1, NODE(0) + NEXT, HOOKED, SLOT_1);
    assert_cut(g, TASK_STRUCT);
    put_node(g, 0, 1, AT(LEAF), 0);
    assert_cut(g, TASK_STRUCT);
    put_stack(g, GRAPH, AT(KTHREAD));
    put_top(g, RET_STACK, INT32_MAX);
    assert_cut(g, TASK_STRUCT);
    put_graph(g, RET_STACK, 0x1234, SLOT_1);            /* no code */
    guest_put(g, RET_STACK + 8 * 4, 4);
    put_top(g, RET_STACK, 5);
    ASSERT_STOP(walk_of(g, TASK_STRUCT, AT(LEAF), SP), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(LEAF));
    drop(g);
}

/* The hooked function itself was jumped to: its return address is replaced. */
TEST(first_frame, "/return-records/first-frame")
{
    Guest *g = guest_with(WORDS);
    const GsRegs regs = { .ip = GRAPH, .sp = SP + 8, .task = TASK_STRUCT };
    const GsRegs other = { .ip = AT(LEAF), .sp = SP, .task = TASK_STRUCT };

    put_stack(g, GRAPH, GRAPH);
    put_words(g);
    g_assert_cmphex(gs_unwind_return(g->u, &regs, guest_page, g), ==,
                    AT(PUSHES));
    g_assert_cmphex(gs_unwind_return(g->u, &other, guest_page, g), ==,
                    AT(LEAF));
    ASSERT_STOP(walk_of(g, TASK_STRUCT, GRAPH, SP + 8), GS_STOP_END);
    ASSERT_FRAMES(g, AT(PUSHES), AT(LEAF), AT(KTHREAD));
    ASSERT_STOP(walk_of(g, 0, GRAPH, SP + 8), GS_STOP_REPLACED);
    g_assert_cmpuint(g->n, ==, 0);
    drop(g);
}

/* The records are not on the stack, so an equal stack may have other ones. */
TEST(not_remembered, "/return-records/not-remembered")
{
    Guest *g = guest_with(WORDS);
    const GsRegs regs = { .ip = AT(LEAF), .sp = SP, .task = TASK_STRUCT };
    uint64_t value;

    put_stack(g, GRAPH, GRAPH);
    put_words(g);
    assert_whole(g);
    gs_unwind_remember(g->u, 0, 7);
    g_assert_false(gs_unwind_again(g->u, &regs, guest_page, g, 0, &value));
    put_stack(g, AT(PUSHES), AT(KTHREAD));
    assert_whole(g);
    gs_unwind_remember(g->u, 0, 8);
    g_assert_true(gs_unwind_again(g->u, &regs, guest_page, g, 0, &value));
    g_assert_cmpuint(value, ==, 8);
    drop(g);
}

/* Frame records: on x86-64 the slot is behind the saved frame pointer,
 * elsewhere the caller's frame pointer is the key. */
static void frame_records(const GsArch *arch, uint64_t first, uint64_t second)
{
    Guest *g = guest_with(WORDS);
    GsRegs regs = { .ip = AT(LEAF), .sp = SP, .bp = SP, .task = TASK_STRUCT };
    const bool slots = arch == &gs_arch_x86_64;
    const uint32_t key = slots ? RETP : FP;

    gs_unwinder_free(g->u);
    g->k.arch = arch;
    g->k.unwind_by = slots ? GS_UNWIND_BY_FRAMES : GS_UNWIND_BY_ARCH;
    g->k.text[0] = (GsRange) { TEXT, TEXT + 0x10000 };
    g->u = gs_unwinder_new(&g->k);
    PUT(g, SP, SP + 0x40, GRAPH);
    PUT(g, SP + 0x40, SP + 0x80, GRAPH);
    PUT(g, SP + 0x80, 0, AT(KTHREAD));
    put_words(g);
    guest_put(g, RET_STACK + key, second);
    guest_put(g, RET_STACK + 8 * 7 + key, first);
    gs_unwind(g->u, &regs, guest_page, g, g->frames, 4, &g->n);
    ASSERT_FRAMES(g, AT(LEAF), AT(PUSHES), AT(KTHREAD), AT(KTHREAD));
    regs.task = 0;
    ASSERT_STOP(gs_unwind(g->u, &regs, guest_page, g, g->frames, 4, &g->n),
                GS_STOP_REPLACED);
    ASSERT_FRAMES(g, AT(LEAF));
    drop(g);
}

TEST(frame_records_by_slot, "/return-records/frame-records/by-slot")
{
    frame_records(&gs_arch_x86_64, SP + 8, SP + 0x48);
}

TEST(frame_records_by_frame_pointer,
     "/return-records/frame-records/by-frame-pointer")
{
    frame_records(&gs_arch_arm64, SP + 0x40, SP + 0x80);
}
