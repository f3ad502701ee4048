/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka symbols: an ELF file for debuggers, of all symbols and with call frame
 * information. Called through mc_run().
 *
 * QEMU writes no file that a monitor's user names. So the answer has the bytes
 * of the file, as text; the program ka and scripts/ka-gdb.py write the file:
 *
 *     -- symbols 4295491591: 164035 symbols, 12 modules, 71234 ranges of ...
 *     H4sIAAAAAAAEA+y9...
 *
 * The first number changes when modules come or go. With --after a caller gets
 * nothing but this line if the number is still the same.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/commands/guest-access.h"
#include "monitor-cmds/output/packed.h"

static const GsKernel *kernel_of(const McContext *ctx, GError **errp)
{
    const GsKernel *k = mc_symbols(ctx);

    if (!k) {
        g_set_error_literal(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                            ctx->why_no_kernel ? ctx->why_no_kernel :
                            "no kernel was recognised yet");
    }
    return k;
}

static bool read_guest(void *opaque, uint64_t va, void *buf, size_t len)
{
    return mc_read_guest(opaque, va, buf, len);
}

static void print_figures(McOut *out, uint64_t stamp, const GsDebugFile *f)
{
    g_autofree char *rules = f->n_ranges ?
        g_strdup_printf("%zu ranges of code by %s", f->n_ranges, f->unwind) :
        g_strdup_printf("no call frame information%s", f->no_unwinder ?
                        " (the kernel keeps neither unwind tables nor frame "
                        "pointers)" : "");
    g_autofree char *covered = f->n_covered ?
        g_strdup_printf(", %zu symbols of unloaded modules left out, whose "
                        "addresses others have now", f->n_covered) : NULL;

    mc_out_printf(out, "-- symbols %" PRIu64 ": %zu symbols, %zu modules, %s, "
                  "%u bytes%s", stamp, f->n_symbols, f->n_modules, rules,
                  f->bytes->len, covered ? covered : "");
}

bool mc_cmd_symbols(McOut *out, const McArgs *args, GError **errp)
{
    const GsKernel *k = kernel_of(out->ctx, errp);
    uint64_t stamp = k ? gs_kernel_stamp(k) : 0;
    const GsMem mem = { .read = read_guest, .opaque = out };
    g_auto(GsDebugFile) file = { 0 };

    if (!k) {
        return false;
    }
    if (mc_given(args, MC_OPT_AFTER) && args->after == stamp) {
        mc_out_printf(out, "-- symbols %" PRIu64 ": unchanged", stamp);
        return true;
    }
    if (!gs_kernel_debug_file(k, out->ctx->vm ? &mem : NULL,
                              mc_given(args, MC_OPT_UNLOADED), &file, errp)) {
        return false;
    }
    print_figures(out, stamp, &file);
    mc_packed(out, file.bytes->data, file.bytes->len);
    return true;
}
