/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows: each look in text and in JSON, what is around a value, when a column is
 * printed, and the order of rows. What commands print is compared by golden
 * cases; here are the limits of the table itself.
 */
#include <string.h>

#include "monitor-cmds/output/row.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

typedef struct Part {
    uint64_t number;
    const char *word;
} Part;

typedef struct Row {
    uint64_t n;
    uint32_t small;
    uint8_t kind;
    const char *word;
    char chars[8];
    const char *const *list;
    const Part *part;
} Row;

static bool append(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* Return (owned) a row as text, or the keys of its JSON behind the type. */
static char *print(const McColumn *c, const Row *row, bool json, bool verbose)
{
    g_autoptr(TestWorld) w = test_world_new("");
    g_autoptr(GString) got = g_string_new(NULL);
    McContext ctx = { .tracer = test_world_tracer(w), .puts = append,
                      .puts_opaque = got };
    const McColumn columns[] = { *c, MC_END };
    const McObject object = { "x", "", { columns } };
    McOut out;

    mc_out_init(&out, &ctx);
    out.json = json;
    out.verbose = verbose;
    out.width[0] = 4;
    mc_print(&out, &object, row);
    mc_out_deinit(&out);
    g_string_truncate(got, got->len - 1);
    if (json) {
        g_assert_true(g_str_has_prefix(got->str,
                                       "{\"schema\":1,\"type\":\"x\""));
        return g_strdup(got->str + strlen("{\"schema\":1,\"type\":\"x\""));
    }
    return g_strdup(got->str);
}

static void check(const McColumn c, const Row *row, const char *text,
                  const char *json)
{
    g_autofree char *as_text = print(&c, row, false, false);
    g_autofree char *as_json = print(&c, row, true, false);

    g_assert_cmpstr(as_text, ==, text);
    g_assert_cmpstr(as_json, ==, json);
}

#define N(look_, text_, ...) \
    ((McColumn)MC_COLUMN(Row, n, look_, text_, "", __VA_ARGS__))
#define W(look_, text_, ...) \
    ((McColumn)MC_COLUMN(Row, word, look_, text_, "", __VA_ARGS__))

TEST(numbers, "/row/numbers")
{
    const Row row = { .n = 255, .small = 7 }, none = { 0 };
    const Row minus = { .n = -1 };

    check(N(NUMBER, "%"), &row, "255", ",\"n\":255}");
    check(N(BYTES, "%"), &row, "ff", ",\"n\":255}");
    check(N(HEX, "%"), &row, "ff", ",\"n\":\"0xff\"}");
    check(N(ADDRESS, "%"), &row, "00000000000000ff",
          ",\"n\":\"0x00000000000000ff\"}");
    check(N(POINTER, "%"), &row, "00000000000000ff", ",\"n\":\"0xff\"}");
    check(N(POINTER, "%"), &none, "0", ",\"n\":\"0x0\"}");
    check(N(OCTAL, "%"), &row, "0377", ",\"n\":255}");
    check(N(INTEGER, "%"), &minus, "-1", ",\"n\":-1}");
    check(N(DIFFERENCE, "%"), &row, "+255", ",\"n\":255}");
    check(N(DIFFERENCE, "%"), &none, "0", ",\"n\":0}");
    check(N(YES_NO, "%"), &row, "yes", ",\"n\":\"yes\"}");
    check(N(ACCESS, "%", .mask = 0x100), &row, "r", ",\"n\":\"r\"}");
    check(N(NUMBER, "%", .mask = 0x81), &row, "1", ",\"n\":1}");
    check((McColumn)MC_COLUMN(Row, small, NUMBER, "%", ""), &row, "7",
          ",\"small\":7}");
}

TEST(texts, "/row/texts")
{
    const char *const list[] = { "a b", "c\"", NULL };
    const Row row = { .word = "a b\n", .chars = "x y", .list = list };
    const Row empty = { .word = "" };

    check(W(WORD, "%"), &row, "a\\x20b\\x0a", ",\"word\":\"a b\\u000a\"}");
    check(W(TEXT, "%"), &row, "a b\\x0a", ",\"word\":\"a b\\u000a\"}");
    check(W(WORD, "%"), &empty, "-", ",\"word\":null}");
    check(W(TEXT, "[%]"), &empty, "[]", ",\"word\":\"\"}");
    check((McColumn)MC_COLUMN(Row, chars, CHARS, "%", ""), &row, "x\\x20y",
          ",\"chars\":\"x y\"}");
    check((McColumn)MC_COLUMN(Row, list, LIST, "%", ""), &row, "a b; c\"",
          ",\"list\":[\"a b\",\"c\\\"\"]}");
}

TEST(around_a_value, "/row/around-a-value")
{
    const Row one = { .n = 1 }, two = { .n = 2 };

    check(N(NUMBER, "<%3|"), &two, "<  2|", ",\"n\":2}");
    check(N(NUMBER, "<%-3|"), &two, "<2  |", ",\"n\":2}");
    check(N(NUMBER, "<%*|"), &two, "<   2|", ",\"n\":2}");
    check(N(NUMBER, "%us"), &two, "2us", ",\"n\":2}");
    check(N(NUMBER, "% {block is|blocks are} here"), &one, "1 block is here",
          ",\"n\":1}");
    check(N(NUMBER, "% {block is|blocks are} here"), &two,
          "2 blocks are here", ",\"n\":2}");
    check(N(NUMBER, NULL), &two, "", ",\"n\":2}");
    check((McColumn)MC_ONLY_TEXT("only"), &two, "only", "}");
}

TEST(unknown, "/row/unknown")
{
    const Row none = { 0 }, most = { .n = UINT64_MAX, .small = UINT32_MAX };

    check(N(NUMBER, "<%3>", .flags = MC_ZERO), &none, "<  ->",
          ",\"n\":null}");
    check(N(NUMBER, "%", .flags = MC_ZERO | MC_OMIT), &none, "", "}");
    check(N(NUMBER, "%", .flags = MC_MOST), &most, "-", ",\"n\":null}");
    check((McColumn)MC_COLUMN(Row, small, NUMBER, "%", "", .flags = MC_MOST),
          &most, "-", ",\"small\":null}");
    check(N(NUMBER, "%", .flags = MC_IF_SET), &none, "", ",\"n\":0}");
}

TEST(with_v, "/row/with-v")
{
    const Row row = { .n = 5 };
    const McColumn v = MC_COLUMN(Row, n, NUMBER, "%", "", .flags = MC_V);
    const McColumn text_v = MC_COLUMN(Row, n, NUMBER, "%", "",
                                      .flags = MC_TEXT_V);
    g_autofree char *more = print(&v, &row, false, true);
    g_autofree char *text_more = print(&text_v, &row, false, true);

    check(v, &row, "", "}");
    check(text_v, &row, "", ",\"n\":5}");
    g_assert_cmpstr(more, ==, "5");
    g_assert_cmpstr(text_more, ==, "5");
}

TEST(behind_a_pointer, "/row/behind-a-pointer")
{
    const Part part = { 9, "w" };
    const Row row = { .n = 5, .part = &part }, none = { .n = 5 };
    const McColumn c = MC_VIA("p", Row, part, number, NUMBER, "%", "");

    check(c, &row, "9", ",\"p\":9}");
    check(c, &none, "-", ",\"p\":null}");
    check(N(NUMBER, "%", MC_IF_VIA(Row, part, number)), &row, "5",
          ",\"n\":5}");
    check(N(NUMBER, "%", MC_IF_VIA(Row, part, number)), &none, "", "}");
    check(N(NUMBER, "%", MC_IF_VIA(Row, part, number, .no = true)), &none,
          "5", ",\"n\":5}");
}

/* A kind can be any byte of a journal. */
TEST(of_some_kinds, "/row/of-some-kinds")
{
    const Row three = { .n = 5, .kind = 3 }, far = { .n = 5, .kind = 67 };
    const McColumn c = N(NUMBER, "%", .only = { MC_MEMBER(Row, kind),
                                                .one_of = 1u << 3 });

    check(c, &three, "5", ",\"n\":5}");
    check(c, &far, "", "}");
}

static const char *name_of(unsigned kind)
{
    return kind == 3 ? "three" : NULL;
}

TEST(names, "/row/names")
{
    const Row three = { .kind = 3 }, other = { .kind = 9 };
    const McColumn c = MC_COLUMN(Row, kind, WORD, "%", "", .name = name_of);

    check(c, &three, "three", ",\"kind\":\"three\"}");
    check(c, &other, "-", ",\"kind\":null}");
}

/* The largest is first; unknown ones are last; equal ones keep their order. */
TEST(order, "/row/order")
{
    const McColumn columns[] = {
        MC_COLUMN(Row, word, WORD, "%", ""),
        MC_COLUMN(Row, n, NUMBER, "%", "", .flags = MC_ZERO),
        MC_END
    };
    const McObject object = { "x", "", { columns } };
    const Row row[] = { { .n = 1 }, { .n = 0 }, { .n = 7, .kind = 1 },
                        { .n = 7, .kind = 2 } };
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(Row));
    g_autoptr(GError) err = NULL;
    const McColumn *c = mc_find_sort_column(&object, "n", NULL);
    McOut out = { 0 };

    g_array_append_vals(rows, row, G_N_ELEMENTS(row));
    mc_sort_rows(&out, c, rows);
    g_assert_cmpuint(g_array_index(rows, Row, 0).kind, ==, 1);
    g_assert_cmpuint(g_array_index(rows, Row, 1).kind, ==, 2);
    g_assert_cmpuint(g_array_index(rows, Row, 2).n, ==, 1);
    g_assert_cmpuint(g_array_index(rows, Row, 3).n, ==, 0);
    g_assert_null(mc_find_sort_column(&object, "word", &err));
    g_assert_cmpstr(err->message, ==, "--sort \"word\": the fields are n");
}

