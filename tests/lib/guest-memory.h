/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small guest for leak scans: 64 pages of RAM, mapped as an x86-64 kernel
 * maps them, and a tracer in which the blocks are recorded.
 *
 * RAM contains what a scan reads: struct pages, the free lists of a zone,
 * variables, per-CPU memory, tasks with stacks, and the descriptions of vmalloc
 * areas. The same RAM is visible at several addresses:
 *
 *   LG_DIRECT   the direct map, all of RAM
 *   LG_VMEMMAP  the struct pages, at LG_AT_STRUCTS in RAM
 *   LG_VMALLOC  8 pages, at LG_AT_VMALLOC
 *   LG_IMAGE    the kernel's data, at LG_AT_IMAGE
 *
 * The kernel's types are made with libbpf. Single-threaded.
 */
#ifndef GUEST_MEMORY_H
#define GUEST_MEMORY_H

#include "kalloc-tracer/kt.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/symbols/symtab.h"
#include "tests/lib/test-main.h"

#define LG_PAGES    64u
#define LG_RAM      (LG_PAGES * 4096u)
#define LG_DIRECT   0xffff888000000000ull
#define LG_VMEMMAP  0xffffea0000000000ull
#define LG_VMALLOC  0xffffc90000000000ull
#define LG_IMAGE    0xffffffff81000000ull
#define LG_STACK    4096u

/* Positions in RAM. */
enum {
    LG_AT_STRUCTS = 0x1000,
    LG_AT_IMAGE = 0x10000,
    LG_AT_BSS = 0x14000,
    LG_AT_RO = 0x15000,
    LG_AT_PERCPU = 0x18000,     /* a page for each of two CPUs */
    LG_AT_CHUNK = 0x1a000,      /* the same, free for a chunk of a test */
    LG_AT_SLAB = 0x1c000,       /* 8 pages of objects */
    LG_AT_VMALLOC = 0x24000,    /* 8 pages, the first 2 are stacks */
    LG_AT_LARGE = 0x2c000,      /* 2 pages */
    LG_AT_KERNEL = 0x2e000,     /* used by the kernel, no block */
    LG_AT_USER = 0x30000,
    LG_AT_FREE = 0x32000,       /* one free block of 2 pages */
    LG_AT_FREE_CPU = 0x34000,   /* a free page on a CPU's list */
};

/* Offsets of variables from LG_IMAGE. */
enum {
    LG_PHYS_BASE = 0x0,
    LG_PAGE_OFFSET_BASE = 0x8,
    LG_VMEMMAP_BASE = 0x10,
    LG_MIN_LOW_PFN = 0x18,
    LG_MAX_PFN = 0x20,
    LG_NR_CPU_IDS = 0x28,
    LG_PER_CPU_OFFSET = 0x30,
    LG_PCPU_BASE = 0x48,        /* pcpu_base_addr; 0 unless a test sets it */
    LG_PCPU_FIRST = 0x50,
    LG_PCPU_RESERVED = 0x58,
    LG_PCPU_LISTS = 0x60,
    LG_PCPU_NR_SLOTS = 0x68,
    LG_PCPU_UNIT_PAGES = 0x70,
    LG_NR_NODE_IDS = 0x78,
    LG_INIT_TASK = 0x100,
    LG_CONTIG = 0x200,          /* contig_page_data */
    LG_ROOT = 0x800,            /* 64 words that a test may set */
    LG_HSTATES = 0xd00,         /* no hugetlb pages unless a test adds some */
    LG_MAX_HSTATE = 0xdf0,
    LG_CRASHK_RES = 0xe00,
    LG_INIT_STACK = 0x1000,
    LG_DATA_END = 0x4000,
};

/* Sizes of types and offsets of their members. */
enum {
    LG_PAGE_HEAD = 8, LG_PAGE_LRU = 8, LG_PAGE_CACHE = 8, LG_PAGE_MAPPING = 24,
    LG_PAGE_FREELIST = 40, LG_PAGE_FIRST = 56,
    LG_FREE_AREA = 8, LG_AREA_SIZE = 40, LG_ZONE_SIZE = 128,
    LG_PCP_LISTS = 8, LG_PCP = 0x100,
    LG_TASK_SIZE = 256, LG_TASK_STACK = 0, LG_TASK_ON_CPU = 8,
    LG_TASK_PID = 12, LG_TASK_SP = 16, LG_TASK_NODE = 64,
    LG_NODE_RIGHT = 8, LG_NODE_LEFT = 16,
    LG_KMEM_CACHE_SIZE = 64, LG_KMEM_CACHE_FLAGS = 8,
    LG_KMEM_CACHE_CAPACITY = 24, LG_SHEAF_CACHE = 16, LG_SHEAF_OBJECTS = 32,
    LG_KMEM_CACHE_ARRAYS = 32, LG_KMEM_CACHE_NODE = 40,     /* SLAB */
    LG_NODE_SHARED = 8, LG_NODE_ALIEN = 16, LG_NODE_SIZE = 24,
    LG_ARRAY_LIMIT = 4, LG_ARRAY_ENTRY = 16, LG_ALIEN_ARRAY = 8,
    LG_KRC = 0x980, LG_KRC_LIST = 16,           /* a per-CPU variable */
    LG_CHUNK_LIST = 0, LG_CHUNK_BASE = 16, LG_CHUNK_MAP = 24,
    LG_CHUNK_START = 32, LG_CHUNK_END = 36, LG_CHUNK_PAGES = 40,
    LG_CHUNK_SIZE = 48, LG_PAGE_PRIVATE = 48,
    LG_HSTATE_ACTIVE = 16, LG_HSTATE_FREE = 32, LG_HSTATE_SIZE = 48,
    LG_KERNFS_ACTIVE = 4, LG_KERNFS_RB = 8, LG_KERNFS_PRIV = 32,
    LG_KERNFS_SIZE = 40,
    LG_REF_COUNT = 0, LG_REF_DATA = 8,
    LG_REF_DATA_REF = 8, LG_REF_DATA_SIZE = 24,
    LG_VM_SIZE = 40, LG_VM_ADDR = 8, LG_VM_PAGES = 24,
    LG_AREA_START = 0, LG_AREA_END = 8, LG_AREA_VM = 40, LG_VMAP_SIZE = 48,
    LG_RECORD_RCU = 8, LG_RECORD_USE = 24, LG_RECORD_POINTER = 32,
    LG_RECORD_SIZE = 64,
};

