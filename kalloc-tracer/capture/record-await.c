/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: make the return address of a call a return site, and store the call
 * until it returns.
 *
 * At entry the return address becomes a return site. The site is published
 * first, then code that is already translated there is invalidated. In this
 * order no return is missed.
 */
#include "kalloc-tracer/capture/record-internal.h"

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
