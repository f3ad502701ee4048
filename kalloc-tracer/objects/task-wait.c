/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a task waits for. A task that sleeps in a lock or queue of the kernel
 * has a waiter on its stack, which is on the list of that structure:
 *
 *     stack of the task                       struct mutex
 *       struct mutex_waiter                     wait_list  <-> ... (circle)
 *         list <-----> other waiters <-------->
 *         task = this task
 *
 * The stack is searched for words that are the task's address. Such a word is
 * part of a waiter if its list is whole: both neighbours point back. Old
 * waiters, which are on no list any more, are ignored. The head of the list is
 * the first node that is no waiter itself.
 *
 * Called on any thread while the VM is stopped; no locks. All values are
 * untrusted: the search and the walk have limits.
 */
#include "kalloc-tracer/objects/objects-internal.h"

#include <string.h>

/* The smallest stacks of kernels with 64 bits; all are powers of two. */
#define STACK_MIN 0x4000ull
#define STACK_MAX 0x10000ull
/* Limit of list nodes that are read for one task, for all words of its stack
 * together: the guest can fill the stack with words that begin long lists. */
#define NODES_MAX 4096u
/* Low bits of the owner of a lock are flags. */
#define OWNER_FLAGS 7ull
#define RWSEM_READERS 1ull      /* readers have it, the task is one of them */

#define NONE KT_M__COUNT

/**
 * struct Kind - a kind of waiters
 * @function: part of the name of a function that makes such waiters; NULL: the
 *            members distinguish them
 * @list, @task, @func: members of the waiter; @func: its function, or NONE if
 *                      waiters are always on the stack of their task
 * @head: the list in the structure
 * @owner: of the lock, or NONE
 */
typedef struct Kind {
    const char *name, *function;
    KtMember list, task, func, head, owner;
} Kind;

static const Kind kinds[] = {
    { "mutex", "mutex_lock", KT_M_MUTEX_WAITER_LIST, KT_M_MUTEX_WAITER_TASK,
      NONE, KT_M_MUTEX_LIST, KT_M_MUTEX_OWNER },
    { "rwsem", "rwsem_down_", KT_M_RWSEM_WAITER_LIST, KT_M_RWSEM_WAITER_TASK,
      NONE, KT_M_RWSEM_LIST, KT_M_RWSEM_OWNER },
    { "semaphore", "__down", KT_M_SEMAPHORE_WAITER_LIST,
      KT_M_SEMAPHORE_WAITER_TASK, NONE, KT_M_SEMAPHORE_LIST, NONE },
    { "completion", "wait_for_co", KT_M_SWAIT_WAITER_LIST,
      KT_M_SWAIT_WAITER_TASK, NONE, KT_M_COMPLETION_LIST, NONE },
    { "swait queue", NULL, KT_M_SWAIT_WAITER_LIST, KT_M_SWAIT_WAITER_TASK,
      NONE, KT_M_SWAIT_LIST, NONE },
    { "wait queue", NULL, KT_M_WAIT_ENTRY_LIST, KT_M_WAIT_ENTRY_TASK,
      KT_M_WAIT_ENTRY_FUNC, KT_M_WAIT_LIST, NONE },
};

/** struct Search - for the waiter of task @t, whose stack is @frame. @nodes:
 *  how many list nodes may still be read */
typedef struct Search {
    const KtObjects *o;
    const KtTask *t;
    KtLayout at;
    const uint64_t *frame;
    unsigned n, nodes;
} Search;

static bool has(const Search *s, KtMember m)
{
    return m != NONE && kt_layout_has(&s->at, m);
}

/* ---- the list ------------------------------------------------------------ */

/* Return true if the task at @task has its stack around @va. */
static bool is_on_stack_of(const Search *s, uint64_t task, uint64_t va)
{
    uint64_t stack;

    return task >= gs_kernel_lowest(s->o->kernel) &&
           kt_objects_pointer(s->o, task + s->at.at[KT_M_TASK_STACK],
                              &stack) &&
           stack && va >= stack && va - stack < STACK_MAX;
}

/* Return true if the list node at @node belongs to a waiter. */
static bool is_waiter(const Search *s, const Kind *k, uint64_t node)
{
    uint64_t waiter = node - s->at.at[k->list], word;
    GsSymbol sym;

    if (k->func == NONE) {
        return kt_objects_pointer(s->o, waiter + s->at.at[k->task], &word) &&
               is_on_stack_of(s, word, node);
    }
    return kt_objects_number(s->o, waiter + s->at.at[k->func], 8, &word) &&
           gs_kernel_symbolize(s->o->kernel, word, &sym) && sym.va == word;
}

/* Return true if the node is on a list, and read its next one. */
static bool is_on_list(const Search *s, uint64_t node, uint64_t *next)
{
    uint64_t prev, there, back;

    return kt_objects_pointer(s->o, node, next) && *next != node &&
           kt_objects_pointer(s->o, node + 8, &prev) &&
           kt_objects_pointer(s->o, prev, &there) && there == node &&
           kt_objects_pointer(s->o, *next + 8, &back) && back == node;
}

