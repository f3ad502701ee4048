/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers, caches and counters of a vCPU: see vcpu.h. */
#include "kalloc-tracer/capture/vcpu.h"

/* Return true for the registers that gdb shows for every target: general ones,
 * no system registers. In the entry of exceptions of riscv64, the pc that was
 * interrupted is only in sepc. */
static bool is_shown(const qemu_plugin_reg_descriptor *desc)
{
    return desc->feature && (g_str_has_suffix(desc->feature, ".core") ||
                             g_str_has_suffix(desc->feature, ".cpu") ||
                             !strcmp(desc->name, "sepc"));
}

static void find_register(KtVcpu *v, const GsArch *arch,
                          const qemu_plugin_reg_descriptor *desc)
{
    size_t size = 0;
    const void *at = qemu_plugin_register_ptr(v->index, desc->handle, &size);
    KtVcpuReg shown = { desc->name, at };

    if (!at || size != sizeof(uint64_t)) {
        return;
    }
    for (unsigned r = 0; r < GS_REG__COUNT; r++) {
        if (arch->reg[r] && !strcmp(arch->reg[r], desc->name)) {
            v->reg[r] = at;
            v->handle[r] = desc->handle;
        }
    }
    if (is_shown(desc)) {
        g_array_append_val(v->shown, shown);
    }
}

static bool find_registers(KtVcpu *v, const GsArch *arch)
{
    g_autoptr(GArray) list = qemu_plugin_get_registers();

    for (unsigned i = 0; list && i < list->len; i++) {
        find_register(v, arch,
                      &g_array_index(list, qemu_plugin_reg_descriptor, i));
    }
    for (unsigned r = 0; r < GS_REG__COUNT; r++) {
        if (arch->reg[r] && !v->reg[r]) {
            return false;
        }
    }
    return true;
}

bool kt_vcpu_init(KtVcpu *v, unsigned index, const GsArch *arch)
{
    v->index = index;
    v->shown = g_array_new(FALSE, FALSE, sizeof(KtVcpuReg));
    v->ready = find_registers(v, arch);
    return v->ready;
}

void kt_vcpu_unplug(KtVcpu *v)
{
    kt_vcpu_reset(v);
    g_clear_pointer(&v->shown, g_array_unref);
    memset(v->reg, 0, sizeof(v->reg));
    v->ready = false;
}

void kt_vcpu_set_kernel(KtVcpu *v, const GsKernel *k)
{
    v->unwinder = gs_unwinder_new(k);
    v->tag_bits = gs_kernel_tag_bits(k);
}

void kt_vcpu_end_points(KtVcpu *v)
{
    memset(v->point_site, 0, sizeof(v->point_site));
}

void kt_vcpu_reset(KtVcpu *v)
{
    memset(&v->seen, 0, sizeof(v->seen));
    memset(v->free_site, 0, sizeof(v->free_site));
    memset(v->return_site, 0, sizeof(v->return_site));
    kt_vcpu_end_points(v);
    v->page_free = (KtPageFree) { 0 };
    v->allocating = (KtAllocating) { 0 };
    v->recorded_us = 0;
    v->tag_bits = 0;
    v->trapped = false;
    v->point_trapped = v->point_stopped = false;
    g_clear_pointer(&v->unwinder, gs_unwinder_free);
}

KtEntry kt_vcpu_entry(const KtVcpu *v, uint64_t id)
{
    KtEntry e = {
        .id = id, .sp = kt_vcpu_reg(v, GS_REG_SP),
        .arg0 = kt_vcpu_arg(v, 0), .arg1 = kt_vcpu_arg(v, 1),
    };
    size_t avail;
    const void *at = qemu_plugin_vaddr_to_host(e.sp, &avail);

    if (at && avail >= sizeof(e.top)) {
        memcpy(&e.top, at, sizeof(e.top));
    }
    return e;
}

bool kt_vcpu_write_reg(const KtVcpu *v, GsReg r, uint64_t value)
{
    g_autoptr(GByteArray) buf = g_byte_array_new();

    g_byte_array_append(buf, (const uint8_t *)&value, sizeof(value));
    return qemu_plugin_write_register(v->handle[r], buf);
}

/* Write the old values back. Return false if one stays changed. */
static bool undo_writes(const KtVcpu *v, const KtRegValue *to,
                        const uint64_t *old, unsigned n)
{
    bool all = true;

    while (n--) {
        all &= kt_vcpu_write_reg(v, to[n].reg, old[n]);
    }
    return all;
}

KtWritten kt_vcpu_write_regs(const KtVcpu *v, const KtRegValue *to, unsigned n)
{
    uint64_t old[KT_VCPU_WRITES];

    for (unsigned i = 0; i < n; i++) {
        old[i] = kt_vcpu_reg(v, to[i].reg);
        if (!kt_vcpu_write_reg(v, to[i].reg, to[i].value)) {
            return undo_writes(v, to, old, i) ? KT_WRITTEN_NONE :
                                                KT_WRITTEN_SOME;
        }
    }
    return KT_WRITTEN_ALL;
}
