/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call frame information of arm64 code finds the caller at each instruction.
 * Oracle: an emulator of the few instructions in the functions here. libdw
 * reads the file; the rules are evaluated with the emulator's registers.
 */
#include "guest-symbols/arch/arm64/arm64-internal.h"
#include "guest-symbols/export/elf-file.h"
#include "tests/lib/test-main.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <string.h>

#define TEXT        0xffff800080010000ull
#define CANONICAL   0xffff800000000000ull
#define STACK       0xffff800083000000ull
#define STACK_SIZE  0x1000u
#define TOP         (STACK + 0xc00)     /* the caller's sp */
#define CALLER_X29  (STACK + 0xd00)
#define RETURN      (TEXT + 0x4444)     /* into the caller */
#define OUTER       (TEXT + 0x5550)     /* into the caller's caller */
#define ELR         (TEXT + 0x7778)
#define SIGNATURE   (0x5a5aull << 48)   /* replaces the upper bits */
#define MASK        0x0000ffffffffffffull

enum { X9 = 9, X19 = 19, X29 = 29, X30 = 30, SP = 31, PC = 32, N_REGS };

/* Instructions. */
#define NOP         0xd503201fu
#define PACIASP     0xd503233fu
#define AUTIASP     0xd50323bfu
#define RET         0xd65f03c0u
#define ERET        0xd69f03e0u
#define BL          0x94000100u
#define MOV_X9_X30  0xaa1e03e9u
#define MOV_X29_SP  0x910003fdu
#define MOV_SP_X29  0x910003bfu
#define SUB_SP_X0   0xcb2063ffu
#define MRS_X22_ELR 0xd5384036u
#define MSR_ELR_X21 0xd5184035u
#define CBZ_X0(n)   (0xb4000000u | (n) << 5)
#define B(n)        (0x14000000u | ((n) & 0x3ffffff))
#define SUB_SP(n)   (0xd10003ffu | (n) << 10)
#define ADD_SP(n)   (0x910003ffu | (n) << 10)
#define ADD_X29(n)  (0x910003fdu | (n) << 10)
#define ADD_X21(n)  (0x910003f5u | (n) << 10)
#define PAIR(op, a, b, n) ((op) | (((n) / 8) & 0x7f) << 15 | (b) << 10 | \
                           31 << 5 | (a))
#define STP(a, b, n)        PAIR(0xa9000000u, a, b, n)
#define STP_PRE(a, b, n)    PAIR(0xa9800000u, a, b, n)
#define LDP(a, b, n)        PAIR(0xa9400000u, a, b, n)
#define LDP_POST(a, b, n)   PAIR(0xa8c00000u, a, b, n)
#define STR_X19_PRE         0xf81f0ff3u     /* str x19, [sp, #-16]! */
#define LDR_X19_POST        0xf84107f3u     /* ldr x19, [sp], #16 */
#define STR_X30_SCS         0xf800865eu     /* str x30, [x18], #8 */
#define LDR_X30_SCS         0xf85f8e5eu     /* ldr x30, [x18, #-8]! */

/* ---- the emulator ------------------------------------------------------- */

typedef struct Cpu {
    uint64_t reg[N_REGS];
    uint8_t stack[STACK_SIZE];
    bool branch;            /* cbz branches */
} Cpu;

static uint64_t *word_at(Cpu *cpu, uint64_t va)
{
    g_assert_cmpuint(va, >=, STACK);
    g_assert_cmpuint(va, <=, STACK + STACK_SIZE - 8);
    g_assert_cmpuint(va & 7, ==, 0);
    return (uint64_t *)(void *)(cpu->stack + (va - STACK));
}

static int64_t pair_offset(uint32_t insn)
{
    return (((int64_t)(insn >> 15 & 0x7f) ^ 0x40) - 0x40) * 8;
}

