/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a hit costs on the vCPU's thread: an entry of an allocation, its return,
 * or a free, with the backtraces of both. 200 stacks of 16 frames, in turn.
 *
 * hit.tcg_ns is the callback of TCG. hit.kvm_ns is all between two KVM_RUN: the
 * registers from the shared page, the breakpoint, the callback, walks of the
 * page tables for each page that is read, the emulated instruction, and the
 * registers back. QEMU's part is its own code, from the patch
 * (qemu-code-hooks.py); only its map of RAM is simpler (qemu-memory.h). Not
 * measured: exits, the ioctl, and QEMU's table of hooks.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/orc-writer.h"
#include "guest-symbols/kernel/kernel.h"
#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/capture/seam.h"
#include "qemu-memory.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#include "qemu-code-hooks.h"
#pragma GCC diagnostic pop
#include "bench.h"

enum {
    N_STACKS = 200,
    DEPTH = 16,
    STACK_BYTES = 2048,
    STACKS_BYTES = N_STACKS * STACK_BYTES,
    N_CALLERS = 64,
    ROUNDS = 300,
    COLD_ROUNDS = 4,
    RUNS = 3,
    EVICTED = 1 << 20,                  /* bytes that a guest uses meanwhile */
};

#define CALLERS         0xb00           /* in its text; of 16 bytes each */
#define RETURN          2               /* of the functions' instructions */

static struct {
    bool kvm;
    qemu_plugin_vcpu_code_hook_cb_t cb;
    qemu_plugin_vcpu_syscall_entry_cb_t entry_cb;
    void *opaque;
    CPUState cpu;
    struct kvm_run run;
} m;

/* ---- QEMU's side of code hooks ------------------------------------------- */

bool qemu_plugin_register_vcpu_code_hook_cb(qemu_plugin_id_t id,
                                            qemu_plugin_vcpu_code_hook_cb_t cb,
                                            void *userdata)
{
    m.cb = cb;
    m.opaque = userdata;
    return m.kvm;
}

bool qemu_plugin_register_vcpu_syscall_entry_cb(
    qemu_plugin_id_t id, qemu_plugin_vcpu_syscall_entry_cb_t cb,
    void *userdata)
{
    m.entry_cb = cb;
    return true;
}

bool qemu_plugin_add_code_hook(uint64_t va)
{
    return true;
}

bool qemu_plugin_enable_code_hook(uint64_t va, bool enable)
{
    return true;
}

bool qemu_plugin_remove_code_hook(uint64_t va)
{
    return true;
}

uint64_t qemu_plugin_code_hooks_withdrawn(void)
{
    return 0;
}

/* Reads of the plugin under KVM */
static const void *view(uint64_t va, size_t *avail)
{
    hwaddr phys;
    bool writable;

    return host(&m.cpu, va, avail, &phys, &writable);
}

static void copy_registers(const CPUX86State *env)
{
    *test_qemu_reg(GS_REG_SP) = env->regs[R_ESP];
    *test_qemu_reg(GS_REG_ARG0) = env->regs[R_EDI];
    *test_qemu_reg(GS_REG_RESULT) = env->regs[R_EAX];
}

/* Handle a hit as kvm_x86_handle_code_hook() does. @insn: bytes of the hooked
 * instruction */
static void hit(uint64_t va, const KVMHookInsn *insn)
{
    CPUX86State *env = &m.cpu.env;
    uint64_t next;

    load_registers(env, &m.run);
    copy_registers(env);
    if (m.cb(0, va, &next, m.opaque) != QEMU_PLUGIN_CODE_HOOK_EXECUTE ||
        !emulate(&m.cpu, env, insn)) {
        g_error("0x%lx is not emulated", va);
    }
    store_registers(env, &m.run);
}

/* ---- the guest ----------------------------------------------------------- */

/* The callers of the allocator, and their callers: each has a frame of another
 * size. The last one ends the stack. */
static void add_unwind_table(GsKernel *k)
{
    OrcRow rows[N_CALLERS + 1] = { { KS_TEXT, GS_ORC_CALL, R_SP, 8 } };
    GsRange text = { KS_TEXT, KS_TEXT + 0x1000 };
    g_auto(OrcArrays) a = { 0 };
    GsOrcRaw raw;

    for (unsigned i = 0; i < N_CALLERS; i++) {
        rows[i + 1] = (OrcRow) {
            KS_TEXT + CALLERS + 16 * i,
            i < N_CALLERS - 1 ? GS_ORC_CALL : GS_ORC_END, R_SP,
            16 + 8 * (i % 6)
        };
    }
    a = orc_writer_finish(GS_ORC_LAYOUT_6_4, text.end, rows,
                          G_N_ELEMENTS(rows));
    raw = orc_writer_raw(&a);
    if (!gs_orc_set_load(k->orc, text, &text, 1, &raw, NULL)) {
        g_error("the unwind table was refused");
    }
    k->unwind_by = GS_UNWIND_BY_ARCH;
}

