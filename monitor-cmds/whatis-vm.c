/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka whatis: sources that look into the guest's memory.
 *
 * Where things are is told by the kernel's BTF and symbols. What is read is
 * the guest's, and only compared with what the tracer knows itself: caches
 * that it saw, blocks that are tasks. The guest may run meanwhile.
 */
#include "whatis.h"

#include "commands.h"

#include <string.h>

/* Tasks looked at, most; and the largest stack. */
#define TASKS_MAX 65536
#define STACK_MAX 0x10000ull

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

/* The value of a variable of 8 bytes. */
static bool read_variable(const McWhatis *w, const char *name, uint64_t *out)
{
    GsSymbol sym;

    return w->kernel && gs_kernel_lookup(w->kernel, name, &sym) &&
           read_u64(w, sym.va, out);
}

/* ---- stacks -------------------------------------------------------------- */

/** struct Tasks - addresses of live blocks of the cache @cache */
typedef struct Tasks {
    KtTracer *t;
    GArray *va;
} Tasks;

static bool take_task(const KtBlock *b, void *opaque)
{
    Tasks *tasks = opaque;
    KtCacheInfo cache;

    if (b->state == KT_STATE_ALLOCATED &&
        kt_tracer_cache(tasks->t, b->cache, &cache) &&
        !strcmp(cache.name, "task_struct")) {
        g_array_append_val(tasks->va, b->va);
    }
    return tasks->va->len < TASKS_MAX;
}

/* Tasks are made by copy_process(), whatever of it the compiler put where. */
static GArray *find_tasks(const McWhatis *w)
{
    Tasks tasks = { w->tracer, g_array_new(FALSE, FALSE, sizeof(uint64_t)) };
    GsSymbol sym;

    if (gs_kernel_lookup(w->kernel, "copy_process", &sym)) {
        kt_query_begin(w->tracer);
        kt_query_alloc_pc(w->tracer, sym.va, sym.va + sym.size, take_task,
                          &tasks);
        kt_query_end(w->tracer);
    }
    return tasks.va;
}

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

    if (!w->vm || !w->kernel || !w->has_block ||
        w->block.state != KT_STATE_ALLOCATED ||
        kt_block_len(&w->block) > STACK_MAX ||
        !gs_kernel_member(w->kernel, "task_struct", "stack", &at, NULL)) {
        return false;
    }
    tasks = find_tasks(w);
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
    g_string_append_printf(out, "percpu of CPU %u: %s block %016" PRIx64
                           " +%" PRIx64, cpu,
                           b.state == KT_STATE_FREED ? "freed" : "live", b.va,
                           pointer - b.va);
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

/** struct Page - the page that @va is in, and its struct page */
typedef struct Page {
    uint64_t phys;
    uint64_t page;
} Page;

/* By the direct map: the page and its struct page have to be there. */
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

/* Its first page, where it is one of several: see cache_by() of the tracer's
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

/* What stands in the place of the cache in a page that is no slab is no
 * address of a cache. */
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

/* Where it lies x86-64 keeps in variables; elsewhere only blocks tell. */
bool mc_whatis_vmalloc(const McWhatis *w, GString *out)
{
    uint64_t start, end;

    g_string_append(out, "vmalloc space");
    return read_variable(w, "vmalloc_base", &start) &&
           read_variable(w, "vmemmap_base", &end) &&
           w->va >= start && w->va < end;
}

bool mc_whatis_not_mapped(const McWhatis *w, GString *out)
{
    g_string_append(out, "not mapped");
    return w->vm && w->vm->n_vcpus && !is_mapped(w, w->va) &&
           !(w->has_block && w->block.layer == KT_LAYER_PERCPU);
}
