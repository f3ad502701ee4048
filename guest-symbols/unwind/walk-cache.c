/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk cache, see walk-cache.h. Called by the vCPU thread that owns it,
 * for each event.
 *
 * Kept walks ("paths") are found by a key, a hash of the first two return
 * addresses, in sets of eight. In each set the path that was found last is
 * first. A new path replaces the first one, which moves to another place in
 * the set: these places are replaced in turns.
 *
 * A path is one cache line: its hash, its value, three bytes of the hash on
 * the way (@early) and up to 44 bytes of codes. Most codes are one byte: "the
 * next return address is so many words up".
 */
#include "guest-symbols/unwind/walk-cache.h"

#include <string.h>

#include "guest-symbols/base/name-hash.h"

#define SET_BITS    8
#define WAYS        8
/* Switches of the stack; both unwinders allow at least as many. */
#define MAX_FAR     8

/*
 * The codes of a path: what a walk read. A code up to CODE_WORD_MAX is a return
 * address, so many words up from the last place. The others, except the frames,
 * are followed by a 16-bit distance from the last place.
 */
enum {
    CODE_WORD_MAX = 0xdf,
    CODE_WORD,              /* a return address */
    CODE_PC,                /* the same; the last place stays */
    CODE_SIGN,
    CODE_BASE,              /* a pointer, which is the last place now */
    CODE_BASE_MORE,         /* another one for the same frame */
    CODE_FP,                /* a frame pointer */
    CODE_BITS,              /* + GsBits */
    CODE_REGISTER = CODE_BITS + PATH_BITS__COUNT,   /* a base */
    CODE_UP,                /* the pointers led up the stack */
    CODE_AWAY,              /* to another stack */
    CODE_FRAME,
    CODE_FRAME_FAR,
    CODE_RECORD,            /* a frame whose words have codes of their own */
    CODE_RECORD_FAR,
    CODE_REGS,              /* a frame pointer to registers, plus 1 */
    CODE_REGS_FAR,
};

static const uint64_t bits_of[PATH_BITS__COUNT] = {
    [PATH_BITS_CS] = 0x3,
    [PATH_BITS_PSTATE] = 0xf,
    [PATH_BITS_STATUS] = 0x100,
};

/*
 * One cache line. @early: bytes of the hash after EARLY codes, and after twice
 * and four times as many: stacks that differ after an equal beginning are
 * rejected early.
 */
typedef struct Path {
    uint64_t hash;
    uint64_t value;
    uint8_t early[GS_PATH_EARLY];
    uint8_t n;
    uint8_t code[GS_PATH_CODE];
} Path;
G_STATIC_ASSERT(sizeof(Path) == 64);

#define EARLY 4

/* Keys are apart from the paths: a path with another key is not touched. */
struct GsWalkCache {
    GsRecords records;
    uint8_t next[1 << SET_BITS];        /* the next to be replaced, less 1 */
    uint32_t key[1 << SET_BITS][WAYS];  /* 0: empty */
    Path path[1 << SET_BITS][WAYS] __attribute__((aligned(64)));
};

GsWalkCache *gs_walk_cache_new(const GsRecords *records)
{
    GsWalkCache *p = g_aligned_alloc(1, sizeof(GsWalkCache), 64);

    p->records = *records;
    gs_walk_cache_clear(p);
    return p;
}

void gs_walk_cache_free(GsWalkCache *p)
{
    g_aligned_free(p);
}

void gs_walk_cache_clear(GsWalkCache *p)
{
    memset(p->next, 0, sizeof(p->next));
    memset(p->key, 0, sizeof(p->key));
}

/* ---- guest words -------------------------------------------------------- */

G_GNUC_NO_INLINE bool gs_walk_turn_page(Walk *w, uint64_t va)
{
    const void *host = gs_walk_in_kernel(w, va) ? w->page(w->opaque, va)
                                                : NULL;

    if (!host) {
        return false;
    }
    w->page_va = va & PAGE_MASK;
    w->page_host = host;
    return true;
}

/* ---- hashing ------------------------------------------------------------ */

/* Two chains, used alternately: multiplications of one overlap with those of
 * the other. */
static inline void mix(uint64_t h[2], uint64_t word)
{
    uint64_t next = gs_fold(h[0] ^ word);

    h[0] = h[1];
    h[1] = next;
}

static inline uint8_t early_of(const uint64_t h[2])
{
    return h[0] ^ h[1];
}

