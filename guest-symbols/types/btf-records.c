/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of a .BTF section, see btf-records.h. */
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/base/bytes.h"

#define VERSION         1
#define HEADER_LAYOUT   32              /* bytes of a header with layout */
#define BYTES_MAX       (64u << 20)
#define RECORD          12              /* bytes that every record has */
#define CHAIN_MAX       32              /* typedefs, qualifiers, arrays */
#define POINTER         8

const GsBtfShape gs_btf_shapes[GS_BTF_KINDS] = {
    [GS_BTF_INT] = { .once = 1 },
    [GS_BTF_PTR] = { .refers = true },
    [GS_BTF_ARRAY] = { .once = 3, .ids = 3 },
    [GS_BTF_STRUCT] = { .each = 3, .names = 1, .ids = 2 },
    [GS_BTF_UNION] = { .each = 3, .names = 1, .ids = 2 },
    [GS_BTF_ENUM] = { .each = 2, .names = 1 },
    [GS_BTF_TYPEDEF] = { .refers = true },
    [GS_BTF_VOLATILE] = { .refers = true },
    [GS_BTF_CONST] = { .refers = true },
    [GS_BTF_RESTRICT] = { .refers = true },
    [GS_BTF_FUNC] = { .refers = true },
    [GS_BTF_FUNC_PROTO] = { .refers = true, .each = 2, .names = 1, .ids = 2 },
    [GS_BTF_VAR] = { .refers = true, .once = 1 },
    [GS_BTF_DATASEC] = { .each = 3, .ids = 1 },
    [GS_BTF_DECL_TAG] = { .refers = true, .once = 1 },
    [GS_BTF_TYPE_TAG] = { .refers = true },
    [GS_BTF_ENUM64] = { .each = 3, .names = 1 },
};

/* ---- the header ---- */

/* A part of the section: offset behind the header, and length. */
typedef struct Part {
    uint64_t off, len;
} Part;

typedef struct Header {
    unsigned magic, version;
    uint64_t len;
    Part types, names, layout;
} Header;

static Part read_part(GsBytes *c)
{
    Part p = { .off = gs_bytes_u32(c) };

    p.len = gs_bytes_u32(c);
    return p;
}

static bool read_header(Header *h, const uint8_t *data, size_t len,
                        GError **errp)
{
    GsBytes c;

    gs_bytes_init(&c, data, len, "BTF header");
    h->magic = gs_bytes_u16(&c);
    h->version = gs_bytes_u8(&c);
    gs_bytes_u8(&c);                    /* flags */
    h->len = gs_bytes_u32(&c);
    h->types = read_part(&c);
    h->names = read_part(&c);
    h->layout = (Part) { 0 };
    if (h->len >= HEADER_LAYOUT) {
        h->layout = read_part(&c);
    }
    return gs_bytes_check(&c, errp);
}

static uint64_t part_end(const Part *p)
{
    return p->off + p->len;
}

static uint64_t header_end(const Header *h)
{
    return h->len + MAX(part_end(&h->names), part_end(&h->layout));
}

/* The layout table is between types and names, or there is none. @split: types
 * that continue others may add no name */
static bool sizes_fit(const Header *h, size_t len, bool split)
{
    return h->len >= GS_BTF_HEADER && (h->names.len || split) &&
           !(h->types.off % 4) && !(h->len % 4) &&
           part_end(&h->types) <= h->names.off &&
           !(h->layout.off % 4) && header_end(h) <= len &&
           header_end(h) <= BYTES_MAX;
}

/* The first name is "", except for types that continue others. */
static bool names_fit(const Header *h, const uint8_t *names, bool split)
{
    return !h->names.len ||
           ((split || !names[0]) && !names[h->names.len - 1]);
}

static bool check_header(Header *h, const uint8_t *data, size_t len,
                         bool split, GError **errp)
{
    if (!read_header(h, data, len, errp)) {
        return false;
    }
    if (h->magic != GS_BTF_MAGIC || h->version != VERSION ||
        !sizes_fit(h, len, split)) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "BTF: magic 0x%x, version %u or the sizes in the header "
                       "are wrong", h->magic, h->version);
    }
    if (!names_fit(h, data + h->len + h->names.off, split)) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "BTF: the names are not where the header says");
    }
    return true;
}

