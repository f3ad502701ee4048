/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka goto: go to an event of the recorded run, in its replay.
 *
 * Called through mc_run(). The journal of the run says which event is meant,
 * and the replay stops when the guest has made it:
 *
 *     ka goto error 1 free --> journal --> event 41234 --> KtGoto.stop_at()
 *
 * Nobody can continue a VM behind the back of its debugger, so the user does.
 * What is behind needs a VM state that is loaded first.
 *
 * The last access to a word is not in the journal. The replay looks for it, see
 * kt-goto.h.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/commands/goto-word.h"
#include "monitor-cmds/output/block-row.h"
#include "monitor-cmds/parse/expr.h"

#include <string.h>

/** enum Aim - which event is looked for. FIRST_..: the first one that fits; the
 *  others: the last one */
typedef enum Aim {
    AIM_NOW,            /* at @number, an access included */
    AIM_EVENT,          /* event @number */
    AIM_TIME,           /* at @number us, or later */
    AIM_END,
    AIM_ALLOC,          /* of the block, up to @until */
    AIM_FREE,
    AIM_OWNER,          /* the allocation of the block, up to @now */
    AIM_NEXT,           /* of the block, after @now */
    AIM_PREVIOUS,       /* of the block, before @now */
    AIM_ERROR,          /* made at @until */
} Aim;

/**
 * struct Search - a search in the journal
 * @va: an address in the block, for aims of a block
 * @is_word: the last access to @word is looked for, and @aim is AIM_OWNER
 * @until: time
 * @at: place of the last event that was read
 * @lo, @hi: the last block that contained @va
 * @has: @found is the place of @ev
 */
typedef struct Search {
    Aim aim;
    uint64_t number, va, until;
    bool is_word;
    KtWordSearch word;
    KtEventPlace now, at;
    uint64_t lo, hi;
    bool has;
    KtEventPlace found;
    KtEvent ev;
} Search;

/* ---- the journal --------------------------------------------------------- */

static bool is_within(uint64_t va, uint64_t from, uint64_t len)
{
    return va - from < MAX(len, 1);
}

static bool is_of_allocation(Search *s, const KtEvent *ev)
{
    uint64_t len = MAX(ev->size, ev->actual);

    if (!is_within(s->va, ev->va, len)) {
        return false;
    }
    s->lo = ev->va;
    s->hi = ev->va + MAX(len, 1) - 1;
    return true;
}

/* Return true if @ev is one of the block that contains @s->va. A wrong free may
 * name the address of a block that is free, or one in the middle. */
static bool is_of_block(Search *s, const KtEvent *ev)
{
    switch (ev->kind) {
    case KT_EV_GAP:
        return false;
    case KT_EV_ALLOC:
        return is_of_allocation(s, ev);
    case KT_EV_FREE:
        if (ev->family == KT_FAMILY_PAGES &&
            is_within(s->va, ev->va, ev->size)) {
            return true;
        }
        break;
    }
    return ev->va == s->va || (s->hi && ev->va >= s->lo && ev->va <= s->hi);
}

/* The place of @ev is @s->at. */
static bool fits(Search *s, const KtEvent *ev)
{
    bool counts = ev->kind != KT_EV_GAP && ev->kind != KT_EV_ACCESS;
    bool of_block = is_of_block(s, ev);

    switch (s->aim) {
    case AIM_NOW:
        return ev->kind != KT_EV_GAP && !kt_event_place_compare(s->at, s->now);
    case AIM_EVENT:
        return counts && s->at.event == s->number;
    case AIM_TIME:
        return counts && ev->us >= s->number;
    case AIM_END:
        return counts;
    case AIM_ALLOC:
        return of_block && ev->kind == KT_EV_ALLOC && ev->us <= s->until;
    case AIM_FREE:
        return of_block && ev->kind == KT_EV_FREE && ev->us <= s->until;
    case AIM_OWNER:
        return of_block && ev->kind == KT_EV_ALLOC &&
               kt_event_place_compare(s->at, s->now) <= 0;
    case AIM_NEXT:
        return of_block && kt_event_place_compare(s->at, s->now) > 0;
    case AIM_PREVIOUS:
        return of_block && kt_event_place_compare(s->at, s->now) < 0;
    case AIM_ERROR:
        return ev->us == s->until &&
               (ev->va == s->va || ev->kind == KT_EV_ACCESS);
    }
    return false;
}

static bool is_first(Aim aim)
{
    return aim == AIM_TIME || aim == AIM_NEXT;
}

