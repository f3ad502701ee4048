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
    unsigned n, with_frame;
} Sample;

/* Does the code save rbp and set it to rsp? gcc and clang encode the move in
 * the same way, and may put other instructions in between. */
static bool makes_frame(const uint8_t code[CODE_BYTES])
{
    static const uint8_t push[] = { 0x55 }, move[] = { 0x48, 0x89, 0xe5 };
    const uint8_t *at = memmem(code, CODE_BYTES, push, sizeof(push));

    return at && memmem(at, code + CODE_BYTES - at, move, sizeof(move));
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
    s->with_frame += makes_frame(code);
}

static bool has_frame_pointers(const GsKernel *k)
{
    Sample s = {
        .k = k, .every = gs_symtab_n(k->symtab) / SAMPLES + 1,
    };

    if (!k->image) {
        return false;
    }
    gs_symtab_foreach(k->symtab, examine, &s);
    return s.n >= SAMPLES_MIN && s.with_frame > s.n / 2;
}

void gs_kernel_find_unwinder(GsKernel *k)
{
    if (k->arch->id != GS_ARCH_X86_64 || gs_orc_set_table(k->orc)) {
        k->unwind_by = GS_UNWIND_BY_ARCH;
    } else {
        k->unwind_by = has_frame_pointers(k) ? GS_UNWIND_BY_FRAMES :
                                               GS_UNWIND_BY_NOTHING;
    }
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
