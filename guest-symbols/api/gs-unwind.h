/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stack walks: one GsUnwinder a thread, which nobody else uses. Modules may
 * come and go meanwhile.
 */
#ifndef GS_API_UNWIND_H
#define GS_API_UNWIND_H

#include "guest-symbols/api/gs-kernel.h"

/** Why a backtrace ended; kept with each stack. */
typedef enum GsStop {
    GS_STOP_END,            /* the real end of the stack */
    GS_STOP_USER,           /* registers of user mode reached */
    GS_STOP_UNKNOWN_PC,     /* not code, or code without unwind information */
    GS_STOP_BAD_FRAME,      /* stack unreadable, or not moving upwards */
    GS_STOP_DEPTH,          /* @max frames stored */
    GS_STOP_NO_UNWINDER,    /* the kernel has neither ORC nor frame pointers:
                             * callers beyond the first are not known */
    GS_STOP_REPLACED,       /* a tracer of the guest replaced the return
                             * address, and its records do not have it */
    GS_STOP__COUNT
} GsStop;
const char *gs_stop_name(GsStop stop);

/** struct GsRegs - registers that an unwind starts from; @bp: the frame
 *  pointer. @ip is a return address unless @exact_ip (an interrupted
 *  instruction). @task: the current task_struct, whose records have the return
 *  addresses that tracers replaced; 0: unknown. */
typedef struct GsRegs {
    uint64_t ip;
    uint64_t sp;
    uint64_t bp;
    bool exact_ip;
    uint64_t task;
} GsRegs;

/**
 * GsPageFn - return the host's view of the guest page that contains @va
 * Returns: (borrowed for the unwind) host pointer to the *page's first byte*
 * (4096-byte pages), or NULL if the page is not plain RAM.
 */
typedef const void *(*GsPageFn)(void *opaque, uint64_t va);

/** gs_kernel_unwinder() - (static) name what the stacks of a kernel are walked
 *  by: "ORC", "frame pointers" or "none". */
const char *gs_kernel_unwinder(const GsKernel *k);

typedef struct GsUnwinder GsUnwinder;

/**
 * gs_unwinder_new() - make a walker for one vCPU thread
 * @k: (borrowed) with its slide set; must outlive the walker
 */
GsUnwinder *gs_unwinder_new(const GsKernel *k);
void gs_unwinder_free(GsUnwinder *u);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsUnwinder, gs_unwinder_free)

/**
 * gs_unwind() - walk a stack: no allocation, no lock, no formatting
 * @regs: where to start; @regs->ip is stored as the first frame
 * @page: host view of guest stack pages
 * @frames: (out) leaf first; return addresses as they are on the stack, and
 *          the exact ip of interrupted code after exception frames, as the
 *          kernel's own arch_stack_walk() delivers them
 * @max: capacity of @frames
 * @n: (out) how many were stored
 */
GsStop gs_unwind(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                 void *opaque, uint64_t *frames, unsigned max, unsigned *n);

/** gs_unwind_saved() - find the registers of code that an exception interrupted
 * @frames: (out) room for @max frames, which are walked as gs_unwind() does
 *
 * Returns: the address of the struct pt_regs that frame @max was interrupted
 * with, as GsArch.saved describes it; 0: that frame is none of such code, or
 * there is none. If the stack has @max frames and user mode is behind them,
 * these are the registers of the user code.
 */
uint64_t gs_unwind_saved(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                         void *opaque, uint64_t *frames, unsigned max);

/** General registers of arm64 and riscv64, x0 and so on, by DWARF's numbers. */
#define GS_GENERAL_REGS 32

/**
 * gs_unwinder_use_code() - find callers that are in registers only
 * @reg: (copied) of the next gs_unwind(), whose @regs->exact_ip is set
 * @sepc: the register of riscv64 with this name; 0: not known
 *
 * Where a vCPU of arm64 or riscv64 stands, or was interrupted, a function may
 * have no frame record: its code then says where the caller is. Such walks take
 * milliseconds and allocate. Call this before each gs_unwind(); for stacks that
 * are not walked by the frame records of these architectures it does nothing.
 */
void gs_unwinder_use_code(GsUnwinder *u, const uint64_t reg[GS_GENERAL_REGS],
                          uint64_t sepc);

/** gs_kernel_replaced_returns() - find the addresses that the kernel's own
 *  tracers write over return addresses; @va: (out) run time, 0: none. */
void gs_kernel_replaced_returns(const GsKernel *k, uint64_t va[2]);
/** gs_unwind_return() - find the true return address if @regs->ip is one that
 *  a tracer wrote. @regs, @page, @opaque: as for gs_unwind(). Returns: that
 *  address, @regs->ip if it is not known. */
uint64_t gs_unwind_return(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                          void *opaque);

/** gs_unwind_expect() - prefetch what the unwind of a stack that begins at @ip
 *  needs first. */
GS_HOT void gs_unwind_expect(GsUnwinder *u, uint64_t ip);

/** struct GsExpected - (opaque) what gs_unwind_expect_walk() found; valid until
 *  the guest runs */
typedef struct GsExpected {
    uint32_t key, kind;
    uint64_t page_va;
    const void *page_host;
} GsExpected;

/**
 * gs_unwind_expect_walk() - begin to recognise a stack that was unwound before
 * @regs, @page, @opaque: as for gs_unwind()
 * @kind: the @kind that it was remembered with
 *
 * Prefetches what gs_unwind_find() compares; call it as early as possible.
 */
GS_HOT GsExpected gs_unwind_expect_walk(GsUnwinder *u, const GsRegs *regs,
                                        GsPageFn page, void *opaque,
                                        uint32_t kind);
/**
 * gs_unwind_find() - recognise a stack that was unwound before
 * @regs, @page, @opaque: as for gs_unwind_expect_walk()
 * @e: what that returned
 * @value: (out) the value that the stack was remembered with
 *
 * Returns: true if gs_unwind() would now return the same frames and the same
 * reason as then. False proves nothing: not every stack can be kept, and kept
 * ones are replaced.
 */
GS_HOT bool gs_unwind_find(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                           void *opaque, const GsExpected *e, uint64_t *value);
/** gs_unwind_again() - both at once. */
static inline bool gs_unwind_again(GsUnwinder *u, const GsRegs *regs,
                                   GsPageFn page, void *opaque, uint32_t kind,
                                   uint64_t *value)
{
    GsExpected e = gs_unwind_expect_walk(u, regs, page, opaque, kind);

    return gs_unwind_find(u, regs, page, opaque, &e, value);
}
/** gs_unwind_remember() - keep the stack of the last gs_unwind(), with @value.
 *  Its @max must be the same each time. */
void gs_unwind_remember(GsUnwinder *u, uint32_t kind, uint64_t value);

#endif /* GS_API_UNWIND_H */
