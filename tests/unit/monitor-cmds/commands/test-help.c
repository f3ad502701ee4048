/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Help, manual and completion name every row of the tables, and the files in
 * docs/ are what the tables produce.
 */
#include <string.h>

#include "kalloc-tracer/access/arming.h"
#include "tests/lib/journal-files.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"
#include "monitor-cmds/commands/commands.h"
#include "tests/lib/events.h"
#include "monitor-cmds/output/block-row.h"

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

/* Return the number of rows of the screen that have the command. */
static unsigned n_questions_of(McCommandId id)
{
    unsigned n = 0;

    for (unsigned i = 0; i < mc_n_questions; i++) {
        n += !mc_questions[i].text && mc_questions[i].command == id;
    }
    return n;
}

TEST(test_screen, "/help/screen-has-every-command")
{
    static const char *const lines[] = { NULL, "help" };

    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        g_assert_cmpuint(n_questions_of(i), ==, i != MC_CMD_RUNDOWN);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autoptr(TestWorld) w = test_world_new("");
        int rc;
        g_autofree char *text = test_world_run(w, lines[i], &rc);
        g_auto(GStrv) line = g_strsplit(text, "\n", -1);

        g_assert_cmpint(rc, ==, 0);
        g_assert_cmpuint(g_strv_length(line) - 1, <=, 40);
        for (unsigned j = 0; line[j]; j++) {
            g_assert_cmpuint(strlen(line[j]), <=, 80);
        }
        check_has(text, "no kernel file was given");
    }
}

TEST(test_pages, "/help/page-of-every-command")
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

TEST(test_help_option, "/help/option-prints-the-page")
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

TEST(test_man, "/help/man-page")
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

/* Call @fn for the rows of all commands. */
static void foreach_object(void (*fn)(const McObject *object, void *opaque),
                           void *opaque)
{
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        for (unsigned k = 0; mc_command_objects[i][k]; k++) {
            fn(mc_command_objects[i][k], opaque);
        }
    }
}

static void check_cell(const char *text, const char *name)
{
    g_autofree char *cell = g_strdup_printf("| `%s` |", name);

    check_has(text, cell);
}

static void check_cells(const McObject *object, void *text)
{
    if (object->type) {
        check_cell(text, object->type);
    }
    for (unsigned i = 0; object->is_block && i < MC_SETS &&
                         object->columns[i]; i++) {
        for (const McColumn *c = object->columns[i]; c->key; c++) {
            check_cell(text, c->key);
        }
    }
}

TEST(test_markdown, "/help/markdown")
{
    g_autofree char *text = mc_render_markdown();

    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        check_has(text, kt_counter_name(i));
    }
    foreach_object(check_cells, text);
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

TEST(test_files, "/help/files-are-up-to-date")
{
    g_autofree char *man = mc_render_man();
    g_autofree char *markdown = mc_render_markdown();

    check_file("ka.1", man);
    check_file("commands.md", markdown);
}

/* ---- JSON objects -------------------------------------------------------- */

/** struct Line - a line of JSON of this type; @keys: (owned) those that no
 *  column has yet; @found: a command has rows of this type */
typedef struct Line {
    const char *type;
    GHashTable *keys;
    bool found;
} Line;

static void remove_key(Line *l, const McColumn *c, const char *suffix)
{
    g_autofree char *key = g_strconcat(c->key, suffix, NULL);

    g_hash_table_remove(l->keys, key);
}

static void remove_columns(Line *l, const McColumn *columns)
{
    for (const McColumn *c = columns; c->key || c->text; c++) {
        if (c->key && c->help) {
            remove_key(l, c, "");
            remove_key(l, c, "_symbols");
            remove_key(l, c, "_symbol");
            remove_key(l, c, "_at");
        }
    }
}

