/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka -q SOCKET goto: go to a place of a replay, as its answer says.
 *
 *     ka goto error 1 -j --> {"way":"behind","us":1513,"now_us":9000}
 *       the last VM state before 1513 us --> loadvm
 *       cont, until the VM has stopped
 *     ka goto -j         --> {"way":"here"}
 *
 * A VM state is also loaded if it is on the way to what is ahead. The last
 * access to a word needs this twice.
 *
 * Called by ka-qmp.c.
 */
#include "monitor-cmds/program/ka.h"
#include "monitor-cmds/program/peer.h"

#include <inttypes.h>
#include <string.h>

/* An access of an error, and one to a word, need two. The VM may stop early. */
#define ROUNDS 4

/** struct Way - how to get there. @us: the VM's clock at the place */
typedef struct Way {
    bool ahead, behind;
    int64_t us;
} Way;

static bool read_row(void *opaque, JsonObject *o, const char *type)
{
    Way *w = opaque;
    const char *way = ka_json_text(o, "way");

    if (way) {
        w->ahead = !strcmp(way, "ahead");
        w->behind = !strcmp(way, "behind");
        ka_json_number(o, "us", &w->us);
    }
    return true;
}

/* ---- VM states ----------------------------------------------------------- */

/** struct State - a VM state of the replay. @us: rounded up; @icount: QEMU's
 *  number of the instruction, -1: none */
typedef struct State {
    char *name;
    int64_t us, icount;
} State;

static void clear_state(State *s)
{
    g_free(s->name);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(State, clear_state)

/* Only states that ka-run has saved count. */
#define PREFIX "ka-"

/* Replace the best state for @us by one that is better. */
static void choose(State *best, JsonObject *o, int64_t us)
{
    const char *name = ka_json_text(o, "name");
    State s = { .icount = -1 };
    int64_t sec = 0, nsec = 0;
    bool fits, had = best->name && best->us < us;

    ka_json_number(o, "vm-clock-sec", &sec);
    ka_json_number(o, "vm-clock-nsec", &nsec);
    ka_json_number(o, "icount", &s.icount);
    s.us = sec * G_USEC_PER_SEC + (nsec + 999) / 1000;
    fits = s.us < us;
    if (name && g_str_has_prefix(name, PREFIX) && s.icount >= 0 &&
        (!best->name || (fits && !had) ||
         (fits == had && (fits ? s.us > best->us : s.us < best->us)))) {
        g_free(best->name);
        s.name = g_strdup(name);
        *best = s;
    }
}

static JsonObject *member(JsonObject *o, const char *key)
{
    JsonNode *node = o ? json_object_get_member(o, key) : NULL;

    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) :
                                                  NULL;
}

