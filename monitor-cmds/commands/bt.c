/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka bt: the kernel stacks of vCPUs and of tasks of a stopped VM, as ka walks
 * them for each event; and the registers of code that an exception interrupted.
 * Called through mc_run(); takes no lock.
 *
 * The walker reads pages of stacks. They are copied, each once a walk: the VM
 * stands, so all words are of one moment.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

#define PAGE        4096u
#define FRAMES_MAX  256u

#define COLUMNS    80u         /* columns of a line of registers */
#define NO_VCPU     UINT_MAX

/** struct Pages - the pages that a walk has read; @vcpu: whose memory they are,
 *  NO_VCPU: that of any; @page: address -> (owned) bytes, NULL if they are no
 *  RAM */
typedef struct Pages {
    const KtVm *vm;
    unsigned vcpu;
    GHashTable *page;
} Pages;

/* ---- the guest ---------------------------------------------------------- */

static bool read_page(const Pages *p, uint64_t va, void *bytes)
{
    KtObjects any = { .vm = p->vm };

    return p->vcpu == NO_VCPU ?
               kt_objects_read(&any, va, bytes, PAGE) :
               p->vm->read(p->vm->opaque, p->vcpu, va, bytes, PAGE);
}

static const void *page_at(void *opaque, uint64_t va)
{
    Pages *p = opaque;
    uint64_t at = va & ~(uint64_t)(PAGE - 1);
    gpointer found, *bytes;

    if (g_hash_table_lookup_extended(p->page, &at, NULL, &found)) {
        return found;
    }
    bytes = g_malloc(PAGE);
    if (!read_page(p, at, bytes)) {
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

/** struct Row - a stack. @t: (nullable) the task, else it is that of @vcpu; @n:
 *  number of all frames, @stack: those that are printed; @why: (nullable) why
 *  there is none; @wait: (nullable) what the task waits for, @place: (nullable)
 *  what is there */
typedef struct Row {
    const KtTask *t;
    unsigned vcpu, n;
    const char *stop, *why;
    McStack stack;
    const KtTaskWait *wait;
    const char *place;
} Row;

MC_GETTER(stack)
{
    v->stack = ((const Row *)row)->stack;
    return true;
}

MC_GETTER(vcpu)
{
    v->u = ((const Row *)row)->vcpu;
    return v->u != NO_VCPU;
}

MC_GETTER(pid)
{
    return kt_task_fact(((const Row *)row)->t, KT_TASK_PID, &v->u);
}

MC_GETTER(state)
{
    v->u = (unsigned char)kt_task_state(((const Row *)row)->t);
    return v->u != '-';
}

#define STACK_COLUMNS \
    MC_KEY(NULL, Row, n, NUMBER, " % frame{|s}, ", NULL, MC_UNLESS(Row, why)), \
    MC_COLUMN(Row, stop, TEXT, NULL, \
              "why it ends, or why there is none (user, unplugged, unknown)"), \
    MC_KEY(NULL, Row, stop, TEXT, "%", NULL, MC_UNLESS(Row, why)), \
    MC_KEY(NULL, Row, why, TEXT, " %", NULL, .flags = MC_OMIT), \
    MC_GET("stack", get_stack, STACK, NULL, "the innermost frame first")

static const McObject vcpu_object = MC_OBJECT("vcpu_stack",
    "ka bt: the kernel stack of a vCPU",
    MC_KEY("cpu", Row, vcpu, NUMBER, "vcpu%", "number of the vCPU"),
    STACK_COLUMNS);

static const McObject task_object = MC_OBJECT("task_stack",
    "ka bt TASK: the kernel stack of a task",
    MC_GET("pid", get_pid, NUMBER, "task %", "its pid"),
    MC_VIA("comm", Row, t, comm, CHARS, " %", "its name"),
    MC_VIA("va", Row, t, va, POINTER, " %", "of the task_struct"),
    MC_GET("state", get_state, LETTER, " %", "the letter of /proc/PID/stat"),
    MC_GET("vcpu", get_vcpu, NUMBER, " on vcpu%",
           "vCPU that executes it", .flags = MC_OMIT),
    STACK_COLUMNS,
    MC_VIA("waits_for", Row, wait, kind, TEXT, NULL,
           "kind of the lock or queue that it waits for", .flags = MC_OMIT),
    MC_VIA("lock", Row, wait, va, POINTER, NULL,
           "address of the lock or queue", .flags = MC_OMIT),
    MC_COLUMN(Row, place, TEXT, NULL, "what is at this address",
              .flags = MC_OMIT),
    MC_VIA("owner", Row, wait, owner, POINTER, NULL,
           "task_struct of the task that holds the lock",
           .flags = MC_OMIT | MC_ZERO));

/** struct SavedRow - registers of interrupted code; @frame: the frame of that
 *  code, the number of all frames for user code */
typedef struct SavedRow {
    unsigned frame;
    const char *mode;
    uint64_t regs;
    const char *const *reg;
} SavedRow;

MC_GETTER(registers)
{
    v->list = ((const SavedRow *)row)->reg;
    return true;
}

static const McObject saved_object = MC_OBJECT("exception",
    "ka bt: the registers of code that an exception or system call interrupted",
    MC_COLUMN(SavedRow, frame, NUMBER, NULL,
              "the frame of that code, in the stack of the row before"),
    MC_COLUMN(SavedRow, mode, TEXT, "    registers of % mode",
              "kernel or user"),
    MC_KEY("regs", SavedRow, regs, ADDRESS, ", at %:",
           "address of the struct pt_regs"),
    MC_GET("registers", get_registers, LIST, NULL, "NAME=VALUE, in hex"));

MC_OBJECTS(mc_bt_objects, &vcpu_object, &task_object, &saved_object);

/* ---- registers of exceptions --------------------------------------------- */

/** struct Walked - a stack that was walked; @saved: of each frame, and of the
 *  user code behind the last one: address of its struct pt_regs, or 0 */
typedef struct Walked {
    McOut *out;
    Pages *pages;
    const KtTask *t;
    unsigned vcpu, n;
    uint64_t frame[FRAMES_MAX], saved[FRAMES_MAX + 1];
    GsRegs regs;
    GsStop stop;
} Walked;

/* Return (owned) "NAME=VALUE" of each register, NULL if they are
 * unreadable. */
static char **read_saved(const Walked *w, uint64_t regs)
{
    const char *const *name = gs_kernel_arch(w->out->ctx->kernel)->saved;
    g_autoptr(GPtrArray) text = g_ptr_array_new_with_free_func(g_free);
    KtObjects any = { .vm = w->pages->vm };
    uint64_t word;

    for (unsigned i = 0; name[i]; i++) {
        if (!kt_objects_read(&any, regs + 8 * i, &word, sizeof(word))) {
            return NULL;
        }
        if (*name[i]) {
            g_ptr_array_add(text, g_strdup_printf(
                "%s=%" PRIx64, name[i], GUINT64_FROM_LE(word)));
        }
    }
    g_ptr_array_add(text, NULL);
    return (char **)g_ptr_array_steal(text, NULL);
}

static void print_words(McOut *out, char **word)
{
    while (*word) {
        g_string_append(out->line, "   ");
        do {
            g_string_append_printf(out->line, " %s", *word++);
        } while (*word && out->line->len + 1 + strlen(*word) <= COLUMNS);
        mc_out_end_line(out);
    }
}

/* Print the registers with which the code of frame @i was interrupted. */
static void print_saved(const Walked *w, unsigned i)
{
    g_auto(GStrv) reg = w->saved[i] ? read_saved(w, w->saved[i]) : NULL;

    if (reg) {
        mc_print(w->out, &saved_object, &(SavedRow) {
            i, i < w->n ? "kernel" : "user", w->saved[i],
            (const char *const *)reg });
        if (!w->out->json) {
            print_words(w->out, reg);
        }
    }
}

/* ---- frames -------------------------------------------------------------- */

static void print_frames(const Walked *w, const McStack *stack)
{
    McOut *out = w->out;

    for (unsigned i = 0; i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);

        print_saved(w, i);
        if (!out->json) {
            g_string_append_printf(out->line, "#%-3u", i);
            mc_put_hex(out->line, frame.pc, 16);
            if (out->symbols) {
                g_string_append_c(out->line, ' ');
                mc_put_pc(out->line, out->symbols, &frame);
            }
            mc_out_end_line(out);
        }
    }
    if (stack->n == w->n) {
        print_saved(w, w->n);
    } else if (!out->json) {
        mc_out_printf(out, "... %u more", w->n - stack->n);
    }
}

/* ---- a lock -------------------------------------------------------------- */

/* Return (owned, nullable) what is at the address of a lock. */
static char *place_of(McOut *out, uint64_t va)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KtAddress a = { .va = va, .o = mc_objects(out) };
    KtCacheInfo cache;

    a.has_block = mc_find_block(out, va, &a.block);
    if (!a.has_block) {
        return mc_whatis_pointer(&a, text) ?
                   g_string_free(g_steal_pointer(&text), FALSE) : NULL;
    }
    if (kt_tracer_cache(out->ctx->tracer, a.block.cache, &cache) &&
        *cache.name) {
        mc_put_word(text, cache.name);
    } else {
        g_string_append(text, kt_layer_name(a.block.layer));
    }
    g_string_append_printf(text, " block %016" PRIx64 " +%" PRIx64, a.block.va,
                           va - a.block.va);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void print_wait(const Walked *w, const KtTasks *tasks,
                       const KtTaskWait *wait, const char *place)
{
    GString *line = w->out->line;
    uint64_t pid;

    g_string_append_printf(line, "waits for %s %016" PRIx64, wait->kind,
                           wait->va);
    if (place) {
        g_string_append_printf(line, " (%s)", place);
    }
    for (unsigned i = 0; tasks && wait->owner && i < tasks->task->len;
         i++) {
        const KtTask *t = &g_array_index(tasks->task, KtTask, i);

        if (t->va == wait->owner && kt_task_fact(t, KT_TASK_PID, &pid)) {
            g_string_append_printf(line, ", held by task %" PRIu64 " ", pid);
            mc_put_word(line, t->comm);
        }
    }
    mc_out_end_line(w->out);
}

/* ---- one stack ----------------------------------------------------------- */

/* @stop: a word of @why */
static void print_no_stack(const Walked *w, const char *stop, const char *why)
{
    McOut *out = w->out;
    const GsKernel *symbols = out->symbols;

    out->symbols = NULL;
    mc_print(out, w->t ? &task_object : &vcpu_object, &(Row) {
        .t = w->t, .vcpu = w->vcpu, .stop = stop, .why = why });
    out->symbols = symbols;
}

static void walk(Walked *w, GsUnwinder *u)
{
    uint64_t inner[FRAMES_MAX];

    for (unsigned i = 0; i <= w->n; i++) {
        if (w->vcpu != NO_VCPU) {
            use_code(u, w->pages->vm, w->vcpu);
        }
        if (!i) {
            w->stop = gs_unwind(u, &w->regs, page_at, w->pages, w->frame,
                                FRAMES_MAX, &w->n);
        } else {
            w->saved[i] = gs_unwind_saved(u, &w->regs, page_at, w->pages,
                                          inner, i);
        }
    }
}

static void print_walked(Walked *w, const McArgs *args, const KtTasks *tasks)
{
    const GsKernel *k = w->out->ctx->kernel;
    McStack stack = {
        .pc = w->frame, .n = MIN(w->n, args->limit), .stop = w->stop,
        .era = gs_kernel_era(k, w->frame, w->n), .exact = w->regs.exact_ip,
    };
    KtObjects o = mc_objects(w->out);
    g_autofree char *place = NULL;
    KtTaskWait wait;
    bool waits = w->t && w->vcpu == NO_VCPU &&
                 kt_task_wait(&o, w->t, w->regs.sp, w->frame, w->n, &wait);

    place = waits ? place_of(w->out, wait.va) : NULL;
    mc_print(w->out, w->t ? &task_object : &vcpu_object, &(Row) {
        w->t, w->vcpu, w->n, gs_stop_name(w->stop), NULL, stack,
        waits ? &wait : NULL, place });
    if (waits && !w->out->json) {
        print_wait(w, tasks, &wait, place);
    }
    print_frames(w, &stack);
}

/* A task that was just made has never been switched to: its return address is
 * the first instruction of the function that it begins with. */
static bool is_begin(const GsKernel *k, uint64_t pc)
{
    GsSymbol sym;

    return gs_kernel_symbolize(k, pc, &sym) && sym.va == pc;
}

/* Print the stack of a vCPU, or of the task @t (nullable). @tasks: all of
 * them. */
static void print_stack(McOut *out, const McArgs *args, GsUnwinder *u,
                        unsigned vcpu, const KtTask *t, const KtTasks *tasks)
{
    const GsKernel *k = out->ctx->kernel;
    g_autoptr(GHashTable) page = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, g_free);
    Pages pages = { out->ctx->vm, vcpu, page };
    Walked w = { .out = out, .pages = &pages, .t = t, .vcpu = vcpu };
    KtObjects o = mc_objects(out);
    const char *why = NULL;
    uint64_t on_cpu;

    if (vcpu == NO_VCPU && kt_task_fact(t, KT_TASK_ON_CPU, &on_cpu) && on_cpu) {
        why = "runs on a CPU, and no vCPU's registers are known to be its";
    } else if (vcpu == NO_VCPU) {
        why = kt_task_saved(&o, t, &w.regs);
        w.regs.exact_ip = !why && is_begin(k, w.regs.ip);
    } else if (!read_registers(out->ctx->vm, vcpu, gs_kernel_arch(k),
                               &w.regs)) {
        print_no_stack(&w, "unplugged", "has no registers");
        return;
    }
    if (why) {
        print_no_stack(&w, "unknown", why);
    } else if (w.regs.ip < gs_kernel_lowest(k)) {
        print_no_stack(&w, "user", "runs user code");
    } else {
        walk(&w, u);
        print_walked(&w, args, tasks);
    }
}

