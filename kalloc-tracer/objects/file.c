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

#include "kalloc-tracer/objects/object-reader.h"
#include "kalloc-tracer/objects/path.h"

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
