/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The breakpoints of each hook and call point, and the functions whose calls
 * are not all seen. The capture's lock is held. */
#include "kalloc-tracer/capture/seam-kvm-internal.h"

#include "kalloc-tracer/hooks/breakpoints.h"

#include <stdio.h>

#define TAIL_DEPTH      3               /* jumps from function to function */
#define NAMES_MAX       32              /* of functions, that are listed */

KtKvm kt_kvm;

/* ---- functions that are missed ------------------------------------------- */

static void miss(const GsKernel *k, KtKvmMissed *m, uint64_t va)
{
    GsSymbol sym;

    if (m->n++ < NAMES_MAX) {
        g_string_append_printf(m->names, "%s%s", m->names->len ? ", " : "",
                               gs_kernel_symbolize(k, va, &sym) ? sym.name :
                                                                  "?");
    }
}

static void miss_none(KtKvmMissed *m)
{
    m->n = 0;
    g_string_truncate(m->names, 0);
}

char *kt_kvm_unseen(KtCapture *c)
{
    unsigned n = kt_kvm.hooks.n + kt_kvm.points.n;
    bool more = kt_kvm.hooks.n > NAMES_MAX || kt_kvm.points.n > NAMES_MAX;

    return n ? g_strdup_printf("%s%s%s%s", kt_kvm.hooks.names->str,
                               kt_kvm.hooks.n && kt_kvm.points.n ? ", " : "",
                               kt_kvm.points.names->str, more ? ", ..." : "") :
               NULL;
}

/* ---- the plan ------------------------------------------------------------ */

static void add(const KtKvmPlan *p, uint64_t va, uint32_t use, uint32_t id,
                uint64_t function)
{
    if (!kt_breakpoints_add(va, use, id, function)) {
        miss(p->k, p->missed, va);
    }
}

static void refused(void *opaque, uint64_t va)
{
    const KtKvmPlan *p = opaque;

    miss(p->k, p->missed, va);
}

void kt_kvm_plant(KtKvmPlan *p)
{
    kt_breakpoints_plant(p->boot->guest, refused, p);
    if (kt_kvm.off) {
        kt_breakpoints_enable(false);
    }
}

static bool read_code(void *opaque, uint64_t va, void *buf, size_t len)
{
    bool done = kt_guest_read(opaque, va, buf, len);

    if (done) {
        kt_breakpoints_hide(va, buf, len);
    }
    return done;
}

static bool find(const KtKvmPlan *p, uint64_t va, KtBreakpoints *out)
{
    const KtCodeReader reader = { read_code, p->boot->guest };

    return kt_breakpoints_find(p->k, &reader, va, out);
}

/* Return true for code that the kernel frees after boot, to use the memory for
 * other things. */
static bool is_init(const GsKernel *k, uint64_t va)
{
    GsSymbol start, end;

    return gs_kernel_lookup(k, "_sinittext", &start) &&
           gs_kernel_lookup(k, "_einittext", &end) &&
           va - start.va < end.va - start.va;
}

/* A hooked or watched function, or one that such a function ends in. */
typedef struct Ending {
    uint64_t va;
    unsigned depth;                     /* jumps */
    KtBreakpoints at;
} Ending;

/* Add the returns of a function, and to @todo the functions it ends in. */
static void add_ending(const KtKvmPlan *p, const Ending *f, GArray *todo)
{
    bool missed = f->at.incomplete;

    for (unsigned i = 0; i < f->at.n_returns; i++) {
        add(p, f->at.returns[i], p->returns, 0, 0);
    }
    for (unsigned i = 0; i < f->at.n_tails; i++) {
        Ending tail = { .va = f->at.tails[i], .depth = f->depth + 1 };

        if (tail.depth <= TAIL_DEPTH && find(p, tail.va, &tail.at)) {
            g_array_append_val(todo, tail);
        } else {
            missed = true;
        }
    }
    if (missed) {
        miss(p->k, p->missed, f->va);
    }
}

static void add_returns(const KtKvmPlan *p, uint64_t va, const KtBreakpoints *b)
{
    g_autoptr(GArray) todo = g_array_new(FALSE, FALSE, sizeof(Ending));
    Ending f = { .va = va, .at = *b };

    g_array_append_val(todo, f);
    for (guint i = 0; i < todo->len; i++) {
        f = g_array_index(todo, Ending, i);
        add_ending(p, &f, todo);
    }
}

