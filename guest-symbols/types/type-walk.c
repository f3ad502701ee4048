/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walk over the parts of a type, see types-internal.h. */
#include "guest-symbols/types/types-internal.h"

void gs_type_walk_init(GsTypeWalk *w, const GsBtfRecords *rec, uint32_t id,
                       unsigned steps)
{
    w->rec = rec;
    w->steps = steps;
    w->end = 0;
    w->depth = 0;
    w->first = id;
    w->begun = false;
}

/* Set what is known of a part by its type. Its name, index and place are
 * set. */
static void set_type(const GsTypeWalk *w, GsTypeStep *s)
{
    uint32_t id = s->type;

    if (!gs_btf_real(w->rec, &id, &s->real)) {
        s->real = (GsBtfType) { 0 };
    }
    if (!gs_btf_size(w->rec, s->type, &s->size)) {
        s->size = 0;
    }
}

bool gs_type_walk_at_end(const GsTypeWalk *w)
{
    for (unsigned i = 0; i < w->depth; i++) {
        const GsWalkFrame *f = &w->frame[i];

        if (f->type.kind != GS_BTF_UNION && f->next != f->n) {
            return false;
        }
    }
    return true;
}

static void set_elements(const GsTypeWalk *w, GsWalkFrame *f)
{
    uint32_t element = gs_btf_word(&f->type, 0);
    bool has_size = gs_btf_size(w->rec, element, &f->size);

    f->n = has_size ? gs_btf_word(&f->type, 2) : 0;
    if (!f->n && has_size && f->size && w->end > f->bit / 8 &&
        gs_type_walk_at_end(w)) {
        f->n = MIN((w->end - f->bit / 8) / f->size, UINT32_MAX);
    }
}

static void push(GsTypeWalk *w, const GsTypeStep *s)
{
    GsWalkFrame f = { .type = s->real, .bit = s->bit, .n = s->real.vlen };

    if (s->real.kind == GS_BTF_ARRAY) {
        set_elements(w, &f);
    }
    w->frame[w->depth++] = f;
}

/* Visit a part: enter it if it has parts. */
static void visit(GsTypeWalk *w, GsTypeStep *s)
{
    set_type(w, s);
    s->kind = GS_STEP_LEAF;
    if (s->bits || !(gs_btf_is_composite(&s->real) ||
                     s->real.kind == GS_BTF_ARRAY)) {
        return;
    }
    s->kind = GS_STEP_DEEP;
    if (w->depth < GS_WALK_DEPTH) {
        s->kind = GS_STEP_ENTER;
        push(w, s);
    }
}

static GsTypeStep element(const GsWalkFrame *f)
{
    return (GsTypeStep) {
        .name = "", .index = f->next, .type = gs_btf_word(&f->type, 0),
        .bit = f->bit + (uint64_t)f->next * f->size * 8,
    };
}

static GsTypeStep member(const GsTypeWalk *w, const GsWalkFrame *f)
{
    GsBtfMember m = gs_btf_nth_member(&f->type, f->next);
    bool is_bits = gs_btf_is_bit_field(w->rec, &m);

    return (GsTypeStep) {
        .name = gs_btf_name(w->rec, m.name), .index = f->next,
        .type = m.type, .bit = f->bit + m.bit,
        .bits = is_bits ? MAX(m.bits, 1) : 0,
    };
}

static void next_part(GsTypeWalk *w, GsTypeStep *s)
{
    GsWalkFrame *f = &w->frame[w->depth - 1];

    if (f->next == f->n) {
        *s = (GsTypeStep) { .kind = GS_STEP_LEAVE, .name = "" };
        w->depth--;
        return;
    }
    *s = f->type.kind == GS_BTF_ARRAY ? element(f) : member(w, f);
    f->next++;
    visit(w, s);
}

bool gs_type_walk_next(GsTypeWalk *w, GsTypeStep *s)
{
    *s = (GsTypeStep) { .kind = GS_STEP_END, .name = "" };
    if (!w->steps || (w->begun && !w->depth)) {
        return false;
    }
    w->steps--;
    if (w->begun) {
        next_part(w, s);
    } else {
        w->begun = true;
        s->type = w->first;
        visit(w, s);
    }
    return true;
}

void gs_type_walk_skip(GsTypeWalk *w)
{
    w->depth--;
}

/* The frame of the part itself is the last one if the part was entered. */
static unsigned outer_depth(const GsTypeWalk *w, const GsTypeStep *s)
{
    return w->depth - (s->kind == GS_STEP_ENTER);
}

const GsWalkFrame *gs_type_walk_outer(const GsTypeWalk *w, const GsTypeStep *s)
{
    unsigned depth = outer_depth(w, s);

    return depth ? &w->frame[depth - 1] : NULL;
}

void gs_type_walk_pass(GsTypeWalk *w, const GsTypeStep *s, uint32_t n)
{
    GsWalkFrame *f = &w->frame[outer_depth(w, s) - 1];

    f->next += MIN(n, f->n - f->next);
}
