/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of a kernel as a file for debuggers. Any thread, while others
 * unwind or symbolize, and while modules come and go.
 */
#ifndef GS_API_EXPORT_H
#define GS_API_EXPORT_H

#include "guest-symbols/api/gs-kernel.h"

/**
 * struct GsDebugFile - an ELF file of symbols and call frame information
 * @bytes: (owned) the file
 * @n_symbols, @n_modules: how many are in it
 * @n_ranges: ranges of code that have call frame information
 * @n_covered: symbols of unloaded modules that are not in it, because other
 *             modules lie at their addresses now
 * @unwind: (static) what the call frame information was made of, "nothing" if
 *          there is none
 * @no_unwinder: a running kernel has none either: neither tables nor frame
 *               pointers
 */
typedef struct GsDebugFile {
    GByteArray *bytes;
    size_t n_symbols, n_modules, n_ranges, n_covered;
    const char *unwind;
    bool no_unwinder;
} GsDebugFile;

/**
 * gs_kernel_debug_file() - make the file of the running kernel
 * @mem: (nullable) memory of the guest, for architectures whose call frame
 *       information is made of code; without it they have none
 * @unloaded: with the symbols of modules that were unloaded
 * @out: (out) to be freed with gs_debug_file_deinit()
 * @errp: GS_ERROR_UNSUPPORTED: it would be larger than 2 GiB
 *
 * All addresses are run-time addresses: those of loaded modules and BPF
 * programs, too.
 */
bool gs_kernel_debug_file(const GsKernel *k, const GsMem *mem, bool unloaded,
                          GsDebugFile *out, GError **errp);
void gs_debug_file_deinit(GsDebugFile *f);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(GsDebugFile, gs_debug_file_deinit)

/** gs_kernel_stamp() - return a number that changes when modules come or go,
 *  or a kernel begins to run; never 0. */
uint64_t gs_kernel_stamp(const GsKernel *k);

#endif /* GS_API_EXPORT_H */
