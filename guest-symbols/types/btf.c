/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of one kernel build, see btf.h. kernel-open.c makes a GsBtf when it
 * opens a kernel; any thread asks. Nothing changes after gs_btf_new(): no
 * locks.
 *
 * libbpf keeps the types. A hash table from names to type ids makes a lookup
 * by name O(1): libbpf's own search compares every name. Enumerators, of which
 * a kernel has more than types, are needed two or three times a boot: they are
 * searched one by one.
 *
 * libbpf checks the sizes of type records, but trusts the header and copies
 * everything before it checks. So the header is checked here first.
 */
#include "guest-symbols/types/btf.h"
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/base/lock.h"
#include "guest-symbols/base/name-hash.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <string.h>

#define NESTING_MAX     64      /* anonymous structs waiting to be searched */
#define MEMBERS_MAX     4096    /* looked at in one search */
#define PATH_MAX_PARTS  16
#define MEMBER_END_MAX  (1u << 20)      /* no kernel has such a struct */
#define BYTES_MAX       (64u << 20)
#define TRY_BYTES       4096    /* what a try costs at least */

struct GsBtf {
    struct btf *btf;
    GHashTable *types;          /* name -> id of struct, union or typedef */
};

/* A member that was found: its type, and where it begins. */
typedef struct Found {
    uint32_t type;
    uint64_t bits;
} Found;

/* Check the header. @used: (out) bytes of header, types and names together;
 * what is behind them is ignored. */
static bool check_header(const uint8_t *data, size_t len, size_t *used,
                         GError **errp)
{
    uint64_t hdr_len, type_off, type_len, str_off, str_len;
    unsigned magic, version;
    GsBytes c;

    gs_bytes_init(&c, data, len, "BTF header");
    magic = gs_bytes_u16(&c);
    version = gs_bytes_u8(&c);
    gs_bytes_u8(&c);
    hdr_len = gs_bytes_u32(&c);
    type_off = gs_bytes_u32(&c);
    type_len = gs_bytes_u32(&c);
    str_off = gs_bytes_u32(&c);
    str_len = gs_bytes_u32(&c);
    if (!gs_bytes_check(&c, errp)) {
        return false;
    }
    if (magic != BTF_MAGIC || version != BTF_VERSION ||
        hdr_len < sizeof(struct btf_header) || !str_len || type_off % 4 ||
        type_off + type_len > str_off || hdr_len + str_off + str_len > len ||
        hdr_len + str_off + str_len > BYTES_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "BTF: magic 0x%x, version %u or the sizes in the header "
                    "are wrong", magic, version);
        return false;
    }
    *used = hdr_len + str_off + str_len;
    if (data[hdr_len + str_off] || data[*used - 1]) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "BTF: the names are not where the header says");
        return false;
    }
    return true;
}

/* Parse BTF with libbpf's messages switched off: libbpf prints a line on stderr
 * for each type that it refuses. The print function is one for the process, and
 * QEMU may use the same libbpf, so the old function is restored afterwards. */
static struct btf *parse(const uint8_t *data, size_t len)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    libbpf_print_fn_t print;
    struct btf *btf;
    GS_HOLD(&lock);

    print = libbpf_set_print(NULL);
    btf = btf__new(data, len);
    libbpf_set_print(print);
    return btf;
}

static const char *name_of(const GsBtf *b, uint32_t off)
{
    const char *name = btf__name_by_offset(b->btf, off);

    return name ? name : "";
}

/* Return name and bits of enumerator @i. A struct btf_enum64 has three words:
 * name, low half, high half. */
static uint32_t enumerator(const struct btf_type *t, unsigned i,
                           uint64_t *bits)
{
    const uint32_t *words = (const uint32_t *)(t + 1);

    if (btf_is_enum64(t)) {
        words += i * 3;
        *bits = words[1] | (uint64_t)words[2] << 32;
    } else {
        words += i * 2;
        *bits = words[1];
    }
    return words[0];
}

static void index_types(GsBtf *b, bool (*wanted)(const struct btf_type *t))
{
    for (uint32_t id = btf__type_cnt(b->btf); --id > 0;) {
        const struct btf_type *t = btf__type_by_id(b->btf, id);
        const char *name = t && wanted(t) ? name_of(b, t->name_off) : "";

        if (*name) {
            g_hash_table_insert(b->types, (char *)name, GUINT_TO_POINTER(id));
        }
    }
}

static bool is_typedef(const struct btf_type *t)
{
    return btf_is_typedef(t);
}

static bool is_composite(const struct btf_type *t)
{
    return btf_is_composite(t);
}

/* Add a name to the index. A struct or union replaces a typedef of that name.
 * Types are added from the last to the first, so the first one of each kind
 * remains. */
