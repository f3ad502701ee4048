/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka whatis: print what is known about an address in one line.
 *
 * Called through mc_run(). The sources are a table, most specific first; each
 * source that knows the address appends its fact and returns true. No source
 * guesses. kalloc-tracer reads the guest's memory (kt-objects.h).
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

/* Most former modules of an address that a line names. */
#define MOST_FORMER 8

/* ---- blocks -------------------------------------------------------------- */

static void put_cache(const KtAddress *w, KtCacheId id, GString *out)
{
    KtCacheInfo cache;

    if (id.v && kt_tracer_cache(w->o.tracer, id, &cache) && *cache.name) {
        g_string_append(out, " of ");
        mc_put_word(out, cache.name);
    }
}

/* What became of a block, in a word. */
static const char *state_word(const KtBlock *b)
{
    return b->removed ? "removed" :
           b->state == KT_BLOCK_FREED ? "freed" : "live";
}

static void put_block(const KtAddress *w, GString *out)
{
    const KtBlock *b = &w->block;

    g_string_append_printf(out,
                           "%s block %016" PRIx64 "-%016" PRIx64 " +%" PRIx64
                           " (%" PRIx64 "/%" PRIx64 ") %s",
                           state_word(b), b->va,
                           b->va + b->requested - 1, w->va - b->va,
                           b->requested, b->actual, kt_layer_name(b->layer));
    put_cache(w, b->cache, out);
    g_string_append_printf(out, " alloc@%" PRIu64 "us", b->alloc_us);
    if (b->state == KT_BLOCK_FREED) {
        g_string_append_printf(out, " %s@%" PRIu64 "us", b->removed ?
                               "removed" : "free", b->free_us);
    }
}

static bool from_block(const KtAddress *w, GString *out)
{
    if (w->has_block) {
        put_block(w, out);
    }
    return w->has_block;
}

/* The name of the live object in the block, if its type is sure. */
static bool from_name(const KtAddress *w, GString *out)
{
    g_autoptr(GArray) types = NULL;
    char name[KT_OBJECT_NAME_MAX + 1];
    const KtBlockType *type;

    if (!w->has_block || w->block.state != KT_BLOCK_ALLOCATED) {
        return false;
    }
    types = kt_block_types(&w->o, &w->block);
    type = types->len ? &g_array_index(types, KtBlockType, 0) : NULL;
    if (!type || !type->sure ||
        !kt_object_name(&w->o, type->name, w->block.va, name)) {
        return false;
    }
    mc_put_word(out, type->name);
    g_string_append_c(out, ' ');
    gs_value_print_text(out, name, strlen(name) + 1);
    return true;
}

static bool count_past(const KtBlock *b, void *opaque)
{
    ++*(uint64_t *)opaque;
    return true;
}

static bool from_past(const KtAddress *w, GString *out)
{
    uint64_t n = 0;

    kt_query_begin(w->o.tracer);
    kt_query_history(w->o.tracer, w->va, count_past, &n);
    kt_query_end(w->o.tracer);
    g_string_append_printf(out, "%" PRIu64 " past %s", n,
                           n == 1 ? "life" : "lives");
    return n != 0;
}

/* ---- kernel and modules -------------------------------------------------- */

static void put_symbol(const KtAddress *w, const GsSymbol *sym, GString *out)
{
    g_string_append(out, gs_kernel_is_code(w->o.kernel, sym) ? "text " :
                                                             "data ");
    mc_put_word(out, sym->name);
    g_string_append_printf(out, "+0x%" PRIx64, w->va - sym->va);
}

/** struct Unload - an unload of module @name. @skip: newer ones of this name
 *  that are still to be passed over; @found: (out) @report is that unload */
typedef struct Unload {
    const char *name;
    unsigned n, skip;
    bool found;
    KtModuleReport report;
} Unload;

static bool count_unload(const KtModuleReport *r, void *opaque)
{
    Unload *u = opaque;

    u->n += !strcmp(r->name, u->name);
    return true;
}

