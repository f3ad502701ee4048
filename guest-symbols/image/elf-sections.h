/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sections of an ELF file, by libelf. One thread at a time. */
#ifndef GS_ELF_SECTIONS_H
#define GS_ELF_SECTIONS_H

#include <gelf.h>

/** gs_elf_begin() - (owned, elf_end()) read an ELF file in memory, which lives
 *  longer. NULL if there is no memory. */
Elf *gs_elf_begin(const void *data, size_t len);
/** gs_elf_section() - find the first section of a name, or if @name is NULL of
 *  a type; NULL if there is none. @shdr: (out) its header */
Elf_Scn *gs_elf_section(Elf *elf, const char *name, unsigned type,
                        GElf_Shdr *shdr);

#endif /* GS_ELF_SECTIONS_H */
