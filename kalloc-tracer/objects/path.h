/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths of files: from a dentry and its mount to a text. Used by file.c, on any
 * thread; no locks. All values are untrusted.
 */
#ifndef KT_PATH_H
#define KT_PATH_H

#include "kalloc-tracer/api/kt-files.h"

/**
 * struct KtPathLayout - offsets; UINT32_MAX if the kernel does not say
 * @parent, @name, @name_len, @hash, @sb, @op: in struct dentry
 * @root: in struct vfsmount
 * @mnt, @mnt_parent, @mountpoint: in struct mount; @mnt is its vfsmount
 * @sb_type, @type_name: in struct super_block, struct file_system_type
 * @dname: in struct dentry_operations
 * @private, @ns_ops, @ns_name: what a file of nsfs leads to
 */
typedef struct KtPathLayout {
    uint32_t parent, name, name_len, hash, sb, op;
    uint32_t root, mnt, mnt_parent, mountpoint;
    uint32_t sb_type, type_name, dname;
    uint32_t private, ns_ops, ns_name;
} KtPathLayout;

void kt_path_layout_init(KtPathLayout *at, const KtObjects *o);

/**
 * kt_path_read() - find path and file system of a file
 * @f: has its dentry; gets @f->fs, @f->path and @f->whole
 * @mnt: address of its vfsmount, 0 if unknown
 * @steps: (in, out) links that may still be followed
 */
void kt_path_read(const KtObjects *o, const KtPathLayout *at, KtFile *f,
                  uint64_t mnt, uint64_t *steps);

#endif /* KT_PATH_H */