static bool on_event(void *opaque, const KtEvent *ev)
{
    Search *s = opaque;

    kt_event_place_step(&s->at, ev);
    if (fits(s, ev) && !(s->has && is_first(s->aim))) {
        s->has = true;
        s->found = s->at;
        s->ev = *ev;
    }
    return true;
}

/* Search the whole journal, so that @s->at.event is the number of events. */
static KtReplay *search(McOut *out, Search *s, GError **errp)
{
    KtReplay *r = kt_replay_open(out->ctx->go->journal, errp);

    if (r) {
        kt_replay_run(r, &(KtReplayPlan) {
            .until_us = UINT64_MAX, .event = on_event, .opaque = s });
    }
    return r;
}

/* ---- errors -------------------------------------------------------------- */

typedef struct Wanted {
    uint64_t id;
    bool has;
    KtError error;
} Wanted;

static bool on_error(const KtError *e, void *opaque)
{
    Wanted *w = opaque;

    w->has = e->id == w->id;
    if (w->has) {
        w->error = *e;
    }
    return !w->has;
}

/* Find error @id of the whole recording. */
static bool find_error(McOut *out, uint64_t id, KtError *e, GError **errp)
{
    g_autoptr(KtReplay) r = kt_replay_open(out->ctx->go->journal, errp);
    Wanted w = { .id = id };

    if (!r) {
        return false;
    }
    kt_replay_run(r, &(KtReplayPlan) { .until_us = UINT64_MAX, .apply = true });
    kt_query_begin(kt_replay_tracer(r));
    kt_query_errors(kt_replay_tracer(r), 0, UINT64_MAX, on_error, &w);
    kt_query_end(kt_replay_tracer(r));
    *e = w.error;
    return w.has || mc_fail_unknown(errp, "the recording has no error %" PRIu64
                                    ": ka -f %s error -v lists them", id,
                                    out->ctx->go->journal);
}

/* @what: (nullable) "alloc" or "free": of the error's block */
static bool aim_at_error(McOut *out, Search *s, uint64_t id, const char *what,
                         GError **errp)
{
    KtError e;

    if (!find_error(out, id, &e, errp)) {
        return false;
    }
    out->ctx->go->block = e.has_block ? e.block.va : e.va;
    if (!what) {
        s->aim = AIM_ERROR;
        s->va = e.va;
        s->until = e.us;
        return true;
    }
    s->aim = !strcmp(what, "alloc") ? AIM_ALLOC : AIM_FREE;
    s->va = e.block.va;
    s->until = s->aim == AIM_ALLOC ? e.block.alloc_us : e.block.free_us;
    return (e.has_block && s->until) ||
           mc_fail_unknown(errp, "error %" PRIu64 ": %s", id, e.has_block ?
                           "its block was not freed before" :
                           "no block has its address");
}

/* ---- words --------------------------------------------------------------- */

static const char usage[] =
    "places are <va> alloc|free|write|access, error <n> [alloc|free], event "
    "<n>, <time>us, next, previous and end";

static bool is_life(const char *word)
{
    return !strcmp(word, "alloc") || !strcmp(word, "free");
}

/* Parse "<va>" or "<va>+<offset>". */
static bool read_word_address(const McOut *out, const char *word, uint64_t *va,
                              GError **errp)
{
    const char *plus = strchr(word, '+');
    g_autofree char *base = g_strndup(word, plus ? (size_t)(plus - word) :
                                                   strlen(word));
    uint64_t offset = 0;

    if (!mc_parse_address(out->ctx, base, va, errp) ||
        (plus && !mc_parse_hex(plus + 1, &offset, errp))) {
        return false;
    }
    *va += offset;
    return true;
}

static bool aim_at_word(McOut *out, Search *s, const McArgs *args, char **word,
                        GError **errp)
{
    if (mc_given(args, MC_OPT_UNTIL)) {
        return mc_fail_syntax(errp, "--until is for alloc and free: %s is the "
                              "last one before here", word[1]);
    }
    s->aim = AIM_OWNER;
    s->is_word = true;
    s->word.loads = !strcmp(word[1], "access");
    if (!read_word_address(out, word[0], &s->va, errp)) {
        return false;
    }
    s->word.va = out->ctx->go->block = s->va;
    return true;
}

static bool aim_at_block(McOut *out, Search *s, const McArgs *args,
                         char **word, unsigned n, GError **errp)
{
    bool has_until = mc_given(args, MC_OPT_UNTIL);

    if (n == 2 && (!strcmp(word[1], "write") || !strcmp(word[1], "access"))) {
        return aim_at_word(out, s, args, word, errp);
    }
    if (n != 2 || !is_life(word[1])) {
        return mc_fail_syntax(errp, "%s", usage);
    }
    s->aim = !strcmp(word[1], "alloc") ? AIM_ALLOC : AIM_FREE;
    s->until = has_until ? args->filter.spec.until : UINT64_MAX;
    if (!mc_parse_address(out->ctx, word[0], &s->va, errp)) {
        return false;
    }
    out->ctx->go->block = s->va;
    return true;
}

