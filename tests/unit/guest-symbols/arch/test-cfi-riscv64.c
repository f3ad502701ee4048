/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call frame information of riscv64 code says where the caller's registers are
 * at each instruction. The code was assembled by GNU as; the comment at each
 * number is the instruction. Oracle: libdw reads the file, and says what the
 * rules are.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/export/elf-file.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"
#include "tests/lib/test-main.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <inttypes.h>
#include <string.h>

#define TEXT    0xffffffff80002000ull
#define INIT    0xffffffff80c00000ull

enum { RA = 1, SP = 2, S0 = 8, PC = 64 };

#define SYMBOLS 4

typedef struct Symbol {
    const char *name;
    unsigned at;
} Symbol;

/* Code at TEXT, whose symbols are at halfwords; the last one is the end. */
typedef struct Code {
    const uint16_t *word;
    size_t n;
    Symbol symbol[SYMBOLS];
} Code;

/* A kernel with this code, and the reader of its file. */
typedef struct Reader {
    GsKernel k;
    GByteArray *frames, *file;
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_CFI *cfi;
} Reader;

static bool read_code(void *opaque, uint64_t va, void *buf, size_t len)
{
    const Code *c = opaque;
    size_t first = (va - (va >= INIT ? INIT : TEXT)) / 2;

    if (first + len / 2 > c->n) {
        return false;
    }
    for (size_t i = 0; i < len / 2; i++) {
        uint16_t word = GUINT16_TO_LE(c->word[first + i]);

        memcpy((char *)buf + 2 * i, &word, 2);
    }
    return true;
}

static void open_kernel(GsKernel *k, const Code *code, GArray *starts)
{
    k->arch = &gs_arch_riscv64;
    k->text[0] = (GsRange) { TEXT, TEXT + 2 * code->n };
    k->orc = gs_orc_set_new();
    k->modules = gs_modules_new();
    k->symtab = gs_symtab_new();
    for (unsigned i = 0; i < G_N_ELEMENTS(code->symbol); i++) {
        const char *name = code->symbol[i].name;
        uint64_t va = TEXT + 2 * code->symbol[i].at;

        if (name) {
            gs_symtab_add(k->symtab, va, 't', name, strlen(name));
            g_array_append_val(starts, va);
        }
    }
    gs_symtab_add(k->symtab, INIT, 'T', "_sinittext", 10);
    gs_symtab_add(k->symtab, INIT + 0x1000, 'T', "_einittext", 10);
    gs_symtab_seal(k->symtab, NULL);
}

static void make_frames(Reader *r, const Code *code, uint64_t at)
{
    g_autoptr(GArray) starts = g_array_new(false, false, sizeof(uint64_t));
    GsMem mem = { .read = read_code, .opaque = (void *)code };
    GsCfi w = gs_cfi(r->frames, gs_arch_riscv64.code_align);
    size_t room = GS_CFI_CODE_MAX;
    g_autofree void *maker = NULL;

    open_kernel(&r->k, code, starts);
    g_assert_null(gs_riscv64_cfi_maker.begin(&w, &r->k, NULL));
    maker = gs_riscv64_cfi_maker.begin(&w, &r->k, &mem);
    g_assert_nonnull(maker);
    gs_riscv64_cfi_maker.add(maker, &(GsCfiCode) {
        .range = { at, at + 2 * code->n },
        .start = (const uint64_t *)starts->data, .n = starts->len,
        .room = &room,
    });
}

static Reader *open_code(const Code *code, uint64_t at)
{
    g_autoptr(GsElfFile) f = gs_elf_file_new(EM_RISCV);
    Reader *r = g_new0(Reader, 1);

    r->frames = g_byte_array_new();
    make_frames(r, code, at);
    gs_elf_file_add_section(f, ".text", TEXT, TEXT + (1u << 20), true);
    r->file = gs_elf_file_end(f, r->frames);
    elf_version(EV_CURRENT);
    r->elf = elf_memory((char *)r->file->data, r->file->len);
    r->dwarf = dwarf_begin_elf(r->elf, DWARF_C_READ, NULL);
    g_assert_nonnull(r->dwarf);
    r->cfi = dwarf_getcfi(r->dwarf);
    g_assert_nonnull(r->cfi);
    return r;
}

