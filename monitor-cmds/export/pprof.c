/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pprof: a Profile message of protobuf, compressed with gzip.
 *
 *     Profile -> sample_type 1, sample 2, mapping 3, location 4, function 5,
 *                string_table 6, duration_nanos 10, period_type 11, period 12,
 *                comment 13
 *
 * Texts are numbers of strings; string 0 is "". Ids of mappings, locations
 * and functions begin with 1. Readers merge profiles of several boots: a
 * location is known by its mapping and its distance to the mapping's start, so
 * each location has a mapping, and KASLR falls away.
 *
 * The addresses of locations are return addresses minus 1, which is in the
 * call; the names are those of ka.
 */
#include "monitor-cmds/export/export.h"

#include <string.h>
#include <zlib.h>

#include "monitor-cmds/export/proto.h"

#define GZIP        (15 + 16)       /* largest window, gzip's header */
#define PAGE        0x1000ull
/* The mapping of stacks without a backtrace: a page that no code is in. */
#define NOWHERE     PAGE

/* Fields of messages. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3,
       PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5, PROFILE_STRING_TABLE = 6,
       PROFILE_DURATION_NANOS = 10, PROFILE_PERIOD_TYPE = 11,
       PROFILE_PERIOD = 12, PROFILE_COMMENT = 13 };
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2 };
enum { MAPPING_ID = 1, MAPPING_START = 2, MAPPING_LIMIT = 3,
       MAPPING_FILENAME = 5, MAPPING_BUILD_ID = 6,
       MAPPING_HAS_FUNCTIONS = 7 };
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID = 2, LOCATION_ADDRESS = 3,
       LOCATION_LINE = 4 };
enum { LINE_FUNCTION_ID = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3,
       FUNCTION_FILENAME = 4 };

/** struct ValueRow - a sample type. Readers show the last one first */
typedef struct ValueRow {
    const char *type, *unit;
    McTopId id;
} ValueRow;

static const ValueRow values[] = {
    { "alloc_objects", "count", MC_TOP_allocs },
    { "alloc_space", "bytes", MC_TOP_reserved },
    { "inuse_objects", "count", MC_TOP_blocks },
    { "requested_space", "bytes", MC_TOP_live_asked },
    { "inuse_space", "bytes", MC_TOP_live },
};

/** struct Mapping - @id: 0: no location has it */
typedef struct Mapping {
    const char *name;
    uint64_t start, last;
    unsigned id;
} Mapping;

/**
 * struct Writer - @out: the message; @part, @inner: messages that are being
 * made
 * @strings, @functions: text -> its number
 * @mapping: Mapping: the ranges of the profile, then those of other frames
 */
typedef struct Writer {
    const McExport *e;
    GByteArray *out, *part, *inner;
    GHashTable *strings, *functions;
    GArray *mapping;
    unsigned n_ranges, n_mappings;
} Writer;

/* ---- strings ------------------------------------------------------------- */

/* Return the number of a text, and write it if it is new. */
static unsigned string_id(Writer *w, const char *text)
{
    gpointer id;

    if (g_hash_table_lookup_extended(w->strings, text, NULL, &id)) {
        return GPOINTER_TO_UINT(id);
    }
    id = GUINT_TO_POINTER(g_hash_table_size(w->strings));
    g_hash_table_insert(w->strings, g_strdup(text), id);
    mc_proto_bytes(w->out, PROFILE_STRING_TABLE, text, strlen(text));
    return GPOINTER_TO_UINT(id);
}

static void put_value_type(Writer *w, unsigned field, const char *type,
                           const char *unit)
{
    mc_proto_number(w->part, VALUE_TYPE, string_id(w, type));
    mc_proto_number(w->part, VALUE_UNIT, string_id(w, unit));
    mc_proto_message(w->out, field, w->part);
}

/* ---- mappings ------------------------------------------------------------ */

/* Return the name of what a frame is in. */
static const char *place_of(const McProfileFrame *f)
{
    return !f->pc ? "[no backtrace]" : f->module ? f->module :
           f->named ? MC_PROFILE_KERNEL : "[unknown]";
}

static uint64_t address_of(const McProfileFrame *f)
{
    return f->pc ? f->pc - 1 : NOWHERE;
}

static Mapping *mapping_at(const Writer *w, unsigned i)
{
    return &g_array_index(w->mapping, Mapping, i);
}

/* Return the mapping of a frame, NULL if no range has it. An address without a
 * symbol may be in any range. */
