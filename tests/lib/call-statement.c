/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/call-statement.h"

#include <stdlib.h>
#include <string.h>

#include "kalloc-tracer/calls/calls.h"
#include "tests/lib/deref-types.h"
#include "tests/lib/struct-types.h"
#include "tests/lib/types-file.h"

static const char *text(GHashTable *a, const char *key, const char *none)
{
    const char *s = g_hash_table_lookup(a, key);

    return s ? s : none;
}

static uint64_t number(GHashTable *a, const char *key, int base)
{
    return g_ascii_strtoull(text(a, key, ""), NULL, base);
}

static KtStackId read_stack(KtTracer *t, GHashTable *a)
{
    g_auto(GStrv) words = g_strsplit(text(a, "stack", ""), ",", KT_MAX_FRAMES);
    uint64_t frames[KT_MAX_FRAMES];
    unsigned n = 0;

    for (; words[n]; n++) {
        frames[n] = g_ascii_strtoull(words[n], NULL, 16);
    }
    return n ? kt_tracer_intern_stack(t, frames, n, GS_STOP_END) :
               (KtStackId) { 0 };
}

static KtTaskId read_task(KtTracer *t, GHashTable *a)
{
    const char *name = text(a, "comm", "");
    char comm[16] = "";

    memcpy(comm, name, MIN(strlen(name), sizeof(comm)));
    return kt_tracer_intern_task(t, number(a, "pid", 10), comm);
}

static uint8_t read_flags(GHashTable *a)
{
    return (number(a, "open", 10) ? KT_CALL_UNFINISHED : 0) |
           (number(a, "irq", 10) ? KT_CALL_IRQ : 0) |
           (number(a, "rule", 10) ? KT_CALL_INJECTED : 0) |
           (text(a, "begin", NULL) ? KT_CALL_BEGIN : 0) |
           (text(a, "end", NULL) ? KT_CALL_END : 0);
}

static KtPointId read_point(KtCalls *c, uint64_t va)
{
    const KtPointSet *set = kt_call_points_set(c->points);
    const KtCallPoint *point = set ? kt_point_set_at(set, va) : NULL;

    return point ? point->id : (KtPointId) { 0 };
}

static uint8_t read_args(GHashTable *a, uint64_t *args)
{
    g_auto(GStrv) words = g_strsplit(text(a, "args", ""), ",", -1);
    unsigned n = 0;

    while (words[n] && n < KT_CALL_ARGS_MAX) {
        args[n] = strtoull(words[n], NULL, 16);
        n++;
    }
    return n;
}

/* Append a value: "null", "?", or its bytes in hex. */
static void add_value(GByteArray *extra, const char *word)
{
    bool null = !strcmp(word, "null"), unknown = !strcmp(word, "?");
    uint8_t byte = null ? 0xfe : unknown ? 0xff : strlen(word) / 2;

    g_byte_array_append(extra, &byte, 1);
    for (; !null && !unknown && word[0] && word[1]; word += 2) {
        byte = g_ascii_xdigit_value(word[0]) << 4 |
               g_ascii_xdigit_value(word[1]);
        g_byte_array_append(extra, &byte, 1);
    }
}

/* (owned) Return the bytes behind the arguments. */
static GByteArray *read_extra(KtCalls *c, GHashTable *a, KtPointId id)
{
    const char *module = text(a, "begin", text(a, "end", ""));
    g_auto(GStrv) words = g_strsplit(text(a, "deref", ""), ",", -1);
    GByteArray *extra = g_byte_array_new();
    const KtPointSet *set = kt_call_points_set(c->points);
    const KtCallPoint *point = set ? kt_point_set_get(set, id) : NULL;

    g_byte_array_append(extra, (const uint8_t *)module, strlen(module));
    if (*words && point && point->plan) {
        gs_out_u8(&GS_OUT(extra), point->plan->id);
        gs_out_u8(&GS_OUT(extra), 0);
    }
    for (unsigned i = 0; words[i]; i++) {
        add_value(extra, words[i]);
    }
    return extra;
}

/* @which: 1: those of deref-types.h, 2: those of struct-types.h */
static void set_types(GsKernel *k, uint64_t which)
{
    g_autoptr(GBytes) bytes = which == 1 ? deref_types() : struct_types();
    g_autoptr(GError) err = NULL;
    g_autoptr(GsTypesFile) types = types_file(bytes, &err);

    g_assert_no_error(err);
    gs_kernel_set_types(k, types);
}

void call_statement(TestWorld *w, GHashTable *a)
{
    KtTracer *t = test_world_tracer(w);
    KtCalls *c = kt_tracer_calls(t);
    const GsKernel *k = test_world_context(w)->kernel;
    g_autoptr(GByteArray) extra = NULL;
    uint64_t args[KT_CALL_ARGS_MAX];
    KtCall call = {
        .start_ns = number(a, "us", 10) * 1000,
        .took_ns = number(a, "took", 10) * 1000,
        .result = number(a, "ret", 16), .caller = number(a, "ra", 16),
        .task = read_task(t, a), .stack = read_stack(t, a), .era = GS_ERA_NOW,
        .cpu = number(a, "cpu", 10),
        .return_cpu = number(a, "cpu", 10),
        .rule = number(a, "rule", 10), .flags = read_flags(a),
        .n_args = read_args(a, args),
    };

    if (!kt_call_records_calls(c->records)) {
        kt_calls_configure(t, 1 << 20, 4);
        if (number(a, "types", 10)) {
            set_types((GsKernel *)k, number(a, "types", 10));
        }
        kt_call_points_begin_boot(c->points, k);
        return;
    }
    call.point = read_point(c, number(a, "va", 16));
    kt_call_records_enter(c->records, 0, call.point, call.start_ns);
    extra = read_extra(c, a, call.point);
    call.n_extra = extra->len;
    kt_call_records_put(c->records, &call, args, extra->data);
    kt_tracer_count(t, KT_CNT_CALLS_RECORDED, 1);
}