/* What the role of a hook adds to the uses of its breakpoints. */
static uint32_t kept(KtRole role)
{
    return kt_role_does(role, KT_DOES_FOLLOW) ? KT_AT_FOLLOWED : 0;
}

static void plan_hook(KtKvmPlan *p, KtHookId id)
{
    uint64_t va = kt_hooks_va(p->boot->hooks, id);
    KtRole role = p->boot->row[id.v].role;
    KtBreakpoints b;

    if (!va || !kt_record_is_recorded(role) || is_init(p->k, va)) {
        return;
    }
    if (!find(p, va, &b) || !b.entry) {
        miss(p->k, p->missed, va);
        return;
    }
    add(p, b.entry, KT_AT_ENTRY | kept(role), id.v, 0);
    if (kt_record_awaits_return(role)) {
        p->returns = KT_AT_RETURN | kept(role);
        add_returns(p, va, &b);
    }
}

/* No error is certain that calls which are not seen can explain. */
static void doubt(KtBoot *boot, KtHookId id)
{
    kt_hooks_miss(boot->hooks, id);
    for (unsigned i = 1; i < G_N_ELEMENTS(boot->row); i++) {
        boot->row[i].flags = kt_hooks_row(boot->hooks, (KtHookId) { i }).flags;
    }
}

static void plan_hooks(KtBoot *boot, const GsKernel *k)
{
    KtKvmPlan p = { boot, k, &kt_kvm.hooks, 0 };
    const KtHookSite *site;

    for (unsigned id = 1; id < G_N_ELEMENTS(boot->row); id++) {
        unsigned missed = kt_kvm.hooks.n;

        plan_hook(&p, (KtHookId) { id });
        if (kt_kvm.hooks.n > missed) {
            doubt(boot, (KtHookId) { id });
        }
    }
    for (unsigned i = 0; (site = kt_hooks_site(boot->hooks, i)); i++) {
        add(&p, site->va, KT_AT_SITE, i, 0);
    }
}

static void plan_point(const KtKvmPlan *p, const KtCallPoint *point)
{
    KtBreakpoints b;

    if (is_init(p->k, point->va) || !find(p, point->va, &b) || !b.entry) {
        miss(p->k, p->missed, point->va);
        return;
    }
    add(p, b.entry, KT_AT_POINT, 0, point->va);
    if (point->uses & KT_POINT_WATCH) {
        add_returns(p, point->va, &b);
    }
}

/* KtKvmPlan those of call points anew. */
void kt_kvm_plan_points(const KtCapture *c, const KtBoot *boot)
{
    const KtPointSet *set = kt_call_points_set(c->shared.points);
    const KtKvmPlan p = {
        boot, c->shared.kernel, &kt_kvm.points, KT_AT_POINT_RETURN
    };

    kt_breakpoints_end_uses(KT_AT_POINTS);
    miss_none(&kt_kvm.points);
    for (unsigned i = 0; set && i < kt_point_set_count(set); i++) {
        plan_point(&p, kt_point_set_nth(set, i));
    }
}

bool kt_kvm_plan_entry(const KtKvmPlan *p, const char *name,
                       KtBreakpointUse use)
{
    KtBreakpoints b;
    GsSymbol sym;

    if (!gs_kernel_lookup(p->k, name, &sym) || !find(p, sym.va, &b) ||
        !b.entry) {
        return false;
    }
    add(p, b.entry, use, 0, 0);
    return true;
}

void kt_kvm_clear(void)
{
    kt_breakpoints_clear();
    kt_kvm.patching = kt_kvm.late = false;
    kt_kvm.gaps = qemu_plugin_code_hooks_withdrawn();
    __atomic_store_n(&kt_kvm.withdrawn, kt_kvm.gaps, __ATOMIC_RELAXED);
    miss_none(&kt_kvm.hooks);
    miss_none(&kt_kvm.points);
}

void kt_kvm_plan_all(const KtCapture *c, KtBoot *boot)
{
    __atomic_store_n(&kt_kvm.changed, false, __ATOMIC_SEQ_CST);
    plan_hooks(boot, c->shared.kernel);
    kt_kvm_plan_points(c, boot);
}