static void remove_known(const McObject *object, void *opaque)
{
    Line *l = opaque;

    if (g_strcmp0(object->type, l->type)) {
        return;
    }
    l->found = true;
    if (object->line) {
        g_hash_table_remove(l->keys, "text");
    }
    for (unsigned i = 0; i < MC_SETS && object->columns[i]; i++) {
        remove_columns(l, object->columns[i]);
    }
}

/* Return (owned) the keys of an object, without those of objects in it. */
static GHashTable *keys_of(const char *line)
{
    GHashTable *keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                             NULL);
    unsigned depth = 0;
    bool quoted = false;

    for (const char *at = line; *at; at++) {
        if (*at == '"' && !quoted && depth == 1 && strchr("{,", at[-1])) {
            g_hash_table_add(keys, g_strndup(at + 1, strcspn(at + 1, "\"")));
        }
        quoted ^= *at == '"';
        at += quoted && *at == '\\';
        depth += !quoted && strchr("{[", *at);
        depth -= !quoted && strchr("}]", *at);
    }
    return keys;
}

/* Check that each key of a line is a column of its type. @seen: types */
static void check_line(const char *line, GHashTable *seen)
{
    static const char begin[] = "{\"schema\":1,\"type\":\"";
    g_autofree char *type = NULL;
    g_autoptr(GHashTable) keys = NULL;
    GHashTableIter it;
    Line l = { 0 };
    gpointer key;

    if (!g_str_has_prefix(line, "{\"schema\"")) {
        return;
    }
    g_assert_true(g_str_has_prefix(line, begin));
    type = g_strndup(line + strlen(begin),
                     strcspn(line + strlen(begin), "\""));
    keys = keys_of(line);
    g_hash_table_remove(keys, "schema");
    g_hash_table_remove(keys, "type");
    l.type = type;
    l.keys = keys;
    foreach_object(remove_known, &l);
    if (!l.found) {
        g_error("no command has rows \"%s\"", type);
    }
    g_hash_table_iter_init(&it, keys);
    if (strcmp(type, "stat") && g_hash_table_iter_next(&it, &key, NULL)) {
        g_error("\"%s\" has no column \"%s\"", type, (char *)key);
    }
    g_hash_table_add(seen, g_steal_pointer(&type));
}

static void check_lines(const char *text, GHashTable *seen)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (unsigned i = 0; lines[i]; i++) {
        check_line(lines[i], seen);
    }
}

static void check_cases(GHashTable *seen)
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
static void check_events(TestWorld *w, GHashTable *seen)
{
    g_autoptr(GString) got = g_string_new(NULL);
    McContext ctx = { .tracer = test_world_tracer(w), .puts = append,
                      .puts_opaque = got };
    McOut out;

    mc_out_init(&out, &ctx);
    out.json = true;
    for (unsigned i = KT_EV_ALLOC; i < KT_EV__COUNT; i++) {
        mc_print_event(&out, &(KtEvent) {
            .kind = i, .layer = KT_LAYER_CACHE, .task = { 1 },
            .cache = { 1 } }, NULL);
    }
    mc_print_control(&out, "reset", 0);
    mc_out_deinit(&out);
    check_lines(got->str, seen);
}

static KtEventPlace first_event(void *opaque)
{
    return (KtEventPlace) { .event = 1 };
}

static uint64_t first_us(void *opaque)
{
    return 1;
}

/* @opaque: points to it */
static void insn_of(void *opaque, KtGotoInsn *out)
{
    *out = *(KtGotoInsn *)opaque;
}

/* Rows of ka goto: an event, and a word. */
static void check_goto(GHashTable *seen)
{
    KtGotoInsn insn = { 0 };
    JournalPath *path = new_path();
    g_autoptr(TestWorld) w = test_world_new("");
    KtGoto go = { .journal = path, .now = first_event, .us = first_us,
                  .insn = insn_of, .opaque = &insn };
    g_autofree char *said = NULL, *word = NULL;

    test_world_free(test_world_new_at("alloc va=1000 size=10 us=1\n", path));
    test_world_context(w)->go = &go;
    said = test_world_run(w, "goto -j", NULL);
    check_lines(said, seen);
    insn = (KtGotoInsn) { .step = KT_GOTO_THERE, .is_word = true };
    word = test_world_run(w, "goto -j", NULL);
    check_lines(word, seen);
    remove_path(path);
}

