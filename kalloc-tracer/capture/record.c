/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: entries and returns of the slab allocator, vmalloc, percpu memory,
 * and modules; see record.h.
 *
 * Order. A free is recorded at the function's entry, before the allocator can
 * hand the memory out again. An allocation is recorded at the return, when the
 * caller owns the memory. So if one vCPU frees a block and another one gets the
 * same memory, the free comes first in the journal, too:
 *
 *     vCPU 0   kfree(p) entry  -> FREE p        (seq 10)
 *     vCPU 1                    kmalloc() return -> ALLOC p   (seq 11)
 */
#include "kalloc-tracer/capture/record-internal.h"

static inline void use_true_return(KtHookCall *m)
{
    const uint64_t *replaced = m->boot->replaced;

    if (G_UNLIKELY(m->ra == replaced[0] || m->ra == replaced[1])) {
        kt_record_true_return(m);
    }
}

/* The return address is on the stack (x86) or in the link register. It is a
 * tracer's if a function that the guest traces ends with a jump to the hooked
 * one. */
bool kt_record_find_return(KtHookCall *m)
{
    uint64_t sp = kt_vcpu_reg(m->v, GS_REG_SP);
    size_t avail;
    const void *at;

    m->sp_after = sp;
    if (m->v->reg[GS_REG_LINK]) {
        m->ra = kt_vcpu_reg(m->v, GS_REG_LINK);
        use_true_return(m);
        return true;
    }
    m->sp_after += sizeof(m->ra);
    kt_pending_calls_expect(m->c->calls, m->sp_after);
    at = qemu_plugin_vaddr_to_host(sp, &avail);
    if (!at || avail < sizeof(m->ra)) {
        return false;
    }
    memcpy(&m->ra, at, sizeof(m->ra));
    use_true_return(m);
    return true;
}

/* What an entry and a return of each role do: ROW(role, enter, return). NULL:
 * nothing. */
#define ROLES(ROW) \
    ROW(ALLOC, kt_record_await_return, kt_record_return_alloc) \
    ROW(ALLOC_BULK, kt_record_await_return, kt_record_return_alloc_bulk) \
    ROW(REALLOC, kt_record_enter_realloc, kt_record_return_realloc) \
    ROW(FREE, kt_record_enter_free, NULL, .skip = kt_record_skip_free) \
    ROW(FREE_BULK, kt_record_enter_free_bulk, NULL) \
    ROW(FREE_SHEAF, kt_record_enter_free_sheaf, NULL) \
    ROW(FREE_INSIDE, kt_record_enter_free_inside, NULL) \
    ROW(UNMAP, kt_record_enter_unmap, NULL) \
    ROW(RCU_QUEUE, kt_record_enter_rcu_queue, NULL) \
    ROW(FREE_OUTER, kt_record_enter_free_outer, NULL) \
    ROW(WRAPPER, NULL, NULL) \
    ROW(MODULE_ADD, kt_record_await_return, kt_record_return_module_add) \
    ROW(MODULE_DROP, kt_record_enter_module_drop, NULL) \
    ROW(BPF_ADD, kt_record_enter_bpf_add, NULL) \
    ROW(KEXEC, kt_record_enter_kexec, NULL) \
    ROW(IMAGE_SAVE, kt_record_await_return, kt_record_return_image_save) \
    ROW(IMAGE_LOAD, kt_record_enter_image_load, kt_record_return_image_load) \
    ROW(SETUP, NULL, NULL) \
    ROW(CACHE_DESTROY, kt_record_enter_destroy, kt_record_return_destroy) \
    ROW(LOG, kt_record_enter_log, kt_record_return_log) \
    ROW(WITNESS_CACHE, kt_record_await_witness, kt_record_return_cache) \
    ROW(WITNESS_BOOT_CACHE, kt_record_await_witness, \
        kt_record_return_boot_cache) \
    ROW(WITNESS_NAME, kt_record_await_witness, kt_record_return_name) \
    ROW(WITNESS_THREAD, kt_record_enter_thread, NULL) \
    ROW(WITNESS_SWITCH, kt_record_enter_switch, NULL) \
    ROW(WITNESS_WAKE, kt_record_enter_wake, NULL) \
    ROW(WITNESS_SLAB, kt_record_enter_slab, NULL) \
    ROW(WITNESS_CLONE, kt_record_await_witness, kt_record_return_clone) \
    ROW(PAGE_ALLOC, kt_record_await_pages, kt_record_return_pages) \
    ROW(PAGE_BULK, kt_record_await_page_bulk, kt_record_return_page_bulk) \
    ROW(PAGE_ISOLATE, kt_record_await_pages, kt_record_return_isolated) \
    ROW(PAGE_MIGRATE, kt_record_await_pages, kt_record_return_folio) \
    ROW(PAGE_CONTIG, kt_record_await_pages, kt_record_return_page_range) \
    ROW(PAGE_FREE, kt_record_enter_page_free, NULL) \
    ROW(PAGE_FREE_BATCH, kt_record_enter_page_batch, NULL) \
    ROW(PAGE_FREE_LIST, kt_record_enter_page_list, NULL) \
    ROW(PAGE_REMOVE, kt_record_enter_page_remove, NULL) \
    ROW(PAGE_MANAGED, kt_record_enter_page_managed, NULL) \
    ROW(PAGE_OFFLINE, kt_record_await_pages, kt_record_return_page_offline) \
    ROW(PAGE_EXCHANGE, kt_record_await_pages, \
        kt_record_return_page_exchange) \
    ROW(PAGE_OUTER, kt_record_enter_page_put, NULL) \
    ROW(PAGE_WRAPPER, NULL, NULL)

