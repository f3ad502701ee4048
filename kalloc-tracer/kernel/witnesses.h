/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtVotes: where in a struct is a member whose value is known?
 *
 * A witness is a struct in the guest, and a value that one of its members must
 * have. It votes for each offset that has the value. The offset of the member
 * gets a vote from every witness. Other offsets get some votes by chance, and
 * are removed by the first witness that does not vote for them:
 *
 *     witness            offsets with the value        candidates
 *     kmalloc-8,   8     8 24 28 40 64                 8 24 28 40 64
 *     kmalloc-16, 16     24 28 64                      24 28 64
 *     kmalloc-96, 96     24 28                         24 28
 *     names,    4095     28                            28
 *
 * A removed offset never comes back. If no offset is left, a witness
 * contradicted the others: the member stays unknown for good.
 *
 * Pure functions; the caller has the lock.
 */
#ifndef KT_WITNESSES_H
#define KT_WITNESSES_H

#include "kalloc-tracer/hooks/profile.h"
#include "kalloc-tracer/kernel/guest.h"
#include "guest-symbols/gs.h"
#include <stdbool.h>
#include <stdint.h>

/** KT_VOTES_MAX - candidates that are kept. The first witness that has more of
 *  them is ignored: most of its value's places are there by chance. */
#define KT_VOTES_MAX 256

/**
 * struct KtVotes - the candidates for the offset of one member
 * @at: the candidates, in ascending order
 * @n: their count
 * @seen: witnesses that voted
 * @contradicted: no candidate is left
 *
 * Zeros are an empty vote.
 */
typedef struct KtVotes {
    uint32_t at[KT_VOTES_MAX];
    unsigned n;
    unsigned seen;
    bool contradicted;
} KtVotes;

/** KtAgrees - return true if @witness has its value at offset @at. */
typedef bool (*KtAgrees)(const void *witness, uint32_t at);

/**
 * kt_votes_cast() - count the vote of one witness
 * @agrees: called for each candidate; for the first witness, for each multiple
 *          of @step below @end
 */
void kt_votes_cast(KtVotes *v, KtAgrees agrees, const void *witness,
                   uint32_t end, uint32_t step);
/** kt_votes_remove() - remove @at: another member was found there. */
void kt_votes_remove(KtVotes *v, uint32_t at);
/** kt_votes_only() - return the offset if exactly one is left after at least
 *  @least witnesses, else KT_NO_MEMBER. */
uint32_t kt_votes_only(const KtVotes *v, unsigned least);

/* ---- caches -------------------------------------------------------------- */
/*
 * KtCacheWitnesses: learns where struct kmem_cache has its name, object_size
 * and size, from calls whose arguments are known.
 *
 *     name, object_size   a function that makes a cache was called with both,
 *                         and has returned the cache
 *     name, object_size   kmalloc() allocated some bytes, and handed the cache
 *                         to the allocator. The kernel named it "kmalloc-N";
 *                         N is its object_size
 *     size                two live objects of one cache in one page lie a
 *                         multiple of it apart, and it is at least object_size
 *
 * A function that makes a cache can return an older one instead, whose name is
 * another (__kmem_cache_alias() in mm/slub.c). So a returned cache counts only
 * if its memory was allocated during the call.
 *
 * Guest memory is read through the view only, with fixed bounds. The caller has
 * the lock.
 */

#define KT_CACHE_BYTES      512     /* the members lie in the first ones */
#define KT_FRESH_OBJECTS    64
#define KT_PAIRED_CACHES    32

/**
 * struct KtCacheWitnesses
 * @tag_bits: of pointers, see gs_untag()
 * @name, @object_size, @size: votes
 * @made: how many of these were of a function that makes caches
 * @pairs: pairs of objects that voted for @size
 * @fresh: the last objects that were allocated; @clock counts all of them
 * @last: a live object of some caches, by a hash of the cache's address
 * @last_kmalloc: the last cache of kmalloc(); the next one must be another
 * @learned: the three offsets are final, except @object_size, of which some
 *           can be left that always had the same value
 */
