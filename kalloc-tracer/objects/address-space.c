/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the running kernel's own structures say about an address: tasks' stacks,
 * percpu memory, slabs, pages and vmalloc areas. Owns no state; the public
 * header is api/kt-objects.h.
 *
 * Called by ka whatis, on any thread. Takes the tracer's lock for each query of
 * the map. The guest may run meanwhile.
 *
 * Addresses and offsets come from the kernel's symbols and BTF. All values that
 * are read are untrusted, and only compared with facts that the tracer has
 * recorded itself: known caches, blocks that are tasks or areas.
 */
#include "kalloc-tracer/api/kt-mapping.h"
#include "kalloc-tracer/layout/layout.h"
#include "kalloc-tracer/objects/objects-internal.h"

#include <string.h>

/* Limit of blocks that are visited, and the size of the largest stack. */
#define BLOCKS_MAX 65536
#define STACK_MAX 0x10000ull
/* The largest page. */
#define INFO_MAX 0x10000u

bool kt_objects_made_by(const KtObjects *o, KtStackId id,
                        const char *const *function, unsigned n)
{
    unsigned frames = 0;
    GsStop stop;
    GsSymbol sym;
    const uint64_t *pc = id.v ? kt_tracer_stack(o->tracer, id, &frames, &stop)
                              : NULL;

    for (unsigned i = 0; pc && frames && i < n; i++) {
        if (gs_kernel_lookup(o->kernel, function[i], &sym) && pc[0] > sym.va &&
            pc[0] <= sym.va + sym.size) {
            return true;
        }
    }
    return false;
}

/* Read a variable that is an address or a length. */
static bool read_variable(const KtObjects *o, const char *name, uint64_t *out)
{
    GsSymbol sym;

    return o->kernel && gs_kernel_lookup(o->kernel, name, &sym) &&
           kt_objects_pointer(o, sym.va, out);
}

/* ---- blocks of a type ---------------------------------------------------- */

/** struct Made - live blocks that a function allocated: from the cache @cache,
 *  or if that is NULL by kmalloc() with @size bytes; @va: their addresses */
typedef struct Made {
    KtTracer *t;
    const char *cache;
    uint32_t size;
    GArray *va;
} Made;

static bool is_made(const Made *made, const KtBlock *b)
{
    KtCacheInfo cache;

    if (b->state != KT_BLOCK_ALLOCATED) {
        return false;
    }
    return made->cache ? kt_tracer_cache(made->t, b->cache, &cache) &&
                         !strcmp(cache.name, made->cache) :
                         b->layer == KT_LAYER_KMALLOC &&
                         b->requested == made->size;
}

static bool add_made(const KtBlock *b, void *opaque)
{
    Made *made = opaque;

    if (is_made(made, b)) {
        g_array_append_val(made->va, b->va);
    }
    return made->va->len < BLOCKS_MAX;
}

/* Collect blocks with @function anywhere in their allocation stack, whatever
 * the compiler inlined. */
static void find_made(const KtAddress *a, const char *function, Made *made)
{
    GsSymbol sym;

    if (gs_kernel_lookup(a->o.kernel, function, &sym)) {
        kt_query_begin(a->o.tracer);
        kt_query_alloc_pc(a->o.tracer, sym.va, sym.va + sym.size, add_made,
                          made);
        kt_query_end(a->o.tracer);
    }
}

static Made made_init(const KtAddress *a, const char *cache, uint32_t size)
{
    return (Made) { a->o.tracer, cache, size,
                    g_array_new(FALSE, FALSE, sizeof(uint64_t)) };
}

/* ---- stacks -------------------------------------------------------------- */

