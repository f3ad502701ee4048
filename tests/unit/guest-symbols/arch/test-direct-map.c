/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The direct map: the layouts of real kernels are among the guesses. The
 * expected addresses are those of Documentation/arch/arm64/memory.rst, of
 * Documentation/arch/riscv/vm-layout.rst, and of running kernels.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/gs.h"

#include <string.h>

#define VARIABLES   0xffffffff82000000ull

static uint64_t variables[8];

static bool read_variable(void *opaque, uint64_t va, void *buf, size_t len)
{
    if (va < VARIABLES || va + len > VARIABLES + sizeof(variables)) {
        return false;
    }
    memcpy(buf, (const char *)variables + (va - VARIABLES), len);
    return true;
}

static const GsMem mem = { .read = read_variable };

static bool is_among(const GsDirectMapAt *at, uint64_t page_offset,
                     uint64_t vmemmap)
{
    GsDirectMap guess[GS_DIRECT_MAP_MAX];
    bool certain;
    unsigned n = gs_direct_map_guess(at, &mem, guess, &certain);

    g_assert_cmpuint(n, <=, GS_DIRECT_MAP_MAX);
    for (unsigned i = 0; i < n; i++) {
        if (guess[i].page_offset == page_offset &&
            guess[i].vmemmap == vmemmap) {
            return true;
        }
    }
    return false;
}

TEST(x86_64_tells, "/linear/x86-64-tells")
{
    const GsDirectMapAt at = {
        .arch = &gs_arch_x86_64,
        .page_shift = 12,
        .struct_page = 64,
        .vmemmap_base = VARIABLES,
        .page_offset_base = VARIABLES + 8,
    };
    GsDirectMap guess[GS_DIRECT_MAP_MAX];
    bool certain;

    variables[0] = 0xffffea0000000000;
    variables[1] = 0xffff888000000000;
    g_assert_cmpuint(gs_direct_map_guess(&at, &mem, guess, &certain), ==, 1);
    g_assert_true(certain);
    g_assert_cmphex(guess[0].vmemmap, ==, variables[0]);
    g_assert_cmphex(guess[0].page_offset, ==, variables[1]);
}

static const GsDirectMapAt arm64 = {
    .arch = &gs_arch_arm64,
    .page_shift = 12,
    .struct_page = 64,
    .memstart_addr = VARIABLES,
};

TEST(arm64_of_each_time, "/linear/arm64-of-each-time")
{
    GsDirectMapAt at = arm64;

    variables[0] = 0;
    /* 4K pages, 48 bits: 6.9, 5.11, 5.4; then 52 bits */
    g_assert_true(is_among(&at, 0xffff000000000000, 0xfffffdffc0000000));
    g_assert_true(is_among(&at, 0xffff000000000000, 0xfffffc0000000000));
    g_assert_true(is_among(&at, 0xffff000000000000, 0xfffffdffffe00000));
    g_assert_true(is_among(&at, 0xfff0000000000000, 0xffffc1ffc0000000));
    /* 16K pages, 47 bits, 52 bits */
    at.page_shift = 14;
    g_assert_true(is_among(&at, 0xffff800000000000, 0xffffffbfc0000000));
    g_assert_true(is_among(&at, 0xfff0000000000000, 0xfffff03fc0000000));
}

TEST(arm64_counts_from_page_frame_0, "/linear/arm64-counts-from-page-frame-0")
{
    const GsDirectMapAt at = arm64;

    variables[0] = 0x40000000;
    g_assert_true(is_among(&at, 0xffff000000000000 - 0x40000000,
                           0xfffffdffc0000000 - 0x40000 * 64));
}

/* A kernel for 52 bits. The layouts of 48 bits have the same struct pages, but
 * page frame 0 would not be in the kernel's half. */
TEST(arm64_52_bits_on_a_cpu_of_48, "/linear/arm64-52-bits-on-a-cpu-of-48")
{
    const GsDirectMapAt at = arm64;
    GsDirectMap guess[GS_DIRECT_MAP_MAX];
    bool certain;

    variables[0] = 0x40000000 - (0xffff000000000000 - 0xfff0000000000000);
    g_assert_cmpuint(gs_direct_map_guess(&at, &mem, guess, &certain), ==, 3);
    g_assert_cmphex(guess[0].page_offset, ==,
                    0xffff000000000000 - 0x40000000);
    /* VMEMMAP_START is of PAGE_OFFSET for 52 bits. */
    g_assert_cmphex(guess[0].vmemmap + 0x40000 * 64, ==,
                    0xffffc1ffc0000000 +
                        ((0xffff000000000000 - 0xfff0000000000000) >> 12) * 64);
}

TEST(arm64_without_the_start_of_memory,
     "/linear/arm64-without-the-start-of-memory")
{
    const GsDirectMapAt at = {
        .arch = &gs_arch_arm64,
        .page_shift = 12,
        .struct_page = 64,
    };

    g_assert_true(is_among(&at, 0xffff000000000000, 0xfffffc0000000000));
}

