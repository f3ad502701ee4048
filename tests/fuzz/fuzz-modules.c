/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any guest memory as a struct module, or as a module's ELF file.
 *
 * The input is the guest memory at a fixed address, and begins with the struct
 * or the file. Bits of byte 0: the layout of the struct; it is a file.
 * Words whose upper half is 1 become addresses in the input, so that pointers
 * lead somewhere. If the module is accepted, it is added, queried and used for
 * unwinding. An older module is in the tables that the new one may overlap.
 */
#include "tests/fuzz/fuzz.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include <elf.h>

#define GUEST 0xffffffffc0000000ull
#define GUEST_SIZE 0x8000
#define MODULE (GUEST + 0x400)      /* the struct module of a file */

typedef struct Input {
    uint8_t bytes[GUEST_SIZE];
    size_t len;
} Input;

static const GsModuleShape shapes[2] = {
    {
        .size = 0xf0, .name = 24, .name_size = 56,
        .mem = {
            { .base = 0x80, .size = 0x88, .text_size = 0x8c },
            { .base = 0xa0, .size = 0xa8, .text_size = 0xac },
        },
        .n_mem = 2,
        .has_kallsyms = true, .kallsyms = 0xc0,
        .sym_num = 8, .sym_strtab = 16,
        .has_typetab = true, .sym_typetab = 24,
        .has_orc = true, .num_orcs = 0xd0, .orc_ip = 0xd8, .orc = 0xe0,
    },
    {
        .size = 0xf0, .name = 24, .name_size = 56,
        .mem = {
            { .base = 0x80, .size = 0x88, .text = true },
            { .base = 0x90, .size = 0x98 },
            { .base = 0xa0, .size = 0xa8, .text = true },
            { .base = 0xb0, .size = 0xb8 },
        },
        .n_mem = 4,
        .has_kallsyms = true, .kallsyms = 0xc0,
        .sym_num = 8, .sym_strtab = 16,
        .has_orc = true, .num_orcs = 0xd0, .orc_ip = 0xd8, .orc = 0xe0,
    },
};

static bool input_read(void *opaque, uint64_t va, void *buf, size_t len)
{
    Input *in = opaque;

    if (va < GUEST || va - GUEST > in->len || len > in->len - (va - GUEST)) {
        return false;
    }
    memcpy(buf, in->bytes + (va - GUEST), len);
    return true;
}

/* Copy the input. Words whose upper half is 1 become addresses in it. */
static void input_fill(Input *in, const uint8_t *data, size_t len)
{
    in->len = MIN(len, sizeof(in->bytes));
    memcpy(in->bytes, data, in->len);
    for (size_t i = 0; i + 8 <= in->len; i += 8) {
        uint64_t v;

        memcpy(&v, in->bytes + i, 8);
        if (v >> 32 == 1) {
            v = GUEST + (v & (GUEST_SIZE - 1));
            memcpy(in->bytes + i, &v, 8);
        }
    }
}

static bool count(const GsSymbol *sym, void *opaque)
{
    return sym->module != NULL;
}

static void query(GsKernel *k, const GsModuleInfo *info)
{
    for (size_t i = 0; i < info->n_syms && i < 64; i++) {
        GsSymbol s;

        if (!gs_modules_lookup(k->modules, NULL, info->syms[i].name, &s)) {
            abort();
        }
        gs_modules_symbolize(k->modules, info->syms[i].va, GS_ERA_NOW, &s);
        gs_modules_foreach_named(k->modules, s.name, false, count, NULL);
        gs_modules_is_text(k->modules, s.va);
    }
}

static void learn(GsKernel *k, GsModuleInfo *info)
{
    GsModuleInfo plain = *info;
    GsOrcReader *r = gs_orc_reader_new(k->orc);
    GsOrcRule rule;

    plain.n_orc = 0;
    plain.types = (GsModuleTypes) { 0 };
    if (gs_modules_add(k->modules, k->orc, 1, info, NULL) ||
        gs_modules_add(k->modules, k->orc, 1, &plain, NULL)) {
        query(k, info);
    }
    for (size_t i = 0; i < info->n_mem; i++) {
        gs_orc_reader_find(r, info->mem[i].start, &rule);
    }
    gs_orc_reader_free(r);
}

static GsModuleInfo *read_module(uint8_t form, const GsMem *mem,
                                 const Input *in, GError **errp)
{
    uint64_t sections = 0;

    if (!(form & 2)) {
        return gs_module_read(&shapes[form & 1], mem, GUEST, errp);
    }
    if (in->len >= sizeof(Elf64_Ehdr)) {
        memcpy(&sections, in->bytes + offsetof(Elf64_Ehdr, e_shoff), 8);
    }
    return gs_module_read_elf(mem, MODULE, &(GsModuleFile) {
                                  GUEST, GUEST + sections }, errp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static Input in;
    GsMem mem = { input_read, &in };
    GsKernel k = { 0 };
    g_autoptr(GsModuleInfo) info = NULL;
    g_autoptr(GError) err = NULL;

    if (len < 1) {
        return 0;
    }
    input_fill(&in, data + 1, len - 1);
    k.arch = &gs_arch_x86_64;
    k.orc = gs_orc_set_new();
    k.modules = gs_modules_new();
    gs_kernel_add_module_data(&k, 2, "older", GUEST + 0x1000, 0x2000, NULL, 0,
                              0, NULL, NULL, 0, NULL);
    info = read_module(data[0], &mem, &in, &err);
    if (!info != !!err) {
        abort();
    }
    if (info) {
        learn(&k, info);
        gs_kernel_drop_module(&k, 1);
        query(&k, info);
    }
    gs_modules_free(k.modules);
    gs_orc_set_free(k.orc);
    return 0;
}