bool gs_btf_header_check(const uint8_t *data, size_t len, size_t *used,
                         GError **errp)
{
    Header h;

    if (!check_header(&h, data, len, false, errp)) {
        return false;
    }
    *used = header_end(&h);
    return true;
}

/* ---- the index ---- */

/* The type section, and the layout table that has the size of each kind. */
typedef struct Walk {
    const uint32_t *types;
    uint32_t n_words;
    const uint8_t *layout;      /* rows of { once, each, flags, flags } */
    size_t n_layout;
} Walk;

/* Return false if nothing says how long records of @kind are. All sizes are
 * whole words. */
static bool shape_of(const Walk *w, unsigned kind, GsBtfShape *out)
{
    const uint8_t *row = w->layout + kind * 4ul;

    if (kind < GS_BTF_KINDS) {
        *out = gs_btf_shapes[kind];
        return true;
    }
    if (kind >= w->n_layout) {
        return false;
    }
    *out = (GsBtfShape) { .once = row[0] / 4, .each = row[1] / 4 };
    return !(row[0] % 4) && !(row[1] % 4);
}

static unsigned kind_of(uint32_t info)
{
    return info >> 24 & 0x7f;
}

static uint32_t vlen_of(uint32_t info)
{
    return info & 0xffffff;
}

/* Find the record behind the one at word @at. *@next: 0 if its kind is unknown.
 * Returns: false if the record does not fit in the section, or is void. */
static bool find_next(const Walk *w, uint32_t at, uint32_t *next)
{
    uint32_t info;
    uint64_t words;
    GsBtfShape s;

    *next = 0;
    if (w->n_words - at < RECORD / 4) {
        return false;
    }
    info = GUINT32_FROM_LE(w->types[at + 1]);
    if (!shape_of(w, kind_of(info), &s)) {
        return true;
    }
    if (kind_of(info) == GS_BTF_VOID) {
        return false;
    }
    words = RECORD / 4 + s.once + (uint64_t)s.each * vlen_of(info);
    if (words > w->n_words - at) {
        return false;
    }
    *next = at + words;
    return true;
}

static bool index_records(GsBtfRecords *r, const Walk *w, GError **errp)
{
    g_autoptr(GArray) at = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t here = 0, next;

    if (!r->base) {
        g_array_append_val(at, here);
    }
    while (here < w->n_words) {
        if (!find_next(w, here, &next)) {
            return gs_fail(errp, GS_ERROR_FORMAT,
                           "BTF: type %u is longer than what is left of the "
                           "types, or of kind 0", r->first + at->len);
        }
        if (!next) {
            break;
        }
        g_array_append_val(at, here);
        here = next;
    }
    r->n = r->first + at->len;
    r->at = (uint32_t *)g_array_free(g_steal_pointer(&at), FALSE);
    return true;
}

bool gs_btf_records_init_split(GsBtfRecords *r, const GsBtfRecords *base,
                               const uint8_t *data, size_t len, GError **errp)
{
    Header h;
    Walk w;

    *r = (GsBtfRecords) {
        .base = base, .first = base ? base->n : 0,
        .first_name = base ? base->names_len : 0,
    };
    if (!check_header(&h, data, len, base, errp)) {
        return false;
    }
    /* The first word of the copy is the first one of the types: aligned. */
    r->bytes = header_end(&h) - h.len;
    r->data = g_memdup2(data + h.len, r->bytes);
    r->types = r->data + h.types.off / 4;
    r->names = (const char *)r->data + h.names.off;
    r->names_len = h.names.len;
    w = (Walk) {
        .types = r->types, .n_words = h.types.len / 4,
        .layout = (const uint8_t *)r->data + h.layout.off,
        .n_layout = h.layout.len / 4,
    };
    if (!index_records(r, &w, errp)) {
        gs_btf_records_deinit(r);
        return false;
    }
    return true;
}