/* Reports come in order, the oldest first. */
static bool find_unload(const KtModuleReport *r, void *opaque)
{
    Unload *u = opaque;

    if (!strcmp(r->name, u->name) && u->n-- == u->skip + 1) {
        u->found = true;
        u->report = *r;
    }
    return !u->found;
}

/* Append when a module was loaded and unloaded. @newer: newer unloads of this
 * name that were told of. */
static void put_stay(const KtAddress *w, const char *name, unsigned newer,
                     GString *out)
{
    Unload u = { .name = name, .skip = newer };

    kt_query_begin(w->o.tracer);
    kt_query_modules(w->o.tracer, count_unload, &u);
    kt_query_modules(w->o.tracer, find_unload, &u);
    kt_query_end(w->o.tracer);
    if (u.found && u.report.loaded_us) {
        g_string_append_printf(out, " @%" PRIu64 "us", u.report.loaded_us);
    }
    if (u.found) {
        g_string_append_printf(out, " to @%" PRIu64 "us", u.report.us);
    }
}

static bool from_module(const KtAddress *w, GString *out)
{
    GsModule mod;
    GsSymbol sym;

    if (!w->o.kernel || !gs_kernel_module_at(w->o.kernel, w->va, &mod)) {
        return false;
    }
    g_string_append(out, mod.live ? "module " : "unloaded module ");
    mc_put_word(out, mod.name);
    if (!mod.live) {
        put_stay(w, mod.name, 0, out);
    }
    if (gs_kernel_symbolize(w->o.kernel, w->va, &sym)) {
        g_string_append_c(out, ' ');
        put_symbol(w, &sym, out);
    }
    return true;
}

/* Modules that lay there before the one that does, or did last; the newest
 * first. */
static bool from_former_modules(const KtAddress *w, GString *out)
{
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);
    const GsKernel *k = w->o.kernel;
    uint32_t load = k ? gs_kernel_load_at(k, w->va + 1, GS_ERA_NOW) : 0;
    GsModule last;
    GsSymbol sym;

    if (load && gs_kernel_module_at(k, w->va, &last) && !last.live) {
        g_hash_table_insert(told, (char *)last.name, GUINT_TO_POINTER(1));
    }
    for (unsigned i = 0; load && i < MOST_FORMER; i++) {
        unsigned newer;

        load = gs_kernel_load_at(k, w->va + 1, load - 1);
        if (!load || !gs_kernel_symbolize_at(k, w->va, load, &sym) ||
            !sym.module) {
            break;
        }
        newer = GPOINTER_TO_UINT(g_hash_table_lookup(told, sym.module));
        g_string_append(out, i ? ", " : "before it module ");
        mc_put_word(out, sym.module);
        put_stay(w, sym.module, newer, out);
        g_hash_table_insert(told, (char *)sym.module,
                            GUINT_TO_POINTER(newer + 1));
        g_string_append_c(out, ' ');
        put_symbol(w, &sym, out);
    }
    return out->len;
}

static bool from_kernel(const KtAddress *w, GString *out)
{
    GsModule mod;
    GsSymbol sym;

    if (!w->o.kernel || gs_kernel_module_at(w->o.kernel, w->va, &mod)) {
        return false;
    }
    if (gs_kernel_symbolize(w->o.kernel, w->va, &sym)) {
        g_string_append(out, "kernel ");
        put_symbol(w, &sym, out);
        return true;
    }
    g_string_append(out, "kernel image");
    return gs_kernel_in_image(w->o.kernel, w->va);
}

/* ---- the address itself -------------------------------------------------- */

/* User addresses have fewer bits if the kernel does not use all levels of page
 * tables that the CPU has. riscv64's variables have one byte. */
static const struct {
    const char *unused;
    uint8_t bytes, bits;
} narrower[] = {
    { "__pgtable_l5_enabled", 4, 47 },
    { "pgtable_l4_enabled", 1, 38 },
    { "pgtable_l5_enabled", 1, 47 },
};