static bool read_task(const KtAddress *a, uint64_t task, KtTaskName *out)
{
    uint32_t at_pid = kt_member(a->o.kernel, KT_M_TASK_PID);
    uint32_t at_comm = kt_member(a->o.kernel, KT_M_TASK_COMM);

    *out = (KtTaskName) { 0 };
    if (at_pid == KT_NO_MEMBER || at_comm == KT_NO_MEMBER ||
        !kt_objects_read(&a->o, task + at_pid, &out->pid, sizeof(out->pid)) ||
        !kt_objects_read(&a->o, task + at_comm, out->comm, 16)) {
        return false;
    }
    out->pid = GUINT32_FROM_LE(out->pid);
    return true;
}

static bool can_read_tasks(const KtAddress *a)
{
    return a->o.vm && a->o.vm->n_vcpus &&
           kt_member(a->o.kernel, KT_M_TASK_STACK) != KT_NO_MEMBER &&
           kt_member(a->o.kernel, KT_M_TASK_PID) != KT_NO_MEMBER &&
           kt_member(a->o.kernel, KT_M_TASK_COMM) != KT_NO_MEMBER;
}

bool kt_address_task_stack(const KtAddress *a, KtTaskName *out)
{
    g_autoptr(GArray) tasks = NULL;
    uint32_t at = kt_member(a->o.kernel, KT_M_TASK_STACK);
    Made made;

    if (!a->o.vm || !a->o.kernel || !a->has_block ||
        a->block.state != KT_BLOCK_ALLOCATED ||
        kt_block_len(&a->block) > STACK_MAX ||
        at == KT_NO_MEMBER) {
        return false;
    }
    made = made_init(a, "task_struct", 0);
    tasks = made.va;
    find_made(a, "copy_process", &made);
    for (unsigned i = 0; i < tasks->len; i++) {
        uint64_t task = g_array_index(tasks, uint64_t, i);
        uint64_t stack;

        if (kt_objects_pointer(&a->o, task + at, &stack) &&
            stack == a->block.va) {
            return read_task(a, task, out);
        }
    }
    return false;
}

/*
 * copy_process() makes nothing else with vmalloc(). The kernel keeps some
 * stacks of tasks that ended for the next ones, so the block may be live.
 * Whether a live one has a task is known only with the VM.
 */
bool kt_address_dead_stack(const KtAddress *a)
{
    static const char *const makers[] = {
        "alloc_thread_stack_node", "dup_task_struct", "copy_process",
    };
    bool freed = a->has_block && a->block.state == KT_BLOCK_FREED;
    KtTaskName task;

    return a->has_block && a->o.kernel &&
           a->block.layer == KT_LAYER_VMALLOC && (freed || can_read_tasks(a)) &&
           kt_objects_made_by(&a->o, a->block.alloc_stack, makers,
                              G_N_ELEMENTS(makers)) &&
           !kt_address_task_stack(a, &task);
}

/* ---- percpu -------------------------------------------------------------- */

static bool find_percpu_block(const KtAddress *a, uint64_t pointer,
                              KtPercpuPlace *out)
{
    kt_query_begin(a->o.tracer);
    out->in_block = kt_query_find(a->o.tracer, pointer, &out->block) &&
                    out->block.layer == KT_LAYER_PERCPU;
    kt_query_end(a->o.tracer);
    out->offset = pointer - out->block.va;
    return out->in_block;
}

static bool find_percpu_variable(const KtAddress *a, uint64_t pointer,
                                 KtPercpuPlace *out)
{
    GsSymbol start, end;

    if (!gs_kernel_lookup(a->o.kernel, "__per_cpu_start", &start) ||
        !gs_kernel_lookup(a->o.kernel, "__per_cpu_end", &end) ||
        pointer < start.va || pointer >= end.va) {
        return false;
    }
    out->offset = pointer - start.va;
    return true;
}

bool kt_address_percpu(const KtAddress *a, KtPercpuPlace *out)
{
    GsSymbol offsets;

    if (!a->o.vm || !a->o.kernel ||
        !gs_kernel_lookup(a->o.kernel, "__per_cpu_offset", &offsets)) {
        return false;
    }
    for (unsigned cpu = 0; cpu < a->o.vm->n_vcpus; cpu++) {
        uint64_t offset;

        *out = (KtPercpuPlace) { .cpu = cpu };
        if (kt_objects_pointer(&a->o, offsets.va + 8 * cpu, &offset) &&
            offset &&
            (find_percpu_block(a, a->va - offset, out) ||
             find_percpu_variable(a, a->va - offset, out))) {
            return true;
        }
    }
    return false;
}

