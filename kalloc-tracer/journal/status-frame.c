/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The status frame: see journal-format.h. Counters are written with their
 * names, since the reader may be newer or older than the writer.
 */
#include "kalloc-tracer/journal/journal-format.h"

#include "kalloc-tracer/base/fields.h"

#define TEXT_MAX    1024        /* of a line or a name */
#define HOOKS_MAX   255
#define COUNTERS_MAX 1024
#define PARTS_MAX   64

static const KtField stats_fields[] = {
    KT_NUMBER(KtStats, stacks), KT_NUMBER(KtStats, tasks),
    KT_NUMBER(KtStats, caches), KT_NUMBER(KtStats, map_bytes),
    KT_NUMBER(KtStats, history_bytes), KT_NUMBER(KtStats, depot_bytes),
    KT_NUMBER(KtStats, events), KT_NUMBER(KtStats, mem_bytes),
    KT_NUMBER(KtStats, mem_bound),
    { 0 }
};

/* The texts of a hook, before @va and @hits. */
static const size_t hook_texts[] = {
    offsetof(KtHookStatus, name), offsetof(KtHookStatus, symbol),
    offsetof(KtHookStatus, from), offsetof(KtHookStatus, args_from),
    offsetof(KtHookStatus, note),
};

static const KtField hook_fields[] = {
    KT_FIXED(KtHookStatus, va, 8), KT_NUMBER(KtHookStatus, hits),
    { 0 }
};

static const char **text_at(KtHookStatus *h, unsigned i)
{
    return (const char **)((char *)h + hook_texts[i]);
}

/* ---- writing ------------------------------------------------------------ */

static void put_text(GsOut *out, const char *s)
{
    gs_out_u8(out, s != NULL);
    if (s) {
        g_autofree char *short_enough = g_strndup(s, TEXT_MAX);

        gs_out_str(out, short_enough);
    }
}

void kt_status_put(GsOut *out, const KtStatus *s, const KtStats *stats)
{
    unsigned n_hooks = MIN(s->n_hooks, HOOKS_MAX);

    gs_out_u8(out, s->kernel_found);
    put_text(out, s->why_no_kernel);
    kt_fields_pack(stats_fields, stats, NULL, out);
    gs_out_u8(out, stats->full);
    gs_out_varint(out, KT_MEM__COUNT);
    for (unsigned i = 0; i < KT_MEM__COUNT; i++) {
        gs_out_varint(out, stats->part_bytes[i]);
    }
    gs_out_varint(out, KT_CNT__COUNT);
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        gs_out_str(out, kt_counter_name(i));
        gs_out_varint(out, stats->counter[i]);
    }
    gs_out_varint(out, n_hooks);
    for (unsigned i = 0; i < n_hooks; i++) {
        KtHookStatus h = { 0 };

        gs_out_u8(out, s->hook(s->opaque, i, &h));
        for (unsigned j = 0; j < G_N_ELEMENTS(hook_texts); j++) {
            put_text(out, *text_at(&h, j));
        }
        kt_fields_pack(hook_fields, &h, NULL, out);
    }
    for (unsigned i = 0; i < n_hooks; i++) {
        KtHookStatus h = { 0 };

        s->hook(s->opaque, i, &h);
        put_text(out, h.calls);
    }
}

/* ---- reading ------------------------------------------------------------ */

/* Read a text of any bytes: names of files are in it. Output escapes them. */
static const char *read_text(GsBytes *in, GStringChunk *strings)
{
    const char *s;

    if (!gs_bytes_u8(in)) {
        return NULL;
    }
    s = gs_bytes_str(in, TEXT_MAX, NULL);
    return s ? g_string_chunk_insert(strings, s) : NULL;
}

static void read_parts(GsBytes *in, KtStoredStatus *s)
{
    uint64_t n = gs_bytes_varint(in, PARTS_MAX);

    for (uint64_t i = 0; i < n && !in->failed; i++) {
        uint64_t bytes = gs_bytes_varint(in, UINT64_MAX);

        if (i < KT_MEM__COUNT) {
            s->stats.part_bytes[i] = bytes;
        }
    }
}

static void read_counters(GsBytes *in, KtStoredStatus *s)
{
    uint64_t n = gs_bytes_varint(in, COUNTERS_MAX);

    for (; n && !in->failed; n--) {
        const char *name = gs_bytes_str(in, TEXT_MAX, NULL);
        uint64_t value = gs_bytes_varint(in, UINT64_MAX);

        for (unsigned i = 0; name && i < KT_CNT__COUNT; i++) {
            if (!strcmp(name, kt_counter_name(i))) {
                s->counter[i] = value;
            }
        }
    }
}

static void read_hooks(GsBytes *in, KtStoredStatus *s)
{
    s->n_hooks = gs_bytes_varint(in, HOOKS_MAX);
    s->hook = g_new0(KtHookStatus, MAX(s->n_hooks, 1));
    for (unsigned i = 0; i < s->n_hooks && !in->failed; i++) {
        KtHookStatus *h = &s->hook[i];
        bool known = gs_bytes_u8(in);

        for (unsigned j = 0; j < G_N_ELEMENTS(hook_texts); j++) {
            *text_at(h, j) = read_text(in, s->strings);
        }
        kt_fields_unpack(hook_fields, h, NULL, NULL, in);
        h->name = known ? h->name : NULL;
    }
    /* An older journal ends here. */
    for (unsigned i = 0; i < s->n_hooks && gs_bytes_left(in); i++) {
        s->hook[i].calls = read_text(in, s->strings);
    }
}

KtStoredStatus *kt_status_get(GsBytes *in)
{
    g_autoptr(KtStoredStatus) s = g_new0(KtStoredStatus, 1);

    s->strings = g_string_chunk_new(4096);
    s->kernel_found = gs_bytes_u8(in);
    s->why_no_kernel = g_strdup(read_text(in, s->strings));
    kt_fields_unpack(stats_fields, &s->stats, NULL, NULL, in);
    s->stats.full = gs_bytes_u8(in);
    read_parts(in, s);
    read_counters(in, s);
    read_hooks(in, s);
    return in->failed ? NULL : g_steal_pointer(&s);
}

void kt_status_free(KtStoredStatus *s)
{
    if (s) {
        g_free(s->why_no_kernel);
        g_free(s->hook);
        g_string_chunk_free(s->strings);
        g_free(s);
    }
}
