/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The VM itself, beside what the tracer knows of it. */
#ifndef KT_VM_API_H
#define KT_VM_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** struct KtRegister - a register of a vCPU's; @name (borrowed) is gdb's. */
typedef struct KtRegister {
    const char *name;
    uint64_t value;
} KtRegister;

/**
 * struct KtVm - the VM, for a command that looks at more than the tracer
 * @n_vcpus: they are 0 to @n_vcpus - 1; one that is unplugged has no registers
 *           and no memory
 * @running: they execute meanwhile: what is read at different times may not
 *           fit together, and registers are not to be had
 * @read: @len bytes of RAM at @va, as @vcpu maps it. False, with @buf
 *        undefined, unless there is RAM for all of them; no device is ever
 *        accessed. Best asked for whole pages.
 * @reg: register number @i, of those that hold 64 bits, the program counter
 *       included. False: there is none with that number, or @running.
 * @opaque: handed to both
 * @page_offset, @vmemmap: of page frame 0 (which need not exist) the address
 *                         in the direct map, and that of its struct page; 0
 *                         where that is not known
 *
 * Borrowed for the length of a monitor command, on its thread.
 */
typedef struct KtVm {
    unsigned n_vcpus;
    bool running;
    bool (*read)(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                 size_t len);
    bool (*reg)(void *opaque, unsigned vcpu, unsigned i, KtRegister *out);
    void *opaque;
    uint64_t page_offset, vmemmap;
} KtVm;

#endif /* KT_VM_API_H */
