/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pool of fixed-size records: see pool.h.
 *
 * Used by the map (nodes) and the block table (records); their owner's lock,
 * which is the tracer's, covers it.
 */
#include "pool.h"

#include <sys/mman.h>

#define HUGE_PAGE (2u * 1024 * 1024)

static size_t chunk_bytes(const KtPool *p)
{
    return (size_t)p->size << p->shift;
}

/* Anonymous memory aligned to a huge page, NULL when there is none. */
static void *map_chunk(size_t len)
{
    size_t span = len + HUGE_PAGE;
    char *raw = mmap(NULL, span, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *at;

    if (raw == MAP_FAILED) {
        return NULL;
    }
    at = (char *)(((uintptr_t)raw + HUGE_PAGE - 1) & -(uintptr_t)HUGE_PAGE);
    if (at > raw) {
        munmap(raw, at - raw);
    }
    if (raw + span > at + len) {
        munmap(at + len, raw + span - (at + len));
    }
    if (len >= HUGE_PAGE) {
        madvise(at, len, MADV_HUGEPAGE);
    }
    return at;
}

void kt_pool_init(KtPool *p, uint32_t size, unsigned shift)
{
    *p = (KtPool) { .size = size, .shift = shift, .used = 1 };
}

void kt_pool_deinit(KtPool *p)
{
    for (uint32_t i = 0; i < p->n_chunks; i++) {
        munmap(p->chunk[i], chunk_bytes(p));
    }
    g_free(p->chunk);
    *p = (KtPool) { 0 };
}

static bool add_chunk(KtPool *p)
{
    void *at = map_chunk(chunk_bytes(p));

    if (!at) {
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
    return (uint64_t)p->n_chunks * chunk_bytes(p);
}