/* Parse what is after "error" or "event". */
static bool aim_at_number(McOut *out, Search *s, char **word, unsigned n,
                          GError **errp)
{
    bool error = !strcmp(word[0], "error");

    if (n < 2 || n > (error ? 3 : 2) || (n == 3 && !is_life(word[2]))) {
        return mc_fail_syntax(errp, "%s", usage);
    }
    if (!mc_parse_decimal(word[1], NULL, &s->number, errp)) {
        return false;
    }
    s->aim = AIM_EVENT;
    return !error || aim_at_error(out, s, s->number, n == 3 ? word[2] : NULL,
                                  errp);
}

static bool aim_beside(McOut *out, Search *s, Aim aim, GError **errp)
{
    s->aim = aim;
    s->va = out->ctx->go->block;
    return s->va || mc_fail_unknown(errp, "no block was asked for: ka goto "
                                    "<va> alloc");
}

static bool take_aim(McOut *out, Search *s, const McArgs *args, GError **errp)
{
    char **word = (char **)args->words->pdata + 1;
    unsigned n = args->words->len - 1;

    if (!n) {
        return true;
    }
    if (!strcmp(word[0], "error") || !strcmp(word[0], "event")) {
        return aim_at_number(out, s, word, n, errp);
    }
    if (n == 1 && !strcmp(word[0], "end")) {
        s->aim = AIM_END;
    } else if (n == 1 && !strcmp(word[0], "next")) {
        return aim_beside(out, s, AIM_NEXT, errp);
    } else if (n == 1 && !strcmp(word[0], "previous")) {
        return aim_beside(out, s, AIM_PREVIOUS, errp);
    } else if (n == 1 && g_str_has_suffix(word[0], "us")) {
        s->aim = AIM_TIME;
        return mc_parse_decimal(word[0], "us", &s->number, errp);
    } else {
        return aim_at_block(out, s, args, word, n, errp);
    }
    return true;
}

/* ---- the answer: an event ------------------------------------------------ */

static const char here[] = "here", ahead[] = "ahead", behind[] = "behind";

typedef struct PlaceRow {
    uint64_t event, access, events, now, us, now_us;
    const char *way;
} PlaceRow;

static const McObject place_object = MC_LINE_OBJECT("place", "ka goto",
    MC_COLUMN(PlaceRow, event, NUMBER, NULL, "number of the event"),
    MC_COLUMN(PlaceRow, access, NUMBER, NULL,
              "of an access: its number since that event; else 0"),
    MC_COLUMN(PlaceRow, events, NUMBER, NULL,
              "number of events of the recording"),
    MC_COLUMN(PlaceRow, now, NUMBER, NULL,
              "number of the last event that the replay has made"),
    MC_COLUMN(PlaceRow, us, NUMBER, NULL, "the VM's clock at the place"),
    MC_COLUMN(PlaceRow, now_us, NUMBER, NULL, "the VM's clock now"),
    MC_COLUMN(PlaceRow, way, WORD, NULL, MC_GOTO_WAY));

MC_OBJECTS(mc_goto_objects, &mc_event_object, &place_object,
           &mc_block_access_object, &mc_goto_word_object);

/* Print the event as the recorded run had it. */
static void print_event(McOut *out, KtReplay *r, const KtEvent *ev)
{
    const McContext *ctx = out->ctx;
    const GsKernel *symbols = out->symbols;
    McContext there = *ctx;

    there.tracer = kt_replay_tracer(r);
    out->ctx = &there;
    out->symbols = out->names ? kt_replay_kernel(r) : NULL;
    mc_print_event(out, ev, NULL);
    out->ctx = ctx;
    out->symbols = symbols;
}

/* Lines are short, so that they are never wrapped. (owned) */
static char *way_text(const Search *s, const char *way)
{
    if (way == here) {
        return g_strdup(": the VM is here");
    }
    if (way == behind) {
        return g_strdup(", behind: \"loadvm ka-begin\", then continue");
    }
    return g_strdup_printf(", %" PRIu64 " ahead: continue the VM to go there",
                           s->found.event - s->now.event);
}