/* Fill one stack; its return address is in the middle. */
static void fill_stack(uint64_t *stack, GRand *rand)
{
    size_t at = 64;

    for (unsigned depth = 0; depth < DEPTH; depth++) {
        unsigned f = depth < DEPTH - 1 ?
                         (unsigned)g_rand_int_range(rand, 0, N_CALLERS - 1) :
                         N_CALLERS - 1;

        stack[at] = TEXT + CALLERS + 16 * f + 8;
        at += (16 + 8 * (f % 6)) / 8;
    }
}

static uint64_t sp_of(unsigned n)
{
    return STACK + n * STACK_BYTES + 64 * 8;
}

static void put_code(FakeCapture *w)
{
    static const uint8_t code[] = { 0x55, 0x5d, 0xc3 };     /* push, pop, ret */

    memset(w->image, 0xcc, CALLERS);
    memcpy(w->image + (KMALLOC - TEXT), code, sizeof(code));
    memcpy(w->image + (KFREE - TEXT), code, sizeof(code));
}

/* Page tables: the image by pages of 2 MiB, as a kernel has it, the stacks by
 * small ones. Physical memory: tables at 0, then the image, then the stacks. */
#define IMAGE_PHYS      0x40000000ull
#define STACK_PHYS      0x80000000ull
static uint64_t tables[16][512];
static unsigned used;                   /* tables */

static uint64_t *table_of(uint64_t *entry)
{
    if (!*entry) {
        *entry = used++ * 4096 | PG_PRESENT_MASK | PG_RW_MASK;
    }
    return tables[*entry >> 12];
}

static void map(uint64_t va, uint64_t phys, bool large)
{
    uint64_t *table = tables[0];

    for (int shift = 39; shift > (large ? 21 : 12); shift -= 9) {
        table = table_of(&table[va >> shift & 511]);
    }
    table[va >> (large ? 21 : 12) & 511] =
        phys | PG_PRESENT_MASK | PG_RW_MASK | (large ? PG_PSE_MASK : 0);
}

static void map_guest(FakeCapture *w)
{
    CPUX86State *env = &m.cpu.env;
    struct kvm_sregs *s = &m.run.s.regs.sregs;

    memset(tables, 0, sizeof(tables));
    used = 1;
    for (uint64_t at = 0; at < 0xa00000; at += 0x200000) {
        map(TEXT + at, IMAGE_PHYS + at, true);
    }
    for (uint64_t at = 0; at < STACKS_BYTES; at += 4096) {
        map(STACK + at, STACK_PHYS + at, false);
    }
    s->cr0 = env->cr[0] = CR0_PG_MASK;
    s->cr3 = env->cr[3] = 0;
    s->efer = env->efer = MSR_EFER_LMA;
    address_space_memory = (AddressSpace) { .region = {
        { 0, sizeof(tables), (uint8_t *)tables },
        { STACK_PHYS, STACKS_BYTES, w->stack } } };
}

/* ---- the runs ------------------------------------------------------------ */

/* @alloc, @free, @site: user data of TCG's callbacks; @site by stack */
typedef struct Run {
    FakeCapture *w;
    void *alloc, *free, *site[N_STACKS];
    KVMHookInsn push, ret;
} Run;

static void set_registers(uint64_t sp, uint64_t arg, uint64_t result)
{
    *test_qemu_reg(GS_REG_SP) = sp;
    *test_qemu_reg(GS_REG_ARG0) = arg;
    *test_qemu_reg(GS_REG_RESULT) = result;
}

/* The hits of one allocation: its entry, its return, and its free. */
typedef enum Step { ENTER, LEAVE, FREE, STEPS } Step;

static void step_of_tcg(const Run *r, unsigned n, Step step)
{
    uint64_t block = BLOCK + 64 * n;

    set_registers(sp_of(n) + (step == LEAVE ? 8 : 0),
                  step == ENTER ? 64 : block, block);
    if (step == LEAVE) {
        kt_capture_on_return(0, r->site[n]);
    } else {
        kt_capture_on_entry(0, step == FREE ? r->free : r->alloc);
    }
}

static void step_of_kvm(const Run *r, unsigned n, Step step)
{
    static const uint64_t va[] = { KMALLOC, KMALLOC + RETURN, KFREE };
    uint64_t block = BLOCK + 64 * n;

    m.run.s.regs.regs = (struct kvm_regs) {
        .rip = va[step], .rsp = sp_of(n), .rax = block,
        .rdi = step == ENTER ? 64 : block,
    };
    hit(va[step], step == LEAVE ? &r->ret : &r->push);
}

static void step(const Run *r, unsigned n, Step which)
{
    (m.kvm ? step_of_kvm : step_of_tcg)(r, n, which);
}

