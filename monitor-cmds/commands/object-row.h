/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A row about an object of the kernel: its text and its JSON object, made
 * together, one value after the other. Used by the commands about tasks, files
 * and modules, on their thread; no locks.
 *
 *     key=value of the text         a key of the JSON object
 *     pid=312                       "pid":312
 *     ppid=-      not known         "ppid":null
 *     mm=0        NULL              "mm":"0x0"
 */
#ifndef MC_OBJECT_ROW_H
#define MC_OBJECT_ROW_H

#include "monitor-cmds/output/format.h"

#define MC_OBJECT_VALUES_MAX 32

/** struct McObjectRow - a row that is being made. @strings: (owned) of
 *  @figure */
typedef struct McObjectRow {
    GString *text;
    McStat figure[MC_OBJECT_VALUES_MAX];
    unsigned n;
    GPtrArray *strings;
} McObjectRow;

void mc_object_row_init(McObjectRow *r);
void mc_object_row_deinit(McObjectRow *r);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(McObjectRow, mc_object_row_deinit)

/* Each function appends a value to the JSON object, and " key=value" to the
 * text. @key: (static). */

/** mc_object_put_address() - an address, 16 hex digits, or 0 */
void mc_object_put_address(McObjectRow *r, const char *key, bool known,
                           uint64_t va);
/** mc_object_put_hex() - a number in hex. */
void mc_object_put_hex(McObjectRow *r, const char *key, bool known,
                       uint64_t v);
/** mc_object_put_number() - a decimal number. */
void mc_object_put_number(McObjectRow *r, const char *key, bool known,
                          uint64_t v);
/** mc_object_put_word() - untrusted bytes; NULL: not known. */
void mc_object_put_word(McObjectRow *r, const char *key, const char *word);

/** mc_object_add() - add a number to the JSON object only. */
void mc_object_add(McObjectRow *r, const char *key, bool known, uint64_t v);
/** mc_object_add_address() - add an address to the JSON object only. */
void mc_object_add_address(McObjectRow *r, const char *key, uint64_t va);
/** mc_object_add_word() - add a text (copied, nullable) to the JSON object
 *  only. */
void mc_object_add_word(McObjectRow *r, const char *key, const char *word);

/** mc_object_add_list() - add an array of texts (borrowed, NULL-terminated) to
 *  the JSON object only. */
void mc_object_add_list(McObjectRow *r, const char *key,
                        const char *const *list);

/** mc_object_print() - print the row as an object of that type. */
void mc_object_print(McOut *out, McObjectId type, const McObjectRow *r);

/** mc_object_print_block() - print an object that belongs to what was printed
 *  before: its name, and the line of the block at @va. If there is no block,
 *  print what else is known of @va. */
void mc_object_print_block(McOut *out, const char *name, uint64_t va);

#endif /* MC_OBJECT_ROW_H */
