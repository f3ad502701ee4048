/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes ELF kernels with a few sections, and bzImages that contain them.
 * The writer does not check its arguments. Single-threaded.
 */
#ifndef ELF_WRITER_H
#define ELF_WRITER_H

#include <elf.h>
#include <glib.h>
#include <stdint.h>
#include <string.h>

#define ELF_WRITER_MAX  16

/**
 * struct ElfWriter - an ELF file under construction
 * @sec: the section headers; @sec[0] stays the null section
 * @n: number of sections
 * @bytes: (owned) ELF header, then the contents of the sections
 * @names: (owned) the names of the sections
 * @machine: e_machine; 0 means x86-64
 * @entry: e_entry
 */
typedef struct ElfWriter {
    Elf64_Shdr sec[ELF_WRITER_MAX];
    unsigned n;
    GByteArray *bytes;
    GByteArray *names;
    unsigned machine;
    uint64_t entry;
} ElfWriter;

/** struct ElfSymbol - a global symbol; @section is its section's number */
typedef struct ElfSymbol {
    const char *name;
    uint64_t va;
    unsigned section;
    unsigned type;
} ElfSymbol;

/** elf_writer_start() - begin a file without sections. */
void elf_writer_start(ElfWriter *w);

/** elf_writer_add() - add a section that is loaded; without @data it is
 *  SHT_NOBITS. */
void elf_writer_add(ElfWriter *w, const char *name, uint64_t va,
                    uint64_t flags, const void *data, size_t len);

/** elf_writer_table() - add a section that is not loaded. Its sh_link is the
 *  section after it. */
void elf_writer_table(ElfWriter *w, unsigned type, const GByteArray *bytes);

/** elf_writer_symbols() - add the symbol table. Call at most once. */
void elf_writer_symbols(ElfWriter *w, const ElfSymbol *syms, unsigned n);

/** elf_writer_finish() - end the file and clear @w. Returns: (owned) the
 *  file. */
GBytes *elf_writer_finish(ElfWriter *w);

#define BZ_WRITER_SETUP     (3 * 512)   /* boot sector, two setup sectors */
#define BZ_WRITER_CODE      0x100       /* bytes of the decompressor */

/** bz_writer_wrap() - make a bzImage of @payload. Returns: (owned) the
 *  file. */
GBytes *bz_writer_wrap(const void *payload, uint32_t len);

#endif /* ELF_WRITER_H */
