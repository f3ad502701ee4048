/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka regs, ka stack: list registers and words of a kernel stack that point into
 * blocks. The VM must be stopped.
 *
 * Called through mc_run(). First all values are collected; then their blocks
 * are copied under one hold of the tracer's lock, and printed without it.
 * Values on the stack are untrusted: they are only compared with addresses of
 * blocks.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

#include <string.h>

/* Kernel stacks are aligned to their size, a multiple of STACK_STEP. Smaller
 * stacks are followed by an unmapped page. */
#define STACK_STEP 0x4000ull
#define STACK_MAX 0x10000ull
#define PAGE 0x1000ull

/** struct Place - the place of a value: the register @reg (borrowed), or the
 *  word at @at of a stack; @exception: address of the struct pt_regs that has
 *  the register, 0: it is of now */
typedef struct Place {
    unsigned vcpu;
    const char *reg;
    uint64_t at;
    uint64_t value;
    uint64_t exception;
} Place;

/** struct Spot - a register or word, and the block into which it points */
typedef struct Spot {
    Place place;
    KtBlock block;
} Spot;

/* ---- rows ---------------------------------------------------------------- */

typedef struct Row {
    McBlockRow b;
    Place place;
} Row;

#define P(member_, look_, text_, help_) \
    MC_KEY(#member_, Row, place.member_, look_, text_, help_, \
           .flags = MC_HEAD)

static const McColumn vcpu_columns[] = {
    P(vcpu, NUMBER, "vcpu% ",
      "vCPU of the register or stack (ka regs, ka stack)"),
    MC_END
};
static const McColumn register_columns[] = {
    P(reg, WORD, "%-5 ", "register, by gdb's name"),
    P(value, ADDRESS, "% ", "value of the register or word"),
    MC_END
};
static const McColumn saved_columns[] = {
    MC_KEY("exception", Row, place.exception, ADDRESS, NULL,
           "after a panic: address of the registers of the exception that led "
           "to the panic", .flags = MC_ZERO | MC_OMIT),
    MC_END
};
static const McColumn word_columns[] = {
    P(at, ADDRESS, "%: ", "address of the word on the stack"),
    P(value, ADDRESS, "% ", "value of the register or word"),
    MC_END
};

static const McObject register_object = {
    "register", "ka regs: a register, and the block into which it points",
    { vcpu_columns, register_columns, saved_columns, mc_margin_columns,
      mc_block_columns, mc_block_more_columns }, .is_block = true,
};
static const McObject word_object = {
    "word", "ka stack: a word of the stack, and the block into which it "
    "points",
    { vcpu_columns, word_columns, mc_margin_columns, mc_block_columns,
      mc_block_more_columns }, .is_block = true,
};

MC_OBJECTS(mc_regs_objects, &register_object, &word_object);

/**
 * struct Look - state of the command
 * @places: Place, all registers or words
 * @spots: Spot, those that point into a block
 * @lowest: lowest kernel address
 * @tag_bits: of pointers, see gs_untag()
 */
typedef struct Look {
    McOut *out;
    const McArgs *args;
    const KtVm *vm;
    GArray *places;
    GArray *spots;
    uint64_t lowest, tag_bits;
} Look;

static void look_init(Look *l, McOut *out, const McArgs *args)
{
    const GsKernel *k = out->ctx->kernel;

    *l = (Look) {
        .out = out, .args = args, .vm = out->ctx->vm,
        .places = g_array_new(FALSE, FALSE, sizeof(Place)),
        .spots = g_array_new(FALSE, FALSE, sizeof(Spot)),
        .lowest = k ? gs_kernel_lowest(k) : 0,
        .tag_bits = k ? gs_kernel_tag_bits(k) : 0,
    };
}

