/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka symbols -o FILE: write the file that the command's answer has as text.
 * Called by main() of the program `ka`, on its only thread.
 *
 * The answer is gzip in lines of base64. The first line has figures, which are
 * printed. The answer is QEMU's, and not trusted: the file has at most MAX_FILE
 * bytes.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "monitor-cmds/program/ka.h"

#define GZIP        (15 + 16)       /* largest window, gzip's header */
#define MAX_FILE    ((size_t)1 << 30)
#define STEP        ((size_t)1 << 20)

/* Decompress all that @z has. Return (owned) NULL if it is no gzip, is cut off,
 * or is too much. */
static GByteArray *inflate_all(z_stream *z)
{
    g_autoptr(GByteArray) file = g_byte_array_new();
    int rc = Z_OK;

    while (rc == Z_OK && file->len < MAX_FILE) {
        size_t at = file->len;

        g_byte_array_set_size(file, at + STEP);
        z->next_out = file->data + at;
        z->avail_out = STEP;
        rc = inflate(z, Z_NO_FLUSH);
        g_byte_array_set_size(file, at + STEP - z->avail_out);
    }
    return rc == Z_STREAM_END ? g_steal_pointer(&file) : NULL;
}

/* Return (owned) the file whose text is @text, or NULL. */
static GByteArray *unpack(const char *text)
{
    gsize len;
    g_autofree guchar *packed = g_base64_decode(text, &len);
    z_stream z = { .next_in = packed, .avail_in = len };
    GByteArray *file;

    if (len > UINT_MAX || inflateInit2(&z, GZIP) != Z_OK) {
        return NULL;
    }
    file = inflate_all(&z);
    inflateEnd(&z);
    return file;
}

static int fail(const char *path, const char *why)
{
    fprintf(stderr, "ka: %s: %s\n", path, why);
    return KA_NO_ANSWER;
}

int ka_write_symbols(const char *answer, const char *path)
{
    const char *text = strchr(answer, '\n');
    g_autoptr(GByteArray) file = NULL;
    g_autoptr(GError) error = NULL;

    if (!g_str_has_prefix(answer, "-- symbols ") || !text || !text[1]) {
        fputs(answer, stdout);
        return ka_flush(0) ? KA_ANSWERED : KA_NO_ANSWER;
    }
    file = unpack(text + 1);
    if (!file) {
        return fail(path, "the answer is damaged, or has more than 1 GiB");
    }
    if (!g_file_set_contents(path, (const char *)file->data, file->len,
                             &error)) {
        return fail(path, error->message);
    }
    printf("%s: %.*s\n", path, (int)(text - answer) - 3, answer + 3);
    return ka_flush(0) ? KA_ANSWERED : KA_NO_ANSWER;
}
