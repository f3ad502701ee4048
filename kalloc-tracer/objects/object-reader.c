/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object reader: numbers, addresses, strings and per-CPU memory of the running
 * kernel. See objects-internal.h.
 */
#include "kalloc-tracer/objects/objects-internal.h"

#include <string.h>

/* Bytes of a string that are read together; never across a page. */
#define TEXT_STEP 64u
/* Registers of a vCPU that are looked at to find one by name. */
#define REGISTERS_MAX 256u

bool kt_objects_read(const KtObjects *o, uint64_t va, void *buf, size_t len)
{
    for (unsigned i = 0; o->vm && i < o->vm->n_vcpus; i++) {
        if (o->vm->read(o->vm->opaque, i, va, buf, len)) {
            return true;
        }
    }
    return false;
}

bool kt_objects_number(const KtObjects *o, uint64_t va, unsigned bytes,
                       uint64_t *out)
{
    uint64_t word = 0;
    bool ok = bytes <= sizeof(word) && kt_objects_read(o, va, &word, bytes);

    *out = ok ? GUINT64_FROM_LE(word) : 0;
    return ok;
}

bool kt_objects_pointer(const KtObjects *o, uint64_t va, uint64_t *out)
{
    bool ok = kt_objects_number(o, va, sizeof(*out), out);

    if (ok && o->kernel) {
        *out = gs_untag(gs_kernel_tag_bits(o->kernel), *out);
    }
    return ok;
}

bool kt_objects_variable(const KtObjects *o, const char *name, unsigned bytes,
                         uint64_t *out)
{
    GsSymbol sym;

    *out = 0;
    return o->kernel && gs_kernel_lookup(o->kernel, name, &sym) &&
           kt_objects_number(o, sym.va, bytes, out);
}

bool kt_objects_text(const KtObjects *o, uint64_t va, char *buf, size_t size)
{
    size_t done = 0;

    while (done < size - 1) {
        size_t step = TEXT_STEP - (va + done) % TEXT_STEP;

        step = MIN(step, size - 1 - done);
        if (!kt_objects_read(o, va + done, buf + done, step)) {
            buf[0] = 0;
            return false;
        }
        if (memchr(buf + done, 0, step)) {
            return true;
        }
        done += step;
    }
    buf[done] = 0;
    return true;
}

/* ---- CPUs ---------------------------------------------------------------- */

unsigned kt_objects_n_cpus(const KtObjects *o)
{
    uint64_t n;

    if (kt_objects_variable(o, "nr_cpu_ids", 4, &n) && n) {
        return MIN(n, KT_CPUS_MAX);
    }
    return o->vm ? MIN(o->vm->n_vcpus, KT_CPUS_MAX) : 0;
}

bool kt_objects_cpu_is_possible(const KtObjects *o, unsigned cpu)
{
    uint64_t word;
    GsSymbol mask;

    if (!o->kernel ||
        !gs_kernel_lookup(o->kernel, "__cpu_possible_mask", &mask) ||
        !kt_objects_number(o, mask.va + cpu / 64 * 8, 8, &word)) {
        return true;
    }
    return word >> cpu % 64 & 1;
}

bool kt_objects_register(const KtVm *vm, unsigned vcpu, const char *name,
                         uint64_t *value)
{
    KtRegister reg;

    for (unsigned i = 0; i < REGISTERS_MAX; i++) {
        if (!vm->reg(vm->opaque, vcpu, i, &reg)) {
            return false;
        }
        if (!strcmp(reg.name, name)) {
            *value = reg.value;
            return true;
        }
    }
    return false;
}

/* Find the offset of a CPU's per-CPU memory in its registers: the kernel's GS
 * base, which SWAPGS keeps while user code runs. */
static bool offset_by_register(const KtObjects *o, unsigned cpu,
                               uint64_t *offset)
{
    static const char *const names[] = { "gs_base", "k_gs_base" };

    if (!o->vm || o->vm->running || cpu >= o->vm->n_vcpus ||
        gs_kernel_arch(o->kernel)->base == GS_BASE_TASK) {
        return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (kt_objects_register(o->vm, cpu, names[i], offset) &&
            *offset >= gs_kernel_lowest(o->kernel)) {
            return true;
        }
    }
    return false;
}

/* kernel/up.c has the first function, kernel/smp.c has both. */
static bool is_not_smp(const GsKernel *k)
{
    GsSymbol sym;

    return gs_kernel_lookup(k, "smp_call_function_single", &sym) &&
           !gs_kernel_lookup(k, "smp_call_function_many", &sym);
}

static bool find_offset(const KtObjects *o, unsigned cpu, uint64_t *offset)
{
    GsSymbol offsets;

    if (gs_kernel_lookup(o->kernel, "__per_cpu_offset", &offsets)) {
        return kt_objects_number(o, offsets.va + 8ull * cpu, 8, offset);
    }
    return is_not_smp(o->kernel) || offset_by_register(o, cpu, offset);
}

bool kt_objects_percpu(const KtObjects *o, unsigned cpu, uint64_t pointer,
                       uint64_t *va)
{
    uint64_t offset = 0;
    bool ok = o->kernel && cpu < kt_objects_n_cpus(o) &&
              kt_objects_cpu_is_possible(o, cpu) &&
              find_offset(o, cpu, &offset);

    *va = ok ? pointer + offset : 0;
    return ok;
}
