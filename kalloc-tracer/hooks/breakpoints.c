/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where breakpoints see the calls of a function: see breakpoints.h. */
#include "kalloc-tracer/hooks/breakpoints.h"

#include <string.h>

#define FUNCTION_BYTES  8192            /* of one function; most have 500 */

/**
 * struct Scan - the code of a function, in one or two parts
 * @main, @cold: @cold has paths that are unlikely; empty: there is none
 * @thunk: jumps there return, see is_return_thunk(); 0: unknown
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

/* Return true for jmp *rm, whose target is not known, and for other forms of
 * ret. */
static bool is_unknown_end(const uint8_t *insn, size_t len)
{
    size_t at = len > 1 && (insn[0] == 0x3e || insn[0] == 0xf3 ||
                            (insn[0] & 0xf0) == 0x40);

    return insn[at] == 0xc2 || (at && insn[at] == 0xc3) ||
           (len > at + 1 && insn[at] == 0xff && (insn[at + 1] >> 3 & 7) == 4);
}

/*
 * Return true for code that returns for the function that jumps there.
 * Compilers emit jumps to __x86_return_thunk. The kernel replaces these by
 * jumps to the thunk that its CPU needs:
 * srso_return_thunk, srso_alias_return_thunk, retbleed_return_thunk,
 * its_return_thunk, call_depth_return_thunk (__x86_return_skl up to 6.8).
 */
static bool is_return_thunk(const char *name)
{
    static const char end[] = "return_thunk";
    size_t len = strlen(name);

    return (len >= sizeof(end) - 1 &&
            !strcmp(name + len - (sizeof(end) - 1), end)) ||
           !strcmp(name, "__x86_return_skl");
}

/* Return true for the retpoline of jmp *reg. */
static bool is_indirect_thunk(const char *name)
{
    static const char start[] = "__x86_indirect_";

    return !strncmp(name, start, sizeof(start) - 1);
}

/* A jump to the beginning of another function is a tail call, also if it is
 * conditional. One that is no part of a function's code comes back:
 * static_cpu_has() has its slow path in .altinstr_aux. */
static void follow_out(Scan *s, uint64_t va, uint64_t to)
{
    GsSymbol sym;

    if (!gs_kernel_is_text(s->k, to) || !gs_kernel_symbolize(s->k, to, &sym)) {
        return;
    }
    if (is_indirect_thunk(sym.name)) {
        s->out->incomplete = true;
    } else if (sym.va == to) {
        if (to == s->thunk || is_return_thunk(sym.name)) {
            add_return(s->out, va);
        } else {
            add_tail(s->out, to);
        }
    }
}

/* An instruction that a branch leads to is executed without an entry, too. */
static void follow(Scan *s, uint64_t va, const uint8_t *insn,
                   const GsBranch *b)
{
    if (s->arch->breakpoint(insn, b->len) == GS_BREAKPOINT_RETURN) {
        add_return(s->out, va);
    } else if (b->direct && !b->call) {
        if (!is_inside(s, b->to)) {
            follow_out(s, va, b->to);
        } else if (b->to == s->out->entry) {
            s->out->entry = 0;
        }
    } else if (!b->direct && is_unknown_end(insn, b->len)) {
        s->out->incomplete = true;
    }
}

/* ---- the entry ----------------------------------------------------------- */

static bool is_call_of(const Scan *s, const GsBranch *b)
{
    return b->direct && b->call && s->fentry && b->to == s->fentry;
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
            if (kind != GS_BREAKPOINT_NEVER) {
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
