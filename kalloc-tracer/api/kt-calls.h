/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls: functions of the kernel and of its modules that the user watches.
 */
#ifndef KT_API_CALLS_H
#define KT_API_CALLS_H

#include "kalloc-tracer/api/kt-types.h"

/** struct KtPointId - number of a call point: one function in one boot. Numbers
 *  are not used again in that boot. 0: none */
typedef struct KtPointId {
    uint16_t v;
} KtPointId;

/** What a call point is for: bits. */
typedef enum KtPointUse {
    KT_POINT_WATCH = 1,     /* its calls are recorded */
    KT_POINT_FAULT = 2,     /* its calls may be made to fail */
} KtPointUse;

/* Most functions that one request may match. */
#define KT_POINT_MATCHES_MAX 4096u
/* Most requests that may exist at one time. */
#define KT_POINT_REQUESTS_MAX 256u

#endif /* KT_API_CALLS_H */
