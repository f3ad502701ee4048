/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of a GsKernel, for kernel/ and unwind/.
 *
 * @image, @symtab, @btf, @text, @data and @banner are set when the kernel is
 * opened and do not change. @slide changes only while nobody asks (see
 * gs_kernel_set_slide()). @modules has its own lock; @orc does not change
 * after opening, except its slide and modules.
 */
#ifndef GS_KERNEL_H
#define GS_KERNEL_H

#include "guest-symbols/gs.h"
#include "guest-symbols/base/range.h"
#include "guest-symbols/image/image.h"
#include "guest-symbols/symbols/symtab.h"

typedef struct GsSymtab GsSymtab;
typedef struct GsBtf GsBtf;
typedef struct GsOrcSet GsOrcSet;
typedef struct GsModules GsModules;

/** enum GsUnwindBy - what says where the frames of a stack are */
typedef enum GsUnwindBy {
    GS_UNWIND_BY_ARCH,      /* ORC, or frame records if there is none */
    GS_UNWIND_BY_FRAMES,    /* frame records of an architecture with ORC */
    GS_UNWIND_BY_NOTHING,   /* neither */
} GsUnwindBy;

/* A function that ftrace copies to make trampolines. */
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
 * @exported: (nullable) symbols that the kernel exports to modules, and that
 *            @symtab lacks: variables, if there is no KALLSYMS_ALL
 * @btf: NULL if the image has none, or, if @btf_left_out is set, if it may be
 *       in the part that the search did not reach
 * @btf_from_file: @btf is a types file's, see gs_kernel_set_types()
 * @orc: never NULL; empty for kernels without ORC tables
 * @unwind_by: set by gs_kernel_find_unwinder()
 * @modules: never NULL
 * @elf_symbols: @symtab is the .symtab of a Linux file without kallsyms
 * @hide_kallsyms: see @no_kallsyms of struct GsMem
 * @exports_at: the first table of exported symbols, if @symtab is from there
 *              and nothing else is known; else 0
 * @text: [_stext, _etext) and [_sinittext, _einittext)
 * @data: [_sdata, _edata) and [__start_rodata, __end_rodata)
 * @templates: of ftrace_caller() and ftrace_regs_caller()
 * @slide: run-time minus link-time address
 * @banner: "Linux version ...", NULL for a System.map
 * @banner_va: its link-time address, 0 unknown
 * @memory: read from the guest's memory, in run-time addresses
 * @extent: where in guest memory it was read
 * @start: link-time address of code that runs before anything is allocated,
 *         0 unknown
 * @low: lowest address of the kernel; 0: the start of the upper half
 * @plain: opened by gs_kernel_open_elf(); @va_bits and @outermost are from its
 *         options
 * @saved: made by gs_kernel_new_saved(): facts about tables that are not stored
 */
struct GsKernel {
    const GsArch *arch;
    unsigned page_shift;
    GsImage *image;
    GsSymtab *symtab;
    GsSymtab *exported;
    GsBtf *btf;
    bool btf_left_out;
    bool btf_from_file;
    GsOrcSet *orc;
    GsUnwindBy unwind_by;
    GsModules *modules;
    bool elf_symbols;
    bool hide_kallsyms;
    uint64_t exports_at;
    GsRange text[2];
    GsRange data[2];
    GsTemplate templates[2];
    uint64_t slide;
    char *banner;
    uint64_t banner_va;
    bool memory;
    GsRange extent;
    uint64_t start;
    uint64_t low;
    bool plain;
    unsigned va_bits;
    char **outermost;
    struct {
        bool on;
        bool btf;
        bool types_file;
        bool image;
        bool exports;
        size_t symbol_bytes;
    } saved;
};

/** gs_kernel_elf_symbols() - (owned) read the symbol table (.symtab) of an ELF
 *  file; @img: made of @bytes. Returns: NULL if there is none. */
GsSymtab *gs_kernel_elf_symbols(GBytes *bytes, const GsImage *img,
                                GError **errp);
/** gs_kernel_new_empty() - (owned) make a kernel with empty tables. */
GsKernel *gs_kernel_new_empty(void);
/** gs_kernel_load_tables() - find what the image has besides symbols: banner,
 *  templates, types, ORC. @image and @symtab are set. */
bool gs_kernel_load_tables(GsKernel *k, GError **errp);
/** gs_kernel_find_data() - set @data from the labels in @symtab. */
void gs_kernel_find_data(GsKernel *k);
/** gs_kernel_find_unwinder() - set @unwind_by; @symtab, @text and @orc are
 *  set. */
void gs_kernel_find_unwinder(GsKernel *k);
/** gs_kernel_address() - return the run-time address of a symbol; 0 if there is
 *  none. */
uint64_t gs_kernel_address(const GsKernel *k, const char *name);
/** gs_kernel_read_file() - (owned) read a file of 1 byte to 2 GiB. */
GBytes *gs_kernel_read_file(const char *path, GError **errp);

/**
 * gs_kernel_new_from_image() - make a kernel from an image's tables
 * @arch: (nullable) its architecture; NULL: find out from the image
 * @img: (taken)
 * @no_kallsyms: as in struct GsMem
 * Returns: (owned) or NULL.
 */
GsKernel *gs_kernel_new_from_image(const GsArch *arch, GsImage *img,
                                   bool no_kallsyms, GError **errp);

/* ---- banner.c ------------------------------------------------------------ */

/* The "Linux version ..." line of an image. Cold path, stateless. */

/**
 * gs_banner_find() - the line of a kernel
 * @va: (out) its address in @img
 *
 * linux_banner is data, so kallsyms names it only with KALLSYMS_ALL; without,
 * it is the text itself that is looked for.
 *
 * Returns: (owned) printable, without newline; NULL: there is none.
 */
char *gs_banner_find(const GsImage *img, const GsSymtab *tab, uint64_t *va);

#endif /* GS_KERNEL_H */
