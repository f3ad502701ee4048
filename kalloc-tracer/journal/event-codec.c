/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events as columns: see event-codec.h.
 *
 * What is guessed, and from what:
 *   stack    from the two stacks before it, else from the one before it
 *   shape    (all that is not named here) from the stack
 *   address  of an allocation: what its cache freed last; else: as many
 *            events ago as the last time with this stack
 *   task     the last one on the vCPU
 * Tables are direct-mapped by a hash: a wrong row is a wrong guess, no more.
 * What is searched is hashed with a number of the process's own, or a guest
 * could make searches long.
 */
#include "kalloc-tracer/journal/event-codec.h"

#define BITS        12
#define ROWS        (1u << BITS)
#define SLAB_BITS   9
#define CPUS        64              /* rows by vCPU */
#define FREED       8               /* addresses kept of a cache */
#define SHAPES      4096            /* that get a number */
#define PLACES      (4u * KT_RUN_EVENTS)
#define US_MASK     ((1ull << 48) - 1)

/* Bits of KT_COL_FLAGS. */
enum {
    STACK_BY_TWO = 0, STACK_BY_ONE = 1, STACK_TOLD = 2, STACK_MASK = 3,
    SHAPE_TOLD = 1 << 2,
    VA_GUESSED = 0 << 3, VA_BY_AGE = 1 << 3, VA_TOLD = 2 << 3, VA_MASK = 3 << 3,
    TASK_TOLD = 1 << 5,
    CPU_TOLD = 1 << 6,
    SEQ_TOLD = 1 << 7,
};

/* What is left of an event without number, time, vCPU, address, stack and
 * task. */
typedef struct Shape {
    uint64_t size;
    uint64_t actual;
    uint32_t gfp;
    uint16_t cache;
    uint8_t kind, hook, layer, family, flags, pad[5];
} Shape;

/* The addresses that a cache had last. */
typedef struct Slab {
    uint64_t last;
    uint64_t freed[FREED];
    unsigned top;
} Slab;

struct KtEventCodec {
    unsigned n;                     /* events so far */
    uint64_t seq;
    uint64_t us;
    uint16_t cpu;
    uint32_t stack, stack_before;
    uint32_t task[CPUS];
    uint32_t by_two[ROWS];
    uint32_t by_one[ROWS];
    Shape shape_of[ROWS];           /* the last with a stack */
    uint32_t age_of[ROWS];          /* likewise */
    Slab slab[1u << SLAB_BITS];
    unsigned n_shapes;
    /* The encoder's way back from shapes and addresses to numbers. */
    uint16_t shape_at[2 * SHAPES];
    uint16_t place[PLACES];         /* an event of the address, plus 1 */
    /* What follows is not emptied: as much is in use as was written. */
    uint64_t va[KT_RUN_EVENTS];     /* of each event */
    Shape shape[SHAPES];            /* by number less 1 */
    uint64_t odd;                   /* nobody can guess it */
};

KtEventCodec *kt_event_codec_new(void)
{
    KtEventCodec *c = g_new0(KtEventCodec, 1);

    c->odd = (uint64_t)g_random_int() << 32 | g_random_int() | 1;
    return c;
}

void kt_event_codec_free(KtEventCodec *c)
{
    g_free(c);
}

/* ---- guesses ------------------------------------------------------------ */

static unsigned hash(uint64_t v, unsigned bits)
{
    return v * 0x9e3779b97f4a7c15ull >> (64 - bits);
}

static uint32_t *row_by_two(KtEventCodec *c)
{
    return &c->by_two[hash((uint64_t)c->stack_before << 32 | c->stack, BITS)];
}

static uint32_t *row_by_one(KtEventCodec *c)
{
    return &c->by_one[hash(c->stack, BITS)];
}

static Shape shape_of_event(const KtEvent *ev)
{
    Shape s;

    memset(&s, 0, sizeof(s));
    s.size = ev->size;
    s.actual = ev->actual;
    s.gfp = ev->gfp;
    s.cache = ev->cache.v;
    s.kind = ev->kind;
    s.hook = ev->hook.v;
    s.layer = ev->layer;
    s.family = ev->family;
    s.flags = ev->flags;
    return s;
}

