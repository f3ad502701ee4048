/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access to the guest for commands that search its memory. Called on the thread
 * of the command; no locks.
 */
#ifndef MC_GUEST_ACCESS_H
#define MC_GUEST_ACCESS_H

#include "monitor-cmds/output/format.h"

/** mc_vm() - return (borrowed) the VM for the command @word, or NULL and an
 *  error */
const KtVm *mc_vm(const McOut *out, const char *word, GError **errp);

/** mc_read_guest() - read the guest's memory at @va, as some vCPU maps it.
 *  Return false if no vCPU maps it. */
bool mc_read_guest(const McOut *out, uint64_t va, void *buf, size_t len);

/** struct McProgress - state of the progress lines of a long search; @quiet:
 *  print none; @printed_at: time of the last line, or of the start */
typedef struct McProgress {
    McOut *out;
    bool quiet;
    gint64 printed_at;
} McProgress;
#define MC_PROGRESS_US (2 * G_USEC_PER_SEC)
/** mc_on_progress() - callback for KtLeakPlan.progress; @opaque is an
 *  McProgress. Return false if nobody reads the output any more. */
bool mc_on_progress(void *opaque, uint64_t bytes);

#endif /* MC_GUEST_ACCESS_H */
