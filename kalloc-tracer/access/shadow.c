/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shadow of the direct map: see shadow.h. */
#include "kalloc-tracer/access/shadow-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

/* Codes are charged by pages. */
#define PAGE 4096u
/* Bytes of guest memory that such a page describes. */
#define SPAN ((uint64_t)PAGE * KT_GRANULE)
/* Pages of the guest that such a page describes. */
#define OWNERS (PAGE / OWNED)
/* Granules at the start of a page that an access to the page in front can
 * touch: an access has at most 16 bytes. */
#define HEAD 2u
/* No machine has a larger direct map. */
#define LEN_MAX ((uint64_t)1 << 46)

const KtShadow kt_shadow_none = { .len = 0 };

static void put(KtShadow *s, uint64_t i, uint8_t code)
{
    __atomic_store_n(&s->codes[i], code, __ATOMIC_RELAXED);
}

static void put_word(KtShadow *s, uint64_t i, uint64_t word)
{
    __atomic_store_n((uint64_t *)(void *)&s->codes[i], word, __ATOMIC_RELAXED);
}

static uint64_t n_codes(const KtShadow *s)
{
    return s->len / KT_GRANULE;
}

static uint64_t n_pages(const KtShadow *s)
{
    return n_codes(s) / OWNED;
}

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) & -(uint64_t)PAGE;
}

static uint64_t touched_bytes(const KtShadow *s)
{
    return whole_pages(n_codes(s) / PAGE);
}

static uint64_t owner_bytes(const KtShadow *s)
{
    return whole_pages(n_pages(s) * sizeof(*s->owner));
}

static uint64_t marked_bytes(const KtShadow *s)
{
    return whole_pages(n_pages(s) * sizeof(*s->marked));
}

/* The number of pages from @touched to the end of @marked. */
static uint64_t n_paid(const KtShadow *s)
{
    return (touched_bytes(s) + owner_bytes(s) + marked_bytes(s)) / PAGE;
}

static uint64_t mapped_bytes(const KtShadow *s)
{
    return n_codes(s) + n_paid(s) * PAGE + n_paid(s);
}

/* ---- host memory -------------------------------------------------------- */

/* Reserve address space that is used by pages as they are written. Return NULL
 * if there is none. */
static uint8_t *reserve(uint64_t len)
{
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

KtShadow *kt_shadow_new(uint64_t base, uint64_t len, KtBudget *budget,
                        GError **errp)
{
    g_autofree KtShadow *s = g_new0(KtShadow, 1);

    if (!len || len > LEN_MAX || base % SPAN || base > UINT64_MAX - len) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "no shadow for 0x%" PRIx64 " bytes at 0x%" PRIx64 ": the "
                    "start must be a multiple of 0x%" PRIx64 ", and the end "
                    "an address", len, base, SPAN);
        return NULL;
    }
    s->base = base;
    s->len = (len + SPAN - 1) & ~(SPAN - 1);
    s->budget = budget;
    /* One mapping; each array begins with a page. */
    s->codes = reserve(mapped_bytes(s));
    if (!s->codes) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO,
                    "0x%" PRIx64 " bytes of address space for the shadow of "
                    "the guest's memory: %s", n_codes(s), g_strerror(errno));
        return NULL;
    }
    s->touched = s->codes + n_codes(s);
    s->owner = (uint32_t *)(void *)(s->touched + touched_bytes(s));
    s->marked = (uint8_t *)s->owner + owner_bytes(s);
    s->paid = s->marked + marked_bytes(s);
    return g_steal_pointer(&s);
}

void kt_shadow_free(KtShadow *s)
{
    if (!s) {
        return;
    }
    kt_budget_release(s->budget, KT_MEM_SHADOW, kt_shadow_bytes(s));
    munmap(s->codes, mapped_bytes(s));
    g_free(s);
}

static bool is_touched(const KtShadow *s, uint64_t page)
{
    return __atomic_load_n(&s->touched[page], __ATOMIC_RELAXED);
}

/* Remember the highest page that is touched: a shadow is much larger than the
 * memory that guests have. */
