/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stack rules and the hash of a stack: the hash is the same for another slide
 * of the kernel and another address of the module, and differs for another
 * caller. Frames behind the entry of an interrupt do not count.
 */
#include <string.h>

#include "kalloc-tracer/conditions/stack-rules.h"
#include "tests/lib/test-main.h"

#define MAP "ffffffff81000000 T _stext\n" \
            "ffffffff81001000 T do_work\n" \
            "ffffffff81002000 T do_syscall_64\n" \
            "ffffffff81003000 T entry_SYSCALL_64_after_hwframe\n" \
            "ffffffff81004000 T asm_sysvec_timer\n" \
            "ffffffff81005000 T interrupted\n" \
            "ffffffff81010000 T _etext\n"

static GsKernel *kernel(uint64_t slide, uint64_t module)
{
    g_autoptr(GError) err = NULL;
    GsModuleSymbol sym[] = {
        { module, "init", 't' }, { module + 0x100, "alloc", 't' },
    };
    GsKernel *k = gs_kernel_new_from_data(MAP, strlen(MAP), "map", &err);

    g_assert_no_error(err);
    gs_kernel_set_slide(k, slide);
    gs_kernel_add_module_data(k, 0xffff888000000000, "ka_test", module, 0x1000,
                              sym, G_N_ELEMENTS(sym), 0, NULL, NULL, 0, &err);
    g_assert_no_error(err);
    return k;
}

/** struct Place - a kernel at a slide, and its module at an address */
typedef struct Place {
    uint64_t slide, module;
} Place;

static const Place here = { 0, 0xffffffffc0000000 };
static const Place there = { 0x3e00000, 0xffffffffc0123000 };

/* The stack of a call from alloc+@at of the module. */
static KtStackFacts facts_of(const Place *p, uint64_t at, GsStop stop,
                             unsigned n, KtStackRules *r)
{
    GsKernel *k = kernel(p->slide, p->module);
    uint64_t text = 0xffffffff81000000 + p->slide;
    uint64_t frames[] = {
        p->module + 0x100 + at, text + 0x1010, text + 0x2020, text + 0x3030,
    };
    KtCallStack s = { { 7 }, frames, n, stop, gs_kernel_era(k, frames, n) };
    KtStackFacts f = kt_stack_rules_facts(r, k, &s);

    gs_kernel_free(k);
    return f;
}

static uint64_t hash_of(const Place *p, uint64_t at, GsStop stop, unsigned n)
{
    g_autoptr(KtStackRules) r = kt_stack_rules_new(NULL, KT_MEM_FAULTS);

    return facts_of(p, at, stop, n, r).hash;
}

TEST(the_same_elsewhere, "/stack-rules/the-same-elsewhere")
{
    uint64_t hash = hash_of(&here, 0x20, GS_STOP_USER, 4);

    g_assert_cmphex(hash, ==, hash_of(&there, 0x20, GS_STOP_USER, 4));
    g_assert_cmphex(hash, !=, hash_of(&here, 0x24, GS_STOP_USER, 4));
    g_assert_cmphex(hash, !=, hash_of(&here, 0x20, GS_STOP_USER, 3));
    g_assert_cmphex(hash, !=, 0);
}

/* What the walk says behind the entry makes no difference; a walk that ends
 * before it does. */
TEST(cut_stacks, "/stack-rules/cut-stacks")
{
    g_autoptr(KtStackRules) r = kt_stack_rules_new(NULL, KT_MEM_FAULTS);

    g_assert_cmphex(hash_of(&here, 0x20, GS_STOP_USER, 4), ==,
                    hash_of(&here, 0x20, GS_STOP_BAD_FRAME, 4));
    g_assert_cmphex(hash_of(&here, 0x20, GS_STOP_USER, 3), !=,
                    hash_of(&here, 0x20, GS_STOP_BAD_FRAME, 3));
    g_assert_true(facts_of(&here, 0x20, GS_STOP_DEPTH, 3, r).cut);
}

