/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Symbols and types of a kernel. Any thread. Symbols of modules are included;
 * types are those of the kernel proper.
 */
#ifndef GS_API_SYMBOLS_H
#define GS_API_SYMBOLS_H

#include "guest-symbols/api/gs-kernel.h"

/* ---- symbols ------------------------------------------------------------ */

/* Bound on a symbol's name; KSYM_NAME_LEN is 512 since Linux 6.1. */
#define GS_SYMBOL_NAME_MAX  1024

/**
 * struct GsSymbol - one symbol, by value
 * @va: run-time address (percpu symbols: offset in the percpu area)
 * @size: bytes up to the next symbol with another address; 0: unknown
 * @module: (borrowed from the kernel, valid until it is freed) module name,
 *          NULL for the kernel proper
 * @load: number of the load of the module, 0 for the kernel proper
 * @type: kallsyms letter ('T', 't', 'D', 'A', ...)
 * @name: a copy, because names are kept compressed; NUL-terminated
 */
typedef struct GsSymbol {
    uint64_t va;
    uint64_t size;
    const char *module;
    uint32_t load;
    char type;
    char name[GS_SYMBOL_NAME_MAX + 1];
} GsSymbol;

/** gs_kernel_n_symbols() - count the symbols, those of modules included. */
size_t gs_kernel_n_symbols(const GsKernel *k);

/**
 * gs_kernel_lookup() - find a symbol by "name" or "module:name"
 *
 * If several have the name, a global one is preferred, then the lowest
 * address. "__pfx_" twins and compiler clones (".cold", ".isra.0") are found
 * by their full name only. A symbol of the kernel itself that link-time
 * optimisation made global ("name.llvm.12") is found by @name, too, if none has
 * just that.
 */
bool gs_kernel_lookup(const GsKernel *k, const char *name, GsSymbol *out);
/** gs_kernel_variable() - find a symbol that the kernel may have only because
 *  modules need it: without KALLSYMS_ALL, its variables have no other. A stored
 *  kernel lacks them. */
bool gs_kernel_variable(const GsKernel *k, const char *name, GsSymbol *out);

typedef bool (*GsSymbolFn)(const GsSymbol *sym, void *opaque);

/** gs_kernel_foreach_named() - call @fn for each symbol with this name,
 *  also if link-time optimisation appended to it, in address order, until @fn
 *  returns false. Returns: how many calls. */
unsigned gs_kernel_foreach_named(const GsKernel *k, const char *name,
                                 GsSymbolFn fn, void *opaque);
/** gs_kernel_foreach_ever_named() - the same, with modules that were
 *  unloaded. */
unsigned gs_kernel_foreach_ever_named(const GsKernel *k, const char *name,
                                      GsSymbolFn fn, void *opaque);

/** gs_kernel_foreach_symbol() - call @fn for each symbol of the kernel proper,
 *  in address order, until it returns false. gs_kernel_module_symbols() does
 *  this for a module. */
void gs_kernel_foreach_symbol(const GsKernel *k, GsSymbolFn fn, void *opaque);

/**
 * gs_kernel_symbolize() - find the symbol that covers a run-time address
 *
 * That is the nearest one at or below @va whose size reaches @va; sizes end
 * at the end of the section or module. Percpu and absolute symbols are not
 * found.
 */
bool gs_kernel_symbolize(const GsKernel *k, uint64_t va, GsSymbol *out);
/** gs_kernel_symbolize_at() - the same as it was at @era, see
 *  gs_kernel_era(). */
bool gs_kernel_symbolize_at(const GsKernel *k, uint64_t va, uint32_t era,
                            GsSymbol *out);

/** gs_kernel_is_code() - is @sym, of this kernel or its modules, code? The
 *  letter alone does not decide. */
bool gs_kernel_is_code(const GsKernel *k, const GsSymbol *sym);

/**
 * gs_kernel_suggest() - find names similar to an unknown one, best first
 * Returns: (owned, g_strfreev) NULL-terminated, possibly empty, at most @max.
 */
char **gs_kernel_suggest(const GsKernel *k, const char *name, unsigned max);

/* ---- types (BTF) -------------------------------------------------------- */

bool gs_kernel_has_btf(const GsKernel *k);
/** gs_kernel_btf_left_out() - was no BTF found, but the search stopped at its
 *  limit before the end of the image? */
bool gs_kernel_btf_left_out(const GsKernel *k);

/**
 * gs_kernel_member() - find where a member is in a struct of this build
 * @type: struct or union name
 * @member: name, or path "a.b"; members of anonymous structs count as members
 * @offset: (out) bytes from the start of @type
 * @size: (out, nullable) bytes of the member
 * Returns: false without BTF, for an unknown name, for a bit field, or for a
 * member that ends beyond 1 MiB: sums of offsets fit in 32 bits.
 */
bool gs_kernel_member(const GsKernel *k, const char *type, const char *member,
                      uint32_t *offset, uint32_t *size);
/**
 * gs_kernel_bit_field() - find where a bit field is in a struct of this build
 * @bit: (out) its first bit, counted from the start of @type
 * @bits: (out) its width, at least 1
 * Returns: false as gs_kernel_member() does, or for a member that is no bit
 * field.
 */
bool gs_kernel_bit_field(const GsKernel *k, const char *type,
                         const char *member, uint32_t *bit, uint32_t *bits);
bool gs_kernel_type_size(const GsKernel *k, const char *type, uint32_t *size);
/** gs_kernel_member_at() - (owned, nullable) return the path of the innermost
 *  member of @type that begins at or covers @at: "a.b", "a[3].c"; with +0xN
 *  behind it if it begins before @at. */
char *gs_kernel_member_at(const GsKernel *k, const char *type, uint32_t at);
/** Called for each type that a pointer may lead to: name of the pointer, the
 *  struct and its size. */
typedef void (*GsPointeeFn)(const char *member, const char *name,
                            uint32_t size, void *opaque);
/** gs_kernel_pointers_at() - call @fn for each pointer to a struct that is
 *  exactly at @at in a value of @type; in unions there may be several. */
void gs_kernel_pointers_at(const GsKernel *k, const char *type, uint32_t at,
                           GsPointeeFn fn, void *opaque);
/** gs_kernel_enum_value() - find the value of an enumerator. */
bool gs_kernel_enum_value(const GsKernel *k, const char *name, int64_t *value);

/**
 * gs_kernel_func_param() - find the position of a parameter of a function
 * Returns: 0, 1, ... or -1 without BTF or for an unknown function or name.
 */
int gs_kernel_func_param(const GsKernel *k, const char *func,
                         const char *param);

#endif /* GS_API_SYMBOLS_H */
