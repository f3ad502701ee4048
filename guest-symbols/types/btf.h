/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of one kernel build, from its .BTF section
 * (Documentation/bpf/btf.rst). Read-only once made: any thread, no lock.
 */
#ifndef GS_BTF_H
#define GS_BTF_H

#include "guest-symbols/gs.h"

typedef struct GsBtf GsBtf;

/**
 * gs_btf_new() - parse a .BTF section
 * @data: (borrowed for the call) its bytes; more behind it is ignored
 * Returns: (owned) or NULL with GS_ERROR_FORMAT.
 */
GsBtf *gs_btf_new(const uint8_t *data, size_t len, GError **errp);
/**
 * gs_btf_search() - the same where nobody has told where it begins: by the
 * header (magic, version, flags, header length)
 * @room: (in, out) bytes that may yet be parsed to find it
 * @left_out: (out) set when there was no room for something that may be it
 * Returns: (owned) NULL when there is none, or no more room.
 */
GsBtf *gs_btf_search(const uint8_t *data, size_t len, size_t *room,
                     bool *left_out);
void gs_btf_free(GsBtf *btf);
/** gs_btf_bytes() - about the host memory that it takes. */
size_t gs_btf_bytes(const GsBtf *btf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsBtf, gs_btf_free)

/* As gs_kernel_member(), gs_kernel_type_size(), gs_kernel_member_at(),
 * gs_kernel_enum_value(). */
bool gs_btf_member(const GsBtf *btf, const char *type, const char *member,
                   uint32_t *offset, uint32_t *size);
bool gs_btf_type_size(const GsBtf *btf, const char *type, uint32_t *size);
char *gs_btf_member_at(const GsBtf *btf, const char *type, uint32_t offset);
bool gs_btf_enum_value(const GsBtf *btf, const char *name, int64_t *value);

/* As gs_kernel_func_param(). */
int gs_btf_func_param(const GsBtf *btf, const char *func, const char *param);

#endif /* GS_BTF_H */
