/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC tables become call frame information that says the same. Oracle: libdw
 * reads the file, and says for each address where the CFA and the caller's
 * registers are.
 */
#include "guest-symbols/export/cfi-orc.h"
#include "guest-symbols/export/elf-file.h"
#include "tests/lib/test-main.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <inttypes.h>
#include <string.h>

#define TEXT    0xffffffff81000000ull
#define SLIDE   0x12000000ull

enum { RBX = 3, RBP = 6, RSP = 7, RIP = 16 };

/* A file and its reader. */
typedef struct Reader {
    GByteArray *frames, *file;
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_CFI *cfi;
    GsOrcCies cies;
    GsCfi w;
} Reader;

static void begin(Reader *r)
{
    r->frames = g_byte_array_new();
    r->w = gs_cfi(r->frames, 1);
    r->cies = gs_orc_cies(&r->w);
}

static void open_file(Reader *r)
{
    g_autoptr(GsElfFile) f = gs_elf_file_new(EM_X86_64);

    gs_elf_file_add_section(f, ".text", TEXT, TEXT + (1u << 20), true);
    r->file = gs_elf_file_end(f, r->frames);
    g_assert_nonnull(r->file);
    elf_version(EV_CURRENT);
    r->elf = elf_memory((char *)r->file->data, r->file->len);
    g_assert_nonnull(r->elf);
    r->dwarf = dwarf_begin_elf(r->elf, DWARF_C_READ, NULL);
    g_assert_nonnull(r->dwarf);
    r->cfi = dwarf_getcfi(r->dwarf);
    g_assert_nonnull(r->cfi);
}

static void close_file(Reader *r)
{
    dwarf_end(r->dwarf);
    elf_end(r->elf);
    g_byte_array_unref(r->file);
    g_byte_array_unref(r->frames);
}

/* ---- what libdw says ---------------------------------------------------- */

static void put_ops(GString *s, const Dwarf_Op *op, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = op[i].number;

        if (op[i].atom >= DW_OP_breg0 && op[i].atom <= DW_OP_breg31) {
            g_string_append_printf(s, "r%d%+" PRId64 " ",
                                   op[i].atom - DW_OP_breg0, v);
        } else if (op[i].atom == DW_OP_bregx) {
            g_string_append_printf(s, "r%" PRId64 "%+" PRId64 " ", v,
                                   (int64_t)op[i].number2);
        } else if (op[i].atom == DW_OP_call_frame_cfa) {
            g_string_append(s, "cfa ");
        } else if (op[i].atom == DW_OP_plus_uconst ||
                   op[i].atom == DW_OP_consts) {
            g_string_append_printf(s, "%+" PRId64 " ", v);
        } else {
            g_string_append(s, op[i].atom == DW_OP_deref ? "* " :
                            op[i].atom == DW_OP_plus ? "" :
                            op[i].atom == DW_OP_stack_value ? "= " : "? ");
        }
    }
    g_string_truncate(s, s->len ? s->len - 1 : 0);
}

static char *place_of(Dwarf_Frame *frame, int reg)
{
    GString *s = g_string_new(NULL);
    Dwarf_Op mem[3], *op;
    size_t n;

    g_assert_cmpint(dwarf_frame_register(frame, reg, mem, &op, &n), ==, 0);
    if (n) {
        put_ops(s, op, n);
    } else {
        g_string_append(s, op ? "undefined" : "same");
    }
    return g_string_free(s, FALSE);
}

static char *cfa_of(Dwarf_Frame *frame)
{
    GString *s = g_string_new(NULL);
    Dwarf_Op *op;
    size_t n;

    g_assert_cmpint(dwarf_frame_cfa(frame, &op, &n), ==, 0);
    put_ops(s, op, n);
    return g_string_free(s, FALSE);
}

/* "CFA | rip | rbp | rsp | rbx" at @pc, and "S" in a signal frame. An
 * expression begins with the CFA. */
static char *said(Reader *r, uint64_t pc)
{
    g_autofree Dwarf_Frame *frame = NULL;
    g_autofree char *cfa = NULL, *ip = NULL, *bp = NULL, *sp = NULL, *bx = NULL;
    bool signal;

    if (dwarf_cfi_addrframe(r->cfi, pc, &frame)) {
        return g_strdup("nothing");
    }
    g_assert_cmpint(dwarf_frame_info(frame, NULL, NULL, &signal), ==, RIP);
    cfa = cfa_of(frame);
    ip = place_of(frame, RIP);
    bp = place_of(frame, RBP);
    sp = place_of(frame, RSP);
    bx = place_of(frame, RBX);
    return g_strdup_printf("%s | %s | %s | %s | %s%s", cfa, ip, bp, sp, bx,
                           signal ? " S" : "");
}