/* ---- the command -------------------------------------------------------- */

static bool can_walk(const McOut *out, const McArgs *args, GError **errp)
{
    const McContext *ctx = out->ctx;
    const KtVm *vm = ctx->vm;
    const char *why = NULL;

    if (!vm) {
        why = args->name ? "\"bt\" needs a VM; a journal has neither registers "
                           "nor the memory of stacks" :
                           "\"bt\" needs a VM; a journal has no registers";
    } else if (vm->running) {
        why = "\"bt\": the VM is running; stop it first (\"stop\", or Ctrl-C "
              "in the debugger)";
    } else if (!ctx->kernel || !ctx->kernel_found) {
        why = ctx->why_no_kernel ? ctx->why_no_kernel :
              "no kernel was recognised yet";
    }
    if (why) {
        g_set_error_literal(errp, MC_ERROR, MC_ERROR_UNKNOWN, why);
    } else if (mc_given(args, MC_OPT_CPU) && args->name) {
        return mc_fail_syntax(errp, "--cpu is for stacks of vCPUs, without a "
                              "task");
    } else if (mc_given(args, MC_OPT_CPU) && args->cpu >= vm->n_vcpus) {
        return mc_fail_syntax(errp, "--cpu %" PRIu64 ": the VM's vCPUs are 0 "
                              "to %u", args->cpu, vm->n_vcpus - 1);
    }
    return !why;
}

