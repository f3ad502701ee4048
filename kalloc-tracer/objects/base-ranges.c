/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the kernel and its parts are, see kt-base.h: by its symbols, by its
 * variables, and by what the tracer has learned of the direct map. Owns no
 * state.
 */
#include "kalloc-tracer/api/kt-base.h"
#include "kalloc-tracer/objects/object-reader.h"

static const struct {
    const char *name, *why;
} parts[KT_BASE__COUNT] = {
#define KT_BASE(id, name, why) [KT_BASE_##id] = { name, why },
#include "kalloc-tracer/api/base-ranges.def"
};

const char *kt_base_name(KtBaseId id)
{
    return parts[id].name;
}

/* ---- by symbols ---------------------------------------------------------- */

/* @end: the symbol behind the last byte */
static bool between(const KtObjects *o, const char *start, const char *end,
                    KtBaseRange *out)
{
    GsSymbol first, behind;

    if (!gs_kernel_lookup(o->kernel, start, &first) ||
        !gs_kernel_lookup(o->kernel, end, &behind) || behind.va <= first.va) {
        return false;
    }
    *out = (KtBaseRange) { first.va, behind.va - 1 };
    return true;
}

static bool find_image(const KtObjects *o, KtBaseRange *out)
{
    uint64_t start, end;

    if (between(o, "_text", "_end", out)) {
        return true;
    }
    if (!gs_kernel_extent(o->kernel, &start, &end) || end <= start) {
        return false;
    }
    *out = (KtBaseRange) { start, end - 1 };
    return true;
}

static bool find_text(const KtObjects *o, KtBaseRange *out)
{
    return between(o, "_stext", "_etext", out);
}

static bool find_rodata(const KtObjects *o, KtBaseRange *out)
{
    return between(o, "__start_rodata", "__end_rodata", out);
}

static bool find_data(const KtObjects *o, KtBaseRange *out)
{
    return between(o, "_sdata", "_edata", out);
}

static bool find_bss(const KtObjects *o, KtBaseRange *out)
{
    return between(o, "__bss_start", "__bss_stop", out);
}

/* ---- by variables, and learned ------------------------------------------- */

/* high_memory is the address behind the last byte of RAM. */
static bool find_direct(const KtObjects *o, KtBaseRange *out)
{
    uint64_t end;

    *out = (KtBaseRange) { .start = o->vm ? o->vm->page_offset : 0 };
    if (kt_objects_variable(o, "high_memory", 8, &end) && end > out->start) {
        out->last = end - 1;
    }
    return out->start != 0;
}

static bool find_pages(const KtObjects *o, KtBaseRange *out)
{
    *out = (KtBaseRange) { .start = o->vm ? o->vm->vmemmap : 0 };
    return out->start != 0;
}

static bool find_vmalloc(const KtObjects *o, KtBaseRange *out)
{
    const KtAddress a = {
        .tracer = o->tracer, .kernel = o->kernel, .vm = o->vm,
    };

    return kt_address_vmalloc_space(&a, &out->start, &out->last);
}

bool kt_base_range(const KtObjects *o, KtBaseId id, KtBaseRange *out,
                   const char **why)
{
    static bool (*const find[])(const KtObjects *o, KtBaseRange *out) = {
        [KT_BASE_IMAGE] = find_image, [KT_BASE_TEXT] = find_text,
        [KT_BASE_RODATA] = find_rodata, [KT_BASE_DATA] = find_data,
        [KT_BASE_BSS] = find_bss, [KT_BASE_DIRECT] = find_direct,
        [KT_BASE_PAGES] = find_pages, [KT_BASE_VMALLOC] = find_vmalloc,
    };
    bool needs_vm = id >= KT_BASE_DIRECT;

    *why = needs_vm && !o->vm ? "a journal has no memory" : parts[id].why;
    *out = (KtBaseRange) { 0 };
    return o->kernel && (o->vm || !needs_vm) && find[id](o, out);
}

bool kt_base_percpu(const KtObjects *o, unsigned cpu, KtBaseRange *out)
{
    KtBaseRange link;

    if (!o->kernel ||
        !between(o, "__per_cpu_start", "__per_cpu_end", &link) ||
        !kt_objects_percpu(o, cpu, link.start, &out->start)) {
        return false;
    }
    out->last = out->start + (link.last - link.start);
    return true;
}

unsigned kt_base_n_cpus(const KtObjects *o)
{
    return kt_objects_n_cpus(o);
}

bool kt_base_slide(const KtObjects *o, uint64_t *slide)
{
    const KtAddress a = {
        .tracer = o->tracer, .kernel = o->kernel, .vm = o->vm,
    };

    if (!o->kernel) {
        return false;
    }
    *slide = gs_kernel_slide(o->kernel);
    return !gs_kernel_is_memory(o->kernel) || kt_address_slide(&a, slide);
}
