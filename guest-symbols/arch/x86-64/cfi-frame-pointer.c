/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call frame information of x86-64 kernels without ORC that keep frame pointers
 * (CONFIG_UNWINDER_FRAME_POINTER). Called while a debug file is made, by that
 * thread.
 *
 * The instructions of each function are read once, in order, for those that
 * make and end its frame:
 *
 *     instruction        rules behind it
 *                        CFA = rsp + 8                       (ENTERED)
 *     push %rbp          CFA = rsp + 16, rbp at CFA - 16     (PUSHED)
 *     mov %rsp,%rbp      CFA = rbp + 16, rbp at CFA - 16     (FRAMED)
 *     pop %rbp, leave    CFA = rsp + 8                       (ENTERED)
 *     ret, jmp           those of the jumps to the next instruction
 *
 * Code that makes no frame has the rbp of another frame, as
 * frames-x86_64.c describes: a frame record, or the address of a struct
 * pt_regs plus 1, or 0 where the stack ends. The rules of such code are
 * expressions, which decide; so are those of .init.text, whose memory has other
 * contents by now. Code is taken for such code if it calls or pushes other
 * registers before it has made a frame.
 *
 * The entry code of interrupts and exceptions gets signal frames, and so do
 * functions that call another one on another stack (call; pop %rsp): see
 * cfi-orc.c.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/export/cfi-orc.h"
#include "guest-symbols/arch/x86-64/length-x86_64.h"

#include <dwarf.h>
#include <string.h>

/* DWARF numbers (System V ABI, AMD64 supplement). */
enum { RBP = 6, RSP = 7, RIP = 16 };

/* What is on the stack of a function. */
typedef enum State {
    UNKNOWN,
    ENTERED,        /* the return address */
    PUSHED,         /* rbp, too */
    FRAMED,         /* rbp points there */
} State;

/* @entry: code that is entered by system calls, interrupts and exceptions.
 * @init: code whose memory the kernel frees when it has started. */
typedef struct Maker {
    GsCfi *w;
    const GsKernel *k;
    const GsMem *mem;
    GsOrcCies cies;
    GsRange entry, init;
} Maker;

/* ---- expressions -------------------------------------------------------- */

/* The operands of DW_OP_bra and DW_OP_skip are bytes from their end. lldb
 * cannot jump to the end of an expression, only to a nop there. The CFA is the
 * end of the record or of the struct pt_regs: the caller's rsp may be 0. */
static const uint8_t frame_end[] = {
    DW_OP_breg6, 0, DW_OP_dup, DW_OP_bra, 6, 0,
    DW_OP_drop, DW_OP_breg7, 8, DW_OP_skip, 14, 0,              /* 0 */
    DW_OP_dup, DW_OP_lit1, DW_OP_and, DW_OP_bra, 5, 0,
    DW_OP_plus_uconst, 16, DW_OP_skip, 3, 0,                    /* record */
    DW_OP_plus_uconst, 0xa7, 1,                                 /* pt_regs */
    DW_OP_nop,
};

static const uint8_t caller_sp[] = {
    DW_OP_breg6, 0, DW_OP_dup, DW_OP_bra, 6, 0,
    DW_OP_drop, DW_OP_breg7, 8, DW_OP_skip, 15, 0,              /* 0 */
    DW_OP_dup, DW_OP_lit1, DW_OP_and, DW_OP_bra, 5, 0,
    DW_OP_plus_uconst, 16, DW_OP_skip, 4, 0,                    /* record */
    DW_OP_plus_uconst, 0x97, 1, DW_OP_deref,                    /* pt_regs.sp */
    DW_OP_nop,
};

static const uint8_t caller_bp[] = {
    DW_OP_breg6, 0, DW_OP_dup, DW_OP_bra, 3, 0,
    DW_OP_skip, 13, 0,                                          /* 0 */
    DW_OP_dup, DW_OP_lit1, DW_OP_and, DW_OP_bra, 4, 0,
    DW_OP_deref, DW_OP_skip, 3, 0,                              /* record */
    DW_OP_plus_uconst, 31, DW_OP_deref,                         /* pt_regs.bp */
    DW_OP_nop,
};

