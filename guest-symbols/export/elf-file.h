/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writer of an ELF file of symbols without code: what "objcopy
 * --only-keep-debug" makes of a linked program.
 *
 *     ELF header | .debug_frame | .symtab | .strtab | .shstrtab | section
 *                                                                 headers
 *
 * Code and data have sections with addresses, but no bytes (NOBITS). All
 * addresses are those of the running kernel, so the file's type is EXEC.
 *
 * A GsElfFile belongs to one thread; no locks.
 */
#ifndef GS_ELF_FILE_H
#define GS_ELF_FILE_H

#include "guest-symbols/gs.h"

typedef struct GsElfFile GsElfFile;

/** GsElfSection - the number of a section; GS_ELF_ABS: symbols that are in
 *  none */
typedef uint16_t GsElfSection;
#define GS_ELF_ABS 0xfff1

/** gs_elf_file_new() - begin a file for the ELF machine @machine (EM_*) */
GsElfFile *gs_elf_file_new(unsigned machine);
void gs_elf_file_free(GsElfFile *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsElfFile, gs_elf_file_free)

/** gs_elf_file_add_section() - add the addresses [@start, @end) as section
 *  @name; @code: there is code. Returns: GS_ELF_ABS if there is no number
 *  left. */
GsElfSection gs_elf_file_add_section(GsElfFile *f, const char *name,
                                     uint64_t start, uint64_t end, bool code);

/** struct GsElfSymbol - a symbol of the file */
typedef struct GsElfSymbol {
    const char *name;
    uint64_t va, size;
    GsElfSection section;
    bool function, global;
} GsElfSymbol;

/** gs_elf_file_add_symbol() - add a symbol; its name is copied. Returns: its
 *  number. */
size_t gs_elf_file_add_symbol(GsElfFile *f, const GsElfSymbol *sym);
/** gs_elf_file_set_global() - make the symbol of number @i global. */
void gs_elf_file_set_global(GsElfFile *f, size_t i);
size_t gs_elf_file_n_symbols(const GsElfFile *f);

/** gs_elf_file_end() - (owned) return the file; @debug_frame: (borrowed) the
 *  section of this name. NULL: the file would be larger than 2 GiB. */
GByteArray *gs_elf_file_end(GsElfFile *f, const GByteArray *debug_frame);

#endif /* GS_ELF_FILE_H */
