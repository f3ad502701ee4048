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

#define UNKNOWN UINT32_MAX
#define NAME_BYTES 255

static uint32_t member(const KtObjects *o, const char *type, const char *name)
{
    uint32_t at;

    return gs_kernel_member(o->kernel, type, name, &at, NULL) ? at : UNKNOWN;
}

void kt_path_layout_init(KtPathLayout *at, const KtObjects *o)
{
    *at = (KtPathLayout) {
        .parent = member(o, "dentry", "d_parent"),
        .name = member(o, "dentry", "d_name.name"),
        .name_len = member(o, "dentry", "d_name.len"),
        .hash = member(o, "dentry", "d_hash.pprev"),
        .sb = member(o, "dentry", "d_sb"),
        .op = member(o, "dentry", "d_op"),
        .root = member(o, "vfsmount", "mnt_root"),
        .mnt = member(o, "mount", "mnt"),
        .mnt_parent = member(o, "mount", "mnt_parent"),
        .mountpoint = member(o, "mount", "mnt_mountpoint"),
        .sb_type = member(o, "super_block", "s_type"),
        .type_name = member(o, "file_system_type", "name"),
        .dname = member(o, "dentry_operations", "d_dname"),
        .private = member(o, "inode", "i_private"),
        .ns_ops = member(o, "ns_common", "ops"),
        .ns_name = member(o, "proc_ns_operations", "name"),
    };
}

/* Read a pointer of an object. False if its place or value is not known. */
static bool pointer(const KtObjects *o, uint64_t va, uint32_t at,
                    uint64_t *out)
{
    return at != UNKNOWN && va && kt_objects_pointer(o, va + at, out);
}

/* Copy the string that a pointer of an object leads to. */
static bool text(const KtObjects *o, uint64_t va, uint32_t at, char *buf,
                 size_t size)
{
    uint64_t s;

    return pointer(o, va, at, &s) && s && kt_objects_text(o, s, buf, size);
}

/* ---- names --------------------------------------------------------------- */

/** struct Walk - a path that is made from its end: @f->path has it from @at
 *  on */
typedef struct Walk {
    const KtObjects *o;
    const KtPathLayout *l;
    KtFile *f;
    size_t at;
} Walk;

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

    if (w->l->name_len == UNKNOWN ||
        !pointer(w->o, dentry, w->l->name, &va) ||
        !kt_objects_number(w->o, dentry + w->l->name_len, 4, &n) || !n ||
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
    uint64_t mount = *mnt - w->l->mnt, parent;

    if (w->l->mnt == UNKNOWN ||
        !pointer(w->o, mount, w->l->mnt_parent, &parent) || !parent) {
        return false;
    }
    *top = parent == mount;
    if (*top) {
        return true;
    }
    *mnt = parent + w->l->mnt;
    return pointer(w->o, mount, w->l->mountpoint, dentry);
}

/* Make the path up to the root. Return false if a part cannot be read. */
static bool walk_up(Walk *w, uint64_t dentry, uint64_t mnt, uint64_t *steps)
{
    bool top = false;
    uint64_t root, parent;

    while (!top) {
        if (!*steps || !pointer(w->o, mnt, w->l->root, &root)) {
            return false;
        }
        *steps -= 1;
        if (dentry == root) {
            if (!leave_mount(w, &dentry, &mnt, &top)) {
                return false;
            }
        } else if (!pointer(w->o, dentry, w->l->parent, &parent) ||
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
           pointer(w->o, w->f->inode, w->l->private, &ns) &&
           pointer(w->o, ns, w->l->ns_ops, &ops) &&
           text(w->o, ops, w->l->ns_name, name, sizeof(name)) &&
           name_by_number(w->f, name);
}

/* Is the function of dentry_operations.d_dname this one? */
static bool has_dname(const Walk *w, const char *function)
{
    uint64_t op, dname;
    GsSymbol sym;

    return pointer(w->o, w->f->dentry, w->l->op, &op) && op &&
           pointer(w->o, op, w->l->dname, &dname) && dname &&
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

    if (!pointer(w->o, w->f->dentry, w->l->sb, &sb) ||
        !pointer(w->o, sb, w->l->sb_type, &type) ||
        !text(w->o, type, w->l->type_name, w->f->fs, sizeof(w->f->fs))) {
        *w->f->fs = 0;
    }
}

/* The kernel marks the path of a file whose dentry is on no list any more. */
static bool is_deleted(const Walk *w)
{
    uint64_t pprev, parent;

    return pointer(w->o, w->f->dentry, w->l->hash, &pprev) && !pprev &&
           pointer(w->o, w->f->dentry, w->l->parent, &parent) &&
           parent != w->f->dentry;
}

void kt_path_read(const KtObjects *o, const KtPathLayout *at, KtFile *f,
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
