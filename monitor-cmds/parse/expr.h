/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address expressions: hex, symbol, symbol+off, module:symbol[+off], the memory
 * of a page by its number (pfn:hex), physical address (phys:hex) or struct page
 * (page:hex), and ranges of them. Called by the parser and commands, on the
 * thread of the command.
 *
 * One rule separates hex from symbols. A word that starts with 0x, or that has
 * at least 8 hex digits and nothing else, is a number. A shorter word of hex
 * digits ("add", "dead") is the symbol of this name if there is one, else a
 * number. Every other word is a symbol. If the kernel's pointers have tags, a
 * number may have one, which is removed.
 */
#ifndef MC_EXPR_H
#define MC_EXPR_H

#include "monitor-cmds/table/tables.h"

/** struct McCode - code: addresses of frames, both inclusive; @load: number of
 *  the load of the module that must have been there, see GsStackEra; 0: any */
typedef struct McCode {
    uint64_t lo, hi;
    uint32_t load;
} McCode;

/** struct McRange - the range [lo, hi], both inclusive */
typedef struct McRange {
    uint64_t lo;
    uint64_t hi;
} McRange;

/** mc_symbols() - return (borrowed) the kernel, if its symbols have addresses
 *  now. Return NULL if there is no kernel, or if the running one is not
 *  recognised yet. */
const GsKernel *mc_symbols(const McContext *ctx);

/** mc_why_no_kernel() - return (borrowed) why there is no kernel */
static inline const char *mc_why_no_kernel(const McContext *ctx)
{
    return ctx->why_no_kernel ? ctx->why_no_kernel :
                                "no kernel file was given";
}

/** mc_quote() - return (owned) @word in double quotes, with control and
 *  non-ASCII bytes as \xNN; at most 64 bytes of it */
char *mc_quote(const char *word);

/** mc_parse_hex() - parse all of @word as a hex number, with or without 0x;
 *  @out: (nullable) */
bool mc_parse_hex(const char *word, uint64_t *out, GError **errp);
/** mc_parse_decimal() - parse all of @word as a decimal number; @unit may
 *  follow it */
bool mc_parse_decimal(const char *word, const char *unit, uint64_t *out,
                      GError **errp);

/** mc_parse_address() - parse one address expression */
bool mc_parse_address(const McContext *ctx, const char *word, uint64_t *out,
                      GError **errp);
/** mc_parse_range() - parse "<va>" or "<va>-<va>"; a symbol is its address */
bool mc_parse_range(const McContext *ctx, const char *word, McRange *out,
                    GError **errp);
/**
 * mc_parse_code() - parse "<pc>" or "<pc>-<pc>"; a symbol alone is its function
 * @out: McCode are appended: sorted, without overlap
 */
bool mc_parse_code(const McContext *ctx, const char *word, GArray *out,
                   GError **errp);
/** mc_parse_sizes() - parse "<sz>" or "<sz>-<sz>", hex numbers only */
bool mc_parse_sizes(const char *word, McRange *out, GError **errp);

#endif /* MC_EXPR_H */
