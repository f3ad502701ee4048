/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Return addresses that the guest's own tracers replaced, see
 * return-records.h. Called by vCPU threads, only if a walk finds such an
 * address.
 *
 * The shadow stack of function_graph since 6.11 (kernel/trace/fgraph.c):
 *
 *     task->ret_stack[]   ... | struct ftrace_ret_stack | data | n |
 *                               ^--------- n words ------------'   ^
 *                                              task->curr_ret_stack'
 *
 * The low 10 bits of the word below the top say how far below it the newest
 * record begins; the next older one is below that. Before, ret_stack was an
 * array of records and curr_ret_stack the index of the newest, -1 for none.
 *
 * Until 5.10 (commit d741bf41d7c7) the records of kretprobes are in a table of
 * lists. The list of a task is chosen by hash_ptr(task, KPROBE_HASH_BITS), and
 * may have records of other tasks.
 *
 * Two records have one key if a traced function ends with a jump to another
 * one. The newer one then holds the tracer's address, the older the true one.
 *
 * Records are the guest's data: a walk reads at most READS_MAX words of them,
 * and what it finds is looked up as any return address.
 */
#include "guest-symbols/unwind/return-records.h"

#include "guest-symbols/kernel/kernel.h"

/* A task has at most 50 records (FTRACE_RETFUNC_DEPTH), since 6.11 4096 bytes
 * of them. */
#define READS_MAX       512
#define DISTANCE_MASK   0x3ffull
/* Two tracers can replace the address of one frame. */
#define TRACERS         2
/* include/linux/hash.h, kernel/kprobes.c */
#define GOLDEN_RATIO_64     0x61c8864680b583ebull
#define KPROBE_HASH_BITS    6

/* ---- what a kernel has -------------------------------------------------- */

static uint64_t find_code(const GsKernel *k, const char *const *names, size_t n)
{
    GsSymbol sym;

    for (size_t i = 0; i < n; i++) {
        if (gs_kernel_lookup(k, names[i], &sym)) {
            return sym.va;
        }
    }
    return 0;
}

static bool find_member(const GsKernel *k, const char *type, const char *member,
                        uint32_t *at)
{
    return gs_kernel_member(k, type, member, at, NULL);
}

/* struct fgraph_ops got its member @idx in 6.11 by the series that changed the
 * shadow stack (commits 42675b723b48 and 7aa1eaef9f42). */
static void find_graph(GsGraphRecords *g, const GsKernel *k, bool by_slot)
{
    uint32_t unused;

    g->known = find_member(k, "task_struct", "ret_stack", &g->stack) &&
               find_member(k, "task_struct", "curr_ret_stack", &g->top) &&
               find_member(k, "ftrace_ret_stack", "ret", &g->ret) &&
               find_member(k, "ftrace_ret_stack", by_slot ? "retp" : "fp",
                           &g->key) &&
               gs_kernel_type_size(k, "ftrace_ret_stack", &g->size);
    g->in_words = find_member(k, "fgraph_ops", "idx", &unused);
}

