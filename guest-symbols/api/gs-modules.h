/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modules and BPF programs of a kernel. The embedder adds them when the guest
 * loads them and drops them when it unloads them.
 *
 * Any thread, while others unwind or symbolize; only
 * gs_kernel_unpack_modules() must be alone.
 */
#ifndef GS_API_MODULES_H
#define GS_API_MODULES_H

#include "guest-symbols/api/gs-kernel.h"

/* ---- adding and dropping ------------------------------------------------ */

/**
 * struct GsModuleFile - the ELF file of a module, in guest memory
 * @header: address of its ELF header
 * @sections: address of its section headers
 *
 * These are the first two arguments of module_finalize(). The kernel frees the
 * file when the module is loaded.
 */
typedef struct GsModuleFile {
    uint64_t header;
    uint64_t sections;
} GsModuleFile;

/**
 * gs_kernel_add_module() - read a loaded module from guest memory
 * @mem: guest memory
 * @module_va: address of its struct module
 * @file: (nullable) its file; used if the kernel has no types
 * @errp: what was unreadable or inconsistent
 *
 * Reads name, memory areas, symbols and ORC tables: from struct module at
 * offsets from BTF (both the module_layout form of 6.3 and before, and
 * module_memory since), else from the file. Replaces a module that is known at
 * @module_va. A module is added whole or not at all.
 */
bool gs_kernel_add_module(GsKernel *k, const GsMem *mem, uint64_t module_va,
                          const GsModuleFile *file, GError **errp);

/**
 * gs_kernel_add_bpf() - read generated code of a BPF program
 * @ksym_va: address of its struct bpf_ksym
 *
 * The program is known as a module named "bpf" (as in /proc/kallsyms) with
 * @ksym_va as its address.
 */
bool gs_kernel_add_bpf(GsKernel *k, const GsMem *mem, uint64_t ksym_va,
                       GError **errp);

/** struct GsModuleSymbol - a symbol of a module; @name is borrowed for the
 *  call */
typedef struct GsModuleSymbol {
    uint64_t va;
    const char *name;
    char type;
} GsModuleSymbol;

/** gs_kernel_add_module_data() - add a module from parts, for tests. Arrays
 *  are copied; @orc_ip and @orc as in guest memory, @orc_ip_va the run-time
 *  address of the former. */
bool gs_kernel_add_module_data(GsKernel *k, uint64_t module_va,
                               const char *name, uint64_t base, uint64_t size,
                               const GsModuleSymbol *syms, size_t n_syms,
                               uint64_t orc_ip_va, const int32_t *orc_ip,
                               const void *orc, size_t n_orc, GError **errp);

/** gs_kernel_drop_module() - mark a module as unloaded. Its symbols still name
 *  addresses in old backtraces, also after its memory is reused
 *  (gs_kernel_era()); its ORC is no longer used. */
void gs_kernel_drop_module(GsKernel *k, uint64_t module_va);

/** gs_kernel_set_module_room() - limit what modules to come may take to
 *  @bytes of host memory. Unloaded modules are removed to make room; then a
 *  module that does not fit is refused. */
void gs_kernel_set_module_room(GsKernel *k, uint64_t bytes);

/* ---- queries ------------------------------------------------------------ */

/** struct GsModuleArea - [start, end), run time */
typedef struct GsModuleArea {
    uint64_t start;
    uint64_t end;
} GsModuleArea;
#define GS_MODULE_AREAS_MAX 8

/**
 * struct GsModule - a module, by value
 * @va: the address that it was added by
 * @name: (borrowed from the kernel, valid until it is freed)
 * @live: it is loaded; false: it was, and is unloaded
 * @n, @area: its code and data, init code included, except what other modules
 *            have reused since
 */
typedef struct GsModule {
    uint64_t va;
    const char *name;
    bool live;
    unsigned n;
    GsModuleArea area[GS_MODULE_AREAS_MAX];
} GsModule;

/** gs_kernel_n_modules() - count the loaded modules. */
size_t gs_kernel_n_modules(const GsKernel *k);
/** gs_kernel_module() - find the loaded module that was added as
 *  @module_va. */
