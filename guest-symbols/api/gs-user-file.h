/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a file that a user named. Any thread; no state. */
#ifndef GS_USER_FILE_H
#define GS_USER_FILE_H

#include <glib.h>

/** gs_kernel_read_file() - (owned) read a file of at most 2 GiB. */
GBytes *gs_kernel_read_file(const char *path, GError **errp);

#endif /* GS_USER_FILE_H */