static bool same_shape(const Shape *a, const Shape *b)
{
    return !memcmp(a, b, sizeof(*a));
}

static Slab *slab_of(KtEventCodec *c, const Shape *s)
{
    return &c->slab[s->cache ? hash(s->cache, SLAB_BITS) : s->layer];
}

static bool is_alloc(const Shape *s)
{
    return s->kind == KT_EV_ALLOC;
}

/* Sets what the address is expected to be; false if there is no telling. */
static bool guess_va(KtEventCodec *c, const Shape *s, uint32_t stack,
                     uint64_t *va)
{
    const Slab *slab = slab_of(c, s);
    uint32_t age;

    if (is_alloc(s) && slab->top) {
        *va = slab->freed[(slab->top - 1) % FREED];
        return true;
    }
    age = c->age_of[hash(stack, BITS)];
    if (age && age <= c->n) {
        *va = c->va[c->n - age];
        return true;
    }
    return false;
}

static void learn_va(KtEventCodec *c, const Shape *s, uint64_t va)
{
    Slab *slab = slab_of(c, s);

    slab->last = va;
    if (s->kind == KT_EV_FREE) {
        slab->freed[slab->top++ % FREED] = va;
    } else if (is_alloc(s) && slab->top &&
               slab->freed[(slab->top - 1) % FREED] == va) {
        slab->top--;
    }
    c->va[c->n] = va;
}

static void learn(KtEventCodec *c, const KtEvent *ev, const Shape *s)
{
    *row_by_two(c) = *row_by_one(c) = ev->stack.v;
    c->stack_before = c->stack;
    c->stack = ev->stack.v;
    c->shape_of[hash(ev->stack.v, BITS)] = *s;
    learn_va(c, s, ev->va);
    c->task[ev->cpu % CPUS] = ev->task.v;
    c->cpu = ev->cpu;
    c->us = ev->us;
    if (ev->seq) {
        c->seq = ev->seq;
    }
    c->n++;
}

static void begin(KtEventCodec *c)
{
    memset(c, 0, offsetof(KtEventCodec, va));
}

/* ---- encoding ----------------------------------------------------------- */

static uint8_t put_stack(KtEventCodec *c, uint32_t stack, GByteArray *col)
{
    if (*row_by_two(c) == stack) {
        return STACK_BY_TWO;
    }
    if (*row_by_one(c) == stack) {
        return STACK_BY_ONE;
    }
    kt_put_varint(col, stack);
    return STACK_TOLD;
}

static void put_new_shape(GByteArray *col, const Shape *s)
{
    uint8_t bytes[KT_COLUMN_MAX / KT_RUN_EVENTS];
    uint8_t *to = bytes;

    *to++ = s->kind;
    *to++ = s->hook;
    *to++ = s->layer;
    *to++ = s->family;
    *to++ = s->flags;
    to = kt_write_varint(to, s->size);
    to = kt_write_varint(to, s->actual - s->size);
    to = kt_write_varint(to, s->gfp);
    to = kt_write_varint(to, s->cache);
    g_byte_array_append(col, bytes, to - bytes);
}

static uint16_t *find_shape(KtEventCodec *c, const Shape *s)
{
    uint64_t words[4] = { 0 };
    unsigned i;

    memcpy(words, s, sizeof(*s));
    i = hash(words[0] * c->odd ^ words[1] * (c->odd >> 16 | 1) ^
             words[2] * (c->odd >> 8 | 1) ^ words[3], BITS + 1);
    while (c->shape_at[i] && !same_shape(&c->shape[c->shape_at[i] - 1], s)) {
        i = (i + 1) % (2 * SHAPES);
    }
    return &c->shape_at[i];
}

static uint8_t put_shape(KtEventCodec *c, const Shape *s, uint32_t stack,
                         GByteArray *col[])
{
    uint16_t *number;

    if (same_shape(&c->shape_of[hash(stack, BITS)], s)) {
        return 0;
    }
    number = find_shape(c, s);
    kt_put_varint(col[KT_COL_SHAPE], *number);
    if (!*number) {
        put_new_shape(col[KT_COL_NEW], s);
        if (c->n_shapes < SHAPES) {
            c->shape[c->n_shapes++] = *s;
            *number = c->n_shapes;
        }
    }
    return SHAPE_TOLD;
}

