/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a file that a user named. It may be anything: a device or a pipe is
 * refused, not waited for, and nothing larger than the caller wants is read.
 * The file is read, not mapped: a mapped file that is truncated by a rebuild
 * would kill the process (SIGBUS). Any thread; no state.
 */
#ifndef GS_USER_FILE_H
#define GS_USER_FILE_H

#include <glib.h>
#include <stdint.h>

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

#endif /* GS_USER_FILE_H */
