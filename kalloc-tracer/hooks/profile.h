/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles: a file that describes the allocators of a kernel other than Linux.
 * It has what is built in for Linux: the hook table, how to walk stacks, and
 * how much the allocators reserve. docs/profiles.md describes the format.
 * QEMU-free.
 *
 * The plugin reads a profile once, at install, in QEMU's main thread. It is
 * constant afterwards.
 */
#ifndef KT_PROFILE_H
#define KT_PROFILE_H

#include "kalloc-tracer/hooks/hook-table.h"
#include "kalloc-tracer/layout/layout.h"

/**
 * struct KtCacheLayout - offsets in the cache objects of a kernel
 * @name: offset of the pointer to the cache's name
 * @size: offset of the size of the cache's objects
 * @size_bytes: width of that size: 2, 4 or 8 bytes
 *
 * This is for kernels other than Linux. An offset can be KT_NO_MEMBER.
 */
typedef struct KtCacheLayout {
    uint32_t name, size;
    unsigned size_bytes;
} KtCacheLayout;

/**
 * struct KtProfile - the contents of a profile
 * @elf: for gs_kernel_open_elf()
 * @caches: for kt_guest_set_caches()
 * @hook: rows for kt_hook_table_set(), @n_hooks of them
 */
typedef struct KtProfile {
    GsElfOptions elf;
    KtCacheLayout caches;
    const KtHook *hook;
    unsigned n_hooks;
} KtProfile;

/**
 * kt_profile_open() - Read a profile
 * @errp: one line: the file, the group, the key, what is wrong with it, and
 *        what would be right
 *
 * Returns: (owned) NULL on error.
 */
KtProfile *kt_profile_open(const char *path, GError **errp);
/** kt_profile_new_from_data() - Read a profile from memory (for tests and fuzz
 *  targets). @name: stands for the file in errors. */
KtProfile *kt_profile_new_from_data(const char *data, size_t len,
                                    const char *name, GError **errp);
void kt_profile_free(KtProfile *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtProfile, kt_profile_free)

#endif /* KT_PROFILE_H */
