/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes tables of exported symbols into an image, as the kernel's build does,
 * and decodes them. The writer does not check its arguments. Single-threaded.
 */
#ifndef EXPORTS_WRITER_H
#define EXPORTS_WRITER_H

#include "guest-symbols/symbols/symtab.h"

/**
 * struct ExportsWriter - an image that is written to
 * @image, @len, @va: its bytes, and its address
 * @at: where the next entry goes; moves on
 * @strings: where the next name goes; moves on
 * @relative: entries are distances, not addresses
 */
typedef struct ExportsWriter {
    uint8_t *image;
    size_t len;
    uint64_t va;
    size_t at, strings;
    bool relative;
} ExportsWriter;

/** exports_write() - write one entry; it has no namespace. */
void exports_write(ExportsWriter *w, const char *name, uint64_t value);
/** exports_write_many() - write @n entries with the names @prefix followed by
 *  000, 001 ..., whose values are @value, @value + 16 ... */
void exports_write_many(ExportsWriter *w, const char *prefix, unsigned n,
                        uint64_t value);
/** exports_decode() - (owned) decode the tables; the image is guest memory.
 *  @at: as gs_exports_decode() */
GsSymtab *exports_decode(ExportsWriter *w, uint64_t *at);

#endif /* EXPORTS_WRITER_H */
