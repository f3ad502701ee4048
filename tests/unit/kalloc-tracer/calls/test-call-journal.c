/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls come back from a journal as they were: records, names, prototypes,
 * values of --deref, calls under way, and what was dropped. Damaged frames do
 * no harm.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/deref-types.h"
#include "tests/lib/journal-files.h"
#include "tests/lib/types-writer.h"

#include "guest-symbols/arch/arch.h"
#include "guest-symbols/types/prototype.h"
#include "kalloc-tracer/calls/calls.h"

#include <inttypes.h>
#include <string.h>

#define RING_BYTES 65536
#define CPUS 2

/* ---- a tracer with calls ------------------------------------------------- */

/* (owned) Return void free_it(void *what), packed. */
static GByteArray *pack_prototype(void)
{
    struct btf *types = btf__new_empty();
    int what = btf__add_ptr(types, 0), proto = btf__add_func_proto(types, 0);
    GByteArray *bytes = g_byte_array_new();
    g_autoptr(GsPrototype) p = NULL;
    g_autoptr(GsBtf) btf = NULL;
    const char *why;

    btf__add_func_param(types, "what", what);
    btf__add_func(types, "free_it", BTF_FUNC_GLOBAL, proto);
    btf = types_end(types);
    p = gs_prototype_new(btf, &gs_arch_x86_64, "free_it", &why);
    g_assert_true(gs_prototype_pack(p, bytes));
    return bytes;
}

static void define(KtTracer *t)
{
    KtPointNames *names = kt_call_points_names(kt_tracer_calls(t)->points);
    g_autoptr(GByteArray) packed = pack_prototype();

    kt_point_names_define(names, (KtPointId) { 1 },
                          &(KtPointName) { .name = "free_it" },
                          gs_bytes(packed->data, packed->len));
    kt_point_names_define(names, (KtPointId) { 7 },
                          &(KtPointName) { .name = "probe", .module = "drv" },
                          gs_bytes(NULL, 0));
}

static void watch(KtTracer *t)
{
    kt_calls_configure(t, RING_BYTES, CPUS);
    g_assert_true(kt_call_records_open(kt_tracer_calls(t)->records, NULL));
    define(t);
}

static void put(KtTracer *t, const KtCall *call)
{
    static const uint64_t args[] = { 0xffff888004a1c000, 3 };

    kt_call_records_put(kt_tracer_calls(t)->records, call, args,
                        (const uint8_t *)"drv");
}

static KtCall call_at(KtTracer *t, uint64_t us, unsigned cpu)
{
    static const uint64_t frames[] = { 0xffffffff81000010, 0xffffffff81000050 };

    return (KtCall) {
        .start_ns = us * 1000 + 7, .took_ns = 2500, .result = -12ull,
        .caller = 0xffffffff81000010, .era = GS_ERA_NOW, .cpu = cpu,
        .return_cpu = 1, .point = { 1 }, .n_args = 2,
        .task = kt_tracer_intern_task(t, us, "insmod\0\0\0\0\0\0\0\0\0"),
        .stack = us % 2 ? kt_tracer_intern_stack(t, frames, 2, GS_STOP_END) :
                          (KtStackId) { 0 },
    };
}

/* (borrowed) Return the plan of do_filp_open(), point 5. */
static const KtDerefPlan *define_plan(KtTracer *t)
{
    g_autoptr(GBytes) types = deref_types();
    g_autoptr(GsBtf) btf = gs_btf_new(g_bytes_get_data(types, NULL),
                                      g_bytes_get_size(types), NULL);
    const char *why;
    g_autoptr(GsPrototype) proto =
        gs_prototype_new(btf, &gs_arch_x86_64, "do_filp_open", &why);
    KtDerefList *l = kt_deref_list_new("name,ret->gfp", NULL);
    const KtDerefPlan *p = kt_deref_table_get(kt_tracer_calls(t)->plans, l,
                                              (KtPointId) { 5 }, proto);

    kt_deref_list_free(l);
    return p;
}

/* A call with values, the second of which is not known. */
static void put_values(KtTracer *t)
{
    const KtDerefPlan *p = define_plan(t);
    const uint8_t extra[] = { p->id, p->id >> 8, 3, 'o', 'n', 0, 0xff };
    static const uint64_t args[] = { 0xffffffff, 0xffff888004a1c000 };
    KtCall call = call_at(t, 110, 0);

    call.point.v = 5;
    call.n_extra = sizeof(extra);
    kt_call_records_put(kt_tracer_calls(t)->records, &call, args, extra);
}

