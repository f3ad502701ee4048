/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of one kernel build, from its .BTF section
 * (Documentation/bpf/btf.rst). Read-only once made: any thread, no lock.
 */
#ifndef GS_BTF_H
#define GS_BTF_H

#include "guest-symbols/gs.h"

typedef struct GsBtf GsBtf;
typedef struct GsBtfRecords GsBtfRecords;

/**
 * gs_btf_new() - parse a .BTF section
 * @data: (borrowed for the call) its bytes; more behind it is ignored
 * Returns: (owned) or NULL with GS_ERROR_FORMAT.
 */
GsBtf *gs_btf_new(const uint8_t *data, size_t len, GError **errp);
/**
 * gs_btf_new_split() - parse the .BTF section of a module
 * @base: (kept) the types of the kernel, which it continues
 * @small, @small_len: (nullable) its section .BTF.base, if it has one
 * Returns: (owned) the types of both; or NULL with GS_ERROR_FORMAT. By name,
 * those of the module are found first.
 */
GsBtf *gs_btf_new_split(GsBtf *base, const uint8_t *data, size_t len,
                        const uint8_t *small, size_t small_len,
                        GError **errp);
/**
 * gs_btf_search() - search memory for a .BTF section by its header (magic,
 * version, flags, header length) and parse it
 *
 * If there are several, the one with most types is taken.
 *
 * @room: (in, out) bytes that may still be parsed to find it
 * @left_out: (out) set if a possible header was skipped because @room was used
 *            up
 * Returns: (owned) NULL if none was found.
 */
GsBtf *gs_btf_search(const uint8_t *data, size_t len, size_t *room,
                     bool *left_out);
/** gs_btf_ref() - return @btf with one more owner. */
GsBtf *gs_btf_ref(GsBtf *btf);
/** gs_btf_free() - drop one owner's share; the last one frees. */
void gs_btf_free(GsBtf *btf);
/** gs_btf_is_empty() - return true if the section has no type. */
bool gs_btf_is_empty(const GsBtf *btf);
/** gs_btf_bytes() - estimate the host memory of the types, without those that
 *  they continue. */
size_t gs_btf_bytes(const GsBtf *btf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsBtf, gs_btf_free)

/* See gs_kernel_member(), gs_kernel_bit_field(), gs_kernel_type_size(),
 * gs_kernel_member_at(), gs_kernel_enum_value() in gs-symbols.h. */
bool gs_btf_member(const GsBtf *btf, const char *type, const char *member,
                   uint32_t *offset, uint32_t *size);
bool gs_btf_bit_field(const GsBtf *btf, const char *type, const char *member,
                      uint32_t *bit, uint32_t *bits);
bool gs_btf_type_size(const GsBtf *btf, const char *type, uint32_t *size);
char *gs_btf_member_at(const GsBtf *btf, const char *type, uint32_t offset);
bool gs_btf_enum_value(const GsBtf *btf, const char *name, int64_t *value);

/** gs_btf_pointers_at() - see gs_kernel_pointers_at() in gs-symbols.h. */
void gs_btf_pointers_at(const GsBtf *btf, const char *type, uint32_t at,
                        GsPointeeFn fn, void *opaque);

/** gs_btf_find_type() - find a struct, union or typedef. Returns: false if none
 *  has that name. */
bool gs_btf_find_type(const GsBtf *btf, const char *name, uint32_t *id);
/** gs_btf_records() - (borrowed) return the records of the section. */
const GsBtfRecords *gs_btf_records(const GsBtf *btf);
/** gs_btf_functions() - (borrowed) return the ids of the @n functions with a
 *  name, of a module's types only the module's; NULL if there is none. The
 *  first call sorts all functions, in some milliseconds. */
const uint32_t *gs_btf_functions(const GsBtf *btf, const char *name,
                                 unsigned *n);

/**
 * struct GsBtfPlace - where a member is
 * @type: its type
 * @bit: its first bit, counted from the start of the struct that was searched
 * @bits: the width of a bit field; 0: the member is no bit field
 */
typedef struct GsBtfPlace {
    uint32_t type;
    uint64_t bit;
    uint32_t bits;
} GsBtfPlace;

/** gs_btf_find_path() - find a member by its path, also a bit field
 *  @place: (in, out) in: the type to search in, at which bit */
bool gs_btf_find_path(const GsBtf *btf, const char *path, GsBtfPlace *place);
typedef struct GsBtfType GsBtfType;
/** gs_btf_enumerator() - (borrowed, nullable) return the name of a value of the
 *  enum @t. */
const char *gs_btf_enumerator(const GsBtf *btf, const GsBtfType *t,
                              uint64_t value);
typedef struct GsGfpNames GsGfpNames;
/** gs_btf_gfp_names() - (borrowed) return the names of the bits of gfp_t; they
 *  are searched once. */
const GsGfpNames *gs_btf_gfp_names(const GsBtf *btf);
/** gs_btf_enums_have_signs() - does kind_flag say of enums that they are
 *  signed? Reads all types if not. */
bool gs_btf_enums_have_signs(const GsBtf *btf);

/* See gs_kernel_func_param(). */
int gs_btf_func_param(const GsBtf *btf, const char *func, const char *param);

#endif /* GS_BTF_H */
