/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of source for frames of stacks: by the kernel's vmlinux and by the
 * files of its modules. A file that does not fit the kernel gives no lines.
 *
 * Names and addresses are the guest's, and not trusted. One thread.
 */
#ifndef MC_SOURCE_LINES_H
#define MC_SOURCE_LINES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- source file --------------------------------------------------------- */

/*
 * The debug information of one ELF file, a kernel's vmlinux or a module: which
 * line of source an address is of, and which inlined functions it is in.
 *
 * Addresses are those of the file: of a module, whose sections have no address
 * yet, libdw chooses some. Texts are borrowed from the file, and
 * not trusted.
 */
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

typedef struct KaLines KaLines;

/**
 * struct KaLinesFiles - where debug information is; borrowed
 * @vmlinux: (nullable) a file, or "auto": the usual places
 * @modules: (nullable) a folder of modules; NULL: the usual place, if it exists
 * @inlines: inlined functions are frames of their own
 */
typedef struct KaLinesFiles {
    const char *vmlinux;
    const char *modules;
    bool inlines;
} KaLinesFiles;

/**
 * ka_lines_open() - open the files for a kernel
 * @stat, @base: answers to `ka stat -j` and `ka base -v -j`, which say what
 *               kernel it is, and where
 *
 * Returns: (owned) NULL if there are no lines; one line on stderr says why.
 */
KaLines *ka_lines_open(const KaLinesFiles *files, const char *stat,
                       const char *base);
void ka_lines_free(KaLines *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KaLines, ka_lines_free)

/** ka_lines_inlines() - return @inlines of the files */
bool ka_lines_inlines(const KaLines *l);
/** ka_lines_learn() - compare the place of a module's frame with its file.
 *  Call this for all frames of an answer before the first ka_lines_find():
 *  the file of a module of which one frame is elsewhere gives no lines. */
void ka_lines_learn(KaLines *l, const char *symbol, uint64_t at);
/**
 * ka_lines_find() - find the lines of a frame
 * @symbol: as ka prints it, function+0xoff[module]
 * @at: the address that --pc adds to it
 *
 * Returns: (borrowed) array of KaPlace: functions that are inlined there, the
 * innermost first, and last the frame's own function. NULL if no line of that
 * one is known.
 */
const GArray *ka_lines_find(KaLines *l, const char *symbol, uint64_t at);

/* ---- kernel places ------------------------------------------------------- */

/*
 * Which kernel runs, and where, by answers of ka: to find its vmlinux, and to
 * refuse another one.
 */
/* Ranges of ka base that begin and end with symbols. */
#define KA_KERNEL_RANGES 4

/**
 * struct KaKernelPlaces - all texts are owned, and NULL if they are not known
 * @banner: the version line; @release: its third word
 * @build_id: in hex
 * @start, @last: of text, rodata, data and bss; 0: not known
 * @slide: (out of the comparison) address = address of the file + @slide
 */
typedef struct KaKernelPlaces {
    char *banner, *release, *build_id;
    uint64_t start[KA_KERNEL_RANGES], last[KA_KERNEL_RANGES];
    uint64_t slide;
} KaKernelPlaces;

/** ka_kernel_places_read() - read the answers to `ka stat -j` and
 *  `ka base -v -j`; untrusted */
void ka_kernel_places_read(KaKernelPlaces *k, const char *stat,
                           const char *base);
void ka_kernel_places_clear(KaKernelPlaces *k);
/** ka_kernel_places_search() - (owned) return the path of a file with the
 *  kernel's debug information in the usual places. NULL: there is none, *@why
 *  (owned) says where it was searched. */
char *ka_kernel_places_search(const KaKernelPlaces *k, char **why);
/** ka_kernel_places_compare() - (owned) return why the file is not this
 *  kernel's; NULL: it is, and k->slide is set */
char *ka_kernel_places_compare(KaKernelPlaces *k, const KaSourceFile *f);

/* ---- line answers -------------------------------------------------------- */

/* Lines of source in answers of ka that have the addresses of --pc. */
/**
 * ka_lines_add() - (owned) return the answer with lines of source
 * @l: (nullable) NULL: no lines are known, only the addresses are removed
 * @answer: untrusted
 * @keep: keep the addresses of the long form. JSON keeps them anyhow
 *
 *     "            make_it+0x18[mod] @ffffffffc0100017"
 *  -> "            make_it+0x18[mod]  drivers/mod.c:12"
 *
 *     "stack_symbols":[S...], "stack_at":[A...]  gets  "stack_lines":[L...]
 */
char *ka_lines_add(KaLines *l, const char *answer, bool keep);

#endif /* MC_SOURCE_LINES_H */