static void move_pair(Cpu *cpu, uint32_t insn)
{
    int64_t n = pair_offset(insn);
    bool load = insn >> 22 & 1, before = insn >> 24 & 1;
    uint64_t at = cpu->reg[SP] + (before ? (uint64_t)n : 0);
    unsigned reg[] = { insn & 31, insn >> 10 & 31 };

    for (unsigned i = 0; i < 2; i++) {
        uint64_t *word = word_at(cpu, at + 8 * i);

        if (load) {
            cpu->reg[reg[i]] = *word;
        } else {
            *word = reg[i] == SP ? 0 : cpu->reg[reg[i]];
        }
    }
    if (insn >> 23 & 1) {
        cpu->reg[SP] += (uint64_t)n;
    }
}

static void add_number(Cpu *cpu, uint32_t insn)
{
    uint64_t n = insn >> 10 & 0xfff;

    cpu->reg[insn & 31] = cpu->reg[insn >> 5 & 31] +
                          (insn >> 30 & 1 ? -n : n);
}

/* Execute one instruction. Returns: the distance to the next one. */
static int execute(Cpu *cpu, uint32_t insn)
{
    if ((insn & 0xbf800000) == 0x91000000) {
        add_number(cpu, insn);
    } else if ((insn & 0xfe0003e0) == (0xa8000000 | SP << 5)) {
        move_pair(cpu, insn);
    } else if ((insn & 0xff000000) == 0xb4000000) {
        return cpu->branch ? (int)(insn >> 5 & 0x7ffff) : 1;
    } else if (insn == STR_X19_PRE) {
        cpu->reg[SP] -= 16;
        *word_at(cpu, cpu->reg[SP]) = cpu->reg[X19];
    } else if (insn == LDR_X19_POST) {
        cpu->reg[SP] += 16;
    } else if (insn == SUB_SP_X0) {
        cpu->reg[SP] -= 64;
    } else if (insn == MOV_X9_X30) {
        cpu->reg[X9] = cpu->reg[X30];
    } else if (insn == BL) {
        cpu->reg[X30] = 0x1234;
    } else if (insn == PACIASP) {
        cpu->reg[X30] = (cpu->reg[X30] & MASK) | SIGNATURE;
    } else if (insn == MRS_X22_ELR) {
        cpu->reg[22] = ELR;
    }
    return 1;
}

/* ---- rules -------------------------------------------------------------- */

typedef struct Rules {
    GByteArray *frames, *file;
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_CFI *cfi;
} Rules;

static GsArm64Cfi options(void)
{
    return (GsArm64Cfi) { .canonical = CANONICAL };
}

/* Make the rules of @n instructions at TEXT. */
static Rules make_rules(GsArm64Cfi c, const uint32_t *code, size_t n)
{
    Rules r = { .frames = g_byte_array_new() };
    GsCfi w = gs_cfi(r.frames, 4);
    g_autoptr(GsElfFile) f = gs_elf_file_new(EM_AARCH64);

    c.w = &w;
    gs_arm64_cfi_begin(&c);
    gs_arm64_cfi(&c, (GsRange) { TEXT, TEXT + 4 * n }, (const uint8_t *)code);
    gs_elf_file_add_section(f, ".text", TEXT, TEXT + 4 * n, true);
    r.file = gs_elf_file_end(f, r.frames);
    g_assert_nonnull(r.file);
    elf_version(EV_CURRENT);
    r.elf = elf_memory((char *)r.file->data, r.file->len);
    r.dwarf = dwarf_begin_elf(r.elf, DWARF_C_READ, NULL);
    g_assert_nonnull(r.dwarf);
    r.cfi = dwarf_getcfi(r.dwarf);
    g_assert_nonnull(r.cfi);
    return r;
}

static void rules_deinit(Rules *r)
{
    dwarf_end(r->dwarf);
    elf_end(r->elf);
    g_byte_array_unref(r->file);
    g_byte_array_unref(r->frames);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Rules, rules_deinit)

