/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adds modules and BPF programs to a kernel: from a struct module, a module's
 * file or a bpf_ksym in guest memory, or from parts. Called by the vCPU thread
 * that runs the guest's module loader, and by tests.
 *
 * Everything that can fail is done before the table of modules and the ORC set
 * are changed: a module is added whole or not at all.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include <inttypes.h>
#include <string.h>

#define BPF_NAME_MAX 512        /* KSYM_NAME_LEN */
#define BPF_MAX (16u << 20)     /* of one program, bytes */

bool gs_kernel_add_module(GsKernel *k, const GsMem *mem, uint64_t module_va,
                          const GsModuleFile *file, GError **errp)
{
    g_autoptr(GsModuleInfo) info = NULL;
    GsModuleShape shape;

    if (!k->btf && file) {
        info = gs_module_read_elf(mem, module_va, file, errp);
    } else if (gs_modules_shape(k->modules, k->btf, &shape, errp)) {
        info = gs_module_read(&shape, mem, module_va, errp);
    }
    return info && gs_modules_add(k->modules, k->orc, module_va, info, errp);
}

bool gs_kernel_add_module_data(GsKernel *k, uint64_t module_va,
                               const char *name, uint64_t base, uint64_t size,
                               const GsModuleSymbol *syms, size_t n_syms,
                               uint64_t orc_ip_va, const int32_t *orc_ip,
                               const void *orc, size_t n_orc, GError **errp)
{
    GsModuleInfo info = {
        .mem = { { base, base + size } }, .n_mem = 1,
        .text = { { base, base + size } }, .n_text = 1,
        .syms = (GsModuleSymbol *)syms, .n_syms = n_syms,
        .orc_ip_va = orc_ip_va, .orc_ip = (uint8_t *)orc_ip,
        .orc = (uint8_t *)orc, .n_orc = n_orc,
    };

    if (!size || base > UINT64_MAX - size) {
        return gs_fail(errp, GS_ERROR_GUEST, "module %s: %" PRIu64
                       " bytes at 0x%" PRIx64 " are no memory area", name, size,
                       base);
    }
    g_strlcpy(info.name, name, sizeof(info.name));
    return gs_modules_add(k->modules, k->orc, module_va, &info, errp);
}

/* Names from the guest are printed on terminals. */
static bool is_visible(const char *name)
{
    for (const char *p = name; *p; p++) {
        if (!g_ascii_isgraph(*p)) {
            return false;
        }
    }
    return *name;
}

/* struct bpf_ksym of include/linux/bpf.h: [start, end), name */
static bool read_bpf(const GsKernel *k, const GsMem *mem, uint64_t va,
                     uint64_t *start, uint64_t *end, char *name, size_t cap)
{
    uint32_t at_start, at_end, at_name, size;

    return gs_kernel_member(k, "bpf_ksym", "start", &at_start, NULL) &&
           gs_kernel_member(k, "bpf_ksym", "end", &at_end, NULL) &&
           gs_kernel_member(k, "bpf_ksym", "name", &at_name, &size) &&
           mem->read(mem->opaque, va + at_start, start, sizeof(*start)) &&
           mem->read(mem->opaque, va + at_end, end, sizeof(*end)) &&
           mem->read(mem->opaque, va + at_name, name, MIN(size, cap)) &&
           *start < *end && *end - *start <= BPF_MAX &&
           memchr(name, 0, MIN(size, cap)) && is_visible(name);
}

bool gs_kernel_add_bpf(GsKernel *k, const GsMem *mem, uint64_t ksym_va,
                       GError **errp)
{
    char name[BPF_NAME_MAX];
    GsModuleSymbol sym = { .name = name, .type = 't' };
    uint64_t start, end;

    if (!read_bpf(k, mem, ksym_va, &start, &end, name, sizeof(name))) {
        return gs_fail(errp, GS_ERROR_GUEST,
                       "unreadable or senseless struct bpf_ksym at 0x%" PRIx64,
                       ksym_va);
    }
    sym.va = start;
    return gs_kernel_add_module_data(k, ksym_va, "bpf", start, end - start,
                                     &sym, 1, 0, NULL, NULL, 0, errp);
}
