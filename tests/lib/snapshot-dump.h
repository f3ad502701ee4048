/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All that queries of a tracer return, as text. Stacks, tasks and caches are
 * written out, not as ids, so that the texts of two tracers can be compared.
 * Single-threaded.
 */
#ifndef SNAPSHOT_DUMP_H
#define SNAPSHOT_DUMP_H

#include "kalloc-tracer/tracer/tracer.h"

/* The blocks of the test are at VA + 64 * i, i < ADDRESSES. */
#define VA 0xffff888000001000ull
#define ADDRESSES 300

/** snapshot_dump() - (owned) the text. The caller holds no query. */
char *snapshot_dump(KtTracer *t);

#endif /* SNAPSHOT_DUMP_H */