/* ---- units --------------------------------------------------------------- */

static void check_put(void (*put)(GString *, uint64_t), uint64_t v,
                      const char *text)
{
    g_autoptr(GString) s = g_string_new(NULL);

    put(s, v);
    g_assert_cmpstr(s->str, ==, text);
}

TEST(units, "/row/units")
{
    const uint64_t sec = 1000000;

    check_put(mc_put_size, 0, "0 B");
    check_put(mc_put_size, 1023, "1023 B");
    check_put(mc_put_size, 1024, "1.0 KiB");
    check_put(mc_put_size, 14155776, "13.5 MiB");
    check_put(mc_put_size, 1048575, "1.0 MiB");
    check_put(mc_put_size, 1023 << 10, "1023.0 KiB");
    check_put(mc_put_size, UINT64_MAX, "16.0 EiB");
    check_put(mc_put_duration, 999, "999 us");
    check_put(mc_put_duration, 3299, "3.2 ms");
    check_put(mc_put_duration, 2130000, "2.13 s");
    check_put(mc_put_duration, 200 * sec, "3 min 20 s");
    check_put(mc_put_duration, 7500 * sec, "2 h 5 min");
    check_put(mc_put_age, 0, "0 us ago");
    check_put(mc_put_age, 4900000, "4 s ago");
    check_put(mc_put_age, 7500 * sec, "2 h ago");
}

