/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths of files: from a dentry and its mount to a text. Used by file.c, on any
 * thread; no locks. All values are untrusted.
 */
#ifndef KT_PATH_H
#define KT_PATH_H

#include "kalloc-tracer/api/kt-files.h"
#include "kalloc-tracer/layout/layout.h"

/**
 * kt_path_read() - find path and file system of a file
 * @f: has its dentry; gets @f->fs, @f->path and @f->whole
 * @mnt: address of its vfsmount, 0 if unknown
 * @steps: (in, out) links that may still be followed
 */
void kt_path_read(const KtObjects *o, const KtLayout *at, KtFile *f,
                  uint64_t mnt, uint64_t *steps);

#endif /* KT_PATH_H */
