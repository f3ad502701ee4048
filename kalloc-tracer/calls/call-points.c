/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call points: see call-points.h.
 *
 * The table is changed under its lock. Each change makes a new KtPointSet of
 * the table's points and publishes it. The old one is kept in @retired until
 * kt_call_points_reclaim(), because vCPUs may still read it.
 *
 * Ids and names are those of point-names.h.
 */
#include "kalloc-tracer/calls/call-points.h"

#include <inttypes.h>
#include <string.h>

#include "kalloc-tracer/calls/point-match.h"

/* A point of the table, and the requests that match it. */
typedef struct Point {
    KtCallPoint at;
    GPtrArray *requests;
} Point;

struct KtCallPoints {
    GMutex lock;                /* of all members but @set's readers */
    KtPointSet *set;            /* atomic; NULL: no points */
    GPtrArray *retired;         /* of KtPointSet */
    KtBudget *budget;
    void (*changed)(void *opaque, bool flush);
    void *opaque;
    const GsKernel *kernel;     /* NULL: not found yet */
    GPtrArray *requests;        /* of KtPointRequest, the oldest first */
    uint32_t last_request;
    GPtrArray *points;          /* of Point, sorted by id when published */
    GHashTable *by_va;          /* address -> Point */
    KtPointNames *names;
    unsigned skipped;
};

/* ---- the object ---------------------------------------------------------- */

static void free_point(void *point)
{
    g_ptr_array_unref(((Point *)point)->requests);
    g_free(point);
}

static void release_set(KtCallPoints *p, KtPointSet *s)
{
    kt_budget_release(p->budget, KT_MEM_FIXED, kt_point_set_bytes(s));
    kt_point_set_free(s);
}

KtCallPoints *kt_call_points_new(KtBudget *budget)
{
    KtCallPoints *p = g_new0(KtCallPoints, 1);

    g_mutex_init(&p->lock);
    p->budget = budget;
    p->retired = g_ptr_array_new();
    p->requests = g_ptr_array_new_with_free_func(
        (GDestroyNotify)kt_point_request_unref);
    p->points = g_ptr_array_new_with_free_func(free_point);
    p->by_va = g_hash_table_new(g_int64_hash, g_int64_equal);
    p->names = kt_point_names_new();
    return p;
}

static void free_retired(KtCallPoints *p)
{
    for (unsigned i = 0; i < p->retired->len; i++) {
        release_set(p, p->retired->pdata[i]);
    }
    g_ptr_array_set_size(p->retired, 0);
}

void kt_call_points_free(KtCallPoints *p)
{
    if (!p) {
        return;
    }
    free_retired(p);
    release_set(p, p->set);
    g_ptr_array_unref(p->retired);
    g_hash_table_unref(p->by_va);
    g_ptr_array_unref(p->points);
    g_ptr_array_unref(p->requests);
    kt_point_names_free(p->names);
    g_mutex_clear(&p->lock);
    g_free(p);
}

void kt_call_points_on_change(KtCallPoints *p,
                              void (*fn)(void *opaque, bool flush),
                              void *opaque)
{
    p->changed = fn;
    p->opaque = opaque;
}

void kt_call_points_reclaim(KtCallPoints *p)
{
    g_mutex_lock(&p->lock);
    free_retired(p);
    g_mutex_unlock(&p->lock);
}

const KtPointSet *kt_call_points_set(const KtCallPoints *p)
{
    return __atomic_load_n(&p->set, __ATOMIC_ACQUIRE);
}

/* ---- publishing ---------------------------------------------------------- */

static gint by_id(gconstpointer pa, gconstpointer pb)
{
    const Point *a = *(Point *const *)pa, *b = *(Point *const *)pb;

    return (int)a->at.id.v - (int)b->at.id.v;
}

static const struct KtDerefPlan *plan_of(const KtCallPoint *point)
{
    const KtPointRequest *r = kt_call_point_watch(point);

    return r && r->plan ? r->plan(r->opaque, point) : NULL;
}

