/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a task stands: the vCPU that executes it, or the registers that the
 * kernel saved when it switched to another task:
 *
 *              x86-64: thread.sp points to     arm64: thread.     riscv64:
 *              struct inactive_task_frame      cpu_context        thread
 *     ip       ret_addr, its last word         pc                 ra
 *     sp       behind the frame                sp                 sp
 *     bp       bp                              fp                 s[0]
 *
 * The members that the kernel's types have say which of them it is. Called on
 * any thread while the VM is stopped; no locks. All values are untrusted.
 */
#include "kalloc-tracer/objects/objects-internal.h"

/* More than any kernel stack has. */
#define STACK_MAX 0x10000ull

static bool in_stack(uint64_t stack, uint64_t sp)
{
    return stack && sp >= stack && sp - stack <= STACK_MAX;
}

/* ---- a task that runs ---------------------------------------------------- */

/* Find the CPU that executes the task, as the kernel numbers it. */
static bool find_cpu(const KtTask *t, uint64_t *cpu)
{
    return kt_task_fact(t, KT_TASK_ON_CPU, cpu) && *cpu &&
           kt_task_fact(t, KT_TASK_CPU, cpu);
}

/* Do the registers of a vCPU that executes the kernel belong to the task? If
 * the stack is that of an interrupt, and QEMU does not show the base register
 * (sp_el0 of arm64), vCPUs are taken to have the numbers of their CPUs. */
static bool registers_are_of(const KtObjects *o, const KtTask *t, unsigned vcpu)
{
    const GsArch *arch = gs_kernel_arch(o->kernel);
    uint64_t base, sp, stack, offset, cpu;

    if (kt_task_fact(t, KT_TASK_STACK, &stack) &&
        kt_objects_register(o->vm, vcpu, arch->reg[GS_REG_SP], &sp) &&
        in_stack(stack, sp)) {
        return true;
    }
    if (!kt_objects_register(o->vm, vcpu, arch->reg[GS_REG_BASE], &base)) {
        return find_cpu(t, &cpu) && cpu == vcpu;
    }
    if (arch->base == GS_BASE_TASK) {
        return gs_untag(gs_kernel_tag_bits(o->kernel), base) == t->va;
    }
    return find_cpu(t, &cpu) && kt_objects_percpu(o, cpu, 0, &offset) &&
           offset && base == offset;
}

static bool executes(const KtObjects *o, const KtTask *t, unsigned vcpu)
{
    uint64_t pc, cpu = 0;

    if (!kt_objects_register(o->vm, vcpu, gs_kernel_arch(o->kernel)->pc,
                             &pc)) {
        return false;
    }
    /* registers of user code do not say whose they are */
    return pc >= gs_kernel_lowest(o->kernel) ?
               registers_are_of(o, t, vcpu) : find_cpu(t, &cpu) && cpu == vcpu;
}

bool kt_task_vcpu(const KtObjects *o, const KtTask *t, unsigned *vcpu)
{
    uint64_t on_cpu;

    if (kt_task_fact(t, KT_TASK_ON_CPU, &on_cpu) && !on_cpu) {
        return false;
    }
    for (unsigned i = 0; i < o->vm->n_vcpus; i++) {
        if (executes(o, t, i)) {
            *vcpu = i;
            return true;
        }
    }
    return false;
}

/* ---- a task that sleeps -------------------------------------------------- */

static bool read_frame(const KtObjects *o, const KtLayout *at, GsRegs *regs)
{
    uint64_t frame = regs->sp;

    regs->sp = frame + at->at[KT_M_FRAME_PC] + 8;
    return kt_objects_number(o, frame + at->at[KT_M_FRAME_PC], 8, &regs->ip) &&
           kt_objects_number(o, frame + at->at[KT_M_FRAME_BP], 8, &regs->bp);
}

static const char *read_saved(const KtObjects *o, const KtTask *t,
                              const KtLayout *at, uint64_t stack, GsRegs *regs)
{
    bool in_task = kt_layout_has(at, KT_M_SWITCH_PC) &&
                   kt_layout_has(at, KT_M_SWITCH_FP);
    bool read = kt_objects_number(o, t->va + at->at[KT_M_TASK_SP], 8,
                                  &regs->sp);

    if (read && !in_stack(stack, regs->sp)) {
        return "has a saved stack pointer that is not in its stack";
    }
    if (in_task) {
        read = read &&
            kt_objects_number(o, t->va + at->at[KT_M_SWITCH_PC], 8,
                              &regs->ip) &&
            kt_objects_number(o, t->va + at->at[KT_M_SWITCH_FP], 8,
                              &regs->bp);
    } else {
        read = read && read_frame(o, at, regs);
    }
    if (!read) {
        return "has unreadable saved registers";
    }
    return regs->ip < gs_kernel_lowest(o->kernel) ?
               "has a saved program counter that is not the kernel's" : NULL;
}

const char *kt_task_saved(const KtObjects *o, const KtTask *t, GsRegs *regs)
{
    uint64_t stack;
    KtLayout at;

    kt_layout_init(&at, o->kernel);
    *regs = (GsRegs) { .task = t->va };
    if (!kt_layout_has(&at, KT_M_TASK_SP) ||
        !(kt_layout_has(&at, KT_M_SWITCH_PC) ||
          (kt_layout_has(&at, KT_M_FRAME_PC) &&
           kt_layout_has(&at, KT_M_FRAME_BP)))) {
        return "has saved registers at an unknown place: the kernel has no "
               "types (CONFIG_DEBUG_INFO_BTF), see types=FILE";
    }
    if (!kt_task_fact(t, KT_TASK_STACK, &stack)) {
        return "has an unreadable task_struct";
    }
    return stack ? read_saved(o, t, &at, stack, regs) :
                   "has ended, its stack was freed";
}
