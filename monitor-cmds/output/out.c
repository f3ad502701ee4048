/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sink, and the names of frames.
 *
 * Lines are joined into chunks, because each call of the embedder's puts() may
 * cost one packet to a debugger. Called by the formatters and commands, on the
 * thread of one command; no locks.
 */
#include "monitor-cmds/output/row.h"

#include <string.h>

void mc_out_init(McOut *o, const McContext *ctx)
{
    *o = (McOut) {
        .ctx = ctx,
        .line = g_string_sized_new(512),
        .word = g_string_new(NULL),
        .chunk = g_string_sized_new(MC_CHUNK * 2),
        .margin = MC_MARGIN,
    };
}

void mc_out_deinit(McOut *o)
{
    mc_out_flush(o);
    g_string_free(g_steal_pointer(&o->line), TRUE);
    g_string_free(g_steal_pointer(&o->word), TRUE);
    g_string_free(g_steal_pointer(&o->chunk), TRUE);
    g_clear_pointer(&o->long_plan, mc_long_plan_free);
    g_clear_pointer(&o->table, mc_table_free);
    g_clear_pointer(&o->frame_names, g_hash_table_unref);
}

/* Pass the chunk to the sink. Rows of a table stay. */
static void flush_chunk(McOut *o)
{
    if (o->chunk->len && !o->closed) {
        o->closed = !o->ctx->puts(o->ctx->puts_opaque, o->chunk->str);
    }
    g_string_truncate(o->chunk, 0);
}

void mc_out_flush(McOut *o)
{
    mc_table_put(o);
    flush_chunk(o);
}

static bool is_printable(const GString *line)
{
    for (gsize i = 0; i < line->len; i++) {
        unsigned char c = line->str[i];

        if (c < 0x20 || c >= 0x7f) {
            return false;
        }
    }
    return true;
}

/* Replace each byte that is no printable ASCII character by \xNN. This is the
 * last step before a terminal, for all text of a line, whatever its source. */
static void make_printable(GString *line)
{
    g_autofree char *raw = NULL;
    gsize len = line->len;

    if (is_printable(line)) {
        return;
    }
    raw = g_memdup2(line->str, len);
    g_string_truncate(line, 0);
    for (gsize i = 0; i < len; i++) {
        unsigned char c = raw[i];

        if (c >= 0x20 && c < 0x7f) {
            g_string_append_c(line, c);
        } else {
            g_string_append(line, "\\x");
            mc_put_hex(line, c, 2);
        }
    }
}

/* Make an object of a line of text, of a command that has no rows. */
static void make_object(McOut *o)
{
    g_autofree char *text = g_strdup(o->line->str);

    g_string_assign(o->line, "{\"schema\":" G_STRINGIFY(MC_JSON_SCHEMA));
    mc_json_text(o->line, "type", "text");
    mc_json_text(o->line, "text", text);
    g_string_append_c(o->line, '}');
}

void mc_out_put_line(McOut *o, GString *line)
{
    make_printable(line);
    g_string_append_c(line, '\n');
    if (o->chunk->len && o->chunk->len + line->len > MC_CHUNK) {
        flush_chunk(o);
    }
    g_string_append_len(o->chunk, line->str, line->len);
    g_string_truncate(line, 0);
    if (o->chunk->len >= MC_CHUNK) {
        flush_chunk(o);
    }
}

void mc_out_end_line(McOut *o)
{
    if (o->json && *o->line->str != '{') {
        make_object(o);
    }
    if (o->table) {
        mc_table_line(o, o->line->str);
        g_string_truncate(o->line, 0);
    } else {
        mc_out_put_line(o, o->line);
    }
}

/* Return where a line of at most @most characters ends: at a blank, if there is
 * one. */
static size_t end_of_line(const char *text, size_t most)
{
    size_t indent = strspn(text, " "), end = most;

    if (strlen(text) <= most) {
        return strlen(text);
    }
    while (end > indent && text[end] != ' ') {
        end--;
    }
    return end > indent ? end : indent + strcspn(text + indent, " ");
}

void mc_out_wrapped(McOut *o, const char *text)
{
    size_t end = o->json || o->whole ? strlen(text) :
                                       end_of_line(text, MC_COLUMNS);

    g_string_append_len(o->line, text, end);
    mc_out_end_line(o);
    while (text[end]) {
        text += end + 1;
        end = end_of_line(text, MC_COLUMNS - strlen(MC_INDENT));
        g_string_append(o->line, MC_INDENT);
        g_string_append_len(o->line, text, end);
        mc_out_end_line(o);
    }
}

