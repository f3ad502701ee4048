/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds out what the stacks of a kernel can be walked by. Called when a kernel
 * is opened, in that thread; no state.
 *
 * A kernel of an architecture that has ORC (x86-64) has one of three
 * unwinders. ORC has tables. Without tables the code says which one it is: with
 * frame pointers, functions begin by making a frame record. If they do not
 * (CONFIG_UNWINDER_GUESS), callers cannot be known. Elsewhere kernels have
 * frame records: all of them (arm64), or those that are built with
 * CONFIG_FRAME_POINTER (riscv64; allnoconfig is without).
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"

#include <string.h>

#define SAMPLES     512     /* functions that are examined */
#define SAMPLES_MIN 8

/* The functions examined so far. */
typedef struct Sample {
    const GsKernel *k;
    size_t every, seen;     /* each @every-th function is examined */
    unsigned n, with_frame;
} Sample;

static void examine(uint64_t va, const char *text, size_t len, void *opaque)
{
    Sample *s = opaque;
    const GsRange *r = &s->k->text[0];
    uint8_t code[GS_PROLOGUE_BYTES];

    if (!strchr("Tt", text[0]) || !gs_symbol_slides(va) ||
        (r->end && (va < r->start || va >= r->end)) ||
        s->seen++ % s->every || s->n == SAMPLES ||
        !gs_image_read(s->k->image, va, code, sizeof(code))) {
        return;
    }
    s->n++;
    s->with_frame += s->k->arch->makes_frame(code);
}

/* Do functions begin with a frame? @unknown: returned if too few functions can
 * be examined */
static bool has_frame_pointers(const GsKernel *k, bool unknown)
{
    Sample s = { .k = k, .every = gs_symtab_n(k->symtab) / SAMPLES + 1 };

    if (k->image && k->arch->makes_frame) {
        gs_symtab_foreach(k->symtab, examine, &s);
    }
    return s.n < SAMPLES_MIN ? unknown : s.with_frame > s.n / 2;
}

/* Without ORC the code must say that there are frames. */
void gs_kernel_find_unwinder(GsKernel *k)
{
    const GsArch *arch = k->arch;

    if (arch->has_orc) {
        k->unwind_by = gs_orc_set_table(k->orc) ? GS_UNWIND_BY_ARCH :
                       has_frame_pointers(k, false) ? GS_UNWIND_BY_FRAMES :
                                                      GS_UNWIND_BY_NOTHING;
    } else {
        k->unwind_by = !arch->makes_frame || has_frame_pointers(k, true) ?
                           GS_UNWIND_BY_ARCH : GS_UNWIND_BY_NOTHING;
    }
}

const char *gs_kernel_unwinder(const GsKernel *k)
{
    return k->unwind_by == GS_UNWIND_BY_NOTHING ? "none" :
           k->plain || k->unwind_by == GS_UNWIND_BY_FRAMES ||
                   !k->arch->has_orc ? "frame pointers" : "ORC";
}
