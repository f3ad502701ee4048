/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walk over the members of a part of a struct, as rows: see gs-structs.h. The
 * steps are those of a GsTypeWalk, so nothing recurses; here each step becomes
 * a row, or is skipped:
 *
 *     struct, union        opened: its members are rows. Closed, one row, if it
 *                          is deeper than the plan says; a list_head always is
 *     array of structs     definition: its first element is opened
 *                          values: equal elements are one
 *     other array          definition: one row
 *                          values: see struct-values.c
 */
#include "guest-symbols/types/types-internal.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/value.h"

#define STEPS_MAX   (8u * GS_STRUCT_MEMBERS)
#define LIST_HEAD   16          /* bytes of a struct list_head */

/* ---- rows --------------------------------------------------------------- */

/* Are there structs in unions, on the way to the current step? The frame of the
 * step itself does not count. */
static bool in_union(const GsRows *x, const GsTypeStep *s)
{
    unsigned n = x->w.depth - (s->kind == GS_STEP_ENTER);

    for (unsigned i = 0; i < n; i++) {
        if (x->w.frame[i].type.kind == GS_BTF_UNION) {
            return true;
        }
    }
    return false;
}

GsMember gs_rows_member(GsRows *x, const GsTypeStep *s)
{
    uint64_t bit = s->bit + x->s->bit;

    g_string_truncate(x->type, 0);
    gs_type_declare(x->type, x->rec, s->type,
                    x->plan->declare ? x->name : NULL);
    return (GsMember) {
        .path = x->path->str, .name = x->name, .type = x->type->str,
        .offset = MIN(x->s->at.offset + bit / 8, UINT32_MAX),
        .bit = s->bits ? bit % 8 : 0, .bits = MIN(s->bits, UINT8_MAX),
        .size = s->size, .overlaps = in_union(x, s), .level = x->anonymous,
    };
}

void gs_rows_add(GsRows *x, const GsMember *m)
{
    if (x->sum.shown + x->sum.zeros == GS_STRUCT_MEMBERS) {
        x->sum.cut = true;
        return;
    }
    x->sum.shown += m->kind == GS_MEMBER_VALUE;
    x->fn(m, x->opaque);
}

static void add_row(GsRows *x, const GsTypeStep *s, GsMemberKind kind)
{
    GsMember m = gs_rows_member(x, s);

    m.kind = kind;
    gs_rows_add(x, &m);
}

/* ---- paths -------------------------------------------------------------- */

/* Return true if the step is an element of an array. */
static bool is_element(const GsRows *x, const GsTypeStep *s)
{
    const GsWalkFrame *outer = gs_type_walk_outer(&x->w, s);

    return outer && outer->type.kind == GS_BTF_ARRAY;
}

/* The part itself has a name already, and an element that of its array. */
static void append_name(GsRows *x, const GsTypeStep *s)
{
    if (!gs_type_walk_outer(&x->w, s) || is_element(x, s)) {
        return;
    }
    x->name = s->name;
    if (*s->name) {
        g_string_append_printf(x->path, "%s%.*s", x->path->len ? "." : "",
                               GS_TYPE_NAME_MAX, s->name);
    }
}

/* Append the index of an element. @n: it stands for so many */
void gs_rows_index(GsRows *x, uint32_t i, uint32_t n)
{
    if (n == 1) {
        g_string_append_printf(x->path, "[%u]", i);
    } else {
        g_string_append_printf(x->path, "[%u..%u]", i, i + n - 1);
    }
}

/* ---- elements that are structs ------------------------------------------ */

/* Return false if the object ends before the element; then the rest of the
 * array is passed. */
static bool visit_element(GsRows *x, const GsTypeStep *s)
{
    const GsWalkFrame *outer = gs_type_walk_outer(&x->w, s);
    uint32_t left = outer->n - s->index, run = left;
    const GsObject *o = x->plan->object;

    if (o) {
        if (s->bit / 8 + outer->size > o->len) {
            x->sum.behind++;
            gs_type_walk_pass(&x->w, s, left);
            return false;
        }
        run = gs_rows_equal(x, s->bit / 8, outer->size, left);
    }
    gs_type_walk_pass(&x->w, s, run - 1);
    gs_rows_index(x, s->index, o ? run : 1);
    return true;
}

/* ---- steps -------------------------------------------------------------- */

/* Return true for an array whose innermost elements are structs. */
static bool holds_structs(const GsRows *x, const GsTypeStep *s)
{
    uint32_t id = s->type;
    GsBtfType t;

    for (unsigned i = 0; i < GS_WALK_DEPTH && gs_btf_real(x->rec, &id, &t);
         i++) {
        if (t.kind != GS_BTF_ARRAY) {
            return gs_btf_is_composite(&t);
        }
        id = gs_btf_word(&t, 0);
    }
    return false;
}

bool gs_rows_is_list(const GsRows *x, const GsTypeStep *s)
{
    return s->real.kind == GS_BTF_STRUCT && s->size == LIST_HEAD &&
           s->real.vlen == 2 &&
           !strcmp(gs_btf_name(x->rec, s->real.name), "list_head");
}