static KtPointSet *make_set(KtCallPoints *p)
{
    g_autoptr(GArray) copy = g_array_new(false, false, sizeof(KtCallPoint));

    g_ptr_array_sort(p->points, by_id);
    for (unsigned i = 0; i < p->points->len; i++) {
        Point *point = p->points->pdata[i];

        point->at.n_requests = point->requests->len;
        point->at.request = (KtPointRequest **)point->requests->pdata;
        point->at.plan = plan_of(&point->at);
        g_array_append_val(copy, point->at);
    }
    return kt_point_set_new((KtCallPoint *)copy->data, copy->len);
}

static void publish_locked(KtCallPoints *p)
{
    KtPointSet *old = p->set;
    KtPointSet *set = p->points->len ? make_set(p) : NULL;

    kt_budget_charge(p->budget, KT_MEM_FIXED, kt_point_set_bytes(set));
    __atomic_store_n(&p->set, set, __ATOMIC_RELEASE);
    if (old) {
        g_ptr_array_add(p->retired, old);
    }
}

/* The table's lock is not held. */
static void report_change(KtCallPoints *p, bool flush)
{
    if (p->changed) {
        p->changed(p->opaque, flush);
    }
}

/* ---- points -------------------------------------------------------------- */

/* Registers that have arguments of @proto; all of them if it is not known. */
static uint8_t count_args(const GsPrototype *proto)
{
    const GsParam *param;
    uint8_t n = 0;

    if (!proto || gs_prototype_is_variadic(proto)) {
        return KT_CALL_ARGS_MAX;
    }
    for (unsigned i = 0; (param = gs_prototype_param(proto, i)); i++) {
        for (unsigned w = 0; w < param->place.words; w++) {
            int reg = kt_call_arg_of(param->place.reg[w]);

            n = MAX(n, reg + 1);
        }
    }
    return n;
}

static Point *insert_point(KtCallPoints *p, const KtFoundFunction *f,
                           uint16_t id)
{
    Point *point = g_new0(Point, 1);
    KtPointName name = { 0 };

    kt_point_names_get(p->names, (KtPointId) { id }, &name);
    point->at = (KtCallPoint) {
        .id = { id }, .va = f->va, .size = f->size, .name = name.name,
        .module = name.module, .module_va = f->module_va,
        .clone = kt_point_is_clone(f->name), .proto = name.proto,
        .n_args = count_args(name.proto),
    };
    point->requests = g_ptr_array_new();
    g_ptr_array_add(p->points, point);
    g_hash_table_insert(p->by_va, &point->at.va, point);
    return point;
}

/* Several symbols can be at one address: the first one that was added has the
 * point. Return false if there is no id for the function. */
static bool add_point(KtCallPoints *p, KtPointRequest *r,
                      const KtFoundFunction *f)
{
    Point *point = g_hash_table_lookup(p->by_va, &f->va);
    uint16_t id = point ? point->at.id.v :
                  kt_point_names_intern(p->names, p->kernel, f);

    if (!id) {
        return false;
    }
    if (!point) {
        point = insert_point(p, f, id);
    }
    point->at.uses |= r->use;
    if (!g_ptr_array_find(point->requests, r, NULL)) {
        g_ptr_array_add(point->requests, r);
    }
    return true;
}

static unsigned points_of(const KtCallPoints *p, const KtPointRequest *r)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->points->len; i++) {
        const Point *point = p->points->pdata[i];

        n += g_ptr_array_find(point->requests, (void *)r, NULL);
    }
    return n;
}

/* Add functions to a request, at most KT_POINT_MATCHES_MAX; count the rest.
 * Return how many were added. */
static unsigned add_points(KtCallPoints *p, KtPointRequest *r,
                           const GArray *found)
{
    unsigned have = found->len ? points_of(p, r) : 0;
    unsigned n = 0;

    for (unsigned i = 0; i < found->len; i++) {
        const KtFoundFunction *f = &g_array_index(found, KtFoundFunction, i);

        if (have + n < KT_POINT_MATCHES_MAX && add_point(p, r, f)) {
            n++;
        } else {
            p->skipped++;
        }
    }
    return n;
}

static void remove_point(KtCallPoints *p, unsigned i)
{
    Point *point = p->points->pdata[i];

    g_hash_table_remove(p->by_va, &point->at.va);
    g_ptr_array_remove_index_fast(p->points, i);
}

