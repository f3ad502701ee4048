/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of a GsKernel, for the files of guest-symbols only.
 *
 * @image, @symtab, @btf, @text and @banner are set when the kernel is opened
 * and do not change afterwards. @slide changes only while nobody queries (see
 * gs_kernel_set_slide()). @modules has its own lock; @orc is read-only after
 * opening but for its slide.
 */
#ifndef GS_KERNEL_H
#define GS_KERNEL_H

#include "gs.h"
#include "image.h"

typedef struct GsSymtab GsSymtab;
typedef struct GsBtf GsBtf;
typedef struct GsOrcSet GsOrcSet;
typedef struct GsModules GsModules;

/** struct GsTextRange - link-time [start, end) of code; empty: unknown. */
typedef struct GsTextRange {
    uint64_t start;
    uint64_t end;
} GsTextRange;

/**
 * struct GsKernel - one kernel file
 * @image: NULL for a System.map
 * @symtab: symbols of the kernel proper in link-time addresses
 * @btf: NULL when the image has none
 * @orc: never NULL; empty for kernels without ORC tables
 * @modules: never NULL
 * @text: [_stext, _etext) and [_sinittext, _einittext)
 * @slide: run-time minus link-time address
 * @banner: "Linux version ...", NULL for a System.map
 */
struct GsKernel {
    GsImage *image;
    GsSymtab *symtab;
    GsBtf *btf;
    GsOrcSet *orc;
    GsModules *modules;
    GsTextRange text[2];
    uint64_t slide;
    char *banner;
};

#endif /* GS_KERNEL_H */
