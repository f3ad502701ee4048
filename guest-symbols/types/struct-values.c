/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of the members of a copied object, as rows: see struct-walk.c. value.c
 * makes the text of one value. An array of numbers or pointers becomes
 *
 *     fd[3..63] 0x0            elements that are equal
 *     comm "bash"              characters, up to the first NUL
 *     words {1,2,7}            up to CHUNK small numbers
 *     ptr[2] 0xffff...         others one by one
 */
#include "guest-symbols/types/types-internal.h"
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/value.h"

#include <inttypes.h>

#define CHUNK       16          /* small numbers in a row */
#define RUN         8           /* so many equal ones get a row of their own */
#define WORD        8           /* bytes of an address */

/* ---- bytes -------------------------------------------------------------- */

static bool is_zero(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i]) {
            return false;
        }
    }
    return true;
}

static unsigned page_of(const GsObject *o, uint64_t at)
{
    return (o->va % GS_STRUCT_PAGE + at) / GS_STRUCT_PAGE;
}

/* Could the bytes be read? They are in the object. */
static bool is_known(const GsObject *o, uint64_t at, uint64_t len)
{
    unsigned last = page_of(o, at + MAX(len, 1) - 1);

    for (unsigned page = page_of(o, at); o->missing && page <= last; page++) {
        if (page < 32 && o->missing >> page & 1) {
            return false;
        }
    }
    return true;
}

static bool is_there(const GsObject *o, uint64_t at, uint64_t len)
{
    return at <= o->len && len <= o->len - at;
}

uint32_t gs_rows_equal(const GsRows *x, uint64_t at, uint32_t size, uint32_t n)
{
    const GsObject *o = x->plan->object;
    const uint8_t *first = o->bytes + at;
    uint32_t run = 1;

    if (!size) {
        return n;
    }
    n = MIN(n, (o->len - at) / size);
    while (run < n &&
           !memcmp(first, first + (uint64_t)run * size, size) &&
           is_known(o, at, size) ==
           is_known(o, at + (uint64_t)run * size, size)) {
        run++;
    }
    return run;
}

/* ---- rows --------------------------------------------------------------- */

/* Hand over a row whose text is in x->value. */
static void add_value(GsRows *x, GsMember *m, bool zero)
{
    if (!m->known) {
        g_string_assign(x->value, "?");
        m->has_number = false;
        m->n_words = 0;
        x->sum.unknown++;
    } else if (zero && !x->plan->zeros) {
        x->sum.cut |= x->sum.shown + x->sum.zeros == GS_STRUCT_MEMBERS;
        x->sum.zeros += !x->sum.cut;
        return;
    }
    m->value = x->value->str;
    gs_rows_add(x, m);
}

static GsLeaf leaf_of(const GsRows *x, uint32_t type, uint64_t bit,
                      uint32_t bits, uint32_t size)
{
    return (GsLeaf) {
        .type = type, .name = x->name, .bit = bit, .bits = bits, .size = size,
        .names = gs_value_names(x->btf, type), .hex = x->plan->hex,
    };
}

/* Words of 8 bytes may be addresses, also if they are numbers by their type. */
static void set_word(const GsRows *x, const GsLeaf *leaf, GsMember *m)
{
    GsValueKind kind = gs_value_kind(x->btf, leaf->type);

    if (m->has_number && !leaf->bits && leaf->size == WORD &&
        (kind == GS_VALUE_POINTER || kind == GS_VALUE_UNSIGNED ||
         kind == GS_VALUE_SIGNED)) {
        m->n_words = 1;
        m->word[0] = m->number;
    }
}

/* Set number, word and text of a value without parts. */
static void set_leaf(GsRows *x, const GsLeaf *leaf, GsMember *m)
{
    const GsObject *o = x->plan->object;

    m->has_number = gs_value_number(x->btf, leaf, o->bytes, o->len,
                                    &m->number);
    set_word(x, leaf, m);
    gs_value_print_leaf(x->value, x->btf, leaf, o->bytes, o->len);
}

/* ---- lists, and structs in one row --------------------------------------- */

/* A list whose head points to itself is empty. */
static void set_list(GsRows *x, uint64_t at, GsMember *m)
{
    const GsObject *o = x->plan->object;
    uint64_t next = gs_u64_at(o->bytes + at);
    uint64_t prev = gs_u64_at(o->bytes + at + WORD);

    if (next == o->va + at && prev == next) {
        g_string_append(x->value, "empty");
        return;
    }
    m->n_words = 2;
    m->word[0] = next;
    m->word[1] = prev;
    g_string_append_printf(x->value, "0x%" PRIx64 " 0x%" PRIx64, next, prev);
}

static void set_parts(GsRows *x, const GsTypeStep *s, uint64_t at,
                      GsMember *m)
{
    const GsObject *o = x->plan->object;
    GsLeaf leaf = leaf_of(x, s->type, 0, 0, s->size);

    if (gs_rows_is_list(x, s)) {
        set_list(x, at, m);
    } else {
        gs_value_print(x->value, x->btf, &leaf, o->bytes + at, o->len - at);
    }
}

/* ---- one value ----------------------------------------------------------- */

static bool has_parts(const GsTypeStep *s)
{
    return !s->bits && (gs_btf_is_composite(&s->real) ||
                        s->real.kind == GS_BTF_ARRAY);
}