static void put_samples(KtTracer *t)
{
    KtCall call = call_at(t, 100, 0);

    put(t, &call);
    call = call_at(t, 90, 1);
    call.point.v = 7;
    call.flags = KT_CALL_IRQ | KT_CALL_INJECTED;
    call.rule = 3;
    put(t, &call);
    call = call_at(t, 80, 0);
    call.point.v = 0;
    call.flags = KT_CALL_BEGIN;
    call.n_args = 0;
    call.n_extra = 3;
    put(t, &call);
}

/* ---- as text ------------------------------------------------------------- */

typedef struct Text {
    KtTracer *t;
    GString *s;
} Text;

static void add_value(void *text, const KtCallDeref *d)
{
    GString *s = text;

    g_string_append_printf(s, " %s:%s=", gs_deref_value(d->expr)->name,
                           gs_deref_value(d->expr)->type);
    if (d->state == KT_DEREF_KNOWN) {
        gs_deref_print(s, d->expr, d->bytes, d->len);
    }
}

static void add_text(const KtCallView *v, const Text *text)
{
    const KtCall *c = v->call;
    KtPointName name = { .name = "?" };
    uint32_t pid = 0;
    char comm[17] = "";
    GsStop stop;
    unsigned n = 0;

    kt_call_point_name(text->t, c->point, &name);
    kt_tracer_task(text->t, c->task, &pid, comm);
    if (c->stack.v) {
        kt_tracer_stack(text->t, c->stack, &n, &stop);
    }
    g_string_append_printf(text->s, "%" PRIu64 "+%" PRIu64 " %s/%s/%d cpu%u-%u "
                           "%s-%u %u frames flags=%u rule=%u ret=%" PRIx64
                           " <- %" PRIx64 " extra=%.*s", c->start_ns,
                           c->took_ns, name.name, name.module ? name.module :
                           "", !!name.proto, c->cpu, c->return_cpu, comm, pid,
                           n, c->flags, c->rule, c->result, c->caller,
                           c->flags & KT_CALL_BEGIN ? (int)c->n_extra : 0,
                           (const char *)v->extra);
    for (unsigned i = 0; i < c->n_args; i++) {
        g_string_append_printf(text->s, " %" PRIx64, v->args[i]);
    }
    kt_call_foreach_deref(text->t, v, add_value, text->s);
    g_string_append_c(text->s, '\n');
}

static char *text_of(KtTracer *t)
{
    Text text = { t, g_string_new(NULL) };
    g_auto(KtCallList) list = { 0 };

    kt_query_calls(t, &list);
    for (unsigned i = 0; i < list.calls->len; i++) {
        add_text(&g_array_index(list.calls, KtCallView, i), &text);
    }
    return g_string_free(text.s, FALSE);
}

/* ---- journals ------------------------------------------------------------ */

static unsigned lines(const char *text)
{
    unsigned n = 0;

    for (; (text = strchr(text, '\n')); text++) {
        n++;
    }
    return n;
}

static void add_under_way(KtTracer *t, uint64_t us, bool undecided)
{
    KtOpenCalls *calls =
        kt_call_records_calls(kt_tracer_calls(t)->records);
    KtOpenCall *c = kt_open_calls_get(calls, 0);

    c->sp = 0x1000;
    c->undecided = undecided;
    c->site = 0x2000;
    c->call = call_at(t, us, 0);
    c->call.took_ns = c->call.result = 0;
    c->args[0] = 5;
    c->args[1] = 6;
    g_assert_null(kt_open_calls_add(calls, c));
}

TEST(test_same, "/call-journal/same")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *want = NULL, *got = NULL;
    g_autoptr(KtReplay) r = NULL;

    watch(t);
    put_samples(t);
    put_values(t);
    kt_calls_save(t);
    kt_calls_save(t);       /* nothing is new */
    add_under_way(t, 95, false);
    put_samples(t);
    kt_calls_save(t);
    want = text_of(t);
    g_assert_cmpuint(lines(want), ==, 8);
    g_assert_nonnull(strstr(want, " *name:const char *=\"on\" "
                            "ret->gfp:gfp_t=\n"));
    kt_tracer_free(t);
    r = read_all(path);
    got = text_of(kt_replay_tracer(r));
    g_assert_cmpstr(got, ==, want);
}

