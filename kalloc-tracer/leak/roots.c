/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Roots, except code, stacks and chunks of per-CPU memory.
 *
 *     variables   .data, .bss and ro_after_init of the image, by symbols
 *     per CPU     per-CPU variables of each CPU
 *     registers   of all vCPUs
 *     pages       pages of the kernel that belong to no block, and the struct
 *                 pages of pages in use
 *
 * Memory that two addresses map is scanned once: pages of the image, of per-CPU
 * variables and of vmalloc blocks are KT_PAGE_ALIASED in the direct map.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include <inttypes.h>
#include <string.h>

#define CPUS_MAX        512
#define DATA_MAX        (512ull << 20)  /* bytes; no image is larger */
#define PERCPU_MAX      (64ull << 20)   /* bytes of per-CPU variables */
#define THREAD_SIZE     16384       /* if there is no type thread_union */
#define THREAD_SIZE_MAX 262144      /* twice that of riscv64 with KASAN */
#define SAMPLES         64

/* ---- variables ---------------------------------------------------------- */

static const struct {
    const char *start, *end;
} data_range[] = {
    { "_sdata", "_edata" },
    { "__bss_start", "__bss_stop" },
    { "__start_ro_after_init", "__end_ro_after_init" },
};

static bool variable(const KtLiveSet *w, const char *name, uint64_t *out)
{
    uint64_t va = kt_live_set_symbol(w, name);

    return va && kt_live_set_load(w, va, out);
}

/* Add [@va, @end) without [@but, @but_end). */
static void add_but(KtLiveSet *w, KtPlace place, uint64_t va, uint64_t end,
                    uint64_t but, uint64_t but_end, uint32_t number)
{
    if (but < va || but_end < but || but_end > end) {
        kt_live_set_add(w, place, va, end, number);
        return;
    }
    kt_live_set_add(w, place, va, but, number);
    kt_live_set_add(w, place, but_end, end, number);
}

/* Read the offset from physical to virtual addresses of the image, on arm64 and
 * riscv64. */
static bool image_offset(const KtLiveSet *w, uint64_t *out)
{
    uint64_t map = kt_live_set_symbol(w, "kernel_map");

    return variable(w, "kimage_voffset", out) ||
           (map && kt_layout_has(&w->layout, KT_M_MAPPING_IMAGE) &&
            kt_live_set_load(w, map + w->layout.at[KT_M_MAPPING_IMAGE], out));
}

/* Return the direct-map address of an address in the image, 0 if unknown. */
static uint64_t direct_of(const KtLiveSet *w, uint64_t va)
{
    const GsArch *arch = gs_kernel_arch(w->plan->kernel);
    uint64_t v;

    if (variable(w, "phys_base", &v)) {                 /* x86-64 */
        v = va - arch->text_start + v;
    } else if (image_offset(w, &v)) {
        v = va - v;
    } else {
        return 0;
    }
    return w->pages->direct_map.page_offset + v;
}

/* Add variables, without the stack of init_task. */
static void add_data(KtLiveSet *w, uint64_t va, uint64_t end)
{
    uint64_t stack = kt_live_set_symbol(w, "init_stack"), direct;

    if (va >= end) {
        return;
    }
    stack = stack ? stack : kt_live_set_symbol(w, "init_thread_union");
    add_but(w, KT_PLACE_DATA, va, end, stack, stack + w->stack_size, 0);
    direct = w->pages ? direct_of(w, va) : 0;
    if (direct) {
        kt_page_use_set_aliased(w->pages, direct, end - va);
    }
}

/* Add the kernel's variables. If symbols are missing or wrong, the pages of the
 * image stay KT_PAGE_KERNEL, and are scanned as such. x86-64 frees a part of
 * bss after boot, which has other owners then (.bss..decrypted, for guests with
 * encrypted memory). */
