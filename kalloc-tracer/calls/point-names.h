/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Point names: the numbers of call points in one boot, and their names and
 * prototypes.
 *
 * A function keeps its number for the whole boot, also if it is deleted and
 * added again: code that was translated before has the number, and call records
 * name it. The points of a journal have the numbers that the journal says.
 *
 * Threads: any. The object has a lock, which is taken after that of the call
 * points.
 */
#ifndef KT_POINT_NAMES_H
#define KT_POINT_NAMES_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/calls/point-match.h"

#define KT_POINT_IDS_MAX 65535u
/* Bytes of packed prototypes that are read from a journal, at most. */
#define KT_POINT_PACKED_MAX (16u << 20)

typedef struct KtPointNames KtPointNames;

KtPointNames *kt_point_names_new(void);
void kt_point_names_free(KtPointNames *n);
/** kt_point_names_clear() - Drop all numbers: the boot ends. */
void kt_point_names_clear(KtPointNames *n);

/** kt_point_names_count() - Return how many numbers are in use. */
unsigned kt_point_names_count(KtPointNames *n);
/** kt_point_names_intern() - Return the number of a function of @k, a new one
 *  if it has none; 0: all are in use. */
uint16_t kt_point_names_intern(KtPointNames *n, const GsKernel *k,
                               const KtFoundFunction *f);
/** kt_point_names_get() - Return the names of a number, which are borrowed
 *  until kt_point_names_clear(); false if it is not in use. */
bool kt_point_names_get(KtPointNames *n, KtPointId id, KtPointName *out);
/** kt_point_names_packed() - (owned, nullable) Return the prototype of @id as
 *  gs_prototype_pack() stores it; NULL if it is not known. */
GBytes *kt_point_names_packed(KtPointNames *n, KtPointId id);
/** kt_point_names_define() - Set the names of @id, for the points of a journal,
 *  unless it has names. @packed: (copied, untrusted) the prototype; empty: not
 *  known. Nothing happens if the names have too many bytes. */
void kt_point_names_define(KtPointNames *n, KtPointId id,
                           const KtPointName *name, GsBytes packed);

#endif /* KT_POINT_NAMES_H */
