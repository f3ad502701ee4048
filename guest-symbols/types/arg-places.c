/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places of arguments and results, see arg-places.h.
 *
 * classify() reads a type's leaves and makes a Class of it: how many words it
 * has, and which of them are floats. assign() takes registers or stack for a
 * Class, as the row of the architecture says.
 */
#include "guest-symbols/types/arg-places.h"

#define WORD            8u
#define LEAVES_MAX      256     /* of one argument */
#define PARTS_MAX       64      /* that wait to be read */
#define SMALL           (GS_PLACE_WORDS * WORD)
#define FLOATS_MAX      4       /* members of a homogeneous float struct */
#define FLOAT_REGS      8
#define BYTES_MAX       (1u << 16)

static const GsReg arg_regs[] = {
    GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3, GS_REG_ARG4,
    GS_REG_ARG5, GS_REG_ARG6, GS_REG_ARG7,
};

/*
 * @size, @align: of the value, bytes
 * @ints, @floats: bit masks: words with integers or pointers, with floats
 * @n_floats, @float_size: number of floats, and the size of each; @mixed: they
 *                         differ, or there are integers, too
 * @unaligned: a member is not where its type would be aligned
 */
typedef struct Class {
    uint32_t size, align;
    unsigned ints, floats;
    unsigned n_floats;
    uint32_t float_size;
    bool mixed, unaligned;
} Class;

/* A type in the value: at which byte. @n: of so many, side by side */
typedef struct Part {
    uint32_t type;
    uint64_t at;
    uint32_t n;
} Part;

/* Parts that wait to be read. @left: leaves that may still be read */
typedef struct Parts {
    Part part[PARTS_MAX];
    unsigned n, left;
} Parts;

static bool push(Parts *p, uint32_t type, uint64_t at, uint32_t n)
{
    if (p->n == PARTS_MAX) {
        return false;
    }
    p->part[p->n++] = (Part) { type, at, n };
    return true;
}

/* Only the words that a small struct has: a leaf may say that it has 4 GiB. */
static unsigned words_of(uint64_t at, uint32_t size)
{
    uint64_t last = (at + size - 1) / WORD;
    unsigned mask = 0;

    for (uint64_t w = at / WORD; w <= last && w < GS_PLACE_WORDS; w++) {
        mask |= 1u << w;
    }
    return mask;
}

/* Return false for a float that is wider than a word: it has other rules. */
static bool add_leaf(Class *c, bool is_float, uint64_t at, uint32_t size)
{
    if (!size) {
        return true;
    }
    c->align = MAX(c->align, MIN(size, SMALL));
    c->unaligned |= at % size != 0;
    if (is_float) {
        c->floats |= words_of(at, size);
        c->mixed |= c->n_floats && c->float_size != size;
        c->n_floats++;
        c->float_size = size;
    } else {
        c->ints |= words_of(at, size);
    }
    return !is_float || size <= WORD;
}

/* A bit field is an integer in the words that its bits are in. */
static void add_bits(Class *c, uint64_t bit, uint32_t bits)
{
    c->ints |= words_of(bit / 8, (bit + bits - 1) / 8 - bit / 8 + 1);
}

/* Members that are read last are pushed first: the order has no meaning. */
static bool push_members(Parts *p, Class *c, const GsBtfRecords *r,
                         const GsBtfType *t, uint64_t at)
{
    for (uint32_t i = 0; i < t->vlen; i++) {
        GsBtfMember m = gs_btf_nth_member(t, i);

        if (!p->left--) {
            return false;
        }
        if (gs_btf_is_bit_field(r, &m)) {
            add_bits(c, at * 8 + m.bit, MAX(m.bits, 1));
        } else if (!push(p, m.type, at + m.bit / 8, 1)) {
            return false;
        }
    }
    return true;
}

/* Read one type. Return false if it has no known size, or is too deep. */
static bool read_part(Parts *p, Class *c, const GsBtfRecords *r, Part part)
{
    uint32_t id = part.type, size;
    GsBtfType t;

    if (!gs_btf_real(r, &id, &t)) {
        return false;
    }
    if (t.kind == GS_BTF_ARRAY) {
        return push(p, gs_btf_word(&t, 0), part.at, gs_btf_word(&t, 2));
    }
    if (gs_btf_is_composite(&t)) {
        return push_members(p, c, r, &t, part.at);
    }
    if (!gs_btf_size(r, id, &size)) {
        return false;
    }
    return add_leaf(c, t.kind == GS_BTF_FLOAT, part.at, size);
}

/* Take the next part off the list; of several side by side, only one. */
static Part pop(Parts *p, const GsBtfRecords *r)
{
    Part *last = &p->part[p->n - 1], one = *last;
    uint32_t size;

    one.n = MIN(one.n, 1);
    if (last->n <= 1 || !gs_btf_size(r, last->type, &size)) {
        p->n--;
    } else {
        last->n--;
        last->at += size;
    }
    return one;
}

static bool read_parts(const GsBtfRecords *r, uint32_t type, Class *c)
{
    Parts p = { .part = { { type, 0, 1 } }, .n = 1, .left = LEAVES_MAX };

    while (p.n) {
        Part part = pop(&p, r);

        if (!p.left--) {
            return false;
        }
        if (part.n && !read_part(&p, c, r, part)) {
            return false;
        }
    }
    c->mixed |= c->n_floats && c->ints;
    return true;
}

/* Return false if nothing is known of the type. What is larger than four floats
 * is in memory, whatever its members are. */