static void find_data(KtLiveSet *w)
{
    uint64_t freed = kt_live_set_symbol(w, "__start_bss_decrypted_unused");
    uint64_t freed_end = kt_live_set_symbol(w, "__end_bss_decrypted");

    for (unsigned i = 0; i < G_N_ELEMENTS(data_range); i++) {
        uint64_t va = kt_live_set_symbol(w, data_range[i].start);
        uint64_t end = kt_live_set_symbol(w, data_range[i].end);

        if (!va || va >= end || end - va > DATA_MAX ||
            !gs_kernel_in_image(w->plan->kernel, va)) {
            continue;
        }
        if (freed >= va && freed_end <= end && freed < freed_end) {
            add_data(w, va, freed);
            add_data(w, freed_end, end);
        } else {
            add_data(w, va, end);
        }
    }
}

/* ---- per CPU ------------------------------------------------------------ */

/* Does a register of a vCPU have an address in [@va, @va + @len)? */
static bool in_use(const KtLiveSet *w, uint64_t va, uint64_t len)
{
    const KtRegister *r = (const KtRegister *)w->registers->data;

    for (unsigned i = 0; i < w->registers->len; i++) {
        if (r[i].value - va < len) {
            return true;
        }
    }
    return false;
}

void kt_roots_find_percpu(KtLiveSet *w)
{
    uint64_t table = kt_live_set_symbol(w, "__per_cpu_offset"), cpus = 1, off;

    variable(w, "nr_cpu_ids", &cpus);
    cpus = MIN(cpus & 0xffffffff, CPUS_MAX);
    for (unsigned i = 0; table && i < cpus; i++) {
        if (!kt_live_set_load(w, table + i * 8, &off)) {
            return;
        }
        g_array_append_val(w->offset, off);
    }
}

/* Add the per-CPU variables of each CPU. They contain the CPU's interrupt stack
 * (irq_stack_backing_store); it is excluded unless a vCPU uses it now. Without
 * symbols, these pages are scanned as pages of the kernel. */
static void find_percpu(KtLiveSet *w)
{
    GsSymbol start, end, irq = { 0 };

    if (!w->offset->len ||
        !gs_kernel_lookup(w->plan->kernel, "__per_cpu_start", &start) ||
        !gs_kernel_lookup(w->plan->kernel, "__per_cpu_end", &end) ||
        end.va <= start.va || end.va - start.va > PERCPU_MAX) {
        return;
    }
    gs_kernel_lookup(w->plan->kernel, "irq_stack_backing_store", &irq);
    for (unsigned i = 0; i < w->offset->len; i++) {
        uint64_t off = g_array_index(w->offset, uint64_t, i);
        uint64_t but = irq.size ? off + irq.va : 0;

        if (but && in_use(w, but, irq.size)) {
            but = 0;
        }
        add_but(w, KT_PLACE_PERCPU, off + start.va, off + end.va, but,
                but + irq.size, i);
        if (w->pages) {
            kt_page_use_set_aliased(w->pages, off + start.va,
                                    end.va - start.va);
        }
    }
}

/* ---- registers ---------------------------------------------------------- */

static void find_registers(KtLiveSet *w)
{
    const KtVm *vm = w->plan->vm;
    KtRegister r;

    for (unsigned v = 0; v < vm->n_vcpus; v++) {
        for (unsigned i = 0; vm->reg(vm->opaque, v, i, &r); i++) {
            r.value = gs_untag(w->tag_bits, r.value);
            g_array_append_val(w->registers, r);
            g_array_append_val(w->vcpu_of, v);
        }
    }
}

/* ---- pages -------------------------------------------------------------- */

static bool is_cache(void *opaque, uint64_t va)
{
    return g_hash_table_contains(opaque, &va);
}

/* Return (owned) a set of the addresses of all caches. */
static GHashTable *list_caches(const KtLiveSet *w)
{
    GHashTable *caches = g_hash_table_new_full(gs_number_hash, g_int64_equal,
                                               g_free, NULL);
    KtCacheInfo info;

    for (unsigned id = 1; id <= UINT16_MAX; id++) {
        if (!kt_tracer_cache(w->tracer, (KtCacheId) { id }, &info)) {
            break;
        }
        g_hash_table_add(caches, g_memdup2(&info.va, sizeof(info.va)));
    }
    return caches;
}

