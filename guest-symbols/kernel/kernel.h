/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of a GsKernel, for the files of guest-symbols only.
 *
 * @image, @symtab, @btf, @text, @data and @banner are set when the kernel is
 * opened and do not change afterwards. @slide changes only while nobody
 * queries (see gs_kernel_set_slide()). @modules has its own lock; @orc is
 * read-only after opening but for its slide.
 */
#ifndef GS_KERNEL_H
#define GS_KERNEL_H

#include "guest-symbols/gs.h"
#include "guest-symbols/kernel/arch.h"
#include "guest-symbols/image/image.h"

typedef struct GsSymtab GsSymtab;
typedef struct GsBtf GsBtf;
typedef struct GsOrcSet GsOrcSet;
typedef struct GsModules GsModules;

/** struct GsTextRange - link-time [start, end) of code, or data; empty:
 *  unknown. */
typedef struct GsTextRange {
    uint64_t start;
    uint64_t end;
} GsTextRange;

/* A static function that ftrace copies to make its trampolines. */
#define GS_TRAMPOLINE_BYTES 16
typedef struct GsTemplate {
    uint64_t va;                        /* link time; 0 = not in this kernel */
    uint8_t bytes[GS_TRAMPOLINE_BYTES];
} GsTemplate;

/**
 * struct GsKernel - one kernel
 * @arch: what it is built for
 * @page_shift: log2 of its page size
 * @image: NULL for a System.map, and when it was read from memory
 * @symtab: symbols of the kernel proper in link-time addresses
 * @btf: NULL when the image has none, or @btf_left_out: it may be among what
 *       there was no room to look at
 * @orc: never NULL; empty for kernels without ORC tables
 * @modules: never NULL
 * @text: [_stext, _etext) and [_sinittext, _einittext)
 * @data: [_sdata, _edata) and [__start_rodata, __end_rodata)
 * @templates: of ftrace_caller() and ftrace_regs_caller()
 * @slide: run-time minus link-time address
 * @banner: "Linux version ...", NULL for a System.map
 * @banner_va: its link-time address, 0 unknown
 * @memory: read from the guest's memory, in run-time addresses
 * @extent: where in it
 * @start: link-time address of the code that tells that it runs, 0 unknown
 * @low: from there up addresses are the kernel's; 0: the upper half is
 * @plain: of gs_kernel_open_elf(), of whose options the rest is
 * @saved: of gs_kernel_new_saved(), what its tables told when they were there
 */
struct GsKernel {
    const GsArch *arch;
    unsigned page_shift;
    GsImage *image;
    GsSymtab *symtab;
    GsBtf *btf;
    bool btf_left_out;
    GsOrcSet *orc;
    GsModules *modules;
    GsTextRange text[2];
    GsTextRange data[2];
    GsTemplate templates[2];
    uint64_t slide;
    char *banner;
    uint64_t banner_va;
    bool memory;
    GsTextRange extent;
    uint64_t start;
    uint64_t low;
    bool plain;
    unsigned va_bits;
    char **outermost;
    struct {
        bool on;
        bool btf;
        bool image;
        size_t symbol_bytes;
    } saved;
};

/** gs_kernel_new_empty() - (owned) a kernel of which nothing is known. */
GsKernel *gs_kernel_new_empty(void);
/** gs_kernel_find_data() - set @data by @symtab. */
void gs_kernel_find_data(GsKernel *k);
/** gs_kernel_read_file() - (owned) a file's bytes, at most 2 GiB. */
GBytes *gs_kernel_read_file(const char *path, GError **errp);

/**
 * gs_kernel_new_from_image() - read an image's tables
 * @arch: (nullable) what it is for; NULL: the image tells
 * @img: (taken)
 * Returns: (owned) or NULL.
 */
GsKernel *gs_kernel_new_from_image(const GsArch *arch, GsImage *img,
                                   GError **errp);

#endif /* GS_KERNEL_H */
