/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parser of scripts. Grammar, one statement a line:
 *
 *   # comment
 *   [ka] <command>                 runs when the kernel is found
 *   on load <module>               its commands run before the module's init
 *       [ka] <command>
 *   end
 *   on unload <module>
 *       [ka] <command>
 *   end
 *
 * Each command is checked by the parser of commands. Symbols are not: the
 * kernel is not known yet.
 */
#include "monitor-cmds/script/script.h"

#include <string.h>

#include "monitor-cmds/parse/expr.h"

#define FILE_MAX        (1u << 20)
#define COMMANDS_MAX    1000u
#define MODULE_MAX      55u         /* bytes, as in the kernel */
#define VARIABLE        "$MODULE"

/* The parser. @block: the open one, NULL outside of blocks; an index, as the
 * array may move. */
typedef struct Parser {
    McScript *s;
    const char *module;
    unsigned line;
    unsigned block;
} Parser;

static bool fail(const Parser *p, GError **errp, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static bool fail(const Parser *p, GError **errp, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, format);
    text = g_strdup_vprintf(format, ap);
    va_end(ap);
    return mc_fail_syntax(errp, "%s:%u: %s", p->s->name, p->line, text);
}

/* ---- blocks -------------------------------------------------------------- */

static McScriptBlock *block_at(const McScript *s, unsigned i)
{
    return &g_array_index(s->blocks, McScriptBlock, i);
}

static void clear_command(gpointer p)
{
    g_free(((McScriptCommand *)p)->text);
}

static void clear_block(gpointer p)
{
    McScriptBlock *b = p;

    g_free(b->module);
    g_array_unref(b->commands);
}

static void add_block(McScript *s, McMoment moment, const char *module,
                      unsigned line)
{
    McScriptBlock b = {
        .moment = moment,
        .module = g_strdup(module),
        .line = line,
        .commands = g_array_new(FALSE, FALSE, sizeof(McScriptCommand)),
    };

    g_array_set_clear_func(b.commands, clear_command);
    g_array_append_val(s->blocks, b);
}

/* Return true if all is well with the name of a module. */
static bool is_module_name(const char *name)
{
    size_t len = strlen(name);

    for (const char *c = name; *c; c++) {
        if (!g_ascii_isalnum(*c) && *c != '_' && *c != '-') {
            return false;
        }
    }
    return len && len <= MODULE_MAX;
}

static char canonical(char c)
{
    return c == '-' ? '_' : c;
}

bool mc_script_block_is_for(const McScriptBlock *b, McMoment moment,
                            const char *module)
{
    const char *a = b->module;

    if (b->moment != moment || !a || !module) {
        return b->moment == moment && !a;
    }
    while (*a && canonical(*a) == canonical(*module)) {
        a++;
        module++;
    }
    return !*a && !*module;
}

static bool parse_module(Parser *p, char **words, GError **errp)
{
    g_autofree char *quoted = NULL;

    if (!words[2]) {
        return fail(p, errp, "\"on %s\": the name of a module is missing; "
                    "write: on %s MODULE", words[1], words[1]);
    }
    quoted = mc_quote(words[3] ? words[3] : words[2]);
    if (words[3]) {
        return fail(p, errp, "%s: one word too many; write: on %s MODULE",
                    quoted, words[1]);
    }
    return is_module_name(words[2]) ||
           fail(p, errp, "%s: the name of a module has 1 to %u letters, "
                "digits, \"_\" and \"-\"", quoted, MODULE_MAX);
}

static bool parse_on(Parser *p, char **words, GError **errp)
{
    bool load = !strcmp(words[1], "load");

    if (p->block) {
        return fail(p, errp, "\"on %s\": blocks cannot be in blocks; the "
                    "\"end\" of the block of line %u is missing", words[1],
                    block_at(p->s, p->block)->line);
    }
    if (!parse_module(p, words, errp)) {
        return false;
    }
    add_block(p->s, load ? MC_MOMENT_LOAD : MC_MOMENT_UNLOAD, words[2],
              p->line);
    p->block = p->s->blocks->len - 1;
    return true;
}

static bool parse_end(Parser *p, char **words, GError **errp)
{
    if (!p->block) {
        return fail(p, errp, "\"end\": no block begins before it; a block "
                    "begins with: on load MODULE, or: on unload MODULE");
    }
    p->block = 0;
    return true;
}

/* ---- commands ------------------------------------------------------------ */

/* Return true if the word begins with a hex number, as addresses and ranges
 * do. */
static bool is_hex(const char *word)
{
    size_t n = 2 * g_str_has_prefix(word, "0x");

    while (g_ascii_isxdigit(word[n])) {
        n++;
    }
    return n && (!word[n] || word[n] == '+' || word[n] == '-');
}

/* Refuse a first word that can only be a symbol: it is a misspelled command. */
static bool check_first(Parser *p, char **words, GError **errp)
{
    unsigned used, n = g_strv_length(words);
    g_autofree char *group = mc_command_group(words[0]);
    g_autofree char *quoted = NULL;
    const char *near;

    if (group || words[0][0] == '-' || is_hex(words[0]) ||
        mc_command_find(words, n, &used)) {
        return true;
    }
    quoted = mc_quote(words[0]);
    near = mc_command_near(words[0]);
    return fail(p, errp, "%s: no such command%s%s; ka help lists them",
                quoted, near ? "; near: " : "", near ? near : "");
}

