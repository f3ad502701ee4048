/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects of the running kernel: what its own structures say about an address.
 * Implemented in objects/. All functions may be called on any thread, and take
 * the tracer's lock themselves. The guest may run meanwhile.
 */
#ifndef KT_API_OBJECTS_H
#define KT_API_OBJECTS_H

#include "kalloc-tracer/api/kt-query.h"
#include "kalloc-tracer/api/kt-tracer.h"
#include "kalloc-tracer/api/kt-vm.h"

/**
 * struct KtObjects - where kernel objects are read
 * @tracer: (borrowed) never NULL
 * @kernel: (borrowed, nullable) the running kernel
 * @vm: (borrowed, nullable) the VM; without it no memory is read
 */
typedef struct KtObjects {
    KtTracer *tracer;
    const GsKernel *kernel;
    const KtVm *vm;
} KtObjects;

/**
 * struct KtAddress - an address in question, and where to read about it
 * @has_block: @block contains the address
 */
typedef struct KtAddress {
    uint64_t va;
    KtObjects o;
    bool has_block;
    KtBlock block;
} KtAddress;

/** struct KtTaskName - pid and comm of a task; @comm: untrusted bytes */
typedef struct KtTaskName {
    uint32_t pid;
    char comm[17];
} KtTaskName;

/** struct KtPercpuPlace - a place in the percpu memory of @cpu: at @offset in
 *  @block if @in_block, else in the kernel's percpu variables */
typedef struct KtPercpuPlace {
    unsigned cpu;
    bool in_block;
    KtBlock block;
    uint64_t offset;
} KtPercpuPlace;

/** struct KtVmArea - the kernel's struct vm_struct; @size includes the guard
 *  page, @flags are those of include/linux/vmalloc.h (1: VM_IOREMAP) */
typedef struct KtVmArea {
    uint64_t va, size, flags, phys, caller;
} KtVmArea;

#define KT_DEVICE_NAME_MAX 64

/** struct KtDevres - a block that a device owns; @device: its struct device;
 *  @name: untrusted bytes; @data: the memory behind the header */
typedef struct KtDevres {
    uint64_t device, data;
    char name[KT_DEVICE_NAME_MAX + 1];
} KtDevres;

/** kt_objects_read() - copy @len bytes at @va, as any vCPU maps them. False if
 *  there is no VM, or if part of them is unreadable: @buf is undefined then. */
bool kt_objects_read(const KtObjects *o, uint64_t va, void *buf, size_t len);
/** kt_objects_n_cpus() - return the number of CPU numbers that the kernel uses
 *  (nr_cpu_ids), at most KT_CPUS_MAX; the vCPUs if it does not say. */
unsigned kt_objects_n_cpus(const KtObjects *o);
/**
 * kt_objects_percpu() - find the copy of per-CPU memory that belongs to a CPU
 * @pointer: a __percpu pointer, or the address of a per-CPU variable
 * @va: (out) @pointer + __per_cpu_offset[@cpu]
 *
 * Without that symbol x86-64's GS base is the offset, as long as the VM is
 * stopped. In a kernel that was built without CONFIG_SMP, @va is @pointer.
 *
 * Returns: false, with @va 0, if the CPU is not possible or its offset is
 * unknown.
 */
bool kt_objects_percpu(const KtObjects *o, unsigned cpu, uint64_t pointer,
                       uint64_t *va);
/** kt_objects_physical() - find a byte of physical memory in the direct map.
 *  False if the map is not known, or has no page there that can be read. */
bool kt_objects_physical(const KtObjects *o, uint64_t phys, uint64_t *va);
/** kt_objects_frame() - the same of the first byte of frame number @pfn */
bool kt_objects_frame(const KtObjects *o, uint64_t pfn, uint64_t *va);
/** kt_objects_page() - the same of the page whose struct page contains @page */
bool kt_objects_page(const KtObjects *o, uint64_t page, uint64_t *va);
/** kt_objects_vmalloc_space() - find the vmalloc space; both are inclusive. */
bool kt_objects_vmalloc_space(const KtObjects *o, uint64_t *lo, uint64_t *hi);

/* Each function below returns false if the address is no such place, or if this
 * is unknown. None guesses. */

/** kt_address_task_stack() - find the task whose stack the block is */
bool kt_address_task_stack(const KtAddress *a, KtTaskName *out);
/** kt_address_dead_stack() - the block was allocated as the stack of a task,
 *  and no task has it: its task ended */
