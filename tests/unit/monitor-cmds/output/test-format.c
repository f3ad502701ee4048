/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output comes in chunks of whole lines and ends if the sink closes. JSON is
 * valid for any names. Long listings and `ka stat` are included.
 */
#include <inttypes.h>
#include <string.h>

#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

static const char many[] =
    "many n=10000 va=10000 step=40 size=40 us=1 stack=ffffffff81000010\n";

static const char apart[] =
    "many n=10000 va=10000 step=40 size=20 us=1 stack=ffffffff81000010\n";

static const char pages[] =
    "symbol va=ffffffff81000000 name=_stext\n"
    "symbol va=ffffffff81000001 name=twin type=t\n"
    "symbol va=ffffffff81000011 name=other\n"
    "symbol va=ffffffff81000018 name=twin type=t\n"
    "symbol va=ffffffff81000400 name=_etext\n"
    "many n=6000 va=100000 step=1000 size=1000 us=1 layer=pages "
    "stack=ffffffff81000010,ffffffff81000020\n"
    "many n=6000 va=100000 step=1000 size=40 us=1 "
    "stack=ffffffff81000010,ffffffff81000020\n";

static const char twins[] =
    "symbol va=ffffffff81000000 name=_stext\n"
    "symbol va=ffffffff81000100 name=twin type=t\n"
    "symbol va=ffffffff81000200 name=other\n"
    "symbol va=ffffffff81000300 name=twin type=t\n"
    "symbol va=ffffffff81000400 name=_etext\n"
    "many n=6000 va=100000 step=40 size=20 us=1 stack=ffffffff81000110\n"
    "many n=6000 va=100020 step=40 size=20 us=1 stack=ffffffff81000310\n"
    "many n=3000 va=800000 step=40 size=20 us=1 stack=ffffffff81000210\n"
    "many n=6000 va=a00000 step=40 size=20 us=1 "
    "stack=ffffffff81000110,ffffffff81000310\n";

/* ---- a strict JSON reader: accepts exactly one value --------------------- */

static const char *json_value(const char *p, unsigned depth);

static const char *json_space(const char *p)
{
    return p + strspn(p, " \t");
}

static const char *json_string(const char *p)
{
    if (*p++ != '"') {
        return NULL;
    }
    for (; *p != '"'; p++) {
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f) {
            return NULL;
        }
        if (*p != '\\') {
            continue;
        }
        p++;
        if (*p == 'u') {
            for (unsigned i = 1; i <= 4; i++) {
                if (!g_ascii_isxdigit(p[i])) {
                    return NULL;
                }
            }
            p += 4;
        } else if (!*p || !strchr("\"\\/bfnrt", *p)) {
            return NULL;
        }
    }
    return p + 1;
}

static const char *json_number(const char *p)
{
    if (!g_ascii_isdigit(*p) || (*p == '0' && g_ascii_isdigit(p[1]))) {
        return NULL;
    }
    return p + strspn(p, "0123456789");
}

static const char *json_members(const char *p, char close, unsigned depth)
{
    p = json_space(p + 1);
    if (*p == close) {
        return p + 1;
    }
    while (p) {
        if (close == '}') {
            p = json_string(p);
            if (!p || *p++ != ':') {
                return NULL;
            }
        }
        p = json_value(p, depth + 1);
        if (!p || (*p != ',' && *p != close)) {
            return NULL;
        }
        if (*p++ == close) {
            return p;
        }
    }
    return NULL;
}

static const char *json_value(const char *p, unsigned depth)
{
    if (depth > 4) {
        return NULL;
    }
    switch (*p) {
    case '{':
        return json_members(p, '}', depth);
    case '[':
        return json_members(p, ']', depth);
    case '"':
        return json_string(p);
    case 'n':
        return strncmp(p, "null", 4) ? NULL : p + 4;
    default:
        return json_number(p);
    }
}

/* Not g_strsplit(), nor anything that searches a string: with ASan each search
 * looks at the whole rest of the text first. */
static GStrv split_lines(const char *text)
{
    GPtrArray *lines = g_ptr_array_new();

    while (*text) {
        const char *end = text;

        while (*end && *end != '\n') {
            end++;
        }
        g_ptr_array_add(lines, g_strndup(text, end - text));
        text = *end ? end + 1 : end;
    }
    g_ptr_array_add(lines, NULL);
    return (GStrv)g_ptr_array_free(lines, FALSE);
}