/* An array is opened whole: of characters or numbers by struct-values.c. */
static bool is_opened_array(const GsRows *x, const GsTypeStep *s)
{
    return x->plan->object ? !gs_rows_is_scalars(x, s) : holds_structs(x, s);
}

static bool is_root(const GsRows *x)
{
    return x->w.depth == 1;
}

/* May what was entered be opened? What has no name counts as part of what it
 * is in. */
static bool is_open(const GsRows *x, const GsTypeStep *s)
{
    bool named = *s->name, deeper = named && !is_root(x);

    if (gs_rows_is_list(x, s) && !is_root(x)) {
        return false;
    }
    if (s->real.kind == GS_BTF_ARRAY && !is_opened_array(x, s)) {
        return false;
    }
    return !deeper || !x->plan->depth || x->level + 1 < x->plan->depth;
}

static void open_part(GsRows *x, const GsTypeStep *s, bool element)
{
    if (!x->plan->object && !is_root(x) && !element) {
        add_row(x, s, GS_MEMBER_OPEN);
    }
    x->level += *s->name && !is_root(x);
    x->anonymous += !*s->name && !is_root(x) && !element;
}

static void close_part(GsRows *x)
{
    const GsRowsBefore *b = &x->before[x->w.depth];

    if (!x->plan->object && b->opened) {
        x->fn(&(GsMember) {
            .kind = GS_MEMBER_CLOSE, .path = "", .name = b->name, .type = "",
            .level = b->anonymous,
        }, x->opaque);
    }
    g_string_truncate(x->path, b->path_len);
    x->level = b->level;
    x->anonymous = b->anonymous;
}

static void end_part(GsRows *x, const GsTypeStep *s)
{
    if (x->plan->object) {
        gs_rows_value(x, s);
    } else {
        add_row(x, s, GS_MEMBER_VALUE);
    }
}

/* Visit a part: a row, or the begin of rows. */
static void on_part(GsRows *x, const GsTypeStep *s)
{
    bool entered = s->kind == GS_STEP_ENTER, element = is_element(x, s);
    GsRowsBefore before = {
        .path_len = x->path->len, .level = x->level,
        .anonymous = x->anonymous,
    };

    append_name(x, s);
    before.name = x->name;
    before.opened = !element && x->w.depth > 1;
    if (element && !visit_element(x, s)) {
        entered = false;
        if (s->kind == GS_STEP_ENTER) {
            gs_type_walk_skip(&x->w);
        }
    } else if (!entered || !is_open(x, s)) {
        end_part(x, s);
        if (entered) {
            gs_type_walk_skip(&x->w);
        }
        entered = false;
    }
    if (entered) {
        x->before[x->w.depth - 1] = before;
        open_part(x, s, element);
    } else {
        g_string_truncate(x->path, before.path_len);
    }
}

/* ---- the walk ----------------------------------------------------------- */

static void rows_init(GsRows *x, const GsStruct *s, const GsStructPlan *plan)
{
    *x = (GsRows) {
        .s = s, .plan = plan, .btf = s->btf, .rec = gs_btf_records(s->btf),
        .path = g_string_new(s->path), .type = g_string_new(NULL),
        .value = g_string_new(NULL), .name = s->name,
    };
    gs_type_walk_init(&x->w, x->rec, s->id, STEPS_MAX);
    x->w.end = plan->object ? plan->object->len : 0;
}

GsStructSum gs_struct_walk(const GsStruct *s, const GsStructPlan *plan,
                           GsMemberFn fn, void *opaque)
{
    GsTypeStep step;
    GsRows x;

    rows_init(&x, s, plan);
    x.fn = fn;
    x.opaque = opaque;
    while (!x.sum.cut && gs_type_walk_next(&x.w, &step)) {
        if (step.kind == GS_STEP_LEAVE) {
            close_part(&x);
        } else {
            /* The part itself may be a bit field. */
            step.bits = x.w.depth || step.kind == GS_STEP_ENTER ? step.bits :
                        MAX(step.bits, s->bits);
            on_part(&x, &step);
        }
    }
    x.sum.cut |= !x.w.steps;
    g_string_free(x.path, TRUE);
    g_string_free(x.type, TRUE);
    g_string_free(x.value, TRUE);
    return x.sum;
}

/* Arrays of other structs are passed: only their last element is at the end. */
bool gs_struct_is_open(const GsStruct *s)
{
    GsTypeStep step;
    GsTypeWalk w;

    gs_type_walk_init(&w, gs_btf_records(s->btf), s->id, STEPS_MAX);
    while (!s->bits && gs_type_walk_next(&w, &step)) {
        const GsWalkFrame *outer;

        if (step.kind == GS_STEP_LEAVE) {
            continue;
        }
        outer = gs_type_walk_outer(&w, &step);
        if (outer && outer->type.kind == GS_BTF_ARRAY) {
            gs_type_walk_pass(&w, &step, UINT32_MAX);
        }
        if (step.kind == GS_STEP_ENTER && step.real.kind == GS_BTF_ARRAY &&
            !gs_btf_word(&step.real, 2) && w.frame[w.depth - 1].size) {
            w.depth--;
            if (gs_type_walk_at_end(&w)) {
                return true;
            }
            w.depth++;
        }
    }
    return false;
}
