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
 * nothing but this line if the number is still the same. It is 0 if code could
 * not be read because no vCPU mapped the kernel: debuggers then find some
 * callers wrong, and the caller should ask again.
 */
#include "monitor-cmds/commands/commands.h"

#include <zlib.h>

#include "monitor-cmds/output/format.h"

/* ---- bytes as text ------------------------------------------------------- */

/*
 * A monitor passes text only: bytes are gzip, then base64, as "base64 -d |
 * gunzip" reads it. The VM waits meanwhile, so gzip's fastest level is used,
 * and nothing but one block is kept.
 */
#define GZIP        (15 + 16)       /* largest window, gzip's header */
#define LINE        768             /* bytes; 1024 characters */

/** struct Packer - bytes that were compressed and not printed */
typedef struct Packer {
    McOut *out;
    z_stream z;
    uint8_t line[LINE];
} Packer;

static void print_line(Packer *p)
{
    g_autofree char *text = g_base64_encode(p->line, LINE - p->z.avail_out);

    g_string_append(p->out->line, text);
    mc_out_end_line(p->out);
    p->z.next_out = p->line;
    p->z.avail_out = LINE;
}

/* Compress what @p->z has, and print each line that is full. */
static void pack(Packer *p)
{
    int rc;

    do {
        rc = deflate(&p->z, Z_FINISH);
        if (!p->z.avail_out || (rc == Z_STREAM_END &&
                                p->z.avail_out < LINE)) {
            print_line(p);
        }
    } while (rc == Z_OK && !p->out->closed);
}

/* Print @len bytes, compressed by gzip, in lines of base64. */
static void print_packed(McOut *o, const void *bytes, size_t len)
{
    Packer p = { .out = o };

    if (len > UINT_MAX ||
        deflateInit2(&p.z, Z_BEST_SPEED, Z_DEFLATED, GZIP, 9,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return;
    }
    p.z.next_in = (Bytef *)bytes;
    p.z.avail_in = len;
    p.z.next_out = p.line;
    p.z.avail_out = LINE;
    pack(&p);
    deflateEnd(&p.z);
}

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

/* In a running VM, the reads of a file wait so long, all together, for a vCPU
 * that maps the kernel. On a loaded host one sleep may take milliseconds. */
#define PATIENCE_US 1000000
#define SLEEP_US    100

/**
 * struct Reader - reads code for a file
 * @text: address of kernel code that is always mapped, 0: not known
 * @patience: microseconds that reads may still wait
 * @missed: reads that failed because no vCPU mapped the kernel
 */
typedef struct Reader {
    const McOut *out;
    uint64_t text;
    gint64 patience;
    size_t missed;
} Reader;

static Reader reader_of(const McOut *out, const GsKernel *k)
{
    GsSymbol sym;

    return (Reader) {
        .out = out,
        .text = gs_kernel_lookup(k, "_stext", &sym) ? sym.va : 0,
        .patience = out->ctx->vm && out->ctx->vm->running ? PATIENCE_US : 0,
    };
}

/* Does a vCPU map the kernel? On riscv64 none does while all are in user mode
 * or in the firmware. */
static bool is_kernel_mapped(const Reader *r)
{
    uint8_t byte;

    return !r->text || mc_read_guest(r->out, r->text, &byte, sizeof(byte));
}

static bool read_guest(void *opaque, uint64_t va, void *buf, size_t len)
{
    Reader *r = opaque;

    if (mc_read_guest(r->out, va, buf, len)) {
        return true;
    }
    while (!is_kernel_mapped(r)) {
        gint64 start = g_get_monotonic_time();

        if (r->patience <= 0) {
            r->missed++;
            return false;
        }
        g_usleep(SLEEP_US);
        r->patience -= g_get_monotonic_time() - start;
    }
    return mc_read_guest(r->out, va, buf, len);
}

static void print_figures(McOut *out, uint64_t stamp, size_t missed,
                          const GsDebugFile *f)
{
    g_autofree char *rules = f->n_ranges ?
        g_strdup_printf("%zu ranges of code by %s", f->n_ranges, f->unwind) :
        g_strdup_printf("no call frame information%s", f->no_unwinder ?
                        " (the kernel keeps neither unwind tables nor frame "
                        "pointers)" : "");
    g_autofree char *covered = f->n_covered ?
        g_strdup_printf(", %zu symbols of unloaded modules left out, whose "
                        "addresses others have now", f->n_covered) : NULL;
    g_autofree char *incomplete = missed ?
        g_strdup_printf(", incomplete: %zu reads of code failed because no "
                        "vCPU maps the kernel now (all are in user mode or in "
                        "firmware); let the VM run for a moment and ask again",
                        missed) : NULL;

    mc_out_printf(out, "-- symbols %" PRIu64 ": %zu symbols, %zu modules, %s, "
                  "%u bytes%s%s", missed ? 0 : stamp, f->n_symbols,
                  f->n_modules, rules, f->bytes->len, covered ? covered : "",
                  incomplete ? incomplete : "");
}

bool mc_cmd_symbols(McOut *out, const McArgs *args, GError **errp)
{
    const GsKernel *k = kernel_of(out->ctx, errp);
    uint64_t stamp = k ? gs_kernel_stamp(k) : 0;
    g_auto(GsDebugFile) file = { 0 };
    Reader reader;
    GsMem mem;

    if (!k) {
        return false;
    }
    out->whole = true;      /* ka reads these lines */
    if (mc_given(args, MC_OPT_AFTER) && args->after == stamp) {
        mc_out_printf(out, "-- symbols %" PRIu64 ": unchanged", stamp);
        return true;
    }
    reader = reader_of(out, k);
    mem = (GsMem) { .read = read_guest, .opaque = &reader };
    if (!gs_kernel_debug_file(k, out->ctx->vm ? &mem : NULL,
                              mc_given(args, MC_OPT_UNLOADED), &file, errp)) {
        return false;
    }
    print_figures(out, stamp, reader.missed, &file);
    print_packed(out, file.bytes->data, file.bytes->len);
    return true;
}
