/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Return addresses that the guest's own tracers replaced. For the files of
 * unwind/ only; called by vCPU threads.
 *
 * To see a function return, a tracer writes the address of its own code over
 * the return address, and keeps the true one in a record of the task:
 *
 *     stack of the task                 records of the task
 *     slot: return_to_handler   <-----  { ret: vfs_read+0x8a, retp: slot }
 *
 *     function_graph, fprobe (6.14)     task->ret_stack, newest record on top
 *     kretprobes, fprobe (5.18)         task->rethooks, a list of nodes
 *     kretprobes (5.11 to 5.17)         task->kretprobe_instances, a list
 *     kretprobes (until 5.10)           kretprobe_inst_table, a list a hash
 *
 * A record is found by its key: the address of the slot on x86-64, the frame
 * pointer of the caller elsewhere. The records of a task lie in the order of
 * its frames, so one pass over them serves a whole walk. Records of other tasks
 * in between have keys of their own, since tasks do not share stacks.
 */
#ifndef GS_RETURN_RECORDS_H
#define GS_RETURN_RECORDS_H

#include "guest-symbols/unwind/walk.h"

/**
 * struct GsGraphRecords - the records of function_graph
 * @known: the members below are known
 * @in_words: records of several sizes, with a word behind each that has its
 *            size (since 6.11); else an array
 * @stack, @top: members of task_struct
 * @ret, @key, @size: members and size of struct ftrace_ret_stack
 */
typedef struct GsGraphRecords {
    bool known, in_words;
    uint32_t stack, top;
    uint32_t ret, key, size;
} GsGraphRecords;

/**
 * struct GsHookRecords - the records of kretprobes and fprobe
 * @known: the members below are known
 * @table: run-time address of an array of lists, chosen by a hash of the task;
 *         0: each task has a list
 * @list: member of task_struct that is the list, if there is no table
 * @next, @ret, @key: members of a record
 */
typedef struct GsHookRecords {
    bool known;
    uint64_t table;
    uint32_t list;
    uint32_t next, ret, key;
} GsHookRecords;

/**
 * struct GsReturnRecords - what a kernel's tracers replace and record
 * @va: run-time addresses that they write over return addresses, of
 *      function_graph and of kretprobes; 0: this kernel has none
 * @by_slot: the key is the address of the replaced word
 */
typedef struct GsReturnRecords {
    uint64_t va[2];
    bool by_slot;
    GsGraphRecords graph;
    GsHookRecords hooks;
} GsReturnRecords;

/**
 * struct GsReturnCursor - how far one walk has used the records of its task
 * @task: the task, 0 unknown
 * @begun: @index and @node are set
 * @index: position of the next record of function_graph
 * @node: the next record of kretprobes
 * @left: words that may still be read
 */
typedef struct GsReturnCursor {
    uint64_t task;
    bool begun;
    int64_t index;
    uint64_t stack, node;
    unsigned left;
} GsReturnCursor;

/** gs_return_records_prepare() - find what the tracers of @k replace and
 *  record; its slide is set. */
void gs_return_records_prepare(GsReturnRecords *r, const GsKernel *k);

/** gs_return_records_replaced() - is @pc one of @r->va? */
static inline bool gs_return_records_replaced(const GsReturnRecords *r,
                                              uint64_t pc)
{
    return pc && (pc == r->va[0] || pc == r->va[1]);
}

/** gs_return_cursor() - make the cursor of a new walk. @task: 0 unknown */
GsReturnCursor gs_return_cursor(uint64_t task);

/**
 * gs_return_records_find() - find the return address that a tracer replaced
 * @c: of the same walk, see gs_return_cursor()
 * @w: reads the records
 * @key: of the replaced address, see above
 * @pc: (in, out) the replaced address, the true one
 *
 * Returns: false if no record has the key, or the records are not known.
 */
bool gs_return_records_find(const GsReturnRecords *r, GsReturnCursor *c,
                            Walk *w, uint64_t key, uint64_t *pc);

#endif /* GS_RETURN_RECORDS_H */
