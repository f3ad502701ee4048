/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types that all of guest-symbols shares: errors, guest memory, the keyed hash
 * of numbers, and the table of architectures.
 */
#ifndef GS_API_TYPES_H
#define GS_API_TYPES_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** GS_HOT - marks the functions that each event runs. The linker places them
 *  side by side: between two events the guest evicts them from the host's
 *  caches and TLBs, so what counts is how many lines and pages they need. */
#define GS_HOT __attribute__((hot))

/* ---- errors ------------------------------------------------------------- */

#define GS_ERROR gs_error_quark()
GQuark gs_error_quark(void);

typedef enum GsErrorCode {
    GS_ERROR_IO,            /* the file could not be read */
    GS_ERROR_FORMAT,        /* not a kernel, truncated, inconsistent */
    GS_ERROR_UNSUPPORTED,   /* a kernel, but of a kind not known here */
    GS_ERROR_NO_SYMBOLS,    /* a kernel without kallsyms */
    GS_ERROR_GUEST,         /* guest memory unreadable or inconsistent */
} GsErrorCode;

/* ---- guest memory ------------------------------------------------------- */

/**
 * struct GsMem - bounded reader of guest memory, supplied by the embedder
 * @read: copy @len bytes from guest virtual address @va to @buf; all or
 *        nothing: false if any byte is not plain readable RAM
 * @opaque: passed to @read
 * @room: host memory that one copy of it may take, in bytes; 0: no limit
 * @no_kallsyms: a kernel there is opened as if it had no kallsyms (tests)
 */
typedef struct GsMem {
    bool (*read)(void *opaque, uint64_t va, void *buf, size_t len);
    void *opaque;
    uint64_t room;
    bool no_kallsyms;
} GsMem;

/* ---- hashes ------------------------------------------------------------- */

/** gs_number_hash() - hash the uint64_t at @key, for a GHashTable with
 *  g_int64_equal(). The hash has a random key for each process, so a guest or
 *  a file cannot choose numbers that collide. Any thread. */
guint gs_number_hash(gconstpointer key);
/** gs_number_hash_direct() - hash the number that @key is, for a GHashTable
 *  with g_direct_equal(). */
guint gs_number_hash_direct(gconstpointer key);

/* ---- architectures ------------------------------------------------------ */

typedef enum GsArchId {
    GS_ARCH_X86_64, GS_ARCH_ARM64, GS_ARCH_RISCV64, GS_ARCH__COUNT
} GsArchId;

/** enum GsReg - registers by purpose. @GS_REG_LINK: holds the return address
 *  at a function's entry, on architectures that do not push it;
 *  @GS_REG_BASE: leads to the current task, see struct GsArch; @GS_REG_ARG6,
 *  @GS_REG_ARG7: x86-64 has six registers for arguments, and none for these */
typedef enum GsReg {
    GS_REG_SP, GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3,
    GS_REG_RESULT, GS_REG_FP, GS_REG_BASE, GS_REG_ARG4, GS_REG_ARG5,
    GS_REG_LINK, GS_REG_ARG6, GS_REG_ARG7, GS_REG__COUNT
} GsReg;

/**
 * struct GsArch - a row of the table of architectures (static)
 * @name: QEMU's name of the target
 * @reg: gdb's names of registers, NULL if the architecture has none for it
 * @base_is_task: GS_REG_BASE is the address of the current task; otherwise
 *                that of the CPU's percpu variables
 * @text_start, @text_end: the kernel's own code runs between these addresses
 * @slide_align: KASLR moves a kernel by multiples of this
 * @map_step: early in boot the image is mapped in steps of this
 * @patch_byte: first byte of the instruction that traps while the kernel
 *              patches or probes code; -1 if patching needs no trap
 */
typedef struct GsArch {
    GsArchId id;
    const char *name;
    const char *reg[GS_REG__COUNT];
    bool base_is_task;
    uint64_t text_start, text_end;
    uint64_t slide_align, map_step;
    int patch_byte;
} GsArch;

/** gs_arch_find() - (static, nullable) find a row by QEMU's name. */
const GsArch *gs_arch_find(const char *name);
/** gs_arch_nth() - (static, nullable) return the @i-th row. */
const GsArch *gs_arch_nth(unsigned i);

#endif /* GS_API_TYPES_H */
