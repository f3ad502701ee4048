/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded modules, and reports of unloaded ones: see module-leaks.h.
 *
 * A block belongs to a module if its allocation stack has a return address in
 * the module. Areas of modules are used again: the area of the init code right
 * after the load, the others after the unload. So each area has the time span
 * in which it was the module's, and the time of the allocation decides:
 *
 *     area ffffffffc0000000   |-- ext4 init --|-------- nfs text --------|
 *                             us 100          us 250                     us 900
 *
 *     A block that was allocated at us 180 with this area in its stack is
 *     ext4's.
 *
 * Blocks are left out if code between the module's frame and the allocator
 * allocates for itself (not-module-code.def), for example an interrupt. So are
 * the pages of a layer above, such as slab and vmalloc: it has a block for
 * them, which is compared instead.
 */
#include "kalloc-tracer/modules/module-leaks.h"

#include <string.h>

#define MAX_LOADED 8192
#define MAX_REPORTS 256
#define MAX_LEAKS (1u << 18)            /* of all reports */
#define MAX_FREES 256                   /* of a report */
#define MAX_OTHER_CODE 64

/* An area that was the module's after @since, and up to @until. */
typedef struct Span {
    GsModuleArea at;
    uint64_t since, until;
} Span;

/**
 * struct KtModule - a loaded module, or the description in a module event
 * @us: time of the load; 0 if it was loaded before ka could see it
 * @other_code: rows of not-module-code.def as addresses of this kernel; only
 *              in the description of an unload
 */
struct KtModule {
    uint64_t va;
    char name[64];
    uint64_t us;
    unsigned n;
    Span span[GS_MODULE_AREAS_MAX];
    unsigned n_other_code;
    GsModuleArea other_code[MAX_OTHER_CODE];
};

/*
 * @loaded: KtModule*, without an order
 * @reports: KtReport*, oldest first
 */
struct KtModules {
    GPtrArray *loaded;
    GPtrArray *reports;
    uint64_t n_leaks;
    uint64_t last_id;
    KtBudget *budget;
};

/* ---- life --------------------------------------------------------------- */

static uint64_t report_bytes(const KtReport *r)
{
    return r->leaks->len * sizeof(KtUnfreed);
}

void kt_module_free(KtModule *mod)
{
    g_free(mod);
}

static void report_free(gpointer p)
{
    KtReport *r = p;

    g_array_unref(r->leaks);
    g_array_unref(r->errors);
    g_free(r);
}

static void *modules_new(KtBudget *budget)
{
    KtModules *m = g_new0(KtModules, 1);

    m->loaded = g_ptr_array_new_with_free_func(g_free);
    m->reports = g_ptr_array_new_with_free_func(report_free);
    m->budget = budget;
    return m;
}

static void drop_report(KtModules *m, guint i)
{
    const KtReport *r = m->reports->pdata[i];

    kt_budget_release(m->budget, KT_MEM_ERRORS, report_bytes(r));
    m->n_leaks -= r->leaks->len;
    g_ptr_array_remove_index(m->reports, i);
}

static void drop_reports(KtModules *m)
{
    while (m->reports->len) {
        drop_report(m, m->reports->len - 1);
    }
}

static void modules_free(void *part)
{
    KtModules *m = part;

    drop_reports(m);
    g_ptr_array_unref(m->loaded);
    g_ptr_array_unref(m->reports);
    g_free(m);
}

static void modules_reset(void *part, KtBootEnd why)
{
    KtModules *m = part;

    drop_reports(m);
    if (why != KT_BOOT_CLEAR) {
        g_ptr_array_set_size(m->loaded, 0);
    }
}

const KtBootPart kt_modules_part = {
    .name = "modules",
    .new = modules_new,
    .free = modules_free,
    .reset = modules_reset,
};

/* ---- descriptions ------------------------------------------------------- */

static const struct {
    const char *start, *end;
} other_code[] = {
#define KT_NOT_MODULE_CODE(start, end) { start, end },
#include "kalloc-tracer/modules/not-module-code.def"
};
G_STATIC_ASSERT(G_N_ELEMENTS(other_code) <= MAX_OTHER_CODE);

static void find_other_code(KtModule *note, const GsKernel *k)
{
    GsSymbol from, to;

    for (unsigned i = 0; i < G_N_ELEMENTS(other_code); i++) {
        if (!gs_kernel_lookup(k, other_code[i].start, &from)) {
            continue;
        }
        to = from;
        if (other_code[i].end &&
            !gs_kernel_lookup(k, other_code[i].end, &to)) {
            continue;
        }
        note->other_code[note->n_other_code++] = (GsModuleArea) {
            from.va, other_code[i].end ? to.va : from.va + from.size };
    }
}

/* BPF programs are no modules here: they allocate for maps, which live longer
 * than the program. */
static bool is_module(const GsModule *mod)
{
    return strcmp(mod->name, "bpf") != 0;
}