static void raise_end(KtShadow *s, uint64_t end)
{
    uint64_t old = __atomic_load_n(&s->touched_end, __ATOMIC_RELAXED);

    while (old < end &&
           !__atomic_compare_exchange_n(&s->touched_end, &old, end, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        continue;
    }
}

/* Charge a page of host memory, once. Return false if the budget refuses.
 * @done: not 0 if it is charged */
static bool charge(KtShadow *s, uint8_t *done)
{
    if (__atomic_load_n(done, __ATOMIC_RELAXED)) {
        return true;
    }
    if (!kt_budget_take(s->budget, KT_MEM_SHADOW, PAGE)) {
        return false;
    }
    if (__atomic_exchange_n(done, 1, __ATOMIC_RELAXED)) {
        kt_budget_release(s->budget, KT_MEM_SHADOW, PAGE);
    } else {
        __atomic_fetch_add(&s->n_charged, 1, __ATOMIC_RELAXED);
    }
    return true;
}

/* Charge the page of an array behind the codes. */
static bool pay(KtShadow *s, const void *at)
{
    return charge(s, &s->paid[((const uint8_t *)at - s->touched) / PAGE]);
}

/* Charge a page of codes, and what is stored for it. Return false if the budget
 * refuses. */
static bool touch(KtShadow *s, uint64_t page)
{
    if (G_LIKELY(is_touched(s, page))) {
        return true;
    }
    if (!pay(s, &s->touched[page]) || !pay(s, &s->owner[page * OWNERS]) ||
        !pay(s, &s->marked[page * OWNERS]) || !charge(s, &s->touched[page])) {
        return false;
    }
    raise_end(s, page + 1);
    return true;
}

uint64_t kt_shadow_bytes(const KtShadow *s)
{
    return __atomic_load_n(&s->n_charged, __ATOMIC_RELAXED) * PAGE;
}

/* Set bytes to 0 and return their memory. The rest of the last page is not
 * used by others. */
static void discard(void *at, uint64_t len)
{
    if (madvise(at, len, MADV_DONTNEED)) {
        memset(at, 0, len);
    }
}

void kt_shadow_clear(KtShadow *s)
{
    uint64_t n = s->touched_end;

    discard(s->codes, n * PAGE);
    discard(s->touched, n);
    discard(s->owner, n * OWNERS * sizeof(*s->owner));
    discard(s->marked, n * OWNERS);
    discard(s->paid, n_paid(s));
    s->touched_end = 0;
    kt_budget_release(s->budget, KT_MEM_SHADOW, kt_shadow_bytes(s));
    s->n_charged = 0;
}

/* ---- ranges of codes ---------------------------------------------------- */

/* Write codes in memory that is charged. */
static void fill(KtShadow *s, Span r, uint8_t code)
{
    uint64_t i = r.from;

    for (; i < r.to && i % 8; i++) {
        put(s, i, code);
    }
    for (; i + 8 <= r.to; i += 8) {
        put_word(s, i, EIGHT(code));
    }
    for (; i < r.to; i++) {
        put(s, i, code);
    }
}

/* Return the part of @r in one page of codes, and remove it from @r. */
static Span next_page(Span *r)
{
    Span part = { r->from, MIN(r->to, (r->from / PAGE + 1) * PAGE) };

    r->from = part.to;
    return part;
}

/* Write codes; those in a page that the budget refuses stay as they are, which
 * is unknown. Return false if there is one. */
static bool mark(KtShadow *s, Span r, uint8_t code)
{
    bool all = true;

    while (r.from < r.to) {
        Span part = next_page(&r);

        if (touch(s, part.from / PAGE)) {
            fill(s, part, code);
        } else {
            all = false;
        }
    }
    return all;
}

/* ---- the first level ----------------------------------------------------- */

/* Codes in @r, which is not empty, are other than unknown now. Call after they
 * were written, see unmark_pages(). */
static void mark_pages(KtShadow *s, Span r)
{
    uint64_t from = r.from < HEAD ? 0 : (r.from - HEAD) / OWNED;

    for (uint64_t page = from; page <= (r.to - 1) / OWNED; page++) {
        if (!is_marked(s, page)) {
            __atomic_store_n(&s->marked[page], 1, __ATOMIC_RELEASE);
        }
    }
}

/* Return true if an access to the page in front of @page can touch a byte that
 * is known. */
static bool has_head(const KtShadow *s, uint64_t page)
{
    uint64_t i = page * OWNED;

    return page < n_pages(s) && (get(s, i) || get(s, i + 1));
}

/*
 * Codes in @r are about to become unknown. Pages that are whole in @r are not
 * marked then.
 *
 * Another vCPU may mark a block on such a page meanwhile. It writes codes and
 * then the first level, here the order is the other one: either this block
 * becomes unknown, or its page is marked.
 */
static void unmark_pages(KtShadow *s, Span r)
{
    for (uint64_t page = (r.from + OWNED - 1) / OWNED; page < r.to / OWNED;
         page++) {
        bool next = (page + 1) * OWNED + HEAD > r.to && has_head(s, page + 1);

        if (is_marked(s, page) && !next) {
            __atomic_exchange_n(&s->marked[page], 0, __ATOMIC_ACQUIRE);
        }
    }
}

static void forget(KtShadow *s, Span r)
{
    while (r.from < r.to) {
        Span part = next_page(&r);

        if (is_touched(s, part.from / PAGE)) {
            unmark_pages(s, part);
            fill(s, part, UNKNOWN);
        }
    }
}

/* ---- blocks -------------------------------------------------------------- */

static bool is_first(uint8_t code)
{
    return (code & 0xf0) == FIRST;
}

/* Return true if the code belongs to the same block as the granule before. */
static bool continues(uint8_t code)
{
    return (code >= 1 && code <= FULL) || code == SLACK;
}

/* Return the granules from @i on that continue a block. */
static Span rest_of(const KtShadow *s, uint64_t i)
{
    Span r = { i, i };

    while (r.to < n_codes(s)) {
        uint64_t word = r.to % 8 ? 0 : get_word(s, r.to);

        if (word && (word == EIGHT(FULL) || word == EIGHT(SLACK))) {
            r.to += 8;
        } else if (continues(get(s, r.to))) {
            r.to++;
        } else {
            break;
        }
    }
    return r;
}

/* ---- events ------------------------------------------------------------- */

/* Return the code of granule @i of a block with @good bytes. */
static uint8_t live_code(uint64_t good, uint64_t i)
{
    uint64_t at = i * KT_GRANULE;

    return at >= good ? SLACK : (uint8_t)MIN(good - at, KT_GRANULE);
}

/*
 * Write the codes of a live block with @good bytes, at least 1. The first code
 * is written once, with FIRST: another vCPU may examine this code meanwhile, to
 * find the end of the block in front. Return false if memory was refused.
 */
static bool mark_live(KtShadow *s, Span r, uint64_t good)
{
    uint64_t partial = MAX(r.from + good / KT_GRANULE, r.from + 1);
    bool all = mark(s, (Span) { r.from, r.from + 1 },
                    FIRST | live_code(good, 0));

    all &= mark(s, (Span) { r.from + 1, MIN(partial, r.to) }, FULL);
    if (partial < r.to) {
        all &= mark(s, (Span) { partial, partial + 1 },
                    live_code(good, partial - r.from));
        all &= mark(s, (Span) { partial + 1, r.to }, SLACK);
    }
    mark_pages(s, r);
    return all;
}

/* Make unknown what continues a block at @i. Another vCPU may hand out this
 * memory meanwhile: then its codes stay. */
static void forget_rest(KtShadow *s, uint64_t i)
{
    while (i < n_codes(s)) {
        uint8_t code = get(s, i);

        if (!continues(code) ||
            !__atomic_compare_exchange_n(&s->codes[i], &code, UNKNOWN, false,
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            break;
        }
        i++;
    }
}

bool kt_shadow_alloc(KtShadow *s, uint64_t va, uint64_t requested,
                     uint64_t actual, bool armed)
{
    uint64_t len = actual ? actual : requested;
    uint64_t good = requested ? MIN(requested, len) : len;
    Span r = span_of(s, va, len);
    bool all = true;

    if (r.from >= r.to) {
        return true;
    }
    if (!armed || va % KT_GRANULE || va < s->base ||
        len > KT_SHADOW_BLOCK_MAX) {
        forget(s, r);
    } else {
        all = mark_live(s, r, good);
    }
    /* A block that was here before, whose free was not seen, may have been
     * longer. */
    forget_rest(s, r.to);
    return all;
}

static bool knows(const KtShadow *s, uint64_t va)
{
    uint64_t off = va - s->base;

    return off < s->len && !(va % KT_GRANULE) &&
           is_first(get(s, off / KT_GRANULE));
}

void kt_shadow_freed(KtShadow *s, uint64_t va)
{
    uint64_t i = (va - s->base) / KT_GRANULE;

    if (knows(s, va)) {
        mark(s, (Span) { i, rest_of(s, i + 1).to }, FREED);
    }
}

bool kt_shadow_release(KtShadow *s, uint64_t va, uint64_t len)
{
    Span r = span_of(s, va, len);
    bool all;

    if (len > KT_SHADOW_BLOCK_MAX || r.from >= r.to) {
        forget(s, r);
        return true;
    }
    all = mark(s, r, FREED);
    mark_pages(s, r);
    return all;
}

void kt_shadow_resize(KtShadow *s, uint64_t va, uint64_t requested,
                      uint64_t actual)
{
    if (knows(s, va)) {
        kt_shadow_alloc(s, va, requested, actual, true);
    }
}

void kt_shadow_use_slack(KtShadow *s, uint64_t va)
{
    uint64_t i = (va - s->base) / KT_GRANULE;

    if (knows(s, va)) {
        put(s, i, FIRST | FULL);
        mark(s, rest_of(s, i + 1), FULL);
    }
}

/* Another vCPU may hand out the memory meanwhile: its code stays. */
static void mark_if_unknown(KtShadow *s, Span r)
{
    for (uint64_t i = r.from; i < r.to; i++) {
        uint8_t code = UNKNOWN;

        if (!get(s, i)) {
            __atomic_compare_exchange_n(&s->codes[i], &code, FRESH, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
    }
}

bool kt_shadow_fresh(KtShadow *s, uint64_t va, uint64_t len)
{
    Span r = span_of(s, va, len), whole = r;
    bool all = true;

    while (r.from < r.to) {
        Span part = next_page(&r);

        if (touch(s, part.from / PAGE)) {
            mark_if_unknown(s, part);
        } else {
            all = false;
        }
    }
    if (whole.from < whole.to) {
        mark_pages(s, whole);
    }
    return all;
}

void kt_shadow_set_owner(KtShadow *s, uint64_t va, uint64_t len, uint32_t owner)
{
    Span r = span_of(s, va, len);

    for (uint64_t i = r.from / OWNED; i < (r.to + OWNED - 1) / OWNED; i++) {
        uint32_t *now = &s->owner[i], was;

        if (__atomic_load_n(now, __ATOMIC_RELAXED) == owner ||
            !touch(s, i / OWNERS)) {
            continue;
        }
        was = __atomic_exchange_n(now, owner, __ATOMIC_RELAXED);
        if (was && was != owner) {
            forget(s, (Span) { i * OWNED, (i + 1) * OWNED });
        }
    }
}

void kt_shadow_forget(KtShadow *s, uint64_t va, uint64_t len)
{
    forget(s, span_of(s, va, len));
}

/* Another vCPU may hand out the memory meanwhile: its code stays. */
static void forget_if_freed(KtShadow *s, uint64_t i)
{
    uint8_t code = get(s, i);

    if (code == FREED || code == FRESH) {
        __atomic_compare_exchange_n(&s->codes[i], &code, UNKNOWN, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void kt_shadow_forget_freed(KtShadow *s)
{
    uint64_t end = __atomic_load_n(&s->touched_end, __ATOMIC_RELAXED);

    for (uint64_t page = 0; page < end; page++) {
        if (!is_touched(s, page)) {
            continue;
        }
        for (uint64_t i = page * PAGE; i < (page + 1) * PAGE; i++) {
            forget_if_freed(s, i);
        }
    }
}
