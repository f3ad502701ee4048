/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded modules: those of the table of modules, with what the kernel's struct
 * module says, and the kernel's own list as a check. The public header is
 * api/kt-module-list.h. Called on any thread; no locks.
 *
 *     modules <-> module.list <-> module.list <-> ...
 *     module.source_list <-> module_use.source_list <-> ...    who uses it
 *                              module_use.source -> struct module of the user
 *
 * All values are untrusted: a list ends at its head, after a limit of steps, or
 * where memory is unreadable.
 */
#include "kalloc-tracer/api/kt-module-list.h"

#include <string.h>

#include "kalloc-tracer/objects/object-reader.h"

#define UNKNOWN UINT32_MAX
#define MODULES_MAX 8192u

/** struct AreaAt - offsets of address and size of an area in struct module;
 *  @text: it begins with code */
typedef struct AreaAt {
    const char *label;
    uint32_t base, size;
    bool text;
} AreaAt;

/** struct ModuleLayout - offsets; UNKNOWN if the kernel does not say */
typedef struct ModuleLayout {
    uint32_t name, state, refs, list, source_list, btf_size;
    uint32_t use_list, use_source;
    unsigned n_areas;
    AreaAt area[KT_MODULE_AREAS_MAX];
} ModuleLayout;

/* ---- layout -------------------------------------------------------------- */

static uint32_t member(const KtObjects *o, const char *type, const char *name)
{
    uint32_t at;

    return gs_kernel_member(o->kernel, type, name, &at, NULL) ? at : UNKNOWN;
}

/* Areas since 6.4, by enum mod_mem_type. */
static const struct {
    const char *enumerator, *label;
    bool text;
} memory[] = {
    { "MOD_TEXT", "text", true }, { "MOD_DATA", "data", false },
    { "MOD_RODATA", "rodata", false },
    { "MOD_RO_AFTER_INIT", "ro-init", false },
    { "MOD_INIT_TEXT", "init", false }, { "MOD_INIT_DATA", "init", false },
    { "MOD_INIT_RODATA", "init", false },
};

/* Areas before 6.4. */
static const struct {
    const char *base, *size, *label;
    bool text;
} layouts[] = {
    { "core_layout.base", "core_layout.size", "core", true },
    { "init_layout.base", "init_layout.size", "init", false },
};

static void add_area(ModuleLayout *at, const AreaAt *area)
{
    if (at->n_areas < KT_MODULE_AREAS_MAX && area->base != UNKNOWN &&
        area->size != UNKNOWN) {
        at->area[at->n_areas++] = *area;
    }
}

static void find_memory(ModuleLayout *at, const KtObjects *o)
{
    uint32_t array, bytes, one, base = member(o, "module_memory", "base"),
             size = member(o, "module_memory", "size");

    if (!gs_kernel_member(o->kernel, "module", "mem", &array, &bytes) ||
        !gs_kernel_type_size(o->kernel, "module_memory", &one) || !one ||
        base == UNKNOWN || size == UNKNOWN) {
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(memory); i++) {
        int64_t n;

        if (gs_kernel_enum_value(o->kernel, memory[i].enumerator, &n) &&
            n >= 0 && n < bytes / one) {
            add_area(at, &(AreaAt) {
                memory[i].label, array + n * one + base,
                array + n * one + size, memory[i].text });
        }
    }
}

static void find_areas(ModuleLayout *at, const KtObjects *o)
{
    find_memory(at, o);
    for (unsigned i = 0; i < G_N_ELEMENTS(layouts); i++) {
        add_area(at, &(AreaAt) {
            layouts[i].label, member(o, "module", layouts[i].base),
            member(o, "module", layouts[i].size), layouts[i].text });
    }
}

static void find_layout(ModuleLayout *at, const KtObjects *o)
{
    *at = (ModuleLayout) {
        .name = member(o, "module", "name"),
        .state = member(o, "module", "state"),
        .refs = member(o, "module", "refcnt"),
        .list = member(o, "module", "list"),
        .source_list = member(o, "module", "source_list"),
        .btf_size = member(o, "module", "btf_data_size"),
        .use_list = member(o, "module_use", "source_list"),
        .use_source = member(o, "module_use", "source"),
    };
    find_areas(at, o);
}

/* ---- one module ---------------------------------------------------------- */

const char *kt_module_state(const KtModuleInfo *m)
{
    static const char *const names[] = { "Live", "Loading", "Unloading" };

    return m->known & KT_MODULE_STATE && m->state < G_N_ELEMENTS(names) ?
           names[m->state] : NULL;
}

uint64_t kt_module_size(const KtModuleInfo *m)
{
    uint64_t size = 0;

    for (unsigned i = 0; i < m->n_areas; i++) {
        size += m->area[i].size;
    }
    return size;
}

static bool number(const KtObjects *o, uint64_t va, uint32_t at, uint64_t *out)
{
    return at != UNKNOWN && kt_objects_number(o, va + at, 4, out);
}

static void read_areas(const KtObjects *o, const ModuleLayout *at,
                       KtModuleInfo *m)
{
    bool ok = at->n_areas > 0;

    for (unsigned i = 0; i < at->n_areas && ok; i++) {
        KtModuleArea area = { .label = at->area[i].label };

        ok = kt_objects_pointer(o, m->va + at->area[i].base, &area.start) &&
             kt_objects_number(o, m->va + at->area[i].size, 4, &area.size);
        if (ok && area.start && area.size) {
            m->area[m->n_areas++] = area;
            m->text = at->area[i].text ? area.start : m->text;
        }
    }
    m->known |= ok ? KT_MODULE_AREAS : 0;
}

