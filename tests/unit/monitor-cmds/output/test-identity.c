/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identity of a finding: what changes its title and its hashes, and what does
 * not. A stack is written as "f+10 m:g+8 ?", the leaf first; ! at the end: it
 * ended early.
 */
#include "monitor-cmds/output/identity.h"
#include "tests/lib/test-main.h"

#include <stdlib.h>
#include <string.h>

static void add_frame(McIdentityMaker *m, const char *text)
{
    g_auto(GStrv) part = g_strsplit(text, "+", 2);
    g_auto(GStrv) name = g_strsplit(part[0], ":", 2);
    uint64_t offset = part[1] ? strtoull(part[1], NULL, 16) : 0;

    if (!strcmp(text, "?")) {
        mc_identity_frame(m, NULL, NULL, 0);
    } else if (name[1]) {
        mc_identity_frame(m, name[0], name[1], offset);
    } else {
        mc_identity_frame(m, NULL, name[0], offset);
    }
}

static void add_stack(McIdentityMaker *m, McIdentityStack which,
                      const char *text)
{
    g_auto(GStrv) frame = g_strsplit(text, " ", 0);
    bool whole = true;

    mc_identity_stack(m, which);
    for (unsigned i = 0; frame[i]; i++) {
        if (!strcmp(frame[i], "!")) {
            whole = false;
        } else if (*frame[i]) {
            add_frame(m, frame[i]);
        }
    }
    mc_identity_stack_end(m, whole);
}

/* Make an identity of the stacks of an error and of its block; NULL: it has no
 * block. */
static McIdentity *make(const char *kind, const char *error, const char *alloc)
{
    g_autoptr(McIdentityMaker) m = mc_identity_begin(kind);

    add_stack(m, MC_IDENTITY_ERROR, error);
    if (alloc) {
        add_stack(m, MC_IDENTITY_ALLOC, alloc);
        mc_identity_alt(m, "bad-free of kmalloc-64", MC_IDENTITY_ALLOC);
    }
    return mc_identity_end(m, MC_IDENTITY_ERROR, "kfree");
}

TEST(test_titles, "/identity/titles")
{
    static const char *const cases[][3] = {
        { "close_it+1c sys_close+8", "a", "double-free in close_it" },
        { "kfree_skb+4 m:drop.isra.0+8", "a", "double-free in drop" },
        /* only of the kernel proper */
        { "m:kfree_mine+4 f", "a", "double-free in kfree_mine" },
        { "kvfree+4 kfree_sensitive+8", "a", "double-free in kvfree" },
        { "__x64_sys_ioctl+4", "a", "double-free in sys_ioctl" },
        { "? ? f+1", "a", "double-free in f" },
        { "? ?", "a", "double-free in kfree" },
        { "", "a", "double-free in kfree" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(McIdentity) id = make("double-free", cases[i][0],
                                        cases[i][1]);

        g_assert_cmpstr(id->title, ==, cases[i][2]);
        g_assert_cmpstr(id->alt[0], ==, "bad-free of kmalloc-64 from a");
        g_assert_null(id->alt[1]);
    }
}

TEST(test_no_function, "/identity/no-function")
{
    g_autoptr(McIdentityMaker) m = mc_identity_begin(MC_KIND_LEAK);
    g_autoptr(McIdentity) id = NULL;

    add_stack(m, MC_IDENTITY_ALLOC, "");
    mc_identity_alt(m, "leak of x", MC_IDENTITY_ALLOC);
    id = mc_identity_end(m, MC_IDENTITY_ALLOC, NULL);
    g_assert_cmpstr(id->title, ==, "leak in an unknown function");
    g_assert_null(id->alt[0]);
    g_assert_true(id->weak);
}

/* ---- hashes -------------------------------------------------------------- */

#define ERROR "close_it+1c m:top+4 sys_close+8 do_syscall_64+5"
#define ALLOC "open_it+10 sys_open+8 do_syscall_64+5"

/* Same fold, other exact: what another build or architecture changes. */
TEST(test_same_fold, "/identity/same-fold")
{
    static const char *const cases[][2] = {
        { "close_it+2c m:top+4 sys_close+8 do_syscall_64+5", ALLOC },
        { "close_it.isra.0+1c m:top+4 sys_close+8 do_syscall_64+5", ALLOC },
        { "close_it+1c m:top.llvm.77+4 __x64_sys_close+8 x64_sys_call+9 "
          "do_syscall_64+5", ALLOC },
        { "close_it+1c m:top+4 __arm64_sys_close+8 invoke_syscall+4 "
          "el0_svc+4 ?", ALLOC },
        { "close_it+1c m:top+4 __do_sys_close+4 __riscv_sys_close+8 "
          "do_trap_ecall_u+4", ALLOC },
        { ERROR, "kmemdup_noprof+4 open_it+10 sys_open+8 do_syscall_64+5" },
        /* recursion, direct and by another function */
        { "close_it+1c close_it+1c m:top+4 close_it+3 m:top+4 sys_close+8 "
          "do_syscall_64+5", ALLOC },
    };
    g_autoptr(McIdentity) want = make("double-free", ERROR, ALLOC);

    g_assert_cmpuint(strlen(want->fold), ==, MC_IDENTITY_DIGITS);
    g_assert_cmpuint(strlen(want->exact), ==, MC_IDENTITY_DIGITS);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(McIdentity) id = make("double-free", cases[i][0],
                                        cases[i][1]);

        g_test_message("%s | %s", cases[i][0], cases[i][1]);
        g_assert_cmpstr(id->fold, ==, want->fold);
        g_assert_cmpstr(id->exact, !=, want->exact);
        g_assert_cmpstr(id->title, ==, want->title);
        g_assert_false(id->weak);
    }
}