static inline uint64_t finish(const uint64_t h[2], uint32_t kind, uint64_t n)
{
    return gs_fold(gs_fold(h[0] ^ kind) ^ h[1] ^ n);
}

/* @ip is added, not xored: an equal word would cancel it out. */
static inline void start(uint64_t h[2], uint64_t ip)
{
    h[0] = ip + gs_secret.salt;
    h[1] = gs_secret.factor;
}

static uint32_t key_of(uint64_t ip, uint64_t first, uint32_t kind)
{
    uint64_t x = (ip ^ first << 20 ^ kind) * 0x9e3779b97f4a7c15ull;

    x = (x ^ first) * 0xd6e8feb86659fd93ull;
    return (x >> 32) | 1;
}

static unsigned set_of(uint32_t key)
{
    return key >> (32 - SET_BITS);
}

/* 0: not zero, nor negative */
static inline uint64_t sign_of(uint64_t word)
{
    return word ? word >> 63 << 1 : 1;
}

/* ---- moving ------------------------------------------------------------- */

/* Both checks are stricter than those of the walks. */
#define MAX_UP (MAX_STACK - 64)

/* Is @va on the stack of @sp: at @sp or above? */
static inline bool leads_up(uint64_t sp, uint64_t va)
{
    return va - sp < MAX_UP;
}

/* Is @va on another stack, and not just beyond the page of @sp? */
static inline bool leads_away(uint64_t sp, uint64_t va)
{
    return va - sp + MAX_STACK > 2 * MAX_STACK;
}

/* ---- recording a walk --------------------------------------------------- */

void gs_trail_begin(GsTrail *t, const Walk *w)
{
    t->ip = w->ip;
    t->at = w->sp;
    t->top = w->sp;
    t->moving = false;
    t->bp_at = 0;
    t->bp_far = false;
    t->far = 0;
    t->n = 0;
    t->n_codes = 0;
    t->n_early = 0;
    t->plain = !w->exact;
    t->done = false;
    start(t->h, w->ip);
}

static bool put_byte(GsTrail *t, uint8_t byte)
{
    if (G_UNLIKELY(t->n == GS_PATH_CODE)) {
        t->plain = false;
        return false;
    }
    t->code[t->n++] = byte;
    return true;
}

static bool put(GsTrail *t, uint8_t code)
{
    if (t->n_codes++ == EARLY << t->n_early && t->n_early < GS_PATH_EARLY) {
        t->early[t->n_early++] = early_of(t->h);
    }
    return put_byte(t, code);
}

/* The distance of @va from the last place. */
static void put_at(GsTrail *t, uint8_t code, uint64_t va)
{
    int64_t off = (int64_t)(va - t->at) / 8;
    uint16_t far = off;

    if (G_UNLIKELY((va - t->at) % 8 || off != (int16_t)off)) {
        t->plain = false;
        return;
    }
    if (put(t, code) && put_byte(t, far & 0xff)) {
        put_byte(t, far >> 8);
    }
}

void gs_trail_call(GsTrail *t, uint64_t va, uint64_t pc)
{
    uint64_t off = va - t->at;

    if (G_LIKELY(off % 8 == 0 && off / 8 <= CODE_WORD_MAX)) {
        put(t, off / 8);
    } else {
        put_at(t, CODE_WORD, va);
    }
    mix(t->h, pc);
    t->at = va;
    t->top = va + 8;
}

void gs_trail_pc(GsTrail *t, uint64_t va, uint64_t pc)
{
    put_at(t, CODE_PC, va);
    mix(t->h, pc);
}

void gs_trail_bits(GsTrail *t, uint64_t va, uint64_t word, GsBits bits)
{
    put_at(t, CODE_BITS + bits, va);
    mix(t->h, word & bits_of[bits]);
}

void gs_trail_sign(GsTrail *t, uint64_t va, uint64_t word)
{
    put_at(t, CODE_SIGN, va);
    mix(t->h, sign_of(word));
}

void gs_trail_base(GsTrail *t, uint64_t va, uint64_t pointer)
{
    if (va) {
        put_at(t, t->moving ? CODE_BASE_MORE : CODE_BASE, va);
    } else {
        t->plain &= !t->moving;
        put(t, CODE_REGISTER);
    }
    if (!t->moving) {
        t->sp = t->top;
    }
    t->moving = true;
    t->bp_far = true;
    t->at = pointer;
    t->top = pointer;
}

/* A move to another stack is counted; a move that is neither up the stack nor
 * away makes the walk one that cannot be kept. */