/* Whether a condition on the result wants the call is unknown. */
TEST(test_undecided, "/call-journal/undecided")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *before = NULL, *with = NULL;

    watch(t);
    put_samples(t);
    before = text_of(t);
    add_under_way(t, 95, true);
    with = text_of(t);
    g_assert_cmpstr(with, ==, before);
    kt_tracer_free(t);
}

/* As of a time between entry and return, a call is under way. */
TEST(test_until, "/call-journal/until")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    g_autofree char *got = NULL;

    watch(t);
    put_samples(t);
    kt_calls_save(t);
    kt_tracer_free(t);
    r = kt_replay_open(path, NULL);
    kt_replay_run(r, &(KtReplayPlan) { .until_us = 91, .apply = true });
    got = text_of(kt_replay_tracer(r));
    g_assert_cmpuint(lines(got), ==, 2);
    g_assert_nonnull(strstr(got, "flags=7 rule=3"));
}

TEST(test_cleared, "/call-journal/cleared")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    g_autofree char *got = NULL;
    KtCall call;

    watch(t);
    put_samples(t);
    kt_calls_clear(t);
    call = call_at(t, 200, 1);
    put(t, &call);
    kt_calls_save(t);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_CALLS_UNSAVED), ==, 0);
    kt_tracer_free(t);
    r = read_all(path);
    got = text_of(kt_replay_tracer(r));
    g_assert_cmpuint(lines(got), ==, 1);
}

/* Numbers of points are of a boot; so are records. */
TEST(test_reset, "/call-journal/reset")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    g_autofree char *got = NULL;

    watch(t);
    put_samples(t);
    kt_calls_save(t);
    kt_tracer_reset(t);
    kt_tracer_free(t);
    r = read_all(path);
    got = text_of(kt_replay_tracer(r));
    g_assert_cmpstr(got, ==, "");
}

/* Records that were replaced before they were written are counted. */
TEST(test_unsaved, "/call-journal/unsaved")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    unsigned kept = 0, n = 2000;
    g_autoptr(KtReplay) r = NULL;
    g_autofree char *want = NULL, *got = NULL;

    watch(t);
    for (unsigned i = 0; i < n; i++) {
        KtCall call = call_at(t, 1000 + i, 0);

        put(t, &call);
    }
    kt_calls_save(t);
    want = text_of(t);
    kept = lines(want);
    g_assert_cmpuint(kept, <, n);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_CALLS_UNSAVED), ==, n - kept);
    kt_tracer_free(t);
    r = read_all(path);
    got = text_of(kt_replay_tracer(r));
    g_assert_cmpstr(got, ==, want);
}

/* ---- frames -------------------------------------------------------------- */

static GByteArray *frame(KtTracer *t)
{
    GByteArray *bytes = g_byte_array_new();
    g_auto(KtCallBatch) b;
    uint64_t lost = 0;

    kt_call_batch_init(&b);
    for (unsigned i = 0; i < CPUS; i++) {
        uint64_t seq = 0;

        kt_call_records_read(kt_tracer_calls(t)->records, i, &seq, UINT64_MAX,
                             b.records, &lost);
    }
    kt_call_records_under_way(kt_tracer_calls(t)->records, b.under_way);
    kt_call_frame_write(t, &b, &GS_OUT(bytes));
    return bytes;
}

static bool read_bytes(const uint8_t *bytes, size_t len)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    g_autofree uint8_t *copy = g_memdup2(bytes, len);
    GsBytes in = gs_bytes(copy, len);

    return kt_calls_replay(t, NULL, &in, UINT64_MAX, len);
}

/* Each shorter frame is malformed; a changed byte does no harm. */
TEST(test_damaged, "/call-journal/damaged")
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    g_autoptr(GByteArray) bytes = NULL;

    watch(t);
    put_samples(t);
    put_values(t);
    add_under_way(t, 60, false);
    bytes = frame(t);
    g_assert_true(read_bytes(bytes->data, bytes->len));
    for (unsigned len = 0; len < bytes->len; len++) {
        g_assert_false(read_bytes(bytes->data, len));
    }
    for (unsigned i = 0; i < bytes->len; i++) {
        bytes->data[i] ^= 1u << i % 8;
        read_bytes(bytes->data, bytes->len);
        bytes->data[i] ^= 1u << i % 8;
    }
}