static bool check_command(Parser *p, const McScriptCommand *c, GError **errp)
{
    const McContext ctx = { .symbols_later = true };
    g_autoptr(GError) err = NULL;
    g_auto(McArgs) args;

    mc_args_init(&args, &ctx);
    if (!mc_parse(&args, c->text, &err)) {
        return fail(p, errp, "%s", err->message);
    }
    if (args.condition && !kt_condition_check(args.condition, &err)) {
        return fail(p, errp, "--if: %s", err->message);
    }
    if (c->pauses && block_at(p->s, p->block)->moment == MC_MOMENT_LOAD) {
        return fail(p, errp, "\"%s\" pauses the VM, which is not possible "
                    "before a module's init; move it to an \"on unload\" "
                    "block", args.command->word);
    }
    return true;
}

static bool parse_command(Parser *p, const char *row, char **words,
                          GError **errp)
{
    bool has_ka = !strcmp(words[0], "ka");
    const char *text = row + strspn(row, " \t");
    McScriptCommand c = { .line = p->line };

    if (has_ka) {
        text += strlen("ka");
        text += strspn(text, " \t");
        words++;
    }
    if (!*words) {
        return fail(p, errp, "\"ka\": a command must follow");
    }
    if (p->s->n_commands++ == COMMANDS_MAX) {
        return fail(p, errp, "a script has at most %u commands", COMMANDS_MAX);
    }
    c.text = g_strchomp(g_strdup(text));
    c.pauses = mc_pauses(c.text);
    g_array_append_val(block_at(p->s, p->block)->commands, c);
    return check_first(p, words, errp) && check_command(p, &c, errp);
}

/* ---- lines --------------------------------------------------------------- */

/* Return (owned) the line with the module instead of $MODULE, NULL on error. */
static char *replace_module(Parser *p, const char *row, GError **errp)
{
    g_auto(GStrv) parts = g_strsplit(row, VARIABLE, -1);

    if (parts[0] && parts[1] && !p->module) {
        fail(p, errp, "\"" VARIABLE "\": the option script-module=NAME of the "
             "plugin is missing, which says what it stands for");
        return NULL;
    }
    return g_strjoinv(p->module ? p->module : "", parts);
}

/* Return (owned) the words of the line. */
static char **split(const char *row)
{
    g_auto(GStrv) parts = g_strsplit_set(row, " \t", -1);
    GPtrArray *words = g_ptr_array_new();

    for (unsigned i = 0; parts[i]; i++) {
        if (*parts[i]) {
            g_ptr_array_add(words, g_strdup(parts[i]));
        }
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, FALSE);
}

static bool is_on(char **words)
{
    return !strcmp(words[0], "on") && words[1] &&
           (!strcmp(words[1], "load") || !strcmp(words[1], "unload"));
}

static bool parse_line(Parser *p, const char *row, GError **errp)
{
    g_autofree char *text = replace_module(p, row, errp);
    g_auto(GStrv) words = NULL;

    if (!text) {
        return false;
    }
    words = split(text);
    if (!words[0] || words[0][0] == '#') {
        return true;
    }
    if (is_on(words)) {
        return parse_on(p, words, errp);
    }
    if (!strcmp(words[0], "end") && !words[1]) {
        return parse_end(p, words, errp);
    }
    return parse_command(p, text, words, errp);
}

/* A script is text: refuse other bytes, which no terminal shows. */
static bool check_bytes(const Parser *p, const char *row, size_t len,
                        GError **errp)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = row[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return fail(p, errp, "byte %zu is 0x%02x, which is no text; use "
                        "printable characters", i + 1, c);
        }
    }
    return true;
}

static bool parse(Parser *p, const char *text, size_t len, GError **errp)
{
    for (const char *end = text + len, *row = text; row < end;) {
        const char *eol = memchr(row, '\n', end - row);
        size_t n = (eol ? eol : end) - row;
        bool cr = n && row[n - 1] == '\r';
        g_autofree char *copy = g_strndup(row, n - cr);

        p->line++;
        if (!check_bytes(p, row, n - cr, errp) ||
            !parse_line(p, copy, errp)) {
            return false;
        }
        row += n + 1;
    }
    if (p->block) {
        p->line = block_at(p->s, p->block)->line;
        return fail(p, errp, "the \"end\" of this block is missing");
    }
    return true;
}

McScript *mc_script_new(const char *text, size_t len, const char *name,
                        const char *module, GError **errp)
{
    g_autoptr(McScript) s = g_new0(McScript, 1);
    Parser p = { .s = s, .module = module };

    s->name = g_strdup(name);
    s->blocks = g_array_new(FALSE, FALSE, sizeof(McScriptBlock));
    g_array_set_clear_func(s->blocks, clear_block);
    add_block(s, MC_MOMENT_FOUND, NULL, 0);
    if (len > FILE_MAX) {
        mc_fail_syntax(errp, "%s: a script has at most %u bytes", name,
                       FILE_MAX);
        return NULL;
    }
    if (module && !is_module_name(module)) {
        mc_fail_syntax(errp, "script-module=%s: the name of a module has 1 to "
                       "%u letters, digits, \"_\" and \"-\"", module,
                       MODULE_MAX);
        return NULL;
    }
    return parse(&p, text, len, errp) ? g_steal_pointer(&s) : NULL;
}

McScript *mc_script_open(const char *path, const char *module, GError **errp)
{
    g_autoptr(GBytes) bytes = gs_file_read_named(path, FILE_MAX, errp);
    const char *text;
    size_t len;

    if (!bytes) {
        return NULL;
    }
    text = g_bytes_get_data(bytes, &len);
    return mc_script_new(text, len, path, module, errp);
}

void mc_script_free(McScript *s)
{
    if (s) {
        g_free(s->name);
        g_array_unref(s->blocks);
        g_free(s);
    }
}
