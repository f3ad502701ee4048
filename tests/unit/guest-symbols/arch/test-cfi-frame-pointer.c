/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The debug file of a kernel with frame pointers and without ORC says where
 * the callers' registers are, in functions with a frame, without one, and in
 * entry code. Oracle: libdw reads the rules, and a small machine computes them
 * with the registers and the stack of a frame.
 */
#include "guest-symbols/kernel/kernel.h"
#include "tests/lib/test-main.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#define TEXT    0xffffffff81000000ull
#define PLAIN   (TEXT + 0x100)
#define SWITCH  (TEXT + 0x200)
#define LATE    (TEXT + 0x300)
#define SYSCALL (TEXT + 0x800)
#define FAULT   (TEXT + 0x840)
#define INIT    (TEXT + 0x1000000)

enum { RBX = 3, RBP = 6, RSP = 7, RIP = 16 };

static const char map[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T framed\n"
    "ffffffff81000100 T plain\n"
    "ffffffff81000200 T switches\n"
    "ffffffff81000300 T late\n"
    "ffffffff81000400 T unreadable\n"
    "ffffffff81000800 T __entry_text_start\n"
    "ffffffff81000800 T entry_SYSCALL_64\n"
    "ffffffff81000840 T asm_exc_page_fault\n"
    "ffffffff81000900 T __entry_text_end\n"
    "ffffffff81001000 T _etext\n"
    "ffffffff82000000 T _sinittext\n"
    "ffffffff82000000 T start_kernel\n"
    "ffffffff82001000 T _einittext\n";

/* endbr64, a call of __fentry__ that was turned off, and a frame. The second
 * path through the function makes one, too. */
static const uint8_t framed[] = {
    0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0,
    0x74, 0x15,                         /* 9: je 32 */
    0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5, /* 11: push, xor, mov */
    0x7f, 0x06,                         /* 17: jg 25 */
    0x5d, 0xe9, 0xf0, 0, 0, 0,          /* 19: pop, jmp to another function */
    0x31, 0xc9, 0x90, 0xeb, 0xf3,       /* 25: xor, nop, jmp 17 */
    0x90, 0xcc,
    0x55, 0x48, 0x89, 0xe5, 0xc9, 0xc3, /* 32: push, mov, leave, ret */
    0xcc,
};
static const uint8_t switches[] = {
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xc4, 0xe8, 0, 0, 0, 0, 0x5c, 0xcc,
};
/* push %rbx: not as compilers do. */
static const uint8_t late[] = {
    0x48, 0x85, 0xff, 0x53, 0x55, 0x48, 0x89, 0xe5, 0xcc,
};

static bool read_code(G_GNUC_UNUSED void *opaque, uint64_t va, void *buf,
                      size_t len)
{
    static const struct {
        uint64_t va;
        const uint8_t *code;
        size_t len;
    } code[] = {
        { TEXT, framed, sizeof(framed) },
        { SWITCH, switches, sizeof(switches) },
        { INIT, switches, sizeof(switches) },
        { LATE, late, sizeof(late) },
    };

    memset(buf, 0xcc, len);
    for (size_t i = 0; i < G_N_ELEMENTS(code); i++) {
        if (va == code[i].va) {
            memcpy(buf, code[i].code, MIN(len, code[i].len));
        }
    }
    return va != TEXT + 0x400;
}

/* ---- the machine -------------------------------------------------------- */

typedef struct Regs {
    uint64_t sp, bp;
} Regs;

typedef struct Machine {
    Regs regs;
    uint64_t cfa, stack[8];
    unsigned n;
    bool is_value;
} Machine;

/* What a word of the stack is. */
static uint64_t word(uint64_t va)
{
    return va ^ 0x5555000000000000ull;
}

static uint64_t pop(Machine *m)
{
    g_assert(m->n > 0 && m->n <= G_N_ELEMENTS(m->stack));
    return m->stack[--m->n];
}

static void push(Machine *m, uint64_t v)
{
    g_assert_cmpuint(m->n, <, G_N_ELEMENTS(m->stack));
    m->stack[m->n++] = v;
}

static uint64_t reg(const Machine *m, unsigned r)
{
    g_assert_true(r == RBP || r == RSP);
    return r == RBP ? m->regs.bp : m->regs.sp;
}

static void calculate(Machine *m, const Dwarf_Op *op)
{
    switch (op->atom) {
    case DW_OP_breg6:
    case DW_OP_breg7:
        push(m, reg(m, op->atom - DW_OP_breg0) + op->number);
        break;
    case DW_OP_bregx:
        push(m, reg(m, op->number) + op->number2);
        break;
    case DW_OP_call_frame_cfa:
        push(m, m->cfa);
        break;
    case DW_OP_plus_uconst:
    case DW_OP_consts:
        push(m, op->number + (op->atom == DW_OP_consts ? 0 : pop(m)));
        break;
    case DW_OP_plus:
        push(m, pop(m) + pop(m));
        break;
    case DW_OP_deref:
        push(m, word(pop(m)));
        break;
    case DW_OP_lit1:
        push(m, 1);
        break;
    case DW_OP_and:
        push(m, pop(m) & pop(m));
        break;
    case DW_OP_dup:
        push(m, m->stack[m->n - 1]);
        break;
    case DW_OP_drop:
        pop(m);
        break;
    case DW_OP_stack_value:
        m->is_value = true;
        break;
    default:
        g_assert_cmphex(op->atom, ==, DW_OP_nop);
    }
}

/* Does the operation jump? */
static bool jumps(Machine *m, const Dwarf_Op *op)
{
    return op->atom == DW_OP_skip || (op->atom == DW_OP_bra && pop(m));
}

/* Return the result of an expression; @cfa: (0: none) the CFA. */
static uint64_t run(Regs regs, uint64_t cfa, const Dwarf_Op *op, size_t n)
{
    Machine m = { regs, cfa };

    for (size_t i = 0; i < n; i++) {
        bool branch = op[i].atom == DW_OP_skip || op[i].atom == DW_OP_bra;

        if (branch && jumps(&m, &op[i])) {
            uint64_t to = op[i].offset + 3 + (int16_t)op[i].number;

            while (i + 1 < n && op[i + 1].offset < to) {
                i++;
            }
        } else if (!branch) {
            calculate(&m, &op[i]);
        }
    }
    return m.is_value || !cfa ? pop(&m) : word(pop(&m));
}

/* ---- the file ----------------------------------------------------------- */

typedef struct Reader {
    GsKernel *k;
    GsDebugFile file;
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_CFI *cfi;
} Reader;

static Reader open_file(void)
{
    const GsMem mem = { .read = read_code };
    Reader r = { 0 };

    r.k = gs_kernel_new_from_data(map, strlen(map), "System.map", NULL);
    g_assert_nonnull(r.k);
    r.k->unwind_by = GS_UNWIND_BY_FRAMES;
    g_assert_true(gs_kernel_debug_file(r.k, &mem, false, &r.file, NULL));
    g_assert_cmpstr(r.file.unwind, ==, "frame pointers");
    elf_version(EV_CURRENT);
    r.elf = elf_memory((char *)r.file.bytes->data, r.file.bytes->len);
    r.dwarf = dwarf_begin_elf(r.elf, DWARF_C_READ, NULL);
    r.cfi = dwarf_getcfi(r.dwarf);
    g_assert_nonnull(r.cfi);
    return r;
}

static void reader_deinit(Reader *r)
{
    dwarf_end(r->dwarf);
    elf_end(r->elf);
    gs_debug_file_deinit(&r->file);
    gs_kernel_free(r->k);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Reader, reader_deinit)

static uint64_t value_of(Dwarf_Frame *frame, int r, Regs regs, uint64_t cfa)
{
    Dwarf_Op mem[3], *op;
    size_t n;

    g_assert_cmpint(dwarf_frame_register(frame, r, mem, &op, &n), ==, 0);
    if (!n) {
        g_assert_null(op);      /* the same */
        return reg(&(Machine) { regs }, r);
    }
    return run(regs, cfa, op, n);
}

/* The caller's registers at @pc are these. */
static void assert_caller(const Reader *r, uint64_t pc, Regs regs, uint64_t sp,
                          uint64_t bp, uint64_t ip)
{
    g_autofree Dwarf_Frame *frame = NULL;
    uint64_t cfa;
    Dwarf_Op *op;
    size_t n;

    g_assert_cmpint(dwarf_cfi_addrframe(r->cfi, pc, &frame), ==, 0);
    g_assert_cmpint(dwarf_frame_cfa(frame, &op, &n), ==, 0);
    cfa = run(regs, 0, op, n);
    g_assert_cmphex(value_of(frame, RSP, regs, cfa), ==, sp);
    g_assert_cmphex(value_of(frame, RBP, regs, cfa), ==, bp);
    g_assert_cmphex(value_of(frame, RIP, regs, cfa), ==, ip);
}

static bool is_signal(const Reader *r, uint64_t pc)
{
    g_autofree Dwarf_Frame *frame = NULL;
    bool signal;

    g_assert_cmpint(dwarf_cfi_addrframe(r->cfi, pc, &frame), ==, 0);
    g_assert_cmpint(dwarf_frame_info(frame, NULL, NULL, &signal), ==, RIP);
    return signal;
}

/* ---- cases -------------------------------------------------------------- */

static const Regs regs = { 0x1000, 0x2000 };

static void assert_entered(const Reader *r, uint64_t pc)
{
    assert_caller(r, pc, regs, 0x1008, 0x2000, word(0x1000));
}

static void assert_framed(const Reader *r, uint64_t pc)
{
    assert_caller(r, pc, regs, 0x2010, word(0x2000), word(0x2008));
}

TEST(functions_with_frames, "/cfi-frame-pointer/frames")
{
    g_auto(Reader) r = open_file();

    assert_entered(&r, TEXT);
    assert_entered(&r, TEXT + 11);
    assert_caller(&r, TEXT + 12, regs, 0x1010, word(0x1000), word(0x1008));
    assert_caller(&r, TEXT + 14, regs, 0x1010, word(0x1000), word(0x1008));
    assert_framed(&r, TEXT + 17);
    assert_framed(&r, TEXT + 19);
    assert_entered(&r, TEXT + 20);
    assert_framed(&r, TEXT + 25);
    assert_framed(&r, TEXT + 28);
    assert_entered(&r, TEXT + 32);
    assert_framed(&r, TEXT + 36);
    assert_entered(&r, TEXT + 37);
    g_assert_false(is_signal(&r, TEXT));
}

TEST(functions_that_change_stacks, "/cfi-frame-pointer/stacks")
{
    g_auto(Reader) r = open_file();

    g_assert_true(is_signal(&r, SWITCH + 12));
    assert_framed(&r, SWITCH + 12);
}

/* rbp is a record, the registers of interrupted code, or 0. */
static void assert_by_value(const Reader *r, uint64_t pc)
{
    assert_framed(r, pc);
    assert_caller(r, pc, (Regs) { 0x1000, 0x2001 }, word(0x2000 + 152),
                  word(0x2000 + 32), word(0x2000 + 128));
    assert_caller(r, pc, (Regs) { 0x1000, 0 }, 0x1008, 0, 0);
}

TEST(functions_without_frames, "/cfi-frame-pointer/no-frames")
{
    g_auto(Reader) r = open_file();

    assert_entered(&r, PLAIN);
    assert_entered(&r, PLAIN + 8);          /* and never makes a frame */
    assert_entered(&r, LATE);
    assert_by_value(&r, LATE + 1);
    assert_by_value(&r, TEXT + 0x410);      /* cannot be read */
    assert_by_value(&r, LATE + 8);
    assert_by_value(&r, INIT + 4);          /* its memory was freed */
    g_assert_false(is_signal(&r, LATE + 1));
}

TEST(entry_code, "/cfi-frame-pointer/entry")
{
    g_auto(Reader) r = open_file();

    assert_by_value(&r, FAULT);
    assert_by_value(&r, SYSCALL + 0x10);
    g_assert_true(is_signal(&r, FAULT));
    g_assert_false(is_signal(&r, SYSCALL));
}
