/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event: what an allocator of the guest did, in 64 bytes.
 *
 * vCPU threads make events, the queue puts them into one order, and the
 * consumer applies them to the model and writes them to the journal. Plain
 * data: any thread.
 */
#ifndef KT_API_EVENT_H
#define KT_API_EVENT_H

#include "kalloc-tracer/api/kt-types.h"

/** What kmalloc() returns for 0 bytes; kfree() takes it for NULL. */
#define KT_ZERO_SIZE_PTR 16ull
/** The lowest error pointer of Linux, ERR_PTR(-4095). */
#define KT_ERROR_POINTER ((uint64_t)-4095)

/** kt_is_memory() - return true if an allocator can have returned @va: it is
 *  neither NULL nor ZERO_SIZE_PTR nor an error pointer. */
static inline bool kt_is_memory(uint64_t va)
{
    return va > KT_ZERO_SIZE_PTR && va < KT_ERROR_POINTER;
}

/** What happened. */
typedef enum KtEventKind {
    KT_EV_NONE,
    KT_EV_ALLOC,        /* memory was handed out: va, size, actual, cache */
    KT_EV_FREE,         /* memory at va is about to be released */
    KT_EV_RESIZE,       /* krealloc in place: same va, new size */
    KT_EV_RCU_QUEUE,    /* kfree_rcu: va will be freed after a grace period */
    KT_EV_GAP,          /* events before this one were not recorded */
    KT_EV_DESTROY,      /* the kmem_cache at va was destroyed with objects
                         * left */
    KT_EV_ACCESS,       /* an access that may be wrong: va, size, actual, see
                         * struct KtEvent */
    KT_EV__COUNT
} KtEventKind;

/** The kind of free function: it decides what the function may free. */
typedef enum KtFamily {
    KT_FAMILY_ANY,      /* as kvfree(): may free any layer */
    KT_FAMILY_KFREE,    /* kfree: kmalloc, large, and cache objects */
    KT_FAMILY_CACHE,    /* kmem_cache_free: cache objects of event.cache */
    KT_FAMILY_VFREE,
    KT_FAMILY_PERCPU,
    KT_FAMILY_PAGES,
    /* Only kernels other than Linux, described by a profile: */
    KT_FAMILY_KMALLOC,  /* kmalloc, large */
    KT_FAMILY_ZONE,     /* cache objects of event.cache */
    KT_FAMILY__COUNT
} KtFamily;

/** What an event says besides its kind; bits of KtEvent.flags. A bit can mean
 *  one thing in an ALLOC and another in a FREE. */
