/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stack rules: what a condition asks about a call's stack, and the hash by
 * which a stack is known in all runs.
 *
 *     stack(f)        some frame is in function f
 *     stack(m:f)      some frame is in function f of module m
 *     stack("mod:m")  some frame is in module m
 *     caller(f)       the first frame, the direct caller, is in function f
 *     mod("m")        the direct caller is in module m
 *
 * Both are worked out once for each stack id and kept. A name can be of the
 * kernel or of a module, loaded or not: frames are compared by their names.
 *
 * The hash is over (module, place) of each frame, from the direct caller up to
 * the entry of a system call, an interrupt or an exception. The place is the
 * address that the kernel is linked at, or symbol and offset in a module. So
 * neither KASLR nor another load of a module changes the hash. Frames of what
 * was interrupted count neither for the hash nor for the rules: they are there
 * by chance.
 *
 *     ka_alloc+0x1c  [ka_test]   \
 *     ka_ioctl+0x80  [ka_test]    |  hashed
 *     __x64_sys_ioctl+0x97        |
 *     do_syscall_64+0x82          |
 *     entry_SYSCALL_64+0x76      /   the last frame
 *
 * Threads: rules are added before the first use. Then any vCPU thread may call
 * kt_stack_rules_facts(); it takes a lock for a moment.
 */
#ifndef KT_STACK_RULES_H
#define KT_STACK_RULES_H

#include "kalloc-tracer/base/budget.h"

/* A condition has at most so many rules: bits of a word. */
#define KT_STACK_RULES_MAX 32
/* Entries of a KtStackTable, at most. The facts of more stacks are worked out
 * each time. */
#define KT_STACK_TABLE_MAX (1u << 16)

/**
 * struct KtStackTable - what is known of stacks, by a number of the stack
 * @lock: of @entries; the caller locks it
 * @entries: @bytes each; the first member is the number, a uint64_t
 * @budget: (borrowed, nullable) is charged as @part, for @charged entries
 */
typedef struct KtStackTable {
    GMutex lock;
    GHashTable *entries;
    KtBudget *budget;
    KtMemoryPart part;
    size_t bytes;
    unsigned charged;
} KtStackTable;

void kt_stack_table_init(KtStackTable *t, KtBudget *budget, KtMemoryPart part,
                         size_t bytes);
void kt_stack_table_deinit(KtStackTable *t);
/** kt_stack_table_get() - (borrowed, nullable) Find an entry, or add one, which
 *  is 0 but for its number; NULL if there is no room. The lock is held. */
void *kt_stack_table_get(KtStackTable *t, uint64_t number);

typedef enum KtStackRuleKind {
    KT_STACK_FRAME,             /* stack(f) */
    KT_STACK_MODULE,            /* stack("mod:m") */
    KT_STACK_CALLER,            /* caller(f) */
    KT_STACK_CALLER_MODULE,     /* mod("m") */
    KT_STACK_SET,               /* for kt_stack_rules_add_set() only */
} KtStackRuleKind;

typedef struct KtStackRules KtStackRules;

/** kt_stack_rules_new() - (owned) Make an empty set of rules. @budget:
 *  (borrowed, nullable) is charged as @part for what is kept. */
KtStackRules *kt_stack_rules_new(KtBudget *budget, KtMemoryPart part);
void kt_stack_rules_free(KtStackRules *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtStackRules, kt_stack_rules_free)

/** kt_stack_rules_add() - Add a rule. @name: (copied) of a module, or of a
 *  function, as kt_code_function() returns it. Returns: its number, the same
 *  for the same rule; -1: there are KT_STACK_RULES_MAX already. */
int kt_stack_rules_add(KtStackRules *r, KtStackRuleKind kind,
                       const char *name);

/** kt_stack_rules_add_set() - Add a rule that holds if some frame is in one of
 *  the kernel's functions of @names (a set of strings, borrowed as long as @r
 *  lives). Returns: as kt_stack_rules_add(). */
int kt_stack_rules_add_set(KtStackRules *r, GHashTable *names);

/**
 * struct KtCallStack - a stack, as the tracer keeps it
 * @id: its id, 0: it is not kept
 * @frames: (borrowed) @n return addresses, the direct caller first
 * @stop, @era: why the walk ended, and when the stack was taken
 */
typedef struct KtCallStack {
    KtStackId id;
    const uint64_t *frames;
    unsigned n;
    GsStop stop;
    GsStackEra era;
} KtCallStack;

/**
 * struct KtStackFacts - what is known of a stack
 * @hash: see above; never 0
 * @rules: bit n: rule n holds
 * @cut: the walk ended before the stack did: the hash is of a part
 */
typedef struct KtStackFacts {
    uint64_t hash;
    uint32_t rules;
    bool cut;
} KtStackFacts;

/** kt_stack_rules_facts() - Find or work out the facts of a stack. @k: its
 *  frames are code of this kernel. Any thread. */
KtStackFacts kt_stack_rules_facts(KtStackRules *r, const GsKernel *k,
                                  const KtCallStack *s);

#endif /* KT_STACK_RULES_H */
