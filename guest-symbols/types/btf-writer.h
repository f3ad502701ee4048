/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a .BTF section, record by record. dwarf-types.c is its user. A record
 * can be referred to before it is written: reserve its id first. One thread.
 */
#ifndef GS_BTF_WRITER_H
#define GS_BTF_WRITER_H

#include "guest-symbols/types/btf-records.h"

typedef struct GsBtfWriter GsBtfWriter;

GsBtfWriter *gs_btf_writer_new(void);
void gs_btf_writer_free(GsBtfWriter *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsBtfWriter, gs_btf_writer_free)

/** gs_btf_writer_name() - return the offset of a name in the section, which
 *  has each name once. @name: (nullable) NULL is "" */
uint32_t gs_btf_writer_name(GsBtfWriter *w, const char *name);
/** gs_btf_writer_reserve() - return the id of a record that is written later.
 *  If it is not, it becomes a forward declaration without a name. */
uint32_t gs_btf_writer_reserve(GsBtfWriter *w);
/** gs_btf_writer_set() - write record @id. @info: gs_btf_info() of kind and
 *  elements; @more, @n: words that follow */
void gs_btf_writer_set(GsBtfWriter *w, uint32_t id, uint32_t name,
                       uint32_t info, uint32_t word, const uint32_t *more,
                       size_t n);
/** gs_btf_writer_add() - reserve an id and write its record. */
uint32_t gs_btf_writer_add(GsBtfWriter *w, uint32_t name, uint32_t info,
                           uint32_t word, const uint32_t *more, size_t n);
/** gs_btf_writer_bytes() - return the bytes that were written so far. */
size_t gs_btf_writer_bytes(const GsBtfWriter *w);
/** gs_btf_writer_end() - (owned) return the section. */
GByteArray *gs_btf_writer_end(GsBtfWriter *w);

#endif /* GS_BTF_WRITER_H */
