/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka regs after a panic: registers are those of the code that the exception
 * interrupted, not those of the loop in which the kernel waits for its reboot.
 */
#include <string.h>

#include "monitor-cmds/mc.h"
#include "tests/lib/bare-tracer.h"
#include "tests/lib/frame-kernel.h"
#include "tests/lib/guest-stacks.h"
#include "tests/lib/test-main.h"

#define TEXT    0xffffffff81000000ull
#define BLOCK   0xffff888000001000ull
#define OTHER   0xffff888000002000ull

/* Functions, 0x100 bytes each; a frame in them returns to +0x50. */
enum { WAITS, PANIC, ENTRY, CRASHES, KTHREAD };

#define AT(f) (TEXT + (f) * 0x100 + 0x50)
#define START(f) (TEXT + (f) * 0x100)

static const OrcRow rows[] = {
    { START(WAITS), GS_ORC_CALL, R_SP, 8 },
    { START(PANIC), GS_ORC_CALL, R_SP, 8 },
    { START(ENTRY), GS_ORC_REGS, R_SP, 0 },
    { START(CRASHES), GS_ORC_CALL, R_SP, 8 },
    { START(KTHREAD), GS_ORC_END },
};
static const FrameSymbol symbols[] = {
    { START(WAITS), "mdelay" }, { START(PANIC), "panic" },
    { START(ENTRY), "asm_exc_page_fault" }, { START(CRASHES), "crash" },
    { START(KTHREAD), "ret_from_fork_asm" }, { START(KTHREAD) + 256, "_etext" },
};

typedef struct World {
    Guest *g;
    KtTracer *t;
    GString *out;
    uint64_t sp;
} World;

static bool read_guest(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                       size_t len)
{
    const uint8_t *page = guest_page(((World *)opaque)->g, va);

    if (page) {
        memcpy(buf, page + (va & 0xfff), len);
    }
    return page;
}

static bool read_reg(void *opaque, unsigned vcpu, unsigned i, KtRegister *out)
{
    const KtRegister regs[] = {
        { "rax", OTHER }, { "rdi", OTHER }, { "rbp", 0 },
        { "rsp", ((World *)opaque)->sp }, { "rip", AT(WAITS) },
    };

    if (i < G_N_ELEMENTS(regs)) {
        *out = regs[i];
    }
    return i < G_N_ELEMENTS(regs);
}

static bool put(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

static void allocate(World *w, uint64_t va)
{
    const KtEvent ev = {
        .kind = KT_EV_ALLOC, .va = va, .size = 64, .actual = 64, .us = 1,
        .layer = KT_LAYER_KMALLOC, .family = KT_FAMILY_ANY,
    };

    kt_tracer_push(w->t, 0, &ev);
}

static World *world_new(void)
{
    World *w = g_new0(World, 1);

    w->g = guest_new_of(TEXT, rows, G_N_ELEMENTS(rows));
    w->g->k.symtab = frame_symtab(symbols, G_N_ELEMENTS(symbols));
    w->t = bare_tracer(0);
    w->out = g_string_new(NULL);
    w->sp = TASK + 0x100;
    allocate(w, BLOCK);
    allocate(w, OTHER);
    return w;
}

static void world_free(World *w)
{
    gs_symtab_free(g_steal_pointer(&w->g->k.symtab));
    guest_free(w->g);
    kt_tracer_free(w->t);
    g_string_free(w->out, TRUE);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

static const char *run(World *w, const char *line)
{
    const KtVm vm = {
        .n_vcpus = 1, .read = read_guest, .reg = read_reg, .opaque = w,
    };

    g_string_truncate(w->out, 0);
    mc_run(&(McContext) {
        .tracer = w->t, .kernel = &w->g->k, .kernel_found = true, .vm = &vm,
        .puts = put, .puts_opaque = w->out, .until_us = UINT64_MAX,
    }, line);
    return w->out->str;
}

static void expect(World *w, const char *line, const char *part)
{
    const char *got = run(w, line);

    if (!strstr(got, part)) {
        g_error("%s: '%s' is not in '%s'", line, part, got);
    }
}

TEST(exception, "/panic-registers/exception")
{
    g_autoptr(World) w = world_new();

    PUT(w->g, w->sp, AT(PANIC));
    PUT(w->g, w->sp + 8, AT(ENTRY));
    guest_put(w->g, w->sp + 16, 0);
    put_regs(w->g, w->sp + 16, AT(CRASHES), KERNEL_CS, TASK + 0x800, 0, 0);
    guest_put(w->g, w->sp + 16 + 14 * 8, BLOCK + 8);    /* rdi */
    PUT(w->g, TASK + 0x800, AT(KTHREAD));
    expect(w, "regs", "vcpu0: registers of the exception that led to the "
           "panic, at crash+0x50\n");
    expect(w, "regs", "vcpu0 rdi   ffff888000001008");
    g_assert_null(strstr(run(w, "regs"), "ffff888000002000"));
    expect(w, "regs -j", "\"exception\":\"0xffffc90000100110\"");
}

TEST(call, "/panic-registers/call")
{
    g_autoptr(World) w = world_new();

    PUT(w->g, w->sp, AT(PANIC), AT(KTHREAD));
    expect(w, "regs", "vcpu0: no exception led to the panic; registers of "
           "now\n");
    expect(w, "regs", "vcpu0 rdi   ffff888000002000");
}

TEST(no_panic, "/panic-registers/no-panic")
{
    g_autoptr(World) w = world_new();

    PUT(w->g, w->sp, AT(KTHREAD));
    g_assert_null(strstr(run(w, "regs"), "panic"));
    expect(w, "regs", "vcpu0 rdi   ffff888000002000");
    g_assert_null(strstr(run(w, "regs -j"), "exception"));
}
