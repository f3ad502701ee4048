/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where arguments and results are at a function's entry and return, by the C
 * ABI of an architecture.
 *
 * One GsArgPlaces assigns the places of one function, from the first parameter
 * to the last: each place depends on those before. Any thread.
 */
#ifndef GS_ARG_PLACES_H
#define GS_ARG_PLACES_H

#include "guest-symbols/api/gs-prototypes.h"
#include "guest-symbols/types/btf-records.h"

/**
 * struct GsAbi - how a C ABI passes arguments and results
 * @n_regs: argument registers
 * @stack: where the arguments on the stack begin, above the stack pointer
 * @second: second half of a result
 * @by_address: large structs are copied by the caller, and their address is
 *              passed; otherwise the copy is on the stack
 * @splits: of two words, one may be in the last register
 * @closes: after an argument on the stack, no other one is in a register
 * @even: a value that is aligned to 16 bytes begins in an even register
 * @floats: floats have registers of their own
 * @uniform: and so have structs of up to four equal floats
 * @packed: a struct with unaligned members is in memory
 * @hidden: the address of a large result is passed as the first argument
 * @returned: and is the result
 */
typedef struct GsAbi {
    unsigned n_regs;
    uint32_t stack;
    GsReg second;
    bool by_address, splits, closes, even, floats, uniform, packed, hidden,
         returned;
} GsAbi;

/**
 * struct GsArgPlaces - the state of the assignment
 * @abi: of the architecture
 * @rec: (borrowed) types
 * @regs: argument registers that are used
 * @floats: registers for floats that are used
 * @stack: bytes of the stack that are used, from the stack pointer at the entry
 * @lost: a type has no known size: where later arguments are is not known
 */
typedef struct GsArgPlaces {
    const GsAbi *abi;
    const GsBtfRecords *rec;
    unsigned regs, floats;
    uint32_t stack;
    bool lost;
} GsArgPlaces;

/** gs_arg_places_init() - begin with a function. @result: its type. Returns:
 *  the place of the result. */
GsPlace gs_arg_places_init(GsArgPlaces *a, const GsAbi *abi,
                           const GsBtfRecords *rec, uint32_t result);
/** gs_arg_places_next() - return the place of the next parameter. */
GsPlace gs_arg_places_next(GsArgPlaces *a, uint32_t type);

#endif /* GS_ARG_PLACES_H */