/* Read the code, and remember the user data of TCG's callbacks. */
static void prepare_steps(Run *r)
{
    const uint8_t push[16] = { 0x55 }, ret[16] = { 0xc3 };
    const KtCapture *c = r->w->capture;
    const KtHooks *h = kt_capture_boot(c)->hooks;

    decode(&r->push, push, sizeof(push));
    decode(&r->ret, ret, sizeof(ret));
    r->alloc = kt_pack(kt_hooks_at(h, KMALLOC).v, 1);
    r->free = kt_pack(kt_hooks_at(h, KFREE).v, 1);
    for (unsigned n = 0; n < N_STACKS; n++) {
        uint64_t ra;

        memcpy(&ra, r->w->stack + (sp_of(n) - STACK), sizeof(ra));
        step(r, n, ENTER);
        r->site[n] = kt_pack(kt_return_sites_find(c->shared.sites, ra,
                                                  KT_SITE_ANY), 1);
        step(r, n, LEAVE);
        step(r, n, FREE);
    }
}

static const void *stack_page(void *w, uint64_t va)
{
    return ((FakeCapture *)w)->stack + ((va - STACK) & ~0xfffull);
}

/* Each stack has all of its frames. */
static void check_stacks(const Run *r)
{
    for (unsigned n = 0; n < N_STACKS; n++) {
        uint64_t frames[KT_MAX_FRAMES];
        GsRegs regs = { .sp = sp_of(n) + 8 };
        unsigned depth;

        memcpy(&regs.ip, r->w->stack + (sp_of(n) - STACK), sizeof(regs.ip));
        if (gs_unwind(r->w->capture->vcpu[0].unwinder, &regs, stack_page, r->w,
                      frames, KT_MAX_FRAMES, &depth) != GS_STOP_END ||
            depth != DEPTH) {
            g_error("stack %u has %u frames", n, depth);
        }
    }
}

static void prepare(Run *r)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);

    r->w = fake_capture_new(NULL, true);
    add_unwind_table(r->w->file);
    r->w->stack = test_qemu_map(STACK, STACKS_BYTES);
    for (unsigned n = 0; n < N_STACKS; n++) {
        fill_stack((uint64_t *)(r->w->stack + n * STACK_BYTES), rand);
    }
    put_code(r->w);
    if (m.kvm) {
        m.entry_cb(0, START, m.opaque);
    } else {
        test_qemu_run(START);
    }
    if (!kt_capture_found(r->w->capture)) {
        g_error("the kernel was not found");
    }
    check_stacks(r);
    map_guest(r->w);
    test_qemu_view(m.kvm ? view : NULL);
    prepare_steps(r);
    kt_tracer_start(r->w->t);
}

static void end(Run *r)
{
    KtStats s = stats_of(r->w);

    if (s.events < 2 * N_STACKS || s.errors || s.live_blocks) {
        g_error("%" PRIu64 " events, %" PRIu64 " errors", s.events, s.errors);
    }
    test_qemu_view(NULL);
    test_qemu_reset();
    kt_tracer_stop(r->w->t);
    fake_capture_free(r->w);
}

/* Return nanoseconds a hit, with all in the caches. */
static double run_hot(const Run *r)
{
    uint64_t ns = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begin = now_ns();

        for (unsigned n = 0; n < N_STACKS * STEPS; n++) {
            step(r, n / STEPS, n % STEPS);
        }
        ns += now_ns() - begin;
        stats_of(r->w);                 /* the queue is empty then */
    }
    return (double)ns / ROUNDS / N_STACKS / STEPS;
}

static uint64_t clock_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* What a guest does between two hits: it uses the caches. */
static void evict(void)
{
    static uint64_t words[EVICTED / sizeof(uint64_t)];

    for (size_t i = 0; i < G_N_ELEMENTS(words); i += 8) {
        words[i]++;
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Return the median of a hit, after the near caches were filled otherwise. */
static double run_cold(const Run *r)
{
    static uint64_t took[COLD_ROUNDS * N_STACKS * STEPS];

    for (unsigned i = 0; i < G_N_ELEMENTS(took); i++) {
        uint64_t begin, now;

        evict();
        begin = clock_ns();
        now = clock_ns();               /* of the clock itself */
        step(r, i / STEPS % N_STACKS, i % STEPS);
        took[i] = clock_ns() - now - (now - begin);
        if (i % (N_STACKS * STEPS) == 0) {
            stats_of(r->w);
        }
    }
    qsort(took, G_N_ELEMENTS(took), sizeof(*took), compare);
    return took[G_N_ELEMENTS(took) / 2];
}

/* The least of several runs: [1] with KVM. */
typedef struct Best {
    double hot[2], cold[2];
} Best;

static void run(Best *best, bool kvm)
{
    Run r = { 0 };

    m.kvm = kvm;
    prepare(&r);
    best->hot[kvm] = MIN(best->hot[kvm], run_hot(&r));
    best->cold[kvm] = MIN(best->cold[kvm], run_cold(&r));
    end(&r);
}

int main(void)
{
    Best b = { { 1e9, 1e9 }, { 1e9, 1e9 } };

    for (int i = 0; i < RUNS; i++) {
        run(&b, false);
        run(&b, true);
    }
    printf("hit.tcg_ns %.0f ns\nhit.kvm_ns %.0f ns\n", b.cold[0], b.cold[1]);
    printf("hit.tcg_cached_ns %.0f ns\nhit.kvm_cached_ns %.0f ns\n", b.hot[0],
           b.hot[1]);
    return 0;
}