/* Where the last event of the address is remembered, or will be. */
static uint16_t *find_place(KtEventCodec *c, uint64_t va)
{
    unsigned i = hash(va * c->odd, BITS + 4);

    while (c->place[i] && c->va[c->place[i] - 1] != va) {
        i = (i + 1) % PLACES;
    }
    return &c->place[i];
}

static uint8_t put_va(KtEventCodec *c, const Shape *s, const KtEvent *ev,
                      GByteArray *col[])
{
    uint16_t *place = find_place(c, ev->va);
    uint32_t age = *place ? c->n - (*place - 1) : 0;
    uint32_t *last_age = &c->age_of[hash(ev->stack.v, BITS)];
    uint64_t guess;
    bool guessed = guess_va(c, s, ev->stack.v, &guess) && guess == ev->va;

    *place = c->n + 1;
    if (age) {
        *last_age = age;
    }
    if (guessed) {
        return VA_GUESSED;
    }
    if (age) {
        kt_put_varint(col[KT_COL_AGE], age);
        return VA_BY_AGE;
    }
    kt_put_varint(col[KT_COL_VA], kt_zigzag(ev->va - slab_of(c, s)->last));
    return VA_TOLD;
}

static uint64_t us_delta(uint64_t now, uint64_t before)
{
    uint64_t d = (now - before) & US_MASK;

    return d >> 47 ? d | ~US_MASK : d;
}

static uint8_t put_rest(KtEventCodec *c, const KtEvent *ev, GByteArray *col[])
{
    uint8_t flags = 0;

    kt_put_varint(col[KT_COL_US], kt_zigzag(us_delta(ev->us, c->us)));
    if (ev->cpu != c->cpu) {
        kt_put_varint(col[KT_COL_CPU], ev->cpu);
        flags |= CPU_TOLD;
    }
    if (ev->task.v != c->task[ev->cpu % CPUS]) {
        kt_put_varint(col[KT_COL_TASK], ev->task.v);
        flags |= TASK_TOLD;
    }
    if (ev->seq != c->seq + 1) {
        kt_put_varint(col[KT_COL_SEQ], kt_zigzag(ev->seq - (c->seq + 1)));
        flags |= SEQ_TOLD;
    }
    return flags;
}

void kt_event_codec_encode(KtEventCodec *c, const KtEvent *ev, unsigned n,
                           GByteArray *col[KT_COL__COUNT])
{
    begin(c);
    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        g_byte_array_set_size(col[i], 0);
    }
    for (; n; n--, ev++) {
        Shape s = shape_of_event(ev);
        uint8_t flags = put_rest(c, ev, col);

        flags |= put_stack(c, ev->stack.v, col[KT_COL_STACK]);
        flags |= put_shape(c, &s, ev->stack.v, col);
        flags |= put_va(c, &s, ev, col);
        kt_put_u8(col[KT_COL_FLAGS], flags);
        learn(c, ev, &s);
    }
}

/* ---- decoding ----------------------------------------------------------- */

static uint32_t take_stack(KtEventCodec *c, uint8_t flags, KtBytes *col)
{
    switch (flags & STACK_MASK) {
    case STACK_BY_TWO:
        return *row_by_two(c);
    case STACK_BY_ONE:
        return *row_by_one(c);
    case STACK_TOLD:
        return kt_bytes_varint(col, UINT32_MAX);
    default:
        col->failed = true;
        return 0;
    }
}

static void take_new_shape(KtBytes *b, Shape *s)
{
    s->kind = kt_bytes_u8(b);
    s->hook = kt_bytes_u8(b);
    s->layer = kt_bytes_u8(b);
    s->family = kt_bytes_u8(b);
    s->flags = kt_bytes_u8(b);
    s->size = kt_bytes_varint(b, UINT64_MAX);
    s->actual = s->size + kt_bytes_varint(b, UINT64_MAX);
    s->gfp = kt_bytes_varint(b, UINT32_MAX);
    s->cache = kt_bytes_varint(b, UINT16_MAX);
}