bool gs_kernel_module(const GsKernel *k, uint64_t module_va, GsModule *out);
/** gs_kernel_module_at() - find the module that @va is in, or was in last. */
bool gs_kernel_module_at(const GsKernel *k, uint64_t va, GsModule *out);
/** gs_kernel_nth_module() - return the @i-th module, unloaded ones included;
 *  false behind the last. Areas that others lie over come first, then modules,
 *  oldest first. */
bool gs_kernel_nth_module(const GsKernel *k, unsigned i, GsModule *out);

typedef bool (*GsModuleSymbolFn)(const GsModuleSymbol *sym, void *opaque);
/** gs_kernel_module_symbols() - call @fn for the symbols of the loaded module
 *  @module_va, by address, until it returns false. If several have one
 *  address, the best name comes first. @fn runs under a lock. */
void gs_kernel_module_symbols(const GsKernel *k, uint64_t module_va,
                              GsModuleSymbolFn fn, void *opaque);

/* ---- names of their time ------------------------------------------------ */

/* Loads of modules and BPF programs have numbers 1, 2, 3 ... below this one,
 * which stands for a time that is not known, and then means now. */
#define GS_ERA_BITS 22
#define GS_ERA_NOW ((1u << GS_ERA_BITS) - 1)

/**
 * struct GsStackEra - when a stack was taken, as the number of a load
 * @all: of the modules that its frames are in, the one that was loaded last; 0:
 *       no frame is in a module
 * @first: the module of its first frame
 *
 * When other code lies at the addresses of a module, its load has a greater
 * number. So the address of a frame and @all lead to the module that was there:
 *
 *     number of the load    3              7                9
 *     ffffffffc0a00000      |---- first ---|---- second ----|---- third ---
 *                               stacks:
 *                               all = 3        all = 7 or 8
 *
 * A stack that has no frame there has the same @all as long as the modules of
 * its frames stay, whatever else is loaded.
 */
typedef struct GsStackEra {
    uint32_t all, first;
} GsStackEra;

/** gs_kernel_era() - find the era of a stack that was taken now. Takes no lock
 *  if all frames are in the kernel's image. */
GsStackEra gs_kernel_era(const GsKernel *k, const uint64_t *frames,
                         unsigned n);
/** gs_kernel_load_at() - return the number of the load of the module that the
 *  return address @pc was in at @era (@all of its stack); 0 if it was in none,
 *  or in one that was removed to stay within the limits. */
uint32_t gs_kernel_load_at(const GsKernel *k, uint64_t pc, uint32_t era);
/** gs_kernel_n_evicted_modules() - return how many unloaded modules were
 *  removed, to stay within the limits, since the last call: addresses in them
 *  have no names. */
unsigned gs_kernel_n_evicted_modules(GsKernel *k);
/** gs_kernel_n_untyped_modules() - return of how many modules the types were
 *  dropped since the last call: unreadable, too large, senseless, no room. */
unsigned gs_kernel_n_untyped_modules(GsKernel *k);

/* ---- modules in a VM snapshot ------------------------------------------- */

struct GsOut;
struct GsBytes;

/** gs_kernel_pack_modules() - write all modules to a stream. */
void gs_kernel_pack_modules(const GsKernel *k, struct GsOut *out);
/**
 * gs_kernel_unpack_modules() - replace all modules by those of a stream
 * @in: untrusted; if it fails no module is known
 * @room: bytes that they may take beyond what modules take now
 * @loads: the stream has the numbers of loads, which older ones lack
 *
 * No other thread may query or unwind meanwhile. Returns: how many loaded
 * modules were left out because they did not fit.
 */
unsigned gs_kernel_unpack_modules(GsKernel *k, struct GsBytes *in,
                                  uint64_t room, bool loads);

/* ---- modules in a journal ----------------------------------------------- */

/** gs_kernel_save_module() - append the module (or BPF program) that was added
 *  as @module_va; false if none is loaded there. */
bool gs_kernel_save_module(const GsKernel *k, uint64_t module_va,
                           GByteArray *out);
/** gs_kernel_save_nth_module() - append the one that gs_kernel_nth_module()
 *  returns. */
bool gs_kernel_save_nth_module(const GsKernel *k, unsigned i, GByteArray *out);
/** gs_kernel_load_module() - add what these wrote, untrusted, to @k. */
bool gs_kernel_load_module(GsKernel *k, const void *data, size_t len,
                           GError **errp);

#endif /* GS_API_MODULES_H */