static void add_one(GsRows *x, const GsTypeStep *s)
{
    const GsObject *o = x->plan->object;
    uint64_t bit = s->bit + x->s->bit, at = bit / 8;
    uint64_t len = s->bits ? (bit % 8 + s->bits + 7) / 8 : s->size;
    GsMember m = gs_rows_member(x, s);
    GsLeaf leaf = leaf_of(x, s->type, bit, MIN(s->bits, 64), s->size);

    if (!is_there(o, at, len)) {
        x->sum.behind++;
        return;
    }
    m.known = is_known(o, at, len);
    if (has_parts(s)) {
        set_parts(x, s, at, &m);
    } else {
        set_leaf(x, &leaf, &m);
    }
    add_value(x, &m, s->bits ? m.has_number && !m.number :
                               is_zero(o->bytes + at, len));
}

/* ---- arrays -------------------------------------------------------------- */

/* @at: where its elements are; @n: how many, @size: bytes of each */
typedef struct Elements {
    const GsTypeStep *s;
    uint32_t type, size, n;
    uint64_t at;
} Elements;

static void add_text(GsRows *x, const Elements *e)
{
    const GsObject *o = x->plan->object;
    uint64_t there = e->at < o->len ? MIN(e->n, o->len - e->at) : 0;
    GsMember m = gs_rows_member(x, e->s);
    GsLeaf leaf = leaf_of(x, e->s->type, 0, 0, e->s->size);

    if (!there) {
        x->sum.behind += e->n > 0;
        return;
    }
    m.known = is_known(o, e->at, there);
    if (e->s->size && there == e->n) {
        gs_value_print(x->value, x->btf, &leaf, o->bytes + e->at, there);
    } else {
        gs_value_print_text(x->value, o->bytes + e->at, there);
    }
    add_value(x, &m, is_zero(o->bytes + e->at, there));
}

/* Count the elements of one row from @i on. *@equal: it stands for equal
 * ones */
static uint32_t row_of(const GsRows *x, const Elements *e, uint32_t i,
                       bool *equal)
{
    uint64_t at = e->at + (uint64_t)i * e->size;
    uint32_t run = gs_rows_equal(x, at, e->size, e->n - i), n = 1;
    uint32_t there = (x->plan->object->len - at) / e->size;

    *equal = run >= RUN || e->size >= WORD || e->n <= run;
    if (*equal) {
        return run;
    }
    while (n < CHUNK && n < MIN(there, e->n - i) &&
           gs_rows_equal(x, at + (uint64_t)n * e->size, e->size,
                         MIN(e->n - i - n, RUN)) < RUN) {
        n++;
    }
    *equal = n == 1;
    return n;
}

static void print_elements(GsRows *x, const Elements *e, uint32_t i,
                           uint32_t n)
{
    const GsObject *o = x->plan->object;

    g_string_append_c(x->value, '{');
    for (uint32_t end = i + n; i < end; i++) {
        GsLeaf leaf = leaf_of(x, e->type,
                              (e->at + (uint64_t)i * e->size) * 8, 0, e->size);

        gs_value_print_leaf(x->value, x->btf, &leaf, o->bytes, o->len);
        g_string_append_c(x->value, i + 1 < end ? ',' : '}');
    }
}

/* Make the row of elements @i to @i + @n - 1. */
static void add_elements(GsRows *x, const Elements *e, uint32_t i, uint32_t n,
                         bool equal)
{
    const GsObject *o = x->plan->object;
    uint64_t at = e->at + (uint64_t)i * e->size;
    size_t path_len = x->path->len;
    GsTypeStep s = *e->s;
    GsLeaf leaf;
    GsMember m;

    g_string_truncate(x->value, 0);
    if (equal || n != e->n) {
        gs_rows_index(x, i, n);
    }
    s.bit = at * 8;
    s.type = equal ? e->type : s.type;
    s.size = equal ? e->size : n * e->size;
    leaf = leaf_of(x, e->type, at * 8, 0, e->size);
    m = gs_rows_member(x, &s);
    m.known = is_known(o, at, (uint64_t)n * e->size);
    if (equal) {
        set_leaf(x, &leaf, &m);
    } else {
        print_elements(x, e, i, n);
    }
    add_value(x, &m, is_zero(o->bytes + at, (uint64_t)n * e->size));
    g_string_truncate(x->path, path_len);
}

static void add_array(GsRows *x, const Elements *e)
{
    const GsObject *o = x->plan->object;

    for (uint32_t i = 0, n; i < e->n && e->size && !x->sum.cut; i += n) {
        bool equal;

        if (!is_there(o, e->at + (uint64_t)i * e->size, e->size)) {
            x->sum.behind++;
            return;
        }
        n = row_of(x, e, i, &equal);
        add_elements(x, e, i, n, equal);
    }
}

static uint32_t element_type(const GsTypeStep *s)
{
    return gs_btf_word(&s->real, 0);
}

bool gs_rows_is_scalars(const GsRows *x, const GsTypeStep *s)
{
    uint32_t id = element_type(s);
    GsBtfType t;

    return s->real.kind == GS_BTF_ARRAY &&
           !(gs_btf_real(x->rec, &id, &t) &&
             (gs_btf_is_composite(&t) || t.kind == GS_BTF_ARRAY));
}

void gs_rows_value(GsRows *x, const GsTypeStep *s)
{
    const GsWalkFrame *f;
    Elements e;

    g_string_truncate(x->value, 0);
    if (s->kind != GS_STEP_ENTER || !gs_rows_is_scalars(x, s)) {
        add_one(x, s);
        return;
    }
    f = &x->w.frame[x->w.depth - 1];
    e = (Elements) {
        .s = s, .type = element_type(s), .size = f->size, .n = f->n,
        .at = s->bit / 8,
    };
    if (gs_value_is_char(x->btf, e.type)) {
        add_text(x, &e);
    } else {
        add_array(x, &e);
    }
}
