/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules of ftrace trampolines, which the kernel's own tables do not have,
 * see unwind-internal.h. Called by the walk of unwind.c, on vCPU threads; no
 * state.
 */
#include "guest-symbols/unwind/unwind-internal.h"

#include <string.h>

/* ftrace_caller and ftrace_regs_caller are well below this. */
#define MAX_TRAMPOLINE 1024

bool gs_trampoline_rule(const GsKernel *k, GsOrcReader *reader, const Walk *w,
                        uint64_t pc, GsOrcRule *out)
{
    uint64_t off = pc & ~PAGE_MASK;
    const void *host;

    if (off >= MAX_TRAMPOLINE) {
        return false;
    }
    host = w->page(w->opaque, pc & PAGE_MASK);
    for (size_t i = 0; host && i < G_N_ELEMENTS(k->templates); i++) {
        const GsTemplate *t = &k->templates[i];

        if (t->va && !memcmp(host, t->bytes, GS_TRAMPOLINE_BYTES)) {
            return gs_orc_reader_find(reader, t->va + k->slide + off, out) ==
                   GS_ORC_FOUND;
        }
    }
    return false;
}