/* ---- pages --------------------------------------------------------------- */

/** struct Page - the page that contains @va: the address of @va in the direct
 *  map, less that of page frame 0, and its struct page (0: not known) */
typedef struct Page {
    uint64_t offset;
    uint64_t page;
} Page;

static bool translate(const KtVm *vm, uint64_t va, uint64_t *phys)
{
    for (unsigned i = 0; vm->translate && i < vm->n_vcpus; i++) {
        if (vm->translate(vm->opaque, i, va, phys)) {
            return true;
        }
    }
    return false;
}

/* Find the struct page. Without types it is not known, and only the page tables
 * say that an address is in the direct map. */
static bool find_struct_page(const KtAddress *a, Page *p)
{
    uint64_t word, phys;
    uint32_t size;

    if (!gs_kernel_type_size(a->o.kernel, "page", &size)) {
        p->page = 0;
        return translate(a->o.vm, a->va, &phys) && phys == p->offset;
    }
    p->page = a->o.vm->vmemmap +
              (p->offset >> gs_kernel_page_shift(a->o.kernel)) * size;
    return kt_objects_pointer(&a->o, p->page, &word);
}

/* Find the page by the direct map. Return false if the page or its struct page
 * is not mapped. */
static bool find_page(const KtAddress *a, Page *p)
{
    char byte;

    if (!a->o.vm || !a->o.kernel || !a->o.vm->page_offset ||
        !a->o.vm->vmemmap ||
        a->va < gs_kernel_lowest(a->o.kernel) ||
        gs_kernel_in_image(a->o.kernel, a->va)) {
        return false;
    }
    p->offset = a->va - a->o.vm->page_offset;
    if (kt_objects_has_frames(&a->o) && p->offset >> 52) {
        return false;
    }
    return find_struct_page(a, p) && kt_objects_read(&a->o, a->va, &byte, 1);
}

/* Find the first page of a compound page, see cache_by() of the tracer's
 * guest.c. */
static bool find_head(const KtAddress *a, uint64_t *page)
{
    uint32_t at = kt_member(a->o.kernel, KT_M_PAGE_HEAD);
    uint64_t head;

    if (at == KT_NO_MEMBER || !kt_objects_pointer(&a->o, *page + at, &head)) {
        return false;
    }
    if (head & 1) {
        head &= ~1ull;
        *page = (-head & (-head - 1)) ? head : *page & head;
    }
    return true;
}

static bool find_cache(const KtAddress *a, uint64_t va, KtCacheInfo *cache)
{
    KtStats stats;

    kt_query_begin(a->o.tracer);
    kt_query_stats(a->o.tracer, &stats);
    kt_query_end(a->o.tracer);
    for (unsigned i = 1; va && i <= stats.caches && i <= UINT16_MAX; i++) {
        if (kt_tracer_cache(a->o.tracer, (KtCacheId) { i }, cache) &&
            cache->va == va && !cache->destroyed) {
            return true;
        }
    }
    return false;
}

/* Find the slab's cache. If the page is no slab, the value at the place of the
 * cache is no address of a known cache. */
bool kt_address_slab(const KtAddress *a, KtCacheInfo *out)
{
    uint64_t va;
    uint32_t at = kt_member(a->o.kernel, KT_M_SLAB_CACHE);
    Page p;

    return find_page(a, &p) && find_head(a, &p.page) && at != KT_NO_MEMBER &&
           kt_objects_pointer(&a->o, p.page + at, &va) &&
           find_cache(a, va, out);
}

