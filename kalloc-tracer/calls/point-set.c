/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The call points of one moment: see point-set.h. */
#include "kalloc-tracer/calls/point-set.h"

#include <string.h>

#define PAGE_SHIFT      12

struct KtPointSet {
    unsigned n;
    unsigned uses;              /* of all points */
    KtCallPoint *point;         /* sorted by id */
    KtPointRequest **requests;  /* those of all points, one after another */
    unsigned n_requests;
    uint32_t slots;             /* of @at and @page, a power of two */
    uint32_t *at;               /* index of a point + 1; 0: free */
    uint64_t *page;             /* page numbers; 0: free */
};

/* ---- requests ------------------------------------------------------------ */

KtPointRequest *kt_point_request_ref(KtPointRequest *r)
{
    return g_atomic_rc_box_acquire(r);
}

static void clear_request(void *request)
{
    KtPointRequest *r = request;

    g_free(r->text);
    g_strfreev(r->pattern);
    if (r->free) {
        r->free(r->opaque);
    }
}

void kt_point_request_unref(KtPointRequest *r)
{
    g_atomic_rc_box_release_full(r, clear_request);
}

/* ---- making a set -------------------------------------------------------- */

static uint32_t slot_of(const KtPointSet *s, uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15ull) >> 32 & (s->slots - 1);
}

static void add_page(KtPointSet *s, uint64_t page)
{
    uint32_t i = slot_of(s, page);

    while (s->page[i] && s->page[i] != page) {
        i = (i + 1) & (s->slots - 1);
    }
    s->page[i] = page;
}

static void add_address(KtPointSet *s, unsigned index)
{
    uint32_t i = slot_of(s, s->point[index].va);

    while (s->at[i]) {
        i = (i + 1) & (s->slots - 1);
    }
    s->at[i] = index + 1;
    /* A block that begins in the page before can run into this one. */
    add_page(s, s->point[index].va >> PAGE_SHIFT);
    add_page(s, (s->point[index].va >> PAGE_SHIFT) - 1);
}

static void copy_requests(KtPointSet *s, KtCallPoint *to, unsigned *used)
{
    KtPointRequest **at = &s->requests[*used];

    for (unsigned i = 0; i < to->n_requests; i++) {
        at[i] = kt_point_request_ref(to->request[i]);
    }
    *used += to->n_requests;
    to->request = at;
}

/* A point has two pages: the tables are at most half full. */
static uint32_t slots_for(unsigned n)
{
    uint32_t slots = 64;

    while (slots < 4 * n) {
        slots *= 2;
    }
    return slots;
}

KtPointSet *kt_point_set_new(const KtCallPoint *points, unsigned n)
{
    KtPointSet *s = g_new0(KtPointSet, 1);
    unsigned used = 0;

    s->n = n;
    s->point = n ? g_memdup2(points, n * sizeof(*points)) : NULL;
    for (unsigned i = 0; i < n; i++) {
        s->n_requests += points[i].n_requests;
        s->uses |= points[i].uses;
    }
    s->requests = g_new0(KtPointRequest *, s->n_requests);
    s->slots = slots_for(n);
    s->at = g_new0(uint32_t, s->slots);
    s->page = g_new0(uint64_t, s->slots);
    for (unsigned i = 0; i < n; i++) {
        copy_requests(s, &s->point[i], &used);
        add_address(s, i);
    }
    return s;
}

void kt_point_set_free(KtPointSet *s)
{
    if (!s) {
        return;
    }
    for (unsigned i = 0; i < s->n_requests; i++) {
        kt_point_request_unref(s->requests[i]);
    }
    g_free(s->requests);
    g_free(s->point);
    g_free(s->at);
    g_free(s->page);
    g_free(s);
}

uint64_t kt_point_set_bytes(const KtPointSet *s)
{
    return !s ? 0 :
           sizeof(*s) + s->n * sizeof(s->point[0]) +
           s->n_requests * sizeof(s->requests[0]) +
           s->slots * (sizeof(s->at[0]) + sizeof(s->page[0]));
}

/* ---- lookups ------------------------------------------------------------- */

bool kt_point_set_page(const KtPointSet *s, uint64_t va)
{
    uint64_t page = va >> PAGE_SHIFT;
    uint32_t i = slot_of(s, page);

    while (s->page[i]) {
        if (s->page[i] == page) {
            return true;
        }
        i = (i + 1) & (s->slots - 1);
    }
    return false;
}

const KtCallPoint *kt_point_set_at(const KtPointSet *s, uint64_t va)
{
    uint32_t i = slot_of(s, va);

    while (s->at[i]) {
        if (s->point[s->at[i] - 1].va == va) {
            return &s->point[s->at[i] - 1];
        }
        i = (i + 1) & (s->slots - 1);
    }
    return NULL;
}

/* Ids are given out in order, so a point is mostly at its id - 1. */
const KtCallPoint *kt_point_set_get(const KtPointSet *s, KtPointId id)
{
    unsigned lo = 0, hi = s->n;

    if (id.v && id.v <= s->n && s->point[id.v - 1].id.v == id.v) {
        return &s->point[id.v - 1];
    }
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (s->point[mid].id.v < id.v) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < s->n && s->point[lo].id.v == id.v ? &s->point[lo] : NULL;
}

unsigned kt_point_set_count(const KtPointSet *s)
{
    return s->n;
}

unsigned kt_point_set_uses(const KtPointSet *s)
{
    return s ? s->uses : 0;
}

const KtCallPoint *kt_point_set_nth(const KtPointSet *s, unsigned i)
{
    return &s->point[i];
}

const KtPointRequest *kt_call_point_watch(const KtCallPoint *p)
{
    for (unsigned i = p->n_requests; i-- > 0;) {
        if (p->request[i]->use == KT_POINT_WATCH) {
            return p->request[i];
        }
    }
    return NULL;
}
