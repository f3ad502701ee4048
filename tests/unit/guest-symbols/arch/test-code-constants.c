/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Constants in instructions, as assemblers encode what the kernel's
 * asm/runtime-const.h of each architecture writes.
 */
#include "guest-symbols/arch/arch.h"
#include "tests/lib/test-main.h"

#include <string.h>

/* A piece of code; @len bytes, the rest of the buffer is 0xff. */
typedef struct Row {
    const char *name;
    const GsArch *arch;
    const char *code;
    size_t len;
    bool is;
    uint64_t value;
} Row;

#define ROW(name, arch, code, ...) \
    { name, &gs_arch_##arch, code, sizeof(code) - 1, __VA_ARGS__ }

static const Row rows[] = {
    ROW("movabs to rcx", x86_64, "\x48\xb9\x08\x63\x77\x04\x80\x88\xff\xff",
        true, 0xffff888004776308ull),
    ROW("movabs to r15", x86_64, "\x49\xbf\x08\x63\x77\x04\x80\x88\xff\xff",
        true, 0xffff888004776308ull),
    ROW("mov imm32", x86_64, "\x48\xc7\xc1\x08\x63\x77\x04\x80\x88\xff"),
    ROW("without REX.W", x86_64, "\x40\xb9\x08\x63\x77\x04\x80\x88\xff\xff"),
    /* movz x3, #0x6308; movk #0x477, #0x80, #0xffff, shifted by 16, 32, 48 */
    ROW("movz and movk", arm64,
        "\x03\x61\x8c\xd2" "\xe3\x8e\xa0\xf2" "\x03\x10\xc0\xf2"
        "\xe3\xff\xff\xf2", true, 0xffff008004776308ull),
    ROW("movk of another register", arm64,
        "\x03\x61\x8c\xd2" "\xe3\x8e\xa0\xf2" "\x04\x10\xc0\xf2"
        "\xe3\xff\xff\xf2"),
    ROW("no movz", arm64,
        "\x03\x61\x8c\xf2" "\xe3\x8e\xa0\xf2" "\x03\x10\xc0\xf2"
        "\xe3\xff\xff\xf2"),
    ROW("movk twice", arm64,
        "\x03\x61\x8c\xd2" "\xe3\x8e\xa0\xf2" "\xe3\x8e\xa0\xf2"
        "\xe3\xff\xff\xf2"),
    /* lui a5,0x2346; lui a4,0xff600; addiw a5,a5,-0x800; addiw a4,a4,8 */
    ROW("lui and addiw", riscv64,
        "\xb7\x67\x34\x02" "\x37\x07\x60\xff" "\x9b\x87\x07\x80"
        "\x1b\x07\x87\x00", true, 0xff60000802345800ull),
    /* lui a5,0x2346; lui a4,0xff600; addiw a5,a5,-0x800; nop */
    ROW("addiw is a nop", riscv64,
        "\xb7\x67\x34\x02" "\x37\x07\x60\xff" "\x9b\x87\x07\x80"
        "\x13\x00\x00\x00", true, 0xff60000002345800ull),
    /* nop; lui a4,0xff600; addiw a5,zero,64; nop */
    ROW("lui is a nop", riscv64,
        "\x13\x00\x00\x00" "\x37\x07\x60\xff" "\x9b\x07\x00\x04"
        "\x13\x00\x00\x00", true, 0xff60000000000040ull),
    /* lui a5,0x2346; lui a5,0xff600; addiw a5,a5,-0x800; addiw a5,a5,8 */
    ROW("one register", riscv64,
        "\xb7\x67\x34\x02" "\xb7\x07\x60\xff" "\x9b\x87\x07\x80"
        "\x9b\x87\x87\x00"),
    /* lui a5,0x2346; lui a4,0xff600; addiw a3,a5,-0x800; addiw a4,a4,8 */
    ROW("sum in a third register", riscv64,
        "\xb7\x67\x34\x02" "\x37\x07\x60\xff" "\x9b\x86\x07\x80"
        "\x1b\x07\x87\x00"),
    ROW("nops", riscv64,
        "\x13\x00\x00\x00" "\x13\x00\x00\x00" "\x13\x00\x00\x00"
        "\x13\x00\x00\x00"),
    ROW("nothing", x86_64, ""), ROW("nothing", arm64, ""),
    ROW("nothing", riscv64, ""),
};

TEST(test_rows, "/code-constants/rows")
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        const Row *r = &rows[i];
        uint8_t code[GS_CODE_CONSTANT_MAX];
        uint64_t value = 1;

        g_test_message("%s", r->name);
        memset(code, 0xff, sizeof(code));
        memcpy(code, r->code, r->len);
        g_assert_cmpint(r->arch->code_constant(code, &value), ==, r->is);
        g_assert_cmphex(value, ==, r->is ? r->value : 1);
    }
}