/* @skip: what an entry does while recording is off */
typedef struct RoleOps {
    KtRecordEnter *enter, *skip;
    KtRecordReturn *leave;
} RoleOps;

static const RoleOps ops[KT_ROLE__COUNT] = {
#define ROW(id, at_entry, at_return, ...) [KT_ROLE_##id] = { \
    .enter = at_entry, .leave = at_return, ##__VA_ARGS__ },
    ROLES(ROW)
};

#define ROLE_BIT(id, ...) + (1ull << KT_ROLE_##id)
G_STATIC_ASSERT((0 ROLES(ROLE_BIT)) == (1ull << KT_ROLE__COUNT) - 1);

bool kt_record_is_recorded(KtRole role)
{
    return ops[role].enter || ops[role].leave;
}

bool kt_record_awaits_return(KtRole role)
{
    return ops[role].leave != NULL;
}

/* Return true if the call is no event because of its caller. */
static bool is_inner(const KtHookCall *m, const KtHookRow *hook)
{
    return kt_hook_row_undoes(hook, m->ra) ||
           ((hook->flags & (KT_HOOK_INNER | KT_HOOK_SETUP | KT_HOOK_UNDO)) &&
            kt_hooks_is_inner(m->boot->hooks, hook, m->ra));
}

void kt_record_enter(KtHookCall *m, KtHookId id)
{
    const KtHookRow *hook = &m->boot->row[id.v];

    if (!kt_record_find_return(m)) {
        kt_record_drop_call(m, KT_CNT_CALL_UNREADABLE,
                            kt_role_does(hook->role, KT_DOES_ALLOCATE));
        return;
    }
    gs_unwind_expect(m->v->unwinder, m->ra);
    m->pages = hook->pages;
    if ((m->pages || !is_inner(m, hook)) && ops[hook->role].enter) {
        ops[hook->role].enter(m, hook, id);
    }
}

/* The registers have the arguments. A call instruction has not stored its
 * return address yet, so @site has it. After a jump the callee returns to the
 * caller of the function that jumped. */
void kt_record_enter_site(KtHookCall *m, const KtHookSite *site, bool wanted)
{
    const KtHookRow *hook = &m->boot->row[site->id.v];
    bool allocates = kt_role_does(hook->role, KT_DOES_ALLOCATE);

    if (!wanted && m->c->access) {
        kt_access_watch_missed(m->c->access);
    }
    if (!wanted && !allocates) {
        return;
    }
    if (site->ra) {
        m->ra = site->ra;
        m->sp_after = kt_vcpu_reg(m->v, GS_REG_SP);
        kt_pending_calls_expect(m->c->calls, m->sp_after);
    } else if (!kt_record_find_return(m)) {
        kt_record_drop_call(m, KT_CNT_CALL_UNREADABLE, allocates);
        return;
    }
    gs_unwind_expect(m->v->unwinder, m->ra);
    ops[hook->role].enter(m, hook, site->id);
}

/*
 * Two things are kept up while recording is off. A call may still be inside the
 * allocator when recording is switched on, and then return memory that was
 * freed after the gap: so allocating calls are followed. A kmem_cache may be
 * freed and another one made at the same address: so cached caches are dropped.
 */
void kt_record_skip(KtHookCall *m, KtHookId id)
{
    const KtHookRow *hook = &m->boot->row[id.v];

    if (m->c->access) {
        kt_access_watch_missed(m->c->access);
    }
    if (kt_role_does(hook->role, KT_DOES_ALLOCATE)) {
        kt_record_enter(m, id);
    } else if (ops[hook->role].skip) {
        ops[hook->role].skip(m, hook, id);
    }
}

void kt_record_return(KtHookCall *m, const KtPendingCall *call)
{
    const KtHookRow *hook = &m->boot->row[call->hook.v];
    uint64_t result = kt_record_untag(m, kt_vcpu_reg(m->v, GS_REG_RESULT));

    m->pages = hook->pages;
    if (ops[hook->role].leave) {
        ops[hook->role].leave(m, call, result);
    }
}

/* ---- drops --------------------------------------------------------------- */

