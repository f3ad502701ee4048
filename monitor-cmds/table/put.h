/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writers that append to a string: numbers, words, and JSON (RFC 8259). All
 * JSON of ka is written by these functions. Any thread.
 *
 * JSON is ASCII, whatever bytes a name of the guest has: control characters,
 * quotes and backslashes are escaped, and each byte from 7f on becomes \u00NN.
 * A comma is put where one is needed: not behind an opening bracket.
 *
 *     g_string_append_c(s, '{');       {
 *     mc_json_text(s, "a", "x\n");     {"a":"x\u000a"
 *     mc_json_key(s, "b");             {"a":"x\u000a","b":
 */
#ifndef MC_PUT_H
#define MC_PUT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** mc_put_hex() - append @v in hex, with at least @digits digits */
void mc_put_hex(GString *s, uint64_t v, unsigned digits);
/** mc_put_decimal() - append @v in decimal */
void mc_put_decimal(GString *s, uint64_t v);
/** mc_put_size() - append bytes as "64 B" or "13.5 MiB" */
void mc_put_size(GString *s, uint64_t bytes);
/** mc_put_duration() - append microseconds as "208 us", "1.3 ms", "2.13 s",
 *  "3 min 20 s" or "2 h 5 min" */
void mc_put_duration(GString *s, uint64_t us);
/** mc_put_age() - append how long ago something was, in whole units: "4 s
 *  ago" */
void mc_put_age(GString *s, uint64_t us);
/** mc_put_word() - append untrusted bytes. A byte that is no visible ASCII
 *  character becomes \xNN, so that the text stays one word. */
void mc_put_word(GString *s, const char *word);

/** mc_json_string() - append a string */
void mc_json_string(GString *s, const char *text);
/** mc_json_bytes() - append @len bytes as a string */
void mc_json_bytes(GString *s, const char *text, size_t len);
/** mc_json_address() - append an address as a string, with 16 digits */
void mc_json_address(GString *s, uint64_t va);

/** mc_json_key() - append a key; its value follows. @key: (trusted) */
void mc_json_key(GString *s, const char *key);
/** mc_json_number() - append a key and a number without sign */
void mc_json_number(GString *s, const char *key, uint64_t v);
/** mc_json_integer() - append a key and a number that may be negative */
void mc_json_integer(GString *s, const char *key, int64_t v);
/** mc_json_text() - append a key and a string; @text: (nullable) NULL appends
 *  nothing */
void mc_json_text(GString *s, const char *key, const char *text);
/** mc_json_begin_list() - append a key and the bracket that opens a list */
void mc_json_begin_list(GString *s, const char *key);
/** mc_json_item() - append a number to a list */
void mc_json_item(GString *s, int64_t v);
/**
 * struct McJsonArray - a number that each struct of an array has
 * @key: of the list in JSON
 * @at, @size: its offset and size; 8 bytes have a sign
 * @steps: append the differences to the struct before, which are shorter when
 *         they are compressed
 */
typedef struct McJsonArray {
    const char *key;
    uint16_t at, size;
    bool steps;
} McJsonArray;
#define MC_JSON_ARRAY(key_, Row, member_, ...) \
    { .key = key_, .at = offsetof(Row, member_), \
      .size = sizeof(((Row *)0)->member_), __VA_ARGS__ }
/** mc_json_arrays() - append @n keys with lists of the numbers of @rows */
void mc_json_arrays(GString *s, const McJsonArray *a, unsigned n,
                    const GArray *rows);
/** mc_json_members() - append @n keys with the numbers of a struct */
void mc_json_members(GString *s, const McJsonArray *a, unsigned n,
                     const void *row);
/** mc_json_objects() - append a key and a list of objects; @put appends the
 *  members of one struct of @rows */
void mc_json_objects(GString *s, const char *key, const GArray *rows,
                     void (*put)(GString *s, const void *row));
/** mc_json_texts() - append a key and a list of texts */
void mc_json_texts(GString *s, const char *key, const GPtrArray *texts);
/** mc_json_next() - append the comma before the next value of a list */
void mc_json_next(GString *s);
/** mc_json_ids() - append a key and a list; @ids: unsigned */
void mc_json_ids(GString *s, const char *key, const GArray *ids);

#endif /* MC_PUT_H */
