/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writers of ka export: one function a format, see export-formats.def. The
 * program ka calls them on its thread, and moves the file into its place.
 */
#ifndef MC_EXPORT_H
#define MC_EXPORT_H

#include <stdio.h>

#include "monitor-cmds/output/format.h"
#include "monitor-cmds/table/top-table.h"

/* ---- heap profile -------------------------------------------------------- */

/*
 * Heap profile: the sums of each stack, as ka top --by stack has them, with
 * what other tools need to read them: names and places of the frames, the
 * ranges of code that move with KASLR, and what is missing in the sums.
 *
 *     stack 0: frames 4 2 0, leaf first         value: live, blocks, allocs ...
 *     stack 1: frames 3 2 0                     value: ...
 *
 * Names are of the guest. The profile keeps them as visible ASCII, without
 * blanks and of bounded length; a writer only has to escape what its format
 * uses.
 */
/* Longest name of a function or module that is kept, in bytes. */
#define MC_PROFILE_NAME_MAX 1024

/**
 * struct McProfileFrame - a frame
 * @pc: the return address; 0: the stack has no backtrace
 * @function: its name; the address in hex if it is not known
 * @module: NULL: the kernel proper, or not known
 * @named: @function is a name, and @offset is the distance of @pc to it
 * @symbol: (nullable) as ka prints it
 * @at: address of its line of source; 0: not known
 * @file: (nullable) its source, and the @line in it
 */
typedef struct McProfileFrame {
    uint64_t pc;
    const char *function;
    const char *module;
    bool named;
    uint64_t offset;
    const char *symbol;
    uint64_t at;
    const char *file;
    unsigned line;
} McProfileFrame;

/**
 * struct McProfileStack - a stack and its sums
 * @first, @n: its frames, in McHeapProfile.path; the leaf first
 * @known: one bit for each value that is known
 */
typedef struct McProfileStack {
    unsigned first, n;
    uint32_t known;
    int64_t value[MC_TOP__COUNT];
} McProfileStack;
G_STATIC_ASSERT(MC_TOP__COUNT <= 32);

/** struct McProfileRange - code of the kernel or of a module; @last: its last
 *  byte. Its place depends on KASLR, the distances in it do not. */
typedef struct McProfileRange {
    const char *name;
    uint64_t start, last;
} McProfileRange;

/* Name of the range that is the kernel's own code. */
#define MC_PROFILE_KERNEL "vmlinux"

/**
 * struct McHeapProfile - all stacks; its writers read it
 * @frame: McProfileFrame
 * @path: unsigned, numbers of frames
 * @stack: McProfileStack, in the order of ka top
 * @range: McProfileRange
 * @note: lines for the reader, such as what is missing: printable ASCII
 * @missing: number of notes that begin with "missing: "
 * @total: the sum of all stacks, by ka top itself
 * @us: the time of the sums
 * @banner: (nullable) the kernel's version line
 */
typedef struct McHeapProfile {
    GArray *frame;
    GArray *path;
    GArray *stack;
    GArray *range;
    GPtrArray *note;
    unsigned missing;
    McProfileStack total;
    uint64_t us;
    const char *banner;
    GHashTable *frame_ids;  /* of the symbol's text and the address */
    GStringChunk *names;
} McHeapProfile;

/** mc_profile_clean() - (owned) return a text as profiles keep them: bytes that
 *  are neither visible ASCII nor blanks become \xNN; untrusted */
char *mc_profile_clean(const char *text);

McHeapProfile *mc_heap_profile_new(void);
void mc_heap_profile_free(McHeapProfile *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McHeapProfile, mc_heap_profile_free)

/**
 * mc_heap_profile_frame() - return the number of a frame
 * @pc: the return address
 * @symbol: (nullable) its name as ka prints it, function+0xoff[module];
 *          untrusted
 */
unsigned mc_heap_profile_frame(McHeapProfile *p, uint64_t pc,
                               const char *symbol);
/** mc_heap_profile_set_at() - set the address of a frame's line of source. A
 *  frame that has two of these has no line. */
void mc_heap_profile_set_at(McHeapProfile *p, unsigned id, uint64_t at);
/** mc_heap_profile_set_line() - set the line of source of a frame; @file:
 *  untrusted */
void mc_heap_profile_set_line(McHeapProfile *p, unsigned id, const char *file,
                              unsigned line);
/** mc_heap_profile_label() - return the number of a frame that is no code: a
 *  cache, by its name; untrusted */
unsigned mc_heap_profile_label(McHeapProfile *p, const char *name);
/**
 * mc_heap_profile_stack() - add a stack
 * @frame: numbers of its @n frames, the leaf first; a stack without frames
 *         gets one that says so
 *
 * Returns: (borrowed until the next call) the stack, without values.
 */
McProfileStack *mc_heap_profile_stack(McHeapProfile *p, const unsigned *frame,
                                      unsigned n);
/** mc_profile_set() - set a value of a stack. */
void mc_profile_set(McProfileStack *s, McTopId id, int64_t value);
/** mc_heap_profile_range() - add a range of code; @name: untrusted. */
void mc_heap_profile_range(McHeapProfile *p, const char *name, uint64_t start,
                           uint64_t last);
/** mc_heap_profile_note() - add a line for the reader of the file. It begins
 *  with "missing: " if it says why the sums are too small. */
void mc_heap_profile_note(McHeapProfile *p, const char *format, ...)
    G_GNUC_PRINTF(2, 3);
/** mc_heap_profile_set_banner() - set the kernel's version line; untrusted. */
void mc_heap_profile_set_banner(McHeapProfile *p, const char *banner);

/** mc_put_frame() - append the name of a frame: "function [module]", with
 *  "+0xoff" or " file:line" behind the function if @frames says so. */
void mc_put_frame(GString *to, const McProfileFrame *f, McFrames frames);

/**
 * struct McExport - what a writer writes; all borrowed
 * @profile: the sums
 * @frames, @value: as the user wants them
 * @diff: the values are differences, and can be negative
 * @journal, @until_us: for formats that need a journal: its path, and the time
 *                      up to which it is read
 * @kernel: (nullable) the kernel of that journal, for names
 */
typedef struct McExport {
    const McHeapProfile *profile;
    const char *journal;
    uint64_t until_us;
    const GsKernel *kernel;
    McFrames frames;
    McTopId value;
    bool diff;
} McExport;

/**
 * McExportFn - write an export
 * @to: errors of its writes are seen by the caller (ferror())
 * @errp: one line: why this cannot be written in the format
 */
typedef bool McExportFn(const McExport *e, FILE *to, GError **errp);

/* The functions of the rows: mc_export_folded() and so on. */
#define MC_EXPORT(id, name, suffix, kind, needs, write, help) \
    McExportFn write;
#include "monitor-cmds/table/export-formats.def"
extern McExportFn *const mc_export_functions[MC_EXPORT__COUNT];

#endif /* MC_EXPORT_H */
