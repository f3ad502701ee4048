/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a struct module from guest memory, at offsets from the kernel's BTF.
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
#include "guest-symbols/types/btf.h"

#include <inttypes.h>
#include <string.h>

#define MAX_STRUCT 65536u
#define MAX_MEM_SIZE (1u << 30)
#define MAX_SYMS (1u << 20)
#define MAX_STRTAB (32u << 20)
#define MAX_ORCS (1u << 20)
#define NAME_MAX_LEN 512u           /* KSYM_NAME_LEN since 6.1 */
#define SYM_SIZE 24u                /* Elf64_Sym */
#define ORC_SIZE 6u

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
}

bool gs_module_shape_init(GsModuleShape *s, const GsBtf *btf, GError **errp)
{
    *s = (GsModuleShape) { 0 };
    if (!btf) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "modules: the kernel has no BTF to tell how its "
                    "struct module is laid out");
        return false;
    }
    if (!gs_btf_type_size(btf, "module", &s->size) || s->size > MAX_STRUCT ||
        !gs_btf_member(btf, "module", "name", &s->name, &s->name_size) ||
        !(shape_mem(s, btf) || shape_layouts(s, btf))) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "modules: struct module of this kernel has neither mem[] "
                    "nor core_layout");
        return false;
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

static bool fail(GError **errp, const char *what, uint64_t va)
{
    g_set_error(errp, GS_ERROR, GS_ERROR_GUEST,
                "module: %s at 0x%" PRIx64, what, va);
    return false;
}

/* Returns: (owned) @len bytes, NULL and @errp when they cannot be read. */
static bool has_room(const GsMem *mem, size_t len)
{
    return !mem->room || len <= mem->room;
}

static void *guest_dup(const GsMem *mem, uint64_t va, size_t len,
                       const char *what, GError **errp)
{
    g_autofree void *buf = has_room(mem, len) ? g_try_malloc(MAX(len, 1))
                                              : NULL;

    if (!buf || !mem->read(mem->opaque, va, buf, len)) {
        fail(errp, what, va);
        return NULL;
    }
    return g_steal_pointer(&buf);
}

/*
 * As many bytes as can be read, page by page, at most @max. Returns: (owned)
 * one more than that, zeroed.
 */
static char *guest_dup_some(const GsMem *mem, uint64_t va, size_t max,
                            size_t *len)
{
    char *buf = has_room(mem, max) ? g_try_malloc0(max + 1) : NULL;
    size_t at = 0;

    while (buf && at < max) {
        size_t n = MIN(4096 - ((va + at) & 4095), max - at);

        if (!mem->read(mem->opaque, va + at, buf + at, n)) {
            memset(buf + at, 0, n);
            break;
        }
        at += n;
    }
    *len = at;
    return buf;
}

/* ---- parts ------------------------------------------------------------ */

/* Names from the guest are printed on terminals. */
static void make_printable(char *s)
{
    for (; *s; s++) {
        if (*s <= ' ' || *s >= 0x7f) {
            *s = '?';
        }
    }
}

