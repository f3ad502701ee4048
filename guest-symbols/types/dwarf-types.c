/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From DWARF to BTF, see dwarf-types.h.
 *
 * DWARF has the types of a header once for each file that includes it: a kernel
 * has thousands of units. So a type is known by what tells two types apart
 * without reading them: kind, name, size and line. Only the first one is read.
 *
 *     unit 1   struct page, 64 bytes, line 78     read: record 17
 *     unit 2   struct page, 64 bytes, line 78     known: record 17
 *     unit 3   struct page,  8 bytes, line 12     another one: record 901
 *
 * A struct gets its id when it is first met, and is read later, from a queue:
 * so a struct that leads to itself needs no recursion. Only chains of typedefs,
 * qualifiers and arrays are followed at once, to CHAIN_MAX.
 *
 * libdw reads the bytes.
 */
#include "guest-symbols/types/dwarf-types.h"
#include "guest-symbols/types/types-internal.h"
#include "guest-symbols/types/dwarf-facts.h"
#include "guest-symbols/base/name-hash.h"

#include <dwarf.h>

#define CHAIN_MAX       32
#define BYTES_MAX       (60u << 20)     /* of the section, see btf-records.c */
#define BIT_MAX         (1u << 24)      /* offset of a member with kind_flag */
#define NAMELESS        (1u << 31)      /* no line number */

/* What tells two types apart; zeros for what does not apply, see key_of(). */
typedef struct Key {
    uint32_t tag, name, size, line;
} Key;

/* A struct, union or enum that has an id and is not read yet. */
typedef struct Todo {
    Dwarf_Die die;
    uint32_t id;
} Todo;

typedef struct Types {
    GsBtfWriter *out;
    GHashTable *known;          /* Key -> id */
    GQueue todo;
    uint32_t pointer;
    unsigned n;                 /* structs and unions */
} Types;

/* ---- what is known ---- */

static guint hash_key(gconstpointer key)
{
    return gs_name_hash(key, sizeof(Key));
}

static gboolean equal_keys(gconstpointer a, gconstpointer b)
{
    return !memcmp(a, b, sizeof(Key));
}

/* Return the id of a key; *@is_new: it was just reserved. */
static uint32_t intern(Types *t, Key key, bool *is_new)
{
    uint32_t id = GPOINTER_TO_UINT(g_hash_table_lookup(t->known, &key));

    *is_new = !id;
    if (!id) {
        id = gs_btf_writer_reserve(t->out);
        g_hash_table_insert(t->known, g_memdup2(&key, sizeof(key)),
                            GUINT_TO_POINTER(id));
    }
    return id;
}

static void read_later(Types *t, const Dwarf_Die *die, uint32_t id)
{
    Todo *todo = g_new(Todo, 1);

    *todo = (Todo) { *die, id };
    g_queue_push_tail(&t->todo, todo);
}

/* Return the key of a struct, union or enum. Each source file that uses a type
 * describes it again, with the same key. A type without a name has a key of its
 * own: its place in the file. */
static Key key_of(Types *t, Dwarf_Die *die, const GsDwarfFacts *f)
{
    uint64_t at = (uintptr_t)die->addr;

    return f->name ? (Key) { dwarf_tag(die),
                             gs_btf_writer_name(t->out, f->name), f->size,
                             f->line } :
                     (Key) { dwarf_tag(die), 0, at, at >> 32 | NAMELESS };
}

/* Return an id for a struct, union or enum. */
static uint32_t intern_compound(Types *t, Dwarf_Die *die, const GsDwarfFacts *f)
{
    uint32_t id;
    bool is_new;

    if (!f->has_size || f->is_declaration) {
        return 0;
    }
    id = intern(t, key_of(t, die, f), &is_new);
    if (is_new) {
        read_later(t, die, id);
    }
    return id;
}

/* ---- types that are referred to ---- */

