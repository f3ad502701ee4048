/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of a small kernel, for values that arguments lead to:
 *
 *     typedef unsigned char u8;
 *     struct inode { unsigned long i_ino; unsigned low : 3, high : 5; };
 *     struct qstr { unsigned hash; const unsigned char *name; };
 *     struct file { struct inode *f_inode; unsigned f_flags; gfp_t gfp;
 *                   struct qstr name; char tag[8]; u8 *raw; };
 *     struct page { unsigned long words[40]; };
 *     struct file *do_filp_open(int dfd, const char *name, struct page *page);
 *     long vfs_read(struct file *file, char *buf, size_t count, long *pos);
 *     void fput(struct file *file);
 *     long track_caller(long *result, unsigned long caller, unsigned long
 *                       caller);
 *
 * Single-threaded.
 */
#ifndef DEREF_TYPES_H
#define DEREF_TYPES_H

#include <glib.h>

/** deref_types() - (owned) write them as raw BTF. */
GBytes *deref_types(void);

#endif /* DEREF_TYPES_H */
