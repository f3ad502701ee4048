/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernels: how a GsKernel is made, where it runs, and how its names are stored
 * in a journal.
 *
 * All functions may be called from any thread, except gs_kernel_set_slide()
 * and gs_kernel_free(): nobody else may use the kernel meanwhile.
 */
#ifndef GS_API_KERNEL_H
#define GS_API_KERNEL_H

#include "guest-symbols/api/gs-arch.h"


/* ---- opening ------------------------------------------------------------ */

/**
 * gs_kernel_open() - open a kernel file
 * @path: a bzImage/vmlinuz (any compression the kernel offers), an ELF
 *        vmlinux (stripped or not), or a System.map
 * @errp: one line: what is wrong, and where in the file
 *
 * Returns: (owned) a kernel with slide 0, or NULL.
 */
GsKernel *gs_kernel_open(const char *path, GError **errp);

/**
 * gs_kernel_new_from_data() - open a kernel file whose bytes are in memory
 * @data: (borrowed for the call) the bytes, @len of them
 * @name: name of the file in error messages
 * @errp: as gs_kernel_open()
 *
 * For tests and fuzzers.
 */
GsKernel *gs_kernel_new_from_data(const void *data, size_t len,
                                  const char *name, GError **errp);
/**
 * gs_kernel_new_from_memory() - open the kernel that runs in a guest
 * @arch: the guest's architecture
 * @mem: guest memory
 * @va: an address in the kernel's image
 * @errp: why no kernel was found there, or why it cannot be read
 *
 * Call this early in the guest's boot: later the kernel frees parts of its
 * image. Returns: (owned) a kernel in run-time addresses, with slide 0; or
 * NULL.
 */
GsKernel *gs_kernel_new_from_memory(const GsArch *arch, const GsMem *mem,
                                    uint64_t va, GError **errp);
/**
 * gs_kernel_new_from_extent() - open a kernel in a guest again, at any time
 * @start, @end: what gs_kernel_extent() returned the first time; untrusted
 *
 * Memory that the kernel has freed since (its init code) reads as zeros.
 */
GsKernel *gs_kernel_new_from_extent(const GsArch *arch, const GsMem *mem,
                                    uint64_t start, uint64_t end,
                                    GError **errp);
/**
 * gs_kernel_add_memory() - add what a System.map lacks, from guest memory
 * @mem: guest memory; the kernel runs in it
 * @slide: where: run-time minus link-time address
 * @va: a run-time address in its image
 *
 * These are the types and the unwind tables. No effect if @k is not from a
 * System.map, if they are known already, or if there is no image at @va. No
 * other thread may use @k meanwhile. Returns: true if it had an effect.
 */
bool gs_kernel_add_memory(GsKernel *k, const GsMem *mem, uint64_t slide,
                          uint64_t va);
/** gs_kernel_extent() - return where the kernel was read in guest memory;
 *  false if it is from a file. */
bool gs_kernel_extent(const GsKernel *k, uint64_t *start, uint64_t *end);
/**
 * gs_kernel_hide() - make a kernel appear to lack some of its sources
 * @k: (nullable) was just opened, no other thread uses it; NULL: only check
 *     @words
 * @words: kallsyms, types, data, percpu, unwind or symbol:NAME, joined by "+"
 *
 * For tests: kernel-hide.c explains the words. Returns: false if one is wrong.
 */
bool gs_kernel_hide(GsKernel *k, const char *words);
/** gs_kernel_hides_kallsyms() - is "kallsyms" one of the words? */
bool gs_kernel_hides_kallsyms(const char *words);
void gs_kernel_free(GsKernel *k);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsKernel, gs_kernel_free)

#define GS_OUTERMOST_MAX 16

/**
 * struct GsElfOptions - facts about a kernel that is not Linux
 * @start: (nullable) a function that runs before anything is allocated, at
 *         the address that it is linked at; NULL: the file's entry point
 * @outermost: (nullable) functions that stacks begin in, NULL-terminated; the
 *             first GS_OUTERMOST_MAX that the kernel has are used
 * @va_bits: width of an address: in a return address on the stack the bits
 *           above may be a signature; 0: they never are
 */
typedef struct GsElfOptions {
    const char *start;
    const char *const *outermost;
    unsigned va_bits;
} GsElfOptions;

/**
 * gs_kernel_open_elf() - open a kernel of any kind by its ELF symbol table
 * @path: the file; the kernel runs where it is linked, and keeps frame
 *        pointers
 * @errp: one line: what is wrong, and where in the file
 *
 * Returns: (owned) a kernel without types, modules and banner; or NULL.
 */
