/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts and stacks of a row: see json-line.h. */
#include "monitor-cmds/program/json-line.h"

#include <string.h>

/* Frames of a stack, and items of a list, that are read. */
#define MAX_ITEMS   1024u

/** struct PartKeys - the members of an error that tell of one stack */
typedef struct PartKeys {
    const char *word, *stack, *us, *pid, *comm, *cpu, *hook;
} PartKeys;

static const PartKeys part_keys[MC_CARD__COUNT] = {
    [MC_CARD_ALLOC] = { "allocated", "alloc", "alloc_us", "pid", "comm", "cpu",
                        "hook" },
    [MC_CARD_FREE] = { "freed", "free", "free_us", "free_pid", "free_comm",
                       "free_cpu", "free_hook" },
    [MC_CARD_ERROR] = { NULL, "error_stack", "error_us", "error_pid",
                        "error_comm", "error_cpu", "error_hook" },
    [MC_CARD_FORMER_ALLOC] = { "the last owner may be innocent; a former owner "
                               "allocated", "former_alloc", "former_alloc_us",
                               "former_pid", "former_comm" },
    [MC_CARD_FORMER_FREE] = { "the former owner freed", "former_free",
                              "former_free_us" },
};

/* Return the number of the heading of a stack. */
static unsigned when_of(McReport *r, JsonObject *o, const PartKeys *k)
{
    g_autoptr(GString) s = g_string_new(NULL);
    const char *kind = ka_json_text(o, "error");
    const char *comm = ka_json_text(o, k->comm);
    const char *hook = ka_json_text(o, k->hook);
    int64_t n;

    if (k == &part_keys[MC_CARD_FREE] && ka_json_text(o, "ended")) {
        g_string_append(s, ka_json_text(o, "ended"));
    } else {
        g_string_append(s, k->word ? k->word : kind ? kind : "error");
    }
    if (ka_json_number(o, k->us, &n)) {
        g_string_append_printf(s, " at %" PRId64 "us", n);
    }
    if (comm) {
        g_string_append_printf(s, " by %s", comm);
    }
    if (ka_json_number(o, k->pid, &n)) {
        g_string_append_printf(s, " (pid %" PRId64 ")", n);
    }
    if (ka_json_number(o, k->cpu, &n)) {
        g_string_append_printf(s, " on vCPU %" PRId64, n);
    }
    if (hook) {
        g_string_append_printf(s, ", in %s", hook);
    }
    return mc_report_text(r, s->str);
}

void ka_row_stack(McReport *r, McCardPart *part, JsonObject *o,
                  McCardStack which)
{
    const PartKeys *k = &part_keys[which];
    g_autofree char *symbols = g_strconcat(k->stack, "_symbols", NULL);
    JsonArray *pcs = ka_json_list(o, k->stack);
    JsonArray *names = ka_json_list(o, symbols);
    unsigned n = pcs ? MIN(json_array_get_length(pcs), MAX_ITEMS) : 0;

    if (!pcs) {
        return;
    }
    part->when = when_of(r, o, k);
    part->frame = g_array_new(FALSE, FALSE, sizeof(unsigned));
    for (unsigned i = 0; i < n; i++) {
        const char *name = ka_json_text_at(names, i);
        const char *pc = ka_json_text_at(pcs, i);
        unsigned id = mc_report_text(r, name ? name : pc ? pc : "?");

        g_array_append_val(part->frame, id);
    }
}

unsigned ka_row_text(McReport *r, JsonObject *o, const char *key)
{
    const char *text = ka_json_text(o, key);

    return mc_report_text(r, text ? text : "");
}

unsigned ka_row_block(McReport *r, JsonObject *o)
{
    g_autoptr(GString) s = g_string_new(NULL);
    const char *state = ka_json_text(o, "state");
    const char *va = ka_json_text(o, "va"), *end = ka_json_text(o, "end");
    const char *cache = ka_json_text(o, "cache");
    const char *layer = ka_json_text(o, "layer");
    int64_t asked, actual;

    g_string_append_printf(s, "%s %s-%s", state ? state : "-", va ? va : "?",
                           end ? end : "?");
    if (ka_json_number(o, "requested", &asked)) {
        g_string_append_printf(s, ", %" PRId64 " bytes requested", asked);
    }
    if (ka_json_number(o, "actual", &actual)) {
        g_string_append_printf(s, ", %" PRId64 " reserved", actual);
    }
    if (layer) {
        g_string_append_printf(s, ", layer %s", layer);
    }
    if (cache) {
        g_string_append_printf(s, ", cache %s", cache);
    }
    return mc_report_text(r, s->str);
}

/* Append words and a text, if there is one. */
static void put_words(GString *s, const char *words, const char *text)
{
    if (text) {
        g_string_append_printf(s, "%s%s%s", s->len ? "; " : "", words, text);
    }
}

/* Append a number between two texts, if there is one. */
static void put_count(GString *s, const char *before, JsonObject *o,
                      const char *key, const char *behind)
{
    int64_t n;

    if (ka_json_number(o, key, &n)) {
        g_string_append_printf(s, "%s%s%" PRId64 "%s", s->len ? "; " : "",
                               before, n, behind);
    }
}

/* Append the live neighbour to which a bad byte may belong. */
static void put_neighbour(GString *s, JsonObject *o)
{
    const char *in_front = ka_json_text(o, "neighbour_distance");
    const char *behind = ka_json_text(o, "neighbour_before");

    put_words(s, "live neighbour at ", ka_json_text(o, "neighbour_va"));
    put_count(s, "", o, "neighbour_size", " bytes");
    put_words(s, "distance of its end to the bad byte: ", in_front);
    put_words(s, "distance of the bad byte to its start: ", behind);
}

unsigned ka_row_error(McReport *r, JsonObject *o)
{
    g_autoptr(GString) s = g_string_new(NULL);
    const char *access = ka_json_text(o, "error_access");
    bool writes = access && !strcmp(access, "w");

    put_count(s, writes ? "write of " : "read of ", o, "error_access_size",
              " bytes");
    put_words(s, "first bad byte at offset ", ka_json_text(o, "error_offset"));
    put_words(s, "size given: ", ka_json_text(o, "error_size"));
    put_count(s, "order of the allocation: ", o, "order", "");
    put_count(s, "order given: ", o, "error_order", "");
    put_count(s, "objects of this stack that are left: ", o, "error_objects",
              "");
    put_words(s, "error pointer ", ka_json_text(o, "error_code"));
    put_words(s, "instruction ", ka_json_text(o, "error_insn"));
    put_neighbour(s, o);
    put_count(s, "count: ", o, "error_count", "");
    put_count(s, "last at ", o, "error_last_us", "us");
    return mc_report_text(r, s->str);
}

void ka_row_list(McReport *r, GArray *ids, JsonObject *o, const char *key)
{
    JsonArray *list = ka_json_list(o, key);
    unsigned n = list ? MIN(json_array_get_length(list), MAX_ITEMS) : 0;

    for (unsigned i = 0; i < n; i++) {
        const char *text = ka_json_text_at(list, i);
        unsigned id = mc_report_text(r, text ? text : "");

        g_array_append_val(ids, id);
    }
}
