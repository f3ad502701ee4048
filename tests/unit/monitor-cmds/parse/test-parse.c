/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command lines are parsed to arguments: numbers, symbols, ranges and options.
 * Each wrong line is refused with one line.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/lib/events.h"
#include "tests/lib/test-main.h"
#include "monitor-cmds/parse/parse.h"

static const char kernel[] =
    "symbol va=ffffffff81000000 name=_stext\n"
    "symbol va=ffffffff81000100 name=kmalloc\n"
    "symbol va=ffffffff81000200 name=add\n"
    "symbol va=ffffffff81000300 name=deadbeef\n"
    "symbol va=ffffffff81000400 name=init type=t\n"
    "symbol va=ffffffff81000500 name=other\n"
    "symbol va=ffffffff81000600 name=init type=t\n"
    "symbol va=ffffffff81000700 name=kmalloc.cold type=t\n"
    "symbol va=ffffffff81000800 name=_etext\n"
    "symbol va=ffffffff82000000 name=jiffies type=D\n"
    "symbol va=ffffffff82001000 name=_end type=B\n"
    "module va=ffffffffc0100000 name=ext4 base=ffffffffc0000000 size=4000\n"
    "modsym va=ffffffffc0000000 name=init\n"
    "modsym va=ffffffffc0000100 name=ext4_alloc\n";

/* ---- numbers ------------------------------------------------------------- */

TEST(test_hex, "/parse/hex")
{
    uint64_t v;

    g_assert_true(mc_parse_hex("0", &v, NULL) && v == 0);
    g_assert_true(mc_parse_hex("0x1F", &v, NULL) && v == 0x1f);
    g_assert_true(mc_parse_hex("0Xff", &v, NULL) && v == 0xff);
    g_assert_true(mc_parse_hex("ffffffffffffffff", &v, NULL) &&
                  v == UINT64_MAX);
    g_assert_true(mc_parse_hex("0000000000000000000001", &v, NULL) && v == 1);
    g_assert_false(mc_parse_hex("10000000000000000", &v, NULL));
    g_assert_false(mc_parse_hex("", &v, NULL));
    g_assert_false(mc_parse_hex("0x", &v, NULL));
    g_assert_false(mc_parse_hex("12g", &v, NULL));
    g_assert_false(mc_parse_hex("-1", &v, NULL));
    g_assert_false(mc_parse_hex(" 1", &v, NULL));
}

TEST(test_decimal, "/parse/decimal")
{
    uint64_t v;

    g_assert_true(mc_parse_decimal("10", "", &v, NULL) && v == 10);
    g_assert_true(mc_parse_decimal("10us", "us", &v, NULL) && v == 10);
    g_assert_true(mc_parse_decimal("18446744073709551615", "", &v, NULL) &&
                  v == UINT64_MAX);
    g_assert_false(mc_parse_decimal("18446744073709551616", "", &v, NULL));
    g_assert_false(mc_parse_decimal("99999999999999999999", "", &v, NULL));
    g_assert_false(mc_parse_decimal("10us", "", &v, NULL));
    g_assert_false(mc_parse_decimal("10ms", "us", &v, NULL));
    g_assert_false(mc_parse_decimal("us", "us", &v, NULL));
    g_assert_false(mc_parse_decimal("", "", &v, NULL));
}

/* ---- addresses ----------------------------------------------------------- */

static void check_address(TestWorld *w, const char *word, uint64_t va)
{
    g_autoptr(GError) err = NULL;
    uint64_t got = 0;

    mc_parse_address(test_world_context(w), word, &got, &err);
    g_assert_no_error(err);
    g_assert_cmphex(got, ==, va);
}

/* A case with a world @w that has this kernel. */
#define KERNEL_TEST(fn, path) \
    TEST_IN(g_autoptr(TestWorld), TestWorld *w, \
            test_world_new(kernel), fn, path)

KERNEL_TEST(test_address, "/parse/address")
{
    check_address(w, "ffff888000001000", 0xffff888000001000);
    check_address(w, "0xffff888000001000", 0xffff888000001000);
    check_address(w, "ffff888000001000+10", 0xffff888000001010);
    check_address(w, "kmalloc", 0xffffffff81000100);
    check_address(w, "kmalloc+1c", 0xffffffff8100011c);
    check_address(w, "kmalloc+0x1c", 0xffffffff8100011c);
    check_address(w, "kmalloc+0x1c/0x100", 0xffffffff8100011c);
    check_address(w, "jiffies", 0xffffffff82000000);
    check_address(w, "ext4:ext4_alloc", 0xffffffffc0000100);
    check_address(w, "ext4:ext4_alloc+8", 0xffffffffc0000108);
    check_address(w, "ext4_alloc+0x8[ext4]", 0xffffffffc0000108);
    check_address(w, "ext4_alloc", 0xffffffffc0000100);
}

