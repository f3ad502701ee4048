/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames inside wrappers: see wrapper-frames.h. Called by vCPU threads, once
 * for each walk of a stack.
 *
 * A BPF trampoline that shows the return of a function to a program (fexit)
 * calls the function itself. Then there are two more frames before its caller:
 *
 *     vzalloc+0x62            in the wrapper
 *     bpf_trampoline_6442+0x4b
 *     vzalloc+0x9             behind the call of the trampoline, at the entry
 *     caller+0x1c             the first frame of the backtrace
 *
 * If the function ends with a jump to the allocator, the trampoline is the
 * first frame. Without a program the backtrace would begin at the function's
 * caller, and so it does here.
 */
#include "kalloc-tracer/hooks/wrapper-frames.h"

/* The call of a trampoline ends in the first bytes of a function: behind a
 * landing pad (4 bytes) and a call (5 bytes on x86-64; two instructions on
 * arm64 and riscv64). */
#define ENTRY_BYTES 16

static bool is_at_entry(const GsKernel *k, uint64_t va)
{
    GsSymbol sym;

    return gs_kernel_symbolize(k, va - 1, &sym) && va - sym.va <= ENTRY_BYTES;
}

/* The trampoline has no name if the kernel has no types. */
static bool may_be_trampoline(const GsKernel *k, uint64_t va)
{
    GsSymbol sym;

    return !gs_kernel_symbolize(k, va, &sym) ||
           g_str_has_prefix(sym.name, "bpf_trampoline_");
}

static bool in_kernel_text(const GsKernel *k, uint64_t va)
{
    uint64_t start, end;

    return gs_kernel_text_range(k, &start, &end) && va >= start && va < end;
}

/* Is @frames[0] a trampoline that called the function of @frames[1]? */
static bool begins_with_trampoline(const GsKernel *k, const uint64_t *frames,
                                   unsigned n)
{
    return n > 2 && !in_kernel_text(k, frames[0]) &&
           is_at_entry(k, frames[1]) && may_be_trampoline(k, frames[0]);
}

unsigned kt_wrapper_frames(const KtHooks *h, const GsKernel *k,
                           KtHookId *wrapper, bool pages,
                           const uint64_t *frames, unsigned n)
{
    unsigned skip = 0;
    KtHookId next = *wrapper;

    for (;;) {
        if (!next.v && begins_with_trampoline(k, frames + skip, n - skip)) {
            skip += 2;
            next = kt_hooks_wrapper(h, frames[skip], pages);
        }
        if (!next.v || skip + 1 >= n) {
            return skip;
        }
        *wrapper = next;
        next = kt_hooks_wrapper(h, frames[++skip], pages);
    }
}
