/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One stack walk and how it reads guest memory, for the files of unwind/ only.
 *
 * A Walk is a value on the stack of the walking thread. It holds the registers
 * of the current frame and the host's view of one guest page: read_word()
 * reads from that page and calls gs_walk_turn_page() if the word is on another
 * one.
 */
#ifndef GS_WALK_H
#define GS_WALK_H

#include "guest-symbols/gs.h"

#define PAGE_MASK (~0xfffull)
/* More than any kernel stack has (KASAN doubles them to 32 KiB). */
#define MAX_STACK 65536

/* Offsets in struct pt_regs of x86-64. The iret frame is its tail, from PT_IP
 * on. */
enum {
    PT_BP = 32,
    PT_IP = 128,
    PT_CS = 136,
    PT_SP = 152,
};

/*
 * One walk.
 * @ip, @sp, @bp: registers of the current frame
 * @exact: @ip is an interrupted instruction (1) or a return address (0)
 * @regs: guest address of the pt_regs that the current frame was interrupted
 *        with; 0 after a call frame
 * @prev: full registers right below a partial set
 * @full: all of @regs is there, not just the iret frame
 * @switches: how often the walk moved to another stack
 * @low: as in struct GsKernel
 * @page_va, @page_host: the page that is read, in the guest and in the host
 * @page, @opaque: the embedder's GsPageFn
 * @trail: what this walk reads, for the walk cache
 */
typedef struct Walk {
    uint64_t ip;
    uint64_t sp;
    uint64_t bp;
    uint64_t exact;
    uint64_t regs;
    uint64_t prev;
    bool full;
    unsigned switches;
    uint64_t low;
    uint64_t page_va;
    const uint8_t *page_host;
    GsPageFn page;
    void *opaque;
    struct GsTrail *trail;
} Walk;

/** gs_walk_in_kernel() - is @va in the kernel's part of the address space? */
static inline bool gs_walk_in_kernel(const Walk *w, uint64_t va)
{
    return (int64_t)va < 0 || (w->low && va >= w->low);
}

/** gs_walk_turn_page() - make the page of @va the one that is read; false if
 *  it is not the kernel's, or not RAM. */
GS_HOT bool gs_walk_turn_page(Walk *w, uint64_t va);

/* Reads the word at @va, which must be aligned. The guest may write at the
 * same time, so a word is read once, with one access. */
static inline bool read_word(Walk *w, uint64_t va, uint64_t *out)
{
    uint64_t off = va - w->page_va;

    if (G_UNLIKELY(off >= 4096)) {
        if (!gs_walk_turn_page(w, va)) {
            return false;
        }
        off = va - w->page_va;
    }
    if (G_UNLIKELY(va & 7)) {
        return false;
    }
    *out = GUINT64_FROM_LE(*(const volatile uint64_t *)(w->page_host + off));
    return true;
}

#endif /* GS_WALK_H */
