/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scripts: what the parser accepts, and the line of each error. Golden case
 * 070-script shows what a run prints and undoes.
 */
#include <string.h>

#include "tests/lib/test-main.h"
#include "monitor-cmds/script/script.h"

#define READY KA_SOURCE_DIR "/scripts/ready"

static McScript *parse(const char *text, const char *module, GError **errp)
{
    return mc_script_new(text, strlen(text), "f", module, errp);
}

typedef struct Bad {
    const char *text, *why;
} Bad;

static const Bad bad[] = {
    { "mark a\nfre kmalloc\n",
      "f:2: \"fre\": no such command; near: free; ka help lists them" },
    { "kmalloc\n", "f:1: \"kmalloc\": no such command; near: "
      "alloc; ka help lists them" },
    { "ka\n", "f:1: \"ka\": a command must follow" },
    { "ka nonsense", "f:1: \"nonsense\": no such command; ka help lists them" },
    { "leak", "f:1: a word is missing; ka leak is followed by one of: scan, "
      "list, dismiss, dump, module" },
    { "leak scam", "f:1: \"scam\": no such command; ka leak is followed by one "
      "of: scan, list, dismiss, dump, module" },
    { "show", "f:1: a word is missing; usage: ka show <va>" },
    { "mark a b", "f:1: \"b\": one word too many; usage: ka mark [<name>]" },
    { "alloc b-a\nshow 2000-1000",
      "f:1: \"b-a\": the end, a, is before the start, b" },
    { "on load", "f:1: \"on load\": the name of a module is missing; write: on "
      "load MODULE" },
    { "on load a b", "f:1: \"b\": one word too many; write: on load MODULE" },
    { "\n\non unload a*\nend", "f:3: \"a*\": the name of a module has 1 to 55 "
      "letters, digits, \"_\" and \"-\"" },
    { "on load a\nmark x\non load b\nend", "f:3: \"on load\": blocks cannot be "
      "in blocks; the \"end\" of the block of line 1 is missing" },
    { "end", "f:1: \"end\": no block begins before it; a block begins with: on "
      "load MODULE, or: on unload MODULE" },
    { "mark a\non load a\nmark b\n",
      "f:2: the \"end\" of this block is missing" },
    { "on load a\nleak scan\nend", "f:2: \"leak scan\" pauses the VM, which is "
      "not possible before a module's init; move it to an \"on unload\" "
      "block" },
    { "on load $MODULE\nend", "f:1: \"$MODULE\": the option script-module=NAME "
      "of the plugin is missing, which says what it stands for" },
    { "mark a\nmark \033[1m", "f:2: byte 6 is 0x1b, which is no text; use "
      "printable characters" },
    { "calls add kfree --if 'arg0 = 1 &&'", "f:1: --if: condition, column 12: "
      "expected a number, a name or '(', found the end" },
    { "calls add kfree --if 'flags = GFP_KERNLE'", "f:1: --if: condition, "
      "column 9: no name 'GFP_KERNLE' here; did you mean GFP_KERNEL?" },
    { "calls add some_module:f --if 'any_name = 1 || !in_init'", NULL },
    { "on", NULL },
    { "on loud", "f:1: \"loud\": one word too many; usage: ka on" },
};

static void test_bad(gconstpointer data)
{
    const Bad *b = data;
    g_autoptr(GError) err = NULL;
    g_autoptr(McScript) s = parse(b->text, NULL, &err);

    if (!b->why) {
        g_assert_no_error(err);
        return;
    }
    g_assert_null(s);
    g_assert_error(err, MC_ERROR, MC_ERROR_SYNTAX);
    g_assert_cmpstr(err->message, ==, b->why);
}

static const McScriptBlock *block(const McScript *s, unsigned i)
{
    g_assert_cmpuint(i, <, s->blocks->len);
    return &g_array_index(s->blocks, McScriptBlock, i);
}

static const McScriptCommand *command(const McScript *s, unsigned b, unsigned i)
{
    g_assert_cmpuint(i, <, block(s, b)->commands->len);
    return &g_array_index(block(s, b)->commands, McScriptCommand, i);
}

