/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file that is replaced whole or not at all, or standard output. One
 * thread. */
#ifndef MC_OUTPUT_FILE_H
#define MC_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

/**
 * struct KaOutput - where an export goes
 * @to: write here
 * @path: (borrowed, nullable) the file; NULL: standard output
 * @temp: (owned, nullable) the file that becomes @path; NULL: @path is a device
 *        or a pipe, and is written directly
 */
typedef struct KaOutput {
    FILE *to;
    const char *path;
    char *temp;
} KaOutput;

/** ka_output_begin() - open a file in the folder of @path (nullable). Print one
 *  line on stderr and return false if it cannot be written. */
bool ka_output_begin(KaOutput *o, const char *path);
/** ka_output_end() - close the file, and move it into its place if @complete.
 *  Print one line on stderr and return false if this fails. */
bool ka_output_end(KaOutput *o, bool complete);

#endif /* MC_OUTPUT_FILE_H */