/* Choose up to SAMPLES slab objects, spread over all addresses. */
static void find_samples(const KtLiveSet *w, KtSlabSample out[SAMPLES + 1])
{
    unsigned step = w->live->len / SAMPLES + 1, n = 0, next = 0;
    KtCacheInfo info;

    for (unsigned i = 0; i < w->live->len && n < SAMPLES; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);

        if (i >= next && b->layer == KT_LAYER_CACHE &&
            kt_tracer_cache(w->tracer, b->cache, &info)) {
            out[n++] = (KtSlabSample) { b->va, info.va };
            next = i + step;
        }
    }
    out[n] = (KtSlabSample) { 0 };
}

/* Return (owned) why it is not known which pages are roots. */
static char *unknown_pages(const KtLiveSet *w)
{
    uint32_t size;

    return g_strdup(
        gs_kernel_type_size(w->plan->kernel, "slob_block", &size) ?
            "pages that are no blocks: the allocator SLOB does not say which "
            "pages have objects" :
            "pages that are no blocks: the kernel's types do not say where "
            "they are");
}

static void find_pages(KtLiveSet *w)
{
    g_autoptr(GHashTable) caches = list_caches(w);
    KtSlabSample sample[SAMPLES + 1];

    find_samples(w, sample);
    w->pages = kt_page_use_read(w->plan->kernel, &w->mem, sample, is_cache,
                                caches);
    if (!w->pages) {
        kt_live_set_add_missing(w, unknown_pages(w));
    }
}

/* Add each run of kernel pages, and each run of struct pages in use. The loop
 * makes one more step than there are pages, to end the last runs. */
static void add_pages(KtLiveSet *w)
{
    const KtPageUses *p = w->pages;
    uint64_t kernel = 0, used = 0;

    for (uint64_t i = 0; i <= p->n; i++) {
        KtPageUse use = i < p->n ? p->use[i] : KT_PAGE_NONE;

        if (use != KT_PAGE_KERNEL) {
            kt_live_set_add(w, KT_PLACE_PAGE, kt_page_use_va(p, kernel),
                            kt_page_use_va(p, i), 0);
            kernel = i + 1;
        }
        if (use == KT_PAGE_NONE || use == KT_PAGE_FREE) {
            kt_live_set_add(w, KT_PLACE_STRUCT_PAGE,
                            kt_page_use_struct(p, used),
                            kt_page_use_struct(p, i), 0);
            used = i + 1;
        }
    }
}

/* ---- vmalloc ------------------------------------------------------------ */

/*
 * The kernel describes vmalloc memory by two structs that have its address:
 *
 *     vmap_area { va_start, va_end, vm } --> vm_struct { addr, pages, ... }
 *        |            |                          |
 *        v            v                          v
 *     start        end = maybe the start     the memory
 *     of a block   of the next block
 *
 * They exist for each block, so their pointers say nothing about an owner, and
 * are skipped: in a vmap_area all three members, in a vm_struct the address.
 * Without va_start and addr, a leaked block of vmalloc is unreached. The areas
 * of per-CPU chunks are such structs, too, and a per-CPU block can lie at the
 * start of its chunk: their addresses are skipped. A
 * vm_struct itself is a root: owners keep the address of the memory, and most
 * words that point to the vm_struct are stale. The exception is the vm_struct
 * of a task's stack, which the kernel also caches for new tasks: see
 * KT_MARKERF_STACK_VM.
 *
 * The pages of the memory are KT_PAGE_ALIASED: they are scanned as words of the
 * vmalloc block.
 */
/* Where members to skip are in vm_struct or vmap_area. */
typedef struct VmLayout {
    const char *type;
    uint32_t size;
    uint32_t skip[3];           /* offsets of members */
} VmLayout;

/* @purged: the member vm of a vmap_area that waits to be freed is the link to
 *          the next one (vmap_area.purge_list, until 5.10) */