static uint32_t intern_int(Types *t, const GsDwarfFacts *f)
{
    bool is_new, sign = f->encoding == DW_ATE_signed ||
                        f->encoding == DW_ATE_signed_char;
    uint32_t name = gs_btf_writer_name(t->out, f->name);
    uint32_t code = (uint32_t)sign << 24 | (uint32_t)(f->size * 8 & 0xff);
    uint32_t id = intern(t, (Key) { DW_TAG_base_type, name, f->size,
                                    f->encoding }, &is_new);

    if (is_new) {
        gs_btf_writer_set(t->out, id, name, gs_btf_info(GS_BTF_INT, 0, false),
                          f->size, &code, 1);
    }
    return id;
}

static uint32_t array_of(Types *t, uint32_t element, uint64_t n)
{
    const uint32_t more[] = { element, 0, n };
    bool is_new;
    uint32_t id;

    if (n > UINT32_MAX) {
        return 0;
    }
    id = intern(t, (Key) { DW_TAG_array_type, element, n, 0 }, &is_new);
    if (is_new) {
        gs_btf_writer_set(t->out, id, 0, gs_btf_info(GS_BTF_ARRAY, 0, false),
                          0, more, G_N_ELEMENTS(more));
    }
    return id;
}

/* An array of several dimensions is one of all its elements: only its size and
 * place are asked for. */
static uint32_t intern_array(Types *t, Dwarf_Die *die, uint32_t element)
{
    uint64_t n = 1;
    Dwarf_Die range;

    for (bool more = gs_dwarf_child(die, &range); more && n <= UINT32_MAX;
          more = gs_dwarf_next(&range)) {
        GsDwarfFacts r = gs_dwarf_facts(&range);

        if (dwarf_tag(&range) == DW_TAG_subrange_type) {
            n *= r.has_upper ? MIN((uint64_t)r.upper + 1, UINT32_MAX) : 0;
        }
    }
    return array_of(t, element, n);
}

/* A type that refers to no other one, or whose parts are read later. */
static uint32_t intern_last(Types *t, Dwarf_Die *die, const GsDwarfFacts *f)
{
    switch (dwarf_tag(die)) {
    case DW_TAG_base_type:
        return intern_int(t, f);
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
        return intern_compound(t, die, f);
    case DW_TAG_pointer_type:
        return t->pointer;
    default:
        return 0;
    }
}

