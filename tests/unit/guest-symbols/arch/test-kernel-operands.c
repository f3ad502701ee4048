/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory operands of all code of real kernels, compared with what a
 * disassembler says: KA_TEST_KERNELS and KA_TEST_ARCH_KERNELS are
 * <vmlinuz>[:<vmlinuz>...]. The oracle of x86-64 is capstone; that of arm64 and
 * riscv64 is objdump, since capstone 4 knows neither atomics of ARMv8.1 nor
 * riscv64.
 *
 * The lengths of x86-64 instructions are those of capstone.
 *
 * An access that the decoder denies fails the test. One that it suspects where
 * there is none only costs time: there may be few.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/image/image.h"
#include "guest-symbols/arch/x86-64/length-x86_64.h"
#include "guest-symbols/kernel/kernel.h"

#include <capstone/capstone.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOWN 20

/*
 * @unknown: instructions that the disassembler does not know
 * @denied: accesses that the decoder denied
 * @needless: answers "yes" where no object is accessed
 * @lengths: lengths that differ
 */
typedef struct Count {
    const GsArch *arch;
    uint64_t insns, touching, unknown, denied, needless, lengths;
} Count;

static void compare(Count *c, uint64_t va, const uint8_t *bytes, size_t len,
                    const char *text, bool expected)
{
    bool is = c->arch->may_touch_objects(bytes, len);

    c->insns++;
    c->touching += expected;
    c->denied += expected && !is;
    c->needless += is && !expected;
    if (is != expected && c->denied + c->needless <= SHOWN) {
        g_test_message("%" PRIx64 " %s: decoder %d, disassembler %d", va, text,
                       is, expected);
    }
}

/* ---- x86-64: capstone ---------------------------------------------------- */

/* Instructions with a memory operand that is not accessed. */
static bool x86_only_names(const cs_insn *i)
{
    static const char *const names[] = {
        "lea", "nop", "prefetch", "clflush", "invlpg", "ud1", "ud0",
    };

    for (size_t n = 0; n < G_N_ELEMENTS(names); n++) {
        if (g_str_has_prefix(i->mnemonic, names[n])) {
            return true;
        }
    }
    return false;
}

static bool x86_touches(const cs_insn *i)
{
    const cs_x86 *x = &i->detail->x86;

    if (x86_only_names(i)) {
        return false;
    }
    for (int n = 0; n < x->op_count; n++) {
        const x86_op_mem *m = &x->operands[n].mem;

        if (x->operands[n].type != X86_OP_MEM || m->segment == X86_REG_GS) {
            continue;
        }
        if (m->base != X86_REG_RSP && m->base != X86_REG_RIP &&
            (m->base != X86_REG_INVALID || m->index != X86_REG_INVALID)) {
            return true;
        }
    }
    return i->id == X86_INS_XLATB || i->id == X86_INS_MASKMOVDQU ||
           (x->opcode[0] & 0xfc) == 0xa0;
}

/* Capstone does not know that ud1, ud2b in version 4, has a ModRM byte. */
static void compare_length(Count *c, const cs_insn *i)
{
    size_t ours = gs_x86_64_length(i->bytes, i->size);

    if (!strcmp(i->mnemonic, "ud2b") || !strcmp(i->mnemonic, "ud1")) {
        return;
    }
    c->lengths += ours != i->size;
    if (ours != i->size && c->lengths <= SHOWN) {
        g_test_message("%" PRIx64 " %s: length %zu, disassembler %u",
                       i->address, i->mnemonic, ours, i->size);
    }
}

/* What is behind an instruction that capstone does not know is left out. */
static void by_capstone(Count *c, csh cs, uint64_t va, const uint8_t *code,
                        size_t len)
{
    cs_insn *i = cs_malloc(cs);

    while (cs_disasm_iter(cs, &code, &len, &va, i)) {
        compare(c, i->address, i->bytes, i->size, i->mnemonic, x86_touches(i));
        compare_length(c, i);
    }
    c->unknown += len > 0;
    cs_free(i, 1);
}

/* ---- arm64, riscv64: objdump --------------------------------------------- */

static bool starts_with(const char *text, const char *const *with, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (g_str_has_prefix(text, with[i])) {
            return true;
        }
    }
    return false;
}

/* @text: "ldr<TAB>x0, [x1, #8]"; an index of a vector is in brackets, too. */
static bool arm64_touches(const char *text)
{
    static const char *const bases[] = { "[sp", "[x29" };
    const char *bracket = strchr(text, '[');

    while (bracket && g_ascii_isdigit(bracket[1])) {
        bracket = strchr(bracket + 1, '[');
    }
    if (g_str_has_prefix(text, "prf") || !bracket) {
        return g_str_has_prefix(text, "dc\tzva") ||
               g_str_has_prefix(text, "dc\tgzva");
    }
    return !starts_with(bracket, bases, G_N_ELEMENTS(bases));
}

/* @text: "ld<TAB>a0,-24(s0)" */
static bool riscv64_touches(const char *text)
{
    static const char *const none[] = {
        "j", "prefetch", "cbo.clean", "cbo.flush", "cbo.inval"
    };
    static const char *const bases[] = { "(sp)", "(gp)", "(tp)" };
    const char *paren = strchr(text, '(');

    return paren && !starts_with(text, none, G_N_ELEMENTS(none)) &&
           !starts_with(paren, bases, G_N_ELEMENTS(bases)) &&
           !(g_str_has_prefix(paren, "(s0)") && strchr(text, '-'));
}