/* Without the VM's memory no page is found. A word that is no number is one of
 * a module, even with these names. */
KERNEL_TEST(test_pages_without_memory, "/parse/pages-without-memory")
{
    static const char *const words[] = { "pfn:1c1d3", "phys:1c1d3a08",
                                         "page:ffffea00007074c0" };

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(GError) err = NULL;
        uint64_t va;

        g_assert_false(mc_parse_address(test_world_context(w), words[i], &va,
                                        &err));
        g_assert_nonnull(strstr(err->message, "without the VM's memory"));
    }
    for (unsigned i = 0; i < 2; i++) {
        g_autoptr(GError) err = NULL;
        uint64_t va;

        g_assert_false(mc_parse_address(test_world_context(w),
                                        i ? "page:ext4_alloc" : "pfn:", &va,
                                        &err));
        g_assert_nonnull(strstr(err->message, i ? "nor a kernel symbol" :
                                                  "an address is"));
    }
}

/* arm64 with KASAN_SW_TAGS */
static const char tagging[] =
    "symbol va=ffff800080000000 name=_stext\n"
    "symbol va=ffff800080000100 name=__primary_switched\n"
    "symbol va=ffff800080000200 name=__hwasan_tag_memory\n"
    "symbol va=ffff800080000300 name=_etext\n"
    "symbol va=ffff800081000000 name=_end type=B\n";

TEST(test_tags, "/parse/tags")
{
    g_autoptr(TestWorld) w = test_world_new(tagging);
    McRange r;

    check_address(w, "2eff800012345678", 0xffff800012345678);
    check_address(w, "0xfff0000012345678", 0xfff0000012345678);
    check_address(w, "2eff800012345678+10", 0xffff800012345688);
    check_address(w, "2e00800012345678", 0x2e00800012345678);
    g_assert_true(mc_parse_range(test_world_context(w),
                                 "2eff800000000000-00ff800000000fff", &r,
                                 NULL));
    g_assert_cmphex(r.lo, ==, 0xffff800000000000);
    g_assert_cmphex(r.hi, ==, 0xffff800000000fff);
}

KERNEL_TEST(test_hex_or_symbol, "/parse/hex-or-symbol")
{
    check_address(w, "add", 0xffffffff81000200);
    check_address(w, "0xadd", 0xadd);
    check_address(w, "ADD", 0xadd);
    check_address(w, "00000add", 0xadd);
    check_address(w, "dad", 0xdad);
    check_address(w, "deadbeef", 0xdeadbeef);
    check_address(w, "add+0", 0xffffffff81000200);
}

KERNEL_TEST(test_ranges, "/parse/range")
{
    const McContext *ctx = test_world_context(w);
    McRange r;

    g_assert_true(mc_parse_range(ctx, "10-20", &r, NULL));
    g_assert_true(r.lo == 0x10 && r.hi == 0x20);
    g_assert_true(mc_parse_range(ctx, "10", &r, NULL));
    g_assert_true(r.lo == 0x10 && r.hi == 0x10);
    g_assert_true(mc_parse_range(ctx, "0-ffffffffffffffff", &r, NULL));
    g_assert_true(r.lo == 0 && r.hi == UINT64_MAX);
    g_assert_true(mc_parse_range(ctx, "kmalloc-add+10", &r, NULL));
    g_assert_true(r.lo == 0xffffffff81000100 && r.hi == 0xffffffff81000210);
    /* of addresses, a symbol is its address: not its function */
    g_assert_true(mc_parse_range(ctx, "kmalloc", &r, NULL));
    g_assert_true(r.lo == r.hi);
    g_assert_false(mc_parse_range(ctx, "20-10", &r, NULL));
    g_assert_false(mc_parse_range(ctx, "10-", &r, NULL));
    g_assert_false(mc_parse_range(ctx, "-10", &r, NULL));
    g_assert_false(mc_parse_range(ctx, "-", &r, NULL));
    g_assert_false(mc_parse_range(ctx, "10-20-30", &r, NULL));
    g_assert_false(mc_parse_range(ctx, "", &r, NULL));
}

static GArray *code(TestWorld *w, const char *word)
{
    GArray *out = g_array_new(FALSE, FALSE, sizeof(McCode));
    g_autoptr(GError) err = NULL;

    mc_parse_code(test_world_context(w), word, out, &err);
    g_assert_no_error(err);
    return out;
}