/* Addresses of blocks. */
#define LG_OBJECTS      16u     /* of 64 bytes */
#define LG_OBJECT(i)    (LG_DIRECT + LG_AT_SLAB + 64ull * (i))
#define LG_TASK(i)      (LG_DIRECT + LG_AT_SLAB + 0x1000 + 256ull * (i))
#define LG_VM(i)        (LG_DIRECT + LG_AT_SLAB + 0x2000 + 64ull * (i))
#define LG_VMAP         (LG_DIRECT + LG_AT_SLAB + 0x3000)
#define LG_PAGE_LIST(i) (LG_DIRECT + LG_AT_SLAB + 0x2800 + 32ull * (i))
#define LG_LARGE        (LG_DIRECT + LG_AT_LARGE)
#define LG_TASK_STACK_VA(i) (LG_VMALLOC + 4096ull * (i))
#define LG_VMALLOCED    (LG_VMALLOC + 0x4000)
#define LG_PERCPU       0x800ull
#define LG_CACHE(i)     (LG_DIRECT + LG_AT_KERNEL + 0x800 + 64ull * (i))

/**
 * struct LeakGuest - the guest
 * @t: (owned) the tracer
 * @k: the kernel
 * @vm: the VM, one vCPU; it reads @ram
 * @reg: the vCPU's only register, rdi
 * @ram: guest memory
 */
typedef struct LeakGuest {
    KtTracer *t;
    GsKernel k;
    KtVm vm;
    uint64_t reg;
    uint8_t ram[LG_RAM];
} LeakGuest;

/** lg_at() - return where @len bytes at @va are in RAM, or NULL if they are not
 *  mapped. */
uint8_t *lg_at(LeakGuest *g, uint64_t va, size_t len);

/** lg_place_of() - return the place of the word at @va, as ka refs prints it,
 *  if it refers to the object of 64 bytes at @object; else KT_PLACE__COUNT. */
KtPlace lg_place_of(LeakGuest *g, uint64_t object, uint64_t va);
/** lg_put() - write a word of guest memory. */
void lg_put(LeakGuest *g, uint64_t va, uint64_t word);

/** lg_read() - KtVm.read. */
bool lg_read(void *opaque, unsigned vcpu, uint64_t va, void *buf, size_t len);

/** lg_types() - (owned) the types of a kernel whose stacks have @stack
 *  bytes. */
GsBtf *lg_types(uint32_t stack);
/** lg_types_of_5_10() - (owned) the types of a kernel whose vmap_area links
 *  waiting areas by its word vm. */
GsBtf *lg_types_of_5_10(void);

/** lg_symbols() - (owned) the symbols. The one with the name @moved (nullable)
 *  is at @to. */
GsSymtab *lg_symbols(const char *moved, uint64_t to);

/** lg_alloc_sized() - record that a block was allocated. */
void lg_alloc_sized(LeakGuest *g, uint64_t va, uint64_t size,
                    uint64_t actual, KtLayer layer,
                    KtCacheId cache);

/** lg_alloc() - the same, with no more memory than requested. */
void lg_alloc(LeakGuest *g, uint64_t va, uint64_t size,
              KtLayer layer, KtCacheId cache);

/** lg_struct() - return the address of the struct page of @at, a position in
 *  RAM. */
uint64_t lg_struct(uint64_t at);

/** lg_reset() - write the initial memory. Pointers lead to the tasks, to their
 *  stacks and to the vmalloc areas, and to no other block. */
void lg_reset(LeakGuest *g);

/** leak_guest_new() - (owned) a guest with its initial memory and blocks. */
LeakGuest *leak_guest_new(void);

void leak_guest_free(LeakGuest *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LeakGuest, leak_guest_free)

/* A case with a guest @g. */
#define LEAK_TEST(fn, path) \
    TEST_IN(g_autoptr(LeakGuest), LeakGuest *g, leak_guest_new(), fn, path)

/** lg_is_leaked() - make a scan, and return whether it reports the block at
 *  @va. */
bool lg_is_leaked(LeakGuest *g, uint64_t va);

#endif /* GUEST_MEMORY_H */
