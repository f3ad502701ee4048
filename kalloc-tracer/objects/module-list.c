/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded modules: those of the table of modules, with what the kernel's struct
 * module says, and the kernel's own list as a check. The public header is
 * api/kt-modules.h. Called on any thread; no locks.
 *
 *     modules <-> module.list <-> module.list <-> ...
 *     module.source_list <-> module_use.source_list <-> ...    who uses it
 *                              module_use.source -> struct module of the user
 *
 * All values are untrusted: a list ends at its head, after a limit of steps, or
 * where memory is unreadable.
 */
#include "kalloc-tracer/api/kt-modules.h"

#include <string.h>

#include "kalloc-tracer/layout/layout.h"
#include "kalloc-tracer/objects/objects-internal.h"

#define MODULES_MAX 8192u

/** struct AreaAt - offsets of address and size of an area in struct module;
 *  @text: it begins with code */
typedef struct AreaAt {
    const char *label;
    uint32_t base, size;
    bool text;
} AreaAt;

typedef struct ModuleLayout {
    KtLayout l;
    unsigned n_areas;
    AreaAt area[KT_MODULE_AREAS_MAX];
} ModuleLayout;

/* ---- layout -------------------------------------------------------------- */

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
    KtMember base, size;
    const char *label;
    bool text;
} layouts[] = {
    { KT_M_MODULE_CORE_BASE, KT_M_MODULE_CORE_SIZE, "core", true },
    { KT_M_MODULE_INIT_BASE, KT_M_MODULE_INIT_SIZE, "init", false },
};

static void add_area(ModuleLayout *at, const AreaAt *area)
{
    if (at->n_areas < KT_MODULE_AREAS_MAX && area->base != KT_NO_MEMBER &&
        area->size != KT_NO_MEMBER) {
        at->area[at->n_areas++] = *area;
    }
}

static void find_memory(ModuleLayout *at, const KtObjects *o)
{
    const KtLayout *l = &at->l;
    uint32_t one;

    if (!kt_layout_has(l, KT_M_MODULE_MEM) ||
        !kt_layout_has(l, KT_M_MODULE_MEM_BASE) ||
        !kt_layout_has(l, KT_M_MODULE_MEM_SIZE) ||
        !gs_kernel_type_size(o->kernel, "module_memory", &one) || !one) {
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(memory); i++) {
        uint32_t array = l->at[KT_M_MODULE_MEM];
        int64_t n;

        if (gs_kernel_enum_value(o->kernel, memory[i].enumerator, &n) &&
            n >= 0 && n < l->size[KT_M_MODULE_MEM] / one) {
            add_area(at, &(AreaAt) {
                memory[i].label,
                array + n * one + l->at[KT_M_MODULE_MEM_BASE],
                array + n * one + l->at[KT_M_MODULE_MEM_SIZE],
                memory[i].text });
        }
    }
}

static void find_areas(ModuleLayout *at, const KtObjects *o)
{
    find_memory(at, o);
    for (unsigned i = 0; i < G_N_ELEMENTS(layouts); i++) {
        add_area(at, &(AreaAt) {
            layouts[i].label, at->l.at[layouts[i].base],
            at->l.at[layouts[i].size], layouts[i].text });
    }
}

static void find_layout(ModuleLayout *at, const KtObjects *o)
{
    at->n_areas = 0;
    kt_layout_init(&at->l, o->kernel);
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

static bool number(const KtObjects *o, const ModuleLayout *at, uint64_t va,
                   KtMember m, uint64_t *out)
{
    return kt_layout_has(&at->l, m) &&
           kt_objects_number(o, va + at->l.at[m], 4, out);
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

    if (number(o, at, m->va, KT_M_MODULE_STATE, &v)) {
        m->state = v;
        m->known |= KT_MODULE_STATE;
    }
    if (number(o, at, m->va, KT_M_MODULE_REFS, &v)) {
        m->refs = (int32_t)v - 1;
        m->known |= KT_MODULE_REFS;
    }
    if (number(o, at, m->va, KT_M_MODULE_BTF_SIZE, &v)) {
        m->has_types = v;
        m->known |= KT_MODULE_TYPES;
    }
}

static void read_users(const KtObjects *o, const ModuleLayout *at,
                       KtModuleInfo *m)
{
    const KtLayout *l = &at->l;
    uint64_t head = m->va + l->at[KT_M_MODULE_SOURCES], use = head, user;

    if (!kt_layout_has(l, KT_M_MODULE_SOURCES) ||
        !kt_layout_has(l, KT_M_MODULE_NAME) ||
        !kt_layout_has_all(l, KT_M_USE_LIST, KT_M_USE_SOURCE)) {
        return;
    }
    while (kt_objects_pointer(o, use, &use) && use != head) {
        uint64_t entry = use - l->at[KT_M_USE_LIST];

        if (m->n_users == KT_MODULE_USERS_MAX ||
            !kt_objects_pointer(o, entry + l->at[KT_M_USE_SOURCE], &user) ||
            !kt_objects_text(o, user + l->at[KT_M_MODULE_NAME],
                             m->user[m->n_users], sizeof(m->user[0]))) {
            return;
        }
        m->n_users++;
    }
    m->known |= use == head ? KT_MODULE_USERS : 0;
}

static void read_module(const KtObjects *o, const ModuleLayout *at,
                        KtModuleInfo *m)
{
    if (!*m->name && kt_layout_has(&at->l, KT_M_MODULE_NAME)) {
        kt_objects_text(o, m->va + at->l.at[KT_M_MODULE_NAME], m->name,
                        sizeof(m->name));
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

    if (!kt_layout_has(&at->l, KT_M_MODULE_LIST)) {
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
        if (!reach(l, o, at, link - at->l.at[KT_M_MODULE_LIST])) {
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