static void index_names(GsBtf *b)
{
    b->types = g_hash_table_new(gs_name_hash_str, g_str_equal);
    index_types(b, is_typedef);
    index_types(b, is_composite);
}

GsBtf *gs_btf_new(const uint8_t *data, size_t len, GError **errp)
{
    GsBtf *b;
    struct btf *btf;
    size_t used;

    if (!check_header(data, len, &used, errp)) {
        return NULL;
    }
    btf = parse(data, used);
    if (!btf) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "BTF: %zu bytes with inconsistent types", len);
        return NULL;
    }
    btf__set_pointer_size(btf, 8);
    b = g_new0(GsBtf, 1);
    b->btf = btf;
    index_names(b);
    return b;
}

static GsBtf *try_at(const uint8_t *data, size_t len, size_t takes,
                     size_t *room, bool *left_out)
{
    if (takes > *room) {
        *left_out = true;
        return NULL;
    }
    *room -= takes;
    return gs_btf_new(data, len, NULL);
}

GsBtf *gs_btf_search(const uint8_t *data, size_t len, size_t *room,
                     bool *left_out)
{
    static const uint8_t head[] = { 0x9f, 0xeb, 1, 0, 24, 0, 0, 0 };
    const uint8_t *end = data + len, *hit = data;
    GsBtf *btf = NULL;

    while (!btf && (hit = memmem(hit, end - hit, head, sizeof(head)))) {
        size_t used;

        if (check_header(hit, end - hit, &used, NULL)) {
            btf = try_at(hit, end - hit, MAX(used, TRY_BYTES), room, left_out);
        }
        hit += sizeof(head);
    }
    return btf;
}

void gs_btf_free(GsBtf *b)
{
    if (!b) {
        return;
    }
    g_hash_table_destroy(b->types);
    btf__free(b->btf);
    g_free(b);
}

/* Host memory for one type, in addition to the BTF itself: a row of libbpf's
 * index and one of ours. */
#define TYPE_MORE 40

size_t gs_btf_bytes(const GsBtf *b)
{
    uint32_t len = 0;

    btf__raw_data(b->btf, &len);
    return len + (size_t)btf__type_cnt(b->btf) * TYPE_MORE;
}

/* ---- members ---- */

/* Follow typedefs and qualifiers. Return the struct or union, or NULL. */
static const struct btf_type *composite(const GsBtf *b, uint32_t id)
{
    int real = btf__resolve_type(b->btf, id);
    const struct btf_type *t = real > 0 ? btf__type_by_id(b->btf, real)
                                        : NULL;

    return t && btf_is_composite(t) ? t : NULL;
}

static bool is_bit_field(const GsBtf *b, const struct btf_type *t, unsigned i)
{
    const struct btf_member *m = &btf_members(t)[i];
    int real = btf__resolve_type(b->btf, m->type);
    const struct btf_type *type = real > 0 ? btf__type_by_id(b->btf, real)
                                           : NULL;

    return btf_member_bitfield_size(t, i) || btf_member_bit_offset(t, i) % 8 ||
           (type && btf_is_int(type) &&
            (btf_int_bits(type) != type->size * 8 || btf_int_offset(type)));
}

/* Find @name in the type at @found and in its anonymous members. */
static bool find_member(const GsBtf *b, const char *name, Found *found)
{
    Found todo[NESTING_MAX] = { *found };
    unsigned n_todo = 1, left = MEMBERS_MAX;

    while (n_todo) {
        Found at = todo[--n_todo];
        const struct btf_type *t = composite(b, at.type);
        unsigned n = t ? btf_vlen(t) : 0;

        for (unsigned i = 0; i < n; i++) {
            const struct btf_member *m = &btf_members(t)[i];
            const char *member = name_of(b, m->name_off);
            Found in = { m->type, at.bits + btf_member_bit_offset(t, i) };

            if (!left--) {
                return false;
            }
            if (!strcmp(member, name)) {
                *found = in;
                return !is_bit_field(b, t, i);
            }
            if (!*member && n_todo < NESTING_MAX) {
                todo[n_todo++] = in;
            }
        }
    }
    return false;
}

static bool type_named(const GsBtf *b, const char *name, uint32_t *id)
{
    *id = GPOINTER_TO_UINT(g_hash_table_lookup(b->types, name));
    return *id != 0;
}

static bool size_of(const GsBtf *b, uint32_t id, uint32_t *size)
{
    int64_t n = btf__resolve_size(b->btf, id);

    if (n < 0 || n > UINT32_MAX) {
        return false;
    }
    *size = n;
    return true;
}