static void drop_request(KtCallPoints *p, KtPointRequest *r)
{
    for (unsigned i = p->points->len; i-- > 0;) {
        Point *point = p->points->pdata[i];

        if (!g_ptr_array_remove(point->requests, r)) {
            continue;
        }
        point->at.uses = 0;
        for (unsigned j = 0; j < point->requests->len; j++) {
            point->at.uses |= ((KtPointRequest *)
                               point->requests->pdata[j])->use;
        }
        if (!point->requests->len) {
            remove_point(p, i);
        }
    }
}

static void remove_all_points(KtCallPoints *p)
{
    g_hash_table_remove_all(p->by_va);
    g_ptr_array_set_size(p->points, 0);
}

/* ---- requests ------------------------------------------------------------ */

static KtPointRequest *new_request(const KtPointSpec *spec, uint32_t id)
{
    KtPointRequest *r = g_atomic_rc_box_new0(KtPointRequest);

    r->id = id;
    r->use = spec->use;
    r->text = g_strdup(spec->text);
    r->pattern = g_strsplit(spec->text, ",", -1);
    r->opaque = spec->opaque;
    r->free = spec->free;
    r->plan = spec->plan;
    return r;
}

static bool check_patterns(const KtPointRequest *r, GError **errp)
{
    for (unsigned i = 0; r->pattern[i]; i++) {
        const char *colon = strchr(r->pattern[i], ':');

        if (!*r->pattern[i] || colon == r->pattern[i] ||
            (colon && !colon[1])) {
            g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                        "'%s' has an empty name: expected FUNCTION or "
                        "MODULE:FUNCTION, joined by ','", r->text);
            return false;
        }
    }
    return true;
}

static bool find_all(const GsKernel *k, const KtPointRequest *r, GArray *found,
                     GError **errp)
{
    for (unsigned i = 0; r->pattern[i]; i++) {
        if (!kt_point_match(k, r->pattern[i], found, errp)) {
            return false;
        }
    }
    if (found->len > KT_POINT_MATCHES_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "'%s' matches %u functions, the limit is %u: use narrower "
                    "patterns", r->text, found->len, KT_POINT_MATCHES_MAX);
        return false;
    }
    return true;
}

static bool has_room(const KtCallPoints *p, unsigned n, GError **errp)
{
    if (p->requests->len >= KT_POINT_REQUESTS_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "there are %u requests for call points already: delete "
                    "some first", p->requests->len);
        return false;
    }
    if (kt_point_names_count(p->names) + n > KT_POINT_IDS_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "%u functions were watched in this boot, the limit is %u",
                    kt_point_names_count(p->names), KT_POINT_IDS_MAX);
        return false;
    }
    return true;
}

static bool add_locked(KtCallPoints *p, KtPointRequest *r, GError **errp)
{
    g_autoptr(GArray) found = kt_found_functions_new();

    if (!check_patterns(r, errp) ||
        (p->kernel && !find_all(p->kernel, r, found, errp)) ||
        !has_room(p, found->len, errp)) {
        return false;
    }
    p->last_request++;
    g_ptr_array_add(p->requests, kt_point_request_ref(r));
    add_points(p, r, found);
    if (found->len) {
        publish_locked(p);
    }
    return true;
}

uint32_t kt_call_points_add(KtCallPoints *p, const KtPointSpec *spec,
                            GError **errp)
{
    KtPointRequest *r;
    uint32_t id;
    bool added;

    g_mutex_lock(&p->lock);
    r = new_request(spec, spec->id ? spec->id : p->last_request + 1);
    id = r->id;
    added = add_locked(p, r, errp);
    g_mutex_unlock(&p->lock);
    kt_point_request_unref(r);
    if (added) {
        report_change(p, true);
    }
    return added ? id : 0;
}

unsigned kt_call_points_remove(KtCallPoints *p, KtPointUse use, uint32_t id)
{
    unsigned n = 0;

    g_mutex_lock(&p->lock);
    for (unsigned i = p->requests->len; i-- > 0;) {
        KtPointRequest *r = p->requests->pdata[i];

        if (r->use == use && (!id || r->id == id)) {
            drop_request(p, r);
            g_ptr_array_remove_index(p->requests, i);
            n++;
        }
    }
    if (n) {
        publish_locked(p);
    }
    g_mutex_unlock(&p->lock);
    if (n) {
        report_change(p, true);
    }
    return n;
}

