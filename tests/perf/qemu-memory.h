/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QEMU's code hooks use of QEMU: a vCPU, and guest memory as two pieces of
 * RAM that are found as QEMU finds them, the last one first. For bench-hit.
 */
#ifndef PERF_QEMU_MEMORY_H
#define PERF_QEMU_MEMORY_H

#include <glib.h>
#include <linux/kvm.h>
#include <string.h>

typedef uint64_t hwaddr, vaddr;

/* orc-writer.h has these names, too. */
#define R_R10   QEMU_R10
#define R_R13   QEMU_R13

enum {
    R_EAX, R_ECX, R_EDX, R_EBX, R_ESP, R_EBP, R_ESI, R_EDI, R_R8, R_R9, R_R10,
    R_R11, R_R12, R_R13, R_R14, R_R15, CPU_NB_REGS
};
enum { R_FS = 4, R_GS };

#define TARGET_X86_64
#define CR0_PG_MASK     (1u << 31)
#define CR4_LA57_MASK   (1u << 12)
#define MSR_EFER_LMA    (1u << 10)
#define PG_PRESENT_MASK 1u
#define PG_RW_MASK      2u
#define PG_USER_MASK    4u
#define PG_PSE_MASK     0x80u
#define PG_ADDRESS_MASK 0x000ffffffffff000ull
#define TARGET_PAGE_SIZE 4096u
#define TARGET_PAGE_MASK (~0xfffull)
#define CC_C            0x001
#define CC_P            0x004
#define CC_A            0x010
#define CC_Z            0x040
#define CC_S            0x080
#define CC_O            0x800
#define MEMTX_OK        0
#define MEMTXATTRS_UNSPECIFIED 0

#define le64_to_cpu(v)  GUINT64_FROM_LE(v)
#define cpu_to_le64(v)  GUINT64_TO_LE(v)
#define ctpop8(v)       __builtin_popcount((v) & 0xff)
#define qatomic_read(p) __atomic_load_n(p, __ATOMIC_RELAXED)

typedef struct CPUX86State {
    uint64_t regs[CPU_NB_REGS], eip, eflags, cr[5], efer;
    struct {
        uint64_t base;
    } segs[6];
} CPUX86State;

typedef struct CPUState {
    CPUX86State env;
} CPUState;

#define X86_CPU(cs)     (cs)

typedef struct MemoryRegion {
    hwaddr start, len;
    uint8_t *bytes;
} MemoryRegion;

typedef struct AddressSpace {
    MemoryRegion region[2], *last;
} AddressSpace;

static AddressSpace address_space_memory;

static inline MemoryRegion *address_space_translate(
    AddressSpace *as, hwaddr at, hwaddr *inside, hwaddr *len, bool write,
    unsigned attrs)
{
    MemoryRegion *mr = as->last;

    for (unsigned i = 0; !mr || at - mr->start >= mr->len; i++) {
        if (i == G_N_ELEMENTS(as->region)) {
            g_error("0x%lx is no RAM", at);
        }
        as->last = mr = &as->region[i];
    }
    *inside = at - mr->start;
    *len = MIN(*len, mr->len - *inside);
    return mr;
}

static inline bool memory_region_is_ram(const MemoryRegion *mr)
{
    return mr->bytes;
}

static inline bool memory_region_is_ram_device(const MemoryRegion *mr)
{
    return !mr->len;
}

static inline void *memory_region_get_ram_ptr(const MemoryRegion *mr)
{
    return mr->bytes;
}

static inline int address_space_write(AddressSpace *as, hwaddr at,
                                      unsigned attrs, const void *buf,
                                      hwaddr len)
{
    hwaddr inside;
    MemoryRegion *mr =
        address_space_translate(as, at, &inside, &len, true, attrs);

    memcpy(mr->bytes + inside, buf, len);
    return MEMTX_OK;
}

#endif /* PERF_QEMU_MEMORY_H */