KtModule *kt_modules_describe(const GsKernel *k, uint64_t module_va,
                              bool gone)
{
    GsModule mod;
    KtModule *note;

    if (!gs_kernel_module(k, module_va, &mod) || !is_module(&mod)) {
        return NULL;
    }
    note = g_new0(KtModule, 1);
    note->va = module_va;
    g_strlcpy(note->name, mod.name, sizeof(note->name));
    for (unsigned i = 0; i < mod.n; i++) {
        note->span[note->n++] = (Span) { mod.area[i], 0, UINT64_MAX };
    }
    if (gone) {
        find_other_code(note, k);
    }
    return note;
}

/* ---- loading ------------------------------------------------------------ */

static guint find_loaded(const KtModules *m, uint64_t va)
{
    guint i = 0;

    while (i < m->loaded->len && ((KtModule *)m->loaded->pdata[i])->va != va) {
        i++;
    }
    return i;
}

/* Areas of @by that another module had before (init code, for example) were
 * that module's until now. */
static void end_spans(KtModules *m, const KtModule *by)
{
    for (guint i = 0; i < m->loaded->len; i++) {
        KtModule *mod = m->loaded->pdata[i];

        for (unsigned j = 0; j < mod->n * by->n; j++) {
            Span *s = &mod->span[j / by->n];
            const GsModuleArea *a = &by->span[j % by->n].at;

            if (s->at.start < a->end && a->start < s->at.end) {
                s->until = MIN(s->until, by->us);
            }
        }
    }
}

/* Modules that came with a snapshot do not overlap each other, and the time of
 * their load is not known. */
static void load(KtModules *m, KtModule *note, bool inherited, uint64_t now_us)
{
    guint i = find_loaded(m, note->va);

    if (i < m->loaded->len) {
        g_ptr_array_remove_index_fast(m->loaded, i);
    }
    note->us = inherited ? 0 : now_us;
    for (unsigned j = 0; j < note->n; j++) {
        note->span[j].since = note->us;
    }
    if (!inherited) {
        end_spans(m, note);
    }
    if (m->loaded->len < MAX_LOADED) {
        g_ptr_array_add(m->loaded, note);
    } else {
        kt_module_free(note);
    }
}

/* ---- unloading ---------------------------------------------------------- */

static bool in_area(const GsModuleArea *a, uint64_t pc)
{
    return pc >= a->start && pc < a->end;
}

/* A return address may be the first byte after the area, if the call is its
 * last instruction: so compare the byte before. */
static bool in_span(const KtModule *mod, uint64_t pc, uint64_t us)
{
    for (unsigned i = 0; i < mod->n; i++) {
        const Span *s = &mod->span[i];

        if (in_area(&s->at, pc - 1) && us > s->since && us <= s->until) {
            return true;
        }
    }
    return false;
}

static bool is_other(const KtModule *mod, uint64_t pc)
{
    for (unsigned i = 0; i < mod->n_other_code; i++) {
        if (in_area(&mod->other_code[i], pc - 1)) {
            return true;
        }
    }
    return false;
}

/**
 * struct Check - the search for blocks of a module that is unloaded
 * @around: from the first to the last byte of all areas of @mod
 * @report: the result
 * @unseen: as in KtModulesNow
 */
typedef struct Check {
    KtModules *m;
    const KtModule *mod;
    GsModuleArea around;
    const KtModel *model;
    const KtDepot *stacks;
    KtReport *report;
    bool unseen;
} Check;

/* Return true if the call at @us with this stack was made by the module. */
static bool is_by_module(const Check *c, uint32_t stack, uint64_t us)
{
    unsigned n = 0;
    uint64_t stop;
    const uint64_t *pc = stack ? kt_depot_get(c->stacks, stack, &n, &stop)
                               : NULL;

    for (unsigned i = 0; pc && i < n; i++) {
        if (in_span(c->mod, pc[i], us)) {
            return true;
        }
        if (is_other(c->mod, pc[i])) {
            return false;
        }
    }
    return false;
}

static void set_around(Check *c)
{
    c->around = (GsModuleArea) { UINT64_MAX, 0 };
    for (unsigned i = 0; i < c->mod->n; i++) {
        const GsModuleArea *a = &c->mod->span[i].at;

        c->around.start = MIN(c->around.start, a->start);
        c->around.end = MAX(c->around.end, a->end);
    }
}

/* Return true if a frame of the stack is in an area of the module, at any time.
 * This is called for every stack; most have no frame inside @around. */
static bool any_frame(const Check *c, uint32_t stack)
{
    unsigned n;
    uint64_t stop;
    const uint64_t *pc = kt_depot_get(c->stacks, stack, &n, &stop);

    for (unsigned i = 0; i < n; i++) {
        bool near = in_area(&c->around, pc[i] - 1);

        for (unsigned j = 0; near && j < c->mod->n; j++) {
            if (in_area(&c->mod->span[j].at, pc[i] - 1)) {
                return true;
            }
        }
    }
    return false;
}