static JsonObject *nth(JsonArray *list, unsigned i)
{
    JsonNode *node = json_array_get_element(list, i);

    return JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

/* Find the last VM state before @us, else the first of all. .name NULL: there
 * is none. */
static void find_state(const KaPeer *p, int64_t us, State *best)
{
    JsonObject *got = ka_peer_execute(p, "{\"execute\":\"query-block\"}");
    JsonArray *disks = got ? ka_json_list(got, "return") : NULL;

    for (unsigned i = 0; disks && i < json_array_get_length(disks); i++) {
        JsonObject *image = member(member(nth(disks, i), "inserted"), "image");
        JsonArray *list = image ? ka_json_list(image, "snapshots") : NULL;

        for (unsigned k = 0; list && k < json_array_get_length(list); k++) {
            if (nth(list, k)) {
                choose(best, nth(list, k), us);
            }
        }
    }
}

/* Return the number of instructions that were executed. */
static int64_t place_of(const KaPeer *p)
{
    JsonObject *got = ka_peer_execute(p, "{\"execute\":\"query-replay\"}");
    int64_t icount = 0;

    ka_json_number(member(got, "return"), "icount", &icount);
    return icount;
}

/* ---- steps --------------------------------------------------------------- */

static bool has_status(const KaPeer *p, const char *status)
{
    JsonObject *got = ka_peer_execute(p, "{\"execute\":\"query-status\"}");

    return got && !g_strcmp0(ka_json_text(member(got, "return"), "status"),
                             status);
}

/* Wait until the VM is paused. It also stops for a moment when a VM state is
 * saved, and the event can overtake the answer to what was asked before. */
static int wait_paused(const KaPeer *p)
{
    int rc = KA_ANSWERED;

    while (!rc && has_status(p, "running")) {
        rc = ka_peer_wait(p, "STOP");
    }
    return rc;
}

/* QEMU does not continue a VM that has reached the end of its recording, but
 * replay-seek goes back from there. */
static int load(const KaPeer *p, const State *s)
{
    g_autofree char *line = g_strconcat("loadvm ", s->name, NULL);
    g_autofree char *seek = g_strdup_printf(
        "{\"execute\":\"replay-seek\",\"arguments\":{\"icount\":%" PRId64
        "}}", s->icount);

    if (!has_status(p, "shutdown")) {
        return ka_peer_monitor(p, line);
    }
    return ka_peer_execute(p, seek) ? wait_paused(p) : KA_NO_ANSWER;
}

static int go_step(const KaPeer *p, const Way *w)
{
    g_auto(State) s = { 0 };
    int rc = KA_ANSWERED;

    find_state(p, w->us, &s);
    if (w->behind && !s.name) {
        return ka_peer_fail(p, "there is no VM state to go back to");
    }
    /* A state of this very place has a later time, because that is rounded. */
    if (w->behind || (s.name && s.us < w->us && s.icount > place_of(p))) {
        rc = load(p, &s);
    }
    if (rc) {
        return rc;
    }
    return ka_peer_execute(p, "{\"execute\":\"cont\"}") ? wait_paused(p) :
                                                          KA_NO_ANSWER;
}

/* ---- the command --------------------------------------------------------- */

/* (owned) A question for where the VM is, with the options of @line. */
static char *ask_where(const char *line)
{
    g_auto(GStrv) word = g_strsplit(line, " ", -1);
    GString *s = g_string_new("goto");

    for (unsigned i = 0; word[i]; i++) {
        if (word[i][0] == '-' && strcmp(word[i], "--until")) {
            g_string_append_printf(s, " %s", word[i]);
        }
    }
    return g_string_free(s, FALSE);
}

static void add_distance(char **answer, int64_t moved, bool json)
{
    char *was = *answer;

    if (json) {
        *answer = g_strdup_printf(
            "%s{\"schema\":" G_STRINGIFY(MC_JSON_SCHEMA) ",\"type\":\"went\","
            "\"instructions\":%" PRId64 "}\n", was, moved);
    } else {
        *answer = g_strdup_printf("%swent %" PRId64 " instructions %s\n", was,
                                  ABS(moved), moved < 0 ? "back" : "forward");
    }
    g_free(was);
}

/* Go there. @line: asks for the place, in JSON; @answer: (out, owned) the last
 * answer; @moved: (out) the VM has moved. */
static int go(const KaPeer *p, const char *line, char **answer, bool *moved)
{
    for (unsigned round = 0; ; round++) {
        Way way = { 0 };
        int rc = ka_peer_ask(p, *moved ? "goto -j" : line, answer);

        if (rc == KA_ANSWERED) {
            ka_json_each(*answer, read_row, &way);
        }
        if (round == ROUNDS || !(way.ahead || way.behind)) {
            return rc;
        }
        g_clear_pointer(answer, g_free);
        rc = go_step(p, &way);
        if (rc) {
            return rc;
        }
        *moved = true;
    }
}

int ka_goto(const KaPeer *p, const char *line, char **answer)
{
    bool json = strstr(line, " -j") || strstr(line, " --json"), moved = false;
    g_autofree char *first = g_strconcat(line, json ? "" : " -j", NULL);
    g_autofree char *where = ask_where(line);
    int64_t from = place_of(p);
    int rc = go(p, first, answer, &moved);
    const char *last = moved ? where : line;

    /* the last question of go() had no other options than these */
    if (*answer && strcmp(last, moved ? "goto -j" : first)) {
        g_clear_pointer(answer, g_free);
        rc = ka_peer_ask(p, last, answer);
    }
    if (moved && rc == KA_ANSWERED) {
        add_distance(answer, place_of(p) - from, json);
    }
    return rc;
}