static void print_place(McOut *out, const Search *s, const char *way)
{
    const KtGoto *go = out->ctx->go;
    g_autofree char *how = way_text(s, way);
    g_autofree char *access = s->found.access ?
        g_strdup_printf("access %" PRIu64 " after ", s->found.access) :
        g_strdup("");
    g_autofree char *text = g_strdup_printf(
        "%sevent %" PRIu64 " of %" PRIu64 "%s", access, s->found.event,
        s->at.event, how);

    mc_print_line(out, &place_object, &(PlaceRow) {
        s->found.event, s->found.access, s->at.event, s->now.event, s->ev.us,
        go->us(go->opaque), way }, text);
}

static bool fail_behind(McOut *out, const Search *s, GError **errp)
{
    g_autofree char *folder = g_path_get_dirname(out->ctx->go->journal);

    return mc_fail_unknown(errp, "event %" PRIu64 " is behind: the replay has "
                           "made %" PRIu64 ". Begin another one: ka-run "
                           "--replay %s --goto 'event %" PRIu64 "'",
                           s->found.event, s->now.event, folder,
                           s->found.event);
}

static bool fail_search(const Search *s, GError **errp)
{
    if (s->aim == AIM_NOW && s->now.event <= s->at.event) {
        return mc_fail_unknown(errp, "the replay has made no event yet; the "
                               "recording has %" PRIu64, s->at.event);
    }
    return mc_fail_unknown(errp, "the recording has no such event; it has %"
                           PRIu64, s->at.event);
}

/* The VM stops behind an access, and goes to its instruction from a VM
 * state. */
static const char *way_to(const Search *s, const KtGotoInsn *insn)
{
    int order = kt_event_place_compare(s->found, s->now);
    bool same = !insn->is_word &&
                !kt_event_place_compare(s->found, insn->place);
    bool there = insn->step == KT_GOTO_THERE && same;

    if (s->aim == AIM_NOW) {
        return insn->step == KT_GOTO_KNOWN && same ? behind : here;
    }
    if (order > 0) {
        return ahead;
    }
    return !order && (there || !s->found.access) ? here : behind;
}

static bool go_to_event(McOut *out, const Search *s, KtReplay *r,
                        const KtGotoInsn *insn, GError **errp)
{
    const KtGoto *go = out->ctx->go;
    const char *way = way_to(s, insn);

    if (way == behind && !go->has_begin(go->opaque)) {
        return fail_behind(out, s, errp);
    }
    if (s->aim != AIM_NOW) {
        go->stop_at(go->opaque,
                    way == here ? (KtEventPlace) { 0 } : s->found);
    }
    print_event(out, r, &s->ev);
    print_place(out, s, way);
    return true;
}

/* ---- the answer: an access to a word ------------------------------------- */

/* @s->found is the allocation of the word's block, if it has one. */
static bool go_to_word(McOut *out, Search *s, GError **errp)
{
    const KtGoto *go = out->ctx->go;
    KtGotoInsn insn;

    if (!go->has_begin(go->opaque)) {
        return mc_fail_unknown(errp, "there is no VM state to go back to; "
                               "ka-run --replay saves one");
    }
    if (s->has) {
        s->word.since = s->found;
        s->word.since_us = s->ev.us;
    }
    if (!go->search(go->opaque, &s->word)) {
        return mc_fail_unknown(errp, "the VM runs; pause it where \"before\" "
                               "ends");
    }
    go->insn(go->opaque, &insn);
    return mc_print_goto_word(out, &insn, errp);
}

/* ---- the command --------------------------------------------------------- */

/* At the instruction of an access the event is not made yet. */
static KtEventPlace place_now(const KtGoto *go, const KtGotoInsn *insn)
{
    return insn->step == KT_GOTO_THERE && !insn->is_word ?
               insn->place : go->now(go->opaque);
}

bool mc_cmd_goto(McOut *out, const McArgs *args, GError **errp)
{
    const KtGoto *go = out->ctx->go;
    g_autoptr(KtReplay) r = NULL;
    Search s = { .aim = AIM_NOW };
    KtGotoInsn insn;

    if (!go) {
        return mc_fail_unknown(errp, "only a replay can go to an event: ka-run "
                               "--replay FOLDER");
    }
    go->insn(go->opaque, &insn);
    if (args->words->len == 1 && insn.step != KT_GOTO_NONE && insn.is_word) {
        return mc_print_goto_word(out, &insn, errp);
    }
    s.now = place_now(go, &insn);
    r = take_aim(out, &s, args, errp) ? search(out, &s, errp) : NULL;
    if (!r) {
        return false;
    }
    if (s.is_word) {
        return go_to_word(out, &s, errp);
    }
    return s.has ? go_to_event(out, &s, r, &insn, errp) :
                   fail_search(&s, errp);
}
