/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What module-read.c and module-elf.c read alike: the symbols and the ORC of a
 * module, in guest memory.
 */
#ifndef GS_MODULE_TABLES_H
#define GS_MODULE_TABLES_H

#include "guest-symbols/modules/module-read.h"

/** gs_module_fail() - set GS_ERROR_GUEST: @what at @va. Returns: false. */
bool gs_module_fail(GError **errp, const char *what, uint64_t va);
/** gs_module_dup() - (owned) copy @len bytes; NULL and @errp if they cannot be
 *  read. @what: the error, such as "unreadable symbols" */
void *gs_module_dup(const GsMem *mem, uint64_t va, size_t len,
                    const char *what, GError **errp);
/** gs_module_dup_some() - (owned) copy as many bytes as can be read, page by
 *  page, at most @max; NULL if there is no room. One more byte is 0. @len:
 *  (out) how many */
char *gs_module_dup_some(const GsMem *mem, uint64_t va, size_t max,
                         size_t *len);
/** gs_module_make_printable() - replace what is no visible ASCII by "?": names
 *  from the guest are printed on terminals. */
void gs_module_make_printable(char *s);
/** gs_module_is_area() - can memory of a module be there? */
bool gs_module_is_area(uint64_t base, uint64_t size);

/**
 * struct GsModuleSymbolsAt - addresses of an ELF symbol table
 * @symtab, @n: its entries
 * @strtab: their names
 * @typetab: a letter for each; 0: the letters follow from the entries
 */
typedef struct GsModuleSymbolsAt {
    uint64_t symtab, n;
    uint64_t strtab;
    uint64_t typetab;
} GsModuleSymbolsAt;

/** gs_module_read_symbols() - set the symbols of @info, whose memory areas are
 *  set. */
bool gs_module_read_symbols(GsModuleInfo *info, const GsMem *mem,
                            const GsModuleSymbolsAt *at, GError **errp);
/** gs_module_read_orc() - set the ORC of @info: @n entries. No effect if @n or
 *  an address is 0. */
bool gs_module_read_orc(GsModuleInfo *info, const GsMem *mem, uint64_t ip_va,
                        uint64_t orc_va, uint64_t n, GError **errp);

#endif /* GS_MODULE_TABLES_H */