/* A module that is loaded has one reference more than others have. */
static void read_numbers(const KtObjects *o, const ModuleLayout *at,
                         KtModuleInfo *m)
{
    uint64_t v;

    if (number(o, m->va, at->state, &v)) {
        m->state = v;
        m->known |= KT_MODULE_STATE;
    }
    if (number(o, m->va, at->refs, &v)) {
        m->refs = (int32_t)v - 1;
        m->known |= KT_MODULE_REFS;
    }
    if (number(o, m->va, at->btf_size, &v)) {
        m->has_types = v;
        m->known |= KT_MODULE_TYPES;
    }
}

static void read_users(const KtObjects *o, const ModuleLayout *at,
                       KtModuleInfo *m)
{
    uint64_t head = m->va + at->source_list, use = head, user;

    if (at->source_list == UNKNOWN || at->use_list == UNKNOWN ||
        at->use_source == UNKNOWN || at->name == UNKNOWN) {
        return;
    }
    while (kt_objects_pointer(o, use, &use) && use != head) {
        uint64_t entry = use - at->use_list;

        if (m->n_users == KT_MODULE_USERS_MAX ||
            !kt_objects_pointer(o, entry + at->use_source, &user) ||
            !kt_objects_text(o, user + at->name, m->user[m->n_users],
                             sizeof(m->user[0]))) {
            return;
        }
        m->n_users++;
    }
    m->known |= use == head ? KT_MODULE_USERS : 0;
}

static void read_module(const KtObjects *o, const ModuleLayout *at,
                        KtModuleInfo *m)
{
    if (!*m->name && at->name != UNKNOWN) {
        kt_objects_text(o, m->va + at->name, m->name, sizeof(m->name));
    }
    read_numbers(o, at, m);
    read_areas(o, at, m);
    read_users(o, at, m);
}

/* ---- the table ----------------------------------------------------------- */

/* BPF programs are in the table as modules of this name. */
static bool is_module(const GsModule *m)
{
    return m->live && strcmp(m->name, "bpf");
}

static void add_tabled(KtModuleList *l, const KtObjects *o,
                       const ModuleLayout *at)
{
    GsModule m;

    for (unsigned i = 0; l->module->len < MODULES_MAX &&
         gs_kernel_nth_module(o->kernel, i, &m); i++) {
        KtModuleInfo info = { .va = m.va, .in_table = true };

        if (is_module(&m)) {
            g_strlcpy(info.name, m.name, sizeof(info.name));
            read_module(o, at, &info);
            g_array_append_val(l->module, info);
        }
    }
}

/* ---- the kernel's list --------------------------------------------------- */

static KtModuleInfo *module_at(KtModuleList *l, uint64_t va)
{
    for (unsigned i = 0; i < l->module->len; i++) {
        KtModuleInfo *m = &g_array_index(l->module, KtModuleInfo, i);

        if (m->va == va) {
            return m;
        }
    }
    return NULL;
}

/* Note that the list has a module. False if it had it before. */
static bool reach(KtModuleList *l, const KtObjects *o, const ModuleLayout *at,
                  uint64_t va)
{
    KtModuleInfo *m = module_at(l, va);
    KtModuleInfo new = { .va = va, .in_list = true };
    bool again = m && m->in_list;

    if (m) {
        m->in_list = true;
        return !again;
    }
    read_module(o, at, &new);
    g_array_append_val(l->module, new);
    return true;
}

/* Return why the list was not walked to its end, NULL if it was. */
static const char *walk_list(KtModuleList *l, const KtObjects *o,
                             const ModuleLayout *at)
{
    GsSymbol head;
    uint64_t link;

    if (at->list == UNKNOWN) {
        return "the kernel has no types";
    }
    if (!gs_kernel_lookup(o->kernel, "modules", &head)) {
        return "the variable modules has no symbol (CONFIG_KALLSYMS_ALL)";
    }
    link = head.va;
    for (unsigned i = 0; i < MODULES_MAX; i++) {
        if (!kt_objects_pointer(o, link, &link) || !link) {
            return "it leads to unreadable memory";
        }
        if (link == head.va) {
            return NULL;
        }
        if (!reach(l, o, at, link - at->list)) {
            return "it leads back into itself";
        }
    }
    return "it has no end";
}

/* ---- all ----------------------------------------------------------------- */

KtModuleList *kt_module_list_new(const KtObjects *o)
{
    KtModuleList *l = g_new0(KtModuleList, 1);
    ModuleLayout at;

    l->module = g_array_new(FALSE, FALSE, sizeof(KtModuleInfo));
    if (!o->kernel) {
        l->why_no_list = "the kernel is not known";
        return l;
    }
    find_layout(&at, o);
    add_tabled(l, o, &at);
    l->why_no_list = o->vm ? walk_list(l, o, &at) :
                             "it needs the memory of a VM";
    return l;
}

void kt_module_list_free(KtModuleList *l)
{
    if (l) {
        g_array_unref(l->module);
        g_free(l);
    }
}