/* ---- boots and modules --------------------------------------------------- */

/* A pattern that finds nothing in this kernel stays pending. */
static void resolve_request(KtCallPoints *p, KtPointRequest *r)
{
    for (unsigned i = 0; r->pattern[i]; i++) {
        g_autoptr(GArray) found = kt_found_functions_new();

        kt_point_match(p->kernel, r->pattern[i], found, NULL);
        add_points(p, r, found);
    }
}

void kt_call_points_begin_boot(KtCallPoints *p, const GsKernel *k)
{
    g_mutex_lock(&p->lock);
    p->kernel = k;
    for (unsigned i = 0; i < p->requests->len; i++) {
        resolve_request(p, p->requests->pdata[i]);
    }
    publish_locked(p);
    g_mutex_unlock(&p->lock);
}

void kt_call_points_end_boot(KtCallPoints *p)
{
    g_mutex_lock(&p->lock);
    p->kernel = NULL;
    remove_all_points(p);
    publish_locked(p);
    free_retired(p);
    kt_point_names_clear(p->names);
    g_mutex_unlock(&p->lock);
}

static unsigned add_module_locked(KtCallPoints *p, const GsModule *module)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->requests->len; i++) {
        KtPointRequest *r = p->requests->pdata[i];

        for (unsigned j = 0; r->pattern[j]; j++) {
            g_autoptr(GArray) found = kt_found_functions_new();

            kt_point_match_module(p->kernel, module, r->pattern[j], found);
            n += add_points(p, r, found);
        }
    }
    if (n) {
        publish_locked(p);
    }
    return n;
}

unsigned kt_call_points_add_module(KtCallPoints *p, uint64_t module_va)
{
    GsModule module;
    unsigned n = 0;

    g_mutex_lock(&p->lock);
    if (p->kernel && gs_kernel_module(p->kernel, module_va, &module)) {
        n = add_module_locked(p, &module);
    }
    g_mutex_unlock(&p->lock);
    if (n) {
        report_change(p, true);
    }
    return n;
}

void kt_call_points_remove_module(KtCallPoints *p, uint64_t module_va)
{
    unsigned n = 0;

    g_mutex_lock(&p->lock);
    for (unsigned i = p->points->len; i-- > 0;) {
        Point *point = p->points->pdata[i];

        if (point->at.module && point->at.module_va == module_va) {
            remove_point(p, i);
            n++;
        }
    }
    if (n) {
        publish_locked(p);
    }
    g_mutex_unlock(&p->lock);
    if (n) {
        report_change(p, false);
    }
}

/* ---- queries ------------------------------------------------------------- */

unsigned kt_call_points_skipped(KtCallPoints *p)
{
    unsigned n;

    g_mutex_lock(&p->lock);
    n = p->skipped;
    p->skipped = 0;
    g_mutex_unlock(&p->lock);
    return n;
}

KtPointNames *kt_call_points_names(KtCallPoints *p)
{
    return p->names;
}

void kt_call_points_foreach_request(KtCallPoints *p, KtPointUse use,
                                    KtPointRequestFn fn, void *opaque)
{
    bool more = true;

    g_mutex_lock(&p->lock);
    for (unsigned i = 0; more && i < p->requests->len; i++) {
        KtPointRequest *r = p->requests->pdata[i];

        more = r->use != use ||
               fn(&(KtPointRequestInfo) { r, points_of(p, r) }, opaque);
    }
    g_mutex_unlock(&p->lock);
}

void kt_call_points_foreach(KtCallPoints *p, KtPointFn fn, void *opaque)
{
    const KtPointSet *set;

    g_mutex_lock(&p->lock);
    set = p->set;
    for (unsigned i = 0; set && i < kt_point_set_count(set); i++) {
        if (!fn(kt_point_set_nth(set, i), opaque)) {
            break;
        }
    }
    g_mutex_unlock(&p->lock);
}
