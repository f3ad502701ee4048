/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies guest memory when it is needed. A kernel's image has 50 MiB; its
 * tables, which are read while it is opened, are half of that. Copying all of
 * it would take as long as reading the tables. One thread; called by image.c
 * and kernel-memory.c.
 *
 * A chunk is copied once: the guest may change its memory at any time, but a
 * reader must not see a value change between check and use.
 */
#include "guest-symbols/image/guest-copy.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES      4096u
#define CHUNK_BYTES     (2ull << 20)    /* a huge page, where there are some */
#define WINDOW_BYTES    (64u << 10)

struct GsGuestCopy {
    const GsMem *mem;
    uint64_t start, end;
    uint8_t *data;
    bool *copied;           /* per chunk */
    uint64_t room;          /* bytes that may yet be copied */
    bool full;
    void *map;
    size_t map_len;
};

GsGuestCopy *gs_guest_copy_new(const GsMem *mem, uint64_t start, uint64_t end)
{
    size_t len = end - start, map_len = len + CHUNK_BYTES;
    void *map = mmap(NULL, map_len, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    GsGuestCopy *c;

    if (map == MAP_FAILED) {
        return NULL;
    }
    c = g_new0(GsGuestCopy, 1);
    c->mem = mem;
    c->start = start;
    c->end = end;
    c->map = map;
    c->map_len = map_len;
    c->data = (uint8_t *)(((uintptr_t)map + CHUNK_BYTES - 1) & -CHUNK_BYTES);
    c->copied = g_new0(bool, len / CHUNK_BYTES + 1);
    c->room = mem->room ? mem->room : UINT64_MAX;
    /* small pages would take as long to fault in as all the rest */
    madvise(c->data, len, MADV_HUGEPAGE);
    return c;
}

void gs_guest_copy_free(GsGuestCopy *c)
{
    if (c) {
        munmap(c->map, c->map_len);
        g_free(c->copied);
        g_free(c);
    }
}

uint64_t gs_guest_copy_start(const GsGuestCopy *c, size_t *len)
{
    *len = c->end - c->start;
    return c->start;
}

const uint8_t *gs_guest_copy_data(const GsGuestCopy *c)
{
    return c->data;
}

bool gs_guest_copy_full(const GsGuestCopy *c)
{
    return c->full;
}

/* Unreadable memory becomes zeros: the kernel has freed it. */
static void read_pages(const GsGuestCopy *c, uint64_t off, uint8_t *to,
                       size_t len)
{
    for (size_t done = 0; done < len; done += PAGE_BYTES) {
        size_t n = MIN(PAGE_BYTES, len - done);

        if (!c->mem->read(c->mem->opaque, c->start + off + done, to + done,
                          n)) {
            memset(to + done, 0, n);
        }
    }
}

static void copy_chunk(GsGuestCopy *c, uint64_t i)
{
    uint64_t at = i * CHUNK_BYTES;
    size_t len = MIN(CHUNK_BYTES, c->end - c->start - at);

    if (c->room < len) {
        c->full = true;
        return;
    }
    c->room -= len;
    c->copied[i] = true;
    read_pages(c, at, c->data + at, len);
}

void gs_guest_copy_need(GsGuestCopy *c, uint64_t va, size_t len)
{
    uint64_t size = c ? c->end - c->start : 0, off, last;

    if (!size || !len || va < c->start || va - c->start >= size) {
        return;
    }
    off = va - c->start;
    last = off + MIN(len, size - off) - 1;
    for (uint64_t i = off / CHUNK_BYTES; i <= last / CHUNK_BYTES; i++) {
        if (!c->copied[i]) {
            copy_chunk(c, i);
        }
    }
}

/* Windows overlap by what a hit across their border would take. */
bool gs_guest_copy_find(const GsGuestCopy *c, const void *what, size_t len,
                        uint64_t *va)
{
    g_autofree uint8_t *window = NULL;
    uint64_t size = c ? c->end - c->start : 0, off;
    size_t kept = 0;

    if (!size || *va < c->start || !len || len > GS_FIND_MAX) {
        return false;
    }
    window = g_malloc(GS_FIND_MAX + WINDOW_BYTES);
    off = *va - c->start;
    while (off < size) {
        size_t n = MIN(WINDOW_BYTES - off % PAGE_BYTES, size - off);
        const uint8_t *hit;

        read_pages(c, off, window + kept, n);
        hit = memmem(window, kept + n, what, len);
        if (hit) {
            *va = c->start + off - kept + (hit - window);
            return true;
        }
        off += n;
        n += kept;
        kept = MIN(len - 1, n);
        memmove(window, window + n - kept, kept);
    }
    return false;
}