TEST(interrupts, "/stack-rules/interrupts")
{
    g_autoptr(KtStackRules) r = kt_stack_rules_new(NULL, KT_MEM_FAULTS);
    g_autoptr(GsKernel) k = kernel(0, here.module);
    uint64_t one[] = {
        0xffffffff81001010, 0xffffffff81004010, 0xffffffff81005010,
        0xffffffff81003010,
    };
    uint64_t other[] = { 0xffffffff81001010, 0xffffffff81004010 };
    KtCallStack s = { { 1 }, one, 4, GS_STOP_USER, gs_kernel_era(k, one, 4) };
    KtCallStack t = { { 2 }, other, 2, GS_STOP_DEPTH,
                      gs_kernel_era(k, other, 2) };
    int interrupted = kt_stack_rules_add(r, KT_STACK_FRAME, "interrupted");
    KtStackFacts f = kt_stack_rules_facts(r, k, &s);

    g_assert_cmphex(f.hash, ==, kt_stack_rules_facts(r, k, &t).hash);
    g_assert_false(f.rules >> interrupted & 1);
    g_assert_false(f.cut);
}

TEST(rules, "/stack-rules/rules")
{
    static const struct {
        KtStackRuleKind kind;
        const char *name;
        bool holds;
    } rows[] = {
        { KT_STACK_FRAME, "alloc", true },
        { KT_STACK_FRAME, "do_syscall_64", true },
        { KT_STACK_FRAME, "do_syscall", false },
        { KT_STACK_FRAME, "init", false },
        { KT_STACK_FRAME, "ka_test:alloc", true },
        { KT_STACK_FRAME, "ka_test:init", false },
        { KT_STACK_FRAME, "ka_tes:alloc", false },
        { KT_STACK_FRAME, "ka_test:do_work", false },
        { KT_STACK_CALLER, "alloc", true },
        { KT_STACK_CALLER, "do_work", false },
        { KT_STACK_CALLER, "ka_test:alloc", true },
        { KT_STACK_CALLER, "other:alloc", false },
        { KT_STACK_MODULE, "ka_test", true },
        { KT_STACK_MODULE, "ka", false },
        { KT_STACK_CALLER_MODULE, "ka_test", true },
        { KT_STACK_CALLER_MODULE, "other", false },
    };
    g_autoptr(KtStackRules) r = kt_stack_rules_new(NULL, KT_MEM_FAULTS);
    g_autoptr(GHashTable) set = g_hash_table_new(g_str_hash, g_str_equal);
    KtStackFacts f;
    int i, in_set;

    g_hash_table_add(set, (gpointer)"do_work");
    for (i = 0; i < (int)G_N_ELEMENTS(rows); i++) {
        g_assert_cmpint(kt_stack_rules_add(r, rows[i].kind, rows[i].name), ==,
                        i);
        g_assert_cmpint(kt_stack_rules_add(r, rows[i].kind, rows[i].name), ==,
                        i);
    }
    in_set = kt_stack_rules_add_set(r, set);
    f = facts_of(&there, 0x20, GS_STOP_USER, 4, r);
    for (i = 0; i < (int)G_N_ELEMENTS(rows); i++) {
        g_assert_cmpint(f.rules >> i & 1, ==, rows[i].holds);
    }
    g_assert_true(f.rules >> in_set & 1);
}

TEST(too_many, "/stack-rules/too-many")
{
    g_autoptr(KtStackRules) r = kt_stack_rules_new(NULL, KT_MEM_FAULTS);

    for (int i = 0; i < KT_STACK_RULES_MAX; i++) {
        g_autofree char *name = g_strdup_printf("f%d", i);

        g_assert_cmpint(kt_stack_rules_add(r, KT_STACK_FRAME, name), ==, i);
    }
    g_assert_cmpint(kt_stack_rules_add(r, KT_STACK_FRAME, "more"), ==, -1);
    g_assert_cmpint(kt_stack_rules_add(r, KT_STACK_FRAME, "f3"), ==, 3);
}