static void close_code(Reader *r)
{
    dwarf_end(r->dwarf);
    elf_end(r->elf);
    g_byte_array_unref(r->file);
    g_byte_array_unref(r->frames);
    gs_symtab_free(r->k.symtab);
    gs_modules_free(r->k.modules);
    gs_orc_set_free(r->k.orc);
    g_free(r);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Reader, close_code)

/* ---- what libdw says ---------------------------------------------------- */

static void put_ops(GString *s, const Dwarf_Op *op, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = op[i].number;

        if (op[i].atom >= DW_OP_breg0 && op[i].atom <= DW_OP_breg31) {
            g_string_append_printf(s, "x%d%+" PRId64,
                                   op[i].atom - DW_OP_breg0, v);
        } else if (op[i].atom == DW_OP_bregx) {
            g_string_append_printf(s, "x%" PRId64 "%+" PRId64, v,
                                   (int64_t)op[i].number2);
        } else if (op[i].atom == DW_OP_regx) {
            g_string_append_printf(s, "in x%" PRId64, v);
        } else if (op[i].atom == DW_OP_plus_uconst ||
                   op[i].atom == DW_OP_consts) {
            g_string_append_printf(s, "%+" PRId64, v);
        } else if (op[i].atom == DW_OP_call_frame_cfa) {
            g_string_append(s, n > 1 && op[1].atom >= DW_OP_breg0 &&
                               op[1].atom <= DW_OP_breg31 ? "at " : "cfa");
        } else {
            g_string_append(s, op[i].atom == DW_OP_deref ? " *" : "");
        }
    }
}

static void put_place(GString *s, Dwarf_Frame *frame, int reg)
{
    Dwarf_Op mem[3], *op;
    size_t n;

    g_assert_cmpint(dwarf_frame_register(frame, reg, mem, &op, &n), ==, 0);
    g_string_append(s, " | ");
    if (n) {
        put_ops(s, op, n);
    } else {
        g_string_append(s, op ? "none" : "same");
    }
}

/* "CFA | pc | s0" at @va; in a signal frame sp follows, and "S". */
static char *said(Reader *r, uint64_t va)
{
    g_autofree Dwarf_Frame *frame = NULL;
    GString *s = g_string_new(NULL);
    Dwarf_Op *op;
    size_t n;
    int ra;
    bool signal;

    g_assert_cmpint(dwarf_cfi_addrframe(r->cfi, va, &frame), ==, 0);
    ra = dwarf_frame_info(frame, NULL, NULL, &signal);
    g_assert_cmpint(ra, ==, signal ? PC : RA);
    g_assert_cmpint(dwarf_frame_cfa(frame, &op, &n), ==, 0);
    put_ops(s, op, n);
    put_place(s, frame, ra);
    put_place(s, frame, S0);
    if (signal) {
        put_place(s, frame, SP);
        g_string_append(s, " S");
    }
    return g_string_free(s, FALSE);
}

#define BEGIN   "x2+0 | in x1 | same"

/* ---- functions ---------------------------------------------------------- */

#define INSNS   32

/* An instruction of one or two halfwords, and the rules there, if they are
 * checked. */
typedef struct Insn {
    const char *text;
    uint16_t word[2];
    const char *rules;
} Insn;

static const Symbol f_alone[SYMBOLS] = { { "f", 0 } };

/* Check the rules of code. @symbol: at instructions; @n is the end. */
static void check_code(const Insn *insn, size_t n, const Symbol *symbol)
{
    uint16_t word[2 * INSNS];
    unsigned at[INSNS + 1];
    Code code = { word };
    g_autoptr(Reader) r = NULL;

    g_assert_cmpuint(n, <=, INSNS);
    for (size_t i = 0; i < n; i++) {
        at[i] = code.n;
        word[code.n++] = insn[i].word[0];
        if (insn[i].word[1]) {
            word[code.n++] = insn[i].word[1];
        }
    }
    at[n] = code.n;
    for (unsigned i = 0; i < SYMBOLS; i++) {
        code.symbol[i] = (Symbol) { symbol[i].name, at[symbol[i].at] };
    }
    r = open_code(&code, TEXT);
    for (size_t i = 0; i < n; i++) {
        if (insn[i].rules) {
            g_autofree char *text = said(r, TEXT + 2 * at[i]);

            g_test_message("%s", insn[i].text);
            g_assert_cmpstr(text, ==, insn[i].rules);
        }
    }
}