static unsigned check_json(const char *text)
{
    g_auto(GStrv) lines = split_lines(text);
    unsigned n = 0;

    for (; lines[n] && *lines[n]; n++) {
        const char *end = lines[n][0] == '{' ? json_value(lines[n], 0) : NULL;

        if (!end || *end) {
            g_error("not JSON: %s", lines[n]);
        }
    }
    return n;
}

static unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; *text; text++) {
        n += *text == '\n';
    }
    return n;
}

/* ---- the sink ------------------------------------------------------------ */

typedef struct Sink {
    unsigned chunks;
    size_t most;
    bool whole;
} Sink;

static bool sink_puts(void *opaque, const char *s)
{
    Sink *k = opaque;

    k->chunks++;
    k->most = MAX(k->most, strlen(s));
    k->whole &= g_str_has_suffix(s, "\n");
    return true;
}

TEST(test_chunks, "/format/chunks-of-whole-lines")
{
    g_autoptr(TestWorld) w = test_world_new(many);
    McContext ctx = *test_world_context(w);
    Sink k = { .whole = true };

    ctx.puts = sink_puts;
    ctx.puts_opaque = &k;
    g_assert_cmpint(mc_run(&ctx, "0-ffffffffffffffff"), ==, 0);
    g_assert_true(k.whole);
    g_assert_cmpuint(k.most, <=, MC_CHUNK);
    /* 10,000 lines of about 90 bytes: 13 of them a chunk */
    g_assert_cmpuint(k.chunks, <, 10000 / 10);
}

TEST(test_closed, "/format/closed-sink-stops")
{
    g_autoptr(TestWorld) w = test_world_new(many);

    g_autofree char *text = NULL;
    int rc;

    test_world_close_after(w, 3);
    text = test_world_run(w, "0-ffffffffffffffff", &rc);
    g_assert_cmpint(rc, ==, 2);
    g_assert_cmpuint(test_world_chunks(w), ==, 3);
    g_assert_true(g_str_has_suffix(text, "\n"));
}

/* ---- batches ------------------------------------------------------------- */

/* Lines of a listing: @n of them, in the order of addresses, each once. */
static void check_listing(TestWorld *w, const char *args, unsigned n)
{
    g_autofree char *whole = g_strconcat(args, " -w", NULL);
    g_autofree char *text = test_world_run(w, whole, NULL);
    g_auto(GStrv) lines = split_lines(text);
    uint64_t last = 0;

    g_assert_cmpuint(count_lines(text), ==, n);
    for (unsigned i = 0; i < n; i++) {
        uint64_t va = g_ascii_strtoull(lines[i] + MC_MARGIN + 2, NULL, 16);

        g_assert_cmphex(va, >, last);
        last = va;
    }
}

TEST(test_batches, "/format/listing-over-batches")
{
    g_autoptr(TestWorld) w = test_world_new(many);

    check_listing(w, "0-ffffffffffffffff", 10000);
    check_listing(w, "alloc ffffffff81000010 -n 0", 10000);
    check_listing(w, "alloc ffffffff81000000-ffffffff8100ffff -n 0", 10000);
    check_listing(w, "alloc ffffffff81000010 --since 9000 -n 0", 1001);
    check_listing(w, "0-ffffffffffffffff --until 5000", 5000);
}

TEST(test_frees_in_batches, "/format/frees-over-batches")
{
    g_autoptr(TestWorld) w = test_world_new(many);
    g_autoptr(GString) s = g_string_new(NULL);

    for (unsigned i = 0; i < 9000; i++) {
        g_string_append_printf(s, "free va=%x us=%u stack=%s\n",
                               0x10000 + i * 0x40, 20000 + i,
                               i % 3 ? "ffffffff81000020" :
                                       "ffffffff81000030");
    }
    test_world_events(w, s->str);
    check_listing(w, "free ffffffff81000020 -n 0", 6000);
    check_listing(w, "free ffffffff81000030 -n 0", 3000);
    check_listing(w, "free ffffffff81000020-ffffffff81000030 -n 0", 9000);
}

