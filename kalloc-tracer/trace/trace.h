/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filter of the live trace: does an event pass? The tracer's lock is held. */
#ifndef KT_TRACE_H
#define KT_TRACE_H

#include "kalloc-tracer/api/kt-trace.h"

/** kt_trace_filter_passes() - Return true if the event of @entry passes. A gap
 *  always does: events of any task may be missing there. */
bool kt_trace_filter_passes(KtBlockFilter *f, const KtTraced *entry);

#endif /* KT_TRACE_H */
