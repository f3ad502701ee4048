/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * State of a walk over the members of a struct, shared by struct-walk.c and
 * struct-values.c. On the stack of gs_struct_walk(); one thread.
 */
#ifndef GS_STRUCT_WALK_H
#define GS_STRUCT_WALK_H

#include "guest-symbols/types/struct-place.h"
#include "guest-symbols/types/type-walk.h"

/** struct GsRowsBefore - what was so before a part was entered. @opened: it has
 *  a row of its own, @name: its name */
typedef struct GsRowsBefore {
    size_t path_len;
    unsigned level, anonymous;
    const char *name;
    bool opened;
} GsRowsBefore;

/**
 * struct GsRows - a walk under way
 * @path, @type, @value: (owned) texts of the current row
 * @name: (borrowed) the last name in @path
 * @level: members with a name that were opened; @anonymous: those without
 */
typedef struct GsRows {
    const GsStruct *s;
    const GsStructPlan *plan;
    const GsBtf *btf;
    const GsBtfRecords *rec;
    GsTypeWalk w;
    GString *path, *type, *value;
    const char *name;
    unsigned level, anonymous;
    GsRowsBefore before[GS_WALK_DEPTH];
    GsStructSum sum;
    GsMemberFn fn;
    void *opaque;
} GsRows;

/** gs_rows_member() - make the row of a step; it borrows the texts of @x. */
GsMember gs_rows_member(GsRows *x, const GsTypeStep *s);
/** gs_rows_add() - hand over a row, unless there are too many. */
void gs_rows_add(GsRows *x, const GsMember *m);
/** gs_rows_index() - append [i], or [i..j] for @n elements, to the path. */
void gs_rows_index(GsRows *x, uint32_t i, uint32_t n);

/** gs_rows_is_scalars() - is the step an array that gs_rows_value() prints? */
bool gs_rows_is_scalars(const GsRows *x, const GsTypeStep *s);
/** gs_rows_equal() - count the elements of @size bytes from @at on, @n at most,
 *  that are equal to the first. */
uint32_t gs_rows_equal(const GsRows *x, uint64_t at, uint32_t size,
                       uint32_t n);
/** gs_rows_value() - make the rows of a part that is not opened. */
void gs_rows_value(GsRows *x, const GsTypeStep *s);

#endif /* GS_STRUCT_WALK_H */
