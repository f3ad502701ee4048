/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any calls of the guest as witnesses, with any guest memory.
 *
 * The input is a list of records of 9 bytes: a call, and its two arguments,
 * which become addresses in the memory, or numbers. The memory is the input,
 * repeated. Nothing may be read outside it, and offsets must lie in their
 * structs.
 */
#include "tests/fuzz/fuzz.h"
#include "guest-symbols/arch/arch.h"
#include "kalloc-tracer/kernel/witnesses.h"

#define BASE    0xffff888000000000ull
#define VMEMMAP 0xffffea0000000000ull
#define BYTES   0x10000
#define CALLS   256

static uint8_t memory[BYTES];

static const void *view(uint64_t va, size_t *avail)
{
    uint64_t at = va >= VMEMMAP ? va - VMEMMAP : va - BASE;

    *avail = 4096 - (va & 4095);
    return at < BYTES ? &memory[at] : NULL;
}

static void fill(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < BYTES; i += len) {
        memcpy(&memory[i], data, MIN(len, BYTES - i));
    }
    for (size_t i = 0; i < BYTES; i += 8) {
        uint64_t word;

        memcpy(&word, &memory[i], sizeof(word));
        if (word >> 32 == 1) {
            word = BASE + (word & (BYTES - 1));
            memcpy(&memory[i], &word, sizeof(word));
        }
    }
}

typedef struct All {
    KtCacheWitnesses cache;
    KtTaskWitnesses task;
    KtPageWitnesses page;
    KtSlabWitnesses slab;
} All;

static void call_cache(KtCacheWitnesses *w, uint8_t kind, uint64_t a,
                       uint64_t b)
{
    switch (kind % 4) {
    case 0:
    case 1:
        kt_cache_witnesses_made(w, &(KtCacheMade) {
            .cache = a, .name = b, .size = b & 0xfff, .in_place = kind % 4,
            .since = w->clock - (kind >> 4) });
        break;
    case 2:
        kt_cache_witnesses_object(w, a, b);
        break;
    default:
        if (kind & 0x20) {
            kt_cache_witnesses_kmalloc(w, a, b & 0xfff);
        } else {
            kt_cache_witnesses_freed(w, b);
        }
        break;
    }
}

static void call_task(KtTaskWitnesses *w, uint8_t kind, uint64_t a, uint64_t b)
{
    switch (kind % 5) {
    case 0:
        kt_task_witnesses_switch(w, a, b);
        break;
    case 1:
        kt_task_witnesses_named(w, a, b);
        break;
    case 2:
        kt_task_witnesses_thread(w, a, b);
        break;
    case 3:
        kt_task_witnesses_new_task(w, a, b, kind & 0x80 ? a : 0);
        break;
    default:
        kt_task_witnesses_cloned(w, a, (int64_t)(b & 0xffff) - 16);
        break;
    }
}

static void call_page(All *all, uint8_t kind, uint64_t a, uint64_t b)
{
    const KtSlabBase *found;

    if (kind < 64) {
        kt_page_witnesses_object(&all->page, a, b);
        return;
    }
    kt_slab_witnesses_freed(&all->slab, a, b);
    found = kt_slab_witnesses_learned(&all->slab);
    if (found) {
        all->page.at.learned_size = found->struct_page;
        all->page.at.learned_base = found->base;
    }
}

static void check(const All *all)
{
    const KtTaskWitnesses *t = &all->task;
    const KtCacheWitnesses *c = &all->cache;

    if ((c->learned && (c->name.at[0] > KT_CACHE_BYTES - 8 ||
                        c->size.at[0] > KT_CACHE_BYTES - 4)) ||
        (t->learned_comm != KT_NO_MEMBER &&
         t->learned_comm > KT_TASK_BYTES - 16) ||
        (t->learned_pid != KT_NO_MEMBER &&
         t->learned_pid > KT_TASK_BYTES - 4) ||
        (all->page.learned && all->page.layout.slab_cache >= 64)) {
        abort();
    }
}

static uint64_t argument(const uint8_t *at)
{
    uint32_t raw;

    memcpy(&raw, at, sizeof(raw));
    return raw >> 31 ? raw : BASE + (raw & (2 * BYTES - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    All *all;

    if (len < 9) {
        return 0;
    }
    fill(data, len);
    all = g_new0(All, 1);
    all->cache.view = all->page.view = view;
    all->cache.page_shift = all->slab.page_shift = 12;
    all->page.at = (GsDirectMapAt) {
        .arch = gs_arch_nth(data[0] % GS_N_ARCHS), .page_shift = 12,
    };
    kt_task_witnesses_init(&all->task, view, 0);
    for (size_t i = 0; i + 9 <= len && i < 9 * CALLS; i += 9) {
        uint64_t a = argument(data + i + 1), b = argument(data + i + 5);

        switch (data[i] % 3) {
        case 0:
            call_cache(&all->cache, data[i] / 3, a, b);
            break;
        case 1:
            call_task(&all->task, data[i] / 3, a, b);
            break;
        default:
            call_page(all, data[i] / 3, a, b);
            break;
        }
        check(all);
    }
    g_free(all);
    return 0;
}
