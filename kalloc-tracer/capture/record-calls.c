/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Record: entries of call points. */
#include "kalloc-tracer/capture/record-internal.h"

GS_HOT
bool kt_record_point(KtHookCall *m, const KtCallPoint *point)
{
    kt_vcpu_count(m->v, KT_CNT_CALLS_ENTERED, 1);
    if (!kt_record_find_return(m)) {
        kt_vcpu_count(m->v, KT_CNT_CALLS_UNREADABLE, 1);
        return false;
    }
    return true;
}