bool kt_address_direct_map(const KtAddress *a, uint64_t *phys)
{
    Page p;

    if (!find_page(a, &p) || !kt_objects_has_frames(&a->o)) {
        return false;
    }
    *phys = p.offset;
    return true;
}

bool kt_address_struct_page(const KtAddress *a, uint64_t *phys,
                            uint64_t *offset)
{
    KtAddress at = *a;
    uint32_t size;
    Page p;

    if (!a->o.vm || !a->o.kernel || !a->o.vm->vmemmap ||
        a->va < a->o.vm->vmemmap ||
        !gs_kernel_type_size(a->o.kernel, "page", &size) || !size) {
        return false;
    }
    at.va = a->o.vm->page_offset + ((a->va - a->o.vm->vmemmap) / size <<
                                  gs_kernel_page_shift(a->o.kernel));
    if (!find_page(&at, &p) || !kt_objects_has_frames(&a->o)) {
        return false;
    }
    *phys = p.offset;
    *offset = a->va - p.page;
    return true;
}

bool kt_objects_physical(const KtObjects *o, uint64_t phys, uint64_t *va)
{
    KtAddress at = { .o = *o };
    Page p;

    if (!o->vm || phys >> 52) {
        return false;
    }
    at.va = o->vm->page_offset + phys;
    if (!find_page(&at, &p) || !kt_objects_has_frames(o)) {
        return false;
    }
    *va = at.va;
    return true;
}

bool kt_objects_frame(const KtObjects *o, uint64_t pfn, uint64_t *va)
{
    unsigned shift = o->kernel ? gs_kernel_page_shift(o->kernel) : 0;

    return shift && !(pfn >> (64 - shift)) &&
           kt_objects_physical(o, pfn << shift, va);
}

bool kt_objects_page(const KtObjects *o, uint64_t page, uint64_t *va)
{
    const KtAddress at = { .va = page, .o = *o };
    uint64_t phys, offset;

    return kt_address_struct_page(&at, &phys, &offset) &&
           kt_objects_physical(o, phys & -(1ull << gs_kernel_page_shift(
                                               o->kernel)), va);
}

bool kt_address_mapping(const KtAddress *a, KtMapping *out)
{
    const GsKernel *k = a->o.kernel;
    GsModule mod;

    *out = (KtMapping) { 0 };
    return k && a->o.vm && a->va >= gs_kernel_lowest(k) &&
           !gs_kernel_in_image(k, a->va) &&
           !gs_kernel_module_at(k, a->va, &mod) &&
           translate(a->o.vm, a->va, &out->phys) &&
           (!kt_objects_physical(&a->o, out->phys, &out->va) ||
            out->va != a->va);
}

/* ---- vmalloc ------------------------------------------------------------- */

/* Read a struct vm_struct. Return false if the area does not contain the
 * address. */
static bool read_area(const KtAddress *a, uint64_t vm, const KtLayout *at,
                      KtVmArea *out)
{
    const KtObjects *o = &a->o;

    return kt_objects_pointer(o, vm + at->at[KT_M_VM_ADDR], &out->va) &&
           kt_objects_pointer(o, vm + at->at[KT_M_VM_SIZE], &out->size) &&
           kt_objects_pointer(o, vm + at->at[KT_M_VM_FLAGS], &out->flags) &&
           kt_objects_pointer(o, vm + at->at[KT_M_VM_PHYS], &out->phys) &&
           kt_objects_pointer(o, vm + at->at[KT_M_VM_CALLER], &out->caller) &&
           a->va >= out->va && a->va - out->va < out->size &&
           out->va + out->size > out->va;
}

/* Find the vmalloc area in the kernel's own list. An area includes its guard
 * page. If the block is known, its own line says more. */
