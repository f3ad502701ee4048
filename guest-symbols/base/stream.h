/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed streams, for what outlives a process: the tracer's part of a VM
 * snapshot, and the checkpoints of a journal.
 *
 * A stream is one zstd frame with its checksum. A GsStreamOut compresses what
 * is written to its GsOut and hands the result to a sink, block by block. A
 * GsStreamIn takes bytes from a source, unpacks them and lets its GsBytes read
 * them: they are untrusted, and bounded. No locks: one thread at a time.
 */
#ifndef GS_STREAM_H
#define GS_STREAM_H

#include "guest-symbols/base/bytes.h"

/* ---- writing ------------------------------------------------------------ */

/** GsStreamSink - take the next @len bytes of the stream. */
typedef void (*GsStreamSink)(void *opaque, const void *buf, size_t len);

/** gs_stream_to_array() - the sink that appends to @opaque, a GByteArray. */
void gs_stream_to_array(void *opaque, const void *buf, size_t len);

typedef struct GsStreamOut GsStreamOut;

/** gs_stream_out_new() - (owned) begin a stream that goes to @sink. */
GsStreamOut *gs_stream_out_new(GsStreamSink sink, void *opaque);
/** gs_stream_out() - (borrowed) return its writer. */
GsOut *gs_stream_out(GsStreamOut *s);
/** gs_stream_out_end() - write what is left and the checksum; free @s. */
void gs_stream_out_end(GsStreamOut *s);

/* ---- reading ------------------------------------------------------------ */

/** GsStreamSource - copy up to @len bytes of the stream to @buf. Returns: how
 *  many; 0 at its end. */
typedef size_t (*GsStreamSource)(void *opaque, void *buf, size_t len);

/** gs_stream_from_bytes() - the source that reads @opaque, a GsBytes of bytes
 *  in memory. */
size_t gs_stream_from_bytes(void *opaque, void *buf, size_t len);

typedef struct GsStreamIn GsStreamIn;

/**
 * gs_stream_in_new() - (owned) begin to read a stream
 * @max: bytes that it may unpack to: more is an error
 */
GsStreamIn *gs_stream_in_new(GsStreamSource source, void *opaque,
                             uint64_t max);
/** gs_stream_in() - (borrowed) return its reader. */
GsBytes *gs_stream_in(GsStreamIn *s);
/**
 * gs_stream_in_end() - was all read without failure, to the end of the stream?
 * @errp: GS_ERROR_FORMAT, the first thing that was wrong
 *
 * Only now is the checksum known to be right.
 */
bool gs_stream_in_end(GsStreamIn *s, GError **errp);
/** gs_stream_in_more() - return true if the stream has more bytes to read, and
 *  nothing was wrong so far. */
bool gs_stream_in_more(GsStreamIn *s);
void gs_stream_in_free(GsStreamIn *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsStreamIn, gs_stream_in_free)

#endif /* GS_STREAM_H */
