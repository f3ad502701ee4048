/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events of any bytes: see naive-bytes.h. Most addresses are within two pages,
 * so that blocks overlap. Some are the start of one of 8192 pages, so that the
 * map's tree has several levels. Some are at the ends of the address space.
 */
#include "tests/lib/naive-bytes.h"

uint64_t naive_make_va(const uint8_t *p)
{
    uint64_t small = (p[1] & 0x1f) << 8 | p[2];

    switch (p[1] >> 5) {
    case 0:
        return UINT64_MAX - small;
    case 1:
        return small << 52;
    case 2:
        return small;
    case 3:
        return 0xffff888100000000 + (small << 12);
    default:
        return 0xffff888000000000 + (small & ~7);
    }
}

static uint64_t make_size(uint8_t byte)
{
    return byte < 0xf0 ? byte * 4 : (uint64_t)1 << (byte & 0xf) * 4;
}

KtEvent naive_make_event(Naive *m, const uint8_t *p)
{
    static const uint8_t kinds[] = {
        KT_EV_ALLOC, KT_EV_FREE, KT_EV_ALLOC, KT_EV_FREE, KT_EV_ALLOC,
        KT_EV_FREE, KT_EV_RESIZE, KT_EV_RCU_QUEUE,
    };

    m->us += p[6] & 3;
    return (KtEvent) {
        .kind = kinds[p[0] & 7],
        .va = naive_make_va(p),
        .size = make_size(p[3]),
        .actual = p[4] & 1 ? make_size(p[4]) : 0,
        .us = m->us,
        .cpu = p[6],
        .stack = { p[5] % (N_STACKS + 1) },
        .task = { p[5] >> 5 },
        .gfp = p[6] >> 4,
        .cache = { p[7] & 3 },
        .hook = { p[6] },
        .layer = p[7] >> 2 & 7,
        .family = p[7] >> 5,
        .flags = p[0] & 8 ? p[6] >> 2 : 0,
    };
}

KtEvent naive_make_access(Naive *m, const uint8_t *p)
{
    KtEvent ev = naive_make_event(m, p);

    ev.kind = KT_EV_ACCESS;
    ev.actual = p[7] >> 3;
    ev.cache.v = p[3] & 0x80 ? p[7] & 3 : 0;
    ev.flags = p[6] >> 2;
    return ev;
}

KtEvent naive_make_removal(Naive *m, const uint8_t *p)
{
    KtEvent ev = naive_make_event(m, p);

    ev.kind = KT_EV_FREE;
    ev.family = KT_FAMILY_PAGES;
    ev.flags = KT_EVF_REMOVED;
    return ev;
}
