/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options of a request for call records, on calls that the test makes up:
 * conditions at the entry and at the return, --errors, --longer, --module.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/calls/watch.h"

#include <string.h>

/* ---- a call -------------------------------------------------------------- */

typedef struct World {
    KtCall call;
    uint64_t args[KT_CALL_ARGS_MAX];
    KtCallTask task;
    KtCallLayout layout;
    uint64_t frame;
    unsigned stacks;            /* walks */
} World;

static bool read_word(void *opaque, GsReg reg, uint64_t *out)
{
    const World *w = opaque;

    if (reg != GS_REG_ARG0 && reg != GS_REG_ARG1) {
        return false;
    }
    *out = w->args[reg == GS_REG_ARG1];
    return true;
}

static bool read_stack(void *opaque, KtCallStack *out)
{
    World *w = opaque;

    w->stacks++;
    *out = (KtCallStack) { .frames = &w->frame, .n = 1, .id = { 1 } };
    return w->frame;
}

static bool read_task(void *opaque, KtCallTask *out)
{
    *out = ((World *)opaque)->task;
    return out->pid;
}

static bool read_memory(void *opaque, uint64_t va, void *buf, size_t len)
{
    return false;
}

static KtAnswer read_irq(void *opaque)
{
    return KT_UNKNOWN;
}

static uint64_t read_us(void *opaque)
{
    return ((World *)opaque)->call.start_ns / 1000;
}

static KtCallFacts facts_of(World *w)
{
    static const KtCallOps ops = {
        .word = read_word, .stack = read_stack, .task = read_task,
        .read = read_memory, .irq = read_irq, .us = read_us,
    };

    return (KtCallFacts) {
        .call = &w->call, .ops = &ops, .opaque = w, .layout = &w->layout,
        .ra = w->call.caller, .cpu = w->call.cpu,
    };
}

static KtWatch *watch(const char *condition)
{
    const KtWatchSpec spec = { .functions = "f", .condition = condition };
    g_autoptr(GError) err = NULL;
    KtWatch *w = kt_watch_new(&spec, NULL, NULL, NULL, &err);

    g_assert_no_error(err);
    return w;
}

static World world(void)
{
    return (World) {
        .call = { .start_ns = 5000, .took_ns = 7000, .result = 3, .cpu = 2,
                  .caller = 0x1000 },
        .args = { 64, 0 }, .task = { .pid = 9, .comm = "insmod" },
        .layout = kt_call_layout_find(NULL),
    };
}

/* ---- conditions ---------------------------------------------------------- */

static const struct {
    const char *condition;
    KtAnswer entry, at_return;
} rows[] = {
    { "arg0 == 64", KT_YES, KT_YES },
    { "arg0 == 65", KT_NO, KT_YES },
    { "arg2 == 0", KT_UNKNOWN, KT_YES },
    { "arg0 / arg1", KT_UNKNOWN, KT_YES },
    { "cpu == 2 && us == 5 && caller == 0x1000", KT_YES, KT_YES },
    { "pid == 9 && task(\"ins*\")", KT_YES, KT_YES },
    { "task(\"rm*\")", KT_NO, KT_YES },
    { "irq", KT_UNKNOWN, KT_YES },
    { "tgid == 9", KT_UNKNOWN, KT_YES },
    { "ret == 3 && took == 7 && !failed", KT_YES, KT_YES },
    { "ret != 3", KT_YES, KT_NO },
    { "arg0 == GFP_KERNEL", KT_NO, KT_YES },
    /* No prototype has the name, so it is not known. */
    { "gfp & GFP_KERNEL", KT_UNKNOWN, KT_YES },
    { "stack(f) || 1", KT_UNKNOWN, KT_YES },
};

TEST(conditions, "/watch/conditions")
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        World w = world();
        KtCallFacts facts = facts_of(&w);
        KtWatch *watched = watch(rows[i].condition);

        g_assert_cmpint(kt_watch_wants_entry(watched, &facts), ==,
                        rows[i].entry);
        g_assert_cmpint(kt_watch_wants_return(watched, &facts), ==,
                        rows[i].at_return);
        kt_watch_free(watched);
    }
}