bool kt_address_dead_stack(const KtAddress *a);
/** kt_address_devres() - find the device that owns a block (devm_kmalloc()) */
bool kt_address_devres(const KtAddress *a, KtDevres *out);
/** kt_address_percpu() - find the address in percpu memory */
bool kt_address_percpu(const KtAddress *a, KtPercpuPlace *out);
/** kt_address_slab() - find the cache of the slab that contains the address */
bool kt_address_slab(const KtAddress *a, KtCacheInfo *out);
/** kt_address_direct_map() - find the physical address by the direct map */
bool kt_address_direct_map(const KtAddress *a, uint64_t *phys);
/** kt_address_struct_page() - the address is in a struct page: find the
 *  physical address of its page, and the offset in the structure */
bool kt_address_struct_page(const KtAddress *a, uint64_t *phys,
                            uint64_t *offset);
/** kt_address_area() - find the vmalloc area, unless the block is known */
bool kt_address_area(const KtAddress *a, KtVmArea *out);
/** kt_address_in_vmalloc() - return true in the vmalloc space */
bool kt_address_in_vmalloc(const KtAddress *a);

/* ---- parts of the kernel ------------------------------------------------- */
/*
 * Where the kernel and its parts are, for `ka base`. Implemented in objects/.
 * All functions may be called on any thread; none takes a lock.
 */

typedef enum KtBaseId {
#define KT_BASE(id, ...) KT_BASE_##id,
#include "kalloc-tracer/api/base-ranges.def"
    KT_BASE__COUNT
} KtBaseId;

/**
 * struct KtBaseRange - a part of the kernel's address space
 * @start: its first byte
 * @last: its last byte; 0: not known, @start is
 */
typedef struct KtBaseRange {
    uint64_t start, last;
} KtBaseRange;

/** kt_base_name() - (static) return the name of a part. */
const char *kt_base_name(KtBaseId id);
/** kt_base_range() - find a part. Returns: false if it is not known; @why:
 *  (out, static) then says what is missing */
bool kt_base_range(const KtObjects *o, KtBaseId id, KtBaseRange *out,
                   const char **why);
/** kt_base_percpu() - find the per-CPU variables of a CPU. Returns: false if
 *  the CPU is not possible, or if this is unknown. */
bool kt_base_percpu(const KtObjects *o, unsigned cpu, KtBaseRange *out);
/* Size of a build id in hex, with its NUL. */
#define KT_BUILD_ID_SIZE 65

/** kt_base_build_id() - read the build id of the kernel's image from its notes
 *  in memory, as hex. Returns: false if there is no VM to read from, or none
 *  there. */
bool kt_base_build_id(const KtObjects *o, char hex[KT_BUILD_ID_SIZE]);
/** kt_base_slide() - find the distance by which KASLR moved the kernel.
 *  Returns: false if neither the kernel's file nor its vmcoreinfo says so. */
bool kt_base_slide(const KtObjects *o, uint64_t *slide);

/* ---- types of blocks ----------------------------------------------------- */
/*
 * The type of the object in a block, where something says what it is.
 * Implemented in objects/. All functions may be called on any thread, but not
 * between kt_query_begin() and kt_query_end().
 */

/** How a type is known. */
typedef enum KtTypeSource {
    KT_TYPE_BY_CACHE,       /* the cache has objects of one type */
    KT_TYPE_BY_FUNCTION,    /* a function of the allocation stack returns a
                             * pointer to it, and its size is that requested */
    KT_TYPE_BY_POINTER,     /* a member of another block, whose type is known,
                             * points to the block; its size is that
                             * requested */
    KT_TYPE__COUNT
} KtTypeSource;
/** kt_type_source_name() - return "cache", "function" or "pointer". */
const char *kt_type_source_name(KtTypeSource source);

#define KT_TYPE_NAME_MAX 128u

/**
 * struct KtBlockType - a struct that the block may be
 * @name: of the struct, without "struct"; untrusted bytes
 * @size: its bytes
 * @by: name of the cache or function, or "type.member"; untrusted bytes
 * @sure: false: something else may be in the block. Several candidates are not
 *        sure, either
 */
typedef struct KtBlockType {
    char name[KT_TYPE_NAME_MAX];
    char by[2 * KT_TYPE_NAME_MAX];
    uint32_t size;
    KtTypeSource source;
    bool sure;
} KtBlockType;

/**
 * kt_block_types() - find the candidates by the block's cache and its stack
 * @b: live or freed
 *
 * Without a VM it is not known whether the kernel merged other caches into the
 * block's, so a type by its cache is not sure.
 *
 * Returns: (owned) KtBlockType; empty if nothing is known.
 */
GArray *kt_block_types(const KtObjects *o, const KtBlock *b);
/**
 * kt_block_types_add() - add the candidates of a pointer
 * @types: (inout) KtBlockType, all of KT_TYPE_BY_POINTER
 * @owner: the block that has a word with the address of @b
 * @at: offset of the word in @owner
 */
void kt_block_types_add(const KtObjects *o, GArray *types, const KtBlock *b,
                        const KtBlock *owner, uint64_t at);

#endif /* KT_API_OBJECTS_H */
