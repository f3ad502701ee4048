/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbols of one kernel: by address and by name, in link-time addresses.
 *
 * Filled with gs_symtab_add(), sealed once, read-only from then on (any
 * thread, no lock). Internal to guest-symbols.
 */
#ifndef GS_SYMTAB_H
#define GS_SYMTAB_H

#include "gs.h"
#include "image.h"

typedef struct GsSymtab GsSymtab;

/* Bounds on untrusted tables: a distribution kernel has 150 000 to 250 000
 * symbols with 5 MB of names. */
#define GS_SYMBOLS_MAX      (4u << 20)
#define GS_SYMBOL_NAMES_MAX (256u << 20)

/* Bound on one name; KSYM_NAME_LEN is 512 since Linux 6.1. */
#define GS_SYMBOL_NAME_MAX  1024

GsSymtab *gs_symtab_new(void);
void gs_symtab_free(GsSymtab *tab);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsSymtab, gs_symtab_free)

/**
 * gs_symtab_add() - one more symbol, in any order, before sealing
 * @name: (borrowed) need not be NUL-terminated
 * Returns: false when one of the bounds above is exceeded, or the name has
 * something else than visible ASCII characters in it.
 */
bool gs_symtab_add(GsSymtab *tab, uint64_t va, char type, const char *name,
                   size_t len);

/**
 * gs_symtab_seal() - sort, index and bound the symbols
 * @img: (nullable, borrowed for the call) its sections end the last symbol
 *       in each
 */
void gs_symtab_seal(GsSymtab *tab, const GsImage *img);

size_t gs_symtab_n(const GsSymtab *tab);

/** gs_symtab_n_unsorted() - how often an added symbol lay below the one
 *  added before it: the measure of a misread table. */
size_t gs_symtab_n_unsorted(const GsSymtab *tab);

/** gs_symtab_lookup() - rules as gs_kernel_lookup(), names without module. */
bool gs_symtab_lookup(const GsSymtab *tab, const char *name, GsSymbol *out);
unsigned gs_symtab_foreach_named(const GsSymtab *tab, const char *name,
                                 GsSymbolFn fn, void *opaque);

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
