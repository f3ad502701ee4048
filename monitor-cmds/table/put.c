/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writers of numbers, words and JSON: see put.h. */
#include "monitor-cmds/table/put.h"

#include <inttypes.h>
#include <string.h>

void mc_put_hex(GString *s, uint64_t v, unsigned digits)
{
    char buf[16];
    unsigned n = 0;

    do {
        buf[sizeof(buf) - ++n] = "0123456789abcdef"[v & 15];
        v >>= 4;
    } while (v || (n < digits && n < sizeof(buf)));
    g_string_append_len(s, buf + sizeof(buf) - n, n);
}

void mc_put_decimal(GString *s, uint64_t v)
{
    char buf[20];
    unsigned n = 0;

    do {
        buf[sizeof(buf) - ++n] = '0' + v % 10;
        v /= 10;
    } while (v);
    g_string_append_len(s, buf + sizeof(buf) - n, n);
}

void mc_put_size(GString *s, uint64_t bytes)
{
    static const char letters[] = "KMGTPE";
    uint64_t unit = 1024, tenths;
    unsigned i = 0;

    if (bytes < unit) {
        g_string_append_printf(s, "%" PRIu64 " B", bytes);
        return;
    }
    while (bytes / unit >= 1024) {
        unit *= 1024;
        i++;
    }
    tenths = bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit;
    if (tenths >= 10240) {
        tenths = 10;
        i++;
    }
    g_string_append_printf(s, "%" PRIu64 ".%" PRIu64 " %ciB", tenths / 10,
                           tenths % 10, letters[i]);
}

#define MSEC  UINT64_C(1000)
#define SEC   (1000 * MSEC)
#define MINUTE (60 * SEC)
#define HOUR  (60 * MINUTE)

void mc_put_duration(GString *s, uint64_t us)
{
    if (us < MSEC) {
        g_string_append_printf(s, "%" PRIu64 " us", us);
    } else if (us < SEC) {
        g_string_append_printf(s, "%" PRIu64 ".%" PRIu64 " ms", us / MSEC,
                               us % MSEC / 100);
    } else if (us < MINUTE) {
        g_string_append_printf(s, "%" PRIu64 ".%02" PRIu64 " s", us / SEC,
                               us % SEC / (10 * MSEC));
    } else if (us < HOUR) {
        g_string_append_printf(s, "%" PRIu64 " min %" PRIu64 " s", us / MINUTE,
                               us / SEC % 60);
    } else {
        g_string_append_printf(s, "%" PRIu64 " h %" PRIu64 " min", us / HOUR,
                               us / MINUTE % 60);
    }
}

void mc_put_age(GString *s, uint64_t us)
{
    static const struct {
        uint64_t us;
        const char *name;
    } units[] = {
        { HOUR, "h" }, { MINUTE, "min" }, { SEC, "s" }, { MSEC, "ms" },
        { 1, "us" },
    };
    unsigned i = 0;

    while (us < units[i].us && i + 1 < G_N_ELEMENTS(units)) {
        i++;
    }
    g_string_append_printf(s, "%" PRIu64 " %s ago", us / units[i].us,
                           units[i].name);
}

void mc_put_word(GString *s, const char *word)
{
    for (; *word; word++) {
        unsigned char c = *word;

        if (c > 0x20 && c < 0x7f) {
            g_string_append_c(s, c);
        } else {
            g_string_append(s, "\\x");
            mc_put_hex(s, c, 2);
        }
    }
}

/* ---- JSON ---------------------------------------------------------------- */

void mc_json_bytes(GString *s, const char *text, size_t len)
{
    g_string_append_c(s, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = text[i];

        if (c < 0x20 || c >= 0x7f) {
            g_string_append(s, "\\u");
            mc_put_hex(s, c, 4);
            continue;
        }
        if (c == '"' || c == '\\') {
            g_string_append_c(s, '\\');
        }
        g_string_append_c(s, c);
    }
    g_string_append_c(s, '"');
}

void mc_json_string(GString *s, const char *text)
{
    mc_json_bytes(s, text, strlen(text));
}

void mc_json_address(GString *s, uint64_t va)
{
    g_string_append(s, "\"0x");
    mc_put_hex(s, va, 16);
    g_string_append_c(s, '"');
}

void mc_json_next(GString *s)
{
    char before = s->len ? s->str[s->len - 1] : '{';

    if (before != '{' && before != '[') {
        g_string_append_c(s, ',');
    }
}

void mc_json_key(GString *s, const char *key)
{
    mc_json_next(s);
    g_string_append_c(s, '"');
    g_string_append(s, key);
    g_string_append(s, "\":");
}

void mc_json_number(GString *s, const char *key, uint64_t v)
{
    mc_json_key(s, key);
    mc_put_decimal(s, v);
}

void mc_json_integer(GString *s, const char *key, int64_t v)
{
    mc_json_key(s, key);
    g_string_append_printf(s, "%" PRId64, v);
}

void mc_json_text(GString *s, const char *key, const char *text)
{
    if (text) {
        mc_json_key(s, key);
        mc_json_string(s, text);
    }
}

void mc_json_begin_list(GString *s, const char *key)
{
    mc_json_key(s, key);
    g_string_append_c(s, '[');
}

void mc_json_item(GString *s, int64_t v)
{
    mc_json_next(s);
    if (v < 0) {
        g_string_append_c(s, '-');
    }
    mc_put_decimal(s, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void mc_json_ids(GString *s, const char *key, const GArray *ids)
{
    mc_json_begin_list(s, key);
    for (unsigned i = 0; i < ids->len; i++) {
        mc_json_item(s, g_array_index(ids, unsigned, i));
    }
    g_string_append_c(s, ']');
}

static int64_t number_at(const char *at, unsigned size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)at;
    case 4:
        return *(const uint32_t *)at;
    default:
        return *(const int64_t *)at;
    }
}

void mc_json_arrays(GString *s, const McJsonArray *a, unsigned n,
                    const GArray *rows)
{
    const unsigned size = g_array_get_element_size((GArray *)rows);

    for (const McJsonArray *end = a + n; a < end; a++) {
        int64_t before = 0;

        mc_json_begin_list(s, a->key);
        for (unsigned i = 0; i < rows->len; i++) {
            int64_t now = number_at(rows->data + (gsize)i * size + a->at,
                                    a->size);

            mc_json_item(s, now - before);
            before = a->steps ? now : 0;
        }
        g_string_append_c(s, ']');
    }
}

void mc_json_members(GString *s, const McJsonArray *a, unsigned n,
                     const void *row)
{
    for (const McJsonArray *end = a + n; a < end; a++) {
        mc_json_integer(s, a->key, number_at((const char *)row + a->at,
                                             a->size));
    }
}

void mc_json_objects(GString *s, const char *key, const GArray *rows,
                     void (*put)(GString *s, const void *row))
{
    const unsigned size = g_array_get_element_size((GArray *)rows);

    mc_json_begin_list(s, key);
    for (unsigned i = 0; i < rows->len; i++) {
        mc_json_next(s);
        g_string_append_c(s, '{');
        put(s, rows->data + (gsize)i * size);
        g_string_append_c(s, '}');
    }
    g_string_append_c(s, ']');
}

void mc_json_texts(GString *s, const char *key, const GPtrArray *texts)
{
    mc_json_begin_list(s, key);
    for (unsigned i = 0; i < texts->len; i++) {
        mc_json_next(s);
        mc_json_string(s, texts->pdata[i]);
    }
    g_string_append_c(s, ']');
}
