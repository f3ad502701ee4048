/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers to blocks in the kernel's code. Linux writes the addresses of some
 * tables into the code that uses them (runtime_const_ptr(),
 * arch/.../asm/runtime-const.h, since 6.11). If all uses are such, the compiler
 * removes the variable, and the instructions have the only pointers to the
 * table. GsArch.code_constant() decodes them.
 *
 * Of the constants in the code only the start of a live block counts: code has
 * many other numbers.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include <string.h>

#define PAGE        4096u
#define TEXT_MAX    (256ull << 20)  /* bytes of code; no image is larger */

/*
 * struct Code - where the walk over the code is
 * @w: the set
 * @arch: architecture
 * @va: address of @bytes
 * @bytes: the last bytes of the page before, then a page. An instruction can
 *         begin in one page and end in the next one
 * @n: bytes of @bytes that are valid
 */
typedef struct Code {
    KtLiveSet *w;
    const GsArch *arch;
    uint64_t va;
    uint8_t bytes[GS_CODE_CONSTANT_MAX + PAGE];
    size_t n;
} Code;

/* Look at the valid bytes, and keep those that may begin a longer constant. */
static void find_constants(Code *c)
{
    unsigned step = c->arch->code_align;
    size_t at = 0;

    for (; at + GS_CODE_CONSTANT_MAX <= c->n; at += step) {
        KtCodeWord word = { .va = c->va + at };

        if (c->arch->code_constant(c->bytes + at, &word.value) &&
            kt_live_set_find(c->w, word.value)) {
            g_array_append_val(c->w->code, word);
        }
    }
    memmove(c->bytes, c->bytes + at, c->n - at);
    c->n -= at;
    c->va += at;
}

/* Add the page at @va, or start again behind it if it cannot be read. */
static void add_page(Code *c, uint64_t va, size_t len)
{
    const GsMem *mem = &c->w->mem;

    if (!mem->read(mem->opaque, va, c->bytes + c->n, len)) {
        c->n = 0;
        c->va = va + len;
        return;
    }
    c->n += len;
    find_constants(c);
}

void kt_roots_find_code(KtLiveSet *w)
{
    uint64_t va = kt_live_set_symbol(w, "_stext");
    uint64_t end = kt_live_set_symbol(w, "_etext");
    Code c = { .w = w, .arch = gs_kernel_arch(w->plan->kernel), .va = va };

    if (!va || end <= va || end - va > TEXT_MAX) {
        return;
    }
    while (va < end && !w->ended) {
        size_t len = MIN(end - va, PAGE - va % PAGE);

        add_page(&c, va, len);
        va += len;
    }
}