TEST(usual_function, "/cfi-riscv64/usual-function")
{
    static const Insn insn[] = {
        { "beqz a0, out", { 0xc911 }, BEGIN },
        { "addi sp, sp, -48", { 0x7179 }, BEGIN },
        { "sd ra, 40(sp)", { 0xf406 }, "x2+48 | in x1 | same" },
        { "sd s0, 32(sp)", { 0xf022 }, "x2+48 | cfa-8 | same" },
        { "addi s0, sp, 48", { 0x1800 }, "x2+48 | cfa-8 | cfa-16" },
        { "jalr a1", { 0x9582 }, "x8+0 | cfa-8 | cfa-16" },
        { "ld ra, 40(sp)", { 0x70a2 }, "x8+0 | cfa-8 | cfa-16" },
        { "ld s0, 32(sp)", { 0x7402 }, "x8+0 | cfa-8 | cfa-16" },
        { "addi sp, sp, 48", { 0x6145 }, "x2+48 | cfa-8 | same" },
        { "ret", { 0x8082 }, BEGIN },
        { "out: li a0, -22", { 0x5529 }, BEGIN },
        { "ret", { 0x8082 }, BEGIN },
    };

    check_code(insn, G_N_ELEMENTS(insn), f_alone);
}

/* The CFA at an entry has another form than lldb's own rule for entries, so
 * that lldb uses the file's rules. libdw has DW_OP_bregx for that form. */
TEST(form_at_entry, "/cfi-riscv64/form-at-entry")
{
    static const uint16_t word[] = {
        0x7179,         /* 0: addi sp, sp, -48 */
        0xf406,         /* 1: sd ra, 40(sp) */
    };
    static const Code code = { word, G_N_ELEMENTS(word), { { "f", 0 } } };
    g_autoptr(Reader) r = open_code(&code, TEXT);

    for (unsigned i = 0; i < G_N_ELEMENTS(word); i++) {
        g_autofree Dwarf_Frame *frame = NULL;
        Dwarf_Op *op;
        size_t n;

        g_assert_cmpint(dwarf_cfi_addrframe(r->cfi, TEXT + 2 * i, &frame), ==,
                        0);
        g_assert_cmpint(dwarf_frame_cfa(frame, &op, &n), ==, 0);
        g_assert_cmpuint(n, ==, 1);
        g_assert_cmpuint(op->atom, ==, i ? DW_OP_bregx : DW_OP_breg0 + SP);
    }
}

/* A function without calls saves s0 alone. */
TEST(leaf_function, "/cfi-riscv64/leaf-function")
{
    static const Insn insn[] = {
        { "addi sp, sp, -16", { 0x1141 } },
        { "sd s0, 8(sp)", { 0xe422 } },
        { "addi s0, sp, 16", { 0x0800 }, "x2+16 | in x1 | cfa-8" },
        { "nop", { 0x0001 }, "x8+0 | in x1 | cfa-8" },
        { "ld s0, 8(sp)", { 0x6422 } },
        { "addi sp, sp, 16", { 0x0141 }, "x2+16 | in x1 | same" },
        { "ret", { 0x8082 }, BEGIN },
    };

    check_code(insn, G_N_ELEMENTS(insn), f_alone);
}

/* sp moves by a number that is not known. What is behind the jump table has the
 * frame of the function. */
TEST(variable_frame, "/cfi-riscv64/variable-frame")
{
    static const Insn insn[] = {
        { "addi sp, sp, -128", { 0x7119 } },
        { "sd s0, 64(sp)", { 0xe0a2 } },
        { "sd ra, 72(sp)", { 0xe486 } },
        { "addi s0, sp, 80", { 0x0880 }, "x2+128 | cfa-56 | cfa-64" },
        { "sub sp, sp, a5", { 0x0133, 0x40f1 }, "x8+48 | cfa-56 | cfa-64" },
        { "jr a5", { 0x8782 }, "x8+48 | cfa-56 | cfa-64" },
        { "nop", { 0x0001 }, "x8+48 | cfa-56 | cfa-64" },
        { "addi sp, s0, -80", { 0x0113, 0xfb04 } },
        { "ld ra, 72(sp)", { 0x60a6 } },
        { "ld s0, 64(sp)", { 0x6406 }, "x8+48 | cfa-56 | cfa-64" },
        { "addi sp, sp, 128", { 0x6109 }, "x2+128 | cfa-56 | same" },
        { "ret", { 0x8082 }, BEGIN },
    };

    check_code(insn, G_N_ELEMENTS(insn), f_alone);
}