/* Return the number of bits of a user address, at most what the CPU can
 * have. */
static unsigned user_bits(const KtAddress *w)
{
    GsSymbol sym;

    for (unsigned i = 0; i < G_N_ELEMENTS(narrower); i++) {
        uint32_t on = 0;

        if (gs_kernel_lookup(w->o.kernel, narrower[i].unused, &sym) &&
            kt_objects_read(&w->o, sym.va, &on, narrower[i].bytes) && !on) {
            return narrower[i].bits;
        }
    }
    return gs_kernel_arch(w->o.kernel)->user_bits;
}

static bool is_canonical(const KtAddress *w)
{
    int64_t top = (int64_t)w->va >> user_bits(w);

    return top == 0 || top == -1;
}

/* Return false for pointers to percpu memory: they are no addresses, and can
 * have the value of any address. */
static bool is_pointer(const KtAddress *w)
{
    return w->has_block && w->block.layer == KT_LAYER_PERCPU;
}

/* Kernels print numbers of frames and physical addresses, too: say what they
 * would be. */
static void put_if_frame(const KtAddress *w, GString *out)
{
    uint64_t va;

    if (kt_objects_frame(&w->o, w->va, &va)) {
        g_string_append_printf(out, "; a frame is pfn:%" PRIx64, w->va);
    }
    if (kt_objects_physical(&w->o, w->va, &va)) {
        g_string_append_printf(out, "; physical memory is phys:%" PRIx64,
                               w->va);
    }
}

static bool from_user(const KtAddress *w, GString *out)
{
    g_string_append(out, "user address");
    put_if_frame(w, out);
    return w->o.kernel && w->va < gs_kernel_lowest(w->o.kernel) &&
           !is_pointer(w) && is_canonical(w);
}

static bool from_no_address(const KtAddress *w, GString *out)
{
    g_string_append(out, "not canonical: no address");
    return w->o.kernel && !gs_kernel_is_plain(w->o.kernel) && !is_pointer(w) &&
           !is_canonical(w);
}

/* ---- the guest's memory -------------------------------------------------- */

static bool from_task_stack(const KtAddress *w, GString *out)
{
    KtTaskName task;

    if (!kt_address_task_stack(w, &task)) {
        return false;
    }
    g_string_append(out, "stack of ");
    mc_put_word(out, task.comm);
    g_string_append_printf(out, " pid=%" PRIu32, task.pid);
    return true;
}

static bool from_dead_stack(const KtAddress *w, GString *out)
{
    g_string_append(out, w->has_block && w->block.state == KT_BLOCK_FREED ?
                    "stack of a task that ended" :
                    "stack of a task that ended, kept for the next task");
    return kt_address_dead_stack(w);
}

static bool from_devres(const KtAddress *w, GString *out)
{
    KtDevres d;

    if (!kt_address_devres(w, &d)) {
        return false;
    }
    g_string_append(out, "devres of ");
    mc_put_word(out, d.name);
    g_string_append_printf(out, " device=%016" PRIx64 " ", d.device);
    if (w->va < d.data) {
        g_string_append_printf(out, "header, data at %016" PRIx64, d.data);
    } else {
        g_string_append_printf(out, "data +%" PRIx64, w->va - d.data);
    }
    return true;
}

static bool from_percpu(const KtAddress *w, GString *out)
{
    KtPercpuPlace p;

    if (!kt_address_percpu(w, &p)) {
        return false;
    }
    g_string_append_printf(out, "percpu of CPU %u: ", p.cpu);
    if (p.in_block) {
        g_string_append_printf(
            out, "%s block %016" PRIx64, state_word(&p.block), p.block.va);
    } else {
        g_string_append(out, "variables");
    }
    g_string_append_printf(out, " +%" PRIx64, p.offset);
    return true;
}

static bool from_slab(const KtAddress *w, GString *out)
{
    KtCacheInfo cache;

    if (!kt_address_slab(w, &cache)) {
        return false;
    }
    g_string_append(out, "slab of ");
    mc_put_word(out, cache.name);
    return true;
}

