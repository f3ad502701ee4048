/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expressions compiled for a function: see deref-plan.h. A packed plan is
 *
 *     number of expressions (1); of each: bytes (varint), gs_deref_pack()
 */
#include "kalloc-tracer/calls/deref-plan.h"

#include <string.h>

#include "kalloc-tracer/calls/point-names.h"

/* Bytes of a record before the values: the number of the plan. */
#define HEAD_BYTES 2u

/* ---- syntax -------------------------------------------------------------- */

/* Return the length of the name that @at begins with. */
static size_t name_len(const char *at)
{
    size_t n = 0;

    while (g_ascii_isalnum(at[n]) || at[n] == '_') {
        n++;
    }
    return g_ascii_isdigit(*at) ? 0 : n;
}

/* Return the length of "->" or ".", 0: neither. */
static size_t link_len(const char *at)
{
    return g_str_has_prefix(at, "->") ? 2 : *at == '.';
}

/* Return how much of @expr is "*"? name (("->" | ".") name)*. If a name is
 * missing, *@want is what was expected. */
static size_t scan(const char *expr, const char **want)
{
    size_t at = *expr == '*', len = name_len(expr + at), more;

    *want = len ? NULL : "a name";
    at += len;
    while (!*want && (more = link_len(expr + at))) {
        at += more;
        len = name_len(expr + at);
        *want = len ? NULL : "a member";
        at += len;
    }
    if (!*want && expr[at]) {
        *want = "'->', '.' or ','";
    }
    return at;
}

static bool check_expr(const char *expr, size_t column, GError **errp)
{
    const char *want;
    size_t at = scan(expr, &want);

    if (strlen(expr) > GS_DEREF_EXPR_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "column %zu: an expression has more than %d characters",
                    column, GS_DEREF_EXPR_MAX);
        return false;
    }
    if (want) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "column %zu: expected %s, found %s%.1s%s",
                    column + at, want, expr[at] ? "'" : "the end",
                    expr + at, expr[at] ? "'" : "");
    }
    return !want;
}

/* Return true if both are one value. "name" and "*name" are one text; of
 * members, "*" makes a difference. */
static bool is_same(const char *a, const char *b)
{
    const char *x = a + (*a == '*'), *y = b + (*b == '*');

    return !strcmp(x, y) && (*a == *b || !x[name_len(x)]);
}

/* Each value of a call has a name of its own: the expression. */
static bool check_is_new(char **expr, unsigned i, size_t column, GError **errp)
{
    for (unsigned j = 0; j < i; j++) {
        if (is_same(expr[j], expr[i])) {
            g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                        "column %zu: the value of %s is there already", column,
                        expr[i]);
            return false;
        }
    }
    return true;
}

KtDerefList *kt_deref_list_new(const char *text, GError **errp)
{
    KtDerefList *l = g_new0(KtDerefList, 1);
    size_t column = 1;
    bool ok = *text || check_expr(text, column, errp);
    unsigned n;

    l->text = g_strdup(text);
    l->expr = g_strsplit(text, ",", -1);
    n = g_strv_length(l->expr);
    if (n > KT_DEREFS_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "%u expressions, the limit is %u", n, KT_DEREFS_MAX);
        ok = false;
    }
    for (unsigned i = 0; ok && i < n; i++) {
        ok = check_expr(l->expr[i], column, errp) &&
             check_is_new(l->expr, i, column, errp);
        column += strlen(l->expr[i]) + 1;
    }
    if (!ok) {
        g_clear_pointer(&l, kt_deref_list_free);
    }
    return l;
}

void kt_deref_list_free(KtDerefList *l)
{
    if (l) {
        g_strfreev(l->expr);
        g_free(l->text);
    }
    g_free(l);
}

bool kt_derefs_check(const char *text, GError **errp)
{
    KtDerefList *l = kt_deref_list_new(text, errp);
    bool ok = l;

    kt_deref_list_free(l);
    return ok;
}

/* ---- compiling ----------------------------------------------------------- */

/* Add the bytes of a value to *@used. Return false if they are too many. */
static bool add_bytes(const GsDeref *d, unsigned *used, GError **errp)
{
    const GsParam *value = gs_deref_value(d);
    unsigned len = value->is_text ? KT_DEREF_TEXT_MAX : value->size;

    if (len > KT_DEREF_VALUE_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "a value of type %s has %u bytes, the limit is %u",
                    value->type, len, KT_DEREF_VALUE_MAX);
        return false;
    }
    if (*used + 1 + len > KT_CALL_EXTRA_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "with this one the values have more than the %u bytes that "
                    "a call has room for", KT_CALL_EXTRA_MAX);
        return false;
    }
    *used += 1 + len;
    return true;
}

static GsDeref *compile(GsPrototype *proto, const char *expr, unsigned *used,
                        GError **errp)
{
    g_autoptr(GsDeref) d = gs_deref_new(proto, expr, errp);

    return d && add_bytes(d, used, errp) ? g_steal_pointer(&d) : NULL;
}

/* Return true if the expression begins with an argument of the function, or
 * with its result. */
static bool is_about(const GsPrototype *p, const char *expr)
{
    const char *at = expr + (*expr == '*');
    g_autofree char *name = g_strndup(at, name_len(at));

    return !strcmp(name, "ret") || gs_prototype_find(p, name) >= 0;
}

/* What is known of an expression. @why_not: of a function that has no value for
 * it, @about: but an argument of that name */
typedef struct Finding {
    bool found, about;
    GError *why_not;
} Finding;