static bool is_qualifier(int tag)
{
    return tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
           tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

/* A type that refers to another one. @id: of a typedef; 0: it is an array */
typedef struct Link {
    Dwarf_Die die;
    uint32_t id, name;
} Link;

/* Follow what @die refers to. Return the id of the last type; the typedefs and
 * arrays before it are put into @chain. */
static uint32_t follow(Types *t, Dwarf_Die die, Link chain[CHAIN_MAX],
                       unsigned *n)
{
    for (unsigned i = 0; i < CHAIN_MAX; i++) {
        GsDwarfFacts f = gs_dwarf_facts(&die);
        int tag = dwarf_tag(&die);
        Link link = { .die = die };
        bool is_new = true;

        if (tag == DW_TAG_typedef) {
            link.name = gs_btf_writer_name(t->out, f.name);
            link.id = intern(t, (Key) { tag, link.name, 0, f.line }, &is_new);
        } else if (tag != DW_TAG_array_type && !is_qualifier(tag)) {
            return intern_last(t, &die, &f);
        }
        if (!is_new) {
            return link.id;
        }
        if (!is_qualifier(tag)) {
            chain[(*n)++] = link;
        }
        if (!gs_dwarf_target(&f, &die)) {
            return 0;
        }
    }
    return 0;
}

static uint32_t intern_die(Types *t, const Dwarf_Die *die)
{
    Link chain[CHAIN_MAX];
    unsigned n = 0;
    uint32_t id = follow(t, *die, chain, &n);

    while (n--) {
        Link *l = &chain[n];

        if (!l->id) {
            id = intern_array(t, &l->die, id);
            continue;
        }
        gs_btf_writer_set(t->out, l->id, l->name,
                          gs_btf_info(GS_BTF_TYPEDEF, 0, false), id, NULL, 0);
        id = l->id;
    }
    return id;
}

/* Return the id of the type that DW_AT_type refers to; 0 for void and for kinds
 * of types that are not converted. */
static uint32_t type_of(Types *t, GsDwarfFacts *f)
{
    Dwarf_Die die;

    return gs_dwarf_target(f, &die) ? intern_die(t, &die) : 0;
}

/* ---- structs, unions, enums ---- */

/* Return the bit that a member begins at, and for a bit field its bits. Before
 * DWARF 4 a bit field counts from the other end of its storage. */
static bool member_bits(const GsDwarfFacts *f, uint32_t type_size,
                        uint64_t *bit)
{
    uint64_t storage = (f->has_size ? f->size : type_size) * 8;

    *bit = f->has_place ? f->place * 8 : 0;
    if (f->has_data_bit) {
        *bit = f->data_bit;
    } else if (f->has_bit_offset) {
        *bit += storage - f->bit_offset - f->bit_size;
    }
    return *bit < BIT_MAX && f->bit_size < 256;
}

/* The size of a bit field's type; its storage may have one of its own. */
static uint32_t size_behind(GsDwarfFacts *f)
{
    GsDwarfFacts at = *f;
    Dwarf_Die die;

    for (unsigned i = 0; i < CHAIN_MAX && gs_dwarf_target(&at, &die); i++) {
        at = gs_dwarf_facts(&die);
        if (at.has_size) {
            return at.size;
        }
    }
    return 0;
}

static void put_member(Types *t, Dwarf_Die *die, GArray *words)
{
    GsDwarfFacts f = gs_dwarf_facts(die);
    uint32_t type = type_of(t, &f);
    uint64_t bit;

    if (type && member_bits(&f, f.bit_size ? size_behind(&f) : 0, &bit)) {
        const uint32_t row[] = {
            gs_btf_writer_name(t->out, f.name), type, f.bit_size << 24 | bit,
        };

        g_array_append_vals(words, row, G_N_ELEMENTS(row));
    }
}

static void put_compound(Types *t, Dwarf_Die *die, const GsDwarfFacts *f,
                         uint32_t id)
{
    GsBtfKind kind = dwarf_tag(die) == DW_TAG_union_type ? GS_BTF_UNION :
                                                           GS_BTF_STRUCT;
    g_autoptr(GArray) words = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Dwarf_Die member;

    for (bool more = gs_dwarf_child(die, &member); more;
          more = gs_dwarf_next(&member)) {
        if (dwarf_tag(&member) == DW_TAG_member) {
            put_member(t, &member, words);
        }
    }
    gs_btf_writer_set(t->out, id, gs_btf_writer_name(t->out, f->name),
                      gs_btf_info(kind, words->len / 3, true), f->size,
                      (uint32_t *)words->data, words->len);
    t->n++;
}

/* Each enumerator has 64 bits, so no sign is needed. */
static void put_enum(Types *t, Dwarf_Die *die, const GsDwarfFacts *f,
                     uint32_t id)
{
    g_autoptr(GArray) words = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Dwarf_Die one;

    for (bool more = gs_dwarf_child(die, &one); more;
          more = gs_dwarf_next(&one)) {
        GsDwarfFacts v = gs_dwarf_facts(&one);
        const uint32_t row[] = {
            gs_btf_writer_name(t->out, v.name), v.value,
            (uint64_t)v.value >> 32,
        };

        g_array_append_vals(words, row, G_N_ELEMENTS(row));
    }
    gs_btf_writer_set(t->out, id, gs_btf_writer_name(t->out, f->name),
                      gs_btf_info(GS_BTF_ENUM64, words->len / 3, true),
                      f->size, (uint32_t *)words->data, words->len);
}

static void read_todo(Types *t)
{
    Todo *todo;

    while ((todo = g_queue_pop_head(&t->todo))) {
        GsDwarfFacts f = gs_dwarf_facts(&todo->die);

        if (dwarf_tag(&todo->die) == DW_TAG_enumeration_type) {
            put_enum(t, &todo->die, &f, todo->id);
        } else {
            put_compound(t, &todo->die, &f, todo->id);
        }
        g_free(todo);
    }
}

/* ---- units ---- */

/* An enum without a name is known by its first enumerator. */
static void add_enum(Types *t, Dwarf_Die *die, const GsDwarfFacts *f)
{
    Dwarf_Die first;
    bool is_new;
    uint32_t id;

    if (f->name) {
        intern_compound(t, die, f);
    } else if (gs_dwarf_child(die, &first)) {
        id = intern(t, (Key) { DW_TAG_enumerator,
                               gs_btf_writer_name(t->out,
                                                  gs_dwarf_facts(&first).name),
                               f->size, f->line }, &is_new);
        if (is_new) {
            read_later(t, die, id);
        }
    }
}

static void put_function(Types *t, Dwarf_Die *die, uint32_t name, uint32_t id)
{
    g_autoptr(GArray) words = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Dwarf_Die param;
    uint32_t proto;

    for (bool more = gs_dwarf_child(die, &param); more;
          more = gs_dwarf_next(&param)) {
        if (dwarf_tag(&param) == DW_TAG_formal_parameter) {
            const uint32_t row[] = {
                gs_btf_writer_name(t->out, gs_dwarf_facts(&param).name), 0,
            };

            g_array_append_vals(words, row, G_N_ELEMENTS(row));
        }
    }
    proto = gs_btf_writer_add(t->out, 0,
                              gs_btf_info(GS_BTF_FUNC_PROTO, words->len / 2,
                                          false),
                              0, (uint32_t *)words->data, words->len);
    gs_btf_writer_set(t->out, id, name, gs_btf_info(GS_BTF_FUNC, 0, false),
                      proto, NULL, 0);
}

/* A declaration has no names of parameters. */
static void add_function(Types *t, Dwarf_Die *die, const GsDwarfFacts *f)
{
    uint32_t name, id;
    bool is_new;

    if (f->name && !f->is_declaration) {
        name = gs_btf_writer_name(t->out, f->name);
        id = intern(t, (Key) { DW_TAG_subprogram, name, 0, 0 }, &is_new);
        if (is_new) {
            put_function(t, die, name, id);
        }
    }
}

static void add_die(Types *t, Dwarf_Die *die)
{
    GsDwarfFacts f;

    switch (dwarf_tag(die)) {
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
        f = gs_dwarf_facts(die);
        if (f.name) {
            intern_compound(t, die, &f);
        }
        break;
    case DW_TAG_enumeration_type:
        f = gs_dwarf_facts(die);
        add_enum(t, die, &f);
        break;
    case DW_TAG_typedef:
        intern_die(t, die);
        break;
    case DW_TAG_subprogram:
        f = gs_dwarf_facts(die);
        add_function(t, die, &f);
        break;
    default:
        return;
    }
    read_todo(t);
}

static bool add_unit(Types *t, Dwarf_Die *unit)
{
    Dwarf_Die die;

    for (bool more = gs_dwarf_child(unit, &die); more;
          more = gs_dwarf_next(&die)) {
        add_die(t, &die);
        if (gs_btf_writer_bytes(t->out) > BYTES_MAX) {
            return false;
        }
    }
    return true;
}

static bool add_units(Types *t, Dwarf *dwarf, GError **errp)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die unit;

    while (!dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL)) {
        if (!add_unit(t, &unit)) {
            return gs_fail(errp, GS_ERROR_UNSUPPORTED,
                           "DWARF: the types have more than %u MiB", BYTES_MAX
                           >> 20);
        }
    }
    if (!t->n) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "DWARF: no types");
    }
    return t->n;
}

GByteArray *gs_dwarf_types(Elf *elf, GError **errp)
{
    g_autoptr(GsBtfWriter) out = gs_btf_writer_new();
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    Types t = {
        .out = out,
        .known = g_hash_table_new_full(hash_key, equal_keys, g_free, NULL),
        .todo = G_QUEUE_INIT,
    };
    GByteArray *raw = NULL;

    t.pointer = gs_btf_writer_add(out, 0, gs_btf_info(GS_BTF_PTR, 0, false), 0,
                                  NULL, 0);
    if (!dwarf) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "DWARF: %s",
                    dwarf_errmsg(-1));
    } else if (gs_dwarf_units_fit(dwarf, errp) &&
               add_units(&t, dwarf, errp)) {
        raw = gs_btf_writer_end(out);
    }
    g_hash_table_destroy(t.known);
    g_queue_clear_full(&t.todo, g_free);
    dwarf_end(dwarf);
    return raw;
}
