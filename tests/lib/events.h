/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A readable script of allocator events, made into a tracer and a kernel.
 *
 * One statement a line, '#' begins a comment:
 *
 *   alloc va= size= [actual=] [us=] [stack=a,b,c] [stop=] [cache=] [layer=]
 *         [cpu=] [pid=] [comm=] [gfp=] [hook=]
 *   free va= [us=] [stack=] [family=] [cache=] [cpu=] [pid=] [comm=] [hook=]
 *        [size= sized=1]
 *   rcu va= [us=] [stack=] ...     queued by kfree_rcu
 *   resize va= size= [us=] ...     krealloc in place
 *   gap [unseen=1]                 something was not recorded; a call that was
 *                                  to hand out memory
 *   complete                       tracing began before the first allocation
 *   off | on | clear | reset       as the commands, or a reset of the VM
 *   many n= va= step= size= ...    n allocations, step apart
 *   symbol va= name= [type=]       of the kernel (before the first "kernel")
 *   inherit                        modules came with a VM's state
 *   load va=, unload va=           the module is loaded, unloaded
 *   module va= name= base= size=   then modsym va= name= for its symbols
 *   hook name= [va=] [hits=] [note=]   a row of the hook table
 *   count counter= [n=]            add to a counter
 *   why <text>                     why there is no kernel
 *   vm n= [running=1] [page_offset=] [vmemmap=]
 *                                  the VM can be looked at: n vCPUs
 *   reg cpu= name= value=          a register of one
 *   word va= value=                8 bytes of its memory, in a page of zeros
 *   text va= value=                the same of a text
 *   lost                           the running kernel is not recognised
 *
 * Numbers are hex, but us, cpu, pid and n. In values \xNN is that byte.
 */
#ifndef TEST_EVENTS_H
#define TEST_EVENTS_H

#include "monitor-cmds/mc.h"

typedef struct TestWorld TestWorld;

/** test_world_new() - (owned) run @script; a wrong one fails the test. */
TestWorld *test_world_new(const char *script);
void test_world_free(TestWorld *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TestWorld, test_world_free)

KtTracer *test_world_tracer(TestWorld *w);
/** test_world_context() - (borrowed) a context whose output is kept. */
McContext *test_world_context(TestWorld *w);
/** test_world_run() - (owned) what a command printed; @rc: its result. */
char *test_world_run(TestWorld *w, const char *args, int *rc);
/** test_world_events() - run more of a script. */
void test_world_events(TestWorld *w, const char *script);
/** test_world_chunks() - calls of the sink since the last run began. */
unsigned test_world_chunks(TestWorld *w);
/** test_world_close_after() - the sink refuses after so many calls. */
void test_world_close_after(TestWorld *w, unsigned calls);

#endif /* TEST_EVENTS_H */
