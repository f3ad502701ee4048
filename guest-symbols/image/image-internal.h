/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of a GsImage: for image.c, and image-elf.c, which lists the
 * sections of ELF files.
 */
#ifndef GS_IMAGE_INTERNAL_H
#define GS_IMAGE_INTERNAL_H

#include "guest-symbols/image/image.h"

#include <string.h>

struct GsImage {
    GBytes *bytes;          /* what the sections' data points into */
    GStringChunk *names;
    GArray *sections;       /* of GsSection, by address */
    unsigned machine;
    bool raw;
    GsGuestCopy *copy; /* of memory, instead of @bytes */
};

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

#endif /* GS_IMAGE_INTERNAL_H */
