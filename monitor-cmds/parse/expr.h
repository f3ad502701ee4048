/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address expressions: hex, symbol, symbol+off, module:symbol[+off], and
 * ranges of them.
 *
 * One rule tells hex from symbols: a word that starts with 0x, or has at
 * least 8 hex digits and nothing else, is a number. A shorter word of hex
 * digits ("add", "dead") is the symbol of that name when there is one, else
 * a number. Everything else is a symbol.
 */
#ifndef MC_EXPR_H
#define MC_EXPR_H

#include "monitor-cmds/table/tables.h"

/** struct McRange - [lo, hi], both inclusive. */
typedef struct McRange {
    uint64_t lo;
    uint64_t hi;
} McRange;

/** mc_symbols() - (borrowed) the kernel whose symbols have addresses now;
 *  NULL: there is none, or the running one was not recognised yet. */
const GsKernel *mc_symbols(const McContext *ctx);

/** mc_quote() - (owned) @word in double quotes, control and non-ASCII bytes
 *  as \xNN, cut after 64 of them. */
char *mc_quote(const char *word);

/** mc_parse_hex() - a hex number, with or without 0x, all of @word. */
bool mc_parse_hex(const char *word, uint64_t *out, GError **errp);
/** mc_parse_decimal() - the same in decimal, after it may stand @unit. */
bool mc_parse_decimal(const char *word, const char *unit, uint64_t *out,
                      GError **errp);

/** mc_parse_address() - one address expression. */
bool mc_parse_address(const McContext *ctx, const char *word, uint64_t *out,
                      GError **errp);
/** mc_parse_range() - "<va>" or "<va>-<va>"; a symbol is its address. */
bool mc_parse_range(const McContext *ctx, const char *word, McRange *out,
                    GError **errp);
/**
 * mc_parse_code() - "<pc>" or "<pc>-<pc>"; a symbol alone is its function
 * @out: McRange appended, sorted, apart from each other
 */
bool mc_parse_code(const McContext *ctx, const char *word, GArray *out,
                   GError **errp);
/** mc_parse_sizes() - "<sz>" or "<sz>-<sz>", hex numbers only. */
bool mc_parse_sizes(const char *word, McRange *out, GError **errp);

#endif /* MC_EXPR_H */
