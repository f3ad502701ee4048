/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What image.c takes from image-elf.c and decompress.c. */
#ifndef GS_IMAGE_INTERNAL_H
#define GS_IMAGE_INTERNAL_H

#include "guest-symbols/image/image.h"
#include "guest-symbols/gs.h"

#include <string.h>

static inline bool gs_has_magic(const uint8_t *data, size_t len, size_t at,
                                const char *magic)
{
    size_t n = strlen(magic);

    return len >= at + n && !memcmp(data + at, magic, n);
}

bool gs_image_is_elf(const uint8_t *data, size_t len);
/** gs_image_fill_elf() - list the loaded sections of @img->bytes, or segments
 *  where it has none. */
bool gs_image_fill_elf(GsImage *img, GError **errp);

/* ---- decompress.c -------------------------------------------------------- */

/*
 * The compressions a kernel may be packed with (scripts/Makefile.lib,
 * "Kernel image compression"), in one table keyed by magic number.
 */

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

#endif /* GS_IMAGE_INTERNAL_H */