/* In the body ra is loaded as a value. */
TEST(own_return_address, "/cfi-riscv64/own-return-address")
{
    static const Insn insn[] = {
        { "addi sp, sp, -16", { 0x1141 } },
        { "sd ra, 8(sp)", { 0xe406 } },
        { "sd s0, 0(sp)", { 0xe022 } },
        { "addi s0, sp, 16", { 0x0800 } },
        { "ld ra, 8(sp)", { 0x60a2 } },
        { "mv a0, ra", { 0x8506 } },
        { "jalr a1", { 0x9582 }, "x8+0 | cfa-8 | cfa-16" },
        { "ld ra, 8(sp)", { 0x60a2 }, "x8+0 | cfa-8 | cfa-16" },
        { "ld s0, 0(sp)", { 0x6402 } },
        { "addi sp, sp, 16", { 0x0141 } },
        { "ret", { 0x8082 }, BEGIN },
    };

    check_code(insn, G_N_ELEMENTS(insn), f_alone);
}

/* The instruction behind a BUG() belongs to a path without frame. */
TEST(behind_a_trap, "/cfi-riscv64/behind-a-trap")
{
    static const Insn insn[] = {
        { "addi sp, sp, -16", { 0x1141 } },
        { "sd ra, 8(sp)", { 0xe406 } },
        { "sd s0, 0(sp)", { 0xe022 } },
        { "addi s0, sp, 16", { 0x0800 } },
        { "bnez a0, 9", { 0xe509 } },
        { "ld ra, 8(sp)", { 0x60a2 } },
        { "ld s0, 0(sp)", { 0x6402 } },
        { "addi sp, sp, 16", { 0x0141 } },
        { "j 10", { 0xa011 }, BEGIN },
        { "ebreak", { 0x9002 }, "x8+0 | cfa-8 | cfa-16" },
        { "li a0, 0", { 0x4501 }, BEGIN },
        { "ret", { 0x8082 } },
    };

    check_code(insn, G_N_ELEMENTS(insn), f_alone);
}

/* It changes to another stack. It goes on behind a symbol. */
TEST(other_stack, "/cfi-riscv64/other-stack")
{
    static const Insn insn[] = {
        { "addi sp, sp, -16", { 0x1141 } },
        { "sd ra, 8(sp)", { 0xe406 } },
        { "sd s0, 0(sp)", { 0xe022 } },
        { "addi s0, sp, 16", { 0x0800 }, "x2+16 | cfa-8 | cfa-16" },
        { "add sp, t0, t1", { 0x8133, 0x0062 } },
        { "jalr a1", { 0x9582 }, "x8+0 | cfa-8 | cfa-16 | cfa S" },
        { "addi sp, s0, -16", { 0x0113, 0xff04 } },
        { "ld ra, 8(sp)", { 0x60a2 } },
        { "ld s0, 0(sp)", { 0x6402 } },
        { "addi sp, sp, 16", { 0x0141 }, "x2+16 | cfa-8 | same | cfa S" },
        { "ret", { 0x8082 } },
    };
    static const Symbol symbol[SYMBOLS] = {
        { "f", 0 }, { "inside", 4 },
    };

    check_code(insn, G_N_ELEMENTS(insn), symbol);
}

/* ---- entries and ends --------------------------------------------------- */

TEST(exceptions, "/cfi-riscv64/exceptions")
{
    static const char live[] = "x2+0 | in x4417 | same | same S";
    static const char saved[] = "x2+0 | cfa | cfa+64 | cfa+16 S";
    static const Insn insn[] = {
        { "csrrw tp, sscratch, tp", { 0x1273, 0x1402 }, live },
        { "bnez tp, 13", { 0x1b63, 0x0002 } },
        { "csrr tp, sscratch", { 0x2273, 0x1400 } },
        { "sd sp, 16(tp)", { 0x3823, 0x0022 } },
        { "addi sp, sp, -288", { 0x712d },
          "x2+0 | in x4417 | same | at x4+16 S" },
        { "srli sp, sp, 14", { 0x5113, 0x00e1 } },
        { "ld sp, 16(tp)", { 0x3103, 0x0102 } },
        { "sd sp, 24(tp)", { 0x3c23, 0x0022 }, live },
        { "ld sp, 16(tp)", { 0x3103, 0x0102 } },
        { "addi sp, sp, -288", { 0x712d } },
        { "sd ra, 8(sp)", { 0xe406 }, "x2+0 | in x4417 | same | at x4+24 S" },
        { "sd s0, 64(sp)", { 0xe0a2 } },
        { "ld s0, 24(tp)", { 0x3403, 0x0182 },
          "x2+0 | in x4417 | cfa+64 | at x4+24 S" },
        { "csrr s2, sepc", { 0x2973, 0x1410 } },
        { "sd s0, 16(sp)", { 0xe822 } },
        { "sd s2, 0(sp)", { 0xe04a } },
        { "jalr a1", { 0x9582 }, saved },
        { "j 28", { 0xa009 }, saved },
        { "ld s0, 256(sp)", { 0x6412 }, saved },
        { "ld ra, 8(sp)", { 0x60a2 } },
        { "ld sp, 16(sp)", { 0x6142 }, saved },
        { "sret", { 0x0073, 0x1020 }, live },
    };
    static const Symbol symbol[SYMBOLS] = {
        { "handle_exception", 0 },
        { "ret_from_exception", 18 },
        { "ret_from_exception_end", 22 },
    };

    check_code(insn, G_N_ELEMENTS(insn), symbol);
}

