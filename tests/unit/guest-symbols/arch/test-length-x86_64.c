/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lengths of x86-64 instructions: each form of operands and immediates. All
 * code of a kernel is compared by test-kernel-operands.c.
 */
#include "guest-symbols/arch/x86-64/length-x86_64.h"
#include "tests/lib/test-main.h"

#include <string.h>

typedef struct Row {
    const char *bytes;
    size_t n;
} Row;
#define ROW(bytes)  { bytes, sizeof(bytes) - 1 }

static const Row rows[] = {
    ROW("\x90"), ROW("\xc3"), ROW("\x55"), ROW("\x0f\x0b"),
    ROW("\x48\x89\xe5"), ROW("\x8b\x45\xf0"), ROW("\x8b\x80\1\2\3\4"),
    ROW("\x8b\x05\1\2\3\4"), ROW("\x8b\x04\x24"), ROW("\x8b\x44\x24\x08"),
    ROW("\x8b\x04\xc5\1\2\3\4"), ROW("\x8b\x84\x24\1\2\3\4"),
    ROW("\x83\xc0\1"), ROW("\x81\xc0\1\2\3\4"), ROW("\x66\x81\xc0\1\2"),
    ROW("\x48\x81\xc0\1\2\3\4"), ROW("\x66\x48\x81\xc0\1\2\3\4"),
    ROW("\xb8\1\2\3\4"), ROW("\x66\xb8\1\2"),
    ROW("\x48\xb8\1\2\3\4\5\6\7\x8"), ROW("\xa1\1\2\3\4\5\6\7\x8"),
    ROW("\x67\xa1\1\2\3\4"), ROW("\xe8\1\2\3\4"), ROW("\x66\xe9\1\2\3\4"),
    ROW("\xeb\1"), ROW("\x0f\x84\1\2\3\4"), ROW("\xf6\xc0\1"),
    ROW("\xf6\xd0"), ROW("\xf7\xc0\1\2\3\4"), ROW("\xf7\xf1"),
    ROW("\xc2\1\2"), ROW("\xc8\1\2\3"), ROW("\x0f\xba\xe0\1"),
    ROW("\x0f\x38\xf6\xc0"), ROW("\x66\x0f\x3a\x0f\xc1\1"),
    ROW("\xf3\x0f\x1e\xfa"), ROW("\x0f\x1f\x44\0\0"),
    ROW("\x65\x48\x8b\x04\x25\1\2\3\4"), ROW("\xf0\x0f\xb1\x0f"),
    ROW("\xc5\xf8\x77"), ROW("\xc5\xf9\x70\xc0\1"),
    ROW("\xc4\xe2\x79\x18\xc0"), ROW("\xc4\xe3\x79\x0f\xc0\1"),
    ROW("\x62\xf1\x7c\x48\x28\xc1"),
};

TEST(lengths, "/length-x86_64/lengths")
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const uint8_t *code = (const uint8_t *)rows[i].bytes;

        g_assert_cmpuint(gs_x86_64_length(code, rows[i].n), ==, rows[i].n);
        g_assert_cmpuint(gs_x86_64_length(code, rows[i].n - 1), ==, 0);
    }
}

/* What is no instruction, or longer than fifteen bytes. */
TEST(unknown, "/length-x86_64/unknown")
{
    static const uint8_t invalid[] = { 0x06, 0, 0, 0, 0, 0, 0 };
    uint8_t prefixes[20];

    memset(prefixes, 0x66, sizeof(prefixes));
    g_assert_cmpuint(gs_x86_64_length(invalid, sizeof(invalid)), ==, 0);
    g_assert_cmpuint(gs_x86_64_length(prefixes, sizeof(prefixes)), ==, 0);
    g_assert_cmpuint(gs_x86_64_length(prefixes, 0), ==, 0);
}
