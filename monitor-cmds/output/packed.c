/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints bytes through a monitor, which passes text only: gzip, then base64,
 * as "base64 -d | gunzip" reads it. Called by commands, on their thread.
 *
 * The VM waits meanwhile, so gzip's fastest level is used, and nothing but one
 * block is kept.
 */
#include "monitor-cmds/output/format.h"

#include <zlib.h>

#define GZIP        (15 + 16)       /* largest window, gzip's header */
#define LINE        768             /* bytes; 1024 characters */

/** struct Packer - bytes that were compressed and not printed */
typedef struct Packer {
    McOut *out;
    z_stream z;
    uint8_t line[LINE];
} Packer;

static void print_line(Packer *p)
{
    g_autofree char *text = g_base64_encode(p->line, LINE - p->z.avail_out);

    g_string_append(p->out->line, text);
    mc_out_end_line(p->out);
    p->z.next_out = p->line;
    p->z.avail_out = LINE;
}

/* Compress what @p->z has, and print each line that is full. */
static void pack(Packer *p)
{
    int rc;

    do {
        rc = deflate(&p->z, Z_FINISH);
        if (!p->z.avail_out || (rc == Z_STREAM_END &&
                                p->z.avail_out < LINE)) {
            print_line(p);
        }
    } while (rc == Z_OK && !p->out->closed);
}

void mc_packed(McOut *o, const void *bytes, size_t len)
{
    Packer p = { .out = o };

    if (len > UINT_MAX ||
        deflateInit2(&p.z, Z_BEST_SPEED, Z_DEFLATED, GZIP, 9,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return;
    }
    p.z.next_in = (Bytef *)bytes;
    p.z.avail_in = len;
    p.z.next_out = p.line;
    p.z.avail_out = LINE;
    pack(&p);
    deflateEnd(&p.z);
}
