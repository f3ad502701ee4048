/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The instruction of an access in ka error: read from the guest's memory, and
 * unknown if its code is gone. Needs capstone.
 */
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define KERNEL \
    "symbol va=ffffffff81000000 name=_stext\n" \
    "symbol va=ffffffff81000100 name=use_it\n" \
    "symbol va=ffffffff82000000 name=_etext\n"
#define MODULE_OF(name) \
    "module va=ffffffffc0001000 name=" name " base=ffffffffc0000000 " \
    "size=1000\nmodsym va=ffffffffc0000100 name=" name "_use\n"
#define MODULE MODULE_OF("driver")
/* movq 0x18(%rdi), %rax */
#define CODE(va) "word va=" va " value=90909018478b48\n"
#define FREED \
    "alloc va=ffff888000100000 size=40\nfree va=ffff888000100000\n"
#define ACCESS(pc, flags) \
    "access va=ffff888000100018 size=8 flags=" flags " stack=" pc "\n"
#define KNOWN " insn[movq 0x18(%rdi), %rax] operand=0x18(%rdi)"
#define UNKNOWN " insn[-] operand=-"

static void expect(const char *script, const char *command, const char *part)
{
    g_autoptr(TestWorld) w = test_world_new(script);
    g_autofree char *text = test_world_run(w, command, NULL);

    g_test_message("%s", text);
    g_assert_nonnull(strstr(text, part));
}

TEST(read_from_memory, "/instructions/memory")
{
    expect(KERNEL FREED ACCESS("ffffffff81000110", "0") "vm n=1\n"
           CODE("ffffffff81000110"), "error -w", KNOWN);
    expect(KERNEL FREED ACCESS("ffffffff81000110", "0") "vm n=1\n"
           CODE("ffffffff81000110"), "error -j",
           "\"error_insn\":\"movq 0x18(%rdi), %rax\","
           "\"error_operand\":\"0x18(%rdi)\"");
}

TEST(unknown_without_memory, "/instructions/unknown")
{
    expect(KERNEL FREED ACCESS("ffffffff81000110", "0"), "error -w", UNKNOWN);
    expect(KERNEL FREED ACCESS("ffffffff81000110", "0") "vm n=1\n", "error -w",
           UNKNOWN);
    expect(KERNEL FREED ACCESS("ffffffff81000110", "0"), "error -j",
           "\"error_insn\":null,\"error_operand\":null");
}

/* The entry of a function that is checked for all its bytes is not the
 * instruction that accesses them. */
TEST(none_of_a_range, "/instructions/range")
{
    g_autoptr(TestWorld) w = test_world_new(
        KERNEL FREED ACCESS("ffffffff81000100", "2") "vm n=1\n"
        CODE("ffffffff81000100"));
    g_autofree char *text = test_world_run(w, "error -w", NULL);

    g_assert_nonnull(strstr(text, "access=r8"));
    g_assert_null(strstr(text, "insn["));
}

TEST(code_of_a_module, "/instructions/module")
{
    expect(KERNEL MODULE "load va=ffffffffc0001000\n" FREED
           ACCESS("ffffffffc0000110", "0") "vm n=1\n"
           CODE("ffffffffc0000110"), "error -w", KNOWN);
    expect(KERNEL MODULE "load va=ffffffffc0001000\n" FREED
           ACCESS("ffffffffc0000110", "0") "unload va=ffffffffc0001000\n"
           "vm n=1\n" CODE("ffffffffc0000110"), "error -w", UNKNOWN);
    /* Another module lies there now. */
    expect(KERNEL MODULE "load va=ffffffffc0001000\n" FREED
           ACCESS("ffffffffc0000110", "0") "unload va=ffffffffc0001000\n"
           MODULE_OF("other") "load va=ffffffffc0001000\nvm n=1\n"
           CODE("ffffffffc0000110"), "error -w", UNKNOWN);
}