/* Pages, and an object at their start, are two blocks of one address. */
TEST(test_pages, "/format/pages-and-objects")
{
    g_autoptr(TestWorld) w = test_world_new(pages);
    static const char *const commands[] = {
        "0-ffffffffffffffff", "alloc ffffffff81000010 -n 0",
        "alloc ffffffff81000000-ffffffff81000020 -n 0", "alloc twin -n 0",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *text = test_world_run(w, commands[i], NULL);
        g_auto(GStrv) lines = split_lines(text);

        g_assert_cmpuint(count_lines(text), ==, 2 * 6000);
        for (unsigned j = 0; j < 2 * 6000; j += 2) {
            const char *sums = lines[j] + MC_MARGIN;
            const char *object = lines[j + 1] + MC_MARGIN;

            g_assert_cmpint(strncmp(sums, object, 18), ==, 0);
            g_assert_nonnull(strstr(sums, "( 1000/ 1000)"));
            g_assert_nonnull(strstr(object, "(   40/   40)"));
        }
    }
}

typedef struct Churn {
    KtTracer *t;
    gint stop;
} Churn;

/* Allocate and free between the blocks that stay. */
static gpointer churn(gpointer data)
{
    Churn *c = data;
    KtEvent ev = { .size = 0x10, .layer = KT_LAYER_KMALLOC,
                   .family = KT_FAMILY_KFREE };

    for (uint64_t i = 0; !g_atomic_int_get(&c->stop); i++) {
        ev.kind = i % 2 ? KT_EV_FREE : KT_EV_ALLOC;
        ev.va = 0x10020 + (i / 2 * 7919 % 20000) * 0x40;
        ev.us = 20000 + i;
        kt_tracer_push(c->t, 1, &ev);
    }
    return NULL;
}

/* Blocks that stay are listed once each, whatever comes and goes. */
TEST(test_while_running, "/format/listing-while-running")
{
    g_autoptr(TestWorld) w = test_world_new(apart);
    Churn c = { .t = test_world_tracer(w) };
    GThread *thread = g_thread_new("churn", churn, &c);

    for (unsigned i = 0; i < 10; i++) {
        check_listing(w, "10000-ffffffffffffffff 20", 10000);
        check_listing(w, "alloc ffffffff81000010 -n 0", 10000);
    }
    g_atomic_int_set(&c.stop, 1);
    g_thread_join(thread);
}

/* Functions of one name, more rows each than a batch, many shared. */
TEST(test_merge, "/format/functions-merge-over-batches")
{
    g_autoptr(TestWorld) w = test_world_new(twins);

    check_listing(w, "alloc twin -n 0", 18000);
}

/* A case with an empty world @w. */
#define EMPTY_TEST(fn, path) \
    TEST_IN(g_autoptr(TestWorld), TestWorld *w, test_world_new(""), fn, path)

EMPTY_TEST(test_long_history, "/format/history-over-batches")
{
    g_autoptr(GString) s = g_string_new(NULL);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    for (unsigned i = 0; i < 10000; i++) {
        g_string_append_printf(s, "alloc va=1000 size=8 us=%u\n"
                               "free va=1000 us=%u\n", 2 * i + 1, 2 * i + 2);
    }
    g_string_append(s, "alloc va=1000 size=8 us=30000\n");
    test_world_events(w, s->str);
    text = test_world_run(w, "1000 --history", NULL);
    g_assert_cmpuint(count_lines(text), ==, 10001);
    lines = split_lines(text);
    for (unsigned i = 0; i < 10000; i++) {
        g_autofree char *tail = g_strdup_printf("alloc[]@%uus free[]@%uus",
                                                2 * (9999 - i) + 1,
                                                2 * (9999 - i) + 2);

        g_assert_true(g_str_has_suffix(lines[i + 1], tail));
    }
}

EMPTY_TEST(test_many_errors, "/format/errors-over-batches")
{
    g_autoptr(GString) s = g_string_new("complete\n"
                                        "alloc va=1000 size=8 us=1\n"
                                        "free va=1000 us=2\n");
    g_autofree char *text = NULL;

    for (unsigned i = 0; i < 5000; i++) {
        g_string_append_printf(s, "free va=1000 us=%u\n", 3 + i);
    }
    test_world_events(w, s->str);
    text = test_world_run(w, "error -w", NULL);
    g_assert_cmpuint(count_lines(text), ==, 5000);
    g_assert_nonnull(strstr(text, " error[]@5002us "));
}

/* ---- JSON ---------------------------------------------------------------- */