TEST(test_good, "/script/good")
{
    static const char text[] =
        "# comment \303\244\r\n"
        "   # another\n"
        "\tka  mark   a \r\n"
        "on load x-1\n"
        "on\n"
        "  leak scan --every 10\n"
        "end\n"
        "alloc some_function\n"
        "free module:other+10-module:other+8\n"
        "ffffffff81000000-ffffffff81000010\n"
        "--cache kmalloc-64\n"
        "on unload $MODULE\n"
        "leak module $MODULE\n"
        "end";
    g_autoptr(GError) err = NULL;
    g_autoptr(McScript) s = parse(text, "m_2", &err);

    g_assert_no_error(err);
    g_assert_cmpuint(s->blocks->len, ==, 3);
    g_assert_cmpuint(block(s, 0)->commands->len, ==, 5);
    g_assert_cmpstr(command(s, 0, 0)->text, ==, "mark   a");
    g_assert_cmpuint(command(s, 0, 0)->line, ==, 3);
    g_assert_cmpstr(command(s, 1, 0)->text, ==, "on");
    g_assert_false(command(s, 1, 1)->pauses);
    g_assert_cmpstr(command(s, 2, 0)->text, ==, "leak module m_2");
    g_assert_true(command(s, 2, 0)->pauses);
}

TEST(test_moments, "/script/moments")
{
    g_autoptr(McScript) s = parse("on load a-b_c\nmark x\nend", NULL, NULL);
    const McScriptBlock *b = block(s, 1);

    g_assert_true(mc_script_block_is_for(b, MC_MOMENT_LOAD, "a_b_c"));
    g_assert_true(mc_script_block_is_for(b, MC_MOMENT_LOAD, "a-b-c"));
    g_assert_false(mc_script_block_is_for(b, MC_MOMENT_UNLOAD, "a_b_c"));
    g_assert_false(mc_script_block_is_for(b, MC_MOMENT_LOAD, "a_b_"));
    g_assert_false(mc_script_block_is_for(b, MC_MOMENT_LOAD, "a_b_cd"));
    g_assert_false(mc_script_block_is_for(b, MC_MOMENT_LOAD, NULL));
    g_assert_false(mc_script_block_is_for(b, MC_MOMENT_FOUND, NULL));
    g_assert_true(mc_script_block_is_for(block(s, 0), MC_MOMENT_FOUND, NULL));
    g_assert_null(mc_script_begin(s, MC_MOMENT_FOUND, NULL));
    g_assert_null(mc_script_begin(s, MC_MOMENT_LOAD, "other"));
}

TEST(test_limits, "/script/limits")
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *large = g_strnfill((1 << 20) + 1, '#');
    g_autoptr(GError) err = NULL;

    g_assert_null(parse(large, NULL, &err));
    g_assert_cmpstr(err->message, ==, "f: a script has at most 1048576 bytes");
    g_clear_error(&err);
    for (unsigned i = 0; i < 1001; i++) {
        g_string_append(text, "on\n");
    }
    g_assert_null(parse(text->str, NULL, &err));
    g_assert_cmpstr(err->message, ==,
                    "f:1001: a script has at most 1000 commands");
    g_clear_error(&err);
    g_assert_null(parse("", "a b", &err));
    g_assert_cmpstr(err->message, ==, "script-module=a b: the name of a module "
                    "has 1 to 55 letters, digits, \"_\" and \"-\"");
}

TEST(test_nul, "/script/nul")
{
    g_autoptr(GError) err = NULL;

    g_assert_null(mc_script_new("on\n\0on", 6, "f", NULL, &err));
    g_assert_cmpstr(err->message, ==, "f:2: byte 1 is 0x00, which is no text; "
                    "use printable characters");
}

TEST(test_open, "/script/open")
{
    g_autoptr(GError) err = NULL;

    g_assert_null(mc_script_open("/nonexistent", NULL, &err));
    g_assert_cmpstr(err->message, ==,
                    "/nonexistent: No such file or directory");
}

/* The scripts of the tree are accepted. */
TEST(test_ready, "/script/ready")
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GDir) dir = g_dir_open(READY, 0, &err);
    const char *name;
    unsigned n = 0;

    g_assert_no_error(err);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(READY, name, NULL);
        g_autoptr(McScript) s = NULL;

        if (g_str_has_suffix(name, ".ka")) {
            s = mc_script_open(path, "any_module", &err);
            g_assert_no_error(err);
            g_assert_cmpuint(s->n_commands, >, 0);
            n++;
        }
    }
    g_assert_cmpuint(n, >, 0);
}

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *path = g_strdup_printf("/script/bad/%u", i);

        test_add(path, NULL, test_bad, &bad[i]);
    }
    return test_run(argc, argv);
}
