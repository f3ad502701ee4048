/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ka events: what is listed of a journal's file, and what is told of it. */
#include "journal-files.h"
#include "mc.h"

#define VA 0xffff888000001000u

/* ---- help --------------------------------------------------------------- */

static void push(KtTracer *t, KtEventKind kind, uint64_t va, uint64_t us)
{
    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = kind, .va = va, .size = kind == KT_EV_ALLOC ? 64 : 0,
        .us = us, .layer = KT_LAYER_KMALLOC, .family = KT_FAMILY_KFREE });
}

static bool keep(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* (owned) what the command prints. */
static char *run(const char *path, const char *line)
{
    g_autoptr(KtTracer) t = new_tracer(NULL, NULL);
    GString *out = g_string_new(NULL);
    const McContext ctx = {
        .tracer = t, .puts = keep, .puts_opaque = out, .journal = path,
        .until_us = UINT64_MAX,
    };

    g_assert_cmpint(mc_run(&ctx, line), ==, 0);
    return g_string_free(out, FALSE);
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (; (text = strstr(text, what)); text++) {
        n++;
    }
    return n;
}

/* ---- tests -------------------------------------------------------------- */

/* A limit is one of marks, too. */
static void marks_behind_the_limit(void)
{
    char *path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *all = NULL, *some = NULL;

    for (unsigned i = 0; i < 4; i++) {
        push(t, KT_EV_ALLOC, VA + 64 * i, 10 + i);
        kt_tracer_set_complete(t, true);
    }
    kt_tracer_free(t);
    all = run(path, "events");
    some = run(path, "events -n 2");
    g_assert_cmpuint(count(all, "complete"), ==, 4);
    g_assert_cmpuint(count(some, "complete"), ==, 1);
    remove_path(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/events/marks-behind-the-limit", marks_behind_the_limit);
    return g_test_run();
}
