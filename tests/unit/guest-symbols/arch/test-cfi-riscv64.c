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

/* Code at TEXT, whose symbols are at halfwords; the last one is the end. */
typedef struct Code {
    const uint16_t *word;
    size_t n;
    struct { const char *name; unsigned at; } symbol[4];
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

#define ASSERT_SAID(r, at, text) do { \
        g_autofree char *said_ = said(r, TEXT + 2 * (at)); \
        g_assert_cmpstr(said_, ==, text); \
    } while (0)

#define BEGIN   "x2+0 | in x1 | same"

/* ---- functions ---------------------------------------------------------- */

TEST(usual_function, "/cfi-riscv64/usual-function")
{
    static const uint16_t word[] = {
        0xc911,         /*  0: beqz a0, out */
        0x7179,         /*  1: addi sp, sp, -48 */
        0xf406,         /*  2: sd ra, 40(sp) */
        0xf022,         /*  3: sd s0, 32(sp) */
        0x1800,         /*  4: addi s0, sp, 48 */
        0x9582,         /*  5: jalr a1 */
        0x70a2,         /*  6: ld ra, 40(sp) */
        0x7402,         /*  7: ld s0, 32(sp) */
        0x6145,         /*  8: addi sp, sp, 48 */
        0x8082,         /*  9: ret */
        0x5529,         /* 10: out: li a0, -22 */
        0x8082,         /* 11: ret */
    };
    static const Code code = { word, G_N_ELEMENTS(word), { { "f", 0 } } };
    g_autoptr(Reader) r = open_code(&code, TEXT);

    ASSERT_SAID(r, 0, BEGIN);
    ASSERT_SAID(r, 1, BEGIN);
    ASSERT_SAID(r, 2, "x2+48 | in x1 | same");
    ASSERT_SAID(r, 3, "x2+48 | cfa-8 | same");
    ASSERT_SAID(r, 4, "x2+48 | cfa-8 | cfa-16");
    ASSERT_SAID(r, 5, "x8+0 | cfa-8 | cfa-16");
    ASSERT_SAID(r, 6, "x8+0 | cfa-8 | cfa-16");
    ASSERT_SAID(r, 7, "x8+0 | cfa-8 | cfa-16");
    ASSERT_SAID(r, 8, "x2+48 | cfa-8 | same");
    ASSERT_SAID(r, 9, BEGIN);
    ASSERT_SAID(r, 10, BEGIN);
    ASSERT_SAID(r, 11, BEGIN);
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
    static const uint16_t word[] = {
        0x1141,         /* 0: addi sp, sp, -16 */
        0xe422,         /* 1: sd s0, 8(sp) */
        0x0800,         /* 2: addi s0, sp, 16 */
        0x0001,         /* 3: nop */
        0x6422,         /* 4: ld s0, 8(sp) */
        0x0141,         /* 5: addi sp, sp, 16 */
        0x8082,         /* 6: ret */
    };
    static const Code code = { word, G_N_ELEMENTS(word), { { "f", 0 } } };
    g_autoptr(Reader) r = open_code(&code, TEXT);

    ASSERT_SAID(r, 2, "x2+16 | in x1 | cfa-8");
    ASSERT_SAID(r, 3, "x8+0 | in x1 | cfa-8");
    ASSERT_SAID(r, 5, "x2+16 | in x1 | same");
    ASSERT_SAID(r, 6, BEGIN);
}

/* sp moves by a number that is not known. What is behind the jump table has the
 * frame of the function. */
TEST(variable_frame, "/cfi-riscv64/variable-frame")
{
    static const uint16_t word[] = {
        0x7119,                 /*  0: addi sp, sp, -128 */
        0xe0a2,                 /*  1: sd s0, 64(sp) */
        0xe486,                 /*  2: sd ra, 72(sp) */
        0x0880,                 /*  3: addi s0, sp, 80 */
        0x0133, 0x40f1,         /*  4: sub sp, sp, a5 */
        0x8782,                 /*  6: jr a5 */
        0x0001,                 /*  7: nop */
        0x0113, 0xfb04,         /*  8: addi sp, s0, -80 */
        0x60a6,                 /* 10: ld ra, 72(sp) */
        0x6406,                 /* 11: ld s0, 64(sp) */
        0x6109,                 /* 12: addi sp, sp, 128 */
        0x8082,                 /* 13: ret */
    };
    static const Code code = { word, G_N_ELEMENTS(word), { { "f", 0 } } };
    g_autoptr(Reader) r = open_code(&code, TEXT);

    ASSERT_SAID(r, 3, "x2+128 | cfa-56 | cfa-64");
    ASSERT_SAID(r, 4, "x8+48 | cfa-56 | cfa-64");
    ASSERT_SAID(r, 6, "x8+48 | cfa-56 | cfa-64");
    ASSERT_SAID(r, 7, "x8+48 | cfa-56 | cfa-64");
    ASSERT_SAID(r, 11, "x8+48 | cfa-56 | cfa-64");
    ASSERT_SAID(r, 12, "x2+128 | cfa-56 | same");
    ASSERT_SAID(r, 13, BEGIN);
}

