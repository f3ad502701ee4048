/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/statements.h"

#include <stdlib.h>
#include <string.h>

#include "kalloc-tracer/calls/calls.h"
#include "tests/lib/deref-types.h"
#include "tests/lib/struct-types.h"
#include "tests/lib/types-file.h"

static uint8_t read_flags(GHashTable *a)
{
    return (arg_dec(a, "open") ? KT_CALL_UNFINISHED : 0) |
           (arg_dec(a, "irq") ? KT_CALL_IRQ : 0) |
           (arg_dec(a, "rule") ? KT_CALL_INJECTED : 0) |
           (arg_text(a, "begin", NULL) ? KT_CALL_BEGIN : 0) |
           (arg_text(a, "end", NULL) ? KT_CALL_END : 0);
}

static KtPointId read_point(KtCalls *c, uint64_t va)
{
    const KtPointSet *set = kt_call_points_set(c->points);
    const KtCallPoint *point = set ? kt_point_set_at(set, va) : NULL;

    return point ? point->id : (KtPointId) { 0 };
}

static uint8_t read_args(GHashTable *a, uint64_t *args)
{
    g_auto(GStrv) words = g_strsplit(arg_text(a, "args", ""), ",", -1);
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
    const char *module = arg_text(a, "begin", arg_text(a, "end", ""));
    g_auto(GStrv) words = g_strsplit(arg_text(a, "deref", ""), ",", -1);
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
        .start_ns = arg_dec(a, "us") * 1000,
        .took_ns = arg_dec(a, "took") * 1000,
        .result = arg_hex(a, "ret"), .caller = arg_hex(a, "ra"),
        .task = arg_task(t, a), .era = GS_ERA_NOW,
        .cpu = arg_dec(a, "cpu"),
        .return_cpu = arg_dec(a, "cpu"),
        .rule = arg_dec(a, "rule"), .flags = read_flags(a),
        .n_args = read_args(a, args),
    };

    if (!kt_call_records_calls(c->records)) {
        kt_calls_configure(t, 1 << 20, 4);
        if (arg_dec(a, "types")) {
            set_types((GsKernel *)k, arg_dec(a, "types"));
        }
        kt_call_points_begin_boot(c->points, k);
        return;
    }
    call.point = read_point(c, arg_hex(a, "va"));
    kt_call_records_enter(c->records, 0, call.point, call.start_ns);
    extra = read_extra(c, a, call.point);
    call.n_extra = extra->len;
    if (*arg_text(a, "stack", "")) {
        call.stack = arg_stack(t, a);
    }
    kt_call_records_put(c->records, &call, args, extra->data);
    kt_tracer_count(t, KT_CNT_CALLS_RECORDED, 1);
}
