/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of one kernel build by name, see btf.h. kernel-open.c makes a GsBtf
 * when it opens a kernel; any thread asks. Nothing changes after gs_btf_new(),
 * except that the first question for a function makes @functions, once.
 *
 * btf-records.c reads the section. A hash table from names to type ids makes a
 * lookup by name O(1). Enumerators, of which a kernel has more than types, are
 * needed two or three times a boot: they are searched one by one. Functions are
 * needed in many boots not at all, and in others by thousands.
 */
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/types-internal.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/base/name-hash.h"

#define NESTING_MAX     64      /* anonymous structs waiting to be searched */
#define MEMBERS_MAX     4096    /* looked at in one search */
#define PATH_MAX_PARTS  16
#define MEMBER_END_MAX  (1u << 20)      /* no kernel has such a struct */
#define ENUM_MAX        (1u << 16)      /* enumerators that are compared */
#define TRY_BYTES       4096    /* what a try costs at least */

/* Made by the first that needs it. */
typedef struct Later {
    GsBtfFunctions *functions;
    GsGfpNames *gfp_names;
} Later;

/* @base: (nullable) what the types continue */
struct GsBtf {
    gatomicrefcount owners;
    GsBtf *base;
    GsBtfRecords rec;
    GHashTable *types;          /* name -> id of struct, union or typedef */
    Later *later;
};

static void index_types(GsBtf *b, bool (*wanted)(const GsBtfType *t))
{
    uint32_t first = MAX(b->rec.first, 1);

    for (uint32_t id = b->rec.n; id-- > first;) {
        const char *name;
        GsBtfType t;

        if (!gs_btf_type(&b->rec, id, &t) || !wanted(&t)) {
            continue;
        }
        name = gs_btf_name(&b->rec, t.name);
        if (*name) {
            g_hash_table_insert(b->types, (char *)name, GUINT_TO_POINTER(id));
        }
    }
}

static bool is_typedef(const GsBtfType *t)
{
    return t->kind == GS_BTF_TYPEDEF;
}

/* Add a name to the index. A struct or union replaces a typedef of that name.
 * Types are added from the last to the first, so the first one of each kind
 * remains. */
static void index_names(GsBtf *b)
{
    b->types = g_hash_table_new(gs_name_hash_str, g_str_equal);
    index_types(b, is_typedef);
    index_types(b, gs_btf_is_composite);
}

/* @rec: (taken) */
static GsBtf *make(const GsBtfRecords *rec)
{
    GsBtf *b = g_new0(GsBtf, 1);

    b->rec = *rec;
    b->later = g_new0(Later, 1);
    g_atomic_ref_count_init(&b->owners);
    index_names(b);
    return b;
}

GsBtf *gs_btf_new(const uint8_t *data, size_t len, GError **errp)
{
    GsBtfRecords rec;

    return gs_btf_records_init(&rec, data, len, errp) ? make(&rec) : NULL;
}

static bool init_relocated(GsBtfRecords *rec, const GsBtfRecords *base,
                           const uint8_t *data, size_t len,
                           const GsBtfRecords *small, GError **errp)
{
    if (!gs_btf_records_init_split(rec, small, data, len, errp)) {
        return false;
    }
    if (!gs_btf_relocate(rec, small, base, errp)) {
        gs_btf_records_deinit(rec);
        return false;
    }
    return true;
}

GsBtf *gs_btf_new_split(GsBtf *base, const uint8_t *data, size_t len,
                        const uint8_t *small, size_t small_len,
                        GError **errp)
{
    GsBtfRecords rec, first;
    bool ok;
    GsBtf *b;

    if (!small_len) {
        ok = gs_btf_records_init_split(&rec, &base->rec, data, len, errp);
    } else if ((ok = gs_btf_records_init(&first, small, small_len, errp))) {
        ok = init_relocated(&rec, &base->rec, data, len, &first, errp);
        gs_btf_records_deinit(&first);
    }
    if (!ok) {
        return NULL;
    }
    b = make(&rec);
    b->base = gs_btf_ref(base);
    return b;
}

bool gs_btf_is_empty(const GsBtf *btf)
{
    return btf->rec.n <= MAX(btf->rec.first, 1);    /* type 0 is void */
}

