/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a struct module from guest memory, at offsets from the kernel's BTF.
 * module-elf.c does the same without types.
 *
 * Two shapes exist: core_layout and init_layout, each {base, size, text_size},
 * up to 6.3, and since ac3b43283923 (6.4) an array mem[] of {base, size} by
 * enum mod_mem_type. Both become the same list of GsModuleMem rows. Symbols
 * are those of struct mod_kallsyms: all of the module's while it initialises,
 * later those that remain.
 *
 * Called by module-add.c in a vCPU thread, without a lock; nothing here is
 * shared. Sizes and pointers come from the guest: each is capped before use.
 */
#include "guest-symbols/modules/module-read.h"
#include "guest-symbols/modules/modules-internal.h"
#include "guest-symbols/types/btf.h"

#include <inttypes.h>
#include <string.h>

#define MAX_STRUCT 65536u

/* ---- shape ------------------------------------------------------------ */

typedef struct LayoutRow {
    const char *base, *size, *text_size;
} LayoutRow;

static const LayoutRow layout_rows[] = {
    { "core_layout.base", "core_layout.size", "core_layout.text_size" },
    { "init_layout.base", "init_layout.size", "init_layout.text_size" },
};

static bool member(const GsBtf *btf, const char *type, const char *name,
                   uint32_t *offset)
{
    return gs_btf_member(btf, type, name, offset, NULL);
}

static bool shape_layouts(GsModuleShape *s, const GsBtf *btf)
{
    for (size_t i = 0; i < G_N_ELEMENTS(layout_rows); i++) {
        const LayoutRow *row = &layout_rows[i];
        GsModuleMem *m = &s->mem[s->n_mem];

        if (!member(btf, "module", row->base, &m->base) ||
            !member(btf, "module", row->size, &m->size) ||
            !member(btf, "module", row->text_size, &m->text_size)) {
            return false;
        }
        s->n_mem++;
    }
    return true;
}

static bool shape_mem(GsModuleShape *s, const GsBtf *btf)
{
    uint32_t array, array_size, one, base, size;
    int64_t text = -1, init_text = -1;

    if (!gs_btf_member(btf, "module", "mem", &array, &array_size) ||
        !gs_btf_type_size(btf, "module_memory", &one) || !one ||
        !member(btf, "module_memory", "base", &base) ||
        !member(btf, "module_memory", "size", &size) ||
        !gs_btf_enum_value(btf, "MOD_TEXT", &text) ||
        !gs_btf_enum_value(btf, "MOD_INIT_TEXT", &init_text)) {
        return false;
    }
    s->n_mem = MIN(array_size / one, GS_MODULE_MAX_MEM);
    for (size_t i = 0; i < s->n_mem; i++) {
        s->mem[i] = (GsModuleMem) {
            .base = array + i * one + base,
            .size = array + i * one + size,
            .text = (int64_t)i == text || (int64_t)i == init_text,
        };
    }
    return true;
}

static void shape_optional(GsModuleShape *s, const GsBtf *btf)
{
    s->has_kallsyms =
        member(btf, "module", "kallsyms", &s->kallsyms) &&
        member(btf, "mod_kallsyms", "symtab", &s->sym_symtab) &&
        member(btf, "mod_kallsyms", "num_symtab", &s->sym_num) &&
        member(btf, "mod_kallsyms", "strtab", &s->sym_strtab);
    s->has_typetab = member(btf, "mod_kallsyms", "typetab", &s->sym_typetab);
    s->has_orc = member(btf, "module", "arch.num_orcs", &s->num_orcs) &&
                 member(btf, "module", "arch.orc_unwind_ip", &s->orc_ip) &&
                 member(btf, "module", "arch.orc_unwind", &s->orc);
    s->has_btf = member(btf, "module", "btf_data", &s->btf) &&
                 member(btf, "module", "btf_data_size", &s->btf_size);
    s->has_btf_base =
        member(btf, "module", "btf_base_data", &s->btf_base) &&
        member(btf, "module", "btf_base_data_size", &s->btf_base_size);
}

bool gs_module_shape_init(GsModuleShape *s, const GsBtf *btf, GError **errp)
{
    *s = (GsModuleShape) { 0 };
    if (!btf) {
        return gs_fail(errp, GS_ERROR_UNSUPPORTED,
                       "modules: the kernel has no BTF to tell how its struct "
                       "module is laid out");
    }
    if (!gs_btf_type_size(btf, "module", &s->size) || s->size > MAX_STRUCT ||
        !gs_btf_member(btf, "module", "name", &s->name, &s->name_size) ||
        !(shape_mem(s, btf) || shape_layouts(s, btf))) {
        return gs_fail(errp, GS_ERROR_UNSUPPORTED,
                       "modules: struct module of this kernel has neither "
                       "mem[] nor core_layout");
    }
    shape_optional(s, btf);
    return true;
}

/* ---- guest memory ----------------------------------------------------- */

/* A copy of struct module; offsets past its end read as 0. */
typedef struct Blob {
    const uint8_t *data;
    size_t len;
} Blob;

