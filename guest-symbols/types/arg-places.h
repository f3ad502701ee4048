/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where arguments and results are at a function's entry and return, by the C
 * ABI of an architecture: System V (x86-64), AAPCS64 (arm64), the RISC-V psABI
 * (riscv64, lp64: the kernel has no FPU registers in its ABI).
 *
 * One GsArgPlaces assigns the places of one function, from the first parameter
 * to the last: each place depends on those before. Any thread.
 */
#ifndef GS_ARG_PLACES_H
#define GS_ARG_PLACES_H

#include "guest-symbols/api/gs-prototypes.h"
#include "guest-symbols/types/btf-records.h"

/**
 * struct GsArgPlaces - the state of the assignment
 * @arch: the architecture
 * @rec: (borrowed) types
 * @regs: argument registers that are used
 * @floats: registers for floats that are used
 * @stack: bytes of the stack that are used, from the stack pointer at the entry
 * @lost: a type has no known size: where later arguments are is not known
 */
typedef struct GsArgPlaces {
    GsArchId arch;
    const GsBtfRecords *rec;
    unsigned regs, floats;
    uint32_t stack;
    bool lost;
} GsArgPlaces;

/** gs_arg_places_init() - begin with a function. @result: its type. Returns:
 *  the place of the result. */
GsPlace gs_arg_places_init(GsArgPlaces *a, GsArchId arch,
                           const GsBtfRecords *rec, uint32_t result);
/** gs_arg_places_next() - return the place of the next parameter. */
GsPlace gs_arg_places_next(GsArgPlaces *a, uint32_t type);

#endif /* GS_ARG_PLACES_H */
