/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a KtGuest learns of a kernel that has no types, from calls whose
 * arguments are known. capture/ reports the calls (KT_ROLE_WITNESS_*).
 *
 * If the kernel has types, nothing is learned: the functions below do nothing,
 * and no such call is hooked.
 *
 * Threads: any vCPU thread, several at once. The functions have a lock of their
 * own. An offset is UNKNOWN in KtGuestLayout until it is known, and is then
 * published by one store; the event path needs no further test.
 */
#ifndef KT_GUEST_LEARN_H
#define KT_GUEST_LEARN_H

#include "kalloc-tracer/kernel/witnesses.h"
#include "kalloc-tracer/kernel/guest.h"

/** struct KtLearner - the witnesses so far; private */
typedef struct KtLearner KtLearner;

/** kt_guest_learns() - return true if calls of that role can still teach
 *  something. Any thread, lock free. */
bool kt_guest_learns(const KtGuest *g, KtRole role);
/** kt_guest_witness_clock() - return KtCacheMade.since for a call that begins
 *  now. */
uint32_t kt_guest_witness_clock(KtGuest *g);
/** kt_guest_cache_made() - a function that makes a cache returns. */
void kt_guest_cache_made(KtGuest *g, const KtCacheMade *made);
/** kt_guest_object_made() - @object of @cache was allocated, and what
 *  kt_guest_cache() reads is not known. */
void kt_guest_object_made(KtGuest *g, uint64_t cache, uint64_t object);
/** kt_guest_kmalloc_made() - a kmalloc() of @size bytes returns, to which the
 *  caller passed @cache. What kt_guest_cache() reads is not known yet. */
void kt_guest_kmalloc_made(KtGuest *g, uint64_t cache, uint64_t size);
/** kt_guest_task_named() - __set_task_comm(@task, @name) returns. */
void kt_guest_task_named(KtGuest *g, uint64_t task, uint64_t name);
/** kt_guest_thread() - kernel_thread() is entered, with @name as its third
 *  argument. @sp: the stack pointer after its return */
void kt_guest_thread(KtGuest *g, uint64_t sp, uint64_t name);
/** kt_guest_task_switch() - __switch_to(@prev, ...) is entered. @base: value of
 *  GS_REG_BASE */
void kt_guest_task_switch(KtGuest *g, uint64_t base, uint64_t prev);
/** kt_guest_new_task() - wake_up_new_task(@task) is entered. @sp: the stack
 *  pointer after its return; @base: value of GS_REG_BASE */
void kt_guest_new_task(KtGuest *g, uint64_t sp, uint64_t task, uint64_t base);
/** kt_guest_slab_freed() - __slab_free() is entered, with the struct page @slab
 *  and @object. */
void kt_guest_slab_freed(KtGuest *g, uint64_t slab, uint64_t object);
/** kt_guest_cloned() - kernel_clone() returns @result. @sp: the stack pointer
 *  after its return */
void kt_guest_cloned(KtGuest *g, uint64_t sp, uint64_t result);

/** kt_guest_learned() - (owned, nullable) return one line on what was learned:
 *  members with their offsets, "unknown", or "contradicted". NULL: the kernel
 *  has types. Any thread. */
char *kt_guest_learned(KtGuest *g);
/** kt_guest_pack_learned() - write what was learned to a stream, after
 *  kt_guest_pack(). No effect if kt_guest_learned() is NULL. */
void kt_guest_pack_learned(KtGuest *g, GsOut *p);
/** kt_guest_unpack_learned() - read it into a new @g. If @g has types, skip
 *  it. */
void kt_guest_unpack_learned(KtGuest *g, GsBytes *u);

#endif /* KT_GUEST_LEARN_H */