static bool classify(const GsBtfRecords *r, uint32_t type, Class *c)
{
    *c = (Class) { .align = 1 };
    return gs_btf_size(r, type, &c->size) && c->size <= BYTES_MAX &&
           (c->size > FLOATS_MAX * WORD || read_parts(r, type, c));
}

static bool is_large(const GsAbi *abi, const Class *c)
{
    return c->size > SMALL || (abi->packed && c->unaligned);
}

/* Is the value in registers for floats? Then it has no integer register. */
static bool in_float_regs(const GsAbi *abi, const Class *c)
{
    if (!abi->floats || !c->n_floats) {
        return false;
    }
    if (abi->uniform) {
        return !c->mixed && c->n_floats <= FLOATS_MAX;
    }
    return !is_large(abi, c) && !c->ints;
}

/* Are its words of different classes, integers, floats and padding? */
static bool is_torn(const GsAbi *abi, const Class *c)
{
    unsigned words = c->size > WORD ? 3 : c->size ? 1 : 0;

    return abi->packed && !is_large(abi, c) && c->ints != words &&
           (c->ints || c->floats != words);
}

/* ---- arguments ---- */

static uint32_t align_up(uint32_t at, uint32_t to)
{
    return (at + to - 1) / to * to;
}

static GsPlace on_stack(GsArgPlaces *a, const Class *c)
{
    GsPlace place = { .kind = GS_PLACE_STACK };
    uint32_t base = a->abi->stack;

    place.stack = base + align_up(a->stack - base, MAX(c->align, WORD));
    a->stack = place.stack + align_up(c->size, WORD);
    return place;
}

static GsPlace in_regs(GsArgPlaces *a, unsigned n)
{
    GsPlace place = { .kind = GS_PLACE_REGISTERS, .words = n };

    for (unsigned i = 0; i < n; i++) {
        place.reg[i] = arg_regs[a->regs++];
    }
    return place;
}

/* The first word is in the last register. */
static GsPlace split(GsArgPlaces *a)
{
    static const Class rest = { .size = WORD, .align = WORD };
    GsPlace place = in_regs(a, 1);

    place.kind = GS_PLACE_SPLIT;
    place.stack = on_stack(a, &rest).stack;
    return place;
}

static GsPlace assign(GsArgPlaces *a, const Class *c)
{
    const GsAbi *abi = a->abi;
    unsigned words = (c->size + WORD - 1) / WORD;

    if (abi->even && c->align > WORD) {
        a->regs = MIN(align_up(a->regs, 2), abi->n_regs);
    }
    if (a->regs + words <= abi->n_regs) {
        return in_regs(a, words);
    }
    if (abi->splits && a->regs < abi->n_regs) {
        return split(a);
    }
    if (abi->closes) {
        a->regs = abi->n_regs;
    }
    return on_stack(a, c);
}

static GsPlace large(GsArgPlaces *a, const Class *c)
{
    static const Class address = { .size = WORD, .align = WORD };
    GsPlace place;

    if (!a->abi->by_address) {
        return on_stack(a, c);
    }
    place = assign(a, &address);
    place.by_address = true;
    return place;
}

GsPlace gs_arg_places_next(GsArgPlaces *a, uint32_t type)
{
    const GsPlace unknown = { .kind = GS_PLACE_UNKNOWN };
    const GsAbi *abi = a->abi;
    Class c;

    if (a->lost || !classify(a->rec, type, &c) || is_torn(abi, &c)) {
        a->lost = true;
        return unknown;
    }
    if (!c.size) {
        return (GsPlace) { .kind = GS_PLACE_NONE };
    }
    if (in_float_regs(abi, &c)) {
        a->floats += c.n_floats;
        a->lost = a->floats > FLOAT_REGS;
        return unknown;
    }
    return is_large(abi, &c) ? large(a, &c) : assign(a, &c);
}

/* ---- results ---- */

static GsPlace large_result(GsArgPlaces *a)
{
    const GsAbi *abi = a->abi;
    const GsPlace address = {
        .kind = GS_PLACE_REGISTERS, .by_address = true, .words = 1,
        .reg = { GS_REG_RESULT },
    };

    a->regs += abi->hidden;
    return abi->returned ? address : (GsPlace) { .kind = GS_PLACE_UNKNOWN };
}

static bool is_void(const GsBtfRecords *r, uint32_t id)
{
    GsBtfType t;

    return !gs_btf_real(r, &id, &t) && !id;
}

GsPlace gs_arg_places_init(GsArgPlaces *a, const GsAbi *abi,
                           const GsBtfRecords *rec, uint32_t result)
{
    const GsPlace unknown = { .kind = GS_PLACE_UNKNOWN };
    Class c;

    *a = (GsArgPlaces) {
        .abi = abi, .rec = rec, .stack = abi->stack,
    };
    if (is_void(rec, result)) {
        return (GsPlace) { .kind = GS_PLACE_NONE };
    }
    if (!classify(rec, result, &c)) {
        a->lost = true;
        return unknown;
    }
    if (!c.size) {
        return (GsPlace) { .kind = GS_PLACE_NONE };
    }
    if (in_float_regs(abi, &c) || is_torn(abi, &c)) {
        return unknown;
    }
    if (is_large(abi, &c)) {
        return large_result(a);
    }
    return (GsPlace) {
        .kind = GS_PLACE_REGISTERS, .words = (c.size + WORD - 1) / WORD,
        .reg = { GS_REG_RESULT, abi->second },
    };
}