static const GsDirectMapAt riscv64 = {
    .arch = &gs_arch_riscv64,
    .page_shift = 12,
    .struct_page = 64,
    .va_pa_offset = VARIABLES,
    .ram_base = VARIABLES + 8,
    .l4 = VARIABLES + 16,
    .l5 = VARIABLES + 24,
};

TEST(riscv64_of_each_depth, "/linear/riscv64-of-each-depth")
{
    const GsDirectMapAt at = riscv64;
    const uint64_t ram = 0x80000000, first = ram / 4096 * 64;

    variables[1] = ram;
    variables[0] = 0xffffffd600000000 - ram;
    g_assert_true(is_among(&at, variables[0], 0xffffffc500000000 - first));
    variables[0] = 0xffffaf8000000000 - ram;
    variables[2] = 1;
    g_assert_true(is_among(&at, variables[0], 0xffff8d8000000000 - first));
    variables[0] = 0xff60000000000000 - ram;
    variables[3] = 1;
    g_assert_true(is_among(&at, variables[0], 0xff1c000000000000 - first));
}

TEST(nothing_before_the_kernel_has_decided,
     "/linear/nothing-before-the-kernel-has-decided")
{
    const GsDirectMapAt at = {
        .arch = &gs_arch_arm64,
        .page_shift = 12,
        .struct_page = 64,
        .memstart_addr = VARIABLES + sizeof(variables),
    };
    GsDirectMap guess[GS_DIRECT_MAP_MAX];
    bool certain;

    g_assert_cmpuint(gs_direct_map_guess(&at, &mem, guess, &certain), ==, 0);
}

/* ---- by a struct page --------------------------------------------------- */

/* Mapped pages; a test sets them. */
static uint64_t mapped[4];

static bool read_mapped(void *opaque, uint64_t va, void *buf, size_t len)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(mapped); i++) {
        if (mapped[i] && va - mapped[i] < 4096) {
            memset(buf, 0, len);
            return true;
        }
    }
    return mem.read(mem.opaque, va, buf, len);
}

static const GsMem with_pages = { .read = read_mapped };

static uint64_t by_page(const GsDirectMapAt *at, uint64_t page)
{
    return gs_direct_map_by_page(at, &with_pages, page);
}

#define PFN     0x42800ull
#define START   0x40000000ull

/* The direct map of 48 bits; that of 52 bits agrees, others have no such
 * page. */
TEST(arm64_by_a_page, "/direct-map/arm64-by-a-page")
{
    const GsDirectMapAt at = arm64;
    const GsDirectMap want = { 0xffff000000000000 - START,
                               0xfffffdffc0000000 - START / 4096 * 64 };
    const uint64_t page = want.vmemmap + PFN * 64;
    const uint64_t frame = want.page_offset + PFN * 4096;
    /* what the frame would be if the memory map began 1 GiB - 2 MiB higher */
    const uint64_t other = frame - ((1ull << 30) - (2ull << 20)) / 64 * 4096;

    variables[0] = START;
    memset(mapped, 0, sizeof(mapped));
    mapped[0] = page & ~4095ull;
    g_assert_cmphex(by_page(&at, page), ==, 0);
    mapped[1] = frame;
    g_assert_cmphex(by_page(&at, page), ==, frame);
    g_assert_cmphex(by_page(&at, page + 8), ==, 0);
    g_assert_cmphex(by_page(&at, 0), ==, 0);
    /* the struct page is not mapped */
    mapped[0] = 0;
    g_assert_cmphex(by_page(&at, page), ==, 0);
    /* two of the possible ones have such a page: with more than 64 GiB */
    mapped[0] = (page + (64ull << 30) / 64) & ~4095ull;
    mapped[1] = frame + (64ull << 30);
    mapped[2] = other + (64ull << 30);
    g_assert_cmphex(by_page(&at, page + (64ull << 30) / 64), ==, 0);
    mapped[2] = 0;
    g_assert_cmphex(by_page(&at, page + (64ull << 30) / 64), ==, mapped[1]);
}

/* Both possible ones are the same one. */
TEST(riscv64_by_a_page, "/direct-map/riscv64-by-a-page")
{
    const GsDirectMapAt at = riscv64;
    const uint64_t ram = 0x80000000, page = 0xff1c000000000000 + 0x100 * 64;

    variables[0] = 0xff60000000000000 - ram;
    variables[1] = ram;
    variables[2] = variables[3] = 1;
    memset(mapped, 0, sizeof(mapped));
    mapped[0] = page & ~4095ull;
    mapped[1] = 0xff60000000000000 + 0x100 * 4096;
    g_assert_cmphex(by_page(&at, page), ==, mapped[1]);
}
