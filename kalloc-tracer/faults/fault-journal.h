/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults in the journal. kt_faults_save() of api/kt-faults.h writes them;
 * replay/ reads them. One thread reads.
 */
#ifndef KT_FAULT_JOURNAL_H
#define KT_FAULT_JOURNAL_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/kt.h"

/**
 * kt_faults_replay() - Append the records of a frame to a tracer's log
 * @k: (nullable) knows when the stacks were taken
 * @until_us: records of later calls are skipped
 *
 * The bytes are untrusted. Records beyond KT_FAULT_LOG_MAX are dropped: no
 * writer has them. Returns: false if the bytes make no sense.
 */
bool kt_faults_replay(KtTracer *t, const GsKernel *k, GsBytes *in,
                      uint64_t until_us);

#endif /* KT_FAULT_JOURNAL_H */