bool kt_address_area(const KtAddress *a, KtVmArea *out)
{
    static const char *const makers[] = {
        "__get_vm_area_node", "pcpu_get_vm_areas",
    };
    g_autoptr(GArray) found = NULL;
    uint32_t bytes;
    KtLayout at;
    Made made;

    if (!a->o.vm || !a->o.kernel ||
        !kt_layout_find(&at, a->o.kernel, KT_M_VM_ADDR, KT_M_VM_CALLER) ||
        !gs_kernel_type_size(a->o.kernel, "vm_struct", &bytes) ||
        (a->has_block && a->block.state == KT_BLOCK_ALLOCATED)) {
        return false;
    }
    made = made_init(a, NULL, bytes);
    found = made.va;
    for (unsigned i = 0; i < G_N_ELEMENTS(makers); i++) {
        find_made(a, makers[i], &made);
    }
    for (unsigned i = 0; i < found->len; i++) {
        if (read_area(a, g_array_index(found, uint64_t, i), &at, out)) {
            return true;
        }
    }
    return false;
}

/** struct Space - the range [lo, hi], both inclusive */
typedef struct Space {
    uint64_t lo, hi;
} Space;

/* Return (owned, nullable) vmcoreinfo: lines of text "KEY=value" for tools that
 * analyse dumps (kernel/vmcore_info.c, before 6.9 crash_core.c). */
static char *read_vmcoreinfo(const KtObjects *o)
{
    g_autofree char *text = NULL;
    uint64_t va, len;

    if (!read_variable(o, "vmcoreinfo_data", &va) || !va ||
        !read_variable(o, "vmcoreinfo_size", &len) || len > INFO_MAX) {
        return NULL;
    }
    text = g_malloc0(len + 1);
    return kt_objects_read(o, va, text, len) ? g_steal_pointer(&text) : NULL;
}

static bool find_number(const char *info, const char *name, uint64_t *out)
{
    g_autofree char *key = g_strdup_printf("NUMBER(%s)=", name);
    const char *at = strstr(info, key);

    *out = at ? g_ascii_strtoull(at + strlen(key), NULL, 0) : 0;
    return *out != 0;
}

/* Read the vmalloc space from vmcoreinfo: arm64 (since 6.0) and riscv64 (5.19).
 * One has the address after the end, which is even, the other the last
 * address. */
static bool space_by_vmcoreinfo(const KtObjects *o, Space *space)
{
    g_autofree char *info = read_vmcoreinfo(o);

    if (!info || !find_number(info, "VMALLOC_START", &space->lo) ||
        !find_number(info, "VMALLOC_END", &space->hi)) {
        return false;
    }
    space->hi = (space->hi - 1) | 1;
    return true;
}

/* Read the vmalloc space from variables of x86-64. */
static bool space_by_variables(const KtObjects *o, Space *space)
{
    if (!read_variable(o, "vmalloc_base", &space->lo) ||
        !read_variable(o, "vmemmap_base", &space->hi) || !space->hi) {
        return false;
    }
    space->hi--;
    return true;
}

static bool find_space(const KtObjects *o, Space *space)
{
    return space_by_variables(o, space) || space_by_vmcoreinfo(o, space);
}

/* The images of some kernels are inside of the vmalloc space; an address of the
 * image is not reported. */
bool kt_address_in_vmalloc(const KtAddress *a)
{
    Space space;

    return a->o.kernel && !gs_kernel_in_image(a->o.kernel, a->va) &&
           find_space(&a->o, &space) && a->va >= space.lo && a->va <= space.hi;
}

bool kt_objects_vmalloc_space(const KtObjects *o, uint64_t *lo, uint64_t *hi)
{
    Space space = { 0 };
    bool ok = o->kernel && find_space(o, &space);

    *lo = space.lo;
    *hi = space.hi;
    return ok;
}

bool kt_objects_slide(const KtObjects *o, uint64_t *slide)
{
    static const char key[] = "KERNELOFFSET=";
    g_autofree char *info = read_vmcoreinfo(o);
    const char *at = info ? strstr(info, key) : NULL;

    *slide = at ? g_ascii_strtoull(at + strlen(key), NULL, 16) : 0;
    return at;
}
