/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the tables of a module from guest memory: see modules-internal.h.
 *
 * Called by module-read.c and module-elf.c, in their thread; nothing here is
 * shared. Sizes and pointers come from the guest: each is capped before use.
 */
#include "guest-symbols/modules/modules-internal.h"
#include "guest-symbols/base/bytes.h"

#include <inttypes.h>
#include <string.h>

#define MAX_MEM_SIZE (1u << 30)
#define MAX_SYMS (1u << 20)
#define MAX_STRTAB (32u << 20)
#define MAX_ORCS (1u << 20)
#define NAME_MAX_LEN 512u           /* KSYM_NAME_LEN since 6.1 */
#define SYM_SIZE 24u                /* Elf64_Sym */
#define ORC_SIZE 6u

/* ---- guest memory ----------------------------------------------------- */

bool gs_module_fail(GError **errp, const char *what, uint64_t va)
{
    gs_fail(errp, GS_ERROR_GUEST, "module: %s at 0x%" PRIx64, what, va);
    return false;
}

static bool has_room(const GsMem *mem, size_t len)
{
    return !mem->room || len <= mem->room;
}

void *gs_module_dup(const GsMem *mem, uint64_t va, size_t len,
                    const char *what, GError **errp)
{
    g_autofree void *buf = has_room(mem, len) ? g_try_malloc(MAX(len, 1))
                                              : NULL;

    if (!buf || !mem->read(mem->opaque, va, buf, len)) {
        gs_module_fail(errp, what, va);
        return NULL;
    }
    return g_steal_pointer(&buf);
}

char *gs_module_dup_some(const GsMem *mem, uint64_t va, size_t max,
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

void gs_module_make_printable(char *s)
{
    for (; *s; s++) {
        if (*s <= ' ' || *s >= 0x7f) {
            *s = '?';
        }
    }
}

bool gs_module_is_area(uint64_t base, uint64_t size)
{
    return size <= MAX_MEM_SIZE && base >> 63 && base <= UINT64_MAX - size;
}

/* ---- symbols ---------------------------------------------------------- */

/* An entry of the table, in host byte order. */
typedef struct Entry {
    uint32_t name;
    uint8_t info;
    uint16_t section;
    uint64_t value;
} Entry;

/* What was read of the arrays. */
typedef struct Raw {
    uint8_t *symtab;
    char *strtab;
    char *typetab;
    size_t n;
} Raw;

static void raw_clear(Raw *r)
{
    g_free(r->symtab);
    g_free(r->strtab);
    g_free(r->typetab);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Raw, raw_clear)

static Entry entry(const Raw *r, size_t i)
{
    const uint8_t *from = r->symtab + i * SYM_SIZE;

    return (Entry) {
        .name = gs_u32_at(from), .info = from[4],
        .section = gs_u16_at(from + 6), .value = gs_u64_at(from + 8),
    };
}

/* Guess the type letter: before 1c7651f43777 (5.2) there is no typetab. */
static char guess_type(const GsModuleInfo *info, const Entry *e)
{
    char type = gs_ranges_have(info->text, info->n_text, e->value) ? 't' : 'd';
    bool global = e->info >> 4 == 1 || e->info >> 4 == 2;

    return global ? g_ascii_toupper(type) : type;
}

/* The kernel's own kallsyms skips these, too: assembler-local labels. */
static bool is_mapping_symbol(const char *name)
{
    return !name[0] || name[0] == '$' || !strncmp(name, ".L", 2) ||
           !strncmp(name, "L0\1", 3);
}

static bool raw_read(Raw *r, const GsMem *mem, const GsModuleSymbolsAt *at,
                     GError **errp)
{
    uint32_t max_name = 0;
    size_t got;

    if (at->n > MAX_SYMS) {
        return gs_module_fail(errp, "absurd number of symbols", at->symtab);
    }
    r->n = at->n;
    r->symtab = gs_module_dup(mem, at->symtab, r->n * SYM_SIZE,
                              "unreadable symbol table", errp);
    if (!r->symtab) {
        return false;
    }
    for (size_t i = 0; i < r->n; i++) {
        max_name = MAX(max_name, entry(r, i).name);
    }
    if (max_name > MAX_STRTAB) {
        return gs_module_fail(errp, "absurd symbol name offset", at->symtab);
    }
    r->strtab = gs_module_dup_some(mem, at->strtab, max_name + NAME_MAX_LEN,
                                   &got);
    if (!r->strtab || got <= max_name) {
        return gs_module_fail(errp, "unreadable symbol names", at->strtab);
    }
    if (at->typetab) {
        r->typetab = gs_module_dup_some(mem, at->typetab, r->n, &got);
    }
    return true;
}

static void add_symbol(GsModuleInfo *info, const Raw *r, size_t i)
{
    const Entry e = entry(r, i);
    char *name = r->strtab + e.name;
    char type = r->typetab ? r->typetab[i] : 0;

    if (!e.section || is_mapping_symbol(name) ||
        !gs_ranges_have(info->mem, info->n_mem, e.value) ||
        strnlen(name, NAME_MAX_LEN) == NAME_MAX_LEN) {
        return;
    }
    gs_module_make_printable(name);
    if (!g_ascii_isalpha(type)) {
        type = guess_type(info, &e);
    }
    info->syms[info->n_syms++] = (GsModuleSymbol) {
        .va = e.value, .name = name, .type = type,
    };
}

bool gs_module_read_symbols(GsModuleInfo *info, const GsMem *mem,
                            const GsModuleSymbolsAt *at, GError **errp)
{
    g_auto(Raw) raw = { 0 };

    if (!raw_read(&raw, mem, at, errp)) {
        return false;
    }
    info->syms = g_new(GsModuleSymbol, raw.n);
    for (size_t i = 0; i < raw.n; i++) {
        add_symbol(info, &raw, i);
    }
    info->strtab = g_steal_pointer(&raw.strtab);
    return true;
}

/* ---- ORC -------------------------------------------------------------- */

bool gs_module_read_orc(GsModuleInfo *info, const GsMem *mem, uint64_t ip_va,
                        uint64_t orc_va, uint64_t n, GError **errp)
{
    if (!n || !ip_va || !orc_va) {
        return true;
    }
    if (n > MAX_ORCS) {
        return gs_module_fail(errp, "absurd number of ORC entries", ip_va);
    }
    info->orc_ip = gs_module_dup(mem, ip_va, n * 4, "unreadable ORC addresses",
                                 errp);
    if (!info->orc_ip) {
        return false;
    }
    info->orc = gs_module_dup(mem, orc_va, n * ORC_SIZE,
                              "unreadable ORC entries", errp);
    if (!info->orc) {
        return false;
    }
    info->orc_ip_va = ip_va;
    info->n_orc = n;
    return true;
}
