/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does a types file describe the kernel that runs? See types-fit.h. */
#include "kalloc-tracer/kernel/types-fit.h"
#include "guest-symbols/base/printable.h"
#include "kalloc-tracer/layout/layout.h"

#include <inttypes.h>
#include <string.h>

#define AGREE_ENOUGH    8
#define PID_MAX         4194304     /* PID_MAX_LIMIT */
#define OBJECT_MAX      (32u << 20)
/* A cache that others were merged into has the size of the largest, up to the
 * end of its slot, which is at most a cache line away. */
#define MERGED_MAX      128

/* Caches of one struct, of all versions since 5.4. */
static const struct {
    const char *cache, *type;
} rows[] = {
    { "kmem_cache_node", "kmem_cache_node" },
    { "filp", "file" },
    { "dentry", "dentry" },
    { "cred_jar", "cred" },
    { "cred", "cred" },
    { "inode_cache", "inode" },
    { "files_cache", "files_struct" },
    { "fs_cache", "fs_struct" },
    { "fs_struct", "fs_struct" },
    { "signal_cache", "signal_struct" },
    { "sighand_cache", "sighand_struct" },
    { "mnt_cache", "mount" },
    { "vm_area_struct", "vm_area_struct" },
    { "anon_vma", "anon_vma" },
    { "anon_vma_chain", "anon_vma_chain" },
    { "vmap_area", "vmap_area" },
    { "kernfs_node_cache", "kernfs_node" },
    { "radix_tree_node", "xa_node" },
    { "maple_node", "maple_node" },
    { "shmem_inode_cache", "shmem_inode_info" },
    { "proc_inode_cache", "proc_inode" },
    { "sock_inode_cache", "socket_alloc" },
    { "seq_file", "seq_file" },
    { "nsproxy", "nsproxy" },
};

char *kt_types_fit_banner(const GsTypesFile *f, const GsKernel *k)
{
    const char *file = gs_types_file_banner(f);
    const char *runs = gs_kernel_banner(k);

    return !file || !runs || !strcmp(file, runs) ? NULL :
           g_strdup_printf("it is of \"%s\", the guest runs \"%s\"", file,
                           runs);
}

static bool refuse(KtTypesFit *f, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* The first refusal counts. */
static bool refuse(KtTypesFit *f, const char *fmt, ...)
{
    static GMutex lock;
    va_list ap;

    g_mutex_lock(&lock);
    if (kt_types_fit_is_open(f)) {
        va_start(ap, fmt);
        g_vsnprintf(f->why, sizeof(f->why), fmt, ap);
        va_end(ap);
        __atomic_store_n(&f->state, KT_TYPES_REFUSED, __ATOMIC_RELEASE);
        f->refused(f->opaque);
    }
    g_mutex_unlock(&lock);
    return false;
}

static void agree(KtTypesFit *f)
{
    unsigned open = KT_TYPES_OPEN;

    if (__atomic_add_fetch(&f->agree, 1, __ATOMIC_RELAXED) == AGREE_ENOUGH) {
        __atomic_compare_exchange_n(&f->state, &open, KT_TYPES_FIT, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

/* Compare the size of @type with that of the objects of a cache. */
static bool compare(KtTypesFit *f, const char *cache, const char *type,
                    uint32_t object_size)
{
    uint32_t bytes;

    if (!gs_kernel_type_size(f->kernel, type, &bytes)) {
        return true;
    }
    if (object_size == bytes) {
        agree(f);
    } else if (object_size < bytes || object_size - bytes >= MERGED_MAX) {
        return refuse(f, "struct %s has %u bytes there, objects of %s %u",
                      type, bytes, cache, object_size);
    }
    return true;
}

bool kt_types_fit_cache(KtTypesFit *f, uint64_t va, const char *name,
                        uint32_t object_size, uint32_t size)
{
    if (!name || !gs_is_printable(name)) {
        return refuse(f, "kmem_cache.name is at offset %u there, but the "
                      "kmem_cache at 0x%" PRIx64 " has no name at it",
                      kt_member(f->kernel, KT_M_CACHE_NAME), va);
    }
    if (!object_size || object_size > size || size > OBJECT_MAX) {
        return refuse(f, "by it, objects of %s have %u bytes in slots of %u",
                      name, object_size, size);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (!strcmp(name, rows[i].cache)) {
            return compare(f, name, rows[i].type, object_size);
        }
    }
    return true;
}

/* A task may have any name. But the idle tasks, which boot, have pid 0 and the
 * name swapper. */
bool kt_types_fit_task(KtTypesFit *f, uint32_t pid, const char comm[16])
{
    if (pid > PID_MAX) {
        return refuse(f, "by it, the current task has pid %u", pid);
    }
    if (!memchr(comm, '\0', 16)) {
        return refuse(f, "by it, the name of the current task has no end");
    }
    if (!pid && strncmp(comm, "swapper", strlen("swapper"))) {
        return refuse(f, "by it, the task with pid 0 is not called swapper");
    }
    return true;
}
