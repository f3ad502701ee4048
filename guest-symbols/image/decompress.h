/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The compressions a kernel may be packed with (scripts/Makefile.lib,
 * "Kernel image compression"), in one table keyed by magic number.
 */
#ifndef GS_DECOMPRESS_H
#define GS_DECOMPRESS_H

#include "guest-symbols/gs.h"

/**
 * gs_compression_name() - which compression these bytes begin
 * Returns: (borrowed) "gzip", "xz", ..., or NULL for none that is known.
 */
const char *gs_compression_name(const uint8_t *data, size_t len);

/**
 * gs_decompress() - unpack one compressed kernel
 * @data: (borrowed) the stream; bytes after its end, such as the size word
 *        that the kernel's build appends, are ignored
 * @errp: GS_ERROR_FORMAT for a damaged stream or one that unpacks to more
 *        than 1 GiB or 256 times its size, GS_ERROR_UNSUPPORTED for a
 *        compression that is known but not built in
 * Returns: (owned) or NULL.
 */
GBytes *gs_decompress(const uint8_t *data, size_t len, GError **errp);

#endif /* GS_DECOMPRESS_H */