#define ASSERT_SAID(r, pc, text) do { \
        g_autofree char *said_ = said(r, pc); \
        g_assert_cmpstr(said_, ==, text); \
    } while (0)

/* ---- tables ------------------------------------------------------------- */

static GsOrcRule call(GsOrcSp sp, int sp_off, GsOrcBp bp, int bp_off)
{
    return (GsOrcRule) { .type = GS_ORC_CALL, .sp = sp, .sp_off = sp_off,
                         .bp = bp, .bp_off = bp_off };
}

/* Make and open the file of a table with the rule rule[i] at TEXT + i * 0x10.
 * Functions begin at the @n_start addresses @start. */
static void open_code(Reader *r, const GsOrcRule *rule, size_t n,
                      const uint64_t *start, size_t n_start, GsRange freed)
{
    g_autofree uint64_t *va = g_new(uint64_t, n);
    g_autoptr(GsOrcTable) table = NULL;
    const GsRange text = { TEXT + SLIDE, TEXT + SLIDE + n * 0x10 };

    for (size_t i = 0; i < n; i++) {
        va[i] = TEXT + i * 0x10;
    }
    table = gs_orc_table_new_rules(va, rule, n);
    g_assert_nonnull(table);
    begin(r);
    gs_orc_cfi(&r->w, &r->cies, &(GsOrcCode) { table, SLIDE, freed }, text,
               start, n_start);
    open_file(r);
}

static void open_rules(Reader *r, const GsOrcRule *rule, size_t n,
                       const uint64_t *start, size_t n_start)
{
    open_code(r, rule, n, start, n_start, (GsRange) { 0 });
}

#define AT(i)   (TEXT + SLIDE + (i) * 0x10)
#define USUAL   "undefined"

TEST(frames_of_calls, "/cfi-orc/calls")
{
    const GsOrcRule rule[] = {
        call(GS_ORC_SP, 8, GS_ORC_BP_KEEP, 0),
        call(GS_ORC_SP, 16, GS_ORC_BP_AT_CFA, -16),
        call(GS_ORC_SP_BP, 16, GS_ORC_BP_AT_CFA, -16),
        call(GS_ORC_SP, 8, GS_ORC_BP_KEEP, 0),
        call(GS_ORC_SP, 0x1000, GS_ORC_BP_AT_BP, -8),
        call(GS_ORC_SP_AT_BP_OFF, -8, GS_ORC_BP_AT_BP, 0),
        call(GS_ORC_SP, -24, GS_ORC_BP_AT_CFA, 12),
    };
    Reader r = { 0 };

    open_rules(&r, rule, G_N_ELEMENTS(rule), NULL, 0);
    g_assert_cmpuint(r.w.n, ==, 1);
    ASSERT_SAID(&r, AT(0) - 1, "nothing");
    ASSERT_SAID(&r, AT(0), "r7+8 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(1) - 1, "r7+8 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(1), "r7+16 | cfa -8 | cfa -16 | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(2), "r6+16 | cfa -8 | cfa -16 | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(3), "r7+8 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(4), "r7+4096 | cfa -8 | cfa r6-8 | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(5), "r6-8 * | cfa -8 | cfa r6+0 | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(6), "r7-24 | cfa -8 | undefined | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(7), "nothing");
    close_file(&r);
}

/* The caller's registers are those of struct pt_regs, or live. Its pc is no
 * return address. */
