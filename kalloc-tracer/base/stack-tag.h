/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tag of a backtrace in the depot: why the walk ended, and when it was (as
 * numbers of loads of modules). Two backtraces of the same addresses are two
 * entries if different modules were there.
 *
 *     bits   47 ... 26   25 ... 4   3 ... 0
 *           +-----------+----------+-------+
 *           | era.first | era.all  | stop  |
 *           +-----------+----------+-------+
 */
#ifndef KT_STACK_TAG_H
#define KT_STACK_TAG_H

#include "guest-symbols/gs.h"
#include "kalloc-tracer/base/depot.h"

#define KT_STOP_BITS 4
G_STATIC_ASSERT(GS_STOP__COUNT <= 1 << KT_STOP_BITS);
G_STATIC_ASSERT(KT_STOP_BITS + 2 * GS_ERA_BITS <= KT_DEPOT_TAG_BITS);

/* The era of a backtrace whose time is not known: modules are those of now. */
static const GsStackEra kt_era_unknown = { GS_ERA_NOW, GS_ERA_NOW };

static inline uint64_t kt_stack_tag(GsStop stop, GsStackEra era)
{
    return (uint64_t)stop | (uint64_t)era.all << KT_STOP_BITS |
           (uint64_t)era.first << (KT_STOP_BITS + GS_ERA_BITS);
}

static inline GsStop kt_stack_tag_stop(uint64_t tag)
{
    return (GsStop)(tag & ((1u << KT_STOP_BITS) - 1));
}

static inline GsStackEra kt_stack_tag_era(uint64_t tag)
{
    return (GsStackEra) {
        tag >> KT_STOP_BITS & GS_ERA_NOW,
        tag >> (KT_STOP_BITS + GS_ERA_BITS) & GS_ERA_NOW,
    };
}

#endif /* KT_STACK_TAG_H */