static bool is_away(GsTrail *t, uint64_t sp, uint64_t va)
{
    if (leads_up(sp, va)) {
        return false;
    }
    t->plain &= leads_away(sp, va) && ++t->far <= MAX_FAR;
    return true;
}

void gs_trail_moved(GsTrail *t)
{
    if (t->moving) {
        put(t, is_away(t, t->sp + 8, t->top) ? CODE_AWAY : CODE_UP);
        t->moving = false;
    }
}

void gs_trail_record(GsTrail *t, uint64_t va)
{
    put(t, is_away(t, t->top, va) ? CODE_RECORD_FAR : CODE_RECORD);
    t->at = va;
    t->top = va + 8;
}

void gs_trail_frame(GsTrail *t, uint64_t va, uint64_t pc)
{
    put(t, is_away(t, t->top, va) ? CODE_FRAME_FAR : CODE_FRAME);
    mix(t->h, pc);
    t->at = va;
    t->top = va + 8;
}

void gs_trail_fp(GsTrail *t, uint64_t va)
{
    put_at(t, CODE_FP, va);
}

void gs_trail_regs(GsTrail *t, uint64_t regs)
{
    put(t, is_away(t, t->top, regs) ? CODE_REGS_FAR : CODE_REGS);
    t->at = regs;
    t->top = regs + 8;
}

/* ---- comparing ---------------------------------------------------------- */

/* A kept walk that is followed again; the first members as in struct
 * GsTrail. */
typedef struct Again {
    uint64_t h[2];
    uint64_t at, sp, top;
    uint64_t fp;
    uint64_t bp;            /* the register */
} Again;

static bool follow_base(Again *a, uint64_t pointer)
{
    a->at = pointer;
    a->top = pointer;
    return true;
}

static inline bool follow_record(const GsRecords *r, Again *a, Walk *w,
                                 bool far)
{
    uint64_t va = a->fp + r->at;

    if (far ? !leads_away(a->top, va) : !leads_up(a->top, va)) {
        return false;
    }
    a->at = va;
    a->top = va + 8;
    return read_word(w, va, &a->fp);
}

static inline bool follow_frame(const GsRecords *r, Again *a, Walk *w,
                                bool far)
{
    uint64_t pc;

    if (!follow_record(r, a, w, far) || !read_word(w, a->at + 8, &pc)) {
        return false;
    }
    mix(a->h, (pc | r->set) & ~r->clear);
    return true;
}

static bool follow_regs(Again *a, bool far)
{
    uint64_t va = a->fp - 1;

    if (far ? !leads_away(a->top, va) : !leads_up(a->top, va)) {
        return false;
    }
    a->at = va;
    a->top = va + 8;
    return a->fp & 1;
}

/* A code that needs the word at @va. */
static bool follow_word(Again *a, unsigned code, uint64_t va, uint64_t word)
{
    switch (code) {
    case CODE_WORD:
        mix(a->h, word);
        a->at = va;
        a->top = va + 8;
        return true;
    case CODE_PC:
        mix(a->h, word);
        return true;
    case CODE_SIGN:
        mix(a->h, sign_of(word));
        return true;
    case CODE_BASE:
        a->sp = a->top;
        return follow_base(a, word);
    case CODE_BASE_MORE:
        return follow_base(a, word);
    case CODE_FP:
        a->fp = word;
        return true;
    default:
        mix(a->h, word & bits_of[code - CODE_BITS]);
        return true;
    }
}

GS_HOT
static G_GNUC_NO_INLINE bool follow_other(const GsWalkCache *p, Again *a,
                                          Walk *w, const uint8_t *code)
{
    uint64_t va, word;

    switch (*code) {
    case CODE_REGISTER:
        a->sp = a->top;
        return follow_base(a, a->bp);
    case CODE_UP:
        return leads_up(a->sp + 8, a->top);
    case CODE_AWAY:
        return leads_away(a->sp + 8, a->top);
    case CODE_FRAME_FAR:
        return follow_frame(&p->records, a, w, true);
    case CODE_RECORD:
    case CODE_RECORD_FAR:
        return follow_record(&p->records, a, w, *code == CODE_RECORD_FAR);
    case CODE_REGS:
    case CODE_REGS_FAR:
        return follow_regs(a, *code == CODE_REGS_FAR);
    default:
        va = a->at + 8 * (int64_t)(int16_t)(code[1] | code[2] << 8);
        return read_word(w, va, &word) && follow_word(a, *code, va, word);
    }
}

/* How many codes until the next comparison with @early. */
typedef struct Looks {
    unsigned left, n;
} Looks;

