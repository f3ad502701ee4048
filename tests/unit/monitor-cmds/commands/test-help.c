/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Help, manual and completion name every row of the tables, and the files in
 * docs/ are what the tables produce.
 */
#include <string.h>

#include "kalloc-tracer/access/arming.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"
#include "monitor-cmds/commands/commands.h"
#include "tests/lib/events.h"
#include "monitor-cmds/commands/help.h"

#define CASES KA_SOURCE_DIR "/tests/replay/cases"

static void check_has(const char *text, const char *word)
{
    if (!strstr(text, word)) {
        g_error("\"%s\" is missing", word);
    }
}

/* troff writes \- for each - */
static char *troff_word(const char *word)
{
    g_auto(GStrv) parts = g_strsplit(word, "-", -1);

    return g_strjoinv("\\-", parts);
}

static void test_rundown(void)
{
    g_autoptr(TestWorld) w = test_world_new("");
    int rc;
    g_autofree char *text = test_world_run(w, NULL, &rc);

    g_assert_cmpint(rc, ==, 0);
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        g_autofree char *usage = mc_command_usage(&mc_commands[i]);

        check_has(text, usage);
    }
    check_has(text, "no kernel file was given");
}

static void test_pages(void)
{
    g_autoptr(TestWorld) w = test_world_new("");

    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const McCommand *c = &mc_commands[i];
        g_autofree char *line = g_strconcat("help ", c->topic, NULL);
        g_autofree char *usage = mc_command_usage(c);
        int rc;
        g_autofree char *text = test_world_run(w, line, &rc);

        g_assert_cmpint(rc, ==, 0);
        check_has(text, usage);
        for (unsigned j = 0; i != MC_CMD_RUNDOWN && j < MC_OPT__COUNT; j++) {
            g_autofree char *option = mc_option_usage(j);
            g_autofree char *item = g_strdup_printf("\n  %s  ", option);

            g_assert_true(!!(c->options & (1ull << j)) == !!strstr(text, item));
        }
    }
}

static void test_help_option(void)
{
    g_autoptr(TestWorld) w = test_world_new("");

    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const McCommand *c = &mc_commands[i];
        g_autofree char *topic = g_strconcat("help ", c->topic, NULL);
        g_autofree char *page = test_world_run(w, topic, NULL);

        for (unsigned j = 0; c->word && j < 2; j++) {
            g_autofree char *line = g_strconcat(c->word, j ? " -h" :
                                                " --help", NULL);
            g_autofree char *text = test_world_run(w, line, NULL);

            g_assert_cmpstr(text, ==, page);
        }
    }
}

static void test_man(void)
{
    g_autofree char *text = mc_render_man();

    g_assert_true(g_str_has_prefix(text, ".\\\" SPDX"));
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        g_autofree char *usage = mc_command_usage(&mc_commands[i]);
        g_autofree char *word = troff_word(usage);

        check_has(text, word);
    }
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        g_autofree char *word = troff_word(mc_options[i].spelling);

        check_has(text, word);
    }
    for (unsigned i = 0; i < KT_ERR__COUNT; i++) {
        g_autofree char *word = troff_word(kt_error_name(i));

        check_has(text, word);
    }
}

static void test_markdown(void)
{
    g_autofree char *text = mc_render_markdown();

    for (unsigned i = 0; i < MC_FIELD__COUNT; i++) {
        g_autofree char *cell = g_strdup_printf("| `%s` |", mc_fields[i].key);

        check_has(text, cell);
    }
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        check_has(text, kt_counter_name(i));
    }
    for (unsigned i = 0; i < MC_OBJ__COUNT; i++) {
        g_autofree char *cell = g_strdup_printf("| `%s` |",
                                                mc_objects[i].type);

        check_has(text, cell);
    }
}

static void check_file(const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(KA_SOURCE_DIR, "docs", name,
                                             NULL);
    g_autofree char *got = NULL;

    if (!g_file_get_contents(path, &got, NULL, NULL) || strcmp(got, text)) {
        g_error("%s is not what the tables say: run scripts/gen-docs", path);
    }
}

static void test_files(void)
{
    g_autofree char *man = mc_render_man();
    g_autofree char *markdown = mc_render_markdown();

    check_file("ka.1", man);
    check_file("commands.md", markdown);
}

/* ---- JSON objects -------------------------------------------------------- */

static bool is_field(const char *key)
{
    for (unsigned i = 0; i < MC_FIELD__COUNT; i++) {
        if (!strcmp(key, mc_fields[i].key)) {
            return true;
        }
    }
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        if (!strcmp(key, mc_top_columns[i].key)) {
            return true;
        }
    }
    return !strcmp(key, "schema") || !strcmp(key, "type");
}