static void look_deinit(Look *l)
{
    g_clear_pointer(&l->places, g_array_unref);
    g_clear_pointer(&l->spots, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Look, look_deinit)

/* ---- may it be looked at? ------------------------------------------------ */

static bool vm_stands(const Look *l, GError **errp)
{
    const char *word = l->args->command->word;

    if (!l->vm) {
        return mc_fail_unknown(errp, "\"%s\" needs a VM; a journal has no "
                               "registers", word);
    }
    if (l->vm->running) {
        return mc_fail_unknown(errp, "\"%s\": the VM is running; stop it first "
                               "(\"stop\", or Ctrl-C in the debugger)", word);
    }
    return true;
}

/* Return in [*first, *end) the vCPUs of --cpu, or all. */
static bool which_vcpus(const Look *l, unsigned *first, unsigned *end,
                        GError **errp)
{
    *first = 0;
    *end = l->vm->n_vcpus;
    if (!mc_given(l->args, MC_OPT_CPU) || l->args->all_cpus) {
        return true;
    }
    if (l->args->cpu >= l->vm->n_vcpus) {
        return mc_fail_syntax(errp, "--cpu %" PRIu64 ": the VM's vCPUs are 0 "
                              "to %u", l->args->cpu, l->vm->n_vcpus - 1);
    }
    *first = l->args->cpu;
    *end = *first + 1;
    return true;
}

/* ---- what is of a block -------------------------------------------------- */

static bool first_past(const KtBlock *b, void *opaque)
{
    KtBlock *newest = opaque;

    if (!newest->va || b->alloc_us > newest->alloc_us) {
        *newest = *b;
    }
    return false;
}

/* Find the block at the place's value. If it is live, also find the newest past
 * life of this address. */
static void find_spot(Look *l, KtTracer *t, const Place *p)
{
    Spot now = { .place = *p }, past = { .place = *p };
    bool found = kt_query_find(t, p->value, &now.block);

    if (found) {
        g_array_append_val(l->spots, now);
    }
    kt_query_earlier(t, p->value, &past.block);
    if (!found || now.block.state == KT_BLOCK_ALLOCATED) {
        kt_query_history(t, p->value, first_past, &past.block);
    }
    if (past.block.va) {
        g_array_append_val(l->spots, past);
    }
}

static void find_spots(Look *l)
{
    KtTracer *t = l->out->ctx->tracer;

    kt_query_begin(t);
    for (unsigned i = 0; i < l->places->len; i++) {
        find_spot(l, t, &g_array_index(l->places, Place, i));
    }
    kt_query_end(t);
}

static bool wanted(const Look *l, const Spot *s)
{
    return mc_filter_block(&l->args->filter, &s->block, false);
}

/* Print that there is no row. @holders: the first words of this line. */
static void print_none(const Look *l, const char *holders)
{
    mc_remarkf(l->out, "%s points into a block%s", holders, l->spots->len ?
               " that matches the options" : ", live or freed");
}

static void print_spots(Look *l, const char *holders)
{
    McOut *out = l->out;
    uint64_t shown = 0, more = 0;

    for (unsigned i = 0; i < l->spots->len; i++) {
        const Spot *s = &g_array_index(l->spots, Spot, i);

        mc_set_margin(out, s->place.value - s->block.va);
    }
    for (unsigned i = 0; i < l->spots->len && !out->closed; i++) {
        const Spot *s = &g_array_index(l->spots, Spot, i);

        if (!wanted(l, s)) {
            continue;
        }
        if (shown == l->args->limit) {
            more++;
            continue;
        }
        mc_print(out, s->place.reg ? &register_object : &word_object, &(Row) {
            .b = { .block = &s->block, .hit = true,
                   .offset = s->place.value - s->block.va },
            .place = s->place });
        shown++;
    }
    if (more) {
        mc_more(out, more);
    } else if (!shown && !out->closed) {
        print_none(l, holders);
    }
}

static void add_place(Look *l, Place p)
{
    p.value = gs_untag(l->tag_bits, p.value);
    if (p.value >= l->lowest) {
        g_array_append_val(l->places, p);
    }
}

/* ---- ka regs ------------------------------------------------------------- */

/* Return the index of a register's word in a struct pt_regs, -1: none. */
static int find_saved(const GsArch *arch, const char *name)
{
    for (unsigned i = 0; arch->saved[i]; i++) {
        if (!strcmp(arch->saved[i], name)) {
            return i;
        }
    }
    return -1;
}

/* Add the registers that the exception @e interrupted the code with. */
static void add_saved(Look *l, unsigned vcpu, const McException *e)
{
    const GsArch *arch = gs_kernel_arch(l->out->ctx->kernel);
    uint64_t word;
    KtRegister r;

    for (unsigned i = 0; l->vm->reg(l->vm->opaque, vcpu, i, &r); i++) {
        int at = find_saved(arch, r.name);

        if (at >= 0 && l->vm->read(l->vm->opaque, vcpu, e->regs + 8 * at,
                                   &word, sizeof(word))) {
            add_place(l, (Place) {
                .vcpu = vcpu, .reg = r.name, .value = GUINT64_FROM_LE(word),
                .exception = e->regs });
        }
    }
}

static void say_exception(const Look *l, unsigned vcpu, const McException *e)
{
    const GsKernel *symbols = mc_symbols(l->out->ctx);
    g_autoptr(GString) at = g_string_new(NULL);

    mc_put_pc(at, symbols, &(McFrame) {
        .pc = e->pc, .era = gs_kernel_era(symbols, &e->pc, 1).all,
        .exact = true });
    mc_remarkf(l->out, "vcpu%u: registers of the exception that led to the "
               "panic, at %s", vcpu, at->str);
}

static void add_registers(Look *l, unsigned vcpu)
{
    McException e;
    KtRegister r;

    switch (mc_panic_exception(l->out->ctx, vcpu, &e)) {
    case MC_PANIC_EXCEPTION:
        say_exception(l, vcpu, &e);
        add_saved(l, vcpu, &e);
        return;
    case MC_PANIC_CALL:
        mc_remarkf(l->out, "vcpu%u: no exception led to the panic; registers "
                   "of now", vcpu);
        break;
    case MC_PANIC_NONE:
        break;
    }
    for (unsigned i = 0; l->vm->reg(l->vm->opaque, vcpu, i, &r); i++) {
        add_place(l, (Place) {
            .vcpu = vcpu, .reg = r.name, .value = r.value });
    }
}

bool mc_cmd_regs(McOut *out, const McArgs *args, GError **errp)
{
    unsigned first, end;
    g_auto(Look) l;

    look_init(&l, out, args);
    if (!vm_stands(&l, errp) || !which_vcpus(&l, &first, &end, errp)) {
        return false;
    }
    for (unsigned vcpu = first; vcpu < end; vcpu++) {
        add_registers(&l, vcpu);
    }
    find_spots(&l);
    print_spots(&l, "no register");
    return true;
}

/* ---- ka stack ------------------------------------------------------------ */

static bool stack_pointer(const Look *l, unsigned vcpu, uint64_t *sp)
{
    const GsKernel *k = l->out->ctx->kernel;
    const char *name = k ? gs_kernel_arch(k)->reg[GS_REG_SP] : NULL;
    KtRegister r;

    for (unsigned i = 0; name && l->vm->reg(l->vm->opaque, vcpu, i, &r);
         i++) {
        if (!strcmp(r.name, name)) {
            *sp = r.value;
            return true;
        }
    }
    return false;
}

/* Return the range of the stack around @sp: the block that contains @sp, or
 * else the range that alignment and size allow. */
static McRange stack_around(const Look *l, uint64_t sp)
{
    KtTracer *t = l->out->ctx->tracer;
    McRange r = { sp & -STACK_STEP, (sp & -STACK_STEP) + STACK_STEP - 1 };
    KtBlock b;

    kt_query_begin(t);
    if (kt_query_find(t, sp, &b) && b.state == KT_BLOCK_ALLOCATED &&
        kt_block_len(&b) <= STACK_MAX) {
        r = (McRange) { b.va, b.va + kt_block_len(&b) - 1 };
    }
    kt_query_end(t);
    return r;
}

/* Add the words of the part [@lo, @hi] of a page. Skip words that point into
 * the stack itself. */
static bool add_words(Look *l, unsigned vcpu, uint64_t lo, uint64_t hi,
                      const McRange *stack)
{
    uint64_t word[PAGE / 8];
    unsigned n = (hi + 1 - lo) / 8;

    if (!l->vm->read(l->vm->opaque, vcpu, lo, word, n * 8)) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        uint64_t value = GUINT64_FROM_LE(word[i]);

        if (value < stack->lo || value > stack->hi) {
            add_place(l, (Place) {
                .vcpu = vcpu, .at = lo + 8 * i, .value = value });
        }
    }
    return true;
}