/* @line: "ffffffff80000000:<TAB>00050513<SPACES><TAB>mv<TAB>a0,a0" */
static void objdump_line(Count *c, const char *line)
{
    g_auto(GStrv) part = g_strsplit(g_strchug((char *)line), "\t", 3);
    size_t digits;
    uint8_t bytes[4];
    guint64 word;

    if (g_strv_length(part) < 3 || !strchr(part[0], ':')) {
        return;
    }
    digits = strspn(part[1], "0123456789abcdef");
    if (part[2][0] == '.' || digits > 8) {
        c->unknown++;
        return;
    }
    word = g_ascii_strtoull(part[1], NULL, 16);
    for (size_t i = 0; i < digits / 2; i++) {
        bytes[i] = word >> 8 * i;
    }
    compare(c, g_ascii_strtoull(part[0], NULL, 16), bytes, digits / 2, part[2],
            c->arch == &gs_arch_arm64 ? arm64_touches(part[2])
                                         : riscv64_touches(part[2]));
}

static void by_objdump(Count *c, uint64_t va, const char *path)
{
    bool arm64 = c->arch == &gs_arch_arm64;
    g_autofree char *vma = g_strdup_printf("--adjust-vma=0x%" PRIx64, va);
    const char *argv[] = {
        arm64 ? "aarch64-linux-gnu-objdump" : "riscv64-linux-gnu-objdump",
        "-D", "-z", "-b", "binary", "-m", arm64 ? "aarch64" : "riscv:rv64",
        vma, path, NULL
    };
    g_autoptr(GError) err = NULL;
    char line[512];
    int out, status;
    GPid pid;
    FILE *f;

    g_spawn_async_with_pipes(NULL, (char **)argv, NULL,
                             G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD,
                             NULL, NULL, &pid, NULL, &out, NULL, &err);
    g_assert_no_error(err);
    f = fdopen(out, "r");
    while (fgets(line, sizeof(line), f)) {
        objdump_line(c, g_strchomp(line));
    }
    fclose(f);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
}

/* ---- kernels ------------------------------------------------------------- */

typedef struct Walk {
    Count *count;
    const GsKernel *k;
    csh cs;
    uint64_t last;
} Walk;

/* Of symbols with the same address, the first one stands for all. */
static bool of_function(const GsSymbol *first, void *opaque)
{
    Walk *w = opaque;
    g_autofree uint8_t *code = NULL;
    GsSymbol sym;

    if (first->va == w->last || !gs_kernel_is_code(w->k, first) ||
        !gs_kernel_symbolize(w->k, first->va, &sym) || sym.size > 1u << 20) {
        return true;
    }
    w->last = first->va;
    code = g_malloc(sym.size);
    if (gs_image_read(w->k->image, sym.va, code, sym.size)) {
        by_capstone(w->count, w->cs, sym.va, code, sym.size);
    }
    return true;
}

static void of_functions(Count *c, const GsKernel *k)
{
    Walk w = { .count = c, .k = k };

    g_assert_cmpint(cs_open(CS_ARCH_X86, CS_MODE_64, &w.cs), ==, CS_ERR_OK);
    cs_option(w.cs, CS_OPT_DETAIL, CS_OPT_ON);
    gs_kernel_foreach_symbol(k, of_function, &w);
    cs_close(&w.cs);
}

static void of_sections(Count *c, const GsKernel *k)
{
    GsSymbol from, to;
    g_autofree uint8_t *code = NULL;
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("ka-code-XXXXXX", &path, NULL);

    g_assert_true(gs_kernel_lookup(k, "_stext", &from) &&
                  gs_kernel_lookup(k, "_etext", &to));
    code = g_malloc(to.va - from.va);
    g_assert_true(gs_image_read(k->image, from.va, code, to.va - from.va));
    g_assert_cmpint(write(fd, code, to.va - from.va), ==, to.va - from.va);
    close(fd);
    by_objdump(c, from.va, path);
    unlink(path);
}

static void check_kernel(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = gs_kernel_open(path, &err);
    Count c = { 0 };

    g_assert_no_error(err);
    c.arch = k->arch;
    if (k->arch == &gs_arch_x86_64) {
        of_functions(&c, k);
    } else {
        of_sections(&c, k);
    }
    g_test_message("%s: %" PRIu64 " instructions, %" PRIu64 " touch objects, "
                   "%" PRIu64 " unknown, %" PRIu64 " denied, %" PRIu64
                   " needless", path, c.insns, c.touching, c.unknown, c.denied,
                   c.needless);
    g_assert_cmpuint(c.insns, >, 1000000);
    g_assert_cmpuint(c.touching, >, c.insns / 20);
    g_assert_cmpuint(c.unknown, <, c.insns / 50);
    g_assert_cmpuint(c.denied, ==, 0);
    g_assert_cmpuint(c.lengths, ==, 0);
    g_assert_cmpuint(c.needless, <, c.insns / 1000);
}

static void kernels(gconstpointer variable)
{
    const char *list = g_getenv(variable);
    g_auto(GStrv) paths = g_strsplit(list ? list : "", ":", -1);

    if (!paths[0]) {
        g_test_skip("no kernels");
        return;
    }
    for (size_t i = 0; paths[i]; i++) {
        check_kernel(paths[i]);
    }
}

TEST_WITH(kernels, "/operand/kernels", "KA_TEST_KERNELS")
TEST_WITH(kernels, "/operand/other-architectures", "KA_TEST_ARCH_KERNELS")