GsKernel *gs_kernel_open_elf(const char *path, const GsElfOptions *o,
                             GError **errp);
/** gs_kernel_new_elf_from_data() - the same from bytes in memory, for tests
 *  and fuzzers. */
GsKernel *gs_kernel_new_elf_from_data(const void *data, size_t len,
                                      const GsElfOptions *o, GError **errp);

/* ---- what it is --------------------------------------------------------- */

/** gs_kernel_is_plain() - was it opened by its ELF symbol table alone? */
bool gs_kernel_is_plain(const GsKernel *k);
/** gs_kernel_is_memory() - was it read in guest memory? */
bool gs_kernel_is_memory(const GsKernel *k);
/** gs_kernel_symbols_from() - (static) name the table that the symbols of the
 *  kernel proper are from: "kallsyms", "exports", "ELF" or "System.map". */
const char *gs_kernel_symbols_from(const GsKernel *k);
/**
 * gs_kernel_has_all_symbols() - are the symbols more than the exports?
 *
 * If not, most functions have no symbol, hooked ones among them. No symbol has
 * a size, and an address has a name only if a symbol is exactly there.
 */
bool gs_kernel_has_all_symbols(const GsKernel *k);
/** gs_kernel_arch() - (static) return its architecture. */
const GsArch *gs_kernel_arch(const GsKernel *k);
/** gs_kernel_page_shift() - return log2 of its page size. */
unsigned gs_kernel_page_shift(const GsKernel *k);
/** gs_kernel_start() - return the link-time address of code that runs before
 *  anything is allocated; 0: unknown. */
uint64_t gs_kernel_start(const GsKernel *k);
/** gs_kernel_banner() - (borrowed) return the "Linux version ..." line of the
 *  image without newline; NULL for a System.map. */
const char *gs_kernel_banner(const GsKernel *k);
/** gs_kernel_banner_va() - return where that line is in the guest; 0:
 *  unknown. */
uint64_t gs_kernel_banner_va(const GsKernel *k);
/** gs_kernel_bytes() - estimate the host memory of all tables, those of
 *  modules included. */
uint64_t gs_kernel_bytes(const GsKernel *k);
/** gs_kernel_symbol_bytes() - return the host memory of the symbols of the
 *  kernel proper. */
size_t gs_kernel_symbol_bytes(const GsKernel *k);

/* ---- where it runs ------------------------------------------------------ */

/**
 * gs_kernel_set_slide() - set run-time minus link-time address (KASLR)
 *
 * No other thread may use the kernel meanwhile. Removes all modules: a new
 * slide is a new boot.
 */
void gs_kernel_set_slide(GsKernel *k, uint64_t slide);
uint64_t gs_kernel_slide(const GsKernel *k);

/** gs_kernel_lowest() - return the lowest address that can be the kernel's:
 *  usually the start of the upper half. */
uint64_t gs_kernel_lowest(const GsKernel *k);
/** gs_kernel_in_image() - is the run-time address @va in the kernel's image,
 *  code or data? */
bool gs_kernel_in_image(const GsKernel *k, uint64_t va);
/** gs_kernel_text_range() - return the run-time range [_stext, _etext) joined
 *  with the init text; false if the symbols are missing. */
bool gs_kernel_text_range(const GsKernel *k, uint64_t *start, uint64_t *end);
/** gs_kernel_is_text() - is the run-time address @va code of the kernel or of
 *  a loaded module? */
bool gs_kernel_is_text(const GsKernel *k, uint64_t va);
/**
 * gs_kernel_read_image() - copy initial contents of the image
 * @va: link-time address
 * Returns: false if the image has no such bytes (bss, System.map).
 */
bool gs_kernel_read_image(const GsKernel *k, uint64_t va, void *buf,
                          size_t len);

/* ---- stored kernels ----------------------------------------------------- */

/** gs_kernel_save() - append to @to what the names of @k's addresses need:
 *  symbols (without modules), slide, banner. */
void gs_kernel_save(const GsKernel *k, GByteArray *to);
/**
 * gs_kernel_new_saved() - make a kernel from what gs_kernel_save() wrote
 * @data: (borrowed for the call) untrusted
 * @errp: GS_ERROR_FORMAT
 *
 * Returns: (owned) a kernel that symbolizes addresses and finds names as the
 * stored one did, but has no types and cannot unwind; or NULL.
 */
GsKernel *gs_kernel_new_saved(const void *data, size_t len, GError **errp);

#endif /* GS_API_KERNEL_H */