typedef struct VmLayouts {
    VmLayout vm, area;
    bool purged;
} VmLayouts;

static void skip(KtLiveSet *w, uint32_t block, const uint32_t *at, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        kt_marker_skip(w->scan, block, at[i], at[i] + 8);
    }
}

/* Set the pages of a vmalloc block to KT_PAGE_ALIASED. @list: its array of
 * struct page pointers, vm_struct.pages; @len: bytes of the block */
static void alias_pages(KtLiveSet *w, uint64_t list, uint64_t len)
{
    const KtPageUses *p = w->pages;
    uint64_t page, i;
    uint8_t *use;

    for (uint64_t n = 0; n < len >> p->page_shift; n++) {
        if (!kt_live_set_load(w, list + n * 8, &page)) {
            return;
        }
        if (kt_page_use_by_struct(p, page, &i) &&
            (use = kt_page_use_kernel(p, kt_page_use_va(p, i)))) {
            *use = KT_PAGE_ALIASED;
        }
    }
}

static bool find_vm_layout(const KtLiveSet *w, VmLayout *b,
                           const KtMember *skips)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(b->skip); i++) {
        b->skip[i] = w->layout.at[skips[i]];
        if (b->skip[i] == KT_NO_MEMBER) {
            return false;
        }
    }
    return gs_kernel_type_size(w->plan->kernel, b->type, &b->size);
}

static const KtLiveBlock *vmalloc_at(const KtLiveSet *w, uint64_t va)
{
    const KtLiveBlock *b = kt_live_set_find(w, va);

    return b && b->layer == KT_LAYER_VMALLOC ? b : NULL;
}

/* Return the vmalloc block that @b describes, if @b is its vm_struct, or NULL.
 * A vm_struct is known by its size and its addr. */
static const KtLiveBlock *vmalloc_of(const KtLiveSet *w, const VmLayout *vm,
                                const KtLiveBlock *b)
{
    uint64_t va;

    return b->layer == KT_LAYER_KMALLOC && b->requested == vm->size &&
                   kt_live_set_load(w, b->va + vm->skip[0], &va) ?
               vmalloc_at(w, va) :
               NULL;
}

/* Does the memory of a per-CPU block start at @va, for one of the CPUs? */
static bool is_percpu(const KtLiveSet *w, uint64_t va)
{
    for (unsigned cpu = 0; cpu < w->offset->len; cpu++) {
        const KtLiveBlock *b = kt_live_set_find(
            w, va - g_array_index(w->offset, uint64_t, cpu));

        if (b && b->layer == KT_LAYER_PERCPU) {
            return true;
        }
    }
    return false;
}

/* Return the address of the vmap_area's vm_struct if that has the same address,
 * else 0. An area that waits to be freed has a stale pointer to a freed
 * vm_struct, whose memory may be another block now. */
static uint64_t current_vm(const KtLiveSet *w, const VmLayouts *at, uint64_t va,
                           uint64_t start)
{
    uint64_t vm, addr;

    return kt_live_set_load(w, va + at->area.skip[2], &vm) &&
                   kt_live_set_load(w, vm + at->vm.skip[0], &addr) &&
                   addr == start ?
               vm :
               0;
}

/* Skip the address in the vm_struct of a per-CPU chunk. The chunk refers to the
 * vm_struct (pcpu_chunk.data), so the struct is no root. */
static void skip_chunk_address(KtLiveSet *w, const VmLayout *at, uint64_t vm)
{
    const KtLiveBlock *b = kt_live_set_find(w, vm);

    if (b && b->requested == at->size) {
        skip(w, kt_live_set_index(w, b), at->skip, 1);
    }
}

/* If block @i is a vmap_area, skip its pointers: all of them if it describes a
 * vmalloc block or its vm is stale, only the addresses if one of them is the
 * start of a block. A vmap_area is known by its size and page-aligned,
 * ascending addresses. */
