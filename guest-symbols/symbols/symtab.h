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
#include "guest-symbols/base/bytes.h"

typedef struct GsSymtab GsSymtab;
typedef struct GsNameCodes GsNameCodes;

/* Bounds on untrusted tables: a distribution kernel has 150 000 to 250 000
 * symbols with 6 MB of names. */
#define GS_SYMBOLS_MAX      (4u << 20)
#define GS_SYMBOL_NAMES_MAX (256u << 20)

GsSymtab *gs_symtab_new(void);
/**
 * gs_symtab_new_coded() - make a table whose names are written in codes
 * @codes: (taken) the codes
 * @names: (borrowed until the table is sealed) the entries, see
 *         symtab-internal.h
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

/* ---- kallsyms.c ---------------------------------------------------------- */

/*
 * The symbol table that a kernel carries for itself (CONFIG_KALLSYMS), found
 * in its read-only data without any symbol to start from.
 */

/**
 * gs_kallsyms_decode() - find and decode the tables
 * @img: a kernel of 64 bits, little-endian, Linux 4.6 or newer; a raw image
 *       is rebased to the link address that its table contains
 * @errp: GS_ERROR_NO_SYMBOLS if there is no table, GS_ERROR_FORMAT if it is
 *        not consistent
 * Returns: (owned) a sealed table, or NULL.
 */
GsSymtab *gs_kallsyms_decode(GsImage *img, GError **errp);

/* ---- exports.c ----------------------------------------------------------- */

/*
 * The symbols that a kernel exports to its modules, found in its memory without
 * any symbol to start from. A kernel with modules has them without
 * CONFIG_KALLSYMS.
 */

/**
 * gs_exports_decode() - find and decode the tables
 * @img: a kernel in guest memory, Linux 5.4 or newer
 * @at: (out) address of the first table; all code is below
 *
 * Returns: (owned) a sealed table of exact symbols, see gs_symtab_set_exact();
 * NULL if there is none.
 */
GsSymtab *gs_exports_decode(const GsImage *img, uint64_t *at);

/* ---- systemmap.c --------------------------------------------------------- */

/*
 * System.map: the output of "nm -n vmlinux" as the kernel's scripts/mksysmap
 * filters it, one "<hex address> <type> <name>" a line.
 */

/** gs_systemmap_is() - does @data begin like a System.map? */
bool gs_systemmap_is(const uint8_t *data, size_t len);

/**
 * gs_systemmap_decode() - read all symbols of a System.map
 * @errp: GS_ERROR_FORMAT with the number of the line that is wrong;
 *        GS_ERROR_NO_SYMBOLS for the stub that Debian ships instead
 * Returns: (owned) a sealed table, or NULL.
 */
GsSymtab *gs_systemmap_decode(const uint8_t *data, size_t len, GError **errp);

/* ---- symtab-store.c ------------------------------------------------------ */

/*
 * A symbol table as bytes, and back. For guest-symbols only.
 */

/** gs_symtab_save() - append a sealed table to @out. */
void gs_symtab_save(const GsSymtab *tab, GsOut *out);
/** gs_symtab_load() - (owned) make a sealed table from these bytes, which are
 *  untrusted. Returns: NULL (GS_ERROR_FORMAT) if they are not a table. */
GsSymtab *gs_symtab_load(GsBytes *c, GError **errp);

#endif /* GS_SYMTAB_H */