static bool translate(void *opaque, unsigned vcpu, uint64_t va, uint64_t *phys)
{
    *phys = 20 * 4096;
    return true;
}

/* Rows of ka slab check, and of an address that maps a page. */
static void check_slabs(GHashTable *seen)
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
    g->vm.translate = translate;
    kt_tracer_push(g->t, 0, &(KtEvent) {
        .kind = KT_EV_ALLOC, .layer = KT_LAYER_PAGES, .size = 4096,
        .va = SG_DIRECT + 20 * 4096, .actual = 4096 });
    mc_run(&ctx, "ffffc90000000000 -j");
    check_lines(got->str, seen);
}

/* Rows of ka access -v. */
static void check_access(GHashTable *seen)
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

static void check_seen(const McObject *object, void *seen)
{
    if (object->type && !g_hash_table_contains(seen, object->type)) {
        g_error("nothing prints \"%s\"", object->type);
    }
}

/* Each key that is printed is a column of its type, and each type is printed
 * by a test. */
TEST(test_objects, "/help/objects-are-told-of")
{
    g_autoptr(TestWorld) w = test_world_new(
        "alloc va=1000 size=10 us=1 pid=1 comm=a cache=b\n"
        "hook name=kfree va=1000 symbol=a from=b args_from=c "
        "calls=e\n"
        "hook name=vfree note=d\n");
    g_autofree char *stat = test_world_run(w, "stat -j -v", NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(
        g_str_hash, g_str_equal, g_free, NULL);

    check_lines(stat, seen);
    check_events(w, seen);
    check_goto(seen);
    check_slabs(seen);
    check_access(seen);
    check_cases(seen);
    foreach_object(check_seen, seen);
}

/* ---- completion ---------------------------------------------------------- */

static void check_complete(const char *line, const char *expected)
{
    g_auto(GStrv) got = mc_complete(NULL, line);
    g_autofree char *joined = g_strjoinv(" ", got);

    g_assert_cmpstr(joined, ==, expected);
}

TEST(test_complete, "/help/completion")
{
    check_complete("", "show alloc free error events goto whatis map task "
                   "files mod base struct cache slab regs stack bt symbols top "
                   "mark diff export report leak refs type log calls trace "
                   "access fault stat on off clear check help");
    check_complete(NULL, "");
    check_complete("s", "show struct slab stack symbols stat");
    check_complete("sh", "show");
    check_complete("-n 3 sh", "show");
    check_complete("-n s", "");
    check_complete("x", "");
    check_complete("show ", "");
    check_complete("help f", "free files fault");
    check_complete("leak ", "scan list dismiss dump module");
    check_complete("help leak d", "dismiss dump");
    check_complete("leak dump ", "");
    check_complete("leak scan --format ", "text kmemleak");
    check_complete("log --format ", "text ftrace");
    check_complete("log --level e", "emerg err");
    check_complete("show -", "-s -j -n -v -w -l --pc --history -x -h --help");
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
TEST(test_completion_of_shells, "/help/completion-of-shells")
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
TEST(test_program_options, "/help/program-options")
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

TEST(test_rows, "/help/rows-are-whole")
{
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        g_assert_nonnull(mc_command_functions[i]);
        g_assert_nonnull(mc_commands[i].topic);
        g_assert_cmpuint(strlen(mc_commands[i].help), <, 76);
    }
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        g_assert_true(!mc_options[i].arg == !mc_option_has_value(i));
    }
    g_assert_nonnull(mc_help_short());
    g_assert_nonnull(mc_help_params());
}
