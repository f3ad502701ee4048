/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka whatis: the sources that read the guest's memory.
 *
 * Called by whatis.c. Addresses and offsets come from the kernel's symbols and
 * BTF. All values are untrusted, and only compared with facts that the tracer
 * has recorded itself: known caches, blocks that are tasks. The guest may run
 * meanwhile.
 */
#include "monitor-cmds/commands/whatis.h"

#include "monitor-cmds/commands/commands.h"

#include <string.h>

/* Limit of blocks that are visited, and the size of the largest stack. */
#define BLOCKS_MAX 65536
#define STACK_MAX 0x10000ull
/* The largest page. */
#define INFO_MAX 0x10000u

bool mc_whatis_read(const McWhatis *w, uint64_t va, void *buf, size_t len)
{
    for (unsigned i = 0; w->vm && i < w->vm->n_vcpus; i++) {
        if (w->vm->read(w->vm->opaque, i, va, buf, len)) {
            return true;
        }
    }
    return false;
}

static bool read_u64(const McWhatis *w, uint64_t va, uint64_t *out)
{
    bool ok = mc_whatis_read(w, va, out, sizeof(*out));

    *out = ok ? GUINT64_FROM_LE(*out) : 0;
    return ok;
}

static bool is_mapped(const McWhatis *w, uint64_t va)
{
    uint8_t byte;

    return mc_whatis_read(w, va, &byte, 1);
}

