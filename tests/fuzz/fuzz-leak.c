/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: leak scans and reference searches in untrusted guest memory.
 *
 * Byte 0 has switches. Then each four bytes change a small guest
 * (lib/guest-memory.h): a page and a word in it, or an entry of its table of
 * variables, and the new value: an address in one of its parts, a small number,
 * or the old value with one byte xored.
 *
 * Checks: the scan and the search end, and agree: in the memory that a scan
 * uses as roots nothing refers to a block that it reported. Only other blocks
 * may.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/guest-memory.h"

/* More page frames take long: see test-leak-scan.c. */
#define PFN_MAX     0xffff
#define LOW         (1ull << 31)
#define REFS_MAX    1

static const uint64_t parts[8] = {
    LG_DIRECT, LG_DIRECT + LG_AT_SLAB, LG_IMAGE, LG_VMEMMAP, LG_VMALLOC,
    LG_DIRECT + LG_AT_PERCPU, 0,
};

static void bend(LeakGuest *g, const uint8_t *d)
{
    uint8_t *at = g->ram + (d[0] % LG_PAGES * 4096u + d[1] * 16u +
                            (d[2] & 8));
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    switch (d[2] & 7) {
    case 7:
        word ^= (uint64_t)d[3] << (d[2] >> 4) * 4;
        break;
    default:
        word = parts[d[2] & 7] + ((uint64_t)d[3] << (d[2] >> 4));
    }
    memcpy(at, &word, sizeof(word));
}

static void bound(LeakGuest *g, uint64_t variable)
{
    uint64_t v;

    memcpy(&v, lg_at(g, variable, sizeof(v)), sizeof(v));
    lg_put(g, variable, v & PFN_MAX);
}

static bool goes_on(void *opaque, uint64_t bytes)
{
    return true;
}

static void check_refs(LeakGuest *g, const KtLeakPlan *plan,
                       const KtBlock *block)
{
    g_autoptr(GArray) refs = NULL;
    uint64_t more, bytes;

    if (!kt_refs(g->t, plan, block->va, block->va + kt_block_len(block) - 1,
                 &refs, &more, &bytes, NULL)) {
        abort();
    }
    /* A scan counts a small number only if it is the start of a block. */
    for (unsigned i = 0; i < refs->len && block->va >= LOW; i++) {
        KtPlace place = g_array_index(refs, KtRef, i).place;

        if (place != KT_PLACE_BLOCK && place != KT_PLACE_FREELIST) {
            abort();
        }
    }
}

static void search(LeakGuest *g, bool no_stacks)
{
    const KtLeakPlan plan = {
        .vm = &g->vm, .kernel = &g->k, .no_stacks = no_stacks,
        .progress = goes_on,
    };
    g_auto(KtLeakReport) r = { 0 };
    g_autoptr(GError) err = NULL;

    if (!kt_leak_scan(g->t, &plan, &r, &err)) {
        if (!err) {
            abort();
        }
        return;
    }
    for (unsigned i = 0; i < r.leaks->len; i++) {
        const KtBlock *b = &g_array_index(r.leaks, KtLeak, i).block;

        if (b->state != KT_BLOCK_ALLOCATED) {
            abort();
        }
        if (!no_stacks && i < REFS_MAX) {
            check_refs(g, &plan, b);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static LeakGuest *g;

    if (!g) {
        g = leak_guest_new();
    }
    if (!len) {
        return 0;
    }
    lg_reset(g);
    g->reg = data[0] & 2 ? LG_OBJECT(data[0] >> 4) : 0;
    for (size_t i = 1; i + 4 <= len; i += 4) {
        bend(g, data + i);
    }
    bound(g, LG_IMAGE + LG_MIN_LOW_PFN);
    bound(g, LG_IMAGE + LG_MAX_PFN);
    search(g, data[0] & 1);
    return 0;
}