static void check_code(TestWorld *w, const char *word, const McCode *expected,
                       unsigned n)
{
    g_autoptr(GArray) got = code(w, word);

    g_assert_cmpuint(got->len, ==, n);
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmphex(g_array_index(got, McCode, i).lo, ==,
                        expected[i].lo);
        g_assert_cmphex(g_array_index(got, McCode, i).hi, ==,
                        expected[i].hi);
    }
}

KERNEL_TEST(test_function, "/parse/symbol-is-its-function")
{
    const McCode cold[] = {
        { 0xffffffff81000100, 0xffffffff81000200 },
        { 0xffffffff81000700, 0xffffffff81000800 },
    };
    const McCode three[] = {
        { 0xffffffff81000400, 0xffffffff81000500 },
        { 0xffffffff81000600, 0xffffffff81000700 },
        { 0xffffffffc0000000, 0xffffffffc0000100 },
    };
    const McCode one = { 0xffffffff81000408, 0xffffffff81000408 };
    /* up to where a call returns that is the last instruction */
    const McCode joined = { 0xffffffff81000100, 0xffffffff81000300 };

    check_code(w, "kmalloc", cold, 2);
    check_code(w, "init", three, 3);
    check_code(w, "ext4:init", &three[2], 1);
    check_code(w, "init+8", &one, 1);
    check_code(w, "kmalloc-add", &joined, 1);
}

KERNEL_TEST(test_data_is_no_function, "/parse/data-is-no-function")
{
    g_autoptr(GArray) out = g_array_new(FALSE, FALSE, sizeof(McCode));
    g_autoptr(GError) err = NULL;

    g_assert_false(mc_parse_code(test_world_context(w), "jiffies", out,
                                 &err));
    g_assert_error(err, MC_ERROR, MC_ERROR_UNKNOWN);
}

/* ---- lines --------------------------------------------------------------- */

KERNEL_TEST(test_options, "/parse/options-anywhere")
{
    g_auto(McArgs) args;
    g_autoptr(GError) err = NULL;

    mc_args_init(&args, test_world_context(w));
    mc_parse(&args, " -sj\t1000-1fff -n 5  10-20 --since 7us --until 9"
             " --task 12 --layer vmalloc --state F -v", &err);
    g_assert_no_error(err);
    g_assert_true(args.command == &mc_commands[MC_CMD_BLOCKS]);
    g_assert_true(mc_given(&args, MC_OPT_SYMBOLS));
    g_assert_true(mc_given(&args, MC_OPT_JSON));
    g_assert_true(mc_given(&args, MC_OPT_VERBOSE));
    g_assert_false(mc_given(&args, MC_OPT_HISTORY));
    g_assert_cmpuint(args.limit, ==, 5);
    g_assert_true(args.va.lo == 0x1000 && args.va.hi == 0x1fff);
    g_assert_cmpuint(args.filter.spec.size_lo, ==, 0x10);
    g_assert_cmpuint(args.filter.spec.size_hi, ==, 0x20);
    g_assert_cmpuint(args.filter.spec.since, ==, 7);
    g_assert_cmpuint(args.filter.spec.until, ==, 9);
    g_assert_true(args.filter.spec.has_pid && args.filter.spec.pid == 12);
    g_assert_true(args.filter.spec.layer == KT_LAYER_VMALLOC);
    g_assert_true(args.filter.spec.state == 'F');
}

KERNEL_TEST(test_option_first, "/parse/option-before-command")
{
    g_auto(McArgs) args;
    g_autoptr(GError) err = NULL;

    mc_args_init(&args, test_world_context(w));
    mc_parse(&args, "-n 3 show 1000", &err);
    g_assert_no_error(err);
    g_assert_true(args.command == &mc_commands[MC_CMD_SHOW]);
    g_assert_cmpuint(args.limit, ==, 3);
    g_assert_cmphex(args.va.lo, ==, 0x1000);
}

/* A word in quotes may have blanks. Quotes inside of a word are bytes of it. */
TEST(test_quotes, "/parse/quotes")
{
    g_autoptr(TestWorld) w = test_world_new("");
    g_auto(McArgs) args;
    g_auto(McArgs) wrong;
    g_autoptr(GError) err = NULL;

    mc_args_init(&args, test_world_context(w));
    g_assert_true(mc_parse(&args, "--task 'a b'  --cache \"it's one\"", NULL));
    g_assert_cmpstr(args.filter.spec.task, ==, "a b");
    g_assert_cmpstr(args.filter.spec.cache, ==, "it's one");
    g_assert_true(mc_parse(&args, "--task it's", NULL));
    g_assert_cmpstr(args.filter.spec.task, ==, "it's");
    mc_args_init(&wrong, test_world_context(w));
    g_assert_false(mc_parse(&wrong, "--task 'a b", &err));
    g_assert_cmpstr(err->message, ==, "the quote ' is not closed");
}

