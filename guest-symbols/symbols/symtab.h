/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbols of one kernel: by address and by name, in link-time addresses.
 *
 * Filled with gs_symtab_add(), sealed once, read-only from then on (any
 * thread, no lock). Internal to guest-symbols.
 */
#ifndef GS_SYMTAB_H
#define GS_SYMTAB_H

#include "guest-symbols/gs.h"
#include "guest-symbols/image/image.h"
#include "guest-symbols/symbols/name-codes.h"

typedef struct GsSymtab GsSymtab;

/* Bounds on untrusted tables: a distribution kernel has 150 000 to 250 000
 * symbols with 6 MB of names. */
#define GS_SYMBOLS_MAX      (4u << 20)
#define GS_SYMBOL_NAMES_MAX (256u << 20)

GsSymtab *gs_symtab_new(void);
/**
 * gs_symtab_new_coded() - one whose names are written already
 * @codes: (taken) in these codes
 * @names: (borrowed until it is sealed) and stand here
 */
GsSymtab *gs_symtab_new_coded(GsNameCodes *codes, const uint8_t *names);
void gs_symtab_free(GsSymtab *tab);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsSymtab, gs_symtab_free)

/**
 * gs_symtab_add() - one more symbol, in any order, before sealing
 * @name: (borrowed) need not be NUL-terminated
 * Returns: false when one of the bounds above is exceeded, or the name or the
 * type is not of visible ASCII characters.
 */
bool gs_symtab_add(GsSymtab *tab, uint64_t va, char type, const char *name,
                   size_t len);
/**
 * gs_symtab_add_coded() - the same of a table whose names are written already
 * @at: where in these, type letter and name begin: a length, and so many codes
 *      (see gs_codes_take()), all of them readable
 */
bool gs_symtab_add_coded(GsSymtab *tab, uint64_t va, size_t at);

/**
 * gs_symtab_seal() - sort, index and bound the symbols
 * @img: (nullable, borrowed for the call) its sections end the last symbol
 *       in each
 */
void gs_symtab_seal(GsSymtab *tab, const GsImage *img);

size_t gs_symtab_n(const GsSymtab *tab);

/** gs_symtab_bytes() - host memory that a sealed table takes. */
size_t gs_symtab_bytes(const GsSymtab *tab);

/** gs_symtab_n_unsorted() - how often an added symbol lay below the one
 *  added before it: the measure of a misread table. */
size_t gs_symtab_n_unsorted(const GsSymtab *tab);

/** gs_symtab_lookup() - rules as gs_kernel_lookup(), names without module. */
bool gs_symtab_lookup(const GsSymtab *tab, const char *name, GsSymbol *out);
unsigned gs_symtab_foreach_named(const GsSymtab *tab, const char *name,
                                 GsSymbolFn fn, void *opaque);

/** gs_symtab_foreach() - every row by address: @text is its type letter and
 *  name, @len bytes and a NUL. */
typedef void (*GsSymtabFn)(uint64_t va, const char *text, size_t len,
                           void *opaque);
void gs_symtab_foreach(const GsSymtab *tab, GsSymtabFn fn, void *opaque);

/** gs_symtab_set_low() - addresses from @va up can be a symbol's, too, not
 *  only those of the upper half; before it is shared. */
void gs_symtab_set_low(GsSymtab *tab, uint64_t va);

/** gs_symtab_symbolize() - rules as gs_kernel_symbolize(). */
bool gs_symtab_symbolize(const GsSymtab *tab, uint64_t va, GsSymbol *out);

/** gs_symtab_suggest() - as gs_kernel_suggest(). */
char **gs_symtab_suggest(const GsSymtab *tab, const char *name, unsigned max);

/**
 * gs_symbol_slides() - does a link-time address move with the kernel?
 *
 * What is linked low are offsets: percpu variables (at 0 on x86-64 up to
 * Linux 6.14) and other absolute values. Kernels live in the upper half.
 */
static inline bool gs_symbol_slides(uint64_t va)
{
    return va >> 63;
}

#endif /* GS_SYMTAB_H */