static bool from_direct_map(const KtAddress *w, GString *out)
{
    uint64_t phys = 0;
    bool known = kt_address_direct_map(w, &phys);

    g_string_append_printf(out, "direct map of physical %" PRIx64, phys);
    return known;
}

static bool from_struct_page(const KtAddress *w, GString *out)
{
    uint64_t phys = 0, offset = 0;
    bool known = kt_address_struct_page(w, &phys, &offset);

    g_string_append_printf(out, "struct page of physical %" PRIx64 " +%"
                           PRIx64, phys, offset);
    return known;
}

/* Return the name of a flag of include/linux/vmalloc.h (VM_IOREMAP and so on,
 * VM_DMA_COHERENT since 5.4). */
static const char *area_kind(const KtVmArea *area)
{
    return area->flags & 1 ? "ioremap" : area->flags & 2 ? "vmalloc" :
           area->flags & 4 ? "vmap" : area->flags & 16 ? "dma-coherent" :
           "other";
}

/* The area's caller is a frame of the stack that allocated it. */
static uint32_t era_of_area(const KtAddress *w, const KtVmArea *area)
{
    return w->has_block && w->block.va == area->va ?
           kt_tracer_stack_era(w->o.tracer, w->block.alloc_stack).all :
           GS_ERA_NOW;
}

static bool from_area(const KtAddress *w, GString *out)
{
    KtVmArea area;
    GsSymbol sym;

    if (!kt_address_area(w, &area)) {
        return false;
    }
    g_string_append_printf(out, "%s area %016" PRIx64 "-%016" PRIx64,
                           area_kind(&area), area.va, area.va + area.size - 1);
    if (area.flags & 1) {
        g_string_append_printf(out, " of physical %" PRIx64, area.phys);
    }
    if (gs_kernel_symbolize_at(w->o.kernel, area.caller, era_of_area(w, &area),
                               &sym)) {
        g_string_append(out, " by ");
        mc_put_word(out, sym.name);
        g_string_append_printf(out, "+0x%" PRIx64, area.caller - sym.va);
    }
    return true;
}

/* The page that is mapped there, and the block that contains it. */
static bool from_mapping(const KtAddress *w, GString *out)
{
    KtAddress page = *w;
    KtMapping m;

    if (!kt_address_mapping(w, &m)) {
        return false;
    }
    g_string_append_printf(out, "maps physical %" PRIx64, m.phys);
    page.va = m.va;
    kt_query_begin(w->o.tracer);
    page.has_block = m.va && kt_query_find(w->o.tracer, m.va, &page.block);
    kt_query_end(w->o.tracer);
    if (page.has_block) {
        g_string_append(out, ", ");
        put_block(&page, out);
    }
    return true;
}

static bool from_vmalloc(const KtAddress *w, GString *out)
{
    g_string_append(out, "vmalloc space");
    return kt_address_in_vmalloc(w);
}

static bool from_not_mapped(const KtAddress *w, GString *out)
{
    char byte;

    g_string_append(out, "not mapped");
    return w->o.vm && w->o.vm->n_vcpus &&
           !kt_objects_read(&w->o, w->va, &byte, 1) &&
           !(w->has_block && w->block.layer == KT_LAYER_PERCPU);
}

/* ---- kmem_caches --------------------------------------------------------- */

static bool append_alias(const KtCacheAlias *alias, void *opaque)
{
    GString *out = opaque;

    g_string_append_printf(out, "%s%s", strchr(out->str, ',') ? ", " :
                           ", also ", alias->name);
    return true;
}

/* Names that were asked for when the kernel merged caches. */
static bool from_kmem_cache(const KtAddress *w, GString *out)
{
    KtCacheInfo info;

    for (unsigned i = 1; i <= UINT16_MAX; i++) {
        if (kt_tracer_cache(w->o.tracer, (KtCacheId) { i }, &info) &&
            info.va == w->va && !info.destroyed) {
            g_string_append_printf(out, "kmem_cache %s", info.name);
            kt_cache_aliases(w->o.tracer, w->va, append_alias, out);
            return true;
        }
    }
    return false;
}

