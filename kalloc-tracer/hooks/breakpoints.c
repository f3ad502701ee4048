/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where breakpoints see the calls of a function: see breakpoints.h. */
#include "kalloc-tracer/hooks/breakpoints.h"

#include <string.h>

#define FUNCTION_BYTES  8192            /* of one function; most have 500 */

/**
 * struct Scan - the code of a function, in one or two parts
 * @main, @cold: @cold has paths that are unlikely; empty: there is none
 * @thunk: jumps there return; 0: there is none
 * @fentry: the function that ftrace has called at each entry; 0: unknown
 */
typedef struct Scan {
    const GsKernel *k;
    const GsArch *arch;
    const KtCodeReader *reader;
    uint64_t main, main_end, cold, cold_end;
    uint64_t thunk, fentry;
    KtBreakpoints *out;
} Scan;

static uint64_t va_of(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return gs_kernel_lookup(k, name, &sym) ? sym.va : 0;
}

static bool is_inside(const Scan *s, uint64_t va)
{
    return va - s->main < s->main_end - s->main ||
           va - s->cold < s->cold_end - s->cold;
}

static void add(uint64_t *list, unsigned *n, unsigned max, uint64_t va,
                bool *incomplete)
{
    for (unsigned i = 0; i < *n; i++) {
        if (list[i] == va) {
            return;
        }
    }
    if (*n < max) {
        list[(*n)++] = va;
    } else {
        *incomplete = true;
    }
}

static void add_return(KtBreakpoints *out, uint64_t va)
{
    add(out->returns, &out->n_returns, KT_BREAKPOINT_RETURNS, va,
        &out->incomplete);
}

static void add_tail(KtBreakpoints *out, uint64_t to)
{
    add(out->tails, &out->n_tails, KT_BREAKPOINT_TAILS, to, &out->incomplete);
}

/* ---- returns ------------------------------------------------------------- */

/* Return true for jmp *rm: where it leads is not known. */
static bool is_indirect_jump(const uint8_t *insn, size_t len)
{
    size_t at = len > 1 && (insn[0] == 0x3e || (insn[0] & 0xf0) == 0x40);

    return len > at + 1 && insn[at] == 0xff && (insn[at + 1] >> 3 & 7) == 4;
}

/* A jump that is no part of a function's code comes back: static_cpu_has() has
 * its slow path in .altinstr_aux. */
static bool is_function(const GsKernel *k, uint64_t va)
{
    GsSymbol sym;

    return gs_kernel_is_text(k, va) && gs_kernel_symbolize(k, va, &sym) &&
           sym.va == va;
}

/* A jump to the beginning of another function is a tail call, also if it is
 * conditional. */
static void follow(Scan *s, uint64_t va, const uint8_t *insn,
                   const GsBranch *b)
{
    if (s->arch->breakpoint(insn, b->len) == GS_BREAKPOINT_RETURN) {
        add_return(s->out, va);
    } else if (b->direct && !b->call && !is_inside(s, b->to)) {
        if (s->thunk && b->to == s->thunk) {
            add_return(s->out, va);
        } else if (is_function(s->k, b->to)) {
            add_tail(s->out, b->to);
        }
    } else if (!b->direct && is_indirect_jump(insn, b->len)) {
        s->out->incomplete = true;
    }
}

/* ---- the entry ----------------------------------------------------------- */

static bool is_call_of(const Scan *s, const GsBranch *b)
{
    return b->direct && b->call && s->fentry && b->to == s->fentry;
}

/* Return true if a branch of the function leads to @va: then the instruction
 * there is executed without an entry, too. */
static bool is_target(const Scan *s, const uint8_t *code, size_t len,
                      uint64_t va)
{
    size_t at = 0;
    GsBranch b;

    while (at < len &&
           s->arch->branch(s->main + at, code + at, len - at, &b)) {
        if (b.direct && !b.call && b.to == va) {
            return true;
        }
        at += b.len;
    }
    return false;
}

/* The landing pad, padding and ftrace's site are skipped. */
static void find_entry(Scan *s, const uint8_t *code, size_t len)
{
    size_t at = 0;
    GsBranch b;

    while (at < len &&
           s->arch->branch(s->main + at, code + at, len - at, &b)) {
        GsBreakpoint kind = s->arch->breakpoint(code + at, b.len);

        if (kind != GS_BREAKPOINT_NOTHING && !is_call_of(s, &b)) {
            if (kind != GS_BREAKPOINT_NEVER &&
                !is_target(s, code, len, s->main + at)) {
                s->out->entry = s->main + at;
            }
            return;
        }
        at += b.len;
    }
}

/* ---- a function ---------------------------------------------------------- */

static bool scan_part(Scan *s, uint64_t start, uint64_t end, bool is_main)
{
    uint8_t code[FUNCTION_BYTES];
    size_t len = end - start, at = 0;
    GsBranch b;

    if (!len || len > sizeof(code) ||
        !s->reader->read(s->reader->opaque, start, code, len)) {
        s->out->incomplete = true;
        return false;
    }
    if (is_main) {
        find_entry(s, code, len);
    }
    while (at < len && s->arch->branch(start + at, code + at, len - at, &b)) {
        follow(s, start + at, code + at, &b);
        at += b.len;
    }
    s->out->incomplete |= at < len;
    return true;
}

bool kt_breakpoints_find(const GsKernel *k, const KtCodeReader *reader,
                         uint64_t va, KtBreakpoints *out)
{
    g_autofree char *name = NULL;
    GsSymbol sym, cold;
    Scan s = {
        .k = k, .arch = gs_kernel_arch(k), .reader = reader, .out = out,
        .thunk = va_of(k, "__x86_return_thunk"),
        .fentry = va_of(k, "__fentry__"),
    };

    *out = (KtBreakpoints) { 0 };
    if (!s.arch->breakpoint || !gs_kernel_symbolize(k, va, &sym) ||
        !gs_kernel_is_text(k, sym.va)) {
        return false;
    }
    s.main = sym.va;
    s.main_end = sym.va + sym.size;
    name = g_strconcat(sym.name, ".cold", NULL);
    if (gs_kernel_lookup(k, name, &cold) && gs_kernel_is_text(k, cold.va)) {
        s.cold = cold.va;
        s.cold_end = cold.va + cold.size;
    }
    if (!scan_part(&s, s.main, s.main_end, true)) {
        return false;
    }
    return !s.cold || scan_part(&s, s.cold, s.cold_end, false) ||
           out->incomplete;
}