/* In the body ra is loaded as a value. */
TEST(own_return_address, "/cfi-riscv64/own-return-address")
{
    static const uint16_t word[] = {
        0x1141,         /*  0: addi sp, sp, -16 */
        0xe406,         /*  1: sd ra, 8(sp) */
        0xe022,         /*  2: sd s0, 0(sp) */
        0x0800,         /*  3: addi s0, sp, 16 */
        0x60a2,         /*  4: ld ra, 8(sp) */
        0x8506,         /*  5: mv a0, ra */
        0x9582,         /*  6: jalr a1 */
        0x60a2,         /*  7: ld ra, 8(sp) */
        0x6402,         /*  8: ld s0, 0(sp) */
        0x0141,         /*  9: addi sp, sp, 16 */
        0x8082,         /* 10: ret */
    };
    static const Code code = { word, G_N_ELEMENTS(word), { { "f", 0 } } };
    g_autoptr(Reader) r = open_code(&code, TEXT);

    ASSERT_SAID(r, 6, "x8+0 | cfa-8 | cfa-16");
    ASSERT_SAID(r, 7, "x8+0 | cfa-8 | cfa-16");
    ASSERT_SAID(r, 10, BEGIN);
}

/* The instruction behind a BUG() belongs to a path without frame. */
TEST(behind_a_trap, "/cfi-riscv64/behind-a-trap")
{
    static const uint16_t word[] = {
        0x1141,         /*  0: addi sp, sp, -16 */
        0xe406,         /*  1: sd ra, 8(sp) */
        0xe022,         /*  2: sd s0, 0(sp) */
        0x0800,         /*  3: addi s0, sp, 16 */
        0xe509,         /*  4: bnez a0, 9 */
        0x60a2,         /*  5: ld ra, 8(sp) */
        0x6402,         /*  6: ld s0, 0(sp) */
        0x0141,         /*  7: addi sp, sp, 16 */
        0xa011,         /*  8: j 10 */
        0x9002,         /*  9: ebreak */
        0x4501,         /* 10: li a0, 0 */
        0x8082,         /* 11: ret */
    };
    static const Code code = { word, G_N_ELEMENTS(word), { { "f", 0 } } };
    g_autoptr(Reader) r = open_code(&code, TEXT);

    ASSERT_SAID(r, 8, BEGIN);
    ASSERT_SAID(r, 9, "x8+0 | cfa-8 | cfa-16");
    ASSERT_SAID(r, 10, BEGIN);
}

/* It changes to another stack. It goes on behind a symbol. */
TEST(other_stack, "/cfi-riscv64/other-stack")
{
    static const uint16_t word[] = {
        0x1141,                 /*  0: addi sp, sp, -16 */
        0xe406,                 /*  1: sd ra, 8(sp) */
        0xe022,                 /*  2: sd s0, 0(sp) */
        0x0800,                 /*  3: addi s0, sp, 16 */
        0x8133, 0x0062,         /*  4: add sp, t0, t1 */
        0x9582,                 /*  6: jalr a1 */
        0x0113, 0xff04,         /*  7: addi sp, s0, -16 */
        0x60a2,                 /*  9: ld ra, 8(sp) */
        0x6402,                 /* 10: ld s0, 0(sp) */
        0x0141,                 /* 11: addi sp, sp, 16 */
        0x8082,                 /* 12: ret */
    };
    static const Code code = {
        word, G_N_ELEMENTS(word), { { "f", 0 }, { "inside", 4 } }
    };
    g_autoptr(Reader) r = open_code(&code, TEXT);

    ASSERT_SAID(r, 3, "x2+16 | cfa-8 | cfa-16");
    ASSERT_SAID(r, 6, "x8+0 | cfa-8 | cfa-16 | cfa S");
    ASSERT_SAID(r, 11, "x2+16 | cfa-8 | same | cfa S");
}

/* ---- entries and ends --------------------------------------------------- */

