/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A heap profile for tests of the writers of ka export, and its export in
 * memory. Single-threaded.
 */
#ifndef TEST_EXPORT_WORLD_H
#define TEST_EXPORT_WORLD_H

#include "monitor-cmds/export/export.h"
#include "tests/lib/test-main.h"

/** export_stack() - add a stack. @symbols: names of its frames, the leaf first,
 *  joined by blanks; @live, @blocks: its sums, the others are multiples. The
 *  addresses begin at 0xffffffff81001000. */
void export_stack(McHeapProfile *p, const char *symbols, int64_t live,
                  int64_t blocks);
/** export_bytes() - (owned) what the writer writes; @len: (nullable) how much.
 *  A failure aborts. */
char *export_bytes(McExportId id, const McExport *e, size_t *len);
/** export_hostile() - (owned) a profile whose names have what formats fall for:
 *  separators, newlines, quotes, markup, 4 KiB, invalid UTF-8; @n: number of
 *  its stacks. The first one has two frames, all others one. */
McHeapProfile *export_hostile(unsigned *n);

/* A case with an empty heap profile @p. */
#define PROFILE_TEST(fn, path) \
    TEST_IN(g_autoptr(McHeapProfile), McHeapProfile *p, \
            mc_heap_profile_new(), fn, path)

#endif /* TEST_EXPORT_WORLD_H */