static GsBtf *try_at(const uint8_t *data, size_t len, size_t takes,
                     size_t *room, bool *left_out)
{
    GsBtf *btf;

    if (takes > *room) {
        *left_out = true;
        return NULL;
    }
    *room -= takes;
    btf = gs_btf_new(data, len, NULL);
    if (btf && gs_btf_is_empty(btf)) {
        g_clear_pointer(&btf, gs_btf_free);
    }
    return btf;
}

/* An image may have BTF of programs inside: the kernel's own is larger. */
static void keep_larger(GsBtf **best, GsBtf *btf)
{
    if (btf && *best && (*best)->rec.n >= btf->rec.n) {
        gs_btf_free(btf);
    } else if (btf) {
        gs_btf_free(*best);
        *best = btf;
    }
}

/* Both lengths of a header: without the place of a layout table, and with. */
static bool has_header_len(const uint8_t *at, size_t len)
{
    return len >= GS_BTF_HEADER && (at[4] == 24 || at[4] == 32) &&
           !(at[5] | at[6] | at[7]);
}

GsBtf *gs_btf_search(const uint8_t *data, size_t len, size_t *room,
                     bool *left_out)
{
    static const uint8_t head[] = { 0x9f, 0xeb, 1, 0 };
    const uint8_t *end = data + len, *hit = data;
    GsBtf *best = NULL;

    while ((hit = memmem(hit, end - hit, head, sizeof(head)))) {
        size_t used, step = sizeof(head);

        if (has_header_len(hit, end - hit) &&
            gs_btf_header_check(hit, end - hit, &used, NULL)) {
            GsBtf *btf = try_at(hit, end - hit, MAX(used, TRY_BYTES), room,
                                left_out);

            step = btf ? used : step;
            keep_larger(&best, btf);
        }
        hit += step;
    }
    *left_out &= !best;
    return best;
}

GsBtf *gs_btf_ref(GsBtf *b)
{
    g_atomic_ref_count_inc(&b->owners);
    return b;
}

void gs_btf_free(GsBtf *b)
{
    while (b && g_atomic_ref_count_dec(&b->owners)) {
        GsBtf *base = b->base;

        g_hash_table_destroy(b->types);
        gs_btf_functions_free(b->later->functions);
        g_free(b->later->gfp_names);
        g_free(b->later);
        gs_btf_records_deinit(&b->rec);
        g_free(b);
        b = base;                       /* its share is dropped, too */
    }
}

/* Host memory for one type, in addition to the BTF itself: its place, and a
 * share of the table of names. */
#define TYPE_MORE 40

size_t gs_btf_bytes(const GsBtf *b)
{
    return b->rec.bytes + (size_t)(b->rec.n - b->rec.first) * TYPE_MORE;
}

const GsBtfRecords *gs_btf_records(const GsBtf *b)
{
    return &b->rec;
}

const uint32_t *gs_btf_functions(const GsBtf *b, const char *name, unsigned *n)
{
    if (g_once_init_enter(&b->later->functions)) {
        g_once_init_leave(&b->later->functions,
                          gs_btf_functions_new(&b->rec));
    }
    return gs_btf_functions_find(b->later->functions, name, n);
}

const GsGfpNames *gs_btf_gfp_names(const GsBtf *b)
{
    b = b->base ? b->base : b;
    if (g_once_init_enter(&b->later->gfp_names)) {
        g_once_init_leave(&b->later->gfp_names, gs_gfp_names_new(&b->rec));
    }
    return b->later->gfp_names;
}

/* ---- members ---- */

/* Follow typedefs and qualifiers. Return false if there is no struct or union
 * behind them. */
static bool composite(const GsBtf *b, uint32_t id, GsBtfType *t)
{
    return gs_btf_real(&b->rec, &id, t) && gs_btf_is_composite(t);
}

/* Find @name in the type at @found and in its anonymous members. */
static bool find_member(const GsBtf *b, const char *name, GsBtfPlace *found)
{
    GsBtfPlace todo[NESTING_MAX] = { *found };
    unsigned n_todo = 1, left = MEMBERS_MAX;

    while (n_todo) {
        GsBtfPlace at = todo[--n_todo];
        GsBtfType t;
        unsigned n = composite(b, at.type, &t) ? t.vlen : 0;

        for (unsigned i = 0; i < n; i++) {
            GsBtfMember m = gs_btf_nth_member(&t, i);
            const char *member = gs_btf_name(&b->rec, m.name);

            if (!left--) {
                return false;
            }
            if (!strcmp(member, name)) {
                bool is_bits = gs_btf_is_bit_field(&b->rec, &m);

                *found = (GsBtfPlace) { m.type, at.bit + m.bit,
                                        is_bits ? MAX(m.bits, 1) : 0 };
                return true;
            }
            if (!*member && n_todo < NESTING_MAX) {
                todo[n_todo++] = (GsBtfPlace) { m.type, at.bit + m.bit, 0 };
            }
        }
    }
    return false;
}