/* Apply @op to the values @v, @n of them. Returns: how many there are then. */
static size_t apply(Cpu *cpu, const Dwarf_Op *op, uint64_t cfa, uint64_t *v,
                    size_t n)
{
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
        v[n++] = cpu->reg[op->atom - DW_OP_breg0] + op->number;
    } else if (op->atom == DW_OP_bregx) {
        v[n++] = cpu->reg[op->number] + op->number2;
    } else if (op->atom == DW_OP_call_frame_cfa) {
        v[n++] = cfa;
    } else if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
        v[n++] = op->atom - DW_OP_lit0;
    } else if (op->atom == DW_OP_const1s || op->atom == DW_OP_consts) {
        v[n++] = op->number;
    } else if (op->atom == DW_OP_plus_uconst) {
        v[n - 1] += op->number;
    } else if (op->atom == DW_OP_deref) {
        v[n - 1] = *word_at(cpu, v[n - 1]);
    } else if (op->atom == DW_OP_plus) {
        v[n - 2] += v[n - 1];
        n--;
    } else if (op->atom == DW_OP_shl) {
        v[n - 2] <<= v[n - 1];
        n--;
    } else if (op->atom == DW_OP_or) {
        v[n - 2] |= v[n - 1];
        n--;
    } else {
        g_assert_cmpuint(op->atom, ==, DW_OP_stack_value);
    }
    return n;
}

static uint64_t evaluate(Cpu *cpu, const Dwarf_Op *op, size_t n_ops,
                         uint64_t cfa)
{
    uint64_t v[16];
    size_t n = 0;

    for (size_t i = 0; i < n_ops; i++) {
        g_assert_cmpuint(n, <, G_N_ELEMENTS(v));
        n = apply(cpu, &op[i], cfa, v, n);
    }
    g_assert_cmpuint(n, >, 0);
    return v[n - 1];
}

#define UNDEFINED   1u      /* as the value of a register */

/* Return the value that @reg has in the caller. */
static uint64_t caller_reg(Cpu *cpu, Dwarf_Frame *frame, uint64_t cfa, int reg)
{
    Dwarf_Op mem[3], *op;
    uint64_t v;
    size_t n;

    g_assert_cmpint(dwarf_frame_register(frame, reg, mem, &op, &n), ==, 0);
    if (!n && !op) {
        return reg == SP ? cfa : cpu->reg[reg];
    }
    if (!n) {
        return UNDEFINED;
    }
    if (n == 1 && op->atom == DW_OP_regx) {
        return cpu->reg[op->number];
    }
    if (n == 1 && op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
        return cpu->reg[op->atom - DW_OP_reg0];
    }
    v = evaluate(cpu, op, n, cfa);
    return op[n - 1].atom == DW_OP_stack_value ? v : *word_at(cpu, v);
}

/* ---- functions ---------------------------------------------------------- */

static Cpu new_cpu(void)
{
    Cpu cpu = { 0 };

    cpu.reg[X29] = CALLER_X29;
    cpu.reg[X30] = RETURN;
    cpu.reg[SP] = TOP;
    *word_at(&cpu, CALLER_X29) = CALLER_X29 + 0x100;
    *word_at(&cpu, CALLER_X29 + 8) = (OUTER & MASK) | SIGNATURE;
    return cpu;
}

static void assert_caller(const Rules *r, Cpu *cpu, size_t i, uint64_t pc,
                          uint64_t sp, uint64_t x29)
{
    g_autofree Dwarf_Frame *frame = NULL;
    Dwarf_Op *op;
    uint64_t cfa;
    size_t n;

    g_assert_cmpint(dwarf_cfi_addrframe(r->cfi, TEXT + 4 * i, &frame), ==, 0);
    g_assert_cmpint(dwarf_frame_cfa(frame, &op, &n), ==, 0);
    cfa = evaluate(cpu, op, n, 0);
    g_test_message("instruction %zu", i);
    g_assert_cmphex(caller_reg(cpu, frame, cfa, PC), ==, pc);
    if (pc != UNDEFINED) {
        g_assert_cmphex(caller_reg(cpu, frame, cfa, X29), ==, x29);
        g_assert_cmphex(caller_reg(cpu, frame, cfa, SP), ==, sp);
    }
}