static void skip_area(KtLiveSet *w, uint32_t i, const VmLayouts *at)
{
    const KtLiveBlock *b = kt_live_set_block(w, i);
    uint64_t start, end, vm;
    bool of_chunk;

    if (b->layer != KT_LAYER_CACHE || b->requested != at->area.size ||
        !kt_live_set_load(w, b->va + at->area.skip[0], &start) ||
        !kt_live_set_load(w, b->va + at->area.skip[1], &end) ||
        start >= end || (start | end) & 4095) {
        return;
    }
    vm = current_vm(w, at, b->va, start);
    of_chunk = vm && is_percpu(w, start);
    if (vmalloc_at(w, start) || (!vm && !at->purged)) {
        skip(w, i, at->area.skip, 3);
    } else if (of_chunk || vmalloc_at(w, end) || is_percpu(w, end)) {
        skip(w, i, at->area.skip, 2);
    }
    if (of_chunk) {
        skip_chunk_address(w, &at->vm, vm);
    }
}

static bool find_vm_layouts(const KtLiveSet *w, VmLayouts *at)
{
    static const KtMember of_vm[] = {
        KT_M_VM_ADDR, KT_M_VM_ADDR, KT_M_VM_ADDR,
    };
    static const KtMember of_area[] = {
        KT_M_AREA_START, KT_M_AREA_END, KT_M_AREA_VM,
    };

    *at = (VmLayouts) { { .type = "vm_struct" }, { .type = "vmap_area" } };
    if (!find_vm_layout(w, &at->vm, of_vm) ||
        !find_vm_layout(w, &at->area, of_area)) {
        return false;
    }
    at->purged = w->layout.at[KT_M_AREA_PURGE] == at->area.skip[2];
    return true;
}

static void find_vmalloc(KtLiveSet *w)
{
    VmLayouts at;
    uint32_t list = w->layout.at[KT_M_VM_PAGES];
    uint64_t pages;

    if (!find_vm_layouts(w, &at) || list == KT_NO_MEMBER) {
        g_ptr_array_add(w->missing, g_strdup(
            "leaks of vmalloc: no type vm_struct or vmap_area"));
        return;
    }
    for (uint32_t i = 0; i < w->live->len; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i), *of;

        if ((of = vmalloc_of(w, &at.vm, b))) {
            skip(w, i, at.vm.skip, 1);
            kt_marker_set_flags(w->scan, i,
                                of->is_stack ? KT_MARKERF_STACK_VM :
                                               KT_MARKERF_ROOT);
            if (w->pages && kt_live_set_load(w, b->va + list, &pages)) {
                alias_pages(w, pages, of->len);
            }
        } else {
            skip_area(w, i, &at);
        }
    }
}

/* ---- all ---------------------------------------------------------------- */

void kt_roots_find(KtLiveSet *w)
{
    uint32_t size;

    if (!w->tag_bits && gs_kernel_tags_pointers(w->plan->kernel)) {
        kt_live_set_add_missing(w, g_strdup("which bits of pointers are tags "
                                            "(KASAN)"));
    }
    w->stack_size = gs_kernel_type_size(w->plan->kernel, "thread_union",
                                        &size) && size >= 4096 &&
                    size <= THREAD_SIZE_MAX ? size : THREAD_SIZE;
    find_registers(w);
    find_pages(w);
    kt_roots_find_stacks(w);
    find_vmalloc(w);
    kt_skip_kmemleak(w);
    kt_skip_members(w);
    kt_skip_sheaves(w);
    kt_skip_arrays(w);
    find_data(w);
    find_percpu(w);
    kt_roots_find_percpu_chunks(w);
    kt_roots_find_percpu_refs(w);
    kt_roots_find_code(w);
    if (w->pages) {
        kt_skip_big_pages(w);
        kt_skip_kfree_rcu(w);
        kt_page_use_find_memmap_alias(w->pages, &w->mem);
        add_pages(w);
    }
    if (w->skipped) {
        kt_live_set_add_missing(
            w,
            g_strdup_printf("%" PRIu64 " MiB that are in more than %u pieces",
                            (w->skipped >> 20) + 1, KT_REGIONS_MAX));
    }
}