typedef enum KtEventFlag {
    /** ALLOC: ignore the event if va lies in a live block. A bulk call also
     *  reports pages that its caller had before. */
    KT_EVF_IF_NEW = 1 << 0,
    /** ALLOC: the memory is taken from the live block that has it, which is
     *  no error. Inside the page allocator pages change hands so. */
    KT_EVF_TAKE = 1 << 1,
    /** FREE of pages: the allocator may see this memory for the first time
     *  (boot, hotplug), so the free is never an error. */
    KT_EVF_FRESH = 1 << 2,
    /** FREE of pages: no page that begins at va has a reference. The kernel
     *  frees nothing, so the call is wrong, whatever else is known. */
    KT_EVF_UNREFERENCED = 1 << 1,
    /** FREE by vfree(): the call may only queue the area. A worker then calls
     *  vfree() once more for it, which is no second free. */
    KT_EVF_QUEUES = 1 << 0,
    /** FREE by vfree(): that worker is the caller. */
    KT_EVF_WORKER = 1 << 1,
    /** FREE by vfree(): that worker may be the caller; nothing says so. */
    KT_EVF_MAYBE_WORKER = 1 << 2,
    /** FREE by kmem_cache_free(): the kernel keeps an object that is freed to
     *  a kmem_cache from which it was not allocated. */
    KT_EVF_STRICT = 1 << 0,
    /** FREE of pages, or FREE or RCU_QUEUE by vfree_atomic(): the same call may
     *  have freed this memory already. */
    KT_EVF_AGAIN = 1 << 3,
    /** FREE of pages: the caller passed the order of one block of pages, so
     *  size must be the size of that block. */
    KT_EVF_ORDER = 1 << 4,
    /** With KT_EVF_ORDER: the page behind the freed ones is no block of its
     *  own: nobody split the block, if it is larger. */
    KT_EVF_UNSPLIT = 1 << 5,
    /** With KT_EVF_ORDER: the pages are a compound page of another order. */
    KT_EVF_OTHER_ORDER = 1 << 0,
    /** FREE by kfree(): cache was read from the slab at va just now; it is 0
     *  if the page there is no slab of a known cache. */
    KT_EVF_SLAB_READ = 1 << 4,
    /** FREE by vunmap(): what is unmapped is wrong if it is a block. */
    KT_EVF_UNMAP = 1 << 4,
    /** With KT_EVF_UNMAP: vmap() made blocks, so it may be one of these. */
    KT_EVF_OWNED = 1 << 5,
    /** FREE: the caller passed size, which should be the requested size. */
    KT_EVF_SIZED = 1 << 5,
    /** GAP: one of the dropped calls hands out memory, which will not be in
     *  the map. */
    KT_EVF_UNSEEN = 1 << 6,
    /** GAP: this gap ends with the boot. Functions that are not hooked may
     *  allocate and free at any time. */
    KT_EVF_BLIND = 1 << 7,
    /** FREE, ACCESS: not all functions that allocate such memory are hooked, so
     *  a free or an access of unknown or freed memory may be right. ALLOC: not
     *  all functions that free it are, so live memory may have been freed. */
    KT_EVF_UNSURE = 1 << 6,
    /** FREE: va is any address in the block. The free is never an error, except
     *  with KT_EVF_UNMAP. It frees a live slab object or pages of kmalloc(),
     *  or, by vunmap(), an area of vmalloc(). */
    KT_EVF_INSIDE = 1 << 7,
    /** FREE of pages: the guest loses this memory, by hot-unplug, a balloon or
     *  an offlined page. The blocks in it end, which is no error. A later FREE
     *  of the memory says that the guest has it again. */
    KT_EVF_REMOVED = 1 << 7,
    /** ACCESS: the memory is written, not read. */
    KT_EVF_WRITE = 1 << 0,
    /** ACCESS: by a function such as memset(), which is checked at its entry
     *  for all the bytes that it was asked to read or write. */
    KT_EVF_RANGE = 1 << 1,
    /** ACCESS: the bad byte is in a slot of a slab that was never handed
     *  out. */
    KT_EVF_FREE_SLOT = 1 << 2,
} KtEventFlag;

/**
 * struct KtEvent - what an allocator did, 64 bytes
 * @seq: place in the global order; kt_tracer_push() assigns it
 * @va: start of the block, or the pointer that is freed; ACCESS: the first
 *      byte that is accessed
 * @size: requested bytes (ALLOC, RESIZE); freed bytes (FREE of pages, 0: up to
 *        the end of the block); the size passed by the caller (KT_EVF_SIZED);
 *        the bytes that are accessed (ACCESS)
 * @actual: ALLOC: bytes that the allocator reserved; 0: unknown, @size counts;
 *          ACCESS: distance from @va to the first bad byte
 * @us: guest time, microseconds since the VM's clock started (48 bits)
 * @cpu: vCPU
 * @stack: backtrace; the first frame is the caller of the hooked function,
 *         ACCESS: the instruction
 * @task: 0: unknown
 * @gfp: guest gfp flags, as the caller passed them; ACCESS: microseconds, up
 *       to @us, in which the access was made
 * @cache: kmem_cache; ACCESS: the one that the page belongs to now; 0: unknown
 * @kind, @flags: KtEventKind, KtEventFlag bits
 * @hook: the hooked function
 * @layer: ALLOC: KtLayer
 * @family: FREE: KtFamily
 * @tag: ALLOC, FREE, RCU_QUEUE: tag of the pointer, as gs_tag_of() returns it;
 *       0: it has none, or the tag is unknown
 */
typedef struct KtEvent {
    uint64_t seq;
    uint64_t va;
    uint64_t size;
    uint64_t actual;
    uint64_t us:48;
    uint64_t cpu:16;
    KtStackId stack;
    KtTaskId task;
    uint32_t gfp;
    KtCacheId cache;
    uint8_t kind;
    KtHookId hook;
    uint8_t layer;
    uint8_t family;
    uint8_t flags;
    uint8_t tag;
    uint8_t pad[4];
} KtEvent;
G_STATIC_ASSERT(sizeof(KtEvent) == 64);

/** kt_event_removes() - return true if the event says that memory was
 *  removed. */
static inline bool kt_event_removes(const KtEvent *ev)
{
    return ev->kind == KT_EV_FREE && ev->family == KT_FAMILY_PAGES &&
           (ev->flags & KT_EVF_REMOVED);
}

#endif /* KT_API_EVENT_H */
