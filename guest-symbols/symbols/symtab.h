/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbols of one kernel: by address and by name, in link-time addresses.
 *
 * A table is filled with gs_symtab_add() by one thread and then sealed. A
 * sealed table does not change: any thread, no lock. For guest-symbols only;
 * kernel.c adds the slide.
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
 * gs_symtab_new_coded() - make a table whose names are written in codes
 * @codes: (taken) the codes
 * @names: (borrowed until the table is sealed) the entries, see name-codes.h
 */
GsSymtab *gs_symtab_new_coded(GsNameCodes *codes, const uint8_t *names);
void gs_symtab_free(GsSymtab *tab);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsSymtab, gs_symtab_free)

/**
 * gs_symtab_add() - add a symbol, in any order, before sealing
 * @name: (borrowed) need not be NUL-terminated
 * Returns: false if a bound above is exceeded, or the name or the type has a
 * character that is not visible ASCII.
 */
bool gs_symtab_add(GsSymtab *tab, uint64_t va, char type, const char *name,
                   size_t len);
/**
 * gs_symtab_add_coded() - add a symbol of gs_symtab_new_coded()
 * @at: position of its entry in the names; all its bytes are readable
 */
bool gs_symtab_add_coded(GsSymtab *tab, uint64_t va, size_t at);

/**
 * gs_symtab_seal() - sort, index and bound the symbols
 * @img: (nullable, borrowed for the call) its sections end the last symbol
 *       in each
 */
void gs_symtab_seal(GsSymtab *tab, const GsImage *img);

size_t gs_symtab_n(const GsSymtab *tab);

/** gs_symtab_bytes() - return the host memory of a sealed table. */
size_t gs_symtab_bytes(const GsSymtab *tab);

/** gs_symtab_n_unsorted() - count the symbols that were added with an address
 *  below that of the one before: many mean that the table was misread. */
size_t gs_symtab_n_unsorted(const GsSymtab *tab);

/** gs_symtab_lookup() - find a name without module, see gs_kernel_lookup(). */
bool gs_symtab_lookup(const GsSymtab *tab, const char *name, GsSymbol *out);
unsigned gs_symtab_foreach_named(const GsSymtab *tab, const char *name,
                                 GsSymbolFn fn, void *opaque);

/** gs_symtab_foreach() - call a function for each row by address: @text is its
 *  type letter and name, @len bytes and a NUL. */
typedef void (*GsSymtabFn)(uint64_t va, const char *text, size_t len,
                           void *opaque);
void gs_symtab_foreach(const GsSymtab *tab, GsSymtabFn fn, void *opaque);

/** gs_symtab_filter() - (owned) make a sealed table of the symbols of a sealed
 *  one for which @keep returns true. */
typedef bool (*GsSymtabKeepFn)(uint64_t va, const char *name, void *opaque);
GsSymtab *gs_symtab_filter(const GsSymtab *tab, GsSymtabKeepFn keep,
                           void *opaque);

/** gs_symtab_set_low() - make addresses from @va up, not only those of the
 *  upper half, addresses of symbols; before the table is shared. */
void gs_symtab_set_low(GsSymtab *tab, uint64_t va);

/**
 * gs_symtab_set_exact() - match only the addresses of symbols themselves
 *
 * For a table that has few of the kernel's symbols, such as the exported ones.
 * There the distance to the next symbol is no size, because most functions
 * between the two are missing. So no symbol has a size, and
 * gs_symtab_symbolize() finds only addresses at which a symbol begins. Call
 * this before the table is shared.
 */
void gs_symtab_set_exact(GsSymtab *tab);
bool gs_symtab_is_exact(const GsSymtab *tab);

/** gs_symtab_symbolize() - find what covers @va, see gs_kernel_symbolize(). */
bool gs_symtab_symbolize(const GsSymtab *tab, uint64_t va, GsSymbol *out);

/** gs_symtab_suggest() - see gs_kernel_suggest(). */
char **gs_symtab_suggest(const GsSymtab *tab, const char *name, unsigned max);

/**
 * gs_symbol_slides() - does a link-time address move with the kernel?
 *
 * Low addresses are offsets: percpu variables (linked at 0 on x86-64 up to
 * Linux 6.14) and other absolute values. Kernels are in the upper half.
 */
static inline bool gs_symbol_slides(uint64_t va)
{
    return va >> 63;
}

#endif /* GS_SYMTAB_H */