static bool is_signal(const Rules *r)
{
    g_autofree Dwarf_Frame *frame = NULL;
    bool signal;

    g_assert_cmpint(dwarf_cfi_addrframe(r->cfi, TEXT, &frame), ==, 0);
    g_assert_cmpint(dwarf_frame_info(frame, NULL, NULL, &signal), ==, PC);
    return signal;
}

/* At each instruction of the way through a function the caller is found. */
static void walk(const uint32_t *code, size_t n, bool branch)
{
    g_auto(Rules) r = make_rules(options(), code, n);
    Cpu cpu = new_cpu();

    cpu.branch = branch;
    for (size_t i = 0; i < n; i += execute(&cpu, code[i])) {
        assert_caller(&r, &cpu, i, RETURN, TOP, CALLER_X29);
        if (code[i] == RET) {
            break;
        }
    }
    g_assert_cmphex(cpu.reg[SP], ==, TOP);
    g_assert_false(is_signal(&r));
}

#define WALK(code)  walk(code, G_N_ELEMENTS(code), false)

TEST(prologues, "/cfi-arm64/prologues")
{
    static const uint32_t usual[] = {
        PACIASP, STP_PRE(X29, X30, -48), MOV_X29_SP, STP(X19, 20, 16), BL, NOP,
        LDP(X19, 20, 16), LDP_POST(X29, X30, 48), AUTIASP, RET,
    };
    static const uint32_t large[] = {
        SUB_SP(0x200), STP(X29, X30, 16), ADD_X29(16), STP(X19, 20, 32), BL,
        LDP(X29, X30, 16), LDP(X19, 20, 32), ADD_SP(0x200), RET,
    };
    static const uint32_t shadow_stack[] = {
        PACIASP, STR_X30_SCS, STP_PRE(X29, X30, -32), MOV_X29_SP, BL,
        LDP_POST(X29, X30, 32), LDR_X30_SCS, AUTIASP, RET,
    };
    static const uint32_t array[] = {
        STP_PRE(X29, X30, -32), MOV_X29_SP, SUB_SP_X0, BL, SUB_SP(32), BL,
        ADD_SP(32), MOV_SP_X29, LDP_POST(X29, X30, 32), RET,
    };

    WALK(usual);
    WALK(large);
    WALK(shadow_stack);
    WALK(array);
}

TEST(leaf_functions, "/cfi-arm64/leaf-functions")
{
    static const uint32_t plain[] = { NOP, RET };
    static const uint32_t locals[] = { SUB_SP(32), NOP, ADD_SP(32), RET };
    static const uint32_t saves[] = { STR_X19_PRE, NOP, LDR_X19_POST, RET };

    WALK(plain);
    WALK(locals);
    WALK(saves);
}

/* Paths with and without a frame; code behind a call that does not return; code
 * that nothing leads to, but which jumps back. */
TEST(branches, "/cfi-arm64/branches")
{
    static const uint32_t early[] = {
        CBZ_X0(6), STP_PRE(X29, X30, -32), MOV_X29_SP, BL,
        LDP_POST(X29, X30, 32), RET, NOP, RET,
    };
    static const uint32_t no_return[] = {
        NOP, CBZ_X0(4), STP_PRE(X29, X30, -32), MOV_X29_SP, BL,
        NOP, RET,
    };
    static const uint32_t patched[] = {
        STP_PRE(X29, X30, -32), MOV_X29_SP, BL, NOP, LDP_POST(X29, X30, 32),
        RET, BL, B(-4),
    };
    g_auto(Rules) r = make_rules(options(), patched, G_N_ELEMENTS(patched));
    Cpu cpu = new_cpu();

    walk(early, G_N_ELEMENTS(early), false);
    walk(early, G_N_ELEMENTS(early), true);
    walk(no_return, G_N_ELEMENTS(no_return), true);
    execute(&cpu, patched[0]);
    execute(&cpu, patched[1]);
    assert_caller(&r, &cpu, 6, RETURN, TOP, CALLER_X29);
    assert_caller(&r, &cpu, 7, RETURN, TOP, CALLER_X29);
}