/* Read a variable of 8 bytes. */
static bool read_variable(const McWhatis *w, const char *name, uint64_t *out)
{
    GsSymbol sym;

    return w->kernel && gs_kernel_lookup(w->kernel, name, &sym) &&
           read_u64(w, sym.va, out);
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

static bool take_made(const KtBlock *b, void *opaque)
{
    Made *made = opaque;

    if (is_made(made, b)) {
        g_array_append_val(made->va, b->va);
    }
    return made->va->len < BLOCKS_MAX;
}

/* Collect blocks with @function anywhere in their allocation stack, whatever
 * the compiler inlined. */
static void find_made(const McWhatis *w, const char *function, Made *made)
{
    GsSymbol sym;

    if (gs_kernel_lookup(w->kernel, function, &sym)) {
        kt_query_begin(w->tracer);
        kt_query_alloc_pc(w->tracer, sym.va, sym.va + sym.size, take_made,
                          made);
        kt_query_end(w->tracer);
    }
}

static Made made_init(const McWhatis *w, const char *cache, uint32_t size)
{
    return (Made) { w->tracer, cache, size,
                    g_array_new(FALSE, FALSE, sizeof(uint64_t)) };
}

/* ---- stacks -------------------------------------------------------------- */

static bool put_task(const McWhatis *w, uint64_t task, GString *out)
{
    uint32_t at_pid, at_comm, pid;
    char comm[17] = "";

    if (!gs_kernel_member(w->kernel, "task_struct", "pid", &at_pid, NULL) ||
        !gs_kernel_member(w->kernel, "task_struct", "comm", &at_comm, NULL) ||
        !mc_whatis_read(w, task + at_pid, &pid, sizeof(pid)) ||
        !mc_whatis_read(w, task + at_comm, comm, 16)) {
        return false;
    }
    g_string_append(out, "stack of ");
    mc_put_word(out, comm);
    g_string_append_printf(out, " pid=%" PRIu32, GUINT32_FROM_LE(pid));
    return true;
}

bool mc_whatis_task_stack(const McWhatis *w, GString *out)
{
    g_autoptr(GArray) tasks = NULL;
    uint32_t at;
    Made made;

    if (!w->vm || !w->kernel || !w->has_block ||
        w->block.state != KT_BLOCK_ALLOCATED ||
        kt_block_len(&w->block) > STACK_MAX ||
        !gs_kernel_member(w->kernel, "task_struct", "stack", &at, NULL)) {
        return false;
    }
    made = made_init(w, "task_struct", 0);
    tasks = made.va;
    find_made(w, "copy_process", &made);
    for (unsigned i = 0; i < tasks->len; i++) {
        uint64_t task = g_array_index(tasks, uint64_t, i);
        uint64_t stack;

        if (read_u64(w, task + at, &stack) && stack == w->block.va) {
            return put_task(w, task, out);
        }
    }
    return false;
}

/* ---- percpu -------------------------------------------------------------- */

static bool put_percpu_block(const McWhatis *w, uint64_t pointer, unsigned cpu,
                             GString *out)
{
    KtBlock b;
    bool found;

    kt_query_begin(w->tracer);
    found = kt_query_find(w->tracer, pointer, &b);
    kt_query_end(w->tracer);
    if (!found || b.layer != KT_LAYER_PERCPU) {
        return false;
    }
    g_string_append_printf(
        out, "percpu of CPU %u: %s block %016" PRIx64 " +%" PRIx64, cpu,
        b.state == KT_BLOCK_FREED ? "freed" : "live", b.va, pointer - b.va);
    return true;
}

static bool put_percpu_variable(const McWhatis *w, uint64_t pointer,
                                unsigned cpu, GString *out)
{
    GsSymbol start, end;

    if (!gs_kernel_lookup(w->kernel, "__per_cpu_start", &start) ||
        !gs_kernel_lookup(w->kernel, "__per_cpu_end", &end) ||
        pointer < start.va || pointer >= end.va) {
        return false;
    }
    g_string_append_printf(out, "percpu of CPU %u: variables +%" PRIx64, cpu,
                           pointer - start.va);
    return true;
}

bool mc_whatis_percpu(const McWhatis *w, GString *out)
{
    GsSymbol offsets;

    if (!w->vm || !w->kernel ||
        !gs_kernel_lookup(w->kernel, "__per_cpu_offset", &offsets)) {
        return false;
    }
    for (unsigned cpu = 0; cpu < w->vm->n_vcpus; cpu++) {
        uint64_t offset;

        if (read_u64(w, offsets.va + 8 * cpu, &offset) && offset &&
            (put_percpu_block(w, w->va - offset, cpu, out) ||
             put_percpu_variable(w, w->va - offset, cpu, out))) {
            return true;
        }
    }
    return false;
}

/* ---- pages --------------------------------------------------------------- */

/** struct Page - the page that contains @va, and its struct page */
typedef struct Page {
    uint64_t phys;
    uint64_t page;
} Page;

/* Find the page by the direct map. Return false if the page or its struct page
 * is not mapped. */
static bool find_page(const McWhatis *w, Page *p)
{
    uint64_t word;
    uint32_t size;

    if (!w->vm || !w->kernel || !w->vm->page_offset || !w->vm->vmemmap ||
        w->va < gs_kernel_lowest(w->kernel) ||
        gs_kernel_in_image(w->kernel, w->va) ||
        !gs_kernel_type_size(w->kernel, "page", &size)) {
        return false;
    }
    p->phys = w->va - w->vm->page_offset;
    if (p->phys >> 52) {
        return false;
    }
    p->page = w->vm->vmemmap +
              (p->phys >> gs_kernel_page_shift(w->kernel)) * size;
    return read_u64(w, p->page, &word) && is_mapped(w, w->va);
}

/* Find the first page of a compound page, see cache_by() of the tracer's
 * guest.c. */
static bool find_head(const McWhatis *w, uint64_t *page)
{
    uint64_t head;
    uint32_t at;

    if ((!gs_kernel_member(w->kernel, "page", "compound_head", &at, NULL) &&
         !gs_kernel_member(w->kernel, "page", "compound_info", &at, NULL)) ||
        !read_u64(w, *page + at, &head)) {
        return false;
    }
    if (head & 1) {
        head &= ~1ull;
        *page = (-head & (-head - 1)) ? head : *page & head;
    }
    return true;
}

static bool find_cache(const McWhatis *w, uint64_t va, KtCacheInfo *cache)
{
    KtStats stats;

    kt_query_begin(w->tracer);
    kt_query_stats(w->tracer, &stats);
    kt_query_end(w->tracer);
    for (unsigned i = 1; va && i <= stats.caches && i <= UINT16_MAX; i++) {
        if (kt_tracer_cache(w->tracer, (KtCacheId) { i }, cache) &&
            cache->va == va && !cache->destroyed) {
            return true;
        }
    }
    return false;
}

/* Find the slab's cache. If the page is no slab, the value at the place of the
 * cache is no address of a known cache. */
bool mc_whatis_slab(const McWhatis *w, GString *out)
{
    KtCacheInfo cache;
    uint64_t va;
    uint32_t at;
    Page p;

    if (!find_page(w, &p) || !find_head(w, &p.page) ||
        (!gs_kernel_member(w->kernel, "slab", "slab_cache", &at, NULL) &&
         !gs_kernel_member(w->kernel, "page", "slab_cache", &at, NULL)) ||
        !read_u64(w, p.page + at, &va) || !find_cache(w, va, &cache)) {
        return false;
    }
    g_string_append(out, "slab of ");
    mc_put_word(out, cache.name);
    return true;
}

bool mc_whatis_direct_map(const McWhatis *w, GString *out)
{
    Page p;

    if (!find_page(w, &p)) {
        return false;
    }
    g_string_append_printf(out, "direct map of physical %" PRIx64, p.phys);
    return true;
}

bool mc_whatis_struct_page(const McWhatis *w, GString *out)
{
    McWhatis at = *w;
    uint32_t size;
    Page p;

    if (!w->vm || !w->kernel || !w->vm->vmemmap ||
        w->va < w->vm->vmemmap ||
        !gs_kernel_type_size(w->kernel, "page", &size) || !size) {
        return false;
    }
    at.va = w->vm->page_offset + ((w->va - w->vm->vmemmap) / size <<
                                  gs_kernel_page_shift(w->kernel));
    if (!find_page(&at, &p)) {
        return false;
    }
    g_string_append_printf(out, "struct page of physical %" PRIx64 " +%"
                           PRIx64, p.phys, w->va - p.page);
    return true;
}

/* ---- vmalloc ------------------------------------------------------------- */

/** struct Area - the members of struct vm_struct that are printed */
typedef struct Area {
    uint64_t addr, size, flags, phys, caller;
} Area;

/** struct AreaAt - offsets of these members; @bytes: size of the structure */
typedef struct AreaAt {
    uint32_t addr, size, flags, phys, caller, bytes;
} AreaAt;

static bool find_area_members(const GsKernel *k, AreaAt *at)
{
    return gs_kernel_type_size(k, "vm_struct", &at->bytes) &&
           gs_kernel_member(k, "vm_struct", "addr", &at->addr, NULL) &&
           gs_kernel_member(k, "vm_struct", "size", &at->size, NULL) &&
           gs_kernel_member(k, "vm_struct", "flags", &at->flags, NULL) &&
           gs_kernel_member(k, "vm_struct", "phys_addr", &at->phys, NULL) &&
           gs_kernel_member(k, "vm_struct", "caller", &at->caller, NULL);
}

static bool read_area(const McWhatis *w, uint64_t vm, const AreaAt *at,
                      Area *a)
{
    return read_u64(w, vm + at->addr, &a->addr) &&
           read_u64(w, vm + at->size, &a->size) &&
           read_u64(w, vm + at->flags, &a->flags) &&
           read_u64(w, vm + at->phys, &a->phys) &&
           read_u64(w, vm + at->caller, &a->caller) &&
           w->va >= a->addr && w->va - a->addr < a->size &&
           a->addr + a->size > a->addr;
}

/* Return the name of a flag of include/linux/vmalloc.h (VM_IOREMAP and so
 * on). */
static const char *area_kind(const Area *a)
{
    return a->flags & 1 ? "ioremap" : a->flags & 2 ? "vmalloc" :
           a->flags & 4 ? "vmap" : "other";
}

static void put_area(const McWhatis *w, const Area *a, GString *out)
{
    GsSymbol sym;

    g_string_append_printf(out, "%s area %016" PRIx64 "-%016" PRIx64,
                           area_kind(a), a->addr, a->addr + a->size - 1);
    if (a->flags & 1) {
        g_string_append_printf(out, " of physical %" PRIx64, a->phys);
    }
    if (gs_kernel_symbolize(w->kernel, a->caller, &sym)) {
        g_string_append(out, " by ");
        mc_put_word(out, sym.name);
        g_string_append_printf(out, "+0x%" PRIx64, a->caller - sym.va);
    }
}

/* Find the vmalloc area in the kernel's own list. An area includes its guard
 * page. If the block is known, its own line says more. */
bool mc_whatis_area(const McWhatis *w, GString *out)
{
    static const char *const makers[] = {
        "__get_vm_area_node", "pcpu_get_vm_areas",
    };
    g_autoptr(GArray) found = NULL;
    AreaAt at;
    Made made;

    if (!w->vm || !w->kernel || !find_area_members(w->kernel, &at) ||
        (w->has_block && w->block.state == KT_BLOCK_ALLOCATED)) {
        return false;
    }
    made = made_init(w, NULL, at.bytes);
    found = made.va;
    for (unsigned i = 0; i < G_N_ELEMENTS(makers); i++) {
        find_made(w, makers[i], &made);
    }
    for (unsigned i = 0; i < found->len; i++) {
        Area a;

        if (read_area(w, g_array_index(found, uint64_t, i), &at, &a)) {
            put_area(w, &a, out);
            return true;
        }
    }
    return false;
}

/* Return (owned, nullable) vmcoreinfo: lines of text "KEY=value" for tools that
 * analyse dumps (kernel/vmcore_info.c, before 6.9 crash_core.c). */
static char *read_vmcoreinfo(const McWhatis *w)
{
    g_autofree char *text = NULL;
    uint64_t va, len;

    if (!read_variable(w, "vmcoreinfo_data", &va) || !va ||
        !read_variable(w, "vmcoreinfo_size", &len) || len > INFO_MAX) {
        return NULL;
    }
    text = g_malloc0(len + 1);
    return mc_whatis_read(w, va, text, len) ? g_steal_pointer(&text) : NULL;
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
static bool space_by_vmcoreinfo(const McWhatis *w, McRange *space)
{
    g_autofree char *info = read_vmcoreinfo(w);

    if (!info || !find_number(info, "VMALLOC_START", &space->lo) ||
        !find_number(info, "VMALLOC_END", &space->hi)) {
        return false;
    }
    space->hi = (space->hi - 1) | 1;
    return true;
}

/* Read the vmalloc space from variables of x86-64. */
static bool space_by_variables(const McWhatis *w, McRange *space)
{
    return read_variable(w, "vmalloc_base", &space->lo) &&
           read_variable(w, "vmemmap_base", &space->hi) && space->hi--;
}

/* Report the vmalloc space. The images of some kernels are inside of it,
 * too. */
bool mc_whatis_vmalloc(const McWhatis *w, GString *out)
{
    McRange space;

    g_string_append(out, "vmalloc space");
    return w->kernel && !gs_kernel_in_image(w->kernel, w->va) &&
           (space_by_variables(w, &space) ||
            space_by_vmcoreinfo(w, &space)) &&
           w->va >= space.lo && w->va <= space.hi;
}

bool mc_whatis_not_mapped(const McWhatis *w, GString *out)
{
    g_string_append(out, "not mapped");
    return w->vm && w->vm->n_vcpus && !is_mapped(w, w->va) &&
           !(w->has_block && w->block.layer == KT_LAYER_PERCPU);
}