bool gs_btf_find_path(const GsBtf *b, const char *path, GsBtfPlace *place)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", PATH_MAX_PARTS);

    for (char **part = parts; *part; part++) {
        if (!**part || place->bits || !find_member(b, *part, place)) {
            return false;
        }
    }
    return *parts != NULL;
}

static bool type_named(const GsBtf *b, const char *name, uint32_t *id)
{
    *id = GPOINTER_TO_UINT(g_hash_table_lookup(b->types, name));
    if (!*id && b->base) {
        *id = GPOINTER_TO_UINT(g_hash_table_lookup(b->base->types, name));
    }
    return *id != 0;
}

bool gs_btf_find_type(const GsBtf *b, const char *name, uint32_t *id)
{
    return type_named(b, name, id);
}

bool gs_btf_member(const GsBtf *b, const char *type, const char *member,
                   uint32_t *offset, uint32_t *size)
{
    GsBtfPlace place = { 0 };
    uint32_t bytes;

    if (!type_named(b, type, &place.type) ||
        !gs_btf_find_path(b, member, &place) || place.bits ||
        !gs_btf_size(&b->rec, place.type, &bytes) ||
        place.bit / 8 + bytes > MEMBER_END_MAX) {
        return false;
    }
    *offset = place.bit / 8;
    if (size) {
        *size = bytes;
    }
    return true;
}

bool gs_btf_bit_field(const GsBtf *b, const char *type, const char *member,
                      uint32_t *bit, uint32_t *bits)
{
    GsBtfPlace place = { 0 };

    if (!type_named(b, type, &place.type) ||
        !gs_btf_find_path(b, member, &place) || !place.bits ||
        place.bit / 8 + sizeof(uint64_t) > MEMBER_END_MAX) {
        return false;
    }
    *bit = place.bit;
    *bits = place.bits;
    return true;
}

bool gs_btf_type_size(const GsBtf *b, const char *type, uint32_t *size)
{
    uint32_t id;

    return type_named(b, type, &id) && gs_btf_size(&b->rec, id, size);
}

/* Descend into an array: set *@id to the element's type and *@off to the offset
 * in the element. */
static bool enter_array(const GsBtf *b, uint32_t *id, uint32_t *off,
                        GString *path)
{
    uint32_t real = *id, size;
    GsBtfType t;

    if (!gs_btf_real(&b->rec, &real, &t) || t.kind != GS_BTF_ARRAY ||
        !gs_btf_size(&b->rec, gs_btf_word(&t, 0), &size) || !size) {
        return false;
    }
    g_string_append_printf(path, "[%u]", *off / size);
    *off %= size;
    *id = gs_btf_word(&t, 0);
    return true;
}

/* Descend into the member that covers *@off, in the same way. *@left bounds the
 * number of members that are examined. */
static bool enter_member(const GsBtf *b, uint32_t *id, uint32_t *off,
                         unsigned *left, GString *path)
{
    GsBtfType t;
    unsigned n = composite(b, *id, &t) ? t.vlen : 0;

    for (unsigned i = 0; i < n && *left; i++, --*left) {
        GsBtfMember m = gs_btf_nth_member(&t, i);
        uint32_t begin = m.bit / 8, size;
        const char *name = gs_btf_name(&b->rec, m.name);

        if (begin > *off || gs_btf_is_bit_field(&b->rec, &m) ||
            !gs_btf_size(&b->rec, m.type, &size) || *off - begin >= size) {
            continue;
        }
        if (*name) {
            g_string_append_printf(path, "%s%.*s", path->len ? "." : "",
                                   GS_SYMBOL_NAME_MAX, name);
        }
        *off -= begin;
        *id = m.type;
        return true;
    }
    return false;
}

