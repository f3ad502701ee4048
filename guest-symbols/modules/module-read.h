/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A loaded module as it lies in guest memory. Internal to guest-symbols.
 */
#ifndef GS_MODULE_READ_H
#define GS_MODULE_READ_H

#include "guest-symbols/gs.h"
#include "guest-symbols/orc/orc.h"

/* ---- types --------------------------------------------------------------- */

/*
 * Types of one module: its sections .BTF and .BTF.base. The kernel frees both
 * when the module's init ends, so they are copied when the module is loaded.
 * They are parsed when somebody asks for them: most are never needed.
 *
 * Not thread-safe: the table of modules locks.
 */

typedef struct GsBtf GsBtf;

/**
 * struct GsModuleTypes - copied and parsed types
 * @raw, @raw_len: (owned, nullable) its section .BTF, until it is parsed
 * @base, @base_len: (owned, nullable) its section .BTF.base
 * @btf: (owned, nullable) the types
 * @why: (static) why there are none
 */
typedef struct GsModuleTypes {
    uint8_t *raw;
    size_t raw_len;
    uint8_t *base;
    size_t base_len;
    GsBtf *btf;
    const char *why;
} GsModuleTypes;

/** struct GsModuleTypesAt - where both sections are in guest memory; 0: the
 *  module has none */
typedef struct GsModuleTypesAt {
    uint64_t raw, raw_len;
    uint64_t base, base_len;
} GsModuleTypesAt;

/** gs_module_types_read() - copy the sections. If one cannot be copied, @why
 *  says so, and nothing else is set. */
void gs_module_types_read(GsModuleTypes *t, const GsMem *mem,
                          const GsModuleTypesAt *at);
/** gs_module_types_clear() - free all. @why: (static) what is said then */
void gs_module_types_clear(GsModuleTypes *t, const char *why);
/** gs_module_types_is_none() - has the module no types of its own? Then nothing
 *  was dropped. */
bool gs_module_types_is_none(const GsModuleTypes *t);
/** gs_module_types_move() - @to gets what @from has, and @from becomes
 *  empty. */
void gs_module_types_move(GsModuleTypes *to, GsModuleTypes *from);
/** gs_module_types_bytes() - estimate their host memory, parsed or not. */
size_t gs_module_types_bytes(const GsModuleTypes *t);
/** gs_module_types_parse() - (borrowed, nullable) return the types. @kernel:
 *  the types that they continue. If there are none, @why is set. */
GsBtf *gs_module_types_parse(GsModuleTypes *t, GsBtf *kernel);

/* ---- a module ------------------------------------------------------------ */

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
