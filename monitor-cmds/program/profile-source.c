/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A heap profile of a journal or of a running VM: see ka.h.
 *
 * The sums are the answer of `ka top --by stack -s -j -n 0` or `ka diff`, so
 * what these count, a profile has.
 */
#include "monitor-cmds/program/ka.h"

#include <stdio.h>

#include "monitor-cmds/program/json-line.h"

bool ka_source_open(KaSource *s)
{
    if (s->file) {
        s->replay = ka_read_file(s, true);
    }
    return !s->file || s->replay;
}

void ka_source_close(KaSource *s)
{
    g_clear_pointer(&s->replay, kt_replay_free);
}

const GsKernel *ka_source_kernel(const KaSource *s)
{
    KtStatus status = { 0 };

    if (s->replay) {
        kt_replay_status(s->replay, &status);
    }
    return status.kernel_found ? kt_replay_kernel(s->replay) : NULL;
}

/* ---- asking -------------------------------------------------------------- */

int ka_source_query(const KaSource *s, const char *line, char **answer)
{
    return s->replay ? ka_query_replay(s, line, answer) :
                       ka_query_vm(s->socket, line, false, answer);
}

char *ka_source_query_maybe(const KaSource *s, const char *line)
{
    char *answer = NULL;

    ka_source_query(s, line, &answer);
    return answer ? answer : g_strdup("");
}

static void note_source(const KaSource *s, const char *query,
                        McHeapProfile *p)
{
    if (s->replay) {
        g_autofree char *name = g_path_get_basename(s->file);

        mc_heap_profile_note(p, "from the journal %s", name);
    } else {
        mc_heap_profile_note(p, "from a running VM");
    }
    mc_heap_profile_note(p, "sums: ka %s", query);
    if (p->us) {
        mc_heap_profile_note(p, "as of guest microsecond %" PRIu64, p->us);
    }
}

static void note_missing(const KaSource *s, McHeapProfile *p)
{
    g_autofree char *stat = ka_source_query_maybe(s, "stat -j");
    g_autofree char *errors = ka_source_query_maybe(s, "error -j -n 1");
    unsigned n = ka_profile_read_state(p, stat, errors);
    g_autofree char *file = !s->replay ? NULL :
        ka_missing_text(kt_replay_info(s->replay));

    if (file) {
        mc_heap_profile_note(p, "missing: %s", file);
    }
    if (!n && !file) {
        mc_heap_profile_note(p, "complete: recorded from the first allocation "
                             "on, without gaps");
    }
}

/* Compare the stacks with the totals of ka top: an export has all of them. */
static void note_difference(McHeapProfile *p)
{
    int64_t live = 0;

    for (unsigned i = 0; i < p->stack->len; i++) {
        live += g_array_index(p->stack, McProfileStack,
                              i).value[MC_TOP_live];
    }
    if (live != p->total.value[MC_TOP_live]) {
        mc_heap_profile_note(p, "missing: the stacks have %" PRId64 " live "
                             "bytes, the total of ka top is %" PRId64, live,
                             p->total.value[MC_TOP_live]);
    }
}

int ka_source_fill(const KaSource *s, const char *query, McHeapProfile *p)
{
    g_autofree char *sums = NULL, *ranges = NULL, *refused = NULL;
    int rc = ka_source_query(s, query, &sums);

    if (rc != KA_ANSWERED && !sums) {
        return rc;
    }
    refused = ka_answer_error(sums);
    if (refused) {
        fprintf(stderr, "ka: %s\n", refused);
        return KA_BAD_LINE;
    }
    if (!ka_profile_read_sums(p, sums)) {
        fputs("ka: the answer to ka top is damaged\n", stderr);
        return KA_NO_ANSWER;
    }
    ranges = ka_source_query_maybe(s, "base -v -j");
    ka_profile_read_ranges(p, ranges);
    note_source(s, query, p);
    note_missing(s, p);
    note_difference(p);
    return KA_ANSWERED;
}
