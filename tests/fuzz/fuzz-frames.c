/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any stack of an architecture whose stacks are walked by frame
 * records. The input is a byte for the architecture, 24 bytes of registers,
 * and two pages of stack, of which what is missing is zeros. The walk must
 * end, stay within @max, read only the pages that it was given, and name only
 * addresses of the kernel's half; walked twice, it must say the same.
 */
#include "../../guest-symbols/kernel.h"
#include "../../guest-symbols/modules.h"
#include "../../guest-symbols/symtab.h"

#include <stdlib.h>
#include <string.h>

#define TEXT    0xffffffff80010000ull
#define STACK   0xffff800000100000ull
#define PAGE    4096

enum {
    MAX_FRAMES = 32,
    HEAD = 25,
    N_WORDS = 2 * PAGE / 8,
};

typedef struct Result {
    uint64_t frames[MAX_FRAMES];
    unsigned n;
    GsStop stop;
} Result;

static uint64_t words[N_WORDS];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const void *stack_page(void *opaque, uint64_t va)
{
    uint64_t off = va - STACK;

    return off < sizeof(words) ? &words[off / PAGE * PAGE / 8] : NULL;
}

/* Addresses in the input are small: moved to where they mean something. */
static uint64_t place(uint64_t v)
{
    switch (v >> 62) {
    case 0:
        return TEXT + (v & 0x1ffff);
    case 1:
        return STACK + (v & 0x1ff8);
    default:
        return v;
    }
}

static GsSymtab *make_symbols(void)
{
    static const char *const names[] = {
        "_start", "_stext", "handle_exception", "ret_from_exception",
        "ret_from_fork"
    };
    GsSymtab *tab = gs_symtab_new();

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        gs_symtab_add(tab, TEXT - 0x100 + 0x100 * i, 'T', names[i],
                      strlen(names[i]));
    }
    gs_symtab_seal(tab, NULL);
    return tab;
}

/* Made once an architecture; has no types, so registers are not found. */
static GsUnwinder *unwinder_of(GsArchId id)
{
    static GsKernel k[GS_ARCH__COUNT];
    static GsUnwinder *u[GS_ARCH__COUNT];
    const GsRange image = { TEXT, TEXT + 0x20000 };
    const GsRange text = { TEXT, TEXT + 0x10000 };

    if (!u[id]) {
        k[id].arch = gs_arch_nth(id);
        k[id].text[0] = (GsTextRange) { text.start, text.end };
        k[id].orc = gs_orc_set_new();
        k[id].modules = gs_modules_new();
        k[id].symtab = make_symbols();
        if (!gs_orc_set_load(k[id].orc, image, &text, 1, NULL, NULL)) {
            abort();
        }
        u[id] = gs_unwinder_new(&k[id]);
    }
    return u[id];
}

static void walk(GsUnwinder *u, const GsRegs *regs, Result *r)
{
    memset(r, 0, sizeof(*r));
    r->stop = gs_unwind(u, regs, stack_page, NULL, r->frames, MAX_FRAMES,
                        &r->n);
    if (r->stop >= GS_STOP__COUNT || r->n > MAX_FRAMES || !r->n) {
        abort();
    }
    for (unsigned i = 1; i < r->n; i++) {
        if (!(r->frames[i] >> 63)) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint64_t head[3];
    GsRegs regs;
    GsUnwinder *u;
    Result one, other;

    if (len < HEAD) {
        return 0;
    }
    u = unwinder_of(data[0] & 1 ? GS_ARCH_ARM64 : GS_ARCH_RISCV64);
    memcpy(head, data + 1, sizeof(head));
    memset(words, 0, sizeof(words));
    memcpy(words, data + HEAD, MIN(len - HEAD, sizeof(words)));
    for (unsigned i = 0; i < N_WORDS; i++) {
        words[i] = words[i] ? place(words[i]) : 0;
    }
    regs = (GsRegs) {
        .ip = place(head[0]), .sp = place(head[1]), .bp = place(head[2]),
    };
    walk(u, &regs, &one);
    walk(u, &regs, &other);
    if (memcmp(&one, &other, sizeof(one))) {
        abort();
    }
    return 0;
}