TEST(test_other_fold, "/identity/other-fold")
{
    static const char *const cases[][3] = {
        { "invalid-free", ERROR, ALLOC },
        { "double-free", ERROR, "open_that+10 sys_open+8 do_syscall_64+5" },
        { "double-free", ERROR, NULL },
        { "double-free", "close_it+1c n:top+4 sys_close+8", ALLOC },
        { "double-free", "close_it+1c top+4 sys_close+8", ALLOC },
        { "double-free", "close_it+1c m:top+4 sys_closex+8", ALLOC },
        { "double-free", "close_it+1c m:top+4 sys_close+8 open_it+10", "" },
        { "double-free", "close_it+1c sys_close+8", ALLOC },
        { "double-free", "? m:top+4 sys_close+8", ALLOC },
    };
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                       g_free, NULL);
    g_autoptr(McIdentity) first = make("double-free", ERROR, ALLOC);

    g_hash_table_add(seen, g_strdup(first->fold));
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(McIdentity) id = make(cases[i][0], cases[i][1], cases[i][2]);

        g_test_message("%s | %s", cases[i][1], cases[i][2]);
        g_assert_true(g_hash_table_add(seen, g_strdup(id->fold)));
    }
}

/* Which stack a frame is of matters, too. */
TEST(test_which_stack, "/identity/which-stack")
{
    g_autoptr(McIdentityMaker) x = mc_identity_begin("double-free");
    g_autoptr(McIdentityMaker) y = mc_identity_begin("double-free");
    g_autoptr(McIdentity) a = NULL, b = NULL;

    add_stack(x, MC_IDENTITY_ERROR, "f+1");
    add_stack(x, MC_IDENTITY_FREE, "g+1");
    add_stack(y, MC_IDENTITY_ERROR, "f+1");
    add_stack(y, MC_IDENTITY_ALLOC, "g+1");
    a = mc_identity_end(x, MC_IDENTITY_ERROR, NULL);
    b = mc_identity_end(y, MC_IDENTITY_ERROR, NULL);
    g_assert_cmpstr(a->fold, !=, b->fold);
    g_assert_cmpstr(a->exact, !=, b->exact);
}

TEST(test_weak, "/identity/weak")
{
    static const struct {
        const char *error, *alloc;
        bool weak;
    } cases[] = {
        { ERROR, ALLOC, false },
        { ERROR, NULL, false },
        { "f+1", "g+1", false },
        { "f+1 !", "g+1", true },
        { "f+1", "g+1 !", true },
        { "f+1 ? h+1", "g+1", true },
        { "", "g+1", true },
        { "f+1", "", true },
        /* behind the entry nothing counts */
        { "f+1 asm_exc_page_fault+3 ? !", "g+1", false },
        { "do_syscall_64+3", "g+1", true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(McIdentity) id = make("overlap", cases[i].error,
                                        cases[i].alloc);

        g_test_message("%s | %s", cases[i].error, cases[i].alloc);
        g_assert_cmpint(id->weak, ==, cases[i].weak);
    }
}

TEST(test_caches, "/identity/caches")
{
    static const char *const cases[][2] = {
        { "kmalloc-64", "kmalloc-64" },
        { "kmalloc-rnd-05-64", "kmalloc-64" },
        { "kmalloc-rnd-15-8k", "kmalloc-8k" },
        { "kmalloc-rnd-", "kmalloc-rnd-" },
        { "kmalloc-rnd-05", "kmalloc-rnd-05" },
        { "kmalloc-rnd-x-64", "kmalloc-rnd-x-64" },
        { "dentry", "dentry" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *got = mc_identity_cache(cases[i][0]);

        g_assert_cmpstr(got, ==, cases[i][1]);
    }
}
