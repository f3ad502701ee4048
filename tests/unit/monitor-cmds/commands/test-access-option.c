/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The value of the plugin's option access= has the filters of ka access on.
 * Until checks have begun, ka error says that accesses are not checked.
 */
#include <string.h>

#include "monitor-cmds/mc.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

static void check_filters(const char *filters, const char *text)
{
    g_autoptr(TestWorld) w = test_world_new("");
    KtTracer *t = test_world_context(w)->tracer;
    g_autofree char *disarmed = NULL, *words = NULL;
    g_autoptr(GError) err = NULL;
    KtAccessInfo info = { 0 };

    mc_access_arm(NULL, filters, &err);
    g_assert_no_error(err);
    kt_access_info(t, &info);
    g_assert_false(info.wanted);
    mc_access_arm(t, filters, &err);
    g_assert_no_error(err);
    kt_access_info(t, &info);
    words = info.text;
    disarmed = info.disarmed;
    g_assert_true(info.wanted);
    g_assert_cmpstr(words, ==, text);
}

TEST(test_filters, "/access-option/filters")
{
    check_filters("on", NULL);
    check_filters("cache:dentry", "blocks of cache dentry");
    check_filters("module:my driver*", "accesses by code of module my driver*");
    check_filters("cache:it's", "blocks of cache it's");
    check_filters("on+writes", "stores only");
    check_filters("module:x+task:sh+only:out-of-bounds+verify",
                  "accesses of tasks sh, accesses by code of module x, "
                  "errors of kind out-of-bounds, errors that the allocator's "
                  "lists confirm");
}

TEST(test_old_words, "/access-option/old-words")
{
    check_filters("in:x", "accesses by code of module x");
}

/* Run "error", whose text has to have the part, or not. */
static void check_errors(TestWorld *w, const char *part, bool has)
{
    g_autofree char *text = NULL;
    int rc;

    text = test_world_run(w, "error -j", &rc);
    g_assert_cmpint(rc, ==, 0);
    g_assert_cmpint(strstr(text, part) != NULL, ==, has);
}

TEST(test_not_begun, "/access-option/not-begun")
{
    g_autoptr(TestWorld) w = test_world_new(
        "complete\nalloc va=ffff888000001000 size=30 us=1 stack=1");
    g_autoptr(GError) err = NULL;

    check_errors(w, "not checked", false);
    mc_access_arm(test_world_tracer(w), "on", &err);
    g_assert_no_error(err);
    check_errors(w, "not all are known: accesses are not checked: the kernel "
                 "is not known yet", true);
    kt_access_disarm(test_world_tracer(w));
    check_errors(w, "not checked", false);
}

static void check_refused(const char *filters, const char *part)
{
    g_autoptr(GError) err = NULL;

    g_assert_false(mc_access_arm(NULL, filters, &err));
    g_assert_null(strchr(err->message, '\n'));
    if (!strstr(err->message, part)) {
        g_error("%s: \"%s\" is not in: %s", filters, part, err->message);
    }
}

TEST(test_refused, "/access-option/refused")
{
    check_refused("off", "\"--off\": not an option of \"ka access on\"");
    check_refused("cache", "\"--cache\": its value <name> is missing");
    check_refused("cache:", "\"cache:\": a word is empty");
    check_refused("writes+", "a word is empty");
    check_refused("writes++verify", "a word is empty");
    check_refused("only:nothing", "use-after-free");
    check_refused("layer:percpu", "not checked");
    check_refused("alloc:kmalloc", "use ka access on in a script");
    check_refused("help", "ka access on -h");
}