TEST(switches, "/cfi-riscv64/switches")
{
    static const Insn insn[] = {
        { "sd ra, 0(a3)", { 0xb023, 0x0016 } },
        { "sd sp, 8(a3)", { 0xb423, 0x0026 } },
        { "sd s0, 16(a3)", { 0xea80 }, BEGIN },
        { "csrr s0, sstatus", { 0x2473, 0x1000 }, "x2+0 | in x1 | at x13+16" },
        { "sd s0, 392(a3)", { 0xb423, 0x1886 } },
        { "ld s0, 392(a4)", { 0x3403, 0x1887 } },
        { "ld ra, 0(a4)", { 0x3083, 0x0007 }, "x2+0 | in x1 | at x13+16" },
        { "ld sp, 8(a4)", { 0x3103, 0x0087 }, "x14+8 * | in x1 | at x14+16" },
        { "ld s0, 16(a4)", { 0x6b00 }, "x2+0 | in x1 | at x14+16" },
        { "ret", { 0x8082 }, BEGIN },
    };
    static const Symbol symbol[SYMBOLS] = {
        { "__switch_to", 0 },
    };

    check_code(insn, G_N_ELEMENTS(insn), symbol);
}

TEST(ends, "/cfi-riscv64/ends")
{
    static const Insn insn[] = {
        { "addi sp, sp, -16", { 0x1141 }, "x2+0 | none | same" },
        { "jalr s0", { 0x9402 }, "x2+16 | none | same" },
        { "j 0", { 0xbff5 } },
        { "nop, up to the next function", { 0x0001 } },
        { "addi sp, sp, -16", { 0x1141 }, "x2+0 | none | same" },
        { "ret", { 0x8082 }, "x2+16 | none | same" },
    };
    static const Symbol symbol[SYMBOLS] = {
        { "ret_from_fork", 0 }, { "smp_callin", 4 }, { "next", 6 },
    };

    check_code(insn, G_N_ELEMENTS(insn), symbol);
}

/* Code of the start is freed, and other things are there. */
TEST(freed_code, "/cfi-riscv64/freed-code")
{
    static const uint16_t word[] = { 0x1141, 0xe406, 0x9402, 0xa001 };
    static const Code code = { word, G_N_ELEMENTS(word), { { "f", 0 } } };
    g_autoptr(Reader) r = open_code(&code, INIT);
    g_autofree char *text = said(r, INIT + 2);

    g_assert_cmpstr(text, ==, "x8+0 | cfa-8 | cfa-16");
}

/* Random code ends the work, and the file can be read. */
TEST(random_code, "/cfi-riscv64/random-code")
{
    enum { N = 4096 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(20261126);
    g_autofree uint16_t *word = g_new(uint16_t, N);
    const Code code = { word, N, { { "f", 0 }, { "handle_exception", 1000 },
                                   { "__switch_to", 2001 } } };

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < N; i++) {
            word[i] = g_rand_int(rand);
        }
        {
            g_autoptr(Reader) r = open_code(&code, TEXT);

            for (unsigned i = 0; i < N; i += 7) {
                g_autofree Dwarf_Frame *frame = NULL;

                g_assert_cmpint(dwarf_cfi_addrframe(r->cfi, TEXT + 2 * i,
                                                    &frame), ==, 0);
            }
        }
    }
}