typedef struct KtCacheWitnesses {
    KtView view;
    uint64_t tag_bits;
    unsigned page_shift;
    KtVotes name, object_size, size;
    unsigned made, pairs;
    uint32_t clock;
    uint64_t fresh[KT_FRESH_OBJECTS];
    struct {
        uint64_t cache, object;
    } last[KT_PAIRED_CACHES];
    uint64_t last_kmalloc;
    bool learned;
} KtCacheWitnesses;

/**
 * struct KtCacheMade - a call that made a cache, at its return
 * @cache: the kmem_cache
 * @name: address of the name in the arguments
 * @size: the object size in the arguments
 * @since: KtCacheWitnesses.clock at the call's entry
 * @in_place: the caller had the memory of @cache, so that it is a new one
 */
typedef struct KtCacheMade {
    uint64_t cache, name;
    uint32_t size;
    uint32_t since;
    bool in_place;
} KtCacheMade;

/** kt_cache_witnesses_made() - a function that makes a cache returns. */
void kt_cache_witnesses_made(KtCacheWitnesses *w, const KtCacheMade *made);
/** kt_cache_witnesses_kmalloc() - a kmalloc() of @size bytes returns, whose
 *  caller chose @cache. A cache of another name is no witness. */
void kt_cache_witnesses_kmalloc(KtCacheWitnesses *w, uint64_t cache,
                                uint32_t size);
/** kt_cache_witnesses_object() - @object of @cache was allocated. */
void kt_cache_witnesses_object(KtCacheWitnesses *w, uint64_t cache,
                               uint64_t object);
/** kt_cache_witnesses_freed() - @object is about to be freed. */
void kt_cache_witnesses_freed(KtCacheWitnesses *w, uint64_t object);

/* ---- pages --------------------------------------------------------------- */
/*
 * KtPageWitnesses: learns how the cache of an object is found from its page, in
 * a kernel that has no types:
 *
 *     object -> its struct page -> the slab's first struct page -> kmem_cache
 *              (direct map)      (compound_head)             (slab_cache)
 *
 * A witness is an object that was just allocated from a known cache. It votes
 * for each layout that leads from the object to that cache: places of the
 * direct map, sizes of struct page, offsets of both members.
 *
 * Guest memory is read through the view only. The caller has the lock.
 */

/**
 * struct KtPageLayout - how the cache of an object is found
 * @map: the direct map
 * @tag_bits: of pointers, see gs_untag()
 * @page_shift: log2 of the bytes of a page
 * @struct_page: sizeof(struct page)
 * @page_head, @slab_cache: offsets of the members
 */
typedef struct KtPageLayout {
    GsDirectMap map;
    uint64_t tag_bits;
    unsigned page_shift;
    uint32_t struct_page;
    uint32_t page_head, slab_cache;
} KtPageLayout;

/** kt_page_layout_cache() - follow a layout from an object to its cache.
 *  @is_tail: (out, nullable) the object is not in the slab's first page.
 *  Returns: 0 if a step is not readable. */
GS_HOT uint64_t kt_page_layout_cache(const KtPageLayout *at, KtView view,
                                     uint64_t object, bool *is_tail);

/**
 * struct KtPageWitnesses
 * @at: where the kernel's variables on the direct map are
 * @votes: for layouts, by number
 * @tails: witnesses that are not in their slab's first page
 * @last_page: number of the last witness's page
 * @learned, @layout: the votes have decided
 * @heads: not yet, but all layouts that are left agree with @layout but for
 *         page_head. Bit n: it may be word n; 0: they differ
 */
typedef struct KtPageWitnesses {
    KtView view;
    GsDirectMapAt at;
    KtVotes votes;
    unsigned tails;
    uint64_t last_page;
    bool learned;
    uint8_t heads;
    KtPageLayout layout;
} KtPageWitnesses;

/** KT_PAGE_LAYOUTS - more layouts than any kernel has: the numbers in @votes
 *  are below it */
#define KT_PAGE_LAYOUTS (GS_DIRECT_MAP_MAX * 10 * KT_PAGE_SIZES * 64)

