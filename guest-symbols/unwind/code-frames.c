/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks by frame records and, where a vCPU stands or was interrupted, by code:
 * see code-frames.h. Called by frame-records.c.
 *
 * The code is untrusted. A function above FUNCTION_MAX is not read.
 */
#include "guest-symbols/unwind/code-frames.h"
#include "guest-symbols/unwind/unwind-internal.h"

#include <string.h>

#define FUNCTION_MAX    ((size_t)1 << 20)
#define PAGE            4096u

static bool read_code(const Walk *w, uint64_t va, uint8_t *to, size_t len)
{
    while (len) {
        size_t off = va % PAGE, n = MIN(len, PAGE - off);
        const uint8_t *page = gs_walk_in_kernel(w, va) ?
                              w->page(w->opaque, va - off) : NULL;

        if (!page) {
            return false;
        }
        memcpy(to, page + off, n);
        va += n;
        to += n;
        len -= n;
    }
    return true;
}

bool gs_code_at(const GsKernel *k, const Walk *w, uint64_t pc, GsCode *out)
{
    GsSymbol sym;

    *out = (GsCode) { 0 };
    if (!gs_kernel_symbolize(k, pc, &sym) || sym.size > FUNCTION_MAX ||
        pc - sym.va >= sym.size) {
        return false;
    }
    out->range = (GsRange) { sym.va, sym.va + sym.size };
    g_strlcpy(out->name, sym.name, sizeof(out->name));
    out->bytes = g_malloc(sym.size);
    if (!read_code(w, sym.va, out->bytes, sym.size)) {
        gs_code_deinit(out);
        return false;
    }
    return true;
}

void gs_code_deinit(GsCode *fn)
{
    g_clear_pointer(&fn->bytes, g_free);
}

/* Registers of interrupted code are in a struct pt_regs, which begins with
 * them. */
static bool find_registers(GsCodeFrames *c, Walk *w)
{
    if (w->regs) {
        c->known = true;
        c->sepc = 0;
        for (size_t i = 0; i < G_N_ELEMENTS(c->reg); i++) {
            c->known &= read_word(w, w->regs + 8 * i, &c->reg[i]);
        }
    }
    return c->known;
}

/* Step by code, if it says where the caller is. */
static bool by_code(const GsFrameRecords *f, Walk *w, GsStop *stop)
{
    GsCodeFrames *c = f->code;
    g_auto(GsCode) fn = { 0 };
    Walk next = *w;

    if (!w->exact || !find_registers(c, &next) ||
        !gs_code_at(c->k, &next, next.ip, &fn)) {
        return false;
    }
    c->known = false;
    next.exact = 0;
    next.regs = 0;
    if (!c->rules->step(f, &next, &fn, stop)) {
        return false;
    }
    *w = next;
    return true;
}

static GsStop step(const GsFrameRecords *f, Walk *w)
{
    const GsCodeFrames *c = f->code;
    GsStop stop;

    w->trail->plain = false;
    if (by_code(f, w, &stop)) {
        return stop;
    }
    if (!w->exact && c->rules->enter && c->rules->enter(f, w)) {
        return GS_GO_ON;
    }
    return c->records->step(f, w);
}

const GsFrameRules gs_code_frames = { NULL, step };

/* Return (owned) the state of an unwinder, whose records are walked by
 * @records; NULL if no code of @k is followed. */
static GsCodeFrames *code_frames_new(const GsKernel *k,
                                     const GsFrameRules *records)
{
    const GsCodeRules *rules = records == k->arch->frames ?
                                   k->arch->code_frames : NULL;
    GsCodeFrames *c = NULL;

    if (rules) {
        c = g_new0(GsCodeFrames, 1);
        c->records = records;
        c->rules = rules;
        c->k = k;
    }
    return c;
}

void gs_unwinder_use_code(GsUnwinder *u, const uint64_t reg[GS_GENERAL_REGS],
                          uint64_t sepc)
{
    GsFrameRecords *f = &u->frames;

    if (!f->code && u->by_frames) {
        f->code = code_frames_new(u->k, f->rules);
        f->rules = f->code ? &gs_code_frames : f->rules;
    }
    if (f->code) {
        memcpy(f->code->reg, reg, sizeof(f->code->reg));
        f->code->sepc = sepc;
        f->code->known = true;
    }
}
