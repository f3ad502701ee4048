/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka bt: the kernel stacks of the vCPUs of a stopped VM, as ka walks them for
 * each event. Called through mc_run(); takes no lock.
 *
 * The walker reads pages of stacks. They are copied, each once a walk: the VM
 * stands, so all words are of one moment.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

#define PAGE        4096u
#define FRAMES_MAX  256u

/** struct Pages - the pages that a walk has read; @page: address -> (owned)
 *  bytes, NULL if they are no RAM */
typedef struct Pages {
    const KtVm *vm;
    unsigned vcpu;
    GHashTable *page;
} Pages;

/* ---- the guest ---------------------------------------------------------- */

static const void *page_at(void *opaque, uint64_t va)
{
    Pages *p = opaque;
    uint64_t at = va & ~(uint64_t)(PAGE - 1);
    gpointer found, *bytes;

    if (g_hash_table_lookup_extended(p->page, &at, NULL, &found)) {
        return found;
    }
    bytes = g_malloc(PAGE);
    if (!p->vm->read(p->vm->opaque, p->vcpu, at, bytes, PAGE)) {
        g_clear_pointer(&bytes, g_free);
    }
    g_hash_table_insert(p->page, g_memdup2(&at, sizeof(at)), bytes);
    return bytes;
}

static bool find_register(const KtVm *vm, unsigned vcpu, const char *name,
                          uint64_t *value)
{
    KtRegister r;

    for (unsigned i = 0; vm->reg(vm->opaque, vcpu, i, &r); i++) {
        if (!strcmp(r.name, name)) {
            *value = r.value;
            return true;
        }
    }
    return false;
}

static bool read_registers(const KtVm *vm, unsigned vcpu, const GsArch *arch,
                           GsRegs *regs)
{
    regs->exact_ip = true;
    return find_register(vm, vcpu, arch->pc, &regs->ip) &&
           find_register(vm, vcpu, arch->reg[GS_REG_SP], &regs->sp) &&
           find_register(vm, vcpu, arch->reg[GS_REG_FP], &regs->bp);
}

/* Where there is no frame record, the general registers say who calls. They
 * come first of all, and the program counter behind them. */
static void use_code(GsUnwinder *u, const KtVm *vm, unsigned vcpu)
{
    uint64_t value[GS_GENERAL_REGS], sepc = 0;
    KtRegister r;

    for (unsigned i = 0; i < GS_GENERAL_REGS; i++) {
        if (!vm->reg(vm->opaque, vcpu, i, &r)) {
            return;
        }
        value[i] = r.value;
    }
    if (vm->reg(vm->opaque, vcpu, GS_GENERAL_REGS, &r) &&
        !strcmp(r.name, "pc")) {
        find_register(vm, vcpu, "sepc", &sepc);
        gs_unwinder_use_code(u, value, sepc);
    }
}

/* ---- the exception before a panic ---------------------------------------- */

/* Return the index of the outermost frame that is in panic(); @n: none. */
static unsigned find_panic(const GsKernel *k, const uint64_t *frame, unsigned n)
{
    GsSymbol sym;

    for (unsigned i = n; i--;) {
        if (gs_kernel_symbolize(k, frame[i] - !!i, &sym) && !sym.module &&
            (!strcmp(sym.name, "panic") || !strcmp(sym.name, "vpanic"))) {
            return i;
        }
    }
    return n;
}

/* Find the innermost exception outside of frame @panic. */
static bool find_exception(GsUnwinder *u, Pages *pages, const GsRegs *regs,
                           unsigned panic, unsigned n, McException *e)
{
    uint64_t frame[FRAMES_MAX], inner[FRAMES_MAX];

    for (unsigned i = panic + 1; i < n; i++) {
        use_code(u, pages->vm, pages->vcpu);
        e->regs = gs_unwind_saved(u, regs, page_at, pages, inner, i);
        if (e->regs) {
            use_code(u, pages->vm, pages->vcpu);
            gs_unwind(u, regs, page_at, pages, frame, i + 1, &n);
            e->pc = frame[i];
            return true;
        }
    }
    return false;
}

McPanic mc_panic_exception(const McContext *ctx, unsigned vcpu, McException *e)
{
    const GsKernel *k = ctx->kernel;
    g_autoptr(GsUnwinder) u = ctx->kernel_found ? gs_unwinder_new(k) : NULL;
    g_autoptr(GHashTable) page = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, g_free);
    Pages pages = { ctx->vm, vcpu, page };
    uint64_t frame[FRAMES_MAX];
    GsRegs regs = { 0 };
    unsigned panic, n;

    if (!u || !read_registers(ctx->vm, vcpu, gs_kernel_arch(k), &regs) ||
        regs.ip < gs_kernel_lowest(k)) {
        return MC_PANIC_NONE;
    }
    use_code(u, ctx->vm, vcpu);
    gs_unwind(u, &regs, page_at, &pages, frame, FRAMES_MAX, &n);
    panic = find_panic(k, frame, n);
    return panic == n ? MC_PANIC_NONE :
           find_exception(u, &pages, &regs, panic, n, e) ?
               MC_PANIC_EXCEPTION : MC_PANIC_CALL;
}