/* ---- tables -------------------------------------------------------------- */

static const McColumn table_columns[] = {
    MC_COLUMN(Row, n, NUMBER, "%", "", .head = "size", .unit = MC_SIZE),
    MC_COLUMN(Row, word, WORD, " %", "", .head = "word"),
    MC_COLUMN(Row, kind, NUMBER, " %", "", .head = "kind", .flags = MC_WIDE),
    MC_COLUMN(Row, small, NUMBER, " small=%", "", .flags = MC_IF_SET),
    MC_END
};
static const McObject table_object = {
    "x", "", { table_columns }, .is_table = true,
};
/* Has the same heading as a part of the table, so it is another one. */
static const McObject other_object = {
    "y", "", { (const McColumn[]) {
        MC_COLUMN(Row, n, NUMBER, "%", "", .head = "size"), MC_END } },
    .is_table = true,
};

static void check_table(void (*fill)(McOut *out), const char *text)
{
    g_autoptr(TestWorld) w = test_world_new("");
    g_autoptr(GString) got = g_string_new(NULL);
    McContext ctx = { .tracer = test_world_tracer(w), .puts = append,
                      .puts_opaque = got };
    McOut out;

    mc_out_init(&out, &ctx);
    fill(&out);
    mc_out_deinit(&out);
    g_assert_cmpstr(got->str, ==, text);
}

static void fill_table(McOut *out)
{
    mc_print(out, &table_object, &(Row) { .n = 2048, .word = "a" });
    mc_out_printf(out, "between");
    mc_print(out, &table_object, &(Row) { .n = 1, .word = "bcdef",
                                          .small = 7 });
    mc_print(out, &other_object, &(Row) { .n = 3 });
    mc_remark(out, "behind");
}

static void fill_exact(McOut *out)
{
    out->exact = out->whole = true;
    fill_table(out);
}

/* Rows of the guest with names that do not fit. */
static void fill_long(McOut *out)
{
    g_autofree char *name = g_strnfill(95, 'n');

    mc_print(out, &table_object, &(Row) { .n = 1, .word = name, .small = 7 });
    mc_print(out, &table_object, &(Row) { .n = 1, .word = "b" });
}

TEST(tables, "/row/tables")
{
    const char n95[] =
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";
    g_autofree char *wrapped = g_strdup_printf(
        "size  word\n"
        " 1 B\n"
        "        %s\n"
        "        small=7\n"
        " 1 B  b\n", n95);

    check_table(fill_table,
                "   size  word\n"
                "2.0 KiB  a\n"
                "between\n"
                "    1 B  bcdef  small=7\n"
                "size\n"
                "   3\n"
                "behind\n");
    check_table(fill_exact,
                "size  word   kind\n"
                "2048  a         0\n"
                "between\n"
                "   1  bcdef     0  small=7\n"
                "size\n"
                "   3\n"
                "behind\n");
    check_table(fill_long, wrapped);
}

/* A table does not wait for ever. */
TEST(long_tables, "/row/long-tables")
{
    g_autoptr(TestWorld) w = test_world_new("");
    g_autoptr(GString) got = g_string_new(NULL);
    McContext ctx = { .tracer = test_world_tracer(w), .puts = append,
                      .puts_opaque = got };
    McOut out;

    mc_out_init(&out, &ctx);
    for (unsigned i = 0; i < 5000; i++) {
        mc_print(&out, &other_object, &(Row) { .n = i });
    }
    g_assert_cmpuint(got->len, >, 10000);
    g_string_truncate(got, 0);
    mc_out_deinit(&out);
    g_assert_cmpuint(got->len, >, 1000);
    g_assert_null(strstr(got->str, "size"));
}
