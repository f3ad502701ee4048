/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Golden cases: tests/replay/cases/NNN-name/{events,cmd,expected}.
 *
 * Each case runs the script events (language: tests/lib/events.h), then the
 * commands of the file cmd, one a line. Their output must be equal to the file
 * expected. Before the output of a command is a line "$ ka <command>"; after
 * it, if the result is not 0, a line "= <result>". A line "+ <statement>" in
 * cmd is a statement of the script. A case that has a file guest instead of
 * events uses the guest and the language of leak-script.h.
 *
 * A case may have a file script, for docs/scripts.md. Lines of cmd that begin
 * with "@" are moments: "@ found", "@ load <module>", "@ unload <module>". The
 * line "(pause)" shows where the VM must be paused, and "! " begins a line for
 * the user.
 *
 * KA_REPLAY_UPDATE=1 writes the files expected instead of comparing them. Read
 * the diff then.
 */
#include <string.h>

#include "tests/lib/events.h"
#include "tests/replay/leak-script.h"

#define CASES KA_SOURCE_DIR "/tests/replay/cases"

/* One of the first two is NULL. */
typedef struct Case {
    TestWorld *world;
    LeakScript *leaks;
    McScript *script;
} Case;

static char *read_case(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) err = NULL;
    char *text = NULL;

    g_file_get_contents(path, &text, NULL, &err);
    g_assert_no_error(err);
    return text;
}

/* ---- scripts ------------------------------------------------------------- */

/* What the script printed. say() has no argument. */
static GString *printed_by_script;

static bool puts_script(void *opaque, const char *text)
{
    g_string_append(printed_by_script, text);
    return true;
}

static void say(const char *line)
{
    g_string_append_printf(printed_by_script, "! %s\n", line);
}

static McScript *read_script(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "script", NULL);
    g_autoptr(GError) err = NULL;
    g_autofree char *text = NULL;
    McScript *s = NULL;

    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        text = read_case(dir, "script");
        s = mc_script_new(text, strlen(text), "script", "target", &err);
        g_assert_no_error(err);
    }
    return s;
}

static void run_moment(Case *c, const char *line, GString *out)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    McContext ctx = *test_world_context(c->world);
    McMoment moment = !strcmp(words[1], "found") ? MC_MOMENT_FOUND :
                      !strcmp(words[1], "load") ? MC_MOMENT_LOAD :
                                                  MC_MOMENT_UNLOAD;
    g_autoptr(McScriptRun) run = mc_script_begin(c->script, moment, words[2]);

    printed_by_script = out;
    ctx.puts = puts_script;
    g_string_append_printf(out, "%s\n", line);
    if (run && !mc_script_run(run, &ctx, false, say)) {
        g_string_append(out, "(pause)\n");
        g_assert_true(mc_script_run(run, &ctx, true, say));
    }
}

/* ---- cases --------------------------------------------------------------- */

static void open_case(Case *c, const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "guest", NULL);
    bool of_leaks = g_file_test(path, G_FILE_TEST_EXISTS);
    g_autofree char *script = read_case(dir, of_leaks ? "guest" : "events");

    *c = (Case) { .script = read_script(dir) };
    if (of_leaks) {
        c->leaks = leak_script_new();
        leak_script_events(c->leaks, script);
    } else {
        c->world = test_world_new(script);
    }
}

static void close_case(Case *c)
{
    g_clear_pointer(&c->world, test_world_free);
    g_clear_pointer(&c->leaks, leak_script_free);
    g_clear_pointer(&c->script, mc_script_free);
}

static void run_events(Case *c, const char *script)
{
    if (c->leaks) {
        leak_script_events(c->leaks, script);
    } else {
        test_world_events(c->world, script);
    }
}

/*
 * Lines that may be longer than a terminal:
 * - of a command that asks for more, or for the form of another program;
 * - errors, which other programs print, too;
 * - lines of the guest's log, which are searched by their text;
 * - one word that is longer.
 */
static bool may_be_long(const char *command, const char *line)
{
    const char *text = line + strspn(line, " ");

    return g_regex_match_simple(" -[a-z]*[vwxlj]|--format|^help|^export",
                                command, 0, 0) ||
           g_str_has_prefix(line, "ka: ") ||
           g_regex_match_simple("^<[0-9]+>|us log ", line, 0, 0) ||
           !strchr(text, ' ');
}

/* All other lines fit a terminal. */
static void check_columns(const char *command, const char *printed)
{
    g_auto(GStrv) lines = g_strsplit(printed, "\n", -1);

    for (unsigned i = 0; lines[i]; i++) {
        if (strlen(lines[i]) > 100 && !may_be_long(command, lines[i])) {
            g_printerr("ka %s: a line has %zu columns: %s\n", command,
                       strlen(lines[i]), lines[i]);
            g_test_fail();
        }
    }
}

static void run_command(Case *c, const char *line, GString *out)
{
    g_autofree char *printed = NULL;
    int rc;

    if (g_str_has_prefix(line, "@ ")) {
        run_moment(c, line, out);
        return;
    }

    if (g_str_has_prefix(line, "+ ")) {
        run_events(c, line + 2);
        g_string_append_printf(out, "%s\n", line);
        return;
    }
    printed = c->leaks ? leak_script_run(c->leaks, line, &rc)
                       : test_world_run(c->world, line, &rc);
    check_columns(line, printed);
    g_string_append_printf(out, "$ ka%s%s\n%s", *line ? " " : "", line,
                           printed);
    if (rc) {
        g_string_append_printf(out, "= %d\n", rc);
    }
}

static void check_expected(const char *dir, const char *got)
{
    g_autofree char *path = g_build_filename(dir, "expected", NULL);
    g_autofree char *expected = NULL;
    g_autoptr(GError) err = NULL;

    if (g_getenv("KA_REPLAY_UPDATE")) {
        g_file_set_contents(path, got, -1, &err);
        g_assert_no_error(err);
        return;
    }
    expected = read_case(dir, "expected");
    if (strcmp(got, expected)) {
        g_printerr("--- %s\n%s--- got\n%s---\n", path, expected, got);
        g_test_fail();
    }
}

static void run_case(gconstpointer data)
{
    const char *dir = data;
    g_autofree char *cmd = read_case(dir, "cmd");
    g_auto(GStrv) lines = g_strsplit(cmd, "\n", -1);
    g_autoptr(GString) out = g_string_new(NULL);
    Case c;

    open_case(&c, dir);
    for (unsigned i = 0; lines[i]; i++) {
        /* skip the end of the file; "ka" alone is a blank line */
        if (*lines[i]) {
            run_command(&c, g_strstrip(lines[i]), out);
        }
    }
    close_case(&c);
    check_expected(dir, out->str);
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int main(int argc, char **argv)
{
    g_autoptr(GDir) dir = NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;

    g_test_init(&argc, &argv, NULL);
    dir = g_dir_open(CASES, 0, NULL);
    while (dir && (name = g_dir_read_name(dir))) {
        if (g_ascii_isdigit(name[0])) {
            g_ptr_array_add(names, g_strdup(name));
        }
    }
    g_ptr_array_sort(names, compare_names);
    for (unsigned i = 0; i < names->len; i++) {
        g_autofree char *path = g_strdup_printf("/replay/%s",
            (const char *)g_ptr_array_index(names, i));

        g_test_add_data_func_full(path,
            g_build_filename(CASES, g_ptr_array_index(names, i), NULL),
            run_case, g_free);
    }
    return g_test_run();
}