void mc_out_printf(McOut *o, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, format);
    text = g_strdup_vprintf(format, ap);
    va_end(ap);
    mc_out_wrapped(o, text);
}

void mc_out_text(McOut *o, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");

        g_string_append_len(o->line, text, len);
        mc_out_end_line(o);
        text += len + (text[len] == '\n');
    }
}

/* ---- frames -------------------------------------------------------------- */

/* Do interrupts and exceptions of kernel code enter through @sym? The names are
 * of x86-64, riscv64 and arm64. */
static bool is_entry(const GsSymbol *sym)
{
    static const char *const names[] = {
        "handle_exception", "ret_from_exception", "el1h_64_sync",
        "el1h_64_irq", "el1h_64_fiq", "el1h_64_error", "el1_sync", "el1_irq",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (!strcmp(sym->name, names[i])) {
            return true;
        }
    }
    return g_str_has_prefix(sym->name, "asm_");
}

/* Return true if the frame is an instruction that an interrupt or exception
 * stopped, because the frame before it is that of an entry. */
static bool is_stopped(const GsKernel *k, const McFrame *f)
{
    GsSymbol sym;

    return k && f->leafward &&
           gs_kernel_symbolize_at(k, f->leafward, f->era, &sym) &&
           is_entry(&sym);
}

uint64_t mc_frame_at(const GsKernel *k, const McFrame *f)
{
    return f->exact || !f->pc || is_stopped(k, f) ? f->pc : f->pc - 1;
}

/*
 * Find the function of a frame.
 *
 * A call that never returns may be the last instruction of its function. Its
 * return address is then the first byte of the next function, so the address
 * before it is looked up. Exception: the frame of an instruction that an
 * interrupt or exception stopped is exact; such a frame follows the frame of an
 * entry.
 */
bool mc_frame_symbol(const GsKernel *k, const McFrame *f, GsSymbol *out)
{
    uint64_t pc = f->pc;
    bool found = k && gs_kernel_symbolize_at(k, pc, f->era, out);
    GsSymbol other;

    if (found && (f->exact || out->va != pc)) {
        return true;
    }
    if (found && is_stopped(k, f)) {
        return true;
    }
    if (k && pc && gs_kernel_symbolize_at(k, pc - 1, f->era, &other) &&
        gs_kernel_is_code(k, &other)) {
        *out = other;
        return true;
    }
    return found;
}

static void put_offset(GString *s, const GsSymbol *sym, uint64_t pc)
{
    mc_put_word(s, sym->name);
    g_string_append(s, "+0x");
    mc_put_hex(s, pc - sym->va, 1);
}

static void put_module(GString *s, const GsSymbol *sym)
{
    if (sym->module) {
        g_string_append_c(s, '[');
        mc_put_word(s, sym->module);
        g_string_append_c(s, ']');
    }
}

void mc_put_pc(GString *s, const GsKernel *k, const McFrame *f)
{
    GsSymbol sym;

    if (!mc_frame_symbol(k, f, &sym)) {
        mc_put_hex(s, f->pc, 16);
        return;
    }
    put_offset(s, &sym, f->pc);
    put_module(s, &sym);
}

void mc_put_function(GString *s, const GsKernel *k, const McFrame *f)
{
    GsSymbol sym;

    if (!mc_frame_symbol(k, f, &sym)) {
        mc_put_hex(s, f->pc, 16);
        return;
    }
    mc_put_word(s, sym.name);
    put_module(s, &sym);
}

void mc_put_pc_as_kernel(GString *s, const GsKernel *k, const McFrame *f)
{
    GsSymbol sym;

    if (!mc_frame_symbol(k, f, &sym)) {
        g_string_append(s, "0x");
        mc_put_hex(s, f->pc, 16);
        return;
    }
    put_offset(s, &sym, f->pc);
    g_string_append(s, "/0x");
    mc_put_hex(s, sym.size, 1);
    if (sym.module) {
        g_string_append_c(s, ' ');
        put_module(s, &sym);
    }
}

McStack mc_stack(KtTracer *t, KtStackId id)
{
    McStack s = { 0 };

    if (id.v) {
        s.pc = kt_tracer_stack(t, id, &s.n, &s.stop);
        s.era = kt_tracer_stack_era(t, id);
    }
    return s;
}

McFrame mc_frame(const McStack *s, unsigned i)
{
    return (McFrame) {
        s->pc[i], i ? s->pc[i - 1] : 0, s->era.all, !i && s->exact,
    };
}

McFrame mc_caller(const McStack *s)
{
    return (McFrame) { s->n ? s->pc[0] : 0, 0, s->era.first, s->exact };
}
