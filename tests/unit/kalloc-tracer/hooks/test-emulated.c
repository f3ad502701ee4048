/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions on which breakpoints are planted under KVM. Oracle: the decoder
 * of QEMU, which emulates them, taken from its patch (qemu-code-hooks.py).
 *
 * One test compares all opcodes with all prefixes, another the instructions
 * on which breakpoints are planted in real kernels: KA_TEST_KERNELS is
 * <vmlinuz>[:<vmlinuz>...]. --verbose prints the tables of docs/kvm.md.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/arch/x86-64/length-x86_64.h"
#include "kalloc-tracer/hooks/breakpoints.h"

#include <inttypes.h>
#include <string.h>

#define le64_to_cpu(v)  GUINT64_FROM_LE(v)
#include "qemu-decode.h"

#define INSN_MAX        15
#define TAIL_DEPTH      3               /* as in seam-kvm.c */

/* Return true if QEMU emulates an instruction of @len bytes. */
static bool emulates(const uint8_t *insn, size_t len, KVMHookInsn *out)
{
    *out = (KVMHookInsn) { 0 };
    return decode(out, insn, INSN_MAX) && out->len == len;
}

/* ---- all opcodes --------------------------------------------------------- */

static const uint8_t prefixes[][3] = {
    { 0 }, { 0x65 }, { 0x66 }, { 0x65, 0x66 }, { 0x66, 0x65 }, { 0x66, 0x66 },
    { 0x2e }, { 0x3e }, { 0xf2 }, { 0xf3 }, { 0xf0 }, { 0x64 },
};

typedef struct Count {
    unsigned all, planted, wrong;
} Count;

static void check(Count *c, const uint8_t *insn)
{
    size_t len = gs_x86_64_length(insn, INSN_MAX);
    GsBreakpoint kind = len ? gs_breakpoint_x86_64(insn, len) :
                              GS_BREAKPOINT_NEVER;
    KVMHookInsn i;

    c->all++;
    if (kind != GS_BREAKPOINT_PLAIN && kind != GS_BREAKPOINT_RETURN) {
        return;
    }
    c->planted++;
    if (!emulates(insn, len, &i) ||
        (kind == GS_BREAKPOINT_RETURN) != (i.op == OP_RET)) {
        if (c->wrong++ < 20) {
            g_test_message("%02x %02x %02x %02x %02x: %zu bytes, kind %u, "
                           "QEMU: %u bytes, op %u", insn[0], insn[1], insn[2],
                           insn[3], insn[4], len, (unsigned)kind, i.len, i.op);
        }
    }
}

/* Each ModRM byte, and two SIB bytes: without an index and with one. */
static void check_opcode(Count *c, const uint8_t *prefix, unsigned rex,
                         uint8_t opcode)
{
    uint8_t insn[INSN_MAX] = { 0 };
    size_t n = strnlen((const char *)prefix, 3);

    memcpy(insn, prefix, n);
    if (rex) {
        insn[n++] = rex;
    }
    insn[n++] = opcode;
    for (unsigned modrm = 0; modrm < 512; modrm++) {
        insn[n] = modrm;
        insn[n + 1] = modrm < 256 ? 0x24 : 0x08;
        check(c, insn);
    }
}

TEST(opcodes, "/emulated/opcodes")
{
    Count c = { 0 };

    for (size_t p = 0; p < G_N_ELEMENTS(prefixes); p++) {
        for (unsigned rex = 0; rex < 17; rex++) {
            for (unsigned opcode = 0; opcode < 256; opcode++) {
                check_opcode(&c, prefixes[p], rex ? 0x40 + rex - 1 : 0,
                             opcode);
            }
        }
    }
    g_test_message("%u instructions, %u are planted", c.all, c.planted);
    g_assert_cmpuint(c.planted, >, 100000);
    g_assert_cmpuint(c.wrong, ==, 0);
}

/* ---- real kernels -------------------------------------------------------- */

static const char *const names[] = {
    [OP_NOP] = "nop", [OP_PUSH] = "push", [OP_POP] = "pop", [OP_RET] = "ret",
    [OP_JMP] = "jmp", [OP_CALL] = "call", [OP_LEA] = "lea",
    [OP_LOAD] = "mov to register", [OP_LOAD_SIGNED] = "movslq",
    [OP_STORE] = "mov from register", [OP_MOV_IMM] = "mov immediate",
    [OP_XOR] = "xor", [OP_TEST] = "test", [OP_TEST_IMM] = "test immediate",
    [OP_ADD_IMM] = "add", [OP_AND_IMM] = "and", [OP_SUB_IMM] = "sub",
    [OP_CMP_IMM] = "cmp",
};

