/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types as bytes, a .BTF section: gs_types_pack(), gs_prototype_pack_types().
 *
 * It has the types that the values are printed by, and no others:
 *
 *     FUNC "kfree" -> FUNC_PROTO { void, { "object", PTR -> CONST -> void } }
 *     PTR -> STRUCT "page" { ... } is copied as PTR -> FWD "page"
 *
 * Types are copied from a list of what is still to copy, so nothing recurses.
 */
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/types/types-internal.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/prototype.h"
#include "guest-symbols/types/value.h"

/* A type to copy. @pointed: a pointer leads to it, so a struct needs no
 * members */
typedef struct Todo {
    uint32_t from, to;
    bool pointed;
} Todo;

typedef struct Copy {
    const GsBtfRecords *from;
    GsBtfWriter *to;
    GHashTable *ids;            /* (id, pointed) -> new id */
    GArray *todo;
} Copy;

/* Return the new id of a type, which is copied later. */
static uint32_t new_id(Copy *c, uint32_t from, bool pointed)
{
    gpointer key = GSIZE_TO_POINTER((gsize)from << 1 | pointed);
    gpointer to = g_hash_table_lookup(c->ids, key);
    Todo todo = { from, GPOINTER_TO_UINT(to), pointed };

    if (!from || to) {
        return todo.to;
    }
    todo.to = gs_btf_writer_reserve(c->to);
    g_hash_table_insert(c->ids, key, GUINT_TO_POINTER(todo.to));
    g_array_append_val(c->todo, todo);
    return todo.to;
}

static uint32_t copy_word(Copy *c, const GsBtfType *t, uint32_t i,
                          bool pointed)
{
    const GsBtfShape *shape = &gs_btf_shapes[t->kind];
    unsigned bit = 1u << (shape->each ? i % shape->each : i);
    uint32_t word = gs_btf_word(t, i);

    return shape->names & bit ?
           gs_btf_writer_name(c->to, gs_btf_name(c->from, word)) :
           shape->ids & bit ? new_id(c, word, pointed) : word;
}

static bool is_of_values(unsigned kind)
{
    return kind < GS_BTF_KINDS && kind != GS_BTF_FUNC && kind != GS_BTF_VAR &&
           kind != GS_BTF_DATASEC && kind != GS_BTF_DECL_TAG;
}

/* A record that is not written becomes a forward declaration without a name:
 * those that make no sense, and kinds that are no types of values. */
static void copy_type(Copy *c, const Todo *todo)
{
    g_autofree uint32_t *more = NULL;
    uint32_t n, word;
    bool pointed;
    GsBtfType t;

    if (!gs_btf_type(c->from, todo->from, &t) || !is_of_values(t.kind)) {
        return;
    }
    if (gs_btf_is_composite(&t) && todo->pointed) {
        t = (GsBtfType) { .kind = GS_BTF_FWD, .name = t.name,
                          .flag = t.kind == GS_BTF_UNION };
    }
    pointed = todo->pointed || t.kind == GS_BTF_PTR;
    word = gs_btf_shapes[t.kind].refers ? new_id(c, t.word, pointed) : t.word;
    n = t.more ? gs_btf_words(&t) : 0;
    more = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        more[i] = copy_word(c, &t, i, pointed);
    }
    gs_btf_writer_set(c->to, todo->to,
                      gs_btf_writer_name(c->to, gs_btf_name(c->from, t.name)),
                      gs_btf_info(t.kind, t.vlen, t.flag), word, more, n);
}

/* Copy all that is to copy. Return false if it is too much. */
static bool copy_types(Copy *c)
{
    for (guint i = 0; i < c->todo->len; i++) {
        const Todo todo = g_array_index(c->todo, Todo, i);

        copy_type(c, &todo);
        if (gs_btf_writer_bytes(c->to) > GS_PROTOTYPE_MAX - GS_SYMBOL_NAME_MAX -
                                         GS_BTF_HEADER - 2) {
            return false;
        }
    }
    return true;
}