/* ftrace's call in front of the prologue keeps x30 by its copy in x9, and makes
 * frame records of both. A function that has called without that has lost its
 * return address: a task began there. */
TEST(calls_without_frame, "/cfi-arm64/calls-without-frame")
{
    static const uint32_t traced[] = {
        MOV_X9_X30, BL, STP_PRE(X29, X30, -32), MOV_X29_SP, NOP,
    };
    static const uint32_t first[] = { NOP, BL, NOP, BL, RET };
    g_auto(Rules) r = make_rules(options(), traced, G_N_ELEMENTS(traced));
    g_auto(Rules) f = make_rules(options(), first, G_N_ELEMENTS(first));
    Cpu cpu = new_cpu();

    assert_caller(&r, &cpu, 0, RETURN, TOP, CALLER_X29);
    assert_caller(&r, &cpu, 1, OUTER, CALLER_X29 + 16, CALLER_X29 + 0x100);
    assert_caller(&r, &cpu, 2, RETURN, TOP, CALLER_X29);
    assert_caller(&f, &cpu, 0, RETURN, TOP, CALLER_X29);
    for (size_t i = 1; i < G_N_ELEMENTS(first); i++) {
        assert_caller(&f, &cpu, i, UNDEFINED, 0, 0);
    }
}

/* ---- exceptions --------------------------------------------------------- */

#define REGS_SIZE   336

static const uint32_t entry[] = {
    STP(28, X29, 224), ADD_X21(REGS_SIZE), MRS_X22_ELR, STP(X30, 21, 240),
    STP(X29, 22, 304), ADD_X29(304), STP(22, 23, 256), BL, B(0x100),
};

/* As soon as elr_el1 is read, the caller is the interrupted code. */
TEST(entries, "/cfi-arm64/entries")
{
    g_auto(Rules) r = make_rules(options(), entry, G_N_ELEMENTS(entry));
    Cpu cpu = new_cpu();

    cpu.reg[SP] -= REGS_SIZE;
    g_assert_true(is_signal(&r));
    for (size_t i = 0; i < G_N_ELEMENTS(entry); i++) {
        if (i < 3) {
            assert_caller(&r, &cpu, i, OUTER, CALLER_X29 + 16,
                          CALLER_X29 + 0x100);
        } else {
            assert_caller(&r, &cpu, i, ELR, TOP, CALLER_X29);
        }
        execute(&cpu, entry[i]);
    }
}

TEST(ways_back, "/cfi-arm64/ways-back")
{
    static const uint32_t code[] = {
        LDP(21, 22, 256), MSR_ELR_X21, LDP(28, X29, 224), NOP,
        ADD_SP(REGS_SIZE), ERET,
    };
    g_auto(Rules) r = make_rules(options(), code, G_N_ELEMENTS(code));
    Cpu cpu = new_cpu();

    cpu.reg[SP] -= REGS_SIZE;
    for (size_t i = 0; i < 7; i++) {
        execute(&cpu, entry[i]);
    }
    for (size_t i = 0; i < 5; i++) {
        assert_caller(&r, &cpu, i, ELR, TOP, CALLER_X29);
        execute(&cpu, code[i]);
    }
    assert_caller(&r, &cpu, 5, OUTER, CALLER_X29 + 16, CALLER_X29 + 0x100);
}