static const uint8_t caller_ip[] = {
    DW_OP_breg6, 0, DW_OP_dup, DW_OP_bra, 3, 0,
    DW_OP_skip, 15, 0,                                          /* 0 */
    DW_OP_dup, DW_OP_lit1, DW_OP_and, DW_OP_bra, 6, 0,
    DW_OP_plus_uconst, 8, DW_OP_deref, DW_OP_skip, 3, 0,        /* record */
    DW_OP_plus_uconst, 127, DW_OP_deref,                        /* pt_regs.ip */
    DW_OP_nop,
};

static void put_rules_by_value(GsCfi *w)
{
    gs_cfi_cfa_by(w, frame_end, sizeof(frame_end));
    gs_cfi_value_by(w, RSP, caller_sp, sizeof(caller_sp));
    gs_cfi_value_by(w, RBP, caller_bp, sizeof(caller_bp));
    gs_cfi_value_by(w, RIP, caller_ip, sizeof(caller_ip));
}

/* ---- instructions ------------------------------------------------------- */

/**
 * struct Scan - a function that is read
 * @i, @n: the instruction: where it begins, how many bytes it has
 * @at: State behind jumps to each byte
 * @now: before the instruction; @had_frame: FRAMED was seen
 * @calls_away: it calls a function on another stack
 */
typedef struct Scan {
    const uint8_t *code;
    size_t len, i, n;
    uint8_t *at;
    State now;
    bool had_frame, calls_away;
} Scan;

static bool is(const Scan *s, const char *bytes, size_t n)
{
    return s->n == n && !memcmp(s->code + s->i, bytes, n);
}
#define IS(s, bytes) is(s, bytes, sizeof(bytes) - 1)

/* Keep the state of the jump whose target is @off bytes behind it. */
static void jump(Scan *s, int64_t off)
{
    int64_t to = (int64_t)(s->i + s->n) + off;

    if (to >= 0 && (uint64_t)to < s->len && !s->at[to]) {
        s->at[to] = s->now;
    }
}

static void follow_jumps(Scan *s)
{
    uint8_t op = s->code[s->i], second = s->n > 1 ? s->code[s->i + 1] : 0;

    if ((op & 0xf0) == 0x70 || op == 0xeb) {
        jump(s, (int8_t)second);
    } else if (op == 0xe9 || (op == 0x0f && (second & 0xf0) == 0x80)) {
        jump(s, (int32_t)gs_u32_at(s->code + s->i + s->n - 4));
    }
}

/* Does the code behind not follow? */
static bool ends(const Scan *s)
{
    uint8_t op = s->code[s->i];
    uint8_t reg = s->n > 1 ? s->code[s->i + 1] >> 3 & 7 : 0;

    return op == 0xc3 || op == 0xcb || op == 0xe9 || op == 0xeb || op == 0xcc ||
           (op == 0xff && reg == 4);
}

/* Return the state behind the instruction. */
static State behind(Scan *s)
{
    if (ends(s)) {
        return UNKNOWN;
    }
    if (IS(s, "\x55") && s->now == ENTERED) {
        return PUSHED;
    }
    if ((IS(s, "\x48\x89\xe5") || IS(s, "\x48\x8b\xec")) &&
        s->now == PUSHED) {
        return FRAMED;
    }
    if (IS(s, "\x5d") || IS(s, "\xc9")) {
        return ENTERED;
    }
    return s->now;
}

/* Is this an instruction of code that makes no frame? A call where a function
 * begins is one of __fentry__. */
static bool needs_none(const Scan *s)
{
    uint8_t op = s->code[s->i];
    bool push = (op >= 0x50 && op < 0x58 && op != 0x55) ||
                (op == 0x41 && s->n == 2 && (s->code[s->i + 1] & 0xf8) == 0x50);
    bool call = op == 0xe8 && s->i && !(s->i == 4 && s->code[0] == 0xf3);

    return s->now == ENTERED && (push || call);
}

