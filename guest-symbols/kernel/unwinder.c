/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds out what the stacks of a kernel can be walked by. Called when a kernel
 * is opened, in that thread; no state.
 *
 * x86-64 has a choice of three unwinders. ORC has tables. Without tables the
 * code says which one it is: with frame pointers, functions begin with
 *
 *     (endbr64)  (call __fentry__)  push %rbp  mov %rsp,%rbp
 *
 * If neither is there (CONFIG_UNWINDER_GUESS), callers cannot be known.
 *
 * riscv64 has frame records, if the kernel is built with frame pointers. Then
 * functions begin with
 *
 *     addi sp,sp,-N  sd ra,(sp)  sd s0,(sp)  addi s0,sp,N
 *
 * Without CONFIG_FRAME_POINTER (allnoconfig) callers cannot be known. arm64
 * always keeps frame pointers.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"

#include <string.h>

#define CODE_BYTES  32      /* of a function, where its prologue must be */
#define SAMPLES     512     /* functions that are examined */
#define SAMPLES_MIN 8

/* The functions examined so far. */
typedef struct Sample {
    const GsKernel *k;
    size_t every, seen;     /* each @every-th function is examined */
    bool (*makes_frame)(const uint8_t code[CODE_BYTES]);
    unsigned n, with_frame;
} Sample;

/* Does the code save rbp and set it to rsp? gcc and clang encode the move in
 * the same way, and may put other instructions in between. */
static bool makes_frame_x86_64(const uint8_t code[CODE_BYTES])
{
    static const uint8_t push[] = { 0x55 }, move[] = { 0x48, 0x89, 0xe5 };
    const uint8_t *at = memmem(code, CODE_BYTES, push, sizeof(push));

    return at && memmem(at, code + CODE_BYTES - at, move, sizeof(move));
}

/* Does the code set s0 to an address on the stack, by c.addi4spn or addi? 9 %
 * of the functions do so without frame pointers: it is that of a variable. */
static bool makes_frame_riscv64(const uint8_t code[CODE_BYTES])
{
    for (unsigned i = 0; i + 4 <= CODE_BYTES; i += 2) {
        uint32_t insn = code[i] | code[i + 1] << 8 |
                        (uint32_t)(code[i + 2] | code[i + 3] << 8) << 16;
        uint32_t compressed = insn & 0xffff;

        if (((compressed & 0xe01f) == 0 && compressed) ||
            (insn & 0xfffff) == 0x10413) {
            return true;
        }
    }
    return false;
}

static void examine(uint64_t va, const char *text, size_t len, void *opaque)
{
    Sample *s = opaque;
    const GsTextRange *r = &s->k->text[0];
    uint8_t code[CODE_BYTES];

    if (!strchr("Tt", text[0]) || !gs_symbol_slides(va) ||
        (r->end && (va < r->start || va >= r->end)) ||
        s->seen++ % s->every || s->n == SAMPLES ||
        !gs_image_read(s->k->image, va, code, sizeof(code))) {
        return;
    }
    s->n++;
    s->with_frame += s->makes_frame(code);
}

/* Do functions begin with a frame? @unknown: returned if too few functions can
 * be examined */
static bool has_frame_pointers(const GsKernel *k, bool unknown)
{
    Sample s = {
        .k = k, .every = gs_symtab_n(k->symtab) / SAMPLES + 1,
        .makes_frame = k->arch->id == GS_ARCH_RISCV64 ? makes_frame_riscv64 :
                                                        makes_frame_x86_64,
    };

    if (k->image) {
        gs_symtab_foreach(k->symtab, examine, &s);
    }
    return s.n < SAMPLES_MIN ? unknown : s.with_frame > s.n / 2;
}

static GsUnwindBy unwinder_of(const GsKernel *k)
{
    switch (k->arch->id) {
    case GS_ARCH_X86_64:
        return gs_orc_set_table(k->orc) ? GS_UNWIND_BY_ARCH :
               has_frame_pointers(k, false) ? GS_UNWIND_BY_FRAMES :
                                              GS_UNWIND_BY_NOTHING;
    case GS_ARCH_RISCV64:
        return has_frame_pointers(k, true) ? GS_UNWIND_BY_ARCH :
                                             GS_UNWIND_BY_NOTHING;
    default:
        return GS_UNWIND_BY_ARCH;
    }
}

void gs_kernel_find_unwinder(GsKernel *k)
{
    k->unwind_by = unwinder_of(k);
}

const char *gs_kernel_unwinder(const GsKernel *k)
{
    if (k->unwind_by == GS_UNWIND_BY_NOTHING) {
        return "none";
    }
    return k->plain || k->unwind_by == GS_UNWIND_BY_FRAMES ||
                   k->arch->id != GS_ARCH_X86_64 ?
               "frame pointers" :
               "ORC";
}
