/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registry of a tracer: see tracer.h.
 *
 * Entries are written under the lock, then published by a release store of
 * their number. Readers take no lock.
 */
#include "kalloc-tracer/tracer/tracer.h"

void kt_registry_init(KtRegistry *r)
{
    pthread_mutex_init(&r->lock, NULL);
}

void kt_registry_deinit(KtRegistry *r)
{
    while (r->n_parts) {
        const KtRegisteredPart *p = &r->part[--r->n_parts];

        if (p->row->free) {
            p->row->free(p->part);
        }
    }
    pthread_mutex_destroy(&r->lock);
}

static void *find_part(const KtRegistry *r, const KtBootPart *row)
{
    unsigned n = __atomic_load_n(&r->n_parts, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < n; i++) {
        if (r->part[i].row == row) {
            return r->part[i].part;
        }
    }
    return NULL;
}

static void add_check_locked(KtRegistry *r, const KtRegisteredCheck *check)
{
    g_assert(r->n_checks < KT_CHECKS_MAX);
    r->check[r->n_checks] = *check;
    __atomic_store_n(&r->n_checks, r->n_checks + 1, __ATOMIC_RELEASE);
}

static void *add_part_locked(KtRegistry *r, const KtBootPart *row,
                             KtBudget *budget)
{
    void *part = row->new(budget);

    g_assert(r->n_parts < KT_PARTS_MAX);
    r->part[r->n_parts] = (KtRegisteredPart) { row, part };
    __atomic_store_n(&r->n_parts, r->n_parts + 1, __ATOMIC_RELEASE);
    if (row->check) {
        add_check_locked(r, &(KtRegisteredCheck) { row->rule, row->check,
                                                   part });
    }
    return part;
}

void *kt_registry_part(KtRegistry *r, const KtBootPart *row, KtBudget *budget)
{
    void *part = find_part(r, row);

    if (!part) {
        pthread_mutex_lock(&r->lock);
        part = find_part(r, row);
        if (!part) {
            part = add_part_locked(r, row, budget);
        }
        pthread_mutex_unlock(&r->lock);
    }
    return part;
}

void kt_registry_reset(KtRegistry *r, KtBootEnd why)
{
    unsigned n = __atomic_load_n(&r->n_parts, __ATOMIC_ACQUIRE);

    if (why != KT_BOOT_CLEAR) {
        __atomic_add_fetch(&r->epoch, 1, __ATOMIC_RELEASE);
    }
    for (unsigned i = 0; i < n; i++) {
        if (r->part[i].row->reset) {
            r->part[i].row->reset(r->part[i].part, why);
        }
    }
}

void kt_registry_add_check(KtRegistry *r, const KtRegisteredCheck *check)
{
    pthread_mutex_lock(&r->lock);
    add_check_locked(r, check);
    pthread_mutex_unlock(&r->lock);
}

const KtRegisteredCheck *kt_registry_check(const KtRegistry *r, unsigned i)
{
    unsigned n = __atomic_load_n(&r->n_checks, __ATOMIC_ACQUIRE);

    return i < n ? &r->check[i] : NULL;
}