static void check_key(const McObject *object, const char *key)
{
    g_autofree char *word = g_strdup_printf("\\b%s\\b", key);
    g_autoptr(GString) field = g_string_new(key);

    /* the keys of a stack besides its own */
    g_string_replace(field, "_symbols", "", 1);
    if (g_str_has_suffix(key, "_at")) {
        g_string_truncate(field, field->len - strlen("_at"));
        g_free(word);
        word = g_strdup_printf("\\b%s\\b", field->str);
    }
    if (!is_field(field->str) &&
        !g_regex_match_simple(word, object->help, 0, 0)) {
        g_error("objects.def does not tell of \"%s\" of \"%s\"", key,
                object->type);
    }
}

static const McObject *find_object(const char *line)
{
    for (unsigned i = 0; i < MC_OBJ__COUNT; i++) {
        g_autofree char *type = g_strdup_printf(
            "{\"schema\":1,\"type\":\"%s\"", mc_objects[i].type);

        if (g_str_has_prefix(line, type)) {
            return &mc_objects[i];
        }
    }
    g_error("no row of objects.def: %s", line);
}

/* @seen: one for each type */
static void check_line(const char *line, bool *seen)
{
    g_autoptr(GRegex) keys = g_regex_new("[{,]\"([^\"\\\\]+)\":", 0, 0, NULL);
    g_autoptr(GMatchInfo) m = NULL;
    const McObject *object;

    if (!g_str_has_prefix(line, "{\"schema\"")) {
        return;
    }
    object = find_object(line);
    seen[object - mc_objects] = true;
    g_regex_match(keys, line, 0, &m);
    for (; object != &mc_objects[MC_OBJ_STAT] && g_match_info_matches(m);
         g_match_info_next(m, NULL)) {
        g_autofree char *key = g_match_info_fetch(m, 1);

        check_key(object, key);
    }
}

static void check_lines(const char *text, bool *seen)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (unsigned i = 0; lines[i]; i++) {
        check_line(lines[i], seen);
    }
}

static void check_cases(bool *seen)
{
    g_autoptr(GDir) dir = g_dir_open(CASES, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(CASES, name, "expected",
                                                 NULL);
        g_autofree char *text = NULL;

        if (g_file_get_contents(path, &text, NULL, NULL)) {
            check_lines(text, seen);
        }
    }
}

static bool append(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* What takes a journal to be printed. */
static void check_events(TestWorld *w, bool *seen)
{
    g_autoptr(GString) got = g_string_new(NULL);
    McContext ctx = { .tracer = test_world_tracer(w), .puts = append,
                      .puts_opaque = got };
    McOut out;

    mc_out_init(&out, &ctx);
    for (unsigned i = KT_EV_ALLOC; i < KT_EV__COUNT; i++) {
        mc_format_json.event(&out, &(KtEvent) {
            .kind = i, .layer = KT_LAYER_CACHE, .task = { 1 },
            .cache = { 1 } }, NULL);
    }
    mc_format_json.mark(&out, "reset", 0);
    mc_out_deinit(&out);
    check_lines(got->str, seen);
}

/* Rows of ka slab check. */
static void check_slabs(bool *seen)
{
    g_autoptr(SlabGuest) g = slab_guest_new(SG_6_12, SG_PLAIN);
    g_autoptr(GString) got = g_string_new(NULL);
    McContext ctx = { .tracer = g->t, .kernel = &g->k, .kernel_found = true,
                      .vm = &g->vm, .puts = append, .puts_opaque = got };

    sg_add_cache(g, 1, "kmalloc-256", 256);
    sg_add_slab(g, 1, 16, (unsigned[]) { 3, 5 }, 2);
    sg_set_partial(g, 1, (unsigned[]) { 16, 0 });
    sg_set_counts(g, 16, 15, 17);
    mc_run(&ctx, "slab check -j");
    check_lines(got->str, seen);
}

/* Rows of ka access -v. */
static void check_access(bool *seen)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    g_autoptr(GString) got = g_string_new(NULL);
    McContext ctx = { .tracer = t, .puts = append, .puts_opaque = got };

    kt_arming_explain(kt_arming_of(t), KT_ACCESS_OVERREAD, 0x1000,
                      0);
    mc_run(&ctx, "access -v -j");
    check_lines(got->str, seen);
}

