/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a .BTF section, see types-internal.h. */
#include "guest-symbols/types/types-internal.h"
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/base/name-hash.h"

/* Where the words of a record are; @n is 0 if it is reserved only. */
typedef struct Place {
    uint32_t at;
    uint32_t n;
} Place;

struct GsBtfWriter {
    GArray *words;              /* of records, in the order of writing */
    GArray *places;             /* by id; [0] is void */
    GByteArray *names;
    GHashTable *name_at;        /* name -> offset + 1 */
};

GsBtfWriter *gs_btf_writer_new(void)
{
    GsBtfWriter *w = g_new0(GsBtfWriter, 1);

    w->words = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    w->places = g_array_new(FALSE, TRUE, sizeof(Place));
    g_array_set_size(w->places, 1);
    w->names = g_byte_array_new();
    w->name_at = g_hash_table_new_full(gs_name_hash_str, g_str_equal, g_free,
                                       NULL);
    gs_btf_writer_name(w, "");
    return w;
}

void gs_btf_writer_free(GsBtfWriter *w)
{
    if (w) {
        g_array_unref(w->words);
        g_array_unref(w->places);
        g_byte_array_unref(w->names);
        g_hash_table_destroy(w->name_at);
        g_free(w);
    }
}

uint32_t gs_btf_writer_name(GsBtfWriter *w, const char *name)
{
    gpointer at = g_hash_table_lookup(w->name_at, name ? name : "");

    if (!at) {
        at = GUINT_TO_POINTER(w->names->len + 1);
        g_hash_table_insert(w->name_at, g_strdup(name), at);
        g_byte_array_append(w->names, (const uint8_t *)name, strlen(name) + 1);
    }
    return GPOINTER_TO_UINT(at) - 1;
}

uint32_t gs_btf_writer_reserve(GsBtfWriter *w)
{
    g_array_set_size(w->places, w->places->len + 1);
    return w->places->len - 1;
}

void gs_btf_writer_set(GsBtfWriter *w, uint32_t id, uint32_t name,
                       uint32_t info, uint32_t word, const uint32_t *more,
                       size_t n)
{
    const uint32_t head[] = { name, info, word };

    g_array_index(w->places, Place, id) =
        (Place) { w->words->len, G_N_ELEMENTS(head) + n };
    g_array_append_vals(w->words, head, G_N_ELEMENTS(head));
    if (n) {
        g_array_append_vals(w->words, more, n);
    }
}

uint32_t gs_btf_writer_add(GsBtfWriter *w, uint32_t name, uint32_t info,
                           uint32_t word, const uint32_t *more, size_t n)
{
    uint32_t id = gs_btf_writer_reserve(w);

    gs_btf_writer_set(w, id, name, info, word, more, n);
    return id;
}

size_t gs_btf_writer_bytes(const GsBtfWriter *w)
{
    return w->words->len * sizeof(uint32_t) + w->names->len;
}

static void put_records(GsBtfWriter *w, GsOut *out)
{
    for (uint32_t id = 1; id < w->places->len; id++) {
        Place p = g_array_index(w->places, Place, id);

        if (!p.n) {
            gs_btf_writer_set(w, id, 0, gs_btf_info(GS_BTF_FWD, 0, false), 0,
                              NULL, 0);
            p = g_array_index(w->places, Place, id);
        }
        for (uint32_t i = 0; i < p.n; i++) {
            gs_out_u32(out, g_array_index(w->words, uint32_t, p.at + i));
        }
    }
}

GByteArray *gs_btf_writer_end(GsBtfWriter *w)
{
    GByteArray *raw = g_byte_array_new();
    GsOut out = gs_out(raw);
    uint32_t types;

    gs_out_u32(&out, GS_BTF_MAGIC | 1 << 16);   /* version 1, no flags */
    gs_out_u32(&out, GS_BTF_HEADER);
    for (unsigned i = 0; i < 4; i++) {
        gs_out_u32(&out, 0);                    /* set below */
    }
    put_records(w, &out);
    types = raw->len - GS_BTF_HEADER;
    gs_out_bytes(&out, w->names->data, w->names->len);
    ((uint32_t *)raw->data)[3] = GUINT32_TO_LE(types);
    ((uint32_t *)raw->data)[4] = GUINT32_TO_LE(types);
    ((uint32_t *)raw->data)[5] = GUINT32_TO_LE(w->names->len);
    return raw;
}
