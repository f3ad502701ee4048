/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A loaded module as it lies in guest memory. Internal to guest-symbols.
 */
#ifndef GS_MODULE_READ_H
#define GS_MODULE_READ_H

#include "guest-symbols/gs.h"
#include "guest-symbols/modules/module-types.h"
#include "guest-symbols/orc/orc.h"

#define GS_MODULE_MAX_MEM 8
#define GS_MODULE_NAME_MAX 64

/**
 * struct GsModuleMem - where one memory area of a module is described
 * @base: offset of its address in struct module
 * @size: offset of its size, 32 bits
 * @text_size: offset of the size of the code it starts with, 0 when @text
 *             alone says whether it holds code
 * @text: all of it is code
 */
typedef struct GsModuleMem {
    uint32_t base;
    uint32_t size;
    uint32_t text_size;
    bool text;
} GsModuleMem;

/**
 * struct GsModuleShape - struct module of one kernel build, by its BTF
 *
 * All are offsets in bytes. @sym_*: in struct mod_kallsyms, @has_typetab
 * false before 5.2. @num_orcs, @orc_*: in struct module. @has_btf: from 5.11
 * on, with BTF of modules; @has_btf_base: from 6.11 on.
 */
typedef struct GsModuleShape {
    uint32_t size;
    uint32_t name;
    uint32_t name_size;
    GsModuleMem mem[GS_MODULE_MAX_MEM];
    size_t n_mem;
    bool has_kallsyms;
    uint32_t kallsyms;
    uint32_t sym_symtab;
    uint32_t sym_num;
    uint32_t sym_strtab;
    bool has_typetab;
    uint32_t sym_typetab;
    bool has_orc;
    uint32_t num_orcs;
    uint32_t orc_ip;
    uint32_t orc;
    bool has_btf;
    uint32_t btf, btf_size;
    bool has_btf_base;
    uint32_t btf_base, btf_base_size;
} GsModuleShape;

/** gs_module_shape_init() - find the layout of struct module
 *  @btf: (nullable) types of the kernel
 *  Returns: false (GS_ERROR_UNSUPPORTED) without @btf, or if its struct module
 *  has none of the known layouts. */
bool gs_module_shape_init(GsModuleShape *shape, const GsBtf *btf,
                          GError **errp);

/**
 * struct GsModuleInfo - one module, as read or as handed to GsModules
 * @name: module name, printable
 * @mem: its memory areas, run time; none is empty
 * @text: the code among them
 * @syms: symbols that lie in @mem, in no order; names (borrowed) from @strtab
 * @orc_ip_va: run-time address of the array in @orc_ip
 * @orc_ip, @orc: the arrays as in guest memory, NULL when @n_orc is 0
 * @types: taken by the table of modules
 * @load: number of its load; 0: the next one
 * @until: number of the load that took its areas; 0: none
 */
typedef struct GsModuleInfo {
    char name[GS_MODULE_NAME_MAX];
    GsRange mem[GS_MODULE_MAX_MEM];
    size_t n_mem;
    GsRange text[GS_MODULE_MAX_MEM];
    size_t n_text;
    GsModuleSymbol *syms;
    size_t n_syms;
    char *strtab;
    uint64_t orc_ip_va;
    uint8_t *orc_ip;
    uint8_t *orc;
    size_t n_orc;
    GsModuleTypes types;
    uint32_t load, until;
} GsModuleInfo;

/**
 * gs_module_read() - read a struct module and its symbols and ORC
 * @errp: GS_ERROR_GUEST
 * Returns: (owned) or NULL.
 */
GsModuleInfo *gs_module_read(const GsModuleShape *shape, const GsMem *mem,
                             uint64_t module_va, GError **errp);
/** gs_module_read_elf() - read a module from its ELF file, @at, without types.
 *  Returns: as gs_module_read(). */
GsModuleInfo *gs_module_read_elf(const GsMem *mem, uint64_t module_va,
                                 const GsModuleFile *at, GError **errp);
void gs_module_info_free(GsModuleInfo *info);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsModuleInfo, gs_module_info_free)

#endif /* GS_MODULE_READ_H */
