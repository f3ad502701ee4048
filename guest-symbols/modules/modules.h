/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of loaded modules of one kernel, and their symbols. For
 * guest-symbols only: the module functions of gs.h are implemented on it.
 *
 * Any thread may call any function: there is a lock inside. A module's name in
 * a GsSymbol stays valid until gs_modules_free().
 */
#ifndef GS_MODULES_H
#define GS_MODULES_H

#include "guest-symbols/gs.h"
#include "guest-symbols/modules/module-read.h"
#include "guest-symbols/base/stream.h"

typedef struct GsModules GsModules;

GsModules *gs_modules_new(void);
void gs_modules_free(GsModules *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsModules, gs_modules_free)

/** gs_modules_set_room() - allow modules to come @bytes more; unloaded modules
 *  are removed if that is too little. */
void gs_modules_set_room(GsModules *m, uint64_t bytes);
/** gs_modules_n_evicted() - return how many unloaded modules were removed, to
 *  stay within the limits, since the last call. */
unsigned gs_modules_n_evicted(GsModules *m);
/** gs_modules_n_untyped() - return of how many modules types were dropped since
 *  the last call: unreadable, too large, senseless, or no room. */
unsigned gs_modules_n_untyped(GsModules *m);
/** gs_modules_bytes() - estimate the host memory of all modules, with ORC. */
uint64_t gs_modules_bytes(const GsModules *m);

/** gs_modules_clear() - remove all modules, loaded and unloaded: a new boot. */
void gs_modules_clear(GsModules *m);

/**
 * gs_modules_add() - add a module that is loaded
 * @orc: gets its code and its ORC table
 * @module_va: what gs_modules_drop() will name it by; the one that was known
 *             by it is dropped
 * @info: (borrowed for the call, its types are taken) what lay in its areas
 *        before is past
 * @errp: GS_ERROR_GUEST, more than is sane; GS_ERROR_FORMAT, bad ORC
 *
 * A module is added whole or not at all.
 */
bool gs_modules_add(GsModules *m, GsOrcSet *orc, uint64_t module_va,
                    GsModuleInfo *info, GError **errp);
void gs_modules_drop(GsModules *m, GsOrcSet *orc, uint64_t module_va);

/** gs_modules_shape() - return the layout of struct module; it is worked out
 *  from @btf (nullable) by the first call that succeeds. */
bool gs_modules_shape(GsModules *m, const GsBtf *btf, GsModuleShape *shape,
                      GError **errp);
/** gs_modules_drop_shape() - work it out again: the types were exchanged. Types
 *  of modules are dropped. */
void gs_modules_drop_shape(GsModules *m);

/**
 * gs_modules_types() - return the types of a loaded module
 * @kernel: the types that they continue
 * @why: (out, static) if there are none
 * Returns: (owned) or NULL.
 */
GsBtf *gs_modules_types(GsModules *m, const char *name, GsBtf *kernel,
                        const char **why);

/**
 * gs_modules_symbolize() - find the symbol of a module that covers @va
 * @era: when; see gs_kernel_era()
 */
bool gs_modules_symbolize(const GsModules *m, uint64_t va, uint32_t era,
                          GsSymbol *out);
/** gs_modules_load_at() - return the number of the load of the module that @va
 *  was in when @era was; 0 if there is none. */
uint32_t gs_modules_load_at(const GsModules *m, uint64_t va, uint32_t era);
/** gs_modules_era() - as gs_kernel_era(). */
GsStackEra gs_modules_era(const GsModules *m, const uint64_t *frames,
                          unsigned n);

/**
 * gs_modules_lookup() - find a symbol by its exact name
 * @module: (nullable) only in that module
 *
 * Prefers global symbols, then the lowest address. Unloaded modules are
 * searched only if no loaded one has the name, past ones if no other has it.
 */
bool gs_modules_lookup(const GsModules *m, const char *module,
                       const char *name, GsSymbol *out);

/** gs_modules_foreach_named() - call @fn, without the lock, for the symbols of
 *  loaded modules with that name, in address order, until it returns false.
 *  @ever: also of unloaded and past modules. Returns: how many calls. */
unsigned gs_modules_foreach_named(const GsModules *m, const char *name,
                                  bool ever, GsSymbolFn fn, void *opaque);

/** gs_modules_with() - call @fn, under the lock, with the loaded module that
 *  was added as @module_va, without its ORC; false if there is none. */
typedef void (*GsModuleFn)(uint64_t module_va, const GsModuleInfo *info,
                           void *opaque);
bool gs_modules_with(const GsModules *m, uint64_t module_va, GsModuleFn fn,
                     void *opaque);
/** gs_modules_with_nth() - the same for the @i-th module, as in
 *  gs_modules_nth(). */
bool gs_modules_with_nth(const GsModules *m, unsigned i, GsModuleFn fn,
                         void *opaque);

/** gs_modules_get() - copy out the loaded module that was added as
 *  @module_va. */
bool gs_modules_get(const GsModules *m, uint64_t module_va, GsModule *out);
/** gs_modules_nth() - copy out the @i-th: those that are past first, then the
 *  others, oldest first; false behind the last. */
bool gs_modules_nth(const GsModules *m, unsigned i, GsModule *out);
/** gs_modules_at() - copy out the one that @va is in, or was last. */
bool gs_modules_at(const GsModules *m, uint64_t va, GsModule *out);
/** gs_modules_foreach_symbol() - call @fn, under the lock, for the symbols of
 *  the loaded module @module_va by address, until it returns false. */
void gs_modules_foreach_symbol(const GsModules *m, uint64_t module_va,
                               GsModuleSymbolFn fn, void *opaque);

/** struct GsModuleCounts - the loaded modules, those that have types, and the
 *  symbols of all */
typedef struct GsModuleCounts {
    unsigned modules, typed;
    size_t symbols;
} GsModuleCounts;
GsModuleCounts gs_modules_counts(const GsModules *m);

/** gs_modules_is_text() - is @va code of a loaded module? */
bool gs_modules_is_text(const GsModules *m, uint64_t va);

/** gs_modules_pack() - write all modules, unloaded ones included, with their
 *  ORC from @orc. */
void gs_modules_pack(const GsModules *m, GsOrcSet *orc, GsOut *p);
/**
 * gs_modules_unpack() - read the modules of a stream into @m, which is empty
 * @bytes: the limit of gs_modules_bytes(); modules beyond it are skipped
 * @loads: the stream has the numbers of loads
 *
 * No other thread may use @m meanwhile. If the stream is damaged (@u says so),
 * @m has the modules before the damage.
 * Returns: the number of loaded modules that were skipped.
 */
unsigned gs_modules_unpack(GsModules *m, GsOrcSet *orc, GsBytes *u,
                           uint64_t bytes, bool loads);

#endif /* GS_MODULES_H */