bool gs_btf_member(const GsBtf *b, const char *type, const char *member,
                   uint32_t *offset, uint32_t *size)
{
    g_auto(GStrv) parts = g_strsplit(member, ".", PATH_MAX_PARTS);
    Found found = { 0 };
    uint32_t bytes;

    if (!*member || !type_named(b, type, &found.type)) {
        return false;
    }
    for (char **part = parts; *part; part++) {
        if (!**part || !find_member(b, *part, &found)) {
            return false;
        }
    }
    if (!size_of(b, found.type, &bytes) ||
        found.bits / 8 + bytes > MEMBER_END_MAX) {
        return false;
    }
    *offset = found.bits / 8;
    if (size) {
        *size = bytes;
    }
    return true;
}

bool gs_btf_type_size(const GsBtf *b, const char *type, uint32_t *size)
{
    uint32_t id;

    return type_named(b, type, &id) && size_of(b, id, size);
}

/* Descend into an array: set *@id to the element's type and *@off to the offset
 * in the element. */
static bool enter_array(const GsBtf *b, uint32_t *id, uint32_t *off,
                        GString *path)
{
    int real = btf__resolve_type(b->btf, *id);
    const struct btf_type *t = real > 0 ? btf__type_by_id(b->btf, real)
                                        : NULL;
    uint32_t size;

    if (!t || !btf_is_array(t) || !size_of(b, btf_array(t)->type, &size) ||
        !size) {
        return false;
    }
    g_string_append_printf(path, "[%u]", *off / size);
    *off %= size;
    *id = btf_array(t)->type;
    return true;
}

/* Descend into the member that covers *@off, in the same way. *@left bounds the
 * number of members that are examined. */
static bool enter_member(const GsBtf *b, uint32_t *id, uint32_t *off,
                         unsigned *left, GString *path)
{
    const struct btf_type *t = composite(b, *id);
    unsigned n = t ? btf_vlen(t) : 0;

    for (unsigned i = 0; i < n && *left; i++, --*left) {
        const struct btf_member *m = &btf_members(t)[i];
        uint32_t begin = btf_member_bit_offset(t, i) / 8, size;
        const char *name = name_of(b, m->name_off);

        if (begin > *off || is_bit_field(b, t, i) ||
            !size_of(b, m->type, &size) || *off - begin >= size) {
            continue;
        }
        if (*name) {
            g_string_append_printf(path, "%s%.*s", path->len ? "." : "",
                                   GS_SYMBOL_NAME_MAX, name);
        }
        *off -= begin;
        *id = m->type;
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

/* ---- enumerators ---- */

/*
 * Since 6.0 (commit 6089fb325cf7) kind_flag says whether an enum is signed. In
 * older BTF the flag is never set; a value with the top bit set is then taken
 * as negative.
 */
static int64_t enum_value(const struct btf_type *t, uint64_t bits,
                          bool has_signs)
{
    if (!btf_is_enum64(t) && (btf_kflag(t) || !has_signs)) {
        return (int32_t)bits;
    }
    return (int64_t)bits;
}

/* Return true if kind_flag of enums is meaningful in this BTF. */
static bool enums_have_signs(const GsBtf *b)
{
    uint32_t n = btf__type_cnt(b->btf);

    for (uint32_t id = 1; id < n; id++) {
        const struct btf_type *t = btf__type_by_id(b->btf, id);

        if (t && btf_is_any_enum(t) && btf_kflag(t)) {
            return true;
        }
    }
    return false;
}

static bool find_enumerator(const GsBtf *b, const struct btf_type *t,
                            const char *name, uint64_t *bits)
{
    for (unsigned i = 0; i < btf_vlen(t); i++) {
        if (!strcmp(name_of(b, enumerator(t, i, bits)), name)) {
            return true;
        }
    }
    return false;
}

bool gs_btf_enum_value(const GsBtf *b, const char *name, int64_t *value)
{
    uint32_t n = *name ? btf__type_cnt(b->btf) : 0;
    uint64_t bits;

    for (uint32_t id = 1; id < n; id++) {
        const struct btf_type *t = btf__type_by_id(b->btf, id);

        if (t && btf_is_any_enum(t) && find_enumerator(b, t, name, &bits)) {
            *value = enum_value(t, bits, enums_have_signs(b));
            return true;
        }
    }
    return false;
}

int gs_btf_func_param(const GsBtf *b, const char *func, const char *param)
{
    int id = btf__find_by_name_kind(b->btf, func, BTF_KIND_FUNC);
    const struct btf_type *t = id > 0 ? btf__type_by_id(b->btf, id) : NULL;
    const struct btf_param *p;

    t = t ? btf__type_by_id(b->btf, t->type) : NULL;
    if (!t || !btf_is_func_proto(t)) {
        return -1;
    }
    p = btf_params(t);
    for (int i = 0; i < btf_vlen(t); i++) {
        if (!strcmp(name_of(b, p[i].name_off), param)) {
            return i;
        }
    }
    return -1;
}