static void take_shape(KtEventCodec *c, uint8_t flags, uint32_t stack,
                       KtBytes col[], Shape *s)
{
    unsigned number;

    if (!(flags & SHAPE_TOLD)) {
        *s = c->shape_of[hash(stack, BITS)];
        return;
    }
    number = kt_bytes_varint(&col[KT_COL_SHAPE], c->n_shapes);
    if (number) {
        *s = c->shape[number - 1];
        return;
    }
    memset(s, 0, sizeof(*s));
    take_new_shape(&col[KT_COL_NEW], s);
    if (c->n_shapes < SHAPES) {
        c->shape[c->n_shapes++] = *s;
    }
}

/* How many events ago the address was named, 0 for never. */
static uint32_t age_now(KtEventCodec *c, uint64_t va)
{
    uint16_t *place = find_place(c, va);
    uint32_t age = *place ? c->n - (*place - 1) : 0;

    *place = c->n + 1;
    return age;
}

static uint64_t take_va(KtEventCodec *c, uint8_t flags, const Shape *s,
                        uint32_t stack, KtBytes col[])
{
    uint64_t va = 0;
    uint32_t age;

    switch (flags & VA_MASK) {
    case VA_GUESSED:
        col[KT_COL_VA].failed |= !guess_va(c, s, stack, &va);
        break;
    case VA_BY_AGE:
        age = kt_bytes_varint(&col[KT_COL_AGE], c->n);
        col[KT_COL_AGE].failed |= !age;
        va = age ? c->va[c->n - age] : 0;
        break;
    case VA_TOLD:
        va = slab_of(c, s)->last +
             kt_unzigzag(kt_bytes_varint(&col[KT_COL_VA], UINT64_MAX));
        break;
    default:
        col[KT_COL_VA].failed = true;
    }
    age = age_now(c, va);
    if (age) {
        c->age_of[hash(stack, BITS)] = age;
    }
    return va;
}

static void take_rest(KtEventCodec *c, uint8_t flags, KtBytes col[],
                      KtEvent *ev)
{
    uint64_t us = kt_bytes_varint(&col[KT_COL_US], UINT64_MAX);

    ev->us = (c->us + kt_unzigzag(us)) & US_MASK;
    ev->cpu = flags & CPU_TOLD ?
              kt_bytes_varint(&col[KT_COL_CPU], UINT16_MAX) : c->cpu;
    ev->task.v = flags & TASK_TOLD ?
                 kt_bytes_varint(&col[KT_COL_TASK], UINT32_MAX) :
                 c->task[ev->cpu % CPUS];
    ev->seq = c->seq + 1;
    if (flags & SEQ_TOLD) {
        ev->seq += kt_unzigzag(kt_bytes_varint(&col[KT_COL_SEQ], UINT64_MAX));
    }
}

static void fill(KtEvent *ev, const Shape *s)
{
    ev->size = s->size;
    ev->actual = s->actual;
    ev->gfp = s->gfp;
    ev->cache.v = s->cache;
    ev->kind = s->kind;
    ev->hook.v = s->hook;
    ev->layer = s->layer;
    ev->family = s->family;
    ev->flags = s->flags;
}

static bool all_taken(const KtBytes col[])
{
    bool ok = true;

    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        ok &= !col[i].failed && !kt_bytes_left(&col[i]);
    }
    return ok;
}

bool kt_event_codec_decode(KtEventCodec *c, KtBytes col[KT_COL__COUNT],
                           unsigned n, KtEvent *ev)
{
    if (n > KT_RUN_EVENTS || kt_bytes_left(&col[KT_COL_FLAGS]) != n) {
        return false;
    }
    begin(c);
    for (; n; n--, ev++) {
        uint8_t flags = kt_bytes_u8(&col[KT_COL_FLAGS]);
        Shape s;

        memset(ev, 0, sizeof(*ev));
        take_rest(c, flags, col, ev);
        ev->stack.v = take_stack(c, flags, &col[KT_COL_STACK]);
        take_shape(c, flags, ev->stack.v, col, &s);
        ev->va = take_va(c, flags, &s, ev->stack.v, col);
        fill(ev, &s);
        learn(c, ev, &s);
    }
    return all_taken(col);
}
