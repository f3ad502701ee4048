/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of the program `ka`, which asks a journal's file or a running VM.
 * Exit statuses are the manual's: 0 answered, 1 bad command line, 2 nothing
 * could be answered.
 */
#ifndef KA_H
#define KA_H

#include <stdbool.h>
#include <stdint.h>

#include "kalloc-tracer/kt.h"

#define KA_ANSWERED     0
#define KA_BAD_LINE     1
#define KA_NO_ANSWER    2

/** ka_ask_file() - @line of a journal's file, as of @until_us. */
int ka_ask_file(const char *path, const char *line, uint64_t until_us);
/** ka_dump_file() - all events as cells of 64 bytes, for programs. */
int ka_dump_file(const char *path);
/** ka_warn_of_loss() - say on stderr what the file lacks of all that was asked
 *  for; nothing, if that is nothing. */
void ka_warn_of_loss(const char *path, const KtReplayInfo *info);
/** ka_flush() - end standard output; @error: errno of what was printed before,
 *  or 0. What was not printed is said on stderr. */
bool ka_flush(int error);
/** ka_ask_vm() - @line of a running VM, by the QMP socket at @path. */
int ka_ask_vm(const char *path, const char *line);

#endif /* KA_H */
