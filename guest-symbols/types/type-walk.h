/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walk over the parts of a type: members of structs and unions, elements of
 * arrays, in the order of their declaration. Iterative; depth and steps are
 * bounded, since a file may have types that contain themselves.
 *
 *     struct { int a; struct { int x; } b[2]; }
 *
 *     ENTER ""   LEAF ".a"   ENTER ".b"   ENTER "[0]"   LEAF ".x"   LEAVE
 *                                         ENTER "[1]"   LEAF ".x"   LEAVE
 *                            LEAVE   LEAVE   END
 */
#ifndef GS_TYPE_WALK_H
#define GS_TYPE_WALK_H

#include "guest-symbols/types/btf-records.h"

#define GS_WALK_DEPTH 16

typedef enum GsStepKind {
    GS_STEP_END,        /* of the walk */
    GS_STEP_LEAF,       /* a value that has no parts */
    GS_STEP_ENTER,      /* a struct, union or array; its parts follow */
    GS_STEP_LEAVE,      /* all parts of the last one that was entered */
    GS_STEP_DEEP,       /* a struct, union or array that is too deep */
} GsStepKind;

/**
 * struct GsTypeStep - a part of the type
 * @name: (borrowed from the records) "" for an element of an array, for a
 *        member without a name, and for the type itself
 * @index: number of the part in what it is in
 * @type: its type; @real: the same behind typedefs and qualifiers
 * @bit: where it is, from the start of the type; @bits: a bit field, else 0
 * @size: its bytes; 0: none, or unknown
 */
typedef struct GsTypeStep {
    GsStepKind kind;
    const char *name;
    uint32_t index;
    uint32_t type;
    GsBtfType real;
    uint64_t bit;
    uint32_t bits;
    uint32_t size;
} GsTypeStep;

/* A struct or array that was entered. @n, @next: its parts */
typedef struct GsWalkFrame {
    GsBtfType type;
    uint64_t bit;
    uint32_t n, next;
    uint32_t size;
} GsWalkFrame;

/**
 * struct GsTypeWalk - a walk under way
 * @rec: (borrowed)
 * @steps: how many may still be made; then the walk ends
 * @end: bytes of the object, 0: unknown. An array of unknown length at the end
 *       of the type has as many elements as fit. Set after gs_type_walk_init()
 */
typedef struct GsTypeWalk {
    const GsBtfRecords *rec;
    unsigned steps;
    uint64_t end;
    unsigned depth;
    uint32_t first;
    bool begun;
    GsWalkFrame frame[GS_WALK_DEPTH];
} GsTypeWalk;

/** gs_type_walk_init() - begin at type @id. @steps: at most so many */
void gs_type_walk_init(GsTypeWalk *w, const GsBtfRecords *rec, uint32_t id,
                       unsigned steps);
/** gs_type_walk_next() - make a step. Returns: false at the end, also if all
 *  steps are used up; then @steps is 0. */
bool gs_type_walk_next(GsTypeWalk *w, GsTypeStep *step);
/** gs_type_walk_skip() - do not visit the parts of what was just entered, nor
 *  leave it. */
void gs_type_walk_skip(GsTypeWalk *w);
/** gs_type_walk_pass() - do not visit the next @n elements behind @s, the
 *  element that was just visited. */
void gs_type_walk_pass(GsTypeWalk *w, const GsTypeStep *s, uint32_t n);
/** gs_type_walk_outer() - (borrowed, nullable) return what the part @s that was
 *  just visited is in. */
const GsWalkFrame *gs_type_walk_outer(const GsTypeWalk *w,
                                      const GsTypeStep *s);
/** gs_type_walk_at_end() - is what is visited now at the end of the type? Each
 *  member of a union is. */
bool gs_type_walk_at_end(const GsTypeWalk *w);

#endif /* GS_TYPE_WALK_H */