/* ---- all ----------------------------------------------------------------- */

/* The sources: the key, and if the fact is also printed of each pointer in a
 * struct; such a fact is found without a search. */
#define SOURCES \
    SOURCE(block, false, "the block that contains it") \
    SOURCE(name, false, "type and name of the object in the block") \
    SOURCE(past, false, "number of past lives") \
    SOURCE(kmem_cache, false, "a kmem_cache") \
    SOURCE(task_stack, false, "the task whose stack contains it") \
    SOURCE(dead_stack, false, "stack of a task that ended") \
    SOURCE(devres, false, "memory that belongs to a device") \
    SOURCE(percpu, true, "per-CPU memory") \
    SOURCE(slab, false, "the slab that contains it") \
    SOURCE(module, true, "code or data of a module") \
    SOURCE(former_modules, false, "unloaded modules that lay there before") \
    SOURCE(kernel, true, "code or data of the kernel") \
    SOURCE(struct_page, true, "a struct page") \
    SOURCE(direct_map, false, "the direct map") \
    SOURCE(area, false, "an area of vmalloc()") \
    SOURCE(mapping, false, "the page that is mapped there, and its block") \
    SOURCE(vmalloc, false, "the space of vmalloc()") \
    SOURCE(user, false, "an address of user space") \
    SOURCE(no_address, false, "no address") \
    SOURCE(not_mapped, false, "not mapped")

static const struct {
    bool (*find)(const KtAddress *w, GString *out);
    bool pointers;
} sources[] = {
#define SOURCE(name_, pointers_, help_) { from_##name_, pointers_ },
    SOURCES
#undef SOURCE
};

bool mc_whatis_pointer(const KtAddress *w, GString *to)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(sources); i++) {
        g_autoptr(GString) text = g_string_new(NULL);

        if (sources[i].pointers && sources[i].find(w, text)) {
            g_string_append(to, text->str);
            return true;
        }
    }
    return false;
}

/* ---- the row ------------------------------------------------------------- */

/** struct Row - what each source knows; (owned, nullable) */
typedef struct Row {
    uint64_t va;
#define SOURCE(name_, pointers_, help_) char *name_;
    SOURCES
#undef SOURCE
} Row;

static const McColumn columns[] = {
    MC_COLUMN(Row, va, ADDRESS, NULL, "the address"),
#define SOURCE(name_, pointers_, help_) \
    MC_COLUMN(Row, name_, TEXT, NULL, help_, .flags = MC_OMIT),
    SOURCES
#undef SOURCE
    MC_END
};
static const McObject object = {
    "whatis", "ka whatis: one text for each kind of fact that is known",
    { columns },
};

MC_OBJECTS(mc_whatis_objects, &object);

bool mc_cmd_whatis(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    KtAddress w = {
        .va = args->va.lo,
        .o = { out->ctx->tracer, mc_symbols(out->ctx), out->ctx->vm },
    };
    g_autoptr(GString) line = g_string_new(NULL);
    Row row = { .va = w.va };
    char **fact = &row.block;

    w.has_block = mc_find_block(out, w.va, &w.block);
    mc_put_hex(line, w.va, 16);
    for (unsigned i = 0; i < G_N_ELEMENTS(sources); i++) {
        g_autoptr(GString) text = g_string_new(NULL);

        if (sources[i].find(&w, text)) {
            fact[i] = g_strdup(text->str);
            g_string_append_printf(line, "%s%s", texts->len ? "; " : ": ",
                                   fact[i]);
            g_ptr_array_add(texts, fact[i]);
        }
    }
    g_string_append(line, texts->len ? "" : ": unknown");
    mc_print_line(out, &object, &row, line->str);
    return true;
}
