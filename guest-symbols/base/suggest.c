/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ranks names by their distance to a mistyped one. Called by symtab.c if a
 * lookup fails, in the thread of the command.
 *
 * The distance is Levenshtein's, where swapping two neighbours counts as one
 * (Damerau). It is limited to a quarter of the name's length. A candidate that
 * continues the typed name ("kmalloc" for "kmallo") also counts.
 */
#include "guest-symbols/base/suggest.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN    128     /* longer names get no suggestions */
#define KEEP_MAX        64

typedef struct Near {
    char *name;                 /* owned by GsSuggest.best */
    unsigned distance;
} Near;

struct GsSuggest {
    char *name;
    size_t len;
    unsigned limit;             /* largest distance worth telling */
    unsigned max;
    GArray *best;               /* of Near, sorted */
};

GsSuggest *gs_suggest_new(const char *name, unsigned max)
{
    GsSuggest *s = g_new0(GsSuggest, 1);

    s->name = g_strdup(name);
    s->len = strlen(name);
    s->limit = s->len / 4 + 1;
    s->max = MIN(max, KEEP_MAX);
    s->best = g_array_new(FALSE, FALSE, sizeof(Near));
    return s;
}

/* Distance of two names of at most NAME_MAX_LEN, or more than @limit. */
static unsigned distance(const char *a, size_t la, const char *b, size_t lb,
                         unsigned limit)
{
    unsigned rows[3][NAME_MAX_LEN + 1];
    unsigned *before = rows[0], *prev = rows[1], *cur = rows[2];

    for (size_t j = 0; j <= lb; j++) {
        prev[j] = j;
    }
    for (size_t i = 1; i <= la; i++) {
        unsigned least = cur[0] = i;
        unsigned *spare = before;

        for (size_t j = 1; j <= lb; j++) {
            cur[j] = MIN(MIN(prev[j], cur[j - 1]) + 1,
                         prev[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1]) {
                cur[j] = MIN(cur[j], before[j - 2] + 1);
            }
            least = MIN(least, cur[j]);
        }
        if (least > limit) {
            return least;
        }
        before = prev;
        prev = cur;
        cur = spare;
    }
    return prev[lb];
}

/*
 * Underscores in front, and the "_noprof" that allocation profiling appends
 * since Linux 6.10, are what people leave out; leaving them out costs one.
 */
static unsigned rate(const GsSuggest *s, const char *candidate)
{
    const char *bare = candidate + strspn(candidate, "_");
    size_t len = strlen(bare);
    unsigned extra = 0;

    if (g_str_has_suffix(bare, "_noprof")) {
        len -= strlen("_noprof");
        extra = 1;
    } else if (bare != candidate && s->name[0] != '_') {
        extra = 1;
    }
    if (s->name[0] == '_') {
        len += bare - candidate;
        bare = candidate;
    }
    if (len > NAME_MAX_LEN || s->len > NAME_MAX_LEN || s->len < 2) {
        return UINT_MAX;
    }
    if (s->len >= 4 && len > s->len && !strncmp(bare, s->name, s->len)) {
        return MIN(s->limit, (len - s->len) / 4 + 1 + extra);
    }
    if (len > s->len + s->limit || len + s->limit < s->len) {
        return UINT_MAX;
    }
    return distance(s->name, s->len, bare, len, s->limit) + extra;
}

/* Equal distances: the shorter name, then the alphabet. */
static bool better(const Near *a, const Near *b)
{
    size_t la, lb;

    if (a->distance != b->distance) {
        return a->distance < b->distance;
    }
    la = strlen(a->name);
    lb = strlen(b->name);
    return la != lb ? la < lb : strcmp(a->name, b->name) < 0;
}

void gs_suggest_offer(GsSuggest *s, const char *candidate)
{
    Near near = { (char *)candidate, rate(s, candidate) };
    unsigned i = s->best->len;

    if (near.distance > s->limit || !s->max) {
        return;
    }
    while (i && better(&near, &g_array_index(s->best, Near, i - 1))) {
        i--;
    }
    if (i && !strcmp(g_array_index(s->best, Near, i - 1).name, candidate)) {
        return;
    }
    if (i >= s->max) {
        return;
    }
    near.name = g_strdup(candidate);
    g_array_insert_val(s->best, i, near);
    if (s->best->len > s->max) {
        g_free(g_array_index(s->best, Near, s->max).name);
        g_array_set_size(s->best, s->max);
    }
}

char **gs_suggest_finish(GsSuggest *s)
{
    unsigned n = s->best->len;
    char **names = g_new0(char *, n + 1);

    for (unsigned i = 0; i < n; i++) {
        names[i] = g_array_index(s->best, Near, i).name;
    }
    g_array_free(s->best, TRUE);
    g_free(s->name);
    g_free(s);
    return names;
}