/* The bits of gfp_t have names in an enum that no type refers to. */
static void add_gfp(Copy *c, const GsBtf *btf)
{
    const GsGfpNames *names = gs_btf_gfp_names(btf);
    uint32_t words[2 * G_N_ELEMENTS(names->bit)], n = 0;

    for (unsigned bit = 0; bit < G_N_ELEMENTS(names->bit); bit++) {
        g_autofree char *name = g_strdup_printf("___GFP_%s_BIT",
                                                names->bit[bit]);

        if (*names->bit[bit]) {
            words[n++] = gs_btf_writer_name(c->to, name);
            words[n++] = bit;
        }
    }
    gs_btf_writer_add(c->to, 0, gs_btf_info(GS_BTF_ENUM, n / 2, false), 4,
                      words, n);
}

/* Whether enums say that they are signed is seen by one that does. */
static void add_signs(Copy *c, const GsBtf *btf)
{
    if (gs_btf_enums_have_signs(btf)) {
        gs_btf_writer_add(c->to, 0, gs_btf_info(GS_BTF_ENUM, 0, true), 4, NULL,
                          0);
    }
}

static void add_function(Copy *c, const GsPrototype *p)
{
    uint32_t words[2 * (GS_PARAMS_MAX + 1)] = { 0 };
    uint32_t n = gs_prototype_n(p), vlen = n + gs_prototype_is_variadic(p);
    uint32_t proto = gs_btf_writer_reserve(c->to);

    for (uint32_t i = 0; i < n; i++) {
        const GsParam *param = gs_prototype_param(p, i);

        words[i * 2] = gs_btf_writer_name(c->to, param->name);
        words[i * 2 + 1] = new_id(c, param->id, false);
    }
    gs_btf_writer_set(c->to, proto, 0,
                      gs_btf_info(GS_BTF_FUNC_PROTO, vlen, false),
                      new_id(c, gs_prototype_result(p)->id, false), words,
                      vlen * 2);
    gs_btf_writer_add(c->to, gs_btf_writer_name(c->to, gs_prototype_func(p)),
                      gs_btf_info(GS_BTF_FUNC, 0, false), proto, NULL, 0);
}

static bool has_gfp(const GsPrototype *p)
{
    bool has = gs_prototype_result(p)->names == GS_NAMES_GFP;

    for (unsigned i = 0; i < gs_prototype_n(p); i++) {
        has |= gs_prototype_param(p, i)->names == GS_NAMES_GFP;
    }
    return has;
}

GByteArray *gs_types_pack(const GsBtf *btf, uint32_t type)
{
    g_autoptr(GsBtfWriter) to = gs_btf_writer_new();
    g_autoptr(GHashTable) ids = g_hash_table_new(gs_number_hash_direct, NULL);
    g_autoptr(GArray) todo = g_array_new(FALSE, FALSE, sizeof(Todo));
    GsValueKind kind = gs_value_kind(btf, type);
    Copy c = { gs_btf_records(btf), to, ids, todo };

    new_id(&c, type, false);
    if (!copy_types(&c)) {
        return NULL;
    }
    if (kind == GS_VALUE_STRUCT || kind == GS_VALUE_ARRAY ||
        gs_value_names(btf, type) == GS_NAMES_GFP) {
        add_gfp(&c, btf);
    }
    add_signs(&c, btf);
    return gs_btf_writer_end(to);
}

GByteArray *gs_prototype_pack_types(const GsPrototype *p)
{
    g_autoptr(GsBtfWriter) to = gs_btf_writer_new();
    g_autoptr(GHashTable) ids = g_hash_table_new(gs_number_hash_direct, NULL);
    g_autoptr(GArray) todo = g_array_new(FALSE, FALSE, sizeof(Todo));
    const GsBtf *btf = gs_prototype_types(p);
    Copy c = { gs_btf_records(btf), to, ids, todo };

    add_function(&c, p);
    if (!copy_types(&c)) {
        return NULL;
    }
    if (has_gfp(p)) {
        add_gfp(&c, btf);
    }
    add_signs(&c, btf);
    return gs_btf_writer_end(to);
}
