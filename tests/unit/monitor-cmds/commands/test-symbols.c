/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka symbols of a riscv64 kernel, whose rules are made of code in guest memory:
 * the file is complete if a vCPU maps the kernel, and else says that it is not.
 */
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"
#include "monitor-cmds/mc.h"
#include "tests/lib/fake-vm.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define TEXT        0xffffffff80002000ull
#define INCOMPLETE  "incomplete: 2 reads of code failed because no vCPU maps " \
                    "the kernel now"

/* Reads of a VM, of which the first @fail ones fail. */
typedef struct Late {
    KtVm vm;
    const KtVm *whole;
    unsigned fail;
} Late;

static bool read_late(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                      size_t len)
{
    Late *l = opaque;

    if (l->fail) {
        l->fail--;
        return false;
    }
    return l->whole->read(l->whole->opaque, vcpu, va, buf, len);
}

static void kernel_init(GsKernel *k)
{
    *k = (GsKernel) {
        .arch = &gs_arch_riscv64,
        .text[0] = { TEXT, TEXT + 0x20 },
        .orc = gs_orc_set_new(), .modules = gs_modules_new(),
        .symtab = gs_symtab_new(),
    };
    gs_symtab_add(k->symtab, TEXT, 'T', "_stext", 6);
    gs_symtab_add(k->symtab, TEXT, 't', "f", 1);
    gs_symtab_add(k->symtab, TEXT + 0x10, 't', "g", 1);
    gs_symtab_add(k->symtab, TEXT + 0x20, 'T', "_etext", 6);
    gs_symtab_seal(k->symtab, NULL);
}

static void kernel_deinit(GsKernel *k)
{
    gs_orc_set_free(k->orc);
    gs_modules_free(k->modules);
    gs_symtab_free(k->symtab);
}

static bool add_text(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* Return (owned) the first line of `ka symbols`, of a VM whose vCPU maps the
 * kernel if @mapped, after @fail reads. */
static char *symbols(bool mapped, bool running, unsigned fail)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(TestVm) vm = test_vm_new();
    const KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    Late late = { .vm = *test_vm_look(vm), .whole = test_vm_look(vm),
                  .fail = fail };
    GsKernel k;
    const McContext ctx = {
        .tracer = t, .kernel = &k, .kernel_found = true, .vm = &late.vm,
        .puts = add_text, .puts_opaque = text, .until_us = UINT64_MAX,
    };

    kernel_init(&k);
    late.vm.read = read_late;
    late.vm.opaque = &late;
    late.vm.running = running;
    if (mapped) {
        test_vm_word(vm, TEXT, 0x8082808280828082);
    }
    g_assert_cmpint(mc_run(&ctx, "symbols"), ==, 0);
    kernel_deinit(&k);
    return g_strndup(text->str, strcspn(text->str, "\n"));
}

static void expect(const char *line, bool complete)
{
    g_test_message("%s", line);
    g_assert_nonnull(strstr(line, "ranges of code by frame records"));
    g_assert_cmpint(g_str_has_prefix(line, "-- symbols 0: "), !=, complete);
    g_assert_cmpint(strstr(line, INCOMPLETE) != NULL, !=, complete);
}

TEST(complete, "/symbols/complete")
{
    g_autofree char *line = symbols(true, false, 0);

    expect(line, true);
}

TEST(not_mapped, "/symbols/not-mapped")
{
    g_autofree char *line = symbols(false, false, 0);

    expect(line, false);
}

/* A running VM maps the kernel a moment later. */
TEST(waits, "/symbols/waits")
{
    g_autofree char *line = symbols(true, true, 10);

    expect(line, true);
}

/* A running VM never maps the kernel. */
TEST(waits_in_vain, "/symbols/waits-in-vain")
{
    g_autofree char *line = symbols(false, true, 0);

    expect(line, false);
}
