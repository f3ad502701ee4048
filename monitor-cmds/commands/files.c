/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka files: the open files of a task.
 *
 * Called through mc_run(). A file is printed as it is read, without a lock. The
 * guest may run meanwhile.
 */
#include "monitor-cmds/commands/object-row.h"
#include "monitor-cmds/commands/task-choice.h"

/** struct Listing - @blocks: print the block of each file, too; @more: files
 *  that were left out because of -n */
typedef struct Listing {
    McOut *out;
    const McArgs *args;
    bool blocks;
    uint64_t shown, more;
} Listing;

/* ---- a file -------------------------------------------------------------- */

/* Print the file_operations by name, for they say what the file is. */
static void put_operations(const Listing *l, McObjectRow *r, const KtFile *f)
{
    const GsKernel *k = mc_symbols(l->out->ctx);
    GsSymbol sym;

    if (f->known & KT_FILE_OP && k &&
        gs_kernel_symbolize(k, f->op, &sym) && sym.va == f->op) {
        mc_object_put_word(r, "f_op", sym.name);
    } else {
        g_autofree char *hex = g_strdup_printf("%" PRIx64, f->op);

        mc_object_put_word(r, "f_op", f->known & KT_FILE_OP ? hex : NULL);
    }
}

/* Append the flags in octal, as /proc/PID/fdinfo has them. */
static void put_flags(McObjectRow *r, const KtFile *f)
{
    bool known = f->known & KT_FILE_FLAGS;

    if (known) {
        g_string_append_printf(r->text, " flags=0%o", f->flags);
    } else {
        g_string_append(r->text, " flags=-");
    }
    mc_object_add(r, "flags", known, f->flags);
}

static void put_details(McObjectRow *r, const KtFile *f)
{
    mc_object_put_address(r, "dentry", f->known & KT_FILE_DENTRY, f->dentry);
    mc_object_put_address(r, "inode", f->known & KT_FILE_INODE, f->inode);
    mc_object_put_number(r, "ino", f->known & KT_FILE_INO, f->ino);
    mc_object_put_word(r, "fs", *f->fs ? f->fs : NULL);
}

static void print_file(const Listing *l, const KtFile *f)
{
    g_auto(McObjectRow) r;
    const char *type = kt_file_type(f);

    mc_object_row_init(&r);
    mc_object_put_number(&r, "fd", true, f->fd);
    g_string_append_c(r.text, ' ');
    mc_put_hex(r.text, f->va, 16);
    r.figure[r.n++] = (McStat) { .key = "va", .u = f->va, .hex = true };
    g_string_append_printf(r.text, " %s", type ? type : "-");
    mc_object_add_word(&r, "kind", type);
    put_flags(&r, f);
    put_operations(l, &r, f);
    if (l->out->verbose) {
        put_details(&r, f);
    }
    mc_object_put_word(&r, "path", *f->path ? f->path : NULL);
    mc_object_add_word(&r, "whole", !*f->path ? NULL : f->whole ? "yes" :
                                                                  "no");
    mc_object_print(l->out, MC_OBJ_FILE, &r);
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

    g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                "open files are not known: this kernel has no types "
                "(CONFIG_DEBUG_INFO_BTF), see types=FILE; ka --cache filp "
                "--state A%s lists the files that were opened", task);
    return false;
}

static bool list_files(Listing *l, const KtTask *t, GError **errp)
{
    KtObjects o = { l->out->ctx->tracer, mc_symbols(l->out->ctx),
                    l->out->ctx->vm };
    uint64_t files;
    const char *why;

    if (!kt_task_fact(t, KT_TASK_FILES, &files)) {
        return fail_no_types(t, errp);
    }
    if (!files) {
        l->out->format->none(l->out, "no files: the task has ended");
        return true;
    }
    why = kt_files_foreach(&o, files, on_file, l);
    if (l->more) {
        l->out->format->more(l->out, l->more);
    }
    if (why) {
        l->out->format->sum(l->out, MC_OBJ_FILES, (McStat[]) {
            { .key = "missing", .s = why },
        }, 1, why);
    } else if (!l->shown && !l->out->closed) {
        l->out->format->none(l->out, "no open files");
    }
    return true;
}

bool mc_cmd_files(McOut *out, const McArgs *args, GError **errp)
{
    KtObjects o = { out->ctx->tracer, mc_symbols(out->ctx), out->ctx->vm };
    g_autoptr(KtTasks) tasks = NULL;
    g_autoptr(GPtrArray) chosen = g_ptr_array_new();
    Listing l = {
        .out = out, .args = args,
        .blocks = out->verbose || mc_given(args, MC_OPT_SYMBOLS),
    };
    bool one;

    if (!out->ctx->vm) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "\"files\" needs the memory of a VM; a journal has none");
        return false;
    }
    tasks = kt_tasks_new(&o);
    if (!mc_tasks_choose(out->ctx, tasks, args->name, false, chosen, &one)) {
        return mc_tasks_none(out->ctx, tasks, args->name, errp);
    }
    if (!one) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "%u tasks have this name: give a pid, which ka task %s "
                    "lists", chosen->len, args->name);
        return false;
    }
    return list_files(&l, chosen->pdata[0], errp);
}
