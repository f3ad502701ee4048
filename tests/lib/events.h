/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scripts of allocator events. A script makes a tracer, a kernel and a sink for
 * the output of commands. Single-threaded.
 *
 * One statement a line; '#' begins a comment:
 *
 *   alloc va= size= [actual=] [us=] [stack=a,b,c] [stop=] [cache=] [layer=]
 *         [cpu=] [pid=] [comm=] [gfp=] [hook=] [tag=: as in KtEvent]
 *   free va= [us=] [stack=] [family=] [cache=] [cpu=] [pid=] [comm=] [hook=]
 *        [size= sized=1] [flags=: bits of KtEventFlag]
 *   rcu va= [us=] [stack=] ...     queued by kfree_rcu
 *   resize va= size= [us=] ...     krealloc in place
 *   destroy va= cache= [us=] ...   destroy a cache that has objects
 *   access va= size= [actual=] [us=] [stack=] [cache=] ...
 *                                  an access that may be an error; actual:
 *                                  distance of the first bad byte; flags: 1
 *                                  write, 2 range, 4 free slot
 *   enter va= size= [gfp=] us= stack= cpu= pid= comm=
 *                                  a call of the function at va, for ka fault;
 *                                  size and gfp are its first two arguments
 *   alias va= name=                another name of the kmem_cache at va; that
 *                                  of the first cache= is ffff888000c00000
 *   watched block= size= ring=     ka access watch of these bytes
 *   watched va= size= us= stack= [cpu=] [pid=] [comm=] [flags=: bits of
 *           KtBlockAccessFlag]     an access to them
 *   gap [unseen=1] [blind=1]       events were not recorded; unseen: one of
 *                                  them was a call that allocates; blind: any
 *                                  event of this boot may be missing
 *   complete                       tracing began before the first allocation
 *   off | on | clear | reset       the commands, or a reset of the VM
 *   mark name=                     ka mark NAME
 *   many n= va= step= size= ...    n allocations at a distance of step
 *   symbol va= name= [type=]       a symbol of the kernel; before its first use
 *   kernel                         write the symbols so far to the journal, so
 *                                  that it has the modules that follow
 *   inherit                        modules came with a snapshot
 *   load va=, unload va=           load or unload a module
 *   module va= name= base= size=   describe a module; then modsym va= name= for
 *                                  each of its symbols
 *   hook name= [va=] [hits=] [note=]   a row of the hook table
 *   count counter= [n=]            add to a counter
 *   call [types=N]                 the boot begins in which calls are watched;
 *                                  types: the kernel's are those of
 *                                  deref-types.h (1) or struct-types.h (2)
 *   call va= us= [took=] [ret=] [ra=] [args=a,b] [cpu=] [pid=] [comm=] [stack=]
 *        [open=1] [irq=1] [rule=] [deref=]
 *                                  a call of the watched function at va; deref:
 *                                  values of --deref, joined by ",": their
 *                                  bytes, null, or ? if it is not known
 *   call begin=|end=<module> us=   a session begins or ends
 *   why <text>                     the reason why there is no kernel
 *   vm n= [running=1] [page_offset=] [vmemmap=]
 *                                  a VM with n vCPUs
 *   types structs=NAME:SIZE:MEMBER@OFFSET:TYPE,...;...
 *                                  the types of the kernel; after its symbols.
 *                                  TYPE: bytes, or =NAME of a struct before.
 *                                  structs=none: it has none
 *   types frames=1                 the kernel's code makes frame records
 *   types task_pid= task_comm=     what was learned of a kernel without types
 *   reg cpu= name= value=          set a register of a vCPU
 *   word va= value=                write 8 bytes of the VM's memory; the
 *                                  other bytes of the page are 0
 *   text va= value=                write a text to the VM's memory
 *   lost                           the running kernel is not recognised
 *   log seq= ns= us= level= text= [facility=] [lost=] [pid=] [irq=]
 *       [comm= cpu= stack=]        a line of the kernel's log; with comm the
 *                                  line was read when it was stored
 *
 * Numbers are hex, except us, cpu, pid, n, ring, and those of log. In values
 * \xNN is a byte.
 */
#ifndef TEST_EVENTS_H
#define TEST_EVENTS_H

#include "monitor-cmds/mc.h"

typedef struct TestWorld TestWorld;

/** test_world_new_at() - run a script. An error in the script aborts.
 *  @journal: (nullable) write its events to this file. Returns: (owned) its
 *  result. */
TestWorld *test_world_new_at(const char *script, const char *journal);
/** test_world_new() - run a script without a journal. */
static inline TestWorld *test_world_new(const char *script)
{
    return test_world_new_at(script, NULL);
}
void test_world_free(TestWorld *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TestWorld, test_world_free)

/** test_world_tracer() - (borrowed) the tracer. */
KtTracer *test_world_tracer(TestWorld *w);
/** test_world_make_kernel() - make the kernel of the symbols so far, if it was
 *  not made yet, and finish its last module. */
void test_world_make_kernel(TestWorld *w);
/** test_world_context() - (borrowed) the context of commands. Its output is
 *  kept for test_world_run(). */
McContext *test_world_context(TestWorld *w);
/** test_world_run() - run a command; @rc is its result. Returns: (owned) its
 *  output. */
char *test_world_run(TestWorld *w, const char *args, int *rc);
/** test_world_events() - run more statements. */
void test_world_events(TestWorld *w, const char *script);
/** test_world_chunks() - how often the last command called the sink. */
unsigned test_world_chunks(TestWorld *w);
/** test_world_close_after() - let the sink fail after @calls calls. */
void test_world_close_after(TestWorld *w, unsigned calls);

#endif /* TEST_EVENTS_H */
