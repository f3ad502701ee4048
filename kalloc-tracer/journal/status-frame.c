/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The status frame: see status-frame.h. Counters are written with their names,
 * since the reader may be newer or older than the writer.
 */
#include "kalloc-tracer/journal/status-frame.h"

#define TEXT_MAX    1024        /* of a line or a name */
#define HOOKS_MAX   255
#define COUNTERS_MAX 1024
#define PARTS_MAX   64

/* The sizes that are saved, in their order. */
static const size_t saved_stats[] = {
    offsetof(KtStats, stacks), offsetof(KtStats, tasks),
    offsetof(KtStats, caches), offsetof(KtStats, map_bytes),
    offsetof(KtStats, history_bytes), offsetof(KtStats, depot_bytes),
    offsetof(KtStats, events), offsetof(KtStats, mem_bytes),
    offsetof(KtStats, mem_bound),
};

static uint64_t *stat_at(KtStats *s, unsigned i)
{
    return (uint64_t *)((char *)s + saved_stats[i]);
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

static void put_hook(GsOut *out, const KtHookStatus *h)
{
    put_text(out, h->name);
    put_text(out, h->symbol);
    put_text(out, h->from);
    put_text(out, h->args_from);
    put_text(out, h->note);
    gs_out_u64(out, h->va);
    gs_out_varint(out, h->hits);
}

void kt_status_put(GsOut *out, const KtStatus *s, const KtStats *stats)
{
    unsigned n_hooks = MIN(s->n_hooks, HOOKS_MAX);

    gs_out_u8(out, s->kernel_found);
    put_text(out, s->why_no_kernel);
    for (unsigned i = 0; i < G_N_ELEMENTS(saved_stats); i++) {
        gs_out_varint(out, *stat_at((KtStats *)stats, i));
    }
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
        put_hook(out, &h);
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

        h->name = read_text(in, s->strings);
        h->symbol = read_text(in, s->strings);
        h->from = read_text(in, s->strings);
        h->args_from = read_text(in, s->strings);
        h->note = read_text(in, s->strings);
        h->va = gs_bytes_u64(in);
        h->hits = gs_bytes_varint(in, UINT64_MAX);
        h->name = known ? h->name : NULL;
    }
}

KtStoredStatus *kt_status_get(GsBytes *in)
{
    g_autoptr(KtStoredStatus) s = g_new0(KtStoredStatus, 1);

    s->strings = g_string_chunk_new(4096);
    s->kernel_found = gs_bytes_u8(in);
    s->why_no_kernel = g_strdup(read_text(in, s->strings));
    for (unsigned i = 0; i < G_N_ELEMENTS(saved_stats); i++) {
        *stat_at(&s->stats, i) = gs_bytes_varint(in, UINT64_MAX);
    }
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
