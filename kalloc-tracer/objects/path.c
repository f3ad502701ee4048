/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths of files, as d_path() makes them: names from the file's dentry up to
 * the root of its mount, then from there, up to the mount that has no parent.
 *
 *     mount of /tmp:  root <- files <- a            d_parent
 *                      |
 *                mnt_mountpoint, mnt_parent
 *                      v
 *     mount of /:     root <- tmp
 *
 * Pipes, sockets and the like have no path. The kernel makes a text of their
 * inode's number or of their name; the type of their file system says which.
 */
#include "kalloc-tracer/objects/path.h"

#include <inttypes.h>
#include <string.h>

#include "kalloc-tracer/objects/object-reader.h"

#define NAME_BYTES 255

/** struct Walk - a path that is made from its end: @f->path has it from @at
 *  on */
typedef struct Walk {
    const KtObjects *o;
    const KtLayout *l;
    KtFile *f;
    size_t at;
} Walk;

/* Read a pointer of an object. False if its place or value is not known. */
static bool pointer(const Walk *w, uint64_t va, KtMember m, uint64_t *out)
{
    return kt_layout_has(w->l, m) && va &&
           kt_objects_pointer(w->o, va + w->l->at[m], out);
}

/* Copy the string that a pointer of an object leads to. */
static bool text(const Walk *w, uint64_t va, KtMember m, char *buf,
                 size_t size)
{
    uint64_t s;

    return pointer(w, va, m, &s) && s && kt_objects_text(w->o, s, buf, size);
}

/* ---- names --------------------------------------------------------------- */

/* Put bytes before the path so far. False if there is no room. */
static bool prepend(Walk *w, const char *s, size_t len)
{
    if (len > w->at) {
        return false;
    }
    w->at -= len;
    memcpy(w->f->path + w->at, s, len);
    return true;
}

/* Read the name of a dentry, which may have any bytes but NUL. */
static bool read_name(const Walk *w, uint64_t dentry, char *buf, size_t *len)
{
    uint64_t va, n;

    if (!kt_layout_has(w->l, KT_M_DENTRY_NAME_LEN) ||
        !pointer(w, dentry, KT_M_DENTRY_NAME, &va) ||
        !kt_objects_number(w->o, dentry + w->l->at[KT_M_DENTRY_NAME_LEN], 4,
                           &n) || !n ||
        n > NAME_BYTES || !kt_objects_read(w->o, va, buf, n)) {
        return false;
    }
    *len = strnlen(buf, n);
    return true;
}

static bool prepend_name(Walk *w, uint64_t dentry)
{
    char name[NAME_BYTES];
    size_t len;

    return read_name(w, dentry, name, &len) && prepend(w, name, len) &&
           prepend(w, "/", 1);
}

/* Go from the root of a mount to the place that it is mounted on. @top: (out)
 * it is mounted nowhere. */
static bool leave_mount(const Walk *w, uint64_t *dentry, uint64_t *mnt,
                        bool *top)
{
    uint64_t mount = *mnt - w->l->at[KT_M_MOUNT_MNT], parent;

    if (!kt_layout_has(w->l, KT_M_MOUNT_MNT) ||
        !pointer(w, mount, KT_M_MOUNT_PARENT, &parent) || !parent) {
        return false;
    }
    *top = parent == mount;
    if (*top) {
        return true;
    }
    *mnt = parent + w->l->at[KT_M_MOUNT_MNT];
    return pointer(w, mount, KT_M_MOUNT_POINT, dentry);
}

/* Make the path up to the root. Return false if a part cannot be read. */
static bool walk_up(Walk *w, uint64_t dentry, uint64_t mnt, uint64_t *steps)
{
    bool top = false;
    uint64_t root, parent;

    while (!top) {
        if (!*steps || !pointer(w, mnt, KT_M_MNT_ROOT, &root)) {
            return false;
        }
        *steps -= 1;
        if (dentry == root) {
            if (!leave_mount(w, &dentry, &mnt, &top)) {
                return false;
            }
        } else if (!pointer(w, dentry, KT_M_DENTRY_PARENT, &parent) ||
                   parent == dentry || !prepend_name(w, dentry)) {
            return false;
        } else {
            dentry = parent;
        }
    }
    return true;
}

/* ---- files without a path ------------------------------------------------ */

