/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of the table of modules: for modules.c, modules-query.c and
 * modules-snapshot.c.
 */
#ifndef GS_MODULES_INTERNAL_H
#define GS_MODULES_INTERNAL_H

#include "guest-symbols/modules/modules.h"
#include "guest-symbols/base/lock.h"
#include "guest-symbols/symbols/name-pool.h"
#include "guest-symbols/modules/module-read.h"

#define MAX_DEAD 1024
#define MAX_PAST 2048
/* Of MAX_ROWS, one of so many may belong to modules that others lie over. */
#define PAST_SHARE 8
#define MAX_MODULES 8192
#define MAX_ROWS (8u << 20)
#define MAX_NAMES (64u << 20)
/* Host memory of a row, and of a module besides. */
#define ROW_BYTES 24
#define MODULE_BYTES 1024

/* @size: bytes up to the next address of another symbol, or the area's end */
typedef struct Sym {
    uint64_t va;
    const char *name;
    uint32_t size;
    char type;
} Sym;

/*
 * @mem: areas not yet taken by others; @syms: ascending, only those in @mem;
 * of several at one address the one that names it best comes first; @rows:
 * symbols and ORC entries that it came with, and its types in units of
 * ROW_BYTES (@type_rows), for the budget; @types: only while it is live; @load:
 * number of its load; @until: number of the load that took its areas, if it is
 * past
 */
typedef struct Module {
    uint64_t va;
    const char *name;
    bool live;
    GsRange mem[GS_MODULE_MAX_MEM];
    size_t n_mem;
    GsRange text[GS_MODULE_MAX_MEM];
    size_t n_text;
    Sym *syms;
    size_t n_syms;
    size_t rows;
    GsModuleTypes types;
    size_t type_rows;
    uint32_t load, until;
} Module;

typedef struct Span {
    uint64_t start;
    uint64_t end;
    const Module *module;
} Span;

/*
 * @all: Module*, oldest first; no two areas overlap
 * @past: Module*, areas of modules that other modules lie over now; of two that
 *        overlap, the older one comes first
 * @spans: the areas of @all, by address
 * @names: of modules and symbols, for the life of the registry
 * @rows: sum of those of @all and @past; @past_rows: of @past; @max_rows: at
 *        most
 * @last_load: number of the last load, for the life of the registry
 * @n_evicted: see gs_modules_n_evicted()
 * @n_untyped: see gs_modules_n_untyped()
 * @shape: of @has_shape
 */
struct GsModules {
    pthread_mutex_t lock;
    GPtrArray *all;
    GPtrArray *past;
    GArray *spans;
    GsNamePool *names;
    size_t rows;
    size_t past_rows;
    size_t max_rows;
    uint32_t last_load;
    unsigned n_evicted;
    unsigned n_untyped;
    GsModuleShape shape;
    bool has_shape;
};

/* Queries take a const registry. */
#define HOLD_LOCK(m) GS_HOLD((pthread_mutex_t *)&(m)->lock)

/** gs_modules_live() - find the loaded module that was added as @module_va;
 *  the caller holds the lock. Returns: (borrowed) NULL if there is none. */
Module *gs_modules_live(const GsModules *m, uint64_t module_va);

/** gs_modules_drop_types_locked() - free the types of @mod, one of @m->all; the
 *  caller holds the lock. @why: (static, nullable) the answer to later
 *  questions about these types */
void gs_modules_drop_types_locked(GsModules *m, Module *mod, const char *why);

/** enum GsModuleState - the state of a module in a stream; GS_MODULE_PAST:
 *  others lie over it */
typedef enum GsModuleState {
    GS_MODULE_DEAD,
    GS_MODULE_LIVE,
    GS_MODULE_PAST,
} GsModuleState;

/** gs_modules_append() - add one of many modules that overlap with no other,
 *  except for those that are past, without its ORC. The symbols of those that
 *  are not past are found after gs_modules_index(). */
bool gs_modules_append(GsModules *m, uint64_t module_va,
                       const GsModuleInfo *info, GsModuleState state);
void gs_modules_index(GsModules *m);

/* ---- module-tables.c ----------------------------------------------------- */

/*
 * What module-read.c and module-elf.c read alike: the symbols and the ORC of a
 * module, in guest memory.
 */

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

#endif /* GS_MODULES_INTERNAL_H */
