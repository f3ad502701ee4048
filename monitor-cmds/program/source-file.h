/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The debug information of one ELF file, a kernel's vmlinux or a module: which
 * line of source an address is of, and which inlined functions it is in.
 *
 * Addresses are those of the file: of a module, whose sections have no address
 * yet, libdw chooses some. One thread. Texts are borrowed from the file, and
 * not trusted.
 */
#ifndef MC_SOURCE_FILE_H
#define MC_SOURCE_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct KaSourceFile KaSourceFile;

/**
 * struct KaPlace - a line of source
 * @function: (nullable) the function that it is in, inlined or not
 * @file: (nullable) path, below the kernel's source if it is there; printable
 *        ASCII
 * @line: 0: not known
 */
typedef struct KaPlace {
    const char *function;
    const char *file;
    unsigned line;
} KaPlace;

/** struct KaFileSymbol - a symbol; @size: 0: not known; @section: its number */
typedef struct KaFileSymbol {
    const char *name;
    uint64_t va, size;
    unsigned section;
} KaFileSymbol;

/** ka_source_file_open() - open a file. Return NULL, and say why in *@why
 *  (owned), if it cannot be read or has no debug information. */
KaSourceFile *ka_source_file_open(const char *path, char **why);
void ka_source_file_free(KaSourceFile *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KaSourceFile, ka_source_file_free)

/** ka_source_file_symbols() - return (borrowed) the symbols of a name, their
 *  number in *@n; NULL if there is none */
const KaFileSymbol *ka_source_file_symbols(const KaSourceFile *f,
                                           const char *name, unsigned *n);
/** ka_source_file_text() - (owned) return the text that begins with @begin in
 *  the symbol or section @where, up to a control character; NULL if the file
 *  does not have it. Used for the kernel's banner and a module's release. */
char *ka_source_file_text(const KaSourceFile *f, const char *where,
                          const char *begin);
/** ka_source_file_build_id() - (owned) the build id in hex, NULL if none */
char *ka_source_file_build_id(const KaSourceFile *f);
/**
 * ka_source_file_places() - find where an address is from
 * @out: KaPlace; appended: inlined functions, the innermost first, then the
 *       function that they are in. Its files are borrowed from @f.
 */
void ka_source_file_places(KaSourceFile *f, uint64_t va, GArray *out);

#endif /* MC_SOURCE_FILE_H */
