/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of one module: its sections .BTF and .BTF.base. The kernel frees both
 * when the module's init ends, so they are copied when the module is loaded.
 * They are parsed when somebody asks for them: most are never needed.
 *
 * Not thread-safe: the table of modules locks.
 */
#ifndef GS_MODULE_TYPES_H
#define GS_MODULE_TYPES_H

#include "guest-symbols/gs.h"

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

#endif /* GS_MODULE_TYPES_H */