/* Add the words of the stack. Return false if nothing could be read. */
static bool add_stack(Look *l, unsigned vcpu, uint64_t sp)
{
    McRange stack = stack_around(l, sp);
    uint64_t at = (sp + 7) & ~7ull;
    bool any = false;

    while (at <= stack.hi && at >= stack.lo) {
        uint64_t end = MIN(at | (PAGE - 1), stack.hi);

        if (!add_words(l, vcpu, at, end, &stack)) {
            break;
        }
        any = true;
        at = end + 1;
    }
    return any;
}

/* Add the words of one vCPU's stack. Return (owned) the line to print instead,
 * or NULL. */
static char *read_stack_of(Look *l, unsigned vcpu)
{
    uint64_t sp = l->args->va.lo;

    if (!l->args->has_va && !stack_pointer(l, vcpu, &sp)) {
        return g_strdup_printf("vcpu%u: no stack pointer: no kernel was "
                               "recognised, or the vCPU is unplugged", vcpu);
    }
    if (!l->args->has_va && sp < l->lowest) {
        return g_strdup_printf("vcpu%u: runs user code, its kernel stack "
                               "is empty", vcpu);
    }
    if (!add_stack(l, vcpu, sp)) {
        return g_strdup_printf("vcpu%u: no memory at %016" PRIx64, vcpu, sp);
    }
    return NULL;
}

bool mc_cmd_stack(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    unsigned first, end;
    g_auto(Look) l;

    look_init(&l, out, args);
    if (!vm_stands(&l, errp) || !which_vcpus(&l, &first, &end, errp)) {
        return false;
    }
    if (args->has_va) {
        end = MIN(end, first + 1);
    }
    for (unsigned vcpu = first; vcpu < end; vcpu++) {
        char *why = read_stack_of(&l, vcpu);

        if (why) {
            g_ptr_array_add(said, why);
        }
    }
    for (unsigned i = 0; i < said->len; i++) {
        mc_remark(out, g_ptr_array_index(said, i));
    }
    if (said->len < end - first) {
        find_spots(&l);
        print_spots(&l, "no word of the stack");
    }
    return true;
}
