/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Roots of a guest that lies about where they are: what it claims is looked at
 * for as long as it may be true. What counts as a root is in test-leak.c.
 */
#include "../lib/leak-guest.h"

/* A scan of so many reads has no end: the guest has 64 pages. */
#define READS_MAX 4096

static unsigned reads;

static bool count_read(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                       size_t len)
{
    g_assert_cmpuint(++reads, <, READS_MAX);
    return lg_read(opaque, vcpu, va, buf, len);
}

static void scan(LeakGuest *g, KtLeakReport *out)
{
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_autoptr(GError) err = NULL;

    reads = 0;
    g->vm.read = count_read;
    kt_leak_scan(g->t, &plan, out, &err);
    g_assert_no_error(err);
}

static void move_symbol(LeakGuest *g, const char *name, uint64_t to)
{
    gs_symtab_free(g->k.symtab);
    g->k.symtab = lg_symbols(name, to);
}

/* None of them has an end that could be true. */
static void test_ends_that_cannot_be(void)
{
    static const struct {
        const char *name;
        uint64_t va;
    } row[] = {
        { "__per_cpu_end", 0xffffffffffff0000ull },
        { "__per_cpu_end", 1ull << 40 },
        { "_edata", UINT64_MAX },
        { "__bss_stop", UINT64_MAX },
        { "__end_ro_after_init", LG_IMAGE + (1ull << 30) },
        { "init_stack", UINT64_MAX - 7 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        g_auto(KtLeakReport) r = { 0 };

        g_test_message("%s", row[i].name);
        move_symbol(g, row[i].name, row[i].va);
        scan(g, &r);
        g_assert_cmpuint(r.missing->len, ==, 0);
    }
}

static void test_stacks_that_are_too_long(void)
{
    static const uint32_t len[] = { 1u << 30, UINT32_MAX, 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(len); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        g_auto(KtLeakReport) r = { 0 };

        gs_btf_free(g->k.btf);
        g->k.btf = lg_types(len[i]);
        scan(g, &r);
        g_assert_cmpuint(r.tasks, ==, 3);
    }
}

/* Then its pages are those of the kernel. */
static void test_pages_of_such_variables_count(void)
{
    g_autoptr(LeakGuest) g = leak_guest_new();
    g_auto(KtLeakReport) r = { 0 };

    move_symbol(g, "__per_cpu_end", 1ull << 40);
    lg_put(g, LG_DIRECT + LG_AT_PERCPU + 0x1a00, LG_OBJECT(5));
    scan(g, &r);
    for (unsigned i = 0; i < r.leaks->len; i++) {
        g_assert_cmphex(g_array_index(r.leaks, KtLeak, i).block.va, !=,
                        LG_OBJECT(5));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/leak-roots/ends-that-cannot-be",
                    test_ends_that_cannot_be);
    g_test_add_func("/leak-roots/stacks-that-are-too-long",
                    test_stacks_that_are_too_long);
    g_test_add_func("/leak-roots/pages-of-such-variables-count",
                    test_pages_of_such_variables_count);
    return g_test_run();
}
