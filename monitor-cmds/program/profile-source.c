/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A heap profile of a journal or of a running VM: see ka.h.
 *
 * The sums are the answer of `ka top --by stack -s -j -n 0` or `ka diff`, so
 * what these count, a profile has.
 */
#include "monitor-cmds/program/ka.h"

#include <stdio.h>
#include <string.h>

#include "monitor-cmds/program/json-line.h"

/* ---- answers ------------------------------------------------------------- */

/* Frames of a stack that are read; ka's stacks are shorter. */
#define MAX_FRAMES  1024u

/** struct Reader - @image: the range of the kernel's image is known */
typedef struct Reader {
    McHeapProfile *profile;
    bool image;
    bool totals;
    unsigned notes;
} Reader;

static uint64_t address_of(const char *text)
{
    return text && g_str_has_prefix(text, "0x") ?
           g_ascii_strtoull(text + 2, NULL, 16) : 0;
}

/* ---- sums ---------------------------------------------------------------- */

static void read_values(McProfileStack *s, JsonObject *o)
{
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        int64_t value;

        if (ka_json_number(o, mc_top_columns[i].key, &value)) {
            mc_profile_set(s, i, value);
        }
    }
}

static void read_stack(McHeapProfile *p, JsonObject *o)
{
    JsonArray *pcs = ka_json_list(o, "stack");
    JsonArray *names = ka_json_list(o, "stack_symbols");
    JsonArray *ats = ka_json_list(o, "stack_at");
    unsigned n = pcs ? MIN(json_array_get_length(pcs), MAX_FRAMES) : 0;
    g_autofree unsigned *frame = g_new(unsigned, n + 1);

    for (unsigned i = 0; i < n; i++) {
        uint64_t pc = address_of(ka_json_text_at(pcs, i));

        frame[i] = mc_heap_profile_frame(p, pc, ka_json_text_at(names, i));
        if (ats) {
            mc_heap_profile_set_at(p, frame[i],
                                   address_of(ka_json_text_at(ats, i)));
        }
    }
    read_values(mc_heap_profile_stack(p, frame, n), o);
}

/* The pages that other layers' blocks lie in are not in the totals. */
static bool is_backing(JsonObject *o)
{
    return !g_strcmp0(ka_json_text(o, "backing"), "yes");
}

/* A row by cache has the name of a cache, or of an allocator's layer. */
static void read_cache(McHeapProfile *p, JsonObject *o)
{
    const char *cache = ka_json_text(o, "cache");
    const char *layer = ka_json_text(o, "layer");
    g_autofree char *name = cache ? g_strdup(cache) :
                            g_strdup_printf("[%s]", layer ? layer : "-");
    unsigned id = mc_heap_profile_label(p, name);

    read_values(mc_heap_profile_stack(p, &id, 1), o);
}

/* Note what ka top itself says of its sums. */
static void note_totals(Reader *r, JsonObject *o)
{
    int64_t n;

    if (ka_json_number(o, "dropped", &n) && n) {
        mc_heap_profile_note(r->profile, "missing: %" PRId64 " blocks and past "
                             "lives were evicted, and the sums are counted "
                             "from these", n);
    }
    if (ka_json_number(o, "lost", &n) && n) {
        mc_heap_profile_note(r->profile, "%" PRId64 " blocks count as freed, "
                             "but were freed unseen", n);
    }
    if (ka_json_number(o, "stray", &n) && n) {
        mc_heap_profile_note(r->profile, "%" PRId64 " frees without a recorded "
                             "allocation count nowhere", n);
    }
}

static bool read_sum(void *opaque, JsonObject *o, const char *type)
{
    Reader *r = opaque;
    int64_t us;

    if (!strcmp(type, "top") || !strcmp(type, "diff")) {
        if (is_backing(o)) {
            return true;
        }
        if (ka_json_list(o, "stack")) {
            read_stack(r->profile, o);
        } else {
            read_cache(r->profile, o);
        }
    } else if (!strcmp(type, "top_all") || !strcmp(type, "diff_all")) {
        r->totals = true;
        read_values(&r->profile->total, o);
        r->profile->us = ka_json_number(o, "us", &us) ? us : 0;
        note_totals(r, o);
    }
    return true;
}