/* From user mode the kernel has no caller until struct pt_regs is filled. */
TEST(entries_from_user, "/cfi-arm64/entries-from-user")
{
    static const uint32_t code[] = {
        STP(28, X29, 224), MRS_X22_ELR, STP(X30, 21, 240), STP(SP, SP, 304),
        ADD_X29(304), STP(22, 23, 256), BL,
    };
    g_auto(Rules) r = make_rules(options(), code, G_N_ELEMENTS(code));
    Cpu cpu = new_cpu();

    cpu.reg[SP] -= REGS_SIZE;
    cpu.reg[21] = STACK + 0x800;
    for (size_t i = 0; i < 6; i++) {
        assert_caller(&r, &cpu, i, UNDEFINED, 0, 0);
        execute(&cpu, code[i]);
    }
    assert_caller(&r, &cpu, 6, ELR, STACK + 0x800, CALLER_X29);
}

TEST(vectors, "/cfi-arm64/vectors")
{
    g_autofree uint32_t *code = g_new0(uint32_t, 0x200);
    GsArm64Cfi c = options();
    Cpu cpu = new_cpu();

    c.vectors[1] = TEXT;
    {
        g_auto(Rules) r = make_rules(c, code, 0x200);

        assert_caller(&r, &cpu, 0, OUTER, CALLER_X29 + 16, CALLER_X29 + 0x100);
        assert_caller(&r, &cpu, 0xff, OUTER, CALLER_X29 + 16,
                      CALLER_X29 + 0x100);
        assert_caller(&r, &cpu, 0x100, UNDEFINED, 0, 0);
        assert_caller(&r, &cpu, 0x1ff, UNDEFINED, 0, 0);
    }
}

/* ---- other code --------------------------------------------------------- */

TEST(known_by_name, "/cfi-arm64/known-by-name")
{
    static const uint32_t code[] = { NOP, RET };
    GsArm64Cfi c = options();
    Cpu cpu = new_cpu();

    c.ends[0] = c.switches = TEXT;
    {
        g_auto(Rules) r = make_rules(c, code, G_N_ELEMENTS(code));

        assert_caller(&r, &cpu, 0, UNDEFINED, 0, 0);
    }
    c.ends[0] = 0;
    {
        g_auto(Rules) r = make_rules(c, code, G_N_ELEMENTS(code));

        assert_caller(&r, &cpu, 0, RETURN, TOP, CALLER_X29);
        g_assert_true(is_signal(&r));
    }
}

/* The caller's x30 is its own return address: gdb uses it if the caller's code
 * was freed. */
TEST(called_by_freed_code, "/cfi-arm64/called-by-freed-code")
{
    static const uint32_t code[] = {
        STP_PRE(X29, X30, -32), MOV_X29_SP, BL, NOP,
    };
    g_autofree Dwarf_Frame *frame = NULL;
    GsArm64Cfi c = options();
    Cpu cpu = new_cpu();

    c.boots = TEXT;
    {
        g_auto(Rules) r = make_rules(c, code, G_N_ELEMENTS(code));

        execute(&cpu, code[0]);
        execute(&cpu, code[1]);
        assert_caller(&r, &cpu, 2, RETURN, TOP, CALLER_X29);
        g_assert_cmpint(dwarf_cfi_addrframe(r.cfi, TEXT + 8, &frame), ==, 0);
        g_assert_cmphex(caller_reg(&cpu, frame, TOP, X30), ==, OUTER);
    }
}

/* Code that is not known, or was freed, keeps frame records. */
TEST(unknown_code, "/cfi-arm64/unknown-code")
{
    static const uint32_t code[] = { NOP, RET };
    GsArm64Cfi c = options();
    Cpu cpu = new_cpu();
    g_auto(Rules) unread = make_rules(c, NULL, 2);

    assert_caller(&unread, &cpu, 1, OUTER, CALLER_X29 + 16, CALLER_X29 + 0x100);
    c.freed = (GsRange) { TEXT, TEXT + 8 };
    {
        g_auto(Rules) r = make_rules(c, code, 2);

        assert_caller(&r, &cpu, 1, OUTER, CALLER_X29 + 16, CALLER_X29 + 0x100);
    }
}
