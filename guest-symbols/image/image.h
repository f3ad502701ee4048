/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a kernel file: recognised, decompressed, cut into sections.
 *
 * Internal to guest-symbols. A GsImage of a file never changes after it was
 * made, so every function here may be called for it from any thread.
 */
#ifndef GS_IMAGE_H
#define GS_IMAGE_H

#include "guest-symbols/gs.h"
#include "guest-symbols/image/guest-copy.h"

typedef struct GsImage GsImage;

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
 * gs_image_new() - make sense of a kernel file's bytes
 * @bytes: (borrowed, a reference is kept where needed) the whole file
 * @errp: GS_ERROR_FORMAT or GS_ERROR_UNSUPPORTED with one line
 *
 * Takes bzImage (boot protocol 2.08 and newer: payload_offset and
 * payload_length of the setup header), the EFI zboot wrapper, a bare
 * compressed stream, a 64-bit little-endian ELF, or a raw arm64/riscv64
 * "Image". Returns: (owned) or NULL.
 */
GsImage *gs_image_new(GBytes *bytes, GError **errp);
/**
 * gs_image_new_memory() - a kernel as it lies in memory
 * @copy: (borrowed as long as the image lives)
 *
 * One section without a name, taken for code as long as nobody tells by
 * gs_image_add_section() what is where. Its bytes are copied when they are
 * needed: gs_image_read() and gs_image_section() do so for what they give,
 * whoever looks at a GsSection's @data asks gs_image_copy() for it before.
 * For one thread. Returns: (owned)
 */
GsImage *gs_image_new_memory(GsGuestCopy *copy);
/** gs_image_copy() - (borrowed, nullable) of an image of memory, its bytes. */
GsGuestCopy *gs_image_copy(const GsImage *img);
/** gs_image_add_section() - name [@start, @end) of such an image, before it is
 *  shared. Returns: false when it does not lie in it. */
bool gs_image_add_section(GsImage *img, const char *name, uint64_t start,
                          uint64_t end, bool exec);
void gs_image_free(GsImage *img);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsImage, gs_image_free)

/** gs_image_n_sections() - loaded sections, sorted by address. */
size_t gs_image_n_sections(const GsImage *img);

/** gs_image_nth_section() - (borrowed) the @i-th of them. */
const GsSection *gs_image_nth_section(const GsImage *img, size_t i);

/**
 * gs_image_section() - a loaded section by its name
 * @va: (out) link-time address
 * @data: (out, borrowed) its bytes
 * @len: (out) their count
 * Returns: false when there is none of that name with contents.
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
 * gs_image_rebase() - tell a raw image where it is linked
 *
 * Raw images start with their sections at address 0; whoever learns the link
 * address calls this before the image is shared. No effect on ELF images.
 */
void gs_image_rebase(GsImage *img, uint64_t va);

/** gs_image_machine() - ELF's number of the architecture (e_machine), 0 for
 *  memory. */
unsigned gs_image_machine(const GsImage *img);

/** gs_image_is_raw() - without ELF headers, so without known addresses. */
bool gs_image_is_raw(const GsImage *img);

#endif /* GS_IMAGE_H */
