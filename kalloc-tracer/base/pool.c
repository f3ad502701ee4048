/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pool: see pool.h.
 */
#include "kalloc-tracer/base/pool.h"

#include "kalloc-tracer/base/host-memory.h"

#include <sys/mman.h>

/* If the memory limit is less, chunks are small. */
#define SMALL_BOUND ((uint64_t)1 << 30)
#define SMALL_CHUNK (512u * 1024)

/* Map anonymous memory, aligned to a huge page if it is at least as large as
 * one. Return NULL if there is none. */
static void *map_chunk(size_t len)
{
    size_t span = len >= KT_HUGE_PAGE ? len + KT_HUGE_PAGE : len;
    char *raw = mmap(NULL, span, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *at;

    if (raw == MAP_FAILED) {
        return NULL;
    }
    if (len < KT_HUGE_PAGE) {
        madvise(raw, len, MADV_NOHUGEPAGE);
        return raw;
    }
    at = (char *)(((uintptr_t)raw + KT_HUGE_PAGE - 1) &
                  -(uintptr_t)KT_HUGE_PAGE);
    if (at > raw) {
        munmap(raw, at - raw);
    }
    if (raw + span > at + len) {
        munmap(at + len, raw + span - (at + len));
    }
    madvise(at, len, MADV_HUGEPAGE);
    return at;
}

void kt_pool_init(KtPool *p, uint32_t size, unsigned shift)
{
    *p = (KtPool) { .size = size, .shift = shift, .used = 1 };
}

void kt_pool_charge(KtPool *p, KtBudget *b, KtMemoryPart part)
{
    p->budget = b;
    p->part = part;
    if (!kt_budget_bounded(b) || kt_budget_max(b) >= SMALL_BOUND) {
        return;
    }
    while (kt_pool_chunk_bytes(p) > SMALL_CHUNK) {
        p->shift--;
    }
}

void kt_pool_deinit(KtPool *p)
{
    kt_budget_release(p->budget, p->part, kt_pool_bytes(p));
    for (uint32_t i = 0; i < p->n_chunks; i++) {
        munmap(p->chunk[i], kt_pool_chunk_bytes(p));
    }
    g_free(p->chunk);
    *p = (KtPool) { 0 };
}

static bool add_chunk(KtPool *p)
{
    void *at;

    if (p->always) {
        kt_budget_charge(p->budget, p->part, kt_pool_chunk_bytes(p));
    } else if (!kt_budget_take(p->budget, p->part, kt_pool_chunk_bytes(p))) {
        return false;
    }
    at = map_chunk(kt_pool_chunk_bytes(p));
    if (!at) {
        kt_budget_release(p->budget, p->part, kt_pool_chunk_bytes(p));
        return false;
    }
    if ((p->n_chunks & (p->n_chunks - 1)) == 0) {
        p->chunk = g_renew(char *, p->chunk,
                           p->n_chunks ? p->n_chunks * 2 : 1);
    }
    p->chunk[p->n_chunks++] = at;
    return true;
}

uint32_t kt_pool_alloc(KtPool *p)
{
    uint32_t index = p->free;

    if (index) {
        p->free = *(uint32_t *)kt_pool_at(p, index);
        p->n_free--;
        return index;
    }
    if (p->used > UINT32_MAX) {
        return 0;
    }
    if (p->used >> p->shift >= p->n_chunks && !add_chunk(p)) {
        return 0;
    }
    return p->used++;
}

bool kt_pool_reserve(KtPool *p, uint32_t n)
{
    while (p->n_free + ((uint64_t)p->n_chunks << p->shift) < p->used + n) {
        if (p->used + n > UINT32_MAX || !add_chunk(p)) {
            return false;
        }
    }
    return true;
}

void kt_pool_release(KtPool *p, uint32_t index)
{
    *(uint32_t *)kt_pool_at(p, index) = p->free;
    p->free = index;
    p->n_free++;
}

uint64_t kt_pool_bytes(const KtPool *p)
{
    return (uint64_t)p->n_chunks * kt_pool_chunk_bytes(p);
}