/* What is to the right of a false && costs no walk. */
TEST(stacks_are_walked_when_needed, "/watch/stacks-are-walked-when-needed")
{
    World w = world();
    KtCallFacts facts = facts_of(&w);
    KtWatch *watched = watch("arg0 == 1 && stack(f)");
    KtWatch *later = watch("ret == 1 && stack(f)");

    kt_watch_wants_entry(watched, &facts);
    g_assert_cmpuint(w.stacks, ==, 0);
    g_assert_false(kt_watch_wants_stack(watched));
    g_assert_true(kt_watch_wants_stack(later));
    w.args[0] = 1;
    kt_watch_wants_entry(watched, &facts);
    g_assert_cmpuint(w.stacks, ==, 1);
    kt_watch_free(watched);
    kt_watch_free(later);
}

TEST(errors_and_durations, "/watch/errors-and-durations")
{
    const KtWatchSpec spec = { .functions = "f", .errors = true,
                               .longer_ns = 7000 };
    World w = world();
    KtCallFacts facts = facts_of(&w);
    KtWatch *watched = kt_watch_new(&spec, NULL, NULL, NULL, NULL);

    g_assert_cmpint(kt_watch_wants_return(watched, &facts), ==, KT_NO);
    w.call.result = -12;
    g_assert_cmpint(kt_watch_wants_return(watched, &facts), ==, KT_YES);
    w.call.result = (uint32_t)-12;
    g_assert_cmpint(kt_watch_wants_return(watched, &facts), ==, KT_YES);
    w.call.took_ns--;
    g_assert_cmpint(kt_watch_wants_return(watched, &facts), ==, KT_NO);
    g_assert_cmpstr(watched->text, ==, "f --errors --longer 7");
    kt_watch_free(watched);
}

TEST(calls_of_a_module, "/watch/calls-of-a-module")
{
    const KtWatchSpec spec = { .functions = "f", .module = "my-mod" };
    GsModule module = {
        .name = "my_mod", .live = true, .n = 1, .area = { { 0x1000, 0x2000 } },
    };
    KtWatch *w = kt_watch_new(&spec, NULL, NULL, NULL, NULL);

    g_assert_false(kt_watch_wants_caller(w, 0x1000));
    kt_watch_set_module(w, &module);
    g_assert_true(kt_watch_wants_caller(w, 0x1000));
    g_assert_true(kt_watch_wants_caller(w, 0x1fff));
    g_assert_false(kt_watch_wants_caller(w, 0x2000));
    module.live = false;
    kt_watch_set_module(w, &module);
    g_assert_false(kt_watch_wants_caller(w, 0x1000));
    kt_watch_free(w);
}

TEST(an_area_that_another_module_got_is_not_the_module_s,
     "/watch/an-area-that-another-module-got-is-not-the-module-s")
{
    const KtWatchSpec spec = { .functions = "f", .module = "mod" };
    const GsModule module = {
        .name = "mod", .live = true, .n = 2,
        .area = { { 0x1000, 0x3000 }, { 0x5000, 0x7000 } },
    };
    GsModule other = {
        .name = "other", .live = true, .n = 1, .area = { { 0x6000, 0x6800 } },
    };
    KtWatch *w = kt_watch_new(&spec, NULL, NULL, NULL, NULL);

    kt_watch_set_module(w, &module);
    kt_watch_set_module(w, &other);
    g_assert_true(kt_watch_wants_caller(w, 0x2fff));
    g_assert_false(kt_watch_wants_caller(w, 0x5000));
    g_assert_false(kt_watch_wants_caller(w, 0x6000));
    other.live = false;
    other.area[0] = (GsModuleArea) { 0x1000, 0x2000 };
    kt_watch_set_module(w, &other);
    g_assert_true(kt_watch_wants_caller(w, 0x1000));
    kt_watch_set_module(w, &module);
    g_assert_true(kt_watch_wants_caller(w, 0x6fff));
    kt_watch_free(w);
}
