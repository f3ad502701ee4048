/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A made-up kernel with a module, and calls in it for fault rules. A call is
 * what the test says: its registers, its stack, its task.
 */
#ifndef TEST_FAULT_CALLS_H
#define TEST_FAULT_CALLS_H

#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/faults/fault-rules.h"
#include "tests/lib/test-main.h"

#define TEXT    0xffffffff81000000ull
#define KMALLOC (TEXT + 0x1000)
#define ERRNO   (TEXT + 0x4000)
#define STATE   (TEXT + 0x20000)
#define MODULE  0xffffffffc0000000ull

/**
 * struct FaultWorld - a tracer, and the next call
 * @frames: @n of them, the direct caller first
 */
typedef struct FaultWorld {
    KtTracer *t;
    GsKernel *k;
    KtCallPoints *points;
    uint64_t reg[GS_REG__COUNT];
    uint64_t frames[8];
    unsigned n;
    uint32_t state, pid;
    const char *comm;
} FaultWorld;

/** fault_world_new() - (owned) Make a tracer and its kernel;
 *  fault_world_new_at(): with a journal. */
FaultWorld *fault_world_new(void);
FaultWorld *fault_world_new_at(const char *journal);
void fault_world_free(FaultWorld *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FaultWorld, fault_world_free)

/* A case with an empty world @w. */
#define FAULT_TEST(fn, path) \
    TEST_IN(g_autoptr(FaultWorld), FaultWorld *w, fault_world_new(), fn, path)

/** fault_add_spec() - Add a rule; return its number. */
uint32_t fault_add_spec(FaultWorld *w, const KtFaultSpec *spec);
/** fault_add() - Add a rule about kmalloc. @condition: (nullable) */
uint32_t fault_add(FaultWorld *w, const char *condition);
/** fault_clear() - Delete all rules. */
void fault_clear(FaultWorld *w);
/** fault_rule() - Return the newest rule; all 0 if there is none. */
KtFaultRule fault_rule(FaultWorld *w);

/** fault_call_at() - Call the function at @va from @place of the module, or of
 *  the kernel if it is an address. Returns: true if the call is to fail, with
 *  @value. */
bool fault_call_at(FaultWorld *w, uint64_t va, uint64_t place,
                   uint64_t *value);
/** fault_call() - Call kmalloc. */
bool fault_call(FaultWorld *w, uint64_t place);
/** fault_calls() - (owned) Make @n calls of kmalloc; return a letter for each,
 *  F or ".". */
char *fault_calls(FaultWorld *w, unsigned n);

#endif /* TEST_FAULT_CALLS_H */
