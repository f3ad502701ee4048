/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes kallsyms tables. The order of the parts and the encoding of addresses
 * are those of any release since 4.6. The token table is small and fixed; a
 * decoder needs no more. The writer does not check its arguments.
 * Single-threaded.
 */
#ifndef KALLSYMS_WRITER_H
#define KALLSYMS_WRITER_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

/* The order of the parts, by the first release that has it. */
typedef enum KsOrder {
    KS_4_6, KS_4_20, KS_6_2, KS_6_4, KS_7_0, KS_ORDER__COUNT
} KsOrder;

/* How addresses are encoded. */
typedef enum KsAddresses {
    KS_BASE_RELATIVE, KS_PERCPU, KS_ABSOLUTE, KS_PLACE, KS_ADDRESSES__COUNT
} KsAddresses;

typedef struct KsSymbol {
    uint64_t va;
    char type;
    const char *name;
} KsSymbol;

/**
 * struct KsWriter - what to write, and the result
 * @va: address of the first byte, a multiple of 8
 * @syms: (borrowed) the symbols, in address order
 * @n: number of symbols
 * @out: (owned) the bytes
 * @markers, @tokens: positions of these parts in @out, for tests that damage
 *                    them
 */
typedef struct KsWriter {
    KsOrder order;
    KsAddresses addresses;
    uint64_t va;
    const KsSymbol *syms;
    uint32_t n;
    GByteArray *out;
    size_t markers;
    size_t tokens;
} KsWriter;

/** ks_put() - append the low @size bytes of @v. */
void ks_put(GByteArray *out, uint64_t v, unsigned size);

/** ks_write() - write the tables to a new @w->out. The caller owns the
 *  array. */
void ks_write(KsWriter *w);

#define KS_TEXT     0xffffffff81000000ull
#define KS_RODATA   0xffffffff81800000ull
#define KS_DRAFT    "Linux version 6.0.0-test (somebody@somewhere) # SMP\n"
#define KS_BANNER   "Linux version 6.0.0-test (somebody@somewhere) #1\n"
#define KS_BANNER_AT    0x40    /* positions in .rodata */
#define KS_TABLE        0x100

/**
 * ks_kernel() - make an ELF kernel that contains the tables
 * @w: what to write; @w->va and @w->out are set
 * @text_len: bytes of text, all int3
 *
 * Returns: (owned) the file.
 */
GBytes *ks_kernel(KsWriter *w, size_t text_len);

#endif /* KALLSYMS_WRITER_H */
