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