TEST(exceptions, "/cfi-riscv64/exceptions")
{
    static const uint16_t word[] = {
        0x1273, 0x1402,         /*  0: csrrw tp, sscratch, tp */
        0x1b63, 0x0002,         /*  2: bnez tp, 13 */
        0x2273, 0x1400,         /*  4: csrr tp, sscratch */
        0x3823, 0x0022,         /*  6: sd sp, 16(tp) */
        0x712d,                 /*  8: addi sp, sp, -288 */
        0x5113, 0x00e1,         /*  9: srli sp, sp, 14 */
        0x3103, 0x0102,         /* 11: ld sp, 16(tp) */
        0x3c23, 0x0022,         /* 13: sd sp, 24(tp) */
        0x3103, 0x0102,         /* 15: ld sp, 16(tp) */
        0x712d,                 /* 17: addi sp, sp, -288 */
        0xe406,                 /* 18: sd ra, 8(sp) */
        0xe0a2,                 /* 19: sd s0, 64(sp) */
        0x3403, 0x0182,         /* 20: ld s0, 24(tp) */
        0x2973, 0x1410,         /* 22: csrr s2, sepc */
        0xe822,                 /* 24: sd s0, 16(sp) */
        0xe04a,                 /* 25: sd s2, 0(sp) */
        0x9582,                 /* 26: jalr a1 */
        0xa009,                 /* 27: j 28 */
        0x6412,                 /* 28: ld s0, 256(sp) */
        0x60a2,                 /* 29: ld ra, 8(sp) */
        0x6142,                 /* 30: ld sp, 16(sp) */
        0x0073, 0x1020,         /* 31: sret */
    };
    static const Code code = {
        word, G_N_ELEMENTS(word),
        { { "handle_exception", 0 }, { "ret_from_exception", 28 },
          { "ret_from_exception_end", 33 } }
    };
    static const char live[] = "x2+0 | in x4417 | same | same S";
    static const char saved[] = "x2+0 | cfa | cfa+64 | cfa+16 S";
    g_autoptr(Reader) r = open_code(&code, TEXT);

    ASSERT_SAID(r, 0, live);
    ASSERT_SAID(r, 8, "x2+0 | in x4417 | same | at x4+16 S");
    ASSERT_SAID(r, 13, live);
    ASSERT_SAID(r, 18, "x2+0 | in x4417 | same | at x4+24 S");
    ASSERT_SAID(r, 20, "x2+0 | in x4417 | cfa+64 | at x4+24 S");
    ASSERT_SAID(r, 26, saved);
    ASSERT_SAID(r, 27, saved);
    ASSERT_SAID(r, 28, saved);
    ASSERT_SAID(r, 30, saved);
    ASSERT_SAID(r, 31, live);
}

TEST(switches, "/cfi-riscv64/switches")
{
    static const uint16_t word[] = {
        0xb023, 0x0016,         /*  0: sd ra, 0(a3) */
        0xb423, 0x0026,         /*  2: sd sp, 8(a3) */
        0xea80,                 /*  4: sd s0, 16(a3) */
        0x2473, 0x1000,         /*  5: csrr s0, sstatus */
        0xb423, 0x1886,         /*  7: sd s0, 392(a3) */
        0x3403, 0x1887,         /*  9: ld s0, 392(a4) */
        0x3083, 0x0007,         /* 11: ld ra, 0(a4) */
        0x3103, 0x0087,         /* 13: ld sp, 8(a4) */
        0x6b00,                 /* 15: ld s0, 16(a4) */
        0x8082,                 /* 16: ret */
    };
    static const Code code = {
        word, G_N_ELEMENTS(word), { { "__switch_to", 0 } }
    };
    g_autoptr(Reader) r = open_code(&code, TEXT);

    ASSERT_SAID(r, 4, BEGIN);
    ASSERT_SAID(r, 5, "x2+0 | in x1 | at x13+16");
    ASSERT_SAID(r, 11, "x2+0 | in x1 | at x13+16");
    ASSERT_SAID(r, 13, "x14+8 * | in x1 | at x14+16");
    ASSERT_SAID(r, 15, "x2+0 | in x1 | at x14+16");
    ASSERT_SAID(r, 16, BEGIN);
}

TEST(ends, "/cfi-riscv64/ends")
{
    static const uint16_t word[] = {
        0x1141,         /* 0: addi sp, sp, -16 */
        0x9402,         /* 1: jalr s0 */
        0xbff5,         /* 2: j 0 */
        0x0001,         /* 3: nop, up to the next function */
        0x1141,         /* 4: addi sp, sp, -16 */
        0x8082,         /* 5: ret */
    };
    static const Code code = {
        word, G_N_ELEMENTS(word),
        { { "ret_from_fork", 0 }, { "smp_callin", 4 }, { "next", 6 } }
    };
    g_autoptr(Reader) r = open_code(&code, TEXT);

    ASSERT_SAID(r, 0, "x2+0 | none | same");
    ASSERT_SAID(r, 1, "x2+16 | none | same");
    ASSERT_SAID(r, 4, "x2+0 | none | same");
    ASSERT_SAID(r, 5, "x2+16 | none | same");
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