static void try_function(const KtDerefList *l, GsPrototype *p, Finding *all)
{
    unsigned used = HEAD_BYTES;

    for (unsigned i = 0; l->expr[i]; i++) {
        g_autoptr(GError) err = NULL;
        g_autoptr(GsDeref) d = compile(p, l->expr[i], &used, &err);
        bool about = is_about(p, l->expr[i]);

        all[i].found |= d != NULL;
        if (err && (!all[i].why_not || (about && !all[i].about))) {
            g_clear_error(&all[i].why_not);
            all[i].why_not = g_steal_pointer(&err);
            all[i].about = about;
        }
    }
}

static bool report(const KtDerefList *l, Finding *all, GError **errp)
{
    bool ok = true;

    for (unsigned i = 0; l->expr[i]; i++) {
        if (ok && !all[i].found) {
            g_propagate_prefixed_error(errp, g_steal_pointer(&all[i].why_not),
                                       "--deref %s: ", l->expr[i]);
            ok = false;
        }
        g_clear_error(&all[i].why_not);
    }
    return ok;
}

bool kt_deref_list_check(const KtDerefList *l, const KtCallFunctions *f,
                         const GsKernel *k, GError **errp)
{
    Finding all[KT_DEREFS_MAX] = { 0 };

    if (k && !gs_kernel_has_types(k)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "--deref needs types, and those of this kernel are not "
                    "known: give types=FILE, see docs/types.md");
        return false;
    }
    if (f->pending) {
        return true;
    }
    if (!f->protos->len) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "--deref needs the types of arguments, which are not "
                    "known: %s", f->why_not ? f->why_not : "no function");
        return false;
    }
    for (unsigned i = 0; i < f->protos->len; i++) {
        try_function(l, f->protos->pdata[i], all);
    }
    return report(l, all, errp);
}

/* ---- plans --------------------------------------------------------------- */

/* Return false if the types of a value are too large to be stored. */
static bool pack(KtDerefPlan *p)
{
    g_autoptr(GByteArray) all = g_byte_array_new();
    bool ok = true;

    gs_out_u8(&GS_OUT(all), p->n);
    for (unsigned i = 0; ok && i < p->n; i++) {
        g_autoptr(GByteArray) one = g_byte_array_new();

        ok = gs_deref_pack(p->at[i], one);
        gs_out_varint(&GS_OUT(all), one->len);
        gs_out_bytes(&GS_OUT(all), one->data, one->len);
    }
    p->packed = g_bytes_new(all->data, all->len);
    return ok;
}

static bool is_of_result(const GsDeref *d)
{
    return gs_deref_at(d)->param == GS_DEREF_RESULT;
}

/* Append those of @all that are about the result, or those that are not. */
static void append(KtDerefPlan *p, GsDeref *const *all, bool of_result)
{
    for (unsigned i = 0; i < KT_DEREFS_MAX; i++) {
        if (all[i] && is_of_result(all[i]) == of_result) {
            p->at[p->n++] = all[i];
        }
    }
}

KtDerefPlan *kt_deref_plan_new(const KtDerefList *l, GsPrototype *proto)
{
    KtDerefPlan *p = g_new0(KtDerefPlan, 1);
    GsDeref *all[KT_DEREFS_MAX] = { NULL };
    unsigned used = HEAD_BYTES;

    for (unsigned i = 0; l->expr[i]; i++) {
        all[i] = compile(proto, l->expr[i], &used, NULL);
    }
    append(p, all, false);
    p->n_entry = p->n;
    append(p, all, true);
    if (!p->n || !pack(p)) {
        g_clear_pointer(&p, kt_deref_plan_free);
    }
    return p;
}

KtDerefPlan *kt_deref_plan_unpack(GsBytes packed)
{
    KtDerefPlan *p = g_new0(KtDerefPlan, 1);
    unsigned n = gs_bytes_u8(&packed);
    bool ok = !packed.failed && n <= KT_DEREFS_MAX;

    for (unsigned i = 0; ok && i < n; i++) {
        size_t len = gs_bytes_varint(&packed, GS_DEREF_PACKED_MAX);
        const uint8_t *bytes = gs_bytes_take(&packed, len);

        p->at[i] = packed.failed ? NULL : gs_deref_unpack(bytes, len);
        ok = p->at[i];
        p->n += ok;
        p->n_entry += ok && !is_of_result(p->at[i]);
    }
    if (!ok) {
        g_clear_pointer(&p, kt_deref_plan_free);
    }
    return p;
}

void kt_deref_plan_free(KtDerefPlan *p)
{
    for (unsigned i = 0; p && i < p->n; i++) {
        gs_deref_free(p->at[i]);
    }
    if (p) {
        g_clear_pointer(&p->packed, g_bytes_unref);
    }
    g_free(p);
}

/* ---- the plans of a boot ------------------------------------------------- */

struct KtDerefTable {
    GMutex lock;
    KtBudget *budget;
    GHashTable *found;          /* "point list" -> KtDerefPlan or NULL */
    GPtrArray *plans;           /* KtDerefPlan; index i has the number i + 1 */
    uint64_t charged;
    size_t defined;             /* bytes of a journal's plans */
};

KtDerefTable *kt_deref_table_new(KtBudget *budget)
{
    KtDerefTable *t = g_new0(KtDerefTable, 1);

    g_mutex_init(&t->lock);
    t->budget = budget;
    t->found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    t->plans = g_ptr_array_new_with_free_func(
        (GDestroyNotify)kt_deref_plan_free);
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
