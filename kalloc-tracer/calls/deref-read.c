/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of --deref in a call record: see deref-plan.h. */
#include "kalloc-tracer/calls/deref-plan.h"

#include <string.h>

#define HEAD_BYTES      2u      /* the number of the plan */
#define NULL_LEN        0xfeu
#define UNREADABLE_LEN  0xffu
#define PAGE            4096u   /* of the smallest pages */

G_STATIC_ASSERT(KT_DEREF_VALUE_MAX < NULL_LEN);

/* ---- reading guest memory ------------------------------------------------ */

static bool read_at(const KtCallFacts *f, uint64_t va, void *buf, size_t len)
{
    return f->ops->read(f->opaque, va, buf, len);
}

static bool read_pointer(const KtCallFacts *f, uint64_t va, uint64_t *out)
{
    uint64_t word;
    bool known = read_at(f, va, &word, sizeof(word));

    *out = known ? GUINT64_FROM_LE(word) : 0;
    return known;
}

static bool find_base(const KtCallFacts *f, uint32_t param, uint64_t *out)
{
    int64_t value = f->call->result;
    bool known = param == GS_DEREF_RESULT || kt_call_arg(f, param, &value);

    *out = value;
    return known;
}

/* Find where the value of an expression is; the value itself if no pointer is
 * followed. */
static bool find_place(const KtCallFacts *f, const GsDerefAt *at,
                       uint64_t *out)
{
    bool known = find_base(f, at->param, out);

    for (unsigned i = 0; known && i < at->n; i++) {
        known = !i || read_pointer(f, *out, out);
        *out += at->offset[i];
    }
    return known;
}

/* Read a text, up to its NUL, the end of what is mapped, or the limit. Return
 * its bytes. */
static unsigned read_text(const KtCallFacts *f, uint64_t va, uint8_t *to)
{
    unsigned first = MIN(KT_DEREF_TEXT_MAX, PAGE - va % PAGE);
    unsigned len = read_at(f, va, to, first) ? first : 0;
    const uint8_t *end = len ? memchr(to, 0, len) : NULL;

    if (len && !end && len < KT_DEREF_TEXT_MAX &&
        read_at(f, va + len, to + len, KT_DEREF_TEXT_MAX - len)) {
        len = KT_DEREF_TEXT_MAX;
        end = memchr(to, 0, len);
    }
    return end ? end + 1 - to : len;
}

/* Read a value to @to. Return its length byte. */
static uint8_t read_value(const GsDeref *d, const KtCallFacts *f, uint8_t *to)
{
    const GsDerefAt *at = gs_deref_at(d);
    const GsParam *value = gs_deref_value(d);
    uint64_t va;
    unsigned len;

    if (!find_place(f, at, &va) ||
        (value->is_text && at->n && !read_pointer(f, va, &va))) {
        return UNREADABLE_LEN;
    }
    if (!value->is_text) {
        return read_at(f, va, to, value->size) ? value->size : UNREADABLE_LEN;
    }
    len = va ? read_text(f, va, to) : 0;
    return !va ? NULL_LEN : len ? len : UNREADABLE_LEN;
}

/* Append the values of the expressions from @i to @end. */
static unsigned read_values(const KtDerefPlan *p, unsigned i, unsigned end,
                            const KtCallFacts *f, uint8_t *extra,
                            uint16_t *n_extra)
{
    unsigned unreadable = 0;

    for (; i < end; i++) {
        uint8_t len = read_value(p->at[i], f, extra + *n_extra + 1);

        extra[*n_extra] = len;
        *n_extra += 1 + (len < NULL_LEN ? len : 0);
        unreadable += len == UNREADABLE_LEN;
    }
    return unreadable;
}

unsigned kt_deref_read_entry(const KtDerefPlan *p, const KtCallFacts *f,
                             uint8_t *extra, uint16_t *n_extra)
{
    extra[0] = p->id;
    extra[1] = p->id >> 8;
    *n_extra = HEAD_BYTES;
    return read_values(p, 0, p->n_entry, f, extra, n_extra);
}

unsigned kt_deref_read_return(const KtDerefPlan *p, const KtCallFacts *f,
                              uint8_t *extra, uint16_t *n_extra)
{
    if (*n_extra < HEAD_BYTES || extra[0] != (uint8_t)p->id ||
        extra[1] != p->id >> 8) {
        return 0;
    }
    return read_values(p, p->n_entry, p->n, f, extra, n_extra);
}

/* ---- reading records ----------------------------------------------------- */

uint16_t kt_deref_plan_of(const KtCallView *v)
{
    return v->call->n_extra < HEAD_BYTES ||
           v->call->flags & (KT_CALL_BEGIN | KT_CALL_END) ?
               0 : v->extra[0] | v->extra[1] << 8;
}

void kt_deref_foreach(const KtDerefPlan *p, const KtCallView *v,
                      KtCallDerefFn fn, void *opaque)
{
    GsBytes in = gs_bytes(v->extra, v->call->n_extra);

    gs_bytes_take(&in, HEAD_BYTES);
    for (unsigned i = 0; i < p->n && gs_bytes_left(&in); i++) {
        uint8_t len = gs_bytes_u8(&in);
        KtCallDeref value = {
            .expr = p->at[i], .of_result = i >= p->n_entry,
            .state = len == NULL_LEN ? KT_DEREF_NULL :
                     len == UNREADABLE_LEN ? KT_DEREF_UNREADABLE :
                                             KT_DEREF_KNOWN,
        };

        if (value.state == KT_DEREF_KNOWN) {
            value.bytes = gs_bytes_take(&in, len);
            value.len = len;
        }
        if (!in.failed) {
            fn(opaque, &value);
        }
    }
}
