/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open files of a task. The public header is api/kt-files.h.
 *
 *     files_struct.fdt -> fdtable.fd -> pointer to struct file, for each fd
 *                                .close_on_exec -> a bit for each fd
 *
 * Called on any thread; no locks. All values are untrusted: a table has at most
 * as many entries as the kernel allows, and a listing follows a limited number
 * of links.
 */
#include "kalloc-tracer/api/kt-files.h"

#include <string.h>
#include <inttypes.h>

#include "kalloc-tracer/objects/objects-internal.h"

/* Limits: of fds (the kernel's sysctl_nr_open_max may be more, its default is
 * this); of files; of links that are followed for all paths together. */
#define FDS_MAX (1u << 20)
#define FILES_MAX (1u << 16)
#define STEPS_MAX (1u << 20)
#define CHUNK 512u
#define O_CLOEXEC_BIT 02000000u

/* Kinds of files: bits of i_mode. */
static const struct {
    uint32_t mode;
    const char *type;
} types[] = {
    { 0100000, "file" }, { 0040000, "dir" }, { 0020000, "char" },
    { 0060000, "block" }, { 0010000, "pipe" }, { 0140000, "socket" },
    { 0120000, "link" }, { 0, "anon" },
};

const char *kt_file_type(const KtFile *f)
{
    if (!strcmp(f->fs, "anon_inodefs")) {
        return "anon";
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        if (f->known & KT_FILE_MODE && (f->mode & 0170000) == types[i].mode) {
            return types[i].type;
        }
    }
    return NULL;
}

/* ---- a file -------------------------------------------------------------- */

/** struct Listing - @table: address of the pointers; @close_on_exec: of the
 *  bits, 0 if unknown; @steps: links that may still be followed; @why: why the
 *  list is not whole */
typedef struct Listing {
    const KtObjects *o;
    KtLayout at;
    uint64_t table, close_on_exec, steps;
    unsigned n_fds, shown;
    const char *why;
    KtFileFn fn;
    void *opaque;
} Listing;

/* Read a member, and note that it is known. */
static bool read_member(const Listing *l, KtFile *f, KtFileFact fact,
                        KtMember m, unsigned bytes, uint64_t *out)
{
    uint64_t va = f->va + l->at.at[m];
    bool ok = kt_layout_has(&l->at, m) &&
              (bytes == 8 ? kt_objects_pointer(l->o, va, out) :
                            kt_objects_number(l->o, va, bytes, out));

    f->known |= ok ? fact : 0;
    return ok;
}

static void read_inode(const Listing *l, KtFile *f)
{
    uint64_t v;

    if (!read_member(l, f, KT_FILE_INODE, KT_M_FILE_INODE, 8, &f->inode) ||
        !f->inode) {
        return;
    }
    if (kt_layout_has(&l->at, KT_M_INODE_MODE) &&
        kt_objects_number(l->o, f->inode + l->at.at[KT_M_INODE_MODE], 2, &v)) {
        f->mode = v;
        f->known |= KT_FILE_MODE;
    }
    if (kt_layout_has(&l->at, KT_M_INODE_INO) &&
        kt_objects_number(l->o, f->inode + l->at.at[KT_M_INODE_INO],
                          l->at.size[KT_M_INODE_INO], &f->ino)) {
        f->known |= KT_FILE_INO;
    }
}

static bool is_close_on_exec(const Listing *l, unsigned fd)
{
    uint64_t word;

    return l->close_on_exec &&
           kt_objects_number(l->o, l->close_on_exec + fd / 64 * 8, 8, &word) &&
           word >> fd % 64 & 1;
}

static void read_flags(const Listing *l, KtFile *f)
{
    uint64_t v;

    if (read_member(l, f, KT_FILE_FLAGS, KT_M_FILE_FLAGS, 4, &v)) {
        f->flags = v & ~O_CLOEXEC_BIT;
        f->flags |= is_close_on_exec(l, f->fd) ? O_CLOEXEC_BIT : 0;
    }
}

static void read_file(Listing *l, KtFile *f)
{
    uint64_t mnt = 0;

    read_flags(l, f);
    read_member(l, f, KT_FILE_OP, KT_M_FILE_OP, 8, &f->op);
    read_inode(l, f);
    if (kt_layout_has(&l->at, KT_M_FILE_MNT)) {
        kt_objects_pointer(l->o, f->va + l->at.at[KT_M_FILE_MNT], &mnt);
    }
    if (read_member(l, f, KT_FILE_DENTRY, KT_M_FILE_DENTRY, 8, &f->dentry) &&
        f->dentry) {
        kt_path_read(l->o, &l->at, f, mnt, &l->steps);
    }
}

/* ---- the table ----------------------------------------------------------- */

/* List the files of a part of the table. Return false at the end. */
static bool list_chunk(Listing *l, unsigned first, const uint64_t *entry,
                       unsigned n)
{
    uint64_t tag_bits = gs_kernel_tag_bits(l->o->kernel);

    for (unsigned i = 0; i < n; i++) {
        KtFile f = {
            .fd = first + i,
            .va = gs_untag(tag_bits, GUINT64_FROM_LE(entry[i])),
        };

        if (!f.va) {
            continue;
        }
        if (l->shown++ == FILES_MAX) {
            l->why = "there are more open files than the limit";
            return false;
        }
        read_file(l, &f);
        if (!l->fn(&f, l->opaque)) {
            return false;
        }
    }
    return true;
}

static void list_table(Listing *l)
{
    uint64_t entry[CHUNK];

    for (unsigned fd = 0; fd < l->n_fds; fd += CHUNK) {
        unsigned n = MIN(CHUNK, l->n_fds - fd);

        if (!kt_objects_read(l->o, l->table + 8ull * fd, entry, 8ull * n)) {
            l->why = "a part of the table of files is not readable";
            return;
        }
        if (!list_chunk(l, fd, entry, n)) {
            return;
        }
    }
    if (!l->steps) {
        l->why = "too many links were followed for the paths";
    }
}

const char *kt_files_foreach(const KtObjects *o, uint64_t files, KtFileFn fn,
                             void *opaque)
{
    Listing l = {
        .o = o, .fn = fn, .opaque = opaque, .steps = STEPS_MAX,
    };
    uint64_t fdt, n;

    if (!o->vm) {
        return "it needs the memory of a VM";
    }
    if (!kt_layout_find(&l.at, o->kernel, KT_M_FILES_FDT, KT_M_FDT_FD)) {
        return "the kernel has no types of files";
    }
    if (!kt_objects_pointer(o, files + l.at.at[KT_M_FILES_FDT], &fdt) ||
        !kt_objects_number(o, fdt + l.at.at[KT_M_FDT_MAX], 4, &n) ||
        !kt_objects_pointer(o, fdt + l.at.at[KT_M_FDT_FD], &l.table)) {
        return "the table of files is not readable";
    }
    if (kt_layout_has(&l.at, KT_M_FDT_CLOSE)) {
        kt_objects_pointer(o, fdt + l.at.at[KT_M_FDT_CLOSE], &l.close_on_exec);
    }
    l.n_fds = MIN(n, FDS_MAX);
    l.why = n > FDS_MAX ? "the table of files is larger than the limit" : NULL;
    list_table(&l);
    return l.why;
}

/* ---- paths --------------------------------------------------------------- */
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