static Mapping *find_mapping(const Writer *w, const McProfileFrame *f)
{
    const char *name = place_of(f);
    const uint64_t va = address_of(f);

    for (unsigned i = 0; i < w->mapping->len; i++) {
        Mapping *m = mapping_at(w, i);

        if (va >= m->start && va <= m->last &&
            (!f->named || !strcmp(m->name, name))) {
            return m;
        }
    }
    return NULL;
}

/* Make or extend a mapping for a frame outside of all ranges: code of a module
 * that was evicted, or an address that means nothing. */
static void add_mapping(Writer *w, const McProfileFrame *f)
{
    const char *name = place_of(f);
    const uint64_t page = address_of(f) & ~(PAGE - 1);
    Mapping new = { name, page, page + PAGE - 1, 0 };

    for (unsigned i = w->n_ranges; i < w->mapping->len; i++) {
        Mapping *m = mapping_at(w, i);

        if (!strcmp(m->name, name)) {
            m->start = MIN(m->start, new.start);
            m->last = MAX(m->last, new.last);
            return;
        }
    }
    g_array_append_val(w->mapping, new);
}

static void collect_mappings(Writer *w)
{
    const McHeapProfile *p = w->e->profile;

    for (unsigned i = 0; i < p->range->len; i++) {
        const McProfileRange *r = &g_array_index(p->range, McProfileRange, i);
        Mapping m = { r->name, r->start, r->last, 0 };

        g_array_append_val(w->mapping, m);
    }
    w->n_ranges = w->mapping->len;
    for (unsigned i = 0; i < p->frame->len; i++) {
        const McProfileFrame *f = &g_array_index(p->frame, McProfileFrame, i);

        if (!find_mapping(w, f)) {
            add_mapping(w, f);
        }
    }
}

/* Write a mapping. Two builds of a kernel must not be merged. */
static void put_mapping(Writer *w, Mapping *m)
{
    const char *banner = w->e->profile->banner;
    g_autofree char *build = !banner ? NULL :
        g_strconcat(banner, "\n", m->name, NULL);
    g_autofree char *id = !build ? NULL :
        g_compute_checksum_for_string(G_CHECKSUM_SHA1, build, -1);

    m->id = ++w->n_mappings;
    mc_proto_number(w->part, MAPPING_ID, m->id);
    mc_proto_number(w->part, MAPPING_START, m->start);
    mc_proto_number(w->part, MAPPING_LIMIT, m->last + 1);
    mc_proto_number(w->part, MAPPING_FILENAME, string_id(w, m->name));
    mc_proto_number(w->part, MAPPING_BUILD_ID, id ? string_id(w, id) : 0);
    mc_proto_number(w->part, MAPPING_HAS_FUNCTIONS, 1);
    mc_proto_message(w->out, PROFILE_MAPPING, w->part);
}

/* ---- locations ----------------------------------------------------------- */

/* Return the number of the function of a frame, and write it if it is new. */
static unsigned function_id(Writer *w, const McProfileFrame *f)
{
    const bool lines = w->e->frames == MC_FRAMES_LINE;
    const char *file = lines && f->file ? f->file : place_of(f);
    g_autoptr(GString) name = g_string_new(NULL);
    g_autofree char *key = NULL;
    unsigned id = g_hash_table_size(w->functions) + 1;
    gpointer old;

    /* the line is a field of the location */
    mc_put_frame(name, f, lines ? MC_FRAMES_FUNCTION : w->e->frames);
    key = g_strconcat(name->str, "\n", file, NULL);
    if (g_hash_table_lookup_extended(w->functions, key, NULL, &old)) {
        return GPOINTER_TO_UINT(old);
    }
    g_hash_table_insert(w->functions, g_steal_pointer(&key),
                        GUINT_TO_POINTER(id));
    mc_proto_number(w->part, FUNCTION_ID, id);
    mc_proto_number(w->part, FUNCTION_NAME, string_id(w, name->str));
    mc_proto_number(w->part, FUNCTION_SYSTEM_NAME, string_id(w, f->function));
    mc_proto_number(w->part, FUNCTION_FILENAME, string_id(w, file));
    mc_proto_message(w->out, PROFILE_FUNCTION, w->part);
    return id;
}

