/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers and names of call points: see point-names.h. */
#include "kalloc-tracer/calls/point-names.h"

#include <inttypes.h>

/* @packed: (owned, nullable) @proto as bytes, made when it is first wanted */
typedef struct Name {
    char *name, *module;
    GsPrototype *proto;         /* NULL: not known */
    const char *why_not;
    GBytes *packed;
} Name;

struct KtPointNames {
    GMutex lock;                /* of all members */
    GHashTable *ids;            /* "name@address" -> id */
    GArray *names;              /* of Name; index i has the point i + 1 */
    size_t defined;             /* bytes of packed prototypes of a journal */
};

/* Hold the lock of @n until the function returns. */
#define LOCK(n)                                         \
    g_autoptr(GMutexLocker) locked G_GNUC_UNUSED =      \
        g_mutex_locker_new(&(n)->lock)

static void clear_name(void *name)
{
    Name *n = name;

    g_free(n->name);
    g_free(n->module);
    gs_prototype_free(n->proto);
    g_clear_pointer(&n->packed, g_bytes_unref);
}

KtPointNames *kt_point_names_new(void)
{
    KtPointNames *n = g_new0(KtPointNames, 1);

    g_mutex_init(&n->lock);
    n->ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    n->names = g_array_new(false, true, sizeof(Name));
    g_array_set_clear_func(n->names, clear_name);
    return n;
}

void kt_point_names_free(KtPointNames *n)
{
    if (n) {
        g_hash_table_unref(n->ids);
        g_array_unref(n->names);
        g_mutex_clear(&n->lock);
    }
    g_free(n);
}

void kt_point_names_clear(KtPointNames *n)
{
    g_mutex_lock(&n->lock);
    g_hash_table_remove_all(n->ids);
    g_array_set_size(n->names, 0);
    n->defined = 0;
    g_mutex_unlock(&n->lock);
}

unsigned kt_point_names_count(KtPointNames *n)
{
    LOCK(n);

    return n->names->len;
}

uint16_t kt_point_names_intern(KtPointNames *n, const GsKernel *k,
                               const KtFoundFunction *f)
{
    LOCK(n);
    g_autofree char *key = g_strdup_printf("%s@%" PRIx64, f->name, f->va);
    unsigned id = GPOINTER_TO_UINT(g_hash_table_lookup(n->ids, key));

    if (!id && n->names->len < KT_POINT_IDS_MAX) {
        Name name = { g_strdup(f->name), g_strdup(f->module) };

        name.proto = gs_kernel_prototype(k, f->module, f->name,
                                         &name.why_not);
        g_array_append_val(n->names, name);
        id = n->names->len;
        g_hash_table_insert(n->ids, g_steal_pointer(&key),
                            GUINT_TO_POINTER(id));
    }
    return id;
}

/* (nullable) Return the names of a number that is in use. */
static Name *find(const KtPointNames *n, KtPointId id)
{
    Name *name = id.v && id.v <= n->names->len ?
                 &g_array_index(n->names, Name, id.v - 1) : NULL;

    return name && name->name ? name : NULL;
}

bool kt_point_names_get(KtPointNames *n, KtPointId id, KtPointName *out)
{
    LOCK(n);
    const Name *name = find(n, id);

    if (name) {
        *out = (KtPointName) { name->name, name->module, name->proto,
                               name->why_not };
    }
    return name;
}

GBytes *kt_point_names_packed(KtPointNames *n, KtPointId id)
{
    LOCK(n);
    Name *name = find(n, id);

    if (name && name->proto && !name->packed) {
        GByteArray *bytes = g_byte_array_new();

        gs_prototype_pack(name->proto, bytes);
        name->packed = g_byte_array_free_to_bytes(bytes);
    }
    return name && name->packed ? g_bytes_ref(name->packed) : NULL;
}

void kt_point_names_define(KtPointNames *n, KtPointId id,
                           const KtPointName *name, GsBytes packed)
{
    LOCK(n);
    size_t len = gs_bytes_left(&packed);
    Name *to;

    if (!id.v || find(n, id) || len > KT_POINT_PACKED_MAX - n->defined) {
        return;
    }
    if (id.v > n->names->len) {
        g_array_set_size(n->names, id.v);
    }
    n->defined += len;
    to = &g_array_index(n->names, Name, id.v - 1);
    to->name = g_strdup(name->name);
    to->module = g_strdup(name->module);
    to->proto = len ? gs_prototype_unpack(gs_bytes_at(&packed), len) : NULL;
}