TEST(test_empty, "/parse/empty-line")
{
    g_autoptr(TestWorld) w = test_world_new("");
    static const char *const lines[] = { NULL, "", "  ", "\t\r\n" };

    for (unsigned i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_auto(McArgs) args;

        mc_args_init(&args, test_world_context(w));
        g_assert_true(mc_parse(&args, lines[i], NULL));
        g_assert_true(args.command == &mc_commands[MC_CMD_RUNDOWN]);
    }
}

/* Every wrong line: result 1, one line, which quotes @word. */
static void check_wrong(TestWorld *w, const char *line, const char *word)
{
    int rc;
    g_autofree char *text = test_world_run(w, line, &rc);

    g_assert_cmpint(rc, ==, 1);
    g_assert_true(g_str_has_prefix(text, "ka: "));
    g_assert_true(g_str_has_suffix(text, "\n"));
    g_assert_true(strchr(text, '\n') == text + strlen(text) - 1);
    if (!strstr(text, word)) {
        g_error("\"%s\" does not tell \"%s\": %s", line, word, text);
    }
}

KERNEL_TEST(test_wrong_lines, "/parse/wrong-lines")
{
    static const struct {
        const char *line;
        const char *word;
    } wrong[] = {
        { "shwo 1000", "show" },
        { "aloc kmalloc", "alloc" },
        { "kmalocc", "\"kmalocc\"" },
        { "show", "ka show <va>" },
        { "show 1 2", "\"2\"" },
        { "show 1-2", "\"1-2\"" },
        { "show kmalloc+ffffffffffffffff", "64 bits" },
        { "10000000000000000", "64 bits" },
        { "20-10", "before the start" },
        { "1000 20-10", "before the start" },
        { "1000 kmalloc", "\"kmalloc\"" },
        { "-y", "\"-y\"" },
        { "--since=5 1000", "--since us" },
        { "1000 -n", "<N>" },
        { "1000 -n x", "\"x\"" },
        { "1000 --layer heap", "vmalloc" },
        { "1000 --state a", "A (allocated)" },
        { "error --kind leak", "double-free" },
        { "1000 --since 2 --until 1", "before --since" },
        { "1000-1fff --history", "single address" },
        { "stat --cache x", "-j -v" },
        { "alloc jiffies", "not a function" },
        { "help nonsense", "\"nonsense\"" },
        { "show \x01\x1b[2J", "\"\\x01\\x1b[2J\"" },
        { "show \xff\xfe", "\"\\xff\\xfe\"" },
        { "show a\"b", "\"a\\x22b\"" },
        { "1000 --cache nonsense", "\"nonsense\"" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        check_wrong(w, wrong[i].line, wrong[i].word);
    }
}

KERNEL_TEST(test_long_lines, "/parse/long-lines")
{
    g_autofree char *digits = g_strnfill(MC_LINE_MAX, '1');
    g_autofree char *longer = g_strnfill(MC_LINE_MAX + 1, '1');
    g_autoptr(GString) many = g_string_new("show");

    check_wrong(w, digits, "64 bits");
    check_wrong(w, longer, "4096");
    for (unsigned i = 0; i < 1500; i++) {
        g_string_append(many, " 1");
    }
    check_wrong(w, many->str, "one word too many");
    g_string_assign(many, "alloc a");
    for (unsigned i = 0; i < 1500; i++) {
        g_string_append(many, "+1");
    }
    check_wrong(w, many->str, "\"+\"");
}

TEST(test_state_unchanged, "/parse/wrong-changes-nothing")
{
    g_autoptr(TestWorld) w = test_world_new("");

    g_autofree char *text = NULL;
    int rc;

    test_world_events(w, "alloc va=ffff888000001000 size=10 us=1\n");
    check_wrong(w, "clear all", "\"all\"");
    check_wrong(w, "off now", "\"now\"");
    text = test_world_run(w, "ffff888000001000", &rc);
    g_assert_cmpint(rc, ==, 0);
    g_assert_nonnull(strstr(text, "A ffff888000001000"));
    g_assert_true(kt_tracer_enabled(test_world_tracer(w)));
}

TEST(test_no_symbols, "/parse/no-symbols")
{
    g_autoptr(TestWorld) w = test_world_new("");

    test_world_events(w, "why vmlinuz: not a kernel\n");
    check_wrong(w, "alloc kmalloc", "vmlinuz: not a kernel");
}