/* Add the rows of `ka top --by stack -s -j` or `ka diff --by stack -s -j`,
 * or those of `ka top --by cache -j`. Return false if the answer has no
 * totals. */
static bool read_sums(McHeapProfile *p, const char *answer)
{
    Reader r = { .profile = p };

    ka_json_each(answer, read_sum, &r);
    return r.totals;
}

/* ---- ranges -------------------------------------------------------------- */

static bool read_range(void *opaque, JsonObject *o, const char *type)
{
    Reader *r = opaque;
    const char *name = ka_json_text(o, "name");
    const char *note = ka_json_text(o, "note");
    const char *start = ka_json_text(o, "start");
    const char *last = ka_json_text(o, "last");

    if (strcmp(type, "range") || !name || !start || !last) {
        return true;
    }
    /* init code is in the image, but not in the text */
    if (!strcmp(name, "image") || (!strcmp(name, "text") && !r->image)) {
        r->image = true;
        mc_heap_profile_range(r->profile, MC_PROFILE_KERNEL, address_of(start),
                              address_of(last));
    } else if (!strcmp(name, "module") && note) {
        g_autofree char *module = g_strndup(note, strcspn(note, " "));

        mc_heap_profile_range(r->profile, module, address_of(start),
                              address_of(last));
    }
    return true;
}

/* Add the ranges of `ka base -v -j`. */
static void read_ranges(McHeapProfile *p, const char *answer)
{
    Reader r = { .profile = p };

    ka_json_each(answer, read_range, &r);
}

/* ---- what is missing ----------------------------------------------------- */

/* Counters of events that are not in the sums, or not at their stack. */
static const KtCounter missing[] = {
    KT_CNT_GAPS, KT_CNT_DROP_BLOCK, KT_CNT_DROP_STACK, KT_CNT_CALL_DROPPED,
    KT_CNT_CALL_UNREADABLE, KT_CNT_BULK_UNREADABLE, KT_CNT_PAGE_UNREADABLE,
    KT_CNT_JOURNAL_LOST,
};

static bool read_stat(void *opaque, JsonObject *o, const char *type)
{
    Reader *r = opaque;
    const char *banner = ka_json_text(o, "kernel.banner");

    if (banner) {
        mc_heap_profile_set_banner(r->profile, banner);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(missing); i++) {
        const char *name = kt_counter_name(missing[i]);
        int64_t n;

        if (ka_json_number(o, name, &n) && n) {
            r->notes++;
            mc_heap_profile_note(r->profile, "missing: %s is %" PRId64 ": %s",
                                 name, n, kt_counter_help(missing[i]));
        }
    }
    return true;
}

static bool read_incomplete(void *opaque, JsonObject *o, const char *type)
{
    Reader *r = opaque;
    const char *complete = ka_json_text(o, "complete");

    if (!strcmp(type, "incomplete") && !g_strcmp0(complete, "no")) {
        r->notes++;
        mc_heap_profile_note(r->profile, "missing: allocations before tracing "
                             "began");
    }
    return true;
}

/* Add the kernel, and notes of what is missing, from `ka stat -j` and `ka
 * error -j`. Return how many notes these are. */
static unsigned read_state(McHeapProfile *p, const char *stat,
                                      const char *errors)
{
    Reader r = { .profile = p };

    ka_json_each(stat, read_stat, &r);
    ka_json_each(errors, read_incomplete, &r);
    return r.notes;
}

char *ka_answer_error(const char *answer)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    size_t len = strcspn(answer, "\n");
    g_autofree char *line = g_strndup(answer, len);
    const char *fail = ka_json_text(ka_json_parse(parser, line, len), "fail");

    return fail ? g_strdup(fail) :
           g_str_has_prefix(line, "ka: ") ? g_strdup(line + 4) : NULL;
}

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
    unsigned n = read_state(p, stat, errors);
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
    if (!read_sums(p, sums)) {
        fputs("ka: the answer to ka top is damaged\n", stderr);
        return KA_NO_ANSWER;
    }
    ranges = ka_source_query_maybe(s, "base -v -j");
    read_ranges(p, ranges);
    note_source(s, query, p);
    note_missing(s, p);
    note_difference(p);
    return KA_ANSWERED;
}
