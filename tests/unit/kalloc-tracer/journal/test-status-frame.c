/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `ka stat` prints from a journal what its status frames contain. */
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"
#include "monitor-cmds/mc.h"

static bool keep(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* (owned) what is answered where there is no kernel. */
static char *without_kernel(KtTracer *t, const char *why, const char *line)
{
    GString *out = g_string_new(NULL);
    const McContext ctx = {
        .tracer = t, .puts = keep, .puts_opaque = out, .why_no_kernel = why,
    };

    g_assert_cmpint(mc_run(&ctx, line), ==, 1);
    return g_string_free(out, FALSE);
}

/* Why there is none has the name of a file in it. It is said with the same
 * bytes, all of them printable, by a live VM and from its journal. */
TEST(name_of_any_bytes, "/journal-status/name-of-any-bytes")
{
    const char why[] = "/home/jos\xc3\xa9/\x1b[1m\n: not a kernel";
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    KtStatus back;

    kt_tracer_save_status(t, &(KtStatus) { .why_no_kernel = why });
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    kt_replay_status(r, &back);
    for (unsigned json = 0; json < 2; json++) {
        const char *line = json ? "show kmalloc -j" : "show kmalloc";
        g_autofree char *live = without_kernel(t, why, line);
        g_autofree char *file = without_kernel(
            kt_replay_tracer(r), back.why_no_kernel, line);

        g_assert_cmpstr(file, ==, live);
        g_assert_nonnull(strstr(file, json ? "\\u00c3\\u00a9" :
                                             "\\xc3\\xa9"));
        g_assert_null(strchr(file, '\x1b'));
        g_assert_true(strchr(file, '\n') == file + strlen(file) - 1);
    }
}

/* Row 0 relies on no other. */
static bool hook_of(void *opaque, unsigned i, KtHookStatus *out)
{
    *out = (KtHookStatus) {
        .name = i ? "krealloc" : "kfree", .va = 0x1000 + i, .hits = 7,
        .calls = i ? "yes" : NULL,
    };
    return true;
}

TEST(hooks_come_back, "/journal-status/hooks-come-back")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    KtHookStatus h;
    KtStatus back;

    kt_tracer_save_status(t, &(KtStatus) { .n_hooks = 2, .hook = hook_of });
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    kt_replay_status(r, &back);
    g_assert_cmpuint(back.n_hooks, ==, 2);
    g_assert_true(back.hook(back.opaque, 0, &h));
    g_assert_null(h.calls);
    g_assert_true(back.hook(back.opaque, 1, &h));
    g_assert_cmpstr(h.name, ==, "krealloc");
    g_assert_cmphex(h.va, ==, 0x1001);
    g_assert_cmpstr(h.calls, ==, "yes");
    g_assert_false(back.hook(back.opaque, 2, &h));
}
