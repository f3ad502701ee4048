/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A heap profile from answers of ka, one JSON object a line. The answers of a
 * VM and of a journal are the same, so exports of both are, too. They are not
 * trusted. One thread.
 */
#ifndef MC_PROFILE_READER_H
#define MC_PROFILE_READER_H

#include "monitor-cmds/export/heap-profile.h"

/** ka_profile_read_sums() - add the rows of `ka top --by stack -s -j` or `ka
 *  diff --by stack -s -j`, or those of `ka top --by cache -j`. Return false if
 *  the answer has no totals. */
bool ka_profile_read_sums(McHeapProfile *p, const char *answer);
/** ka_profile_read_ranges() - add the ranges of `ka base -v -j`. */
void ka_profile_read_ranges(McHeapProfile *p, const char *answer);
/** ka_profile_read_state() - add the kernel, and notes of what is missing, from
 *  `ka stat -j` and `ka error -j`. Return how many notes these are. */
unsigned ka_profile_read_state(McHeapProfile *p, const char *stat,
                               const char *errors);
/** ka_answer_error() - return (owned, nullable) the text of an answer that is a
 *  refusal */
char *ka_answer_error(const char *answer);

#endif /* MC_PROFILE_READER_H */
