/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Similar names, for errors: of the names that exist, the one whose misspelling
 * an unknown word may be.
 *
 * Called by the parser and by commands. No locks; any thread.
 */
#include "monitor-cmds/table/near.h"

#include <string.h>

/* Return the number of edits (insert, delete, replace, swap neighbours) between
 * two short words. */
static unsigned edits(const char *a, const char *b)
{
    enum { MAX = 16 };
    unsigned d[MAX + 1][MAX + 1];
    size_t n = strlen(a);
    size_t m = strlen(b);

    if (n > MAX || m > MAX) {
        return MAX;
    }
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = MIN(MIN(d[i - 1][j], d[i][j - 1]) + 1,
                          d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1]) {
                d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[n][m];
}

void mc_near_try(McNear *near, const char *name)
{
    unsigned e = edits(near->word, name);

    if (e && e < (near->best ? near->edits : 3) && e < strlen(name)) {
        g_free(near->best);
        near->best = g_strdup(name);
        near->edits = e;
    }
}

void mc_near_deinit(McNear *near)
{
    g_clear_pointer(&near->best, g_free);
}
