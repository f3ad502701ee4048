/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of types/ share, each in a section by its name. */
#ifndef GS_TYPES_INTERNAL_H
#define GS_TYPES_INTERNAL_H

#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/struct-place.h"
#include "guest-symbols/api/gs-values.h"

/* ---- functions by name --------------------------------------------------- */

/*
 * The functions of a .BTF section by name: the ids of its FUNC records, sorted
 * by name. A kernel has some 47,000; several may have one name. If the types
 * continue others, only those of their own are here.
 *
 * Does not change once made: any thread, no lock.
 */

typedef struct GsBtfFunctions GsBtfFunctions;

/** gs_btf_functions_new() - sort the functions of @r (borrowed while the index
 *  is used). */
GsBtfFunctions *gs_btf_functions_new(const GsBtfRecords *r);
void gs_btf_functions_free(GsBtfFunctions *f);
/** gs_btf_functions_find() - (borrowed) return the ids of the @n functions with
 *  that name, in the order of the section; NULL if there is none. */
const uint32_t *gs_btf_functions_find(const GsBtfFunctions *f,
                                      const char *name, unsigned *n);

/* ---- types of modules ---------------------------------------------------- */

/*
 * Types of a module: a .BTF section that continues the kernel's.
 *
 *     kernel   types 1 ... n-1         names at 0 ... len-1
 *     module   types n, n+1, ...       names at len, len+1, ...
 *
 * A module that is built elsewhere continues a small base of its own, its
 * section .BTF.base (since 6.11): names and sizes of the types of the kernel
 * that it uses. Its types are relocated: each type of the small base becomes
 * the type of the kernel with that name and size.
 */

/**
 * gs_btf_relocate() - let a module's types continue the kernel's
 * @split: continues @small
 * @small: records of its section .BTF.base
 * @base: (borrowed while @split is used) the kernel's
 *
 * @split is changed, and no longer needs @small.
 * Returns: false with GS_ERROR_FORMAT if the kernel has no such types.
 */
bool gs_btf_relocate(GsBtfRecords *split, const GsBtfRecords *small,
                     const GsBtfRecords *base, GError **errp);

/* ---- writing ------------------------------------------------------------- */

/*
 * Writes a .BTF section, record by record. dwarf-types.c is its user. A record
 * can be referred to before it is written: reserve its id first. One thread.
 */

typedef struct GsBtfWriter GsBtfWriter;

GsBtfWriter *gs_btf_writer_new(void);
void gs_btf_writer_free(GsBtfWriter *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsBtfWriter, gs_btf_writer_free)

/** gs_btf_writer_name() - return the offset of a name in the section, which
 *  has each name once. @name: (nullable) NULL is "" */
uint32_t gs_btf_writer_name(GsBtfWriter *w, const char *name);
/** gs_btf_writer_reserve() - return the id of a record that is written later.
 *  If it is not, it becomes a forward declaration without a name. */
uint32_t gs_btf_writer_reserve(GsBtfWriter *w);
/** gs_btf_writer_set() - write record @id. @info: gs_btf_info() of kind and
 *  elements; @more, @n: words that follow */
void gs_btf_writer_set(GsBtfWriter *w, uint32_t id, uint32_t name,
                       uint32_t info, uint32_t word, const uint32_t *more,
                       size_t n);
/** gs_btf_writer_add() - reserve an id and write its record. */
uint32_t gs_btf_writer_add(GsBtfWriter *w, uint32_t name, uint32_t info,
                           uint32_t word, const uint32_t *more, size_t n);
/** gs_btf_writer_bytes() - return the bytes that were written so far. */
size_t gs_btf_writer_bytes(const GsBtfWriter *w);
/** gs_btf_writer_end() - (owned) return the section. */
GByteArray *gs_btf_writer_end(GsBtfWriter *w);

/* ---- names of types ------------------------------------------------------ */

/*
 * Names of types as C writes them: "const char *", "struct page *[4]". Any
 * thread.
 */

#define GS_TYPE_NAME_MAX 128    /* bytes, with the NUL */

/**
 * gs_type_declare() - append the declaration of @name with type @id: "char
 * buf[16]"
 * @name: (nullable) NULL: only the type
 *
 * The parameters of functions that a pointer leads to are not printed: "int
 * (*fn)(...)". Text that is not printable becomes '?'; the type is cut at
 * GS_TYPE_NAME_MAX. A chain of types that does not end becomes "?".
 */
void gs_type_declare(GString *to, const GsBtfRecords *r, uint32_t id,
                     const char *name);

/* ---- parts of a type ----------------------------------------------------- */

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

/* ---- rows of members ----------------------------------------------------- */

/*
 * State of a walk over the members of a struct, shared by struct-walk.c and
 * struct-values.c. On the stack of gs_struct_walk(); one thread.
 */

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

/** gs_rows_is_list() - is the step a struct list_head? */
bool gs_rows_is_list(const GsRows *x, const GsTypeStep *s);
/** gs_rows_is_scalars() - is the step an array that gs_rows_value() prints? */
bool gs_rows_is_scalars(const GsRows *x, const GsTypeStep *s);
/** gs_rows_equal() - count the elements of @size bytes from @at on, @n at most,
 *  that are equal to the first. */
uint32_t gs_rows_equal(const GsRows *x, uint64_t at, uint32_t size,
                       uint32_t n);
/** gs_rows_value() - make the rows of a part that is not opened. */
void gs_rows_value(GsRows *x, const GsTypeStep *s);

/* ---- names of numbers ---------------------------------------------------- */

/*
 * Names of numbers: error numbers, capabilities, and the bits of gfp_t. The
 * tables are in number-names.def. Any thread.
 */

/** struct GsGfpNames - names of the bits of gfp_t in one kernel; "" if a bit
 *  has none */
typedef struct GsGfpNames {
    char bit[32][24];
} GsGfpNames;

/** gs_gfp_names_new() - read enum ___GFP_*_BIT (6.10 and later), or use the
 *  table. Returns: (owned, g_free) */
GsGfpNames *gs_gfp_names_new(const GsBtfRecords *r);
/** gs_gfp_print() - append the names of flags: "GFP_KERNEL|ZERO|0x80000000";
 *  nothing for 0. */
void gs_gfp_print(GString *to, const GsGfpNames *names, uint32_t flags);

#endif /* GS_TYPES_INTERNAL_H */