static void add_leak(Check *c, const KtRec *r)
{
    KtReport *report = c->report;
    KtUnfreed leak = { r->va, r->alloc_us, { r->stack } };

    report->head.found++;
    if (c->m->n_leaks + report->leaks->len >= MAX_LEAKS ||
        !kt_budget_take(c->m->budget, KT_MEM_ERRORS, sizeof(leak))) {
        report->head.not_kept++;
        return;
    }
    g_array_append_val(report->leaks, leak);
}

static void examine_block(Check *c, const KtRec *r)
{
    if (r->freed || r->queued || !is_by_module(c, r->stack, r->alloc_us)) {
        return;
    }
    if (r->old || c->unseen) {
        c->report->head.unsure++;
    } else {
        add_leak(c, r);
    }
}

static int by_address(const void *a, const void *b)
{
    const KtUnfreed *x = a, *y = b;

    return x->va < y->va ? -1 : x->va > y->va;
}

static void find_leaks(Check *c)
{
    const KtBlocks *b = &c->model->blocks;
    uint32_t n = kt_depot_count(c->stacks);

    for (uint32_t stack = 1; stack <= n; stack++) {
        uint32_t i = kt_list_head(&b->by_alloc, stack);

        if (!i || !any_frame(c, stack)) {
            continue;
        }
        for (; i; i = kt_rec(b, i)->link.next) {
            examine_block(c, kt_rec(b, i));
        }
    }
    g_array_sort(c->report->leaks, by_address);
}

static bool is_bad_free(const KtError *e)
{
    return e->kind == KT_ERR_DOUBLE_FREE || e->kind == KT_ERR_INVALID_FREE ||
           e->kind == KT_ERR_INTERIOR_FREE;
}

static void find_bad_frees(Check *c)
{
    const GArray *errors = c->model->errors.list;
    KtReport *r = c->report;

    for (unsigned i = 0; i < errors->len; i++) {
        const KtError *e = &g_array_index(errors, KtError, i);

        if (!is_bad_free(e) || !is_by_module(c, e->stack.v, e->us)) {
            continue;
        }
        r->head.bad_frees++;
        if (r->errors->len < MAX_FREES) {
            g_array_append_val(r->errors, e->id);
        }
    }
}

static KtReport *report_new(KtModules *m, const KtModule *mod, uint64_t now_us)
{
    KtReport *r = g_new0(KtReport, 1);

    memcpy(r->name, mod->name, sizeof(r->name));
    r->head = (KtModuleReport) {
        .id = ++m->last_id, .name = r->name, .loaded_us = mod->us,
        .us = now_us,
    };
    r->leaks = g_array_new(FALSE, FALSE, sizeof(KtUnfreed));
    r->errors = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    return r;
}

static void keep_report(KtModules *m, KtReport *r, KtCounters *counters)
{
    if (m->reports->len == MAX_REPORTS) {
        drop_report(m, 0);
        kt_counters_add(counters, KT_CNT_MODULE_REPORTS_GONE, 1);
    }
    m->n_leaks += r->leaks->len;
    g_ptr_array_add(m->reports, r);
    kt_counters_add(counters, KT_CNT_MODULES_CHECKED, 1);
    kt_counters_add(counters, KT_CNT_MODULE_LEAKS, r->head.found);
    kt_counters_add(counters, KT_CNT_MODULE_LEAKS_DROPPED, r->head.not_kept);
}

/* Use the areas of the module's load, if the load was seen: by now other
 * modules may have got some of these areas. */
static void unload(KtModules *m, KtModule *note, const KtModulesNow *now)
{
    Check c = {
        .m = m, .model = now->model, .stacks = now->stacks,
        .unseen = now->unseen,
    };
    guint i = find_loaded(m, note->va);

    if (i < m->loaded->len) {
        KtModule *was = m->loaded->pdata[i];

        note->us = was->us;
        note->n = was->n;
        memcpy(note->span, was->span, sizeof(note->span));
        g_ptr_array_remove_index_fast(m->loaded, i);
    }
    c.mod = note;
    c.report = report_new(m, note, now->us);
    set_around(&c);
    find_leaks(&c);
    find_bad_frees(&c);
    keep_report(m, c.report, now->counters);
    kt_module_free(note);
}

void kt_modules_apply(KtModules *m, KtModule *note, KtModuleEventKind kind,
                      const KtModulesNow *now)
{
    if (kind == KT_MODULE_EVENT_GONE) {
        unload(m, note, now);
    } else {
        load(m, note, kind == KT_MODULE_EVENT_INHERITED, now->us);
    }
}

/* ---- queries ------------------------------------------------------------ */

const GPtrArray *kt_modules_reports(const KtModules *m)
{
    return m->reports;
}

bool kt_modules_is_loaded(const KtModules *m, const char *name)
{
    for (guint i = 0; i < m->loaded->len; i++) {
        if (!strcmp(((KtModule *)m->loaded->pdata[i])->name, name)) {
            return true;
        }
    }
    return false;
}
