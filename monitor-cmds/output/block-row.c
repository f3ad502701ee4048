/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of blocks: see block-row.h. */
#include "monitor-cmds/output/block-row.h"

#define B(key_, member_, look_, text_, help_, ...) \
    MC_VIA(key_, McBlockRow, block, member_, look_, text_, help_, __VA_ARGS__)

static const KtBlock *block_of(const void *row)
{
    return ((const McBlockRow *)row)->block;
}

MC_GETTER(offset)
{
    v->u = ((const McBlockRow *)row)->offset;
    return ((const McBlockRow *)row)->hit;
}

MC_GETTER(state)
{
    const KtBlock *b = block_of(row);

    v->u = !b ? '-' : b->past ? 'P' : b->state == KT_BLOCK_ALLOCATED ? 'A' :
                                                                       'F';
    return true;
}

MC_GETTER(va)
{
    const KtBlock *b = block_of(row);

    v->u = b ? b->va : ((const McBlockRow *)row)->va;
    return true;
}

MC_GETTER(end)
{
    const KtBlock *b = block_of(row);

    v->u = b ? b->va + b->requested - 1 : ((const McBlockRow *)row)->va;
    return true;
}

/* Past lives have neither flags nor vCPUs: 0 means unknown. */
MC_GETTER(gfp)
{
    const KtBlock *b = block_of(row);

    v->u = b ? b->gfp : 0;
    return b && (b->gfp || !b->past) &&
           kt_tracer_hook_has_gfp(o->ctx->tracer, b->hook);
}

MC_GETTER(cpu)
{
    const KtBlock *b = block_of(row);

    v->u = b ? b->alloc_cpu : 0;
    return b && (b->alloc_cpu || !b->past);
}

MC_GETTER(free_cpu)
{
    const KtBlock *b = block_of(row);

    v->u = b->free_cpu;
    return b->free_cpu || !b->past;
}

MC_WHEN(is_queued)
{
    const KtBlock *b = block_of(row);

    return b && b->rcu_queued;
}

MC_WHEN(is_freed)
{
    const KtBlock *b = block_of(row);

    return b && (b->past || b->state == KT_BLOCK_FREED);
}

MC_WHEN(is_removed)
{
    const KtBlock *b = block_of(row);

    return b && b->removed;
}

MC_GETTER(ended)
{
    v->s = "removed";
    return true;
}

const McColumn mc_margin_columns[] = {
    MC_GET("offset", get_offset, MARGIN, "",
           "offset in the block of the address that was asked for",
           .flags = MC_OMIT | MC_HEAD),
    MC_END
};

#define HEAD_COLUMNS \
    MC_GET("state", get_state, LETTER, "%", \
           "A allocated, F freed and not reused, P past life, - no block", \
           .flags = MC_HEAD), \
    MC_GET("va", get_va, ADDRESS, " %", \
           "first byte of the block (error without a block: the address at " \
           "fault)", .flags = MC_HEAD), \
    MC_GET("end", get_end, ADDRESS, "-%", \
           "last requested byte; for a block of 0 bytes the byte before it", \
           .flags = MC_HEAD), \
    B("requested", requested, BYTES, " (%5", "bytes that were requested", \
      .flags = MC_HEAD), \
    B("actual", actual, BYTES, "/%5)", "bytes that the allocator reserved", \
      .flags = MC_HEAD)

#define STACK_COLUMNS \
    B("alloc", alloc_stack, STACK, " alloc[%]", \
      "stack of the allocation, leaf first; empty if none was kept"), \
    B("alloc_us", alloc_us, NUMBER, "@%us", \
      "guest microsecond of the allocation", .flags = MC_ZERO), \
    B("rcu", rcu_stack, STACK, " rcu[%]", \
      "stack that queued the block by kfree_rcu", .when = is_queued), \
    B("rcu_us", rcu_us, NUMBER, "@%us", \
      "guest microsecond of the call of kfree_rcu", \
      .flags = MC_ZERO, .when = is_queued), \
    B("free", free_stack, STACK, " free[%]", "stack of the free, leaf first", \
      .when = is_freed), \
    B("free_us", free_us, NUMBER, "@%us", "guest microsecond of the free", \
      .flags = MC_ZERO, .when = is_freed), \
    MC_GET("ended", get_ended, WORD, " ended=%", \
           "removed: the block was not freed, the guest lost its memory " \
           "(hot-unplug, a balloon, a page that went offline); free, free_us " \
           "and the keys free_* say who took it, and when", \
           .when = is_removed)

const McColumn mc_block_columns[] = { HEAD_COLUMNS, STACK_COLUMNS, MC_END };
const McColumn mc_block_head_columns[] = { HEAD_COLUMNS, MC_END };
const McColumn mc_block_stack_columns[] = { STACK_COLUMNS, MC_END };

const McColumn mc_block_more_columns[] = {
    B("layer", layer, LAYER, " layer=%", "allocator layer", .flags = MC_V),
    B("hook", hook, HOOK, " hook=%", "function that allocated",
      .flags = MC_V),
    B("cache", cache, CACHE, " cache=%", "kmem_cache", .flags = MC_V),
    MC_GET("gfp", get_gfp, HEX, " gfp=%", "gfp flags of the call",
           .flags = MC_V),
    MC_GET("cpu", get_cpu, NUMBER, " cpu=%", "vCPU of the allocation",
           .flags = MC_V),
    B("pid", alloc_task, PID, " pid=%", "task that allocated", .flags = MC_V),
    B("comm", alloc_task, COMM, " comm=%", "name of this task",
      .flags = MC_V),
    B("stop", alloc_stack, STOP, " stop=%",
      "why the allocation stack ends at its last frame", .flags = MC_V),
    B("free_hook", free_hook, HOOK, " free_hook=%", "function that freed",
      .flags = MC_V, .when = is_freed),
    MC_GET("free_cpu", get_free_cpu, NUMBER, " free_cpu=%",
           "vCPU of the free", .flags = MC_V, .when = is_freed),
    B("free_pid", free_task, PID, " free_pid=%", "task that freed",
      .flags = MC_V, .when = is_freed),
    B("free_comm", free_task, COMM, " free_comm=%", "name of this task",
      .flags = MC_V, .when = is_freed),
    MC_END
};

#define I(member_, look_, text_, help_) \
    MC_VIA(#member_, McBlockRow, identity, member_, look_, text_, help_, \
           .flags = MC_TEXT_V, MC_IF(McBlockRow, identity))

const McColumn mc_identity_columns[] = {
    I(title, TEXT, " title[%]",
      "title of the error or leak: its kind and the first function that is no "
      "helper, the same in all kernels (docs/errors.md)"),
    I(alt, LIST, " alt[%]",
      "more titles; if two errors or leaks share one, they are probably one "
      "bug"),
    I(fold, CHARS, " fold=%",
      "hash of the kind and of the functions of its stacks, the same over "
      "boots and builds"),
    I(exact, CHARS, " exact=%",
      "the same with the offsets of the calls, for one build"),
    I(weak, NUMBER, " weak=%",
      "1: a stack is not known to its end, so these hashes are of a part"),
    MC_END
};

const McObject mc_block_object = {
    "block", "a block",
    { mc_margin_columns, mc_block_columns, mc_block_more_columns },
    .is_block = true,
};

void mc_print_block(McOut *o, const KtBlock *b)
{
    mc_print(o, &mc_block_object, &(McBlockRow) { .block = b });
}