EMPTY_TEST(test_json_hostile, "/format/json-of-hostile-names")
{
    static const char *const commands[] = {
        "0-ffffffffffffffff -j -v", "0-ffffffffffffffff -j -v -s",
        "show 1000 -j -v", "show 999999 -j", "error -j -v -s", "stat -j -v",
        "show \"\\\x01\xff -j", "error 5 -j", "0-ffffffffffffffff -j -n 1",
        "1000 --history -j -v", "-j -x", "clear -j", "--kind q -j",
    };
    g_autoptr(GString) s = g_string_new(NULL);

    for (unsigned c = 1; c < 256; c++) {
        g_string_append_printf(s, "alloc va=%x size=10 us=%u pid=%u "
                               "comm=a\\x%02xb cache=c\\x%02xd\n", c * 0x1000,
                               c, c, c, c);
        g_string_append_printf(s, "free va=%x us=%u pid=%u comm=\\x%02x\n"
                               "free va=%x us=%u\n", c * 0x1000, c + 1, c, c,
                               c * 0x1000, c + 2);
    }
    test_world_events(w, s->str);
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *text = test_world_run(w, commands[i], NULL);

        g_assert_cmpuint(check_json(text), ==, count_lines(text));
    }
}

EMPTY_TEST(test_text_hostile, "/format/text-of-hostile-names")
{
    g_autoptr(GString) s = g_string_new(NULL);
    g_autofree char *text = NULL;

    for (unsigned c = 1; c < 256; c++) {
        g_string_append_printf(s, "alloc va=%x size=10 us=%u pid=%u "
                               "comm=a\\x%02xb cache=c\\x%02xd\n", c * 0x1000,
                               c, c, c, c);
    }
    test_world_events(w, s->str);
    text = test_world_run(w, "0-ffffffffffffffff -v", NULL);
    g_assert_cmpuint(count_lines(text), ==, 255);
    for (const char *p = text; *p; p++) {
        g_assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7f));
    }
}

TEST_IN(g_autoptr(TestWorld), TestWorld *w,
        test_world_new("symbol va=ffffffff81000000 name=_stext\n"
                       "symbol va=ffffffff81001000 name=_etext\n"
                       "module va=ffffffffc0100000 name=one "
                       "base=ffffffffc0000000 size=1000\n"
                       "modsym va=ffffffffc0000000 name=one_take\n"
                       "load va=ffffffffc0100000\n"),
        test_json_keys, "/format/json-has-every-key")
{
    g_autofree char *text = NULL;

    test_world_events(w, "alloc va=1000 size=10 us=1\n"
                      "rcu va=1000 us=2\nfree va=1000 us=3\n"
                      "free va=1000 us=4\n"
                      "alloc va=2000 size=10 us=5\n"
                      "free va=2000 size=8 sized=1 us=6\n"
                      "free va=fffffffffffffffe us=7\n"
                      "alloc va=4000 size=2000 layer=pages gfp=cc0 us=8\n"
                      "free va=4000 size=4000 family=pages flags=10 us=9\n"
                      "alloc va=8000 size=1000 layer=pages us=9\n"
                      "free va=8000 size=1000 family=pages flags=80 us=9\n"
                      "free va=8000 size=1000 family=pages flags=2 us=9\n"
                      "destroy va=9000 cache=old us=10\n"
                      "alloc va=ff0 size=10\naccess va=1000 size=8\n"
                      "access va=fef size=1 flags=4\n"
                      "alloc va=5000 size=10 us=11 stack=ffffffffc0000010\n"
                      "free va=5000 us=12\nalloc va=5000 size=10 us=13\n"
                      "free va=5000 us=14\n"
                      "access va=5000 size=1 us=15 stack=ffffffffc0000020\n");
    text = test_world_run(w, "error -j -v", NULL);
    for (unsigned i = 1; i < MC_SETS && mc_error_object.columns[i]; i++) {
        for (const McColumn *c = mc_error_object.columns[i]; c->key; c++) {
            g_autofree char *key = g_strdup_printf("\"%s\":", c->key);

            g_assert_nonnull(strstr(text, key));
        }
    }
}

/* ---- stat ---------------------------------------------------------------- */

static void check_matches(const char *text, const char *pattern)
{
    if (!g_regex_match_simple(pattern, text, G_REGEX_MULTILINE, 0)) {
        g_error("/%s/ does not match: %s", pattern, text);
    }
}