TEST(frames_of_interrupts, "/cfi-orc/interrupts")
{
    const GsOrcRule rule[] = {
        { .type = GS_ORC_REGS_PARTIAL, .sp = GS_ORC_SP, .sp_off = 8 },
        { .type = GS_ORC_REGS, .sp = GS_ORC_SP, .sp_off = 0, .exact = 1 },
        call(GS_ORC_SP, 8, GS_ORC_BP_KEEP, 0),
        { .type = GS_ORC_REGS, .sp = GS_ORC_SP_AT_SP_OFF, .sp_off = 16 },
        { .type = GS_ORC_REGS_PARTIAL, .sp = GS_ORC_SP, .sp_off = 0 },
        { .type = GS_ORC_END },
        { .type = GS_ORC_UNDEFINED },
        call(GS_ORC_SP, 8, GS_ORC_BP_KEEP, 0),
    };
    Reader r = { 0 };

    open_rules(&r, rule, G_N_ELEMENTS(rule), NULL, 0);
    ASSERT_SAID(&r, AT(0), "r7+8 | cfa | same | cfa +24 | same S");
    ASSERT_SAID(&r, AT(1), "r7+0 | cfa +128 | cfa +32 | cfa +152 | cfa +40 S");
    ASSERT_SAID(&r, AT(2), "r7+8 | cfa -8 | same | cfa = | " USUAL " S");
    ASSERT_SAID(&r, AT(3),
                "r7+16 * | cfa +128 | cfa +32 | cfa +152 | cfa +40 S");
    ASSERT_SAID(&r, AT(4), "r7+0 | cfa | same | cfa +24 | same S");
    ASSERT_SAID(&r, AT(5), "r7+8 | undefined | same | cfa = | " USUAL " S");
    ASSERT_SAID(&r, AT(6), "r7+8 | undefined | same | cfa = | " USUAL " S");
    ASSERT_SAID(&r, AT(7), "r7+8 | cfa -8 | same | cfa = | " USUAL " S");
    close_file(&r);
}

/* Each function has its own table, and only those that need it are signal
 * frames. What lies before the first function has one, too. */