/* @unseen: functions without a breakpoint; @refused: breakpoints that QEMU
 * refuses; @entries, @returns: by operation */
typedef struct Kernel {
    const GsKernel *k;
    KtCodeReader reader;
    unsigned functions, unseen, refused;
    unsigned entries[G_N_ELEMENTS(names)], returns[G_N_ELEMENTS(names)];
} Kernel;

static bool read_image(void *k, uint64_t va, void *buf, size_t len)
{
    return gs_kernel_read_image(k, va, buf, len);
}

/* Return the operation at @va; OP_NOP if QEMU refuses it. */
static unsigned operation(Kernel *c, uint64_t va)
{
    uint8_t code[INSN_MAX];
    KVMHookInsn i;

    if (!read_image((void *)c->k, va, code, sizeof(code)) ||
        !emulates(code, gs_x86_64_length(code, sizeof(code)), &i)) {
        g_test_message("0x%" PRIx64 " is refused", va);
        c->refused++;
        return OP_NOP;
    }
    return i.op;
}

static void add_names(GString *line, const unsigned *count)
{
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (count[i]) {
            g_string_append_printf(line, " %s %u", names[i], count[i]);
        }
    }
}

/* Return how many returns a function and those it ends in have. */
static unsigned check_returns(Kernel *c, const KtBreakpoints *b,
                              unsigned depth)
{
    unsigned n = b->n_returns;

    for (unsigned i = 0; i < b->n_returns; i++) {
        c->returns[operation(c, b->returns[i])]++;
    }
    for (unsigned i = 0; i < b->n_tails && depth < TAIL_DEPTH; i++) {
        KtBreakpoints tail;

        if (kt_breakpoints_find(c->k, &c->reader, b->tails[i], &tail)) {
            n += check_returns(c, &tail, depth + 1);
        }
    }
    return n;
}

static void check_hook(Kernel *c, const char *name, uint64_t va)
{
    KtBreakpoints b;
    unsigned op, n;

    g_assert_true(kt_breakpoints_find(c->k, &c->reader, va, &b));
    if (!b.entry) {
        g_test_message("%s: no instruction for the entry", name);
        c->unseen++;
        return;
    }
    op = operation(c, b.entry);
    c->entries[op]++;
    c->functions++;
    n = check_returns(c, &b, 0);
    g_test_message("| `%s` | %s at +%u | %u%s |", name, names[op],
                   (unsigned)(b.entry - va), n, b.incomplete ? " or more" : "");
}

static void check_hooks(Kernel *c, const KtHookTable *table, const KtHooks *h)
{
    const KtHookSite *site;

    for (unsigned i = 1; i <= kt_hook_table_count(table); i++) {
        KtHookId id = { i };
        uint64_t va = kt_hooks_va(h, id);

        if (va && !kt_role_does(kt_hooks_row(h, id).role, KT_DOES_UNHOOKED)) {
            check_hook(c, kt_hooks_symbol(h, id), va);
        }
    }
    for (unsigned i = 0; (site = kt_hooks_site(h, i)); i++) {
        c->entries[operation(c, site->va)]++;
    }
}

/* Check the hooks of some sets; return how many functions are not seen. */
static unsigned check_sets(GsKernel *k, unsigned sets, const char *what)
{
    g_autoptr(KtHookTable) table = kt_hook_table_new();
    g_autoptr(KtHooks) hooks = kt_hooks_resolve(table, k, sets);
    g_autoptr(GString) line = g_string_new(NULL);
    Kernel c = { k, { read_image, k }, 0 };

    check_hooks(&c, table, hooks);
    g_string_append_printf(line, "%s: %u functions, %u not seen; entries:",
                           what, c.functions, c.unseen);
    add_names(line, c.entries);
    g_string_append(line, "; returns:");
    add_names(line, c.returns);
    g_test_message("%s", line->str);
    g_assert_cmpuint(c.functions, >, 30);
    g_assert_cmpuint(c.refused, ==, 0);
    return c.unseen;
}

static void check_kernel(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = gs_kernel_open(path, &err);

    g_assert_no_error(err);
    g_test_message("%s", path);
    check_sets(k, KT_HOOKS_LOG | KT_HOOKS_PAGES, "with pages=on");
    g_assert_cmpuint(check_sets(k, KT_HOOKS_LOG, "by default"), ==, 0);
}

TEST(kernels, "/emulated/kernels")
{
    const char *list = g_getenv("KA_TEST_KERNELS");
    g_auto(GStrv) paths = g_strsplit(list ? list : "", ":", -1);

    if (!paths[0]) {
        g_test_skip("no kernels");
        return;
    }
    for (size_t i = 0; paths[i]; i++) {
        check_kernel(paths[i]);
    }
}
