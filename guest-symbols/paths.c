/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths: see paths.h. Found by the first two return addresses, in sets of
 * four; what is in a set is replaced in turns, but for what was found last.
 */
#include "paths.h"

#include <string.h>

#define SET_BITS    8
#define WAYS        4

/* Four cache lines, of which most stacks need the first two. */
typedef struct Path {
    uint64_t value;
    int32_t ip;
    uint32_t kind;
    uint16_t n, end_off;
    GsPathStep step[GS_PATH_STEPS];
} Path;
G_STATIC_ASSERT(sizeof(Path) <= 256);

/* @key: 0 is empty. */
typedef struct Set {
    uint32_t key[WAYS];
    uint32_t latest;
    uint32_t next;
    uint32_t pad[2];
} Set;
G_STATIC_ASSERT(sizeof(Set) == 32);

struct GsPaths {
    Set set[1 << SET_BITS];
    Path path[1 << SET_BITS][WAYS] __attribute__((aligned(256)));
};

GsPaths *gs_paths_new(void)
{
    GsPaths *p = g_aligned_alloc(1, sizeof(GsPaths), 256);

    gs_paths_clear(p);
    return p;
}

void gs_paths_free(GsPaths *p)
{
    g_aligned_free(p);
}

void gs_paths_clear(GsPaths *p)
{
    memset(p->set, 0, sizeof(p->set));
}

/* ---- the walk tells ----------------------------------------------------- */

/* Words from @base to @va; PATH_NONE when they are too many. */
static uint16_t words_off(uint64_t base, uint64_t va)
{
    uint64_t off = va - base;

    return off % 8 || off / 8 > PATH_MAX_OFF ? PATH_NONE : off / 8;
}

void gs_trail_rebase(GsTrail *t, uint64_t bp)
{
    uint16_t off = t->bp_at ? words_off(t->base, t->bp_at) : PATH_REGISTER;

    t->plain &= off != PATH_NONE;
    gs_trail_add(t, PATH_REBASE, off);
    t->base = bp;
}

void gs_trail_user(GsTrail *t, uint64_t regs)
{
    t->end_off = words_off(t->base, regs + PT_IP);
    t->plain &= t->end_off != PATH_NONE;
    t->done = true;
}

void gs_trail_end(GsTrail *t)
{
    t->end_off = PATH_NONE;
    t->done = true;
}

/* ---- comparing ---------------------------------------------------------- */

static uint32_t key_of(uint64_t ip, uint64_t next, uint32_t kind)
{
    uint64_t x = (ip ^ next << 20 ^ kind) * 0x9e3779b97f4a7c15ull;

    x = (x ^ next) * 0xd6e8feb86659fd93ull;
    return (x >> 32) | 1;
}

static unsigned set_of(uint32_t key)
{
    return key >> (32 - SET_BITS);
}

/* The frame pointer. A walk goes on from it if it leads up this stack, from
 * @sp to where the return address is that the next step tells of. */
static bool rebase(Walk *w, const GsPathStep *s, const GsRegs *regs,
                   uint64_t sp, uint64_t *base)
{
    uint64_t up;

    if (s->off == PATH_REGISTER) {
        *base = regs->bp;
    } else if (!read_word(w, *base + 8ull * s->off, base)) {
        return false;
    }
    up = *base + 8ull * s[1].off + 8 - sp;
    return up && up < MAX_STACK;
}

static bool same_steps(Walk *w, const Path *p, const GsRegs *regs,
                       uint64_t *base)
{
    uint64_t sp = *base;

    for (unsigned i = 0; i < p->n; i++) {
        const GsPathStep *s = &p->step[i];
        uint64_t at = *base + 8ull * s->off;
        uint64_t pc;

        if (G_UNLIKELY(s->pc == PATH_REBASE)) {
            if (!rebase(w, s, regs, sp, base)) {
                return false;
            }
            continue;
        }
        if (!read_word(w, at, &pc) || pc != (uint64_t)(int64_t)s->pc) {
            return false;
        }
        sp = at + 8;
    }
    return true;
}

/* All that a walk reads of registers must be there. */
static bool same_end(Walk *w, const Path *p, uint64_t base)
{
    uint64_t regs = base + 8ull * p->end_off - PT_IP;
    uint64_t ip, cs, sp;

    return p->end_off == PATH_NONE ||
           (read_word(w, regs + PT_IP, &ip) &&
            read_word(w, regs + PT_CS, &cs) &&
            read_word(w, regs + PT_SP, &sp) && (cs & 3));
}

static bool same_path(Walk *w, const Path *p, const GsRegs *regs,
                      uint32_t kind)
{
    uint64_t base = regs->sp;

    return (uint64_t)(int64_t)p->ip == regs->ip && p->kind == kind &&
           same_steps(w, p, regs, &base) && same_end(w, p, base);
}

bool gs_paths_find(GsPaths *p, Walk *w, const GsRegs *regs, uint32_t kind,
                   uint64_t *value)
{
    uint32_t key = key_of(regs->ip, w->ip, kind);
    Set *set = &p->set[set_of(key)];
    const Path *path = p->path[set_of(key)];

    if (regs->exact_ip) {
        return false;
    }
    for (unsigned i = 0; i < WAYS; i++) {
        unsigned way = (set->latest + i) % WAYS;

        if (set->key[way] == key && same_path(w, &path[way], regs, kind)) {
            *value = path[way].value;
            if (i) {
                set->latest = way;
            }
            return true;
        }
    }
    return false;
}

void gs_paths_add(GsPaths *p, const GsTrail *t, uint32_t kind,
                  uint64_t value)
{
    uint32_t key;
    Set *set;
    Path *path;

    if (!t->plain || !t->done || !t->n || t->step[0].pc == PATH_REBASE ||
        (uint64_t)(int64_t)(int32_t)t->ip != t->ip) {
        return;
    }
    key = key_of(t->ip, (int64_t)t->step[0].pc, kind);
    set = &p->set[set_of(key)];
    set->next = (set->next + 1) % WAYS;
    if (set->next == set->latest) {
        set->next = (set->next + 1) % WAYS;
    }
    set->key[set->next] = key;
    set->latest = set->next;
    path = &p->path[set_of(key)][set->next];
    path->value = value;
    path->ip = t->ip;
    path->kind = kind;
    path->n = t->n;
    path->end_off = t->end_off;
    memcpy(path->step, t->step, t->n * sizeof(t->step[0]));
}