static uint64_t blob_get(const Blob *b, uint32_t off, size_t len)
{
    uint64_t v = 0;

    if (off <= b->len && len <= b->len - off) {
        memcpy(&v, b->data + off, len);
    }
    return GUINT64_FROM_LE(v);
}

static uint32_t blob_u32(const Blob *b, uint32_t off)
{
    return blob_get(b, off, 4);
}

static uint64_t blob_u64(const Blob *b, uint32_t off)
{
    return blob_get(b, off, 8);
}

/* ---- parts ------------------------------------------------------------ */

static bool read_name(GsModuleInfo *info, const GsModuleShape *s,
                      const Blob *b, uint64_t module_va, GError **errp)
{
    size_t max = MIN(s->name_size, sizeof(info->name) - 1);

    if (s->name > b->len || max > b->len - s->name) {
        return gs_module_fail(errp, "a name outside of struct module",
                              module_va);
    }
    memcpy(info->name, b->data + s->name, max);
    if (!info->name[0]) {
        return gs_module_fail(errp, "struct module without a name", module_va);
    }
    gs_module_make_printable(info->name);
    return true;
}

static bool read_mem(GsModuleInfo *info, const GsModuleShape *s,
                     const Blob *b, uint64_t module_va, GError **errp)
{
    for (size_t i = 0; i < s->n_mem; i++) {
        const GsModuleMem *m = &s->mem[i];
        uint64_t base = blob_u64(b, m->base);
        uint32_t size = blob_u32(b, m->size);
        uint32_t text = m->text ? size : 0;

        if (!base || !size) {
            continue;
        }
        if (!gs_module_is_area(base, size)) {
            return gs_module_fail(errp, "absurd memory area in struct module",
                                  module_va);
        }
        if (m->text_size) {
            text = MIN(blob_u32(b, m->text_size), size);
        }
        info->mem[info->n_mem++] = (GsRange) { base, base + size };
        if (text) {
            info->text[info->n_text++] = (GsRange) { base, base + text };
        }
    }
    return info->n_mem || gs_module_fail(errp, "struct module without memory",
                                         module_va);
}

static bool read_symbols(GsModuleInfo *info, const GsModuleShape *s,
                         const GsMem *mem, const Blob *b, GError **errp)
{
    uint8_t bytes[64] = { 0 };
    Blob k = { bytes, sizeof(bytes) };
    uint64_t va = s->has_kallsyms ? blob_u64(b, s->kallsyms) : 0;
    GsModuleSymbolsAt at;

    if (!va) {
        return true;
    }
    if (!mem->read(mem->opaque, va, bytes, 8 * (3 + s->has_typetab))) {
        return gs_module_fail(errp, "unreadable struct mod_kallsyms", va);
    }
    at = (GsModuleSymbolsAt) {
        .symtab = blob_u64(&k, s->sym_symtab), .n = blob_u32(&k, s->sym_num),
        .strtab = blob_u64(&k, s->sym_strtab),
        .typetab = s->has_typetab ? blob_u64(&k, s->sym_typetab) : 0,
    };
    return gs_module_read_symbols(info, mem, &at, errp);
}

static bool read_orc(GsModuleInfo *info, const GsModuleShape *s,
                     const GsMem *mem, const Blob *b, GError **errp)
{
    return !s->has_orc ||
           gs_module_read_orc(info, mem, blob_u64(b, s->orc_ip),
                              blob_u64(b, s->orc), blob_u32(b, s->num_orcs),
                              errp);
}

static void read_types(GsModuleInfo *info, const GsModuleShape *s,
                       const GsMem *mem, const Blob *b)
{
    GsModuleTypesAt at = { 0 };

    if (s->has_btf) {
        at.raw = blob_u64(b, s->btf);
        at.raw_len = blob_u32(b, s->btf_size);
    }
    if (s->has_btf_base) {
        at.base = blob_u64(b, s->btf_base);
        at.base_len = blob_u32(b, s->btf_base_size);
    }
    gs_module_types_read(&info->types, mem, &at);
}

/* ---- whole ------------------------------------------------------------ */

GsModuleInfo *gs_module_read(const GsModuleShape *s, const GsMem *mem,
                             uint64_t module_va, GError **errp)
{
    g_autoptr(GsModuleInfo) info = g_new0(GsModuleInfo, 1);
    g_autofree uint8_t *bytes = gs_module_dup(mem, module_va, s->size,
                                              "unreadable struct module", errp);
    Blob b = { bytes, s->size };

    if (!bytes || !read_name(info, s, &b, module_va, errp) ||
        !read_mem(info, s, &b, module_va, errp) ||
        !read_symbols(info, s, mem, &b, errp) ||
        !read_orc(info, s, mem, &b, errp)) {
        return NULL;
    }
    read_types(info, s, mem, &b);
    return g_steal_pointer(&info);
}

void gs_module_info_free(GsModuleInfo *info)
{
    if (!info) {
        return;
    }
    g_free(info->syms);
    g_free(info->strtab);
    g_free(info->orc_ip);
    g_free(info->orc);
    gs_module_types_clear(&info->types, NULL);
    g_free(info);
}
