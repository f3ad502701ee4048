/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slots that nobody owns, in the shadow of access checks.
 *
 * An allocation of a slot that the shadow does not know yet is mostly the first
 * one of a new slab. Then the lists of the allocator say which of the slab's
 * other slots are free, and these are marked. Later allocations from this slab
 * find their slots marked, so the lists are walked about once a slab.
 *
 *     kmalloc() returns slot 3                  shadow of the slab
 *       slot 3 is unknown: walk the lists       ? ? ? ? ? ?
 *       free are 0 1 2 5, and 4 is not          F F F L ? F
 *
 * Slot 4 was handed out by a call that was not recorded, or is about to be.
 *
 * On the vCPU that allocates. Another vCPU may be handed out a slot meanwhile:
 * its code in the shadow is written over the mark, or stays.
 */
#include "kalloc-tracer/capture/watch-internal.h"

#include "kalloc-tracer/objects/slab-slots.h"
#include "kalloc-tracer/tracer/tracer.h"

/**
 * struct KtSlotReader - what reads slabs, as the vCPU sees memory that asks
 */
struct KtSlotReader {
    KtVm vm;
    KtSlabs *slabs;
};

static bool read_ram(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                     size_t len)
{
    return kt_guest_read(opaque, va, buf, len);
}

static bool read_no_register(void *opaque, unsigned vcpu, unsigned i,
                             KtRegister *out)
{
    return false;
}

/* (owned) */
static KtSlotReader *new_reader(const KtShared *c, KtGuest *g)
{
    KtSlotReader *r = g_new0(KtSlotReader, 1);

    r->vm = (KtVm) {
        .n_vcpus = 1, .running = true, .read = read_ram,
        .reg = read_no_register, .opaque = g,
    };
    kt_guest_direct_map(g, &r->vm.vmemmap, &r->vm.page_offset);
    r->slabs = kt_slabs_new(&(KtObjects) { c->tracer, c->kernel, &r->vm },
                            NULL);
    return r;
}

void kt_slot_reader_free(KtSlotReader *r)
{
    if (r) {
        kt_slabs_free(r->slabs);
        g_free(r);
    }
}

/* Return (borrowed) the reader, made on the first call. Two vCPUs may make one
 * at once; one is published. */
static const KtSlotReader *reader_of(KtAccessWatch *w, const KtShared *c,
                                     KtGuest *g)
{
    KtSlotReader *r = __atomic_load_n(&w->slots, __ATOMIC_ACQUIRE);
    KtSlotReader *mine;

    if (r) {
        return r;
    }
    mine = new_reader(c, g);
    if (__atomic_compare_exchange_n(&w->slots, &r, mine, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return mine;
    }
    kt_slot_reader_free(mine);
    return r;
}

KtSlabs *kt_access_watch_slabs(KtAccessWatch *w, const KtShared *c, KtGuest *g)
{
    return reader_of(w, c, g)->slabs;
}

/* @refused: slots for which there was no memory */
typedef struct Mark {
    KtShadow *shadow;
    unsigned refused;
} Mark;

/* Bytes behind the object can be the allocator's own. */
static void mark(void *opaque, const KtSlabCache *cache, uint64_t va)
{
    Mark *to = opaque;

    to->refused += !kt_shadow_fresh(to->shadow, va, cache->object_size);
}

/* All pages of the slab are its cache's, so marks of earlier owners go. Call it
 * before the lists are read: a slot that another vCPU is handed out meanwhile
 * can lose its mark, but is not taken for a free one then. */
static void own_slab(KtShadow *shadow, const KtSlabs *s, uint64_t va,
                     uint32_t owner)
{
    KtSlabCache cache;
    KtSlab slab;

    if (kt_slabs_slab_of(s, va, &slab) && slab.is_slab &&
        kt_slabs_cache(s, slab.cache, &cache)) {
        kt_shadow_set_owner(shadow, slab.base, kt_slab_len(s, &cache, &slab),
                            owner);
    }
}

void kt_access_watch_slots(KtAccessWatch *w, KtHookCall *m, uint64_t va,
                           KtCacheId cache)
{
    const KtSlotReader *r = reader_of(w, m->c, m->boot->guest);
    Mark to = { .shadow = w->shadow };

    if (r->slabs) {
        own_slab(w->shadow, r->slabs, va, cache.v);
    }
    if (!r->slabs || !kt_slabs_free_slots(r->slabs, va, mark, &to)) {
        kt_vcpu_count(m->v, KT_CNT_ACCESS_NO_LIST, 1);
    }
    if (to.refused) {
        kt_vcpu_count(m->v, KT_CNT_ACCESS_NO_MEMORY, to.refused);
    }
}