/* Find the head of the list that @node is on. */
static bool find_head(Search *s, const Kind *k, uint64_t node, uint64_t *head)
{
    uint64_t at = node;

    while (s->nodes) {
        s->nodes--;
        if (!is_on_list(s, at, head) || *head == node) {
            return false;
        }
        if (!is_waiter(s, k, *head)) {
            return true;
        }
        at = *head;
    }
    return false;
}

/* ---- the lock ------------------------------------------------------------ */

/* Return the task that holds a lock, 0 if it is not known. */
static uint64_t read_owner(const Search *s, const Kind *k, uint64_t lock)
{
    uint64_t word;

    if (!has(s, k->owner) ||
        !kt_objects_number(s->o, lock + s->at.at[k->owner], 8, &word) ||
        (k->owner == KT_M_RWSEM_OWNER && word & RWSEM_READERS)) {
        return 0;
    }
    return gs_untag(gs_kernel_tag_bits(s->o->kernel), word & ~OWNER_FLAGS);
}

static bool is_called(const Search *s, const Kind *k)
{
    GsSymbol sym;

    for (unsigned i = 0; k->function && i < s->n; i++) {
        if (gs_kernel_symbolize(s->o->kernel, s->frame[i] - 1, &sym) &&
            strstr(sym.name, k->function)) {
            return true;
        }
    }
    return !k->function;
}

/* Is the word at @va, which is the task's address, part of a waiter? */
static bool try_word(Search *s, const Kind *k, uint64_t va, KtTaskWait *out)
{
    uint64_t node = va - s->at.at[k->task] + s->at.at[k->list], head;

    if (!find_head(s, k, node, &head)) {
        return false;
    }
    *out = (KtTaskWait) { k->name, head - s->at.at[k->head] };
    out->owner = read_owner(s, k, out->va);
    return true;
}

/* Since 6.17 the task says which mutex it waits for. Before that, the member
 * is a pointer to the waiter, whose first word is no task. */
static bool try_blocked_on(const Search *s, KtTaskWait *out)
{
    uint64_t lock, owner, stack;

    if (!has(s, KT_M_TASK_BLOCKED_ON) || !has(s, KT_M_MUTEX_OWNER) ||
        !kt_objects_pointer(s->o, s->t->va + s->at.at[KT_M_TASK_BLOCKED_ON],
                            &lock) ||
        lock < gs_kernel_lowest(s->o->kernel)) {
        return false;
    }
    owner = read_owner(s, &kinds[0], lock);
    *out = (KtTaskWait) { kinds[0].name, lock, owner };
    return owner >= gs_kernel_lowest(s->o->kernel) &&
           kt_objects_pointer(s->o, owner + s->at.at[KT_M_TASK_STACK],
                              &stack) && stack && !(stack & 0xfff);
}

/* ---- the stack ----------------------------------------------------------- */

static bool try_kinds(Search *s, const bool *possible, uint64_t va,
                      KtTaskWait *out)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (possible[i] && try_word(s, &kinds[i], va, out)) {
            return true;
        }
    }
    return false;
}

static bool search(Search *s, uint64_t sp, uint64_t end, KtTaskWait *out)
{
    uint64_t tag_bits = gs_kernel_tag_bits(s->o->kernel);
    g_autofree uint64_t *word = g_malloc(end - sp);
    bool possible[G_N_ELEMENTS(kinds)];

    if (!kt_objects_read(s->o, sp, word, end - sp)) {
        return false;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const Kind *k = &kinds[i];

        possible[i] = has(s, k->list) && has(s, k->task) && has(s, k->head) &&
                      (k->func == NONE || has(s, k->func)) && is_called(s, k);
    }
    for (uint64_t i = 0; i < (end - sp) / 8; i++) {
        if (gs_untag(tag_bits, GUINT64_FROM_LE(word[i])) == s->t->va &&
            try_kinds(s, possible, sp + 8 * i, out)) {
            return true;
        }
    }
    return false;
}

bool kt_task_wait(const KtObjects *o, const KtTask *t, uint64_t sp,
                  const uint64_t *frame, unsigned n, KtTaskWait *out)
{
    Search s = { .o = o, .t = t, .frame = frame, .n = n, .nodes = NODES_MAX };
    uint64_t state, stack, size = STACK_MIN;

    kt_layout_init(&s.at, o->kernel);
    if (!kt_task_fact(t, KT_TASK_STATE, &state) || !state ||
        !kt_task_fact(t, KT_TASK_STACK, &stack) || sp & 7 || sp < stack ||
        sp - stack >= STACK_MAX || !has(&s, KT_M_TASK_STACK)) {
        return false;
    }
    while (sp - stack >= size) {
        size *= 2;
    }
    return try_blocked_on(&s, out) || search(&s, sp, stack + size, out);
}
