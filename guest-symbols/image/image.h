/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a kernel file: recognised, decompressed, divided into sections.
 *
 * For guest-symbols only. A GsImage of a file does not change once made: any
 * thread. A GsImage of guest memory copies as it is read: one thread.
 */
#ifndef GS_IMAGE_H
#define GS_IMAGE_H

#include "guest-symbols/gs.h"
#include "guest-symbols/image/guest-copy.h"

/**
 * struct GsSection - a run of image bytes with one link-time address
 * @name: (borrowed) ELF section name; "" where the file has no such names
 * @va: link-time address
 * @data: (borrowed) initial contents, NULL for bss-like sections
 * @len: bytes from @va, also where @data is NULL
 * @exec: holds code
 */
typedef struct GsSection {
    const char *name;
    uint64_t va;
    const uint8_t *data;
    size_t len;
    bool exec;
} GsSection;

/**
 * struct GsImage - an image
 * @bytes: (owned) what the sections' data points into; @copy: (borrowed) of
 *         guest memory, instead
 * @names: (owned) of sections
 * @sections: (owned) the loaded GsSections by address
 * @machine: ELF's number of the architecture (e_machine); 0 for guest memory
 * @raw: it has no ELF headers, and so no known addresses
 */
typedef struct GsImage {
    GBytes *bytes;
    GsGuestCopy *copy;
    GStringChunk *names;
    GArray *sections;
    unsigned machine;
    bool raw;
} GsImage;

/**
 * gs_image_new() - make an image from a kernel file's bytes
 * @bytes: (borrowed, a reference is kept where needed) the whole file
 * @errp: GS_ERROR_FORMAT or GS_ERROR_UNSUPPORTED with one line
 *
 * Accepts bzImage (boot protocol 2.08 and newer: payload_offset and
 * payload_length of the setup header), the EFI zboot wrapper, a bare
 * compressed stream, a 64-bit little-endian ELF, or a raw arm64/riscv64
 * "Image". Returns: (owned) or NULL.
 */
GsImage *gs_image_new(GBytes *bytes, GError **errp);
/**
 * gs_image_new_memory() - make an image of a kernel in guest memory
 * @copy: (borrowed as long as the image lives)
 *
 * It has one section without a name, which counts as code until
 * gs_image_add_section() names parts of it. gs_image_read() and
 * gs_image_section() copy the bytes that they return. Before using a
 * GsSection's @data, call gs_guest_copy_need() on @copy. One thread.
 * Returns: (owned)
 */
GsImage *gs_image_new_memory(GsGuestCopy *copy);
/** gs_image_add_section() - name the part [@start, @end) of such an image,
 *  before it is shared. Returns: false if the image does not contain it. */
bool gs_image_add_section(GsImage *img, const char *name, uint64_t start,
                          uint64_t end, bool exec);
void gs_image_free(GsImage *img);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsImage, gs_image_free)

/** gs_image_nth_section() - (borrowed) return the @i-th of them, by address. */
const GsSection *gs_image_nth_section(const GsImage *img, size_t i);

/**
 * gs_image_section() - find a loaded section by its name
 * @va: (out) link-time address
 * @data: (out, borrowed) its bytes
 * @len: (out) their count
 * Returns: false if no section of that name has contents.
 */
bool gs_image_section(const GsImage *img, const char *name, uint64_t *va,
                      const uint8_t **data, size_t *len);

/**
 * gs_image_read() - copy initial contents
 * @va: link-time address; a read may cross adjoining sections
 * Returns: false, nothing promised about @buf, unless every byte is there.
 */
bool gs_image_read(const GsImage *img, uint64_t va, void *buf, size_t len);

/**
 * gs_image_rebase() - set the link address of a raw image
 *
 * The sections of a raw image start at address 0. Call this once the link
 * address is known, before the image is shared. No effect on ELF images.
 */
void gs_image_rebase(GsImage *img, uint64_t va);

#endif /* GS_IMAGE_H */