static void put_location(Writer *w, unsigned id, const McProfileFrame *f)
{
    Mapping *m = find_mapping(w, f);
    unsigned function = function_id(w, f);

    if (!m->id) {
        put_mapping(w, m);
    }
    mc_proto_number(w->inner, LINE_FUNCTION_ID, function);
    if (w->e->frames == MC_FRAMES_LINE && f->file) {
        mc_proto_number(w->inner, LINE_LINE, f->line);
    }
    mc_proto_number(w->part, LOCATION_ID, id);
    mc_proto_number(w->part, LOCATION_MAPPING_ID, m->id);
    mc_proto_number(w->part, LOCATION_ADDRESS, address_of(f));
    mc_proto_message(w->part, LOCATION_LINE, w->inner);
    mc_proto_message(w->out, PROFILE_LOCATION, w->part);
}

/* ---- samples ------------------------------------------------------------- */

static bool is_zero(const McProfileStack *s)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        if (s->value[values[i].id]) {
            return false;
        }
    }
    return true;
}

static void put_sample(Writer *w, const McProfileStack *s)
{
    const unsigned *path = (const unsigned *)w->e->profile->path->data;

    for (unsigned i = 0; i < s->n; i++) {
        mc_proto_varint(w->inner, path[s->first + i] + 1);
    }
    mc_proto_message(w->part, SAMPLE_LOCATION_ID, w->inner);
    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        mc_proto_varint(w->inner, s->value[values[i].id]);
    }
    mc_proto_message(w->part, SAMPLE_VALUE, w->inner);
    mc_proto_message(w->out, PROFILE_SAMPLE, w->part);
}

static void put_comment(Writer *w, const char *text)
{
    unsigned id = string_id(w, text);

    mc_proto_varint(w->inner, id);
    mc_proto_message(w->out, PROFILE_COMMENT, w->inner);
}

static void put_comments(Writer *w)
{
    const McHeapProfile *p = w->e->profile;

    put_comment(w, "ka: alloc_space and inuse_space are bytes as reserved, "
                "requested_space is inuse_space as requested");
    if (p->banner) {
        g_autofree char *text = g_strconcat("kernel: ", p->banner, NULL);

        put_comment(w, text);
    }
    for (unsigned i = 0; i < p->note->len; i++) {
        put_comment(w, p->note->pdata[i]);
    }
}

static void put_profile(Writer *w)
{
    const McHeapProfile *p = w->e->profile;

    string_id(w, "");
    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        put_value_type(w, PROFILE_SAMPLE_TYPE, values[i].type,
                       values[i].unit);
    }
    collect_mappings(w);
    for (unsigned i = 0; i < p->frame->len; i++) {
        put_location(w, i + 1, &g_array_index(p->frame, McProfileFrame, i));
    }
    for (unsigned i = 0; i < p->stack->len; i++) {
        const McProfileStack *s = &g_array_index(p->stack, McProfileStack, i);

        if (!is_zero(s)) {
            put_sample(w, s);
        }
    }
    mc_proto_number(w->out, PROFILE_DURATION_NANOS, p->us * 1000);
    put_value_type(w, PROFILE_PERIOD_TYPE, "space", "bytes");
    mc_proto_number(w->out, PROFILE_PERIOD, 1);
    put_comments(w);
}

/* ---- the file ------------------------------------------------------------ */

/* Write @bytes as gzip, without a time, so that equal profiles are equal
 * files. */
static bool write_gzip(const GByteArray *bytes, FILE *to)
{
    guint8 buf[8192];
    z_stream z = { .next_in = bytes->data, .avail_in = bytes->len };
    int rc = Z_OK;

    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return false;
    }
    while (rc == Z_OK) {
        z.next_out = buf;
        z.avail_out = sizeof(buf);
        rc = deflate(&z, Z_FINISH);
        fwrite(buf, 1, sizeof(buf) - z.avail_out, to);
    }
    deflateEnd(&z);
    return rc == Z_STREAM_END;
}

bool mc_export_pprof(const McExport *e, FILE *to, GError **errp)
{
    g_autoptr(GByteArray) out = g_byte_array_new();
    g_autoptr(GByteArray) part = g_byte_array_new();
    g_autoptr(GByteArray) inner = g_byte_array_new();
    g_autoptr(GHashTable) strings =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) functions =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GArray) mapping = g_array_new(FALSE, FALSE, sizeof(Mapping));
    Writer w = { e, out, part, inner, strings, functions, mapping, 0, 0 };

    put_profile(&w);
    if (write_gzip(out, to)) {
        return true;
    }
    g_set_error_literal(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                        "pprof: the data cannot be compressed");
    return false;
}
