/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tracer with two of each id, for tests of filters. */
#ifndef TWO_OF_EACH_H
#define TWO_OF_EACH_H

#include "kalloc-tracer/kt.h"
#include "tests/lib/test-main.h"

/** struct TwoOfEach - a tracer (owned), tasks 10 and 11, caches of 8 bytes at
 *  0x100 and 0x200, stacks from 0x1000 and 0x1100, both called by 0x5000 */
typedef struct TwoOfEach {
    KtTracer *t;
    KtTaskId task[2];
    KtCacheId cache[2];
    KtStackId stack[2];
} TwoOfEach;

TwoOfEach two_of_each(void);
void two_of_each_clear(TwoOfEach *w);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TwoOfEach, two_of_each_clear)

/* A case with two of each, @w. */
#define TWO_TEST(fn, path) \
    TEST_IN(g_auto(TwoOfEach), TwoOfEach w, two_of_each(), fn, path)

#endif /* TWO_OF_EACH_H */