/** kt_page_witnesses_resume() - continue with @votes and @heads of a
 *  snapshot. */
void kt_page_witnesses_resume(KtPageWitnesses *w);
/** kt_page_witnesses_object() - @object of @cache was allocated. */
void kt_page_witnesses_object(KtPageWitnesses *w, uint64_t cache,
                              uint64_t object);

/* ---- slabs --------------------------------------------------------------- */
/*
 * KtSlabWitnesses: learns where the struct pages are, in an x86-64 kernel whose
 * bases are random (RANDOMIZE_MEMORY) and have no symbol.
 *
 * A witness is a call of __slab_free(cache, slab, object). It has an object and
 * the struct page of the first page of its slab:
 *
 *     slab = base + n * sizeof(struct page)
 *     n    = the first page's address >> page_shift
 *
 * @base is where the struct page of address 0 would be: the direct map and the
 * memory map are random, but their difference is all that is needed. The slab
 * begins at the object's page, rounded down to as many pages as the slab has.
 *
 * Neither that number nor the size of struct page is known. So a witness votes
 * for the base that each combination gives, and only the right one gets the
 * vote of every witness:
 *
 *     size of struct page     pages of the slab     base
 *     56                      1                     ffffd1ec1f0a3e40
 *     64                      1                     ffffcf3c00000000  <- right
 *     64                      2                     ffffcf3c00000040
 *
 * Pure functions; the caller has the lock.
 */

/** kt_page_sizes - the sizes that struct page can have */
#define KT_PAGE_SIZES   6
extern const uint32_t kt_page_sizes[KT_PAGE_SIZES];

/** KT_SLAB_ORDERS - a slab has at most 2^(KT_SLAB_ORDERS - 1) pages */
#define KT_SLAB_ORDERS  6
#define KT_SLAB_BASES   (KT_PAGE_SIZES * KT_SLAB_ORDERS)

/** struct KtSlabBase - a possible place of the struct pages */
typedef struct KtSlabBase {
    uint32_t struct_page;
    uint64_t base;
} KtSlabBase;

/**
 * struct KtSlabWitnesses - the votes
 * @page_shift: log2 of the bytes of a page
 * @at: the @n candidates
 * @seen: witnesses that voted
 * @last: page of the last one; the next one must be in another page
 * @contradicted: no candidate is left
 */
typedef struct KtSlabWitnesses {
    unsigned page_shift;
    KtSlabBase at[KT_SLAB_BASES];
    unsigned n, seen;
    uint64_t last;
    bool contradicted;
} KtSlabWitnesses;

/** kt_slab_witnesses_freed() - __slab_free(..., @slab, @object) is entered. */
void kt_slab_witnesses_freed(KtSlabWitnesses *w, uint64_t slab,
                             uint64_t object);
/** kt_slab_witnesses_learned() - (borrowed, nullable) return the place, if it
 *  is known. */
const KtSlabBase *kt_slab_witnesses_learned(const KtSlabWitnesses *w);

/* ---- tasks --------------------------------------------------------------- */
/*
 * KtTaskWitnesses: learns where the current task is, and where struct
 * task_struct has pid and comm. The members can be anywhere (RANDSTRUCT).
 *
 *     current task   __switch_to(prev, next): prev is the current task. It is
 *                    a per-CPU variable on x86-64; arm64 and riscv64 have it in
 *                    a register
 *     comm           __set_task_comm(task, name): task has the name afterwards;
 *                    kernel_thread(fn, arg, name, flags), since 6.4: the task
 *                    that it wakes has the name
 *     pid            kernel_clone() calls wake_up_new_task(task), and returns
 *                    the task's pid
 *
 * Guest memory is read through the view only, with fixed bounds. The caller has
 * the lock.
 */

#define KT_TASK_BYTES   16384   /* of a task_struct that are searched */
#define KT_PERCPU_BYTES (1u << 20)
#define KT_NEW_TASKS    4
#define KT_NEW_NAMES    8

