/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record and replay: does QEMU record this run, or replay one? Commands of a
 * monitor are not part of a recording, so those that change what the guest does
 * would make a replay differ from the recorded run.
 *
 * Any thread.
 */
#ifndef KT_RECORD_REPLAY_H
#define KT_RECORD_REPLAY_H

#include <stddef.h>

/**
 * kt_record_replay_in() - Find the mode in QEMU's arguments
 * @args: @len bytes: the words of a command line, each with a NUL behind it
 *
 * Returns: (static) "record" or "replay"; NULL: neither.
 */
const char *kt_record_replay_in(const char *args, size_t len);

/** kt_record_replay() - The same for this process. NULL if its arguments cannot
 *  be read. */
const char *kt_record_replay(void);

#endif /* KT_RECORD_REPLAY_H */