/* Types of file systems whose files are named by the inode's number. */
static const struct {
    const char *fs, *name;
} numbered[] = {
    { "pipefs", "pipe" }, { "sockfs", "socket" }, { "pidfs", "pidfd" },
};

static void set_path(KtFile *f, const char *before, const char *name,
                     const char *after)
{
    g_snprintf(f->path, sizeof(f->path), "%s%s%s", before, name, after);
    f->whole = true;
}

static bool name_by_number(KtFile *f, const char *name)
{
    g_autofree char *number = g_strdup_printf(":[%" PRIu64 "]", f->ino);

    set_path(f, name, number, "");
    return f->known & KT_FILE_INO;
}

static bool name_of_namespace(const Walk *w)
{
    uint64_t ns, ops;
    char name[32];

    return w->f->known & KT_FILE_INODE &&
           pointer(w, w->f->inode, KT_M_INODE_PRIVATE, &ns) &&
           pointer(w, ns, KT_M_NS_OPS, &ops) &&
           text(w, ops, KT_M_NS_NAME, name, sizeof(name)) &&
           name_by_number(w->f, name);
}

/* Is the function of dentry_operations.d_dname this one? */
static bool has_dname(const Walk *w, const char *function)
{
    uint64_t op, dname;
    GsSymbol sym;

    return pointer(w, w->f->dentry, KT_M_DENTRY_OP, &op) && op &&
           pointer(w, op, KT_M_DENTRY_OP_NAME, &dname) && dname &&
           gs_kernel_symbolize(w->o->kernel, dname, &sym) &&
           sym.va == dname && !strcmp(sym.name, function);
}

/* Name a file that has no path. False if it has one. */
static bool name_without_path(const Walk *w)
{
    char name[NAME_BYTES + 1];
    size_t len;

    for (unsigned i = 0; i < G_N_ELEMENTS(numbered); i++) {
        if (!strcmp(w->f->fs, numbered[i].fs)) {
            return name_by_number(w->f, numbered[i].name);
        }
    }
    if (!strcmp(w->f->fs, "nsfs")) {
        return name_of_namespace(w);
    }
    if (!read_name(w, w->f->dentry, name, &len)) {
        return false;
    }
    name[len] = 0;
    if (!strcmp(w->f->fs, "anon_inodefs")) {
        set_path(w->f, "anon_inode:", name, "");
        return true;
    }
    if (has_dname(w, "simple_dname")) {
        set_path(w->f, "/", name, " (deleted)");
        return true;
    }
    return false;
}

/* ---- all ----------------------------------------------------------------- */

static void read_fs(const Walk *w)
{
    uint64_t sb, type;

    if (!pointer(w, w->f->dentry, KT_M_DENTRY_SB, &sb) ||
        !pointer(w, sb, KT_M_SB_TYPE, &type) ||
        !text(w, type, KT_M_FS_NAME, w->f->fs, sizeof(w->f->fs))) {
        *w->f->fs = 0;
    }
}

/* The kernel marks the path of a file whose dentry is on no list any more. */
static bool is_deleted(const Walk *w)
{
    uint64_t pprev, parent;

    return pointer(w, w->f->dentry, KT_M_DENTRY_HASH, &pprev) && !pprev &&
           pointer(w, w->f->dentry, KT_M_DENTRY_PARENT, &parent) &&
           parent != w->f->dentry;
}

void kt_path_read(const KtObjects *o, const KtLayout *at, KtFile *f,
                  uint64_t mnt, uint64_t *steps)
{
    static const char deleted[] = " (deleted)";
    Walk w = { o, at, f, KT_FILE_PATH_MAX };

    read_fs(&w);
    if (name_without_path(&w)) {
        return;
    }
    f->path[KT_FILE_PATH_MAX] = 0;
    if (is_deleted(&w)) {
        prepend(&w, deleted, strlen(deleted));
    }
    f->whole = walk_up(&w, f->dentry, mnt, steps);
    if (f->whole && (w.at == KT_FILE_PATH_MAX || f->path[w.at] != '/')) {
        prepend(&w, "/", 1);
    } else if (!f->whole && w.at < KT_FILE_PATH_MAX) {
        w.at = w.at < 3 ? 0 : w.at - 3;
        memcpy(f->path + w.at, "...", 3);
    }
    memmove(f->path, f->path + w.at, KT_FILE_PATH_MAX + 1 - w.at);
}
