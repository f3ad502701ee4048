/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types for tests: made with libbpf, written as BTF or ELF, and compared with
 * what is expected. Single-threaded.
 */
#ifndef TYPES_WRITER_H
#define TYPES_WRITER_H

#include "guest-symbols/types/btf.h"

#include <bpf/btf.h>

/** types_bytes() - write types as raw BTF; frees @types. Returns: (owned) the
 *  bytes. */
GBytes *types_bytes(struct btf *types);
/** types_end() - read types that libbpf made; frees @types. Returns: (owned)
 *  the types. */
GsBtf *types_end(struct btf *types);

/** types_section() - add a header and names to @len bytes of type records.
 *  Returns: (owned) a section. */
GByteArray *types_section(const uint8_t *records, size_t len,
                          const char *names, size_t names_len);

/**
 * types_elf() - write an ELF file with the symbol linux_banner
 * @machine: e_machine
 * @banner: the text there; a newline is added
 * @btf: (nullable) contents of its section .BTF
 * Returns: (owned) the file.
 */
GBytes *types_elf(unsigned machine, const char *banner, GBytes *btf);

/** struct TypesMember - a member, and where it is expected */
typedef struct TypesMember {
    const char *type, *member;
    uint32_t offset, size;
} TypesMember;

/** types_expect_members() - each of @n members is where it is expected. */
void types_expect_members(const GsBtf *b, const TypesMember *rows, size_t n);
/** types_expect_value() - an enumerator has that value. */
void types_expect_value(const GsBtf *b, const char *name, int64_t want);

#endif /* TYPES_WRITER_H */