/* ---- rows ---------------------------------------------------------------- */

/** struct Row - @n: number of all frames, @stack: those that are printed; @why:
 *  (nullable) why there is none */
typedef struct Row {
    unsigned cpu, n;
    const char *stop, *why;
    McStack stack;
} Row;

MC_GETTER(stack)
{
    v->stack = ((const Row *)row)->stack;
    return true;
}

static const McObject object = MC_OBJECT("vcpu_stack",
    "ka bt: the kernel stack of a vCPU",
    MC_COLUMN(Row, cpu, NUMBER, "vcpu%", "number of the vCPU"),
    MC_KEY(NULL, Row, n, NUMBER, " % frame{|s}, ", NULL, MC_UNLESS(Row, why)),
    MC_COLUMN(Row, stop, TEXT, NULL,
              "why it ends, or why there is none (user, unplugged)"),
    MC_KEY(NULL, Row, stop, TEXT, "%", NULL, MC_UNLESS(Row, why)),
    MC_KEY(NULL, Row, why, TEXT, " %", NULL, .flags = MC_OMIT),
    MC_GET("stack", get_stack, STACK, NULL, "the innermost frame first"));

MC_OBJECTS(mc_bt_objects, &object);

static void print_frames(McOut *out, const McStack *stack, unsigned all)
{
    for (unsigned i = 0; i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);

        g_string_append_printf(out->line, "#%-3u", i);
        mc_put_hex(out->line, frame.pc, 16);
        if (out->symbols) {
            g_string_append_c(out->line, ' ');
            mc_put_pc(out->line, out->symbols, &frame);
        }
        mc_out_end_line(out);
    }
    if (stack->n < all) {
        mc_out_printf(out, "... %u more", all - stack->n);
    }
}

static void print_walked(McOut *out, unsigned vcpu, McStack *stack,
                         uint64_t limit)
{
    unsigned all = stack->n;

    stack->n = MIN(all, limit);
    mc_print(out, &object, &(Row) {
        vcpu, all, gs_stop_name(stack->stop), NULL, *stack });
    if (!out->json) {
        print_frames(out, stack, all);
    }
}

/* @stop: a word of @why */
static void print_no_stack(McOut *out, unsigned vcpu, const char *stop,
                           const char *why)
{
    const GsKernel *symbols = out->symbols;

    out->symbols = NULL;
    mc_print(out, &object, &(Row) { .cpu = vcpu, .stop = stop, .why = why });
    out->symbols = symbols;
}

/* ---- one vCPU ----------------------------------------------------------- */

static void print_stack(McOut *out, const McArgs *args, GsUnwinder *u,
                        unsigned vcpu)
{
    const KtVm *vm = out->ctx->vm;
    const GsKernel *k = out->ctx->kernel;
    g_autoptr(GHashTable) page = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, g_free);
    Pages pages = { vm, vcpu, page };
    uint64_t frame[FRAMES_MAX];
    McStack stack = { .pc = frame, .exact = true };
    GsRegs regs = { 0 };

    if (!read_registers(vm, vcpu, gs_kernel_arch(k), &regs)) {
        print_no_stack(out, vcpu, "unplugged", "has no registers");
    } else if (regs.ip < gs_kernel_lowest(k)) {
        print_no_stack(out, vcpu, "user", "runs user code");
    } else {
        use_code(u, vm, vcpu);
        stack.stop = gs_unwind(u, &regs, page_at, &pages, frame, FRAMES_MAX,
                               &stack.n);
        stack.era = gs_kernel_era(k, frame, stack.n);
        print_walked(out, vcpu, &stack, args->limit);
    }
}

/* ---- the command -------------------------------------------------------- */

static bool can_walk(const McOut *out, const McArgs *args, GError **errp)
{
    const McContext *ctx = out->ctx;
    const KtVm *vm = ctx->vm;
    const char *why = NULL;

    if (!vm) {
        why = "\"bt\" needs a VM; a journal has no registers";
    } else if (vm->running) {
        why = "\"bt\": the VM is running; stop it first (\"stop\", or Ctrl-C "
              "in the debugger)";
    } else if (!ctx->kernel || !ctx->kernel_found) {
        why = ctx->why_no_kernel ? ctx->why_no_kernel :
              "no kernel was recognised yet";
    }
    if (why) {
        g_set_error_literal(errp, MC_ERROR, MC_ERROR_UNKNOWN, why);
    } else if (mc_given(args, MC_OPT_CPU) && args->cpu >= vm->n_vcpus) {
        return mc_fail_syntax(errp, "--cpu %" PRIu64 ": the VM's vCPUs are 0 "
                              "to %u", args->cpu, vm->n_vcpus - 1);
    }
    return !why;
}

bool mc_cmd_bt(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GsUnwinder) u = NULL;

    if (!can_walk(out, args, errp)) {
        return false;
    }
    out->symbols = mc_symbols(out->ctx);
    u = gs_unwinder_new(out->ctx->kernel);
    for (unsigned i = 0; i < out->ctx->vm->n_vcpus; i++) {
        if (!mc_given(args, MC_OPT_CPU) || args->cpu == i) {
            print_stack(out, args, u, i);
        }
    }
    return true;
}