char *gs_btf_member_at(const GsBtf *b, const char *type, uint32_t offset)
{
    g_autoptr(GString) path = g_string_new(NULL);
    unsigned left = MEMBERS_MAX;
    uint32_t id;

    if (!type_named(b, type, &id)) {
        return NULL;
    }
    for (unsigned depth = 0; depth < PATH_MAX_PARTS; depth++) {
        if (!enter_member(b, &id, &offset, &left, path) &&
            !enter_array(b, &id, &offset, path)) {
            break;
        }
    }
    if (!path->len) {
        return NULL;
    }
    if (offset) {
        g_string_append_printf(path, "+0x%x", offset);
    }
    return g_string_free(g_steal_pointer(&path), FALSE);
}

/* ---- enumerators, parameters ---- */

/* Return name and bits of enumerator @i. One of 64 bits has three words: name,
 * low half, high half. */
static uint32_t enumerator(const GsBtfType *t, uint32_t i, uint64_t *bits)
{
    size_t at;

    if (t->kind == GS_BTF_ENUM64) {
        at = i * 3ul;
        *bits = gs_btf_word(t, at + 1) |
                (uint64_t)gs_btf_word(t, at + 2) << 32;
    } else {
        at = i * 2ul;
        *bits = gs_btf_word(t, at + 1);
    }
    return gs_btf_word(t, at);
}

/*
 * Since 6.0 (commit 6089fb325cf7) kind_flag says whether an enum is signed. In
 * older BTF the flag is never set; a value with the top bit set is then taken
 * as negative.
 */
static int64_t enum_value(const GsBtfType *t, uint64_t bits, bool has_signs)
{
    if (t->kind != GS_BTF_ENUM64 && (t->flag || !has_signs)) {
        return (int32_t)bits;
    }
    return (int64_t)bits;
}

bool gs_btf_enums_have_signs(const GsBtf *b)
{
    GsBtfType t;

    for (uint32_t id = 1; id < b->rec.n; id++) {
        if (gs_btf_type(&b->rec, id, &t) && gs_btf_is_enum(&t) && t.flag) {
            return true;
        }
    }
    return false;
}

static bool find_enumerator(const GsBtf *b, const GsBtfType *t,
                            const char *name, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->vlen; i++) {
        if (!strcmp(gs_btf_name(&b->rec, enumerator(t, i, bits)), name)) {
            return true;
        }
    }
    return false;
}

bool gs_btf_enum_value(const GsBtf *b, const char *name, int64_t *value)
{
    uint32_t n = *name ? b->rec.n : 0;
    uint64_t bits;
    GsBtfType t;

    for (uint32_t id = 1; id < n; id++) {
        if (gs_btf_type(&b->rec, id, &t) && gs_btf_is_enum(&t) &&
            find_enumerator(b, &t, name, &bits)) {
            *value = enum_value(&t, bits, gs_btf_enums_have_signs(b));
            return true;
        }
    }
    return false;
}

const char *gs_btf_enumerator(const GsBtf *b, const GsBtfType *t,
                              uint64_t value)
{
    bool is_wide = t->kind == GS_BTF_ENUM64;
    uint64_t bits;

    for (uint32_t i = 0; i < MIN(t->vlen, ENUM_MAX); i++) {
        uint32_t name = enumerator(t, i, &bits);

        if (is_wide ? bits == value : bits == (uint32_t)value) {
            return gs_btf_name(&b->rec, name);
        }
    }
    return NULL;
}

/* Find the prototype of a function, one by one: hooks need a few in each boot,
 * and to sort all functions takes longer. */
static bool find_prototype(const GsBtf *b, const char *func, GsBtfType *proto)
{
    GsBtfType t;

    for (uint32_t id = 1; id < b->rec.n; id++) {
        if (gs_btf_type(&b->rec, id, &t) && t.kind == GS_BTF_FUNC &&
            !strcmp(gs_btf_name(&b->rec, t.name), func)) {
            return gs_btf_type(&b->rec, t.word, proto) &&
                   proto->kind == GS_BTF_FUNC_PROTO;
        }
    }
    return false;
}

int gs_btf_func_param(const GsBtf *b, const char *func, const char *param)
{
    GsBtfType proto;
    uint32_t n = find_prototype(b, func, &proto) ? proto.vlen : 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!strcmp(gs_btf_name(&b->rec, gs_btf_word(&proto, i * 2ul)),
                    param)) {
            return i;
        }
    }
    return -1;
}