/**
 * struct KtNewTask - a task that is about to run for the first time
 * @sp: the stack pointer of wake_up_new_task() after its return
 * @bytes: the task_struct, as it was then
 */
typedef struct KtNewTask {
    uint64_t sp;
    uint8_t bytes[KT_TASK_BYTES];
} KtNewTask;

/** struct KtNewName - a call of kernel_thread() that has not made its task yet;
 *  @sp: the stack pointer after its return, 0: none */
typedef struct KtNewName {
    uint64_t sp;
    char name[16];
} KtNewName;

/**
 * struct KtTaskWitnesses
 * @percpu_start: link address of the per-CPU variables
 * @current, @comm, @pid: votes; offsets of @current are from the start of the
 *                    per-CPU variables
 * @switches, @names, @pids: witnesses that differ from the one before
 * @last_task, @last_name, @last_pid: the one before
 * @new_task: the last new tasks, @n_new counts all
 * @new_name: the last named threads, @n_names counts all
 * @from_start: the task with pid 1 was seen, so no thread is older
 * @pid_open: @pid has two offsets, pid and tgid, which only threads tell apart
 * @learned_current, @learned_comm, @learned_pid: KT_NO_MEMBER until they are
 *                    known
 */
typedef struct KtTaskWitnesses {
    KtView view;
    uint64_t percpu_start;
    KtVotes current, comm, pid;
    unsigned switches, names, pids;
    uint64_t last_task;
    char last_name[16];
    uint32_t last_pid;
    KtNewTask new_task[KT_NEW_TASKS];
    unsigned n_new;
    KtNewName new_name[KT_NEW_NAMES];
    unsigned n_names;
    bool from_start, pid_open;
    uint32_t learned_current, learned_comm, learned_pid;
} KtTaskWitnesses;

/** kt_task_witnesses_init() - @percpu_start: link address of the per-CPU
 *  variables; 0 on x86-64 before 6.15, where it is the offset 0 */
void kt_task_witnesses_init(KtTaskWitnesses *w, KtView view,
                            uint64_t percpu_start);
/** kt_task_witnesses_switch() - __switch_to() is entered. @base: the per-CPU
 *  base; @prev: its first argument */
void kt_task_witnesses_switch(KtTaskWitnesses *w, uint64_t base,
                              uint64_t prev);
/** kt_task_witnesses_named() - __set_task_comm() returns. @name: address of its
 *  second argument */
void kt_task_witnesses_named(KtTaskWitnesses *w, uint64_t task, uint64_t name);
/** kt_task_witnesses_thread() - kernel_thread() is entered. @sp: the stack
 *  pointer after its return; @name: its third argument */
void kt_task_witnesses_thread(KtTaskWitnesses *w, uint64_t sp, uint64_t name);
/** kt_task_witnesses_want_pid() - return true if calls of kernel_clone() can
 *  still say where pid is. */
static inline bool kt_task_witnesses_want_pid(const KtTaskWitnesses *w)
{
    return w->learned_pid == KT_NO_MEMBER || w->pid_open;
}
/** kt_task_witnesses_want_new() - return true if new tasks can still say where
 *  a member is. */
static inline bool kt_task_witnesses_want_new(const KtTaskWitnesses *w)
{
    return w->learned_comm == KT_NO_MEMBER || kt_task_witnesses_want_pid(w);
}
/** kt_task_witnesses_new_task() - wake_up_new_task() is entered. @sp: the stack
 *  pointer after its return; @current: the task that calls it, 0: unknown */
void kt_task_witnesses_new_task(KtTaskWitnesses *w, uint64_t sp, uint64_t task,
                                uint64_t current);
/** kt_task_witnesses_cloned() - kernel_clone() returns. @sp: the stack pointer
 *  after its return; @result: the new task's pid, or an error */
void kt_task_witnesses_cloned(KtTaskWitnesses *w, uint64_t sp, int64_t result);

/** kt_task_witnesses_resume_pid() - use the candidates in @pid, which were
 *  enough before. */
void kt_task_witnesses_resume_pid(KtTaskWitnesses *w);

#endif /* KT_WITNESSES_H */