static bool read_name(GsModuleInfo *info, const GsModuleShape *s,
                      const Blob *b, uint64_t module_va, GError **errp)
{
    size_t max = MIN(s->name_size, sizeof(info->name) - 1);

    if (s->name > b->len || max > b->len - s->name) {
        return fail(errp, "a name outside of struct module", module_va);
    }
    memcpy(info->name, b->data + s->name, max);
    if (!info->name[0]) {
        return fail(errp, "struct module without a name", module_va);
    }
    make_printable(info->name);
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
        if (size > MAX_MEM_SIZE || (int64_t)base >= 0 ||
            base > UINT64_MAX - size) {
            return fail(errp, "absurd memory area in struct module",
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
    return info->n_mem || fail(errp, "struct module without memory",
                               module_va);
}

static bool in_mem(const GsModuleInfo *info, uint64_t va)
{
    for (size_t i = 0; i < info->n_mem; i++) {
        if (va >= info->mem[i].start && va < info->mem[i].end) {
            return true;
        }
    }
    return false;
}

static bool in_text(const GsModuleInfo *info, uint64_t va)
{
    for (size_t i = 0; i < info->n_text; i++) {
        if (va >= info->text[i].start && va < info->text[i].end) {
            return true;
        }
    }
    return false;
}

/* Guesses the type letter: before 1c7651f43777 (5.2) there is no typetab. */
static char guess_type(const GsModuleInfo *info, uint64_t va, uint8_t st_info)
{
    char type = in_text(info, va) ? 't' : 'd';
    bool global = st_info >> 4 == 1 || st_info >> 4 == 2;

    return global ? g_ascii_toupper(type) : type;
}

/* The kernel's own kallsyms skips these, too: assembler-local labels. */
static bool is_mapping_symbol(const char *name)
{
    return !name[0] || name[0] == '$' || !strncmp(name, ".L", 2) ||
           !strncmp(name, "L0\1", 3);
}

/* What is read of struct mod_kallsyms and of the arrays it points to. */
typedef struct RawSyms {
    uint8_t *symtab;
    char *strtab;
    char *typetab;
    size_t n;
    size_t strtab_len;
} RawSyms;

static void raw_syms_clear(RawSyms *r)
{
    g_free(r->symtab);
    g_free(r->strtab);
    g_free(r->typetab);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RawSyms, raw_syms_clear)

static bool raw_syms_read(RawSyms *r, const GsModuleShape *s,
                          const GsMem *mem, uint64_t va, GError **errp)
{
    uint8_t bytes[64] = { 0 };
    Blob b = { bytes, sizeof(bytes) };
    uint64_t typetab;
    uint32_t max_name = 0;
    size_t got;

    if (!mem->read(mem->opaque, va, bytes, 8 * (3 + s->has_typetab))) {
        return fail(errp, "unreadable struct mod_kallsyms", va);
    }
    r->n = blob_u32(&b, s->sym_num);
    if (r->n > MAX_SYMS) {
        return fail(errp, "absurd number of symbols", va);
    }
    r->symtab = guest_dup(mem, blob_u64(&b, s->sym_symtab), r->n * SYM_SIZE,
                          "unreadable symbol table", errp);
    if (!r->symtab) {
        return false;
    }
    for (size_t i = 0; i < r->n; i++) {
        uint32_t name;

        memcpy(&name, r->symtab + i * SYM_SIZE, sizeof(name));
        max_name = MAX(max_name, GUINT32_FROM_LE(name));
    }
    if (max_name > MAX_STRTAB) {
        return fail(errp, "absurd symbol name offset", va);
    }
    r->strtab = guest_dup_some(mem, blob_u64(&b, s->sym_strtab),
                               max_name + NAME_MAX_LEN, &r->strtab_len);
    if (!r->strtab || r->strtab_len <= max_name) {
        return fail(errp, "unreadable symbol names", va);
    }
    typetab = s->has_typetab ? blob_u64(&b, s->sym_typetab) : 0;
    if (typetab) {
        r->typetab = guest_dup_some(mem, typetab, r->n, &got);
    }
    return true;
}

static void add_symbol(GsModuleInfo *info, const RawSyms *r, size_t i)
{
    const uint8_t *sym = r->symtab + i * SYM_SIZE;
    char *name = r->strtab + blob_u32(&(Blob) { sym, SYM_SIZE }, 0);
    uint64_t va = blob_u64(&(Blob) { sym, SYM_SIZE }, 8);
    uint16_t shndx = blob_get(&(Blob) { sym, SYM_SIZE }, 6, 2);
    char type = r->typetab ? r->typetab[i] : 0;

    if (!shndx || is_mapping_symbol(name) || !in_mem(info, va) ||
        strnlen(name, NAME_MAX_LEN) == NAME_MAX_LEN) {
        return;
    }
    make_printable(name);
    if (!g_ascii_isalpha(type)) {
        type = guess_type(info, va, sym[4]);
    }
    info->syms[info->n_syms++] = (GsModuleSymbol) {
        .va = va, .name = name, .type = type,
    };
}

static bool read_symbols(GsModuleInfo *info, const GsModuleShape *s,
                         const GsMem *mem, const Blob *b, GError **errp)
{
    g_auto(RawSyms) raw = { 0 };
    uint64_t va = s->has_kallsyms ? blob_u64(b, s->kallsyms) : 0;

    if (!va) {
        return true;
    }
    if (!raw_syms_read(&raw, s, mem, va, errp)) {
        return false;
    }
    info->syms = g_new(GsModuleSymbol, raw.n);
    for (size_t i = 0; i < raw.n; i++) {
        add_symbol(info, &raw, i);
    }
    info->strtab = g_steal_pointer(&raw.strtab);
    return true;
}

static bool read_orc(GsModuleInfo *info, const GsModuleShape *s,
                     const GsMem *mem, const Blob *b, GError **errp)
{
    size_t n = s->has_orc ? blob_u32(b, s->num_orcs) : 0;
    uint64_t ip_va = blob_u64(b, s->orc_ip);
    uint64_t orc_va = blob_u64(b, s->orc);

    if (!n || !ip_va || !orc_va) {
        return true;
    }
    if (n > MAX_ORCS) {
        return fail(errp, "absurd number of ORC entries", ip_va);
    }
    info->orc_ip = guest_dup(mem, ip_va, n * 4, "unreadable ORC addresses",
                             errp);
    if (!info->orc_ip) {
        return false;
    }
    info->orc = guest_dup(mem, orc_va, n * ORC_SIZE, "unreadable ORC entries",
                          errp);
    if (!info->orc) {
        return false;
    }
    info->orc_ip_va = ip_va;
    info->n_orc = n;
    return true;
}

/* ---- whole ------------------------------------------------------------ */

GsModuleInfo *gs_module_read(const GsModuleShape *s, const GsMem *mem,
                             uint64_t module_va, GError **errp)
{
    g_autoptr(GsModuleInfo) info = g_new0(GsModuleInfo, 1);
    g_autofree uint8_t *bytes = guest_dup(mem, module_va, s->size,
                                          "unreadable struct module", errp);
    Blob b = { bytes, s->size };

    if (!bytes || !read_name(info, s, &b, module_va, errp) ||
        !read_mem(info, s, &b, module_va, errp) ||
        !read_symbols(info, s, mem, &b, errp) ||
        !read_orc(info, s, mem, &b, errp)) {
        return NULL;
    }
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
    g_free(info);
}