/* All that is printed is told of, and all of it was seen. */
static void test_objects(void)
{
    g_autoptr(TestWorld) w = test_world_new(
        "alloc va=1000 size=10 us=1 pid=1 comm=a cache=b\n"
        "hook name=kfree va=1000 symbol=a from=b args_from=c\n"
        "hook name=vfree note=d\n");
    g_autofree char *stat = test_world_run(w, "stat -j -v", NULL);
    bool seen[MC_OBJ__COUNT] = { false };

    check_lines(stat, seen);
    check_events(w, seen);
    check_slabs(seen);
    check_access(seen);
    check_cases(seen);
    for (unsigned i = 0; i < MC_OBJ__COUNT; i++) {
        if (!seen[i]) {
            g_error("nothing prints \"%s\"", mc_objects[i].type);
        }
    }
}

/* ---- completion ---------------------------------------------------------- */

static void check_complete(const char *line, const char *expected)
{
    g_auto(GStrv) got = mc_complete(NULL, line);
    g_autofree char *joined = g_strjoinv(" ", got);

    g_assert_cmpstr(joined, ==, expected);
}

static void test_complete(void)
{
    check_complete("", "show alloc free error events whatis map task files "
                   "mod base struct cache slab regs stack bt symbols top mark "
                   "diff export report leak refs type log calls trace access "
                   "fault stat on off clear check help");
    check_complete(NULL, "");
    check_complete("s", "show struct slab stack symbols stat");
    check_complete("sh", "show");
    check_complete("-n 3 sh", "show");
    check_complete("-n s", "");
    check_complete("x", "");
    check_complete("show ", "");
    check_complete("help f", "free files fault");
    check_complete("leak ", "scan list clear dump module");
    check_complete("help leak d", "dump");
    check_complete("leak dump ", "");
    check_complete("leak scan --format ", "ka kmemleak");
    check_complete("log --format ", "text ftrace");
    check_complete("log --level e", "emerg err");
    check_complete("show -", "-s -j -n -v -l --pc --history -h --help");
    check_complete("stat -", "-j -v -h --help");
    check_complete("alloc x --la", "--layer");
    check_complete("alloc x --layer v", "vmalloc");
    check_complete("error --kind d", "double-free");
    check_complete("1000 --state ", "A F");
    check_complete("export fo", "folded");
    check_complete("export p", "pprof");
    check_complete("export folded --frames ", "function line offset");
    check_complete("export folded --value l", "live live_asked");
    check_complete("task --sort t", "tgid");
    check_complete("fault add x --do ", "fail log stop");
    check_complete("access on --only ", "use-after-free out-of-bounds "
                   "free-slot");
}

/* The shells themselves are driven by tests/replay/shells.py. */
static void test_completion_of_shells(void)
{
    static const char *const names[] = { "bash", "zsh", "fish" };

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *text = mc_render_completion(names[i]);

        check_has(text, "'leak module'");
        check_has(text, "'use-after-free'");
    }
    g_assert_null(mc_render_completion("sh"));
}

/* The usage of the program names the options of program.def. */
static void test_program_options(void)
{
    char *argv[] = { (char *)g_getenv("KA_PROGRAM"), (char *)"--help", NULL };
    g_autofree char *usage = NULL;
    g_autoptr(GError) err = NULL;

    if (!argv[0]) {
        g_test_skip("KA_PROGRAM does not tell where ka is");
        return;
    }
    g_spawn_sync(NULL, argv, NULL, 0, NULL, NULL, &usage, NULL, NULL, &err);
    g_assert_no_error(err);
#define MC_PROGRAM_OPTION(id, spelling, ...) check_has(usage, spelling);
#include "monitor-cmds/table/program.def"
}

static void test_rows(void)
{
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        g_assert_nonnull(mc_command_functions[i]);
        g_assert_nonnull(mc_commands[i].topic);
        g_assert_cmpuint(strlen(mc_commands[i].help), <, 76);
    }
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        g_assert_true(!mc_options[i].arg == !mc_option_setters[i]);
    }
    g_assert_nonnull(mc_help_short());
    g_assert_nonnull(mc_help_params());
}

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/help/rundown-has-every-command", test_rundown },
        { "/help/page-of-every-command", test_pages },
        { "/help/option-prints-the-page", test_help_option },
        { "/help/man-page", test_man },
        { "/help/markdown", test_markdown },
        { "/help/files-are-up-to-date", test_files },
        { "/help/objects-are-told-of", test_objects },
        { "/help/completion", test_complete },
        { "/help/completion-of-shells", test_completion_of_shells },
        { "/help/program-options", test_program_options },
        { "/help/rows-are-whole", test_rows },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
