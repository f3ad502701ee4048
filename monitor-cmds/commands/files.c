/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka files: the open files of a task.
 *
 * Called through mc_run(). A file is printed as it is read, without a lock. The
 * guest may run meanwhile.
 */
#include "monitor-cmds/commands/commands.h"

/** struct Listing - @blocks: print the block of each file, too; @more: files
 *  that were left out because of -n */
typedef struct Listing {
    McOut *out;
    const McArgs *args;
    bool blocks;
    uint64_t shown, more;
} Listing;

/* ---- a file -------------------------------------------------------------- */

typedef struct Row {
    const KtFile *f;
    const char *kind, *f_op;
    uint64_t flags, dentry, inode, ino;
} Row;

MC_GETTER(whole)
{
    const KtFile *f = ((const Row *)row)->f;

    v->u = f->whole;
    return *f->path;
}

static const McObject file_object = MC_TABLE_OBJECT("file",
    "ka files; null: not known",
    MC_VIA("fd", Row, f, fd, NUMBER, "fd=%", "its number", .head = "fd"),
    MC_VIA("va", Row, f, va, POINTER, " %", "of the struct file",
           .head = "va"),
    MC_COLUMN(Row, kind, TEXT, " %",
              "file, dir, char, block, pipe, socket, link or anon",
              .head = "kind"),
    MC_COLUMN(Row, flags, OCTAL, " flags=%",
              "those of open(), as a number", .flags = MC_MOST,
              .head = "flags"),
    MC_COLUMN(Row, f_op, WORD, " f_op=%",
              "name of the file_operations, or their address in hex",
              .head = "f_op"),
    MC_COLUMN(Row, dentry, POINTER, " dentry=%", "its dentry",
              .flags = MC_V | MC_MOST),
    MC_COLUMN(Row, inode, POINTER, " inode=%", "its inode",
              .flags = MC_V | MC_MOST),
    MC_COLUMN(Row, ino, NUMBER, " ino=%", "number of the inode",
              .flags = MC_V | MC_MOST),
    MC_VIA("fs", Row, f, fs, CHARS, " fs=%", "type of the file system",
           .flags = MC_V),
    MC_VIA("path", Row, f, path, CHARS, " path=%", "as in /proc/PID/fd",
           .head = "path"),
    MC_GET("whole", get_whole, YES_NO, NULL,
           "yes, or no if a part of the path is not known"));

typedef struct EndRow {
    const char *missing;
} EndRow;

static const McObject end_object = MC_LINE_OBJECT("files",
    "ka files, at the end, if the list is not whole",
    MC_COLUMN(EndRow, missing, TEXT, "%", "why"));

MC_OBJECTS(mc_files_objects, &file_object, &end_object, &mc_part_object);

static uint64_t known(const KtFile *f, unsigned fact, uint64_t value)
{
    return f->known & fact ? value : UINT64_MAX;
}

/* Print the file_operations by name, for they say what the file is. */
static void print_file(const Listing *l, const KtFile *f)
{
    const GsKernel *k = mc_symbols(l->out->ctx);
    g_autofree char *hex = g_strdup_printf("%" PRIx64, f->op);
    bool named;
    GsSymbol sym;

    named = k && gs_kernel_symbolize(k, f->op, &sym) && sym.va == f->op;
    mc_print(l->out, &file_object, &(Row) {
        .f = f, .kind = kt_file_type(f),
        .f_op = !(f->known & KT_FILE_OP) ? NULL : named ? sym.name : hex,
        .flags = known(f, KT_FILE_FLAGS, f->flags),
        .dentry = known(f, KT_FILE_DENTRY, f->dentry),
        .inode = known(f, KT_FILE_INODE, f->inode),
        .ino = known(f, KT_FILE_INO, f->ino) });
}

static bool on_file(const KtFile *f, void *opaque)
{
    Listing *l = opaque;

    if (l->shown == l->args->limit) {
        l->more++;
        return true;
    }
    l->shown++;
    print_file(l, f);
    if (l->blocks) {
        mc_object_print_block(l->out, "file", f->va);
    }
    return !l->out->closed;
}

/* ---- the command --------------------------------------------------------- */

/* Of a kernel without types, say how the map finds files. */
static bool fail_no_types(const KtTask *t, GError **errp)
{
    uint64_t pid;
    bool known = kt_task_fact(t, KT_TASK_PID, &pid);
    g_autofree char *task = known ?
        g_strdup_printf(" --task %" PRIu64, pid) : g_strdup("");

    return mc_fail_unknown(errp, "open files are not known: this kernel has no "
                           "types (CONFIG_DEBUG_INFO_BTF), see types=FILE; ka "
                           "--cache filp --state A%s lists the files that were "
                           "opened", task);
}

static bool list_files(Listing *l, const KtTask *t, GError **errp)
{
    KtObjects o = mc_objects(l->out);
    uint64_t files;
    const char *why;

    if (!kt_task_fact(t, KT_TASK_FILES, &files)) {
        return fail_no_types(t, errp);
    }
    if (!files) {
        mc_remark(l->out, "no files: the task has ended");
        return true;
    }
    why = kt_files_foreach(&o, files, on_file, l);
    if (l->more) {
        mc_more(l->out, l->more);
    }
    if (why) {
        mc_print(l->out, &end_object, &(EndRow) { why });
    } else if (!l->shown && !l->out->closed) {
        mc_remark(l->out, "no open files");
    }
    return true;
}

bool mc_cmd_files(McOut *out, const McArgs *args, GError **errp)
{
    KtObjects o = mc_objects(out);
    g_autoptr(KtTasks) tasks = NULL;
    g_autoptr(GPtrArray) chosen = g_ptr_array_new();
    Listing l = {
        .out = out, .args = args,
        .blocks = out->verbose || mc_given(args, MC_OPT_SYMBOLS),
    };
    bool one;

    if (!out->ctx->vm) {
        return mc_fail_unknown(errp, "\"files\" needs the memory of a VM; a "
                               "journal has none");
    }
    tasks = kt_tasks_new(&o);
    if (!mc_tasks_choose(out->ctx, tasks, args->name, false, chosen, &one)) {
        return mc_tasks_none(out->ctx, tasks, args->name, errp);
    }
    if (!one) {
        return mc_fail_unknown(errp, "%u tasks have this name: give a pid, "
                               "which ka task %s lists", chosen->len,
                               args->name);
    }
    return list_files(&l, chosen->pdata[0], errp);
}