/*
 * What could not be recorded. Each drop is counted.
 *
 * An allocating call can be dropped between entry and return. The guest then
 * owns memory that is not in the map; it may be freed, or overlap a block that
 * the map has as freed. So every drop pushes a KT_EV_GAP event: from then on a
 * free of an unknown address is no error. If the call hands out memory the gap
 * carries KT_EVF_UNSEEN: double frees of freed blocks are not reported either.
 *
 * Calls are followed while recording is off, because they may return after it
 * is switched on. The first one dropped in that time pushes a gap; later ones
 * are not counted.
 */
static void push_gap(KtHookCall *m, KtCounter why, uint8_t flags)
{
    const KtEvent gap = {
        .kind = KT_EV_GAP, .cpu = m->v->index, .flags = flags,
    };

    kt_vcpu_count(m->v, why, 1);
    if (m->c->access && flags & KT_EVF_UNSEEN) {
        kt_access_watch_missed(m->c->access);
    }
    kt_tracer_push(m->c->tracer, m->v->index, &gap);
}

void kt_record_drop(KtHookCall *m, KtCounter why)
{
    push_gap(m, why, 0);
}

void kt_record_drop_call(KtHookCall *m, KtCounter why, bool hands_out)
{
    bool pushed = hands_out && __atomic_exchange_n(&m->boot->unseen, true,
                                                   __ATOMIC_RELAXED);

    if (!pushed || kt_tracer_enabled(m->c->tracer)) {
        push_gap(m, why, hands_out ? KT_EVF_UNSEEN : 0);
    }
}

/* ---- return sites -------------------------------------------------------- */
/*
 * Record: make the return address of a call a return site, and store the call
 * until it returns.
 *
 * At entry the return address becomes a return site. The site is published
 * first, then code that is already translated there is invalidated. In this
 * order no return is missed.
 */

/* A vCPU can find a site that another vCPU has published but not yet made
 * ready. It then invalidates the code itself instead of waiting. */
static bool add_site(KtHookCall *m, KtSiteUse use, KtHookId wrapper)
{
    KtReturnSites *sites = m->c->sites;
    bool added;
    uint32_t site = kt_return_sites_add(sites, m->ra, use, wrapper, &added);

    if (site == KT_RETURN_SITE_NONE) {
        return false;
    }
    if (!kt_return_sites_ready(sites, site, use)) {
        if (kt_return_sites_may_have_block(sites, m->ra)) {
            qemu_plugin_invalidate_vaddr(m->ra);
        }
        kt_return_sites_set_ready(sites, site, use);
    }
    kt_vcpu_count(m->v, KT_CNT_RETURN_SITES, added);
    return true;
}

/* Make @m->ra a return site of hooks. Return false if the table is full. */
static bool add_hook_site(KtHookCall *m)
{
    uint64_t *seen = &m->v->return_site[m->ra %
                                        G_N_ELEMENTS(m->v->return_site)];
    KtHookId wrapper = { 0 };

    if (m->ra && *seen == m->ra) {
        return true;
    }
    if (kt_return_sites_find(m->c->sites, m->ra, KT_SITE_HOOK) ==
        KT_RETURN_SITE_NONE) {
        wrapper = kt_hooks_wrapper(m->boot->hooks, m->ra, m->pages);
    }
    if (!add_site(m, KT_SITE_HOOK, wrapper)) {
        return false;
    }
    *seen = m->ra;
    return true;
}

bool kt_record_add_point_site(KtHookCall *m)
{
    uint64_t *seen = &m->v->point_site[m->ra % G_N_ELEMENTS(m->v->point_site)];

    if (m->ra && *seen == m->ra) {
        return true;
    }
    if (!add_site(m, KT_SITE_POINT, (KtHookId) { 0 })) {
        return false;
    }
    *seen = m->ra;
    return true;
}

void kt_record_await(KtHookCall *m, const KtPendingCall *call)
{
    const KtHookRow *hook = &m->boot->row[call->hook.v];
    unsigned stale;

    if (G_UNLIKELY(m->c->access) && hook->cache != KT_NO_ARG &&
        kt_role_does(hook->role, KT_DOES_ALLOCATE)) {
        m->v->allocating = (KtAllocating) { call->sp, call->ra };
    }
    if (!add_hook_site(m) ||
        !kt_pending_calls_push(m->c->calls, call, &stale)) {
        kt_record_drop_call(m, KT_CNT_CALL_DROPPED,
                            kt_role_does(hook->role, KT_DOES_ALLOCATE));
        return;
    }
    if (stale) {
        kt_vcpu_count(m->v, KT_CNT_CALL_STALE, stale);
    }
    if (kt_hooks_is_unsized(m->boot->hooks, call->hook)) {
        kt_return_sites_set_callee(
            m->c->sites,
            kt_return_sites_find(m->c->sites, m->ra, KT_SITE_HOOK), call->hook);
    }
}