static void decode(Scan *s)
{
    s->n = gs_x86_64_length(s->code + s->i, s->len - s->i);
    s->n = s->n ? s->n : 1;
}

/* Go to the next instruction. If jumps lead there, their state holds: a call
 * before it may not return. */
static void next(Scan *s)
{
    bool call = s->n == 5 && s->code[s->i] == 0xe8;

    follow_jumps(s);
    s->now = behind(s);
    s->had_frame |= s->now == FRAMED;
    s->i += s->n;
    if (s->i >= s->len) {
        return;
    }
    s->calls_away |= call && s->code[s->i] == 0x5c;
    if (s->at[s->i]) {
        s->now = s->at[s->i];
    } else if (!s->now) {
        s->now = s->had_frame ? FRAMED : ENTERED;
    }
    decode(s);
}

/* ---- rules -------------------------------------------------------------- */

static void put_state(GsCfi *w, State state)
{
    gs_cfi_cfa(w, state == FRAMED ? RBP : RSP, state == ENTERED ? 8 : 16);
    if (state == ENTERED) {
        gs_cfi_same(w, RBP);
    } else {
        gs_cfi_saved(w, RBP, -16);
    }
}

/*
 * Read a function, and write its rules to @w unless that is NULL. @at: as many
 * bytes as the function has. Returns: false if it is code that makes no frame.
 */
static bool scan(GsCfi *w, GsRange r, const uint8_t *code, uint8_t *at,
                 bool *calls_away)
{
    Scan s = { .code = code, .len = r.end - r.start, .at = at, .now = ENTERED };
    State old = ENTERED;

    memset(at, UNKNOWN, s.len);
    decode(&s);
    while (s.i < s.len) {
        if (needs_none(&s)) {
            return false;
        }
        next(&s);
        if (w && s.i < s.len && s.now != old) {
            gs_cfi_advance(w, r.start + s.i);
            put_state(w, s.now);
            old = s.now;
        }
    }
    *calls_away = s.calls_away;
    return true;
}

/* ---- functions ---------------------------------------------------------- */

static bool is_entry_of_system_calls(const Maker *m, uint64_t va)
{
    GsSymbol sym;

    return gs_kernel_symbolize(m->k, va, &sym) &&
           g_str_has_prefix(sym.name, "entry_SYSCALL");
}

static void add_function(void *opaque, GsRange r, const uint8_t *code)
{
    const Maker *m = opaque;
    bool entry = gs_range_has(m->entry, r.start), signal = false;
    bool frame = code && !entry && !gs_range_has(m->init, r.start);
    g_autofree uint8_t *at = frame ? g_malloc(r.end - r.start) : NULL;

    frame = frame && scan(NULL, r, code, at, &signal);
    signal |= entry && !is_entry_of_system_calls(m, r.start);
    gs_cfi_begin_fde(m->w, signal ? m->cies.signal : m->cies.usual, r.start,
                     r.end);
    if (frame) {
        scan(m->w, r, code, at, &signal);
    } else {
        gs_cfi_advance(m->w, r.start + !entry);
        put_rules_by_value(m->w);
    }
    gs_cfi_end(m->w);
}

/* ---- of a kernel -------------------------------------------------------- */

static void *begin(GsCfi *w, const GsKernel *k, const GsMem *mem)
{
    Maker *m;

    if (!mem) {
        return NULL;
    }
    m = g_new(Maker, 1);
    *m = (Maker) {
        .w = w, .k = k, .mem = mem, .cies = gs_orc_cies(w),
        .entry = { gs_kernel_address(k, "__entry_text_start"),
                   gs_kernel_address(k, "__entry_text_end") },
        .init = { gs_kernel_address(k, "_sinittext"),
                  gs_kernel_address(k, "_einittext") },
    };
    return m;
}

static void add(void *maker, const GsCfiCode *c)
{
    const Maker *m = maker;

    gs_cfi_foreach_function(c, m->mem, add_function, maker);
}

const GsCfiMaker gs_frame_pointer_cfi_maker = {
    .made_of = "frame pointers", .begin = begin, .add = add,
};