bool gs_btf_records_init(GsBtfRecords *r, const uint8_t *data, size_t len,
                         GError **errp)
{
    return gs_btf_records_init_split(r, NULL, data, len, errp);
}

void gs_btf_records_deinit(GsBtfRecords *r)
{
    g_free(r->data);
    g_free(r->joined);
    g_free(r->at);
    *r = (GsBtfRecords) { 0 };
}

/* ---- reading ---- */

bool gs_btf_type(const GsBtfRecords *r, uint32_t id, GsBtfType *out)
{
    const GsBtfRecords *in = id < r->first ? r->base : r;
    const uint32_t *at;
    uint32_t info;

    if (!id || id >= in->n) {
        return false;
    }
    at = in->types + in->at[id - in->first];
    info = GUINT32_FROM_LE(at[1]);
    *out = (GsBtfType) {
        .kind = kind_of(info), .flag = info >> 31, .vlen = vlen_of(info),
        .name = GUINT32_FROM_LE(at[0]), .word = GUINT32_FROM_LE(at[2]),
        .more = at + RECORD / 4,
    };
    return true;
}

static bool is_alias(const GsBtfType *t)
{
    return (t->kind >= GS_BTF_TYPEDEF && t->kind <= GS_BTF_RESTRICT) ||
           t->kind == GS_BTF_TYPE_TAG;
}

bool gs_btf_real(const GsBtfRecords *r, uint32_t *id, GsBtfType *out)
{
    for (unsigned i = 0; i < CHAIN_MAX; i++) {
        if (!gs_btf_type(r, *id, out)) {
            return false;
        }
        if (!is_alias(out)) {
            return true;
        }
        *id = out->word;
    }
    return false;
}

/* Return false if values of this kind have no size of their own. */
static bool own_size(const GsBtfType *t, uint64_t *size)
{
    switch (t->kind) {
    case GS_BTF_INT:
    case GS_BTF_STRUCT:
    case GS_BTF_UNION:
    case GS_BTF_ENUM:
    case GS_BTF_ENUM64:
    case GS_BTF_FLOAT:
        *size = t->word;
        return true;
    case GS_BTF_PTR:
        *size = POINTER;
        return true;
    default:
        return false;
    }
}

bool gs_btf_size(const GsBtfRecords *r, uint32_t id, uint32_t *size)
{
    uint64_t n = 1, one;
    GsBtfType t;

    for (unsigned i = 0; i < CHAIN_MAX; i++) {
        if (!gs_btf_real(r, &id, &t)) {
            return false;
        }
        if (own_size(&t, &one)) {
            *size = n * one;
            return one <= UINT32_MAX && n * one <= UINT32_MAX;
        }
        if (t.kind != GS_BTF_ARRAY) {
            return false;
        }
        n *= gs_btf_word(&t, 2);
        id = gs_btf_word(&t, 0);
        if (n > UINT32_MAX) {
            return false;
        }
    }
    return false;
}

/* Old bit fields have an int type that is not all of its bytes. */
static bool is_part_of_int(const GsBtfRecords *r, GsBtfMember *m)
{
    uint32_t id = m->type, code;
    GsBtfType t;

    if (!gs_btf_real(r, &id, &t) || t.kind != GS_BTF_INT) {
        return false;
    }
    code = gs_btf_word(&t, 0);          /* encoding, offset, 0, bits */
    if ((code & 0xff) == t.word * 8 && !(code >> 16 & 0xff)) {
        return false;
    }
    m->bit += code >> 16 & 0xff;
    m->bits = code & 0xff;
    return true;
}

bool gs_btf_is_bit_field(const GsBtfRecords *r, GsBtfMember *m)
{
    uint32_t size;

    if (m->bits || is_part_of_int(r, m)) {
        return true;
    }
    if (!(m->bit % 8)) {
        return false;
    }
    m->bits = gs_btf_size(r, m->type, &size) ? MIN(size, 8) * 8 : 0;
    return true;
}
