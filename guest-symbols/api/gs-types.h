/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types that all of guest-symbols shares: errors, guest memory, and the keyed
 * hash of numbers.
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

/** gs_fail() - set an error. Returns: NULL, which is false, too: a function
 *  that fails returns it. */
void *gs_fail(GError **errp, GsErrorCode code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

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

/** gs_mem_load() - read @len bytes at @va. Returns: false if they cannot be
 *  read, or @va is 0. */
static inline bool gs_mem_load(const GsMem *mem, uint64_t va, void *to,
                               size_t len)
{
    return va && mem->read(mem->opaque, va, to, len);
}

/* ---- hashes ------------------------------------------------------------- */

/** gs_number_hash() - hash the uint64_t at @key, for a GHashTable with
 *  g_int64_equal(). The hash has a random key for each process, so a guest or
 *  a file cannot choose numbers that collide. Any thread. */
guint gs_number_hash(gconstpointer key);
/** gs_number_hash_direct() - hash the number that @key is, for a GHashTable
 *  with g_direct_equal(). */
guint gs_number_hash_direct(gconstpointer key);

/* ---- files --------------------------------------------------------------- */

/*
 * Reads a file that a user named. It may be anything: a device or a pipe is
 * refused, not waited for, and nothing larger than the caller wants is read.
 * The file is read, not mapped: a mapped file that is truncated by a rebuild
 * would kill the process (SIGBUS). Any thread; no state.
 */

/**
 * gs_file_read() - read a whole regular file
 * @max: bytes that it may have
 *
 * Returns: (owned) its bytes, with a NUL behind them; NULL, with @errp set, if
 * it is no such file, or cannot be read. The text of @errp does not name it.
 */
GBytes *gs_file_read(const char *path, uint64_t max, GError **errp);
/** gs_file_read_named() - the same; the text of @errp begins with @path. */
GBytes *gs_file_read_named(const char *path, uint64_t max, GError **errp);

#endif /* GS_API_TYPES_H */
