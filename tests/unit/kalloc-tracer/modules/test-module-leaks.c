/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports of what modules left behind: how many are kept, and that they are of
 * the moment when the module was unloaded. Their text is in tests/replay.
 */
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/snapshot/snapshot.h"

#define KERNEL "symbol va=ffffffff81000000 name=_stext\n" \
               "symbol va=ffffffff81000800 name=_etext\n" \
               "symbol va=ffffffff82001000 name=_end type=B\n"
#define MODULE "module va=ffffffffc0100000 name=%s " \
               "base=ffffffffc0000000 size=1000\n" \
               "modsym va=ffffffffc0000000 name=f\n" \
               "load va=ffffffffc0100000\n"
#define UNLOAD "unload va=ffffffffc0100000\n"

typedef struct Seen {
    unsigned n;
    uint64_t first, found, unsure;
} Seen;

static bool see(const KtModuleReport *r, void *opaque)
{
    Seen *s = opaque;

    s->first = s->n++ ? s->first : r->id;
    s->found += r->found;
    s->unsure += r->unsure;
    return true;
}

static Seen look(TestWorld *w)
{
    KtTracer *t = test_world_tracer(w);
    Seen s = { 0 };

    kt_query_begin(t);
    kt_query_modules(t, see, &s);
    kt_query_end(t);
    return s;
}

static void run(TestWorld *w, const char *format, const char *name)
{
    g_auto(GStrv) parts = g_strsplit(format, "%s", -1);
    g_autofree char *script = g_strjoinv(name, parts);

    test_world_events(w, script);
}

/* A case with a world @w that has this kernel. */
#define KERNEL_TEST(fn, path) \
    TEST_IN(g_autoptr(TestWorld), TestWorld *w, \
            test_world_new(KERNEL), fn, path)

KERNEL_TEST(test_oldest_reports_go, "/module-leaks/oldest-reports-go")
{
    Seen s;

    for (unsigned i = 0; i < 300; i++) {
        run(w, MODULE UNLOAD, "m");
    }
    s = look(w);
    g_assert_cmpuint(s.n, ==, 256);
    g_assert_cmpuint(s.first, ==, 45);
    g_assert_cmpuint(kt_tracer_counter(test_world_tracer(w),
                                       KT_CNT_MODULE_REPORTS_GONE), ==, 44);
    g_assert_cmpuint(kt_tracer_counter(test_world_tracer(w),
                                       KT_CNT_MODULES_CHECKED), ==, 300);
}

/* Its end stands among the events: those behind it do not count, however many
 * are applied at once. */
KERNEL_TEST(test_in_order, "/module-leaks/in-order")
{
    for (unsigned i = 0; i < 50; i++) {
        run(w, MODULE
            "alloc va=ffff888000001000 size=10 stack=ffffffffc0000010\n"
            "alloc va=ffff888000002000 size=10 stack=ffffffffc0000010\n"
            "free va=ffff888000001000\n"
            UNLOAD
            "free va=ffff888000002000\n"
            "alloc va=ffff888000003000 size=10 stack=ffffffffc0000010\n"
            "free va=ffff888000003000\n", "m");
    }
    g_assert_cmpuint(look(w).n, ==, 50);
    g_assert_cmpuint(look(w).found, ==, 50);
}

/* It is followed while nothing is recorded: of the frees nothing is known. */
KERNEL_TEST(test_unloaded_while_off, "/module-leaks/unloaded-while-off")
{
    run(w, MODULE "alloc va=ffff888000001000 size=10 stack=ffffffffc0000010\n"
        "off\n" UNLOAD "on\n", "m");
    g_assert_cmpuint(look(w).n, ==, 1);
    g_assert_cmpuint(look(w).unsure, ==, 1);
    g_assert_cmpuint(look(w).found, ==, 0);
    run(w, MODULE "alloc va=ffff888000002000 size=10 stack=ffffffffc0000010\n"
        UNLOAD, "m");
    g_assert_cmpuint(look(w).n, ==, 2);
    g_assert_cmpuint(look(w).found, ==, 1);
}

static bool never(const KtBlock *b, void *opaque)
{
    g_assert_not_reached();
}

KERNEL_TEST(test_withdrawn, "/module-leaks/withdrawn")
{
    KtTracer *t = test_world_tracer(w);

    run(w, MODULE "alloc va=ffff888000001000 size=10 stack=ffffffffc0000010\n"
        UNLOAD "free va=ffff888000001000\n", "m");
    kt_query_begin(t);
    kt_query_module_leaks(t, 1, never, NULL);
    kt_query_module_leaks(t, 2, never, NULL);
    kt_query_end(t);
    g_assert_cmpuint(look(w).found, ==, 1);
}

static bool count(const KtBlock *b, void *opaque)
{
    g_assert_cmpint(b->layer, ==, KT_LAYER_PAGES);
    ++*(unsigned *)opaque;
    return true;
}

/* A freed block of kmalloc is still known at the address of the page. */
KERNEL_TEST(test_pages, "/module-leaks/pages")
{
    KtTracer *t = test_world_tracer(w);
    unsigned n = 0;

    run(w, MODULE "alloc va=ffff888000004000 size=2000 layer=pages\n"
        "alloc va=ffff888000004000 size=1800 layer=large\n"
        "free va=ffff888000004000\n"
        "free va=ffff888000004000 family=pages\n"
        "alloc va=ffff888000004000 size=2000 layer=pages "
        "stack=ffffffffc0000010\n" UNLOAD, "m");
    kt_query_begin(t);
    kt_query_module_leaks(t, 1, count, &n);
    kt_query_end(t);
    g_assert_cmpuint(n, ==, 1);
}

static void go_to_state(TestWorld *w)
{
    g_autoptr(GByteArray) state = g_byte_array_new();
    KtTracer *t = test_world_tracer(w);
    GsBytes in;

    kt_snapshot_save(t, gs_stream_to_array, state);
    in = (GsBytes) { state->data, state->len };
    g_assert_true(kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL));
}

/* What is loaded in a VM's state came some time before: what it allocated
 * until then is its, too. One that comes later has its own time. */
KERNEL_TEST(test_state_is_loaded, "/module-leaks/state-is-loaded")
{
    run(w, MODULE "alloc va=ffff888000001000 size=10 stack=ffffffffc0000010\n",
        "m");
    go_to_state(w);
    run(w, "inherit\n"
        "alloc va=ffff888000002000 size=10 stack=ffffffffc0000010\n"
        UNLOAD, "m");
    g_assert_cmpuint(look(w).found, ==, 2);
    run(w, MODULE
        "alloc va=ffff888000003000 size=10 stack=ffffffffc0000010\n"
        UNLOAD, "m");
    g_assert_cmpuint(look(w).found, ==, 3);
}

/* The kernel is found late: the gap until then comes before its modules. */
KERNEL_TEST(test_state_is_loaded_with_a_gap,
            "/module-leaks/state-is-loaded-with-a-gap")
{
    run(w, MODULE "alloc va=ffff888000001000 size=10 stack=ffffffffc0000010\n",
        "m");
    go_to_state(w);
    run(w, "off\non\ninherit\n"
        "alloc va=ffff888000002000 size=10 stack=ffffffffc0000010\n"
        UNLOAD, "m");
    g_assert_cmpuint(look(w).found, ==, 1);
    g_assert_cmpuint(look(w).unsure, ==, 1);
}