static inline bool still_same(Looks *l, const Path *path, const uint64_t h[2])
{
    if (G_LIKELY(l->left--)) {
        return true;
    }
    if (l->n == GS_PATH_EARLY) {
        return true;
    }
    l->left = (EARLY << l->n) - 1;
    return early_of(h) == path->early[l->n++];
}

/* A path, and how far it was followed. */
typedef struct Along {
    const Path *path;
    const uint8_t *code, *end;
    Looks looks;
} Along;

/* Most of a path is one run of calls, by words or by frame records. The
 * members of @a are kept in registers during the run. */
static inline bool follow_words(Along *p, Again *a, Walk *w)
{
    uint64_t h[2] = { a->h[0], a->h[1] }, at = a->at, pc;

    for (; p->code < p->end && *p->code <= CODE_WORD_MAX; p->code++) {
        at += 8ull * *p->code;
        if (!still_same(&p->looks, p->path, h) || !read_word(w, at, &pc)) {
            return false;
        }
        mix(h, pc);
        a->top = at + 8;
    }
    a->h[0] = h[0];
    a->h[1] = h[1];
    a->at = at;
    return true;
}

GS_HOT
static G_GNUC_NO_INLINE bool follow_frames(const GsRecords *r, Along *p,
                                           Again *to, Walk *w)
{
    Again a = *to;

    for (; p->code < p->end && *p->code == CODE_FRAME; p->code++) {
        if (!still_same(&p->looks, p->path, a.h) ||
            !follow_frame(r, &a, w, false)) {
            return false;
        }
    }
    *to = a;
    return true;
}

GS_HOT
static bool same_path(const GsWalkCache *p, const Path *path, const Walk *begin,
                      uint32_t kind)
{
    Walk w = *begin;
    Again a = { .at = w.sp, .top = w.sp, .fp = w.bp, .bp = w.bp };
    Along along = { path, path->code, path->code + path->n, { EARLY, 0 } };

    start(a.h, w.ip);
    while (along.code < along.end) {
        unsigned code = *along.code;

        if (code <= CODE_WORD_MAX || code == CODE_FRAME) {
            if (code == CODE_FRAME ? !follow_frames(&p->records, &along, &a, &w)
                                   : !follow_words(&along, &a, &w)) {
                return false;
            }
            continue;
        }
        if (!still_same(&along.looks, path, a.h) ||
            !follow_other(p, &a, &w, along.code)) {
            return false;
        }
        along.code += code < CODE_REGISTER ? 3 : 1;
    }
    return finish(a.h, kind, path->n) == path->hash;
}

/* Moves the path at @i, which was found, to the first place. */
static void swap_first(uint32_t *key, Path *path, unsigned i)
{
    uint32_t first_key = key[0];
    Path first = path[0];

    key[0] = key[i];
    key[i] = first_key;
    path[0] = path[i];
    path[i] = first;
}

/* Most walks are the first of their set. */
uint32_t gs_walk_cache_expect(const GsWalkCache *p, uint64_t ip, uint64_t first,
                              uint32_t kind)
{
    uint32_t key = key_of(ip, first, kind);

    __builtin_prefetch(p->key[set_of(key)]);
    __builtin_prefetch(p->path[set_of(key)], 1);
    return key;
}

bool gs_walk_cache_find(GsWalkCache *p, const Walk *w, uint32_t wanted,
                        uint32_t kind, uint64_t *value)
{
    uint32_t *key = p->key[set_of(wanted)];
    Path *path = p->path[set_of(wanted)];

    for (unsigned i = 0; i < WAYS; i++) {
        if (key[i] == wanted && same_path(p, &path[i], w, kind)) {
            *value = path[i].value;
            if (i) {
                swap_first(key, path, i);
            }
            return true;
        }
    }
    return false;
}

void gs_walk_cache_add(GsWalkCache *p, const GsTrail *t, uint32_t kind,
                       uint64_t value)
{
    uint32_t key = key_of(t->ip, t->first, kind);
    unsigned set = set_of(key);
    Path *path = p->path[set];

    if (!t->plain || !t->done || !t->n) {
        return;
    }
    p->next[set] = (p->next[set] + 1) % (WAYS - 1);
    swap_first(p->key[set], path, p->next[set] + 1);
    p->key[set][0] = key;
    path[0] = (Path) {
        .hash = finish(t->h, kind, t->n), .value = value, .n = t->n,
    };
    memcpy(path[0].early, t->early, t->n_early);
    memcpy(path[0].code, t->code, t->n);
}
