/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The VM's memory and registers, for commands that read more than the map.
 *
 * The plugin makes a KtVm for the length of a monitor command; use it on the
 * command's thread only. Tests make one of their own.
 */
#ifndef KT_API_VM_H
#define KT_API_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** struct KtRegister - a register of a vCPU; @name (borrowed) is gdb's */
typedef struct KtRegister {
    const char *name;
    uint64_t value;
} KtRegister;

/**
 * struct KtVm - a VM
 * @n_vcpus: vCPUs are 0 to @n_vcpus - 1. An unplugged one has neither registers
 *           nor memory
 * @running: the vCPUs run meanwhile: values that are read one after another may
 *           not fit together, and registers cannot be read
 * @read: read @len bytes at @va as @vcpu maps it. Return false, with @buf
 *        undefined, if part of it is no RAM; devices are never accessed. Whole
 *        pages are fastest
 * @translate: (nullable) find the physical address of @va as @vcpu maps it.
 *             Return false if it does not
 * @reg: read register number @i of those with 64 bits, the program counter
 *       included. Return false if there is no such register, or @running
 * @opaque: passed to all three
 * @page_offset: address of page frame 0 in the direct map; 0: unknown
 * @vmemmap: address of the struct page of page frame 0, which need not exist;
 *           0: unknown
 * @task_pid, @task_comm: offsets of pid and comm in struct task_struct that
 *           were learned of a kernel without types; 0: unknown
 */
typedef struct KtVm {
    unsigned n_vcpus;
    bool running;
    bool (*read)(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                 size_t len);
    bool (*translate)(void *opaque, unsigned vcpu, uint64_t va, uint64_t *phys);
    bool (*reg)(void *opaque, unsigned vcpu, unsigned i, KtRegister *out);
    void *opaque;
    uint64_t page_offset, vmemmap;
    uint32_t task_pid, task_comm;
} KtVm;

#endif /* KT_API_VM_H */