static bool print_tasks(McOut *out, const McArgs *args, GsUnwinder *u,
                        GError **errp)
{
    KtObjects o = mc_objects(out);
    g_autoptr(KtTasks) tasks = kt_tasks_new(&o);
    g_autoptr(GPtrArray) chosen = g_ptr_array_new();
    bool all = !strcmp(args->name, "all"), one;

    if (!mc_tasks_choose(out->ctx, tasks, all ? NULL : args->name, all, chosen,
                         &one)) {
        return mc_tasks_none(out->ctx, tasks, args->name, errp);
    }
    for (unsigned i = 0; i < chosen->len && !out->closed; i++) {
        const KtTask *t = chosen->pdata[i];
        unsigned vcpu = NO_VCPU;

        kt_task_vcpu(&o, t, &vcpu);
        print_stack(out, args, u, vcpu, t, tasks);
    }
    return true;
}

bool mc_cmd_bt(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GsUnwinder) u = NULL;

    if (!can_walk(out, args, errp)) {
        return false;
    }
    if (out->json) {
        out->symbols = mc_symbols(out->ctx);
    }
    u = gs_unwinder_new(out->ctx->kernel);
    if (args->name) {
        return print_tasks(out, args, u, errp);
    }
    for (unsigned i = 0; i < out->ctx->vm->n_vcpus; i++) {
        if (!mc_given(args, MC_OPT_CPU) || args->cpu == i) {
            print_stack(out, args, u, i, NULL, NULL);
        }
    }
    return true;
}