static void find_hooks(GsHookRecords *h, const GsKernel *k)
{
    static const struct {
        const char *list, *type, *next, *key;
    } kinds[] = {
        { "rethooks", "rethook_node", "llist", "frame" },
        { "kretprobe_instances", "kretprobe_instance", "llist", "fp" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(kinds) && !h->known; i++) {
        const char *type = kinds[i].type;

        h->known = find_member(k, "task_struct", kinds[i].list, &h->list) &&
                   find_member(k, type, kinds[i].next, &h->next) &&
                   find_member(k, type, "ret_addr", &h->ret) &&
                   find_member(k, type, kinds[i].key, &h->key);
    }
}

/* On arm64 and riscv64 the keys of such records are no frame pointers. */
static void find_hook_table(GsHookRecords *h, const GsKernel *k)
{
    const char *type = "kretprobe_instance";
    GsSymbol table;

    if (gs_kernel_lookup(k, "kretprobe_inst_table", &table) &&
        table.size >= 8u << KPROBE_HASH_BITS) {
        h->table = table.va;
        h->known = find_member(k, type, "hlist", &h->next) &&
                   find_member(k, type, "ret_addr", &h->ret) &&
                   find_member(k, type, "fp", &h->key);
    }
}

void gs_kernel_replaced_returns(const GsKernel *k, uint64_t va[2])
{
    static const char *const graph[] = { "return_to_handler" };
    static const char *const hooks[] = {
        "arch_rethook_trampoline", "__kretprobe_trampoline",
        "kretprobe_trampoline",
    };

    va[0] = va[1] = 0;
    if (!k->plain && k->symtab) {
        va[0] = find_code(k, graph, G_N_ELEMENTS(graph));
        va[1] = find_code(k, hooks, G_N_ELEMENTS(hooks));
    }
}

void gs_return_records_prepare(GsReturnRecords *r, const GsKernel *k)
{
    *r = (GsReturnRecords) {
        .by_slot = k->arch->return_key == GS_RETURN_BY_SLOT,
    };
    gs_kernel_replaced_returns(k, r->va);
    if (k->btf) {
        find_graph(&r->graph, k, r->by_slot);
        find_hooks(&r->hooks, k);
        if (!r->hooks.known && r->by_slot) {
            find_hook_table(&r->hooks, k);
        }
    }
}

/* ---- reading records ---------------------------------------------------- */

GsReturnCursor gs_return_cursor(uint64_t task)
{
    return (GsReturnCursor) { .task = task, .left = READS_MAX };
}

static bool read_record(GsReturnCursor *c, Walk *w, uint64_t va, uint64_t *out)
{
    if (!c->left) {
        return false;
    }
    c->left--;
    return read_word(w, va, out);
}

/* Read the int at @va. */
static bool read_int(GsReturnCursor *c, Walk *w, uint64_t va, int64_t *out)
{
    uint64_t word;

    if (!read_record(c, w, va & ~7ull, &word)) {
        return false;
    }
    *out = (int32_t)(word >> (va & 4) * 8);
    return true;
}

/* Return the address of the word that leads to the first record. */
static uint64_t hooks_of(const GsHookRecords *h, uint64_t task)
{
    return h->table ? h->table + 8 * (task * GOLDEN_RATIO_64 >>
                                      (64 - KPROBE_HASH_BITS))
                    : task + h->list;
}

/* Read where the records of the task are; 0 for those that are not known. */
static void begin(const GsReturnRecords *r, GsReturnCursor *c, Walk *w)
{
    c->begun = true;
    if (!r->graph.known || !c->task ||
        !read_record(c, w, c->task + r->graph.stack, &c->stack) ||
        !read_int(c, w, c->task + r->graph.top, &c->index)) {
        c->stack = 0;
    }
    if (!r->hooks.known || !c->task ||
        !read_record(c, w, hooks_of(&r->hooks, c->task), &c->node)) {
        c->node = 0;
    }
}

/* Move to the next older record of function_graph. */
static bool next_graph(const GsGraphRecords *g, GsReturnCursor *c, Walk *w,
                       uint64_t *at)
{
    uint64_t word;

    if (!c->stack || c->index < !!g->in_words) {
        return false;
    }
    if (!g->in_words) {
        *at = c->stack + c->index-- * g->size;
        return true;
    }
    if (!read_record(c, w, c->stack + 8 * --c->index, &word)) {
        return false;
    }
    word &= DISTANCE_MASK;
    c->index -= word;
    *at = c->stack + 8 * c->index;
    return word && c->index >= 0;
}

static bool find_in_graph(const GsReturnRecords *r, GsReturnCursor *c, Walk *w,
                          uint64_t key, uint64_t *pc)
{
    const GsGraphRecords *g = &r->graph;
    uint64_t at, have, ret;

    while (next_graph(g, c, w, &at)) {
        if (!read_record(c, w, at + g->key, &have) ||
            !read_record(c, w, at + g->ret, &ret)) {
            return false;
        }
        if (have == key && ret != r->va[0]) {
            *pc = ret;
            return true;
        }
    }
    return false;
}

static bool find_in_hooks(const GsReturnRecords *r, GsReturnCursor *c, Walk *w,
                          uint64_t key, uint64_t *pc)
{
    const GsHookRecords *h = &r->hooks;

    while (c->node) {
        uint64_t at = c->node - h->next, have, ret;

        if (!read_record(c, w, c->node, &c->node) ||
            !read_record(c, w, at + h->key, &have) ||
            !read_record(c, w, at + h->ret, &ret)) {
            return false;
        }
        if (have == key && ret != r->va[1]) {
            *pc = ret;
            return true;
        }
    }
    return false;
}

bool gs_return_records_find(const GsReturnRecords *r, GsReturnCursor *c,
                            Walk *w, uint64_t key, uint64_t *pc)
{
    if (!c->begun) {
        begin(r, c, w);
    }
    for (unsigned i = 0; i < TRACERS; i++) {
        if (!gs_return_records_replaced(r, *pc)) {
            return true;
        }
        if (*pc == r->va[0] ? !find_in_graph(r, c, w, key, pc)
                            : !find_in_hooks(r, c, w, key, pc)) {
            return false;
        }
    }
    return !gs_return_records_replaced(r, *pc);
}
