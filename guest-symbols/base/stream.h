/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers, texts and bytes in a stream: for what outlives a process (the
 * state stored in a VM's snapshot, checkpoints of a journal).
 *
 * The stream is one zstd frame with its checksum. Numbers take as many bytes
 * as they need. What is read may have been made by anybody: see GsUnpack.
 * No locks: one thread at a time.
 */
#ifndef GS_PACK_H
#define GS_PACK_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- writing ------------------------------------------------------------ */

/** GsPackSink - takes the next @len bytes of the stream. */
typedef void (*GsPackSink)(void *opaque, const void *buf, size_t len);

/** gs_pack_to_bytes() - the sink that appends to @opaque, a GByteArray. */
void gs_pack_to_bytes(void *opaque, const void *buf, size_t len);

typedef struct GsPack GsPack;

/** gs_pack_new() - (owned) a stream that goes to @sink, piece by piece. */
GsPack *gs_pack_new(GsPackSink sink, void *opaque);
/** gs_pack_end() - write what is left, and free @p. */
void gs_pack_end(GsPack *p);

void gs_pack_bytes(GsPack *p, const void *buf, size_t len);
void gs_pack_u64(GsPack *p, uint64_t v);
/** gs_pack_step() - a number that is mostly near @from, of either sign. */
void gs_pack_step(GsPack *p, uint64_t from, uint64_t v);
void gs_pack_text(GsPack *p, const char *s);

/* ---- reading ------------------------------------------------------------ */

/** GsUnpackSource - up to @len bytes of the stream; 0 at its end. */
typedef size_t (*GsUnpackSource)(void *opaque, void *buf, size_t len);

/** struct GsBytes - bytes in memory, @left of them from @at on */
typedef struct GsBytes {
    const uint8_t *at;
    size_t left;
} GsBytes;
/** gs_unpack_from_bytes() - the source that takes them from @opaque, a
 *  GsBytes. */
size_t gs_unpack_from_bytes(void *opaque, void *buf, size_t len);

/**
 * typedef GsUnpack - the bounded reader of such a stream
 *
 * A read that finds nothing, or what cannot be, makes it fail for good: from
 * then on every read yields 0, and the first thing that was wrong is told by
 * gs_unpack_end(). So a structure may be read whole before asking. A frame
 * that unpacks to more than @max bytes ends there.
 */
typedef struct GsUnpack GsUnpack;

/**
 * gs_unpack_new() - (owned) read a stream
 * @max: bytes that it may unpack to
 */
GsUnpack *gs_unpack_new(GsUnpackSource source, void *opaque, uint64_t max);
void gs_unpack_free(GsUnpack *u);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsUnpack, gs_unpack_free)

void gs_unpack_bytes(GsUnpack *u, void *buf, size_t len);
uint64_t gs_unpack_u64(GsUnpack *u);
/** gs_unpack_upto() - a number; one above @max is an error, which calls it
 *  @what. */
uint64_t gs_unpack_upto(GsUnpack *u, uint64_t max, const char *what);
/** gs_unpack_step() - what gs_pack_step() wrote with the same @from. */
uint64_t gs_unpack_step(GsUnpack *u, uint64_t from);
/** gs_unpack_text() - into @buf, NUL-terminated; one of @size bytes or more,
 *  or with a NUL inside, is an error, which calls it @what. */
void gs_unpack_text(GsUnpack *u, char *buf, size_t size, const char *what);

/** gs_unpack_fail() - what was read cannot be. */
void gs_unpack_fail(GsUnpack *u, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/** gs_unpack_ok() - has nothing failed yet? */
bool gs_unpack_ok(const GsUnpack *u);
/**
 * gs_unpack_end() - was all read well, to the end of the stream?
 * @errp: GS_ERROR_FORMAT
 *
 * The checksum is known to be right only now.
 */
bool gs_unpack_end(GsUnpack *u, GError **errp);

#endif /* GS_PACK_H */
