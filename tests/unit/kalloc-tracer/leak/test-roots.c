/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Roots of a hostile guest: wrong addresses and sizes are bounded. Which memory
 * is a root is tested in test-leak-scan.c.
 */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"

/* More reads mean an endless loop: the guest has 64 pages. */
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

static bool is_leaked(const KtLeakReport *r, uint64_t va)
{
    for (unsigned i = 0; i < r->leaks->len; i++) {
        if (g_array_index(r->leaks, KtLeak, i).block.va == va) {
            return true;
        }
    }
    return false;
}

static void move_symbol(LeakGuest *g, const char *name, uint64_t to)
{
    gs_symtab_free(g->k.symtab);
    g->k.symtab = lg_symbols(name, to);
}

/* Symbols of ranges whose end is impossible. */
TEST(test_ends_that_cannot_be, "/leak-roots/ends-that-cannot-be")
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

TEST(test_stacks_that_are_too_long, "/leak-roots/stacks-that-are-too-long")
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

/* A stack of riscv64 may have 64 KiB, and twice that with KASAN. The pointer is
 * the last word of a sleeping task's stack. */
TEST(test_the_longest_stack, "/leak-roots/the-longest-stack")
{
    const uint32_t len = 128 << 10;
    const uint64_t end = LG_DIRECT + LG_AT_FREE + 0x2000;
    g_autoptr(LeakGuest) g = leak_guest_new();
    g_auto(KtLeakReport) before = { 0 }, after = { 0 };

    lg_put(g, end - 0x800, LG_OBJECT(5));
    scan(g, &before);
    g_assert_true(is_leaked(&before, LG_OBJECT(5)));
    gs_btf_free(g->k.btf);
    g->k.btf = lg_types(len);
    lg_put(g, LG_TASK(1) + LG_TASK_STACK, end - len);
    lg_put(g, LG_TASK(1) + LG_TASK_SP, end - 0x1000);
    scan(g, &after);
    g_assert_false(is_leaked(&after, LG_OBJECT(5)));
}

/* Without symbols, pages of the image are scanned as pages of the kernel. */
LEAK_TEST(test_pages_of_such_variables_count,
          "/leak-roots/pages-of-such-variables-count")
{
    g_auto(KtLeakReport) r = { 0 };

    move_symbol(g, "__per_cpu_end", 1ull << 40);
    lg_put(g, LG_DIRECT + LG_AT_PERCPU + 0x1a00, LG_OBJECT(5));
    scan(g, &r);
    g_assert_false(is_leaked(&r, LG_OBJECT(5)));
}

/* A part of bss was freed, and has another owner. */
TEST(test_freed_variables, "/leak-roots/freed-variables")
{
    const uint64_t va = LG_IMAGE + LG_DATA_END + 0x800;

    for (unsigned i = 0; i < 2; i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        g_auto(KtLeakReport) r = { 0 };

        /* bss has one page, of which the end was freed; a user has it now */
        lg_put(g, lg_struct(LG_AT_BSS) + LG_PAGE_MAPPING, 1);
        move_symbol(g, "__start_bss_decrypted_unused", va + (i ? 8 : 0));
        lg_put(g, va, LG_OBJECT(5));
        scan(g, &r);
        g_assert_cmpint(is_leaked(&r, LG_OBJECT(5)), ==, !i);
    }
}