TEST(functions, "/cfi-orc/functions")
{
    const uint64_t start[] = { AT(0) - 0x100, AT(1), AT(2), AT(2) + 8, AT(9) };
    const GsOrcRule rule[] = {
        call(GS_ORC_SP, 16, GS_ORC_BP_KEEP, 0),
        call(GS_ORC_SP_AT_SP, 8, GS_ORC_BP_KEEP, 0),
        call(GS_ORC_SP, 24, GS_ORC_BP_KEEP, 0),
        call(GS_ORC_SP_REG, 56, GS_ORC_BP_KEEP, 0),
    };
    Reader r = { 0 };

    open_rules(&r, rule, G_N_ELEMENTS(rule), start, G_N_ELEMENTS(start));
    g_assert_cmpuint(r.w.n, ==, 4);
    ASSERT_SAID(&r, AT(0), "r7+16 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(1), "r7+0 * +8 | cfa -8 | same | cfa = | " USUAL " S");
    ASSERT_SAID(&r, AT(2), "r7+24 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(2) + 8, "r7+24 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(3), "r10+0 | cfa -8 | same | cfa = | " USUAL);
    close_file(&r);
}

/* The return address of a call that does not return has the rule of the call,
 * though no code is there. Between functions the rules end where ORC says. */
TEST(behind_calls, "/cfi-orc/behind-calls")
{
    const uint64_t start[] = { AT(0), AT(2), AT(4) };
    const GsOrcRule rule[] = {
        call(GS_ORC_SP, 16, GS_ORC_BP_KEEP, 0),
        { .type = GS_ORC_UNDEFINED },
        call(GS_ORC_SP, 24, GS_ORC_BP_KEEP, 0),
        { .type = GS_ORC_END },
        { .type = GS_ORC_UNDEFINED },
    };
    Reader r = { 0 };

    open_rules(&r, rule, G_N_ELEMENTS(rule), start, G_N_ELEMENTS(start));
    ASSERT_SAID(&r, AT(1), "r7+16 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(1) + 1, "r7+8 | undefined | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(3), "r7+8 | undefined | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(4), "r7+8 | undefined | same | cfa = | " USUAL);
    close_file(&r);
}

/* Freed code does not run: there each address is a return address, and has the
 * rule of the call before it. */
TEST(freed_code, "/cfi-orc/freed-code")
{
    const uint64_t start[] = { AT(0), AT(1), AT(3) };
    const GsOrcRule rule[] = {
        call(GS_ORC_SP, 16, GS_ORC_BP_KEEP, 0),
        call(GS_ORC_SP, 24, GS_ORC_BP_KEEP, 0),
        call(GS_ORC_SP, 8, GS_ORC_BP_KEEP, 0),
        call(GS_ORC_SP, 32, GS_ORC_BP_KEEP, 0),
        call(GS_ORC_SP, 40, GS_ORC_BP_KEEP, 0),
    };
    Reader r = { 0 };

    open_code(&r, rule, G_N_ELEMENTS(rule), start, G_N_ELEMENTS(start),
              (GsRange) { AT(1), AT(3) });
    ASSERT_SAID(&r, AT(1), "r7+24 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(2), "r7+24 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(2) + 1, "r7+8 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(3), "r7+32 | cfa -8 | same | cfa = | " USUAL);
    ASSERT_SAID(&r, AT(4), "r7+40 | cfa -8 | same | cfa = | " USUAL);
    close_file(&r);
}

TEST(code_without_orc, "/cfi-orc/without-orc")
{
    const GsRange text = { TEXT, TEXT + 0x100 };
    Reader r = { 0 };

    begin(&r);
    gs_orc_cfi_by_bp(&r.w, &r.cies, text, NULL, 0);
    open_file(&r);
    ASSERT_SAID(&r, TEXT, "r6+16 | cfa -8 | cfa -16 | cfa = | " USUAL);
    ASSERT_SAID(&r, TEXT + 0xff, "r6+16 | cfa -8 | cfa -16 | cfa = | " USUAL);
    ASSERT_SAID(&r, TEXT + 0x100, "nothing");
    close_file(&r);
}

/* ---- random tables ------------------------------------------------------ */

static GsOrcRule random_rule(GRand *rand)
{
    static const GsOrcSp sp[] = {
        GS_ORC_SP, GS_ORC_SP_BP, GS_ORC_SP_AT_SP, GS_ORC_SP_AT_SP_OFF,
        GS_ORC_SP_AT_BP_OFF,
    };
    GsOrcType type = g_rand_int_range(rand, GS_ORC_UNDEFINED,
                                      GS_ORC_REGS_PARTIAL + 1);

    if (type < GS_ORC_CALL) {
        return (GsOrcRule) { .type = type };
    }
    return (GsOrcRule) {
        .type = type, .sp = sp[g_rand_int_range(rand, 0, G_N_ELEMENTS(sp))],
        .sp_off = 8 * g_rand_int_range(rand, 0, 40),
        .bp = g_rand_int_range(rand, GS_ORC_BP_KEEP, GS_ORC_BP_INVALID),
        .bp_off = -8 * g_rand_int_range(rand, 1, 40),
        .exact = type != GS_ORC_CALL,
    };
}

static char *expected_cfa(const GsOrcRule *r)
{
    switch (r->sp) {
    case GS_ORC_SP_BP:
        return g_strdup_printf("r6%+d", r->sp_off);
    case GS_ORC_SP_AT_SP:
        return r->sp_off ? g_strdup_printf("r7+0 * %+d", r->sp_off) :
                           g_strdup("r7+0 *");
    case GS_ORC_SP_AT_SP_OFF:
        return g_strdup_printf("r7%+d *", r->sp_off);
    case GS_ORC_SP_AT_BP_OFF:
        return g_strdup_printf("r6%+d *", r->sp_off);
    default:
        return g_strdup_printf("r7%+d", r->type < GS_ORC_CALL ? 8 : r->sp_off);
    }
}

static char *expected(const GsOrcRule *r, bool signal)
{
    bool regs = r->type == GS_ORC_REGS, partial = r->type > GS_ORC_REGS;
    g_autofree char *cfa = expected_cfa(r);
    g_autofree char *bp =
        r->type < GS_ORC_CALL ? g_strdup("same") :
        r->bp == GS_ORC_BP_AT_CFA ? g_strdup_printf("cfa %+d", r->bp_off) :
        r->bp == GS_ORC_BP_AT_BP ? g_strdup_printf("cfa r6%+d", r->bp_off) :
        g_strdup(regs ? "cfa +32" : "same");

    return g_strdup_printf("%s | %s | %s | %s | %s%s", cfa,
        r->type < GS_ORC_CALL ? "undefined" :
        regs ? "cfa +128" : partial ? "cfa" : "cfa -8", bp,
        regs ? "cfa +152" : partial ? "cfa +24" : "cfa =",
        regs ? "cfa +40" : partial ? "same" : "undefined",
        signal ? " S" : "");
}

TEST(random_tables, "/cfi-orc/random")
{
    enum { N = 500 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(35);
    g_autofree GsOrcRule *rule = g_new(GsOrcRule, N);
    bool signal = false;
    Reader r = { 0 };

    for (unsigned i = 0; i < N; i++) {
        rule[i] = random_rule(rand);
        signal |= rule[i].type >= GS_ORC_REGS || rule[i].sp == GS_ORC_SP_AT_SP;
    }
    open_rules(&r, rule, N, NULL, 0);
    for (unsigned i = 0; i < N; i++) {
        g_autofree char *want = expected(&rule[i], signal);

        ASSERT_SAID(&r, AT(i) + 1 + i % 15, want);
    }
    close_file(&r);
}