EMPTY_TEST(test_stat, "/format/stat")
{
    g_autofree char *text = NULL;
    g_autofree char *all = NULL;
    g_autofree char *json = NULL;

    test_world_events(w,
        "hook name=kmalloc_noprof va=ffffffff81000100 hits=12 "
        "note=unseen\n"
        "hook name=kmalloc_trace note=before\\x206.10\n"
        "hook name=vfree va=ffffffff81000200 symbol=vfree.part.0 "
        "from=kallsyms args_from=BTF calls=yes\n"
        "alloc va=1000 size=30 actual=40 us=1\n"
        "count counter=call.stale n=3\n");
    text = test_world_run(w, "stat", NULL);
    check_matches(text, "^  tracing.state +on$");
    check_matches(text, "^  kernel.none +no kernel file was given$");
    check_matches(text, "^  blocks.live +1 ");
    check_matches(text, "^  blocks.live_bytes +64 ");
    check_matches(text, "^  call.stale +3 ");
    check_matches(text, "^  hooks.found +2 ");
    check_matches(text, "^  hooks.missing +1 ");
    g_assert_null(strstr(text, "call.dropped"));
    g_assert_null(strstr(text, "kmalloc_trace"));
    all = test_world_run(w, "stat -v", NULL);
    check_matches(all, "^  call.dropped +0 ");
    check_matches(all, "^  kmalloc_noprof +ffffffff81000100 +12$");
    check_matches(all, "^  kmalloc_trace +missing +-  before 6.10$");
    check_matches(all, "^  vfree +ffffffff81000200 +0  kallsyms vfree.part.0, "
                  "arguments by BTF, calls hooks: yes$");
    json = test_world_run(w, "stat -v -j", NULL);
    g_assert_cmpuint(check_json(json), ==, 4);
    g_assert_nonnull(strstr(json, "\"symbol\":\"vfree.part.0\",\"from\":"
                                  "\"kallsyms\",\"args_from\":\"BTF\","
                                  "\"calls\":\"yes\"}"));
    g_assert_nonnull(strstr(json, "\"note\":\"before 6.10\""));
    g_assert_null(strstr(json, "\"unseen\""));
    g_assert_nonnull(strstr(json, "\"call.stale\":3,"));
}

/* ---- rows ---------------------------------------------------------------- */

EMPTY_TEST(test_deep_stacks, "/format/deepest-stack")
{
    g_autoptr(GString) s = g_string_new("alloc va=1000 size=1 us=1 stack=1");
    g_autofree char *text = NULL;
    const char *p;
    unsigned frames = 0;

    for (unsigned i = 1; i < KT_MAX_FRAMES; i++) {
        g_string_append_printf(s, ",ffffffff8100%04x", i);
    }
    test_world_events(w, s->str);
    text = test_world_run(w, "1000 -w", NULL);
    for (p = strchr(text, '['); *p != ']'; p++) {
        frames += *p == ' ' || *p == '[';
    }
    g_assert_cmpuint(frames, ==, KT_MAX_FRAMES);
}

static bool keep(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return !strchr(text, '3');
}

/* Each two seconds, and whoever prints that learns that nobody listens. */
EMPTY_TEST(test_progress, "/format/progress-of-long-searches")
{
    g_autoptr(GString) got = g_string_new(NULL);
    McContext ctx = { .tracer = test_world_tracer(w), .puts = keep,
                      .puts_opaque = got };
    McOut out;
    McProgress p = { .out = &out, .printed_at = g_get_monotonic_time() };

    mc_out_init(&out, &ctx);
    g_assert_true(mc_on_progress(&p, 5 << 20));
    g_assert_cmpstr(got->str, ==, "");
    for (unsigned i = 1; i <= 3; i++) {
        p.printed_at -= MC_PROGRESS_US;
        g_assert_cmpint(mc_on_progress(&p, i << 20), ==, i < 3);
        g_assert_true(mc_on_progress(&p, i << 20) == (i < 3));
    }
    g_assert_cmpstr(got->str, ==, "... 1 MiB\n... 2 MiB\n... 3 MiB\n");
    p = (McProgress) { .out = &out, .quiet = true };
    mc_on_progress(&p, 9 << 20);
    g_assert_null(strstr(got->str, "9 MiB"));
    mc_out_deinit(&out);
}

/* That there was no room for them does not make them none. */
EMPTY_TEST(test_module_without_room, "/format/module-without-room")
{
    g_autoptr(GString) got = g_string_new(NULL);
    McContext ctx = { .tracer = test_world_tracer(w), .puts = keep,
                      .puts_opaque = got };
    const KtModuleReport report = {
        .name = "leaky", .us = 7, .found = 15, .not_kept = 15 };
    McOut out;

    mc_out_init(&out, &ctx);
    mc_print_module(&out, &(McModuleRow) { .report = &report });
    mc_out_deinit(&out);
    g_assert_cmpstr(got->str, ==, "module leaky unloaded@7us: no leaks "
                    "listed, 15 not listed, no memory\n");
}
