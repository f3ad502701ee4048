/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka symbols -o FILE: write the file that the command's answer has as text.
 * Called by main() of the program `ka`, on its only thread.
 *
 * The answer is gzip in lines of base64. The first line has figures, which are
 * printed. The answer is QEMU's, and not trusted: the file has at most MAX_FILE
 * bytes.
 */
#include <gio/gio.h>
#include <stdio.h>
#include <string.h>

#include "monitor-cmds/program/ka.h"

#define MAX_FILE    ((size_t)1 << 30)
#define STEP        ((size_t)1 << 20)

/* Return (owned) the file whose text is @text. NULL: it is no gzip, is cut off,
 * or is too much. */
static GByteArray *unpack(const char *text)
{
    gsize len;
    g_autofree guchar *packed = g_base64_decode(text, &len);
    g_autoptr(GInputStream) from = g_memory_input_stream_new_from_data(
        packed, (gssize)len, NULL);
    g_autoptr(GZlibDecompressor) gzip =
        g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP);
    g_autoptr(GInputStream) in =
        g_converter_input_stream_new(from, G_CONVERTER(gzip));
    g_autoptr(GByteArray) file = g_byte_array_new();
    gssize n = 1;

    while (n > 0 && file->len < MAX_FILE) {
        guint at = file->len;

        g_byte_array_set_size(file, at + STEP);
        n = g_input_stream_read(in, file->data + at, STEP, NULL, NULL);
        g_byte_array_set_size(file, at + (guint)MAX(n, 0));
    }
    return n ? NULL : g_steal_pointer(&file);
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
