/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plans of one boot: see deref-table.h. */
#include "kalloc-tracer/calls/deref-table.h"

#include "kalloc-tracer/calls/point-names.h"

struct KtDerefTable {
    GMutex lock;
    KtBudget *budget;
    GHashTable *found;          /* "point list" -> KtDerefPlan or NULL */
    GPtrArray *plans;           /* KtDerefPlan; index i has the number i + 1 */
    uint64_t charged;
    size_t defined;             /* bytes of a journal's plans */
};

static void free_plan(void *plan)
{
    kt_deref_plan_free(plan);
}

KtDerefTable *kt_deref_table_new(KtBudget *budget)
{
    KtDerefTable *t = g_new0(KtDerefTable, 1);

    g_mutex_init(&t->lock);
    t->budget = budget;
    t->found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    t->plans = g_ptr_array_new_with_free_func(free_plan);
    return t;
}

void kt_deref_table_free(KtDerefTable *t)
{
    if (t) {
        kt_deref_table_clear(t);
        g_hash_table_unref(t->found);
        g_ptr_array_unref(t->plans);
        g_mutex_clear(&t->lock);
    }
    g_free(t);
}

void kt_deref_table_clear(KtDerefTable *t)
{
    g_mutex_lock(&t->lock);
    g_hash_table_remove_all(t->found);
    g_ptr_array_set_size(t->plans, 0);
    kt_budget_release(t->budget, KT_MEM_CALLS, t->charged);
    t->charged = 0;
    t->defined = 0;
    g_mutex_unlock(&t->lock);
}

/* The host memory of a plan, roughly. */
static uint64_t bytes_of(const KtDerefPlan *p)
{
    return sizeof(*p) + p->n * (sizeof(GsParam) + GS_DEREF_EXPR_MAX) +
           g_bytes_get_size(p->packed);
}

static void keep(KtDerefTable *t, KtDerefPlan *p)
{
    uint64_t bytes = bytes_of(p);

    kt_budget_charge(t->budget, KT_MEM_CALLS, bytes);
    t->charged += bytes;
    g_ptr_array_add(t->plans, p);
    p->id = t->plans->len;
}

static KtDerefPlan *get_locked(KtDerefTable *t, const KtDerefList *l,
                               KtPointId point, GsPrototype *proto)
{
    g_autofree char *key = g_strdup_printf("%u %s", point.v, l->text);
    gpointer found;
    KtDerefPlan *p;

    if (g_hash_table_lookup_extended(t->found, key, NULL, &found)) {
        return found;
    }
    p = t->plans->len < UINT16_MAX ? kt_deref_plan_new(l, proto) : NULL;
    if (p) {
        keep(t, p);
    }
    g_hash_table_insert(t->found, g_steal_pointer(&key), p);
    return p;
}

const KtDerefPlan *kt_deref_table_get(KtDerefTable *t, const KtDerefList *l,
                                      KtPointId point, GsPrototype *proto)
{
    const KtDerefPlan *p;

    g_mutex_lock(&t->lock);
    p = get_locked(t, l, point, proto);
    g_mutex_unlock(&t->lock);
    return p;
}

static const KtDerefPlan *find_locked(const KtDerefTable *t, uint16_t id)
{
    return id && id <= t->plans->len ? t->plans->pdata[id - 1] : NULL;
}

const KtDerefPlan *kt_deref_table_find(KtDerefTable *t, uint16_t id)
{
    const KtDerefPlan *p;

    g_mutex_lock(&t->lock);
    p = find_locked(t, id);
    g_mutex_unlock(&t->lock);
    return p;
}

void kt_deref_table_define(KtDerefTable *t, uint16_t id, GsBytes packed)
{
    size_t len = gs_bytes_left(&packed);

    g_mutex_lock(&t->lock);
    if (id && !find_locked(t, id) && len <= KT_POINT_PACKED_MAX - t->defined) {
        KtDerefPlan *p = kt_deref_plan_unpack(packed);

        t->defined += len;
        if (id > t->plans->len) {
            g_ptr_array_set_size(t->plans, id);
        }
        if (p) {
            p->id = id;
        }
        t->plans->pdata[id - 1] = p;
    }
    g_mutex_unlock(&t->lock);
}
