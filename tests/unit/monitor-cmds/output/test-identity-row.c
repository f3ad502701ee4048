/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identities of the rows of ka error: the right stacks and the right cache are
 * used, and the addresses of the kernel and of a module do not matter.
 */
#include "monitor-cmds/mc.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

#include <inttypes.h>
#include <string.h>

/* Run a script whose symbols are at @base, and print the errors as JSON. The
 * functions are 0x100 bytes each. */
static char *errors_at(uint64_t base, const char *events)
{
    static const char *const names[] = {
        "open_it", "close_it", "again", "kmemdup", "queue_it",
        "rcu_do_batch", "do_syscall_64",
    };
    g_autoptr(GString) script = g_string_new(NULL);
    g_autoptr(TestWorld) w = NULL;
    g_auto(GStrv) part = g_strsplit(events, "@", 0);

    g_string_printf(script, "symbol va=%" PRIx64 " name=_stext\n",
                    base - 0x1000);
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_string_append_printf(script, "symbol va=%" PRIx64 " name=%s\n",
                               base + i * 0x100, names[i]);
    }
    g_string_append_printf(script, "symbol va=%" PRIx64 " name=_etext\n"
                           "complete\n", base + 0x10000);
    for (unsigned i = 0; part[i]; i++) {
        g_string_append(script, part[i]);
        if (part[i + 1]) {      /* @N: frame N */
            g_string_append_printf(script, "%" PRIx64, base + 0x10 + 0x100 *
                                   (uint64_t)(part[i + 1][0] - '0'));
            memmove(part[i + 1], part[i + 1] + 1, strlen(part[i + 1]));
        }
    }
    w = test_world_new(script->str);
    return test_world_run(w, "error -j -n 0", NULL);
}

/* Return (owned) the value of a key of the last object. */
static char *value_of(const char *json, const char *key)
{
    g_autofree char *begin = g_strdup_printf("\"%s\":", key);
    const char *at = g_strrstr(json, begin);
    size_t len;

    g_assert_nonnull(at);
    at += strlen(begin);
    len = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ",}");
    return g_strndup(at, len);
}

static void check(const char *json, const char *key, const char *want)
{
    g_autofree char *got = value_of(json, key);

    g_test_message("%s: %s", key, got);
    g_assert_cmpstr(got, ==, want);
}

#define ALLOC "alloc va=1000 size=40 us=1 cache=kmalloc-rnd-07-64 " \
              "stack=@3,@0,@6\n"

TEST(test_double_free, "/identity-row/double-free")
{
    g_autofree char *json = errors_at(0xffffffff81000000, ALLOC
                                      "free va=1000 us=2 stack=@1,@6\n"
                                      "free va=1000 us=3 stack=@2,@6\n");

    check(json, "title", "\"double-free in again\"");
    check(json, "alt", "[\"bad-free of kmalloc-64 from open_it\"]");
    check(json, "weak", "0");
}

TEST(test_same_at_another_address, "/identity-row/another-address")
{
    static const char events[] = ALLOC "free va=1000 us=2 stack=@1,@6\n"
                                 "free va=1000 us=3 stack=@2,@6\n";
    g_autofree char *x = errors_at(0xffffffff81000000, events);
    g_autofree char *y = errors_at(0xffffffffa3400000, events);
    g_autofree char *fold = value_of(x, "fold");
    g_autofree char *exact = value_of(x, "exact");

    check(y, "fold", fold);
    check(y, "exact", exact);
}

/* Of a block that kfree_rcu() queued, the stack of its free is chance. */
TEST(test_rcu, "/identity-row/rcu")
{
    g_autofree char *x = errors_at(0xffffffff81000000, ALLOC
                                   "rcu va=1000 us=2 stack=@4,@6\n"
                                   "free va=1000 us=3 stack=@5\n"
                                   "free va=1000 us=4 stack=@2,@6\n");
    g_autofree char *y = errors_at(0xffffffff81000000, ALLOC
                                   "rcu va=1000 us=2 stack=@4,@6\n"
                                   "free va=1000 us=3 stack=@1,@5\n"
                                   "free va=1000 us=4 stack=@2,@6\n");
    g_autofree char *z = errors_at(0xffffffff81000000, ALLOC
                                   "rcu va=1000 us=2 stack=@1,@6\n"
                                   "free va=1000 us=3 stack=@5\n"
                                   "free va=1000 us=4 stack=@2,@6\n");
    g_autofree char *fold = value_of(x, "fold");
    g_autofree char *other = value_of(z, "fold");

    check(y, "fold", fold);
    g_assert_cmpstr(other, !=, fold);
}

TEST(test_no_block, "/identity-row/no-block")
{
    g_autofree char *json = errors_at(0xffffffff81000000,
                                      "free va=1000 us=3 stack=@2,@6\n");

    check(json, "title", "\"invalid-free in again\"");
    check(json, "alt", "[]");
    check(json, "weak", "0");
}

TEST(test_unknown, "/identity-row/unknown")
{
    g_autofree char *json = errors_at(0xffffffff81000000,
                                      "free va=1000 us=3 stack=1234 "
                                      "hook=kfree\n");

    check(json, "title", "\"invalid-free in kfree\"");
    check(json, "weak", "1");
}
