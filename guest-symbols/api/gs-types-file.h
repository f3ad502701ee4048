/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types from a file, for kernels that have none in memory.
 *
 *     types of a kernel:  BTF in its image
 *                         else a types file, if one is given and it fits
 *                         else none
 *
 * A file is opened once and may be used by any number of kernels; any thread
 * may read it. The caller says if it fits: kalloc-tracer compares sizes.
 */
#ifndef GS_API_TYPES_FILE_H
#define GS_API_TYPES_FILE_H

#include "guest-symbols/api/gs-kernel.h"

typedef struct GsTypesFile GsTypesFile;

/**
 * gs_types_file_open() - read a file
 * @path: raw BTF, an ELF with a .BTF section, or an ELF with DWARF
 * @errp: one line with the path
 *
 * Returns: (owned) or NULL.
 */
GsTypesFile *gs_types_file_open(const char *path, GError **errp);
void gs_types_file_free(GsTypesFile *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsTypesFile, gs_types_file_free)

/** gs_types_file_arch() - (static, nullable) return what the file is for; NULL:
 *  raw BTF does not say. */
const GsArch *gs_types_file_arch(const GsTypesFile *f);
/** gs_types_file_banner() - (borrowed, nullable) return its "Linux version ..."
 *  line; NULL: the file has none. */
const char *gs_types_file_banner(const GsTypesFile *f);

/**
 * gs_kernel_set_types() - let a kernel without BTF use the types of a file
 * @f: (borrowed for the call) NULL: the file does not fit, drop its types
 *
 * No other thread may use the kernel meanwhile. No effect if the kernel has BTF
 * of its own. Offsets that were worked out before stay with those who have
 * them.
 */
void gs_kernel_set_types(GsKernel *k, const GsTypesFile *f);
/** gs_kernel_has_types() - are types known, the kernel's own or a file's? False
 *  for a stored kernel. */
bool gs_kernel_has_types(const GsKernel *k);
/** gs_kernel_types_from() - (static) return where the types of the kernel are
 *  from: "BTF", "file" or "none". */
const char *gs_kernel_types_from(const GsKernel *k);

#endif /* GS_API_TYPES_FILE_H */
