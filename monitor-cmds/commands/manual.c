/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The manual, as man page and as markdown, made from the tables that also drive
 * the parser and the formatters. scripts/gen-docs writes it to docs/.
 *
 * Called by ka-docs and tests. Reads only the tables; any thread.
 */
#include <string.h>

#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/table/top-table.h"

/* ---- rows and their columns ---------------------------------------------- */

/** ItemFn - append a name and what it means, as an item of a list */
typedef void ItemFn(GString *s, const char *name, const char *text);

/* Call @fn for the rows of all commands. */
static void foreach_object(void (*fn)(const McObject *object, void *opaque),
                           void *opaque)
{
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const McObject *const *object = mc_command_objects[i];

        for (; *object; object++) {
            fn(*object, opaque);
        }
    }
}

/** struct Items - @seen: (owned) names that were appended */
typedef struct Items {
    GString *s;
    ItemFn *item;
    GHashTable *seen;
} Items;

/** struct Keys - keys of the rows of a type. @seen: those that were appended */
typedef struct Keys {
    const char *type;
    GString *text;
    GHashTable *seen;
} Keys;

/* Append "key: what it is" for each new column of a type. */
static void add_keys(const McObject *object, void *opaque)
{
    Keys *keys = opaque;

    for (unsigned i = 0; i < MC_SETS && object->columns[i] &&
                         !g_strcmp0(object->type, keys->type); i++) {
        for (const McColumn *c = object->columns[i]; c->key || c->text; c++) {
            if (c->key && g_hash_table_add(keys->seen, (char *)c->key)) {
                g_string_append_printf(keys->text, "%s%s%s%s%s",
                                       keys->text->len ? "; " : ". ", c->key,
                                       c->flags & MC_V ? " (-v)" : "",
                                       *c->help ? ": " : "", c->help);
            }
        }
    }
    if (object->line && !g_strcmp0(object->type, keys->type) &&
        g_hash_table_add(keys->seen, (char *)"text")) {
        g_string_append(keys->text, "; text");
    }
}

static void add_object(const McObject *object, void *opaque)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    Keys keys = { object->type, text, seen };
    Items *items = opaque;

    if (!object->type ||
        !g_hash_table_add(items->seen, (char *)object->type)) {
        return;
    }
    if (object->is_block || !object->columns[0]) {
        g_string_append(text, object->is_block ? ". Keys: the fields" : "");
    } else {
        foreach_object(add_keys, &keys);
    }
    g_string_prepend(text, object->help);
    items->item(items->s, object->type, text->str);
}

static void add_fields(const McObject *object, void *opaque)
{
    Items *items = opaque;

    for (unsigned i = 0; object->is_block && i < MC_SETS &&
                         object->columns[i]; i++) {
        for (const McColumn *c = object->columns[i]; c->key; c++) {
            if (g_hash_table_add(items->seen, (char *)c->key)) {
                items->item(items->s, c->key, c->help);
            }
        }
    }
}

static void put_items(GString *s, ItemFn *item,
                      void (*add)(const McObject *object, void *opaque))
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    foreach_object(add, &(Items) { s, item, seen });
}

/* ---- troff --------------------------------------------------------------- */

static void troff(GString *s, const char *text)
{
    if (*text == '.' || *text == '\'') {
        g_string_append(s, "\\&");
    }
    for (; *text; text++) {
        if (*text == '\\') {
            g_string_append(s, "\\e");
        } else if (*text == '-') {
            g_string_append(s, "\\-");
        } else {
            g_string_append_c(s, *text);
        }
    }
    g_string_append_c(s, '\n');
}

/* Append a tagged paragraph: bold @tag, indented @text. */
static void troff_item(GString *s, const char *tag, const char *text)
{
    g_string_append(s, ".TP\n.B ");
    troff(s, tag);
    troff(s, text);
}

static void troff_heading(GString *s, const char *title)
{
    g_autofree char *upper = g_ascii_strup(title, -1);

    g_string_append_printf(s, ".SH %s\n", upper);
}

static void troff_commands(GString *s)
{
    troff_heading(s, "Commands");
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const McCommand *c = &mc_commands[i];
        g_autofree char *usage = mc_command_usage(c);
        g_autofree char *options = mc_command_options(c);

        troff_item(s, usage, c->help);
        if (*c->detail) {
            g_string_append(s, ".br\n");
            troff(s, c->detail);
        }
        g_string_append(s, ".br\nOptions:\n");
        troff(s, options);
    }
}

static void troff_options(GString *s)
{
    troff_heading(s, "Options");
    troff(s, "Options may be anywhere in the line; flags of one letter "
          "may be joined.");
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        g_autofree char *usage = mc_option_usage(i);
        g_autofree char *text = mc_option_help(i);

        troff_item(s, usage, text);
    }
}

static void troff_sections(GString *s)
{
    for (unsigned i = 0; i < mc_n_sections; i++) {
        troff_heading(s, mc_sections[i].title);
        for (unsigned j = 0; mc_sections[i].paragraphs[j]; j++) {
            g_string_append(s, j ? ".PP\n" : "");
            troff(s, mc_sections[i].paragraphs[j]);
        }
    }
}

static void troff_names(GString *s)
{
    troff_heading(s, "Types of JSON objects");
    put_items(s, troff_item, add_object);
    troff_heading(s, "Fields");
    put_items(s, troff_item, add_fields);
    troff_heading(s, "Fields of top and diff");
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        troff_item(s, mc_top_columns[i].key, mc_top_columns[i].help);
    }
    troff_heading(s, "Errors");
    for (unsigned i = 0; i < KT_ERR__COUNT; i++) {
        troff_item(s, kt_error_name(i), kt_error_text(i));
    }
    troff_heading(s, "Counters");
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        troff_item(s, kt_counter_name(i), kt_counter_help(i));
    }
}

char *mc_render_man(void)
{
    GString *s = g_string_new(
        ".\\\" SPDX-License-Identifier: GPL-2.0-or-later\n"
        ".\\\" Made by scripts/gen-docs from monitor-cmds; do not edit.\n"
        ".TH KA 1 \"\" \"ka\" \"User Commands\"\n");

    troff_heading(s, "Name");
    troff(s, "ka - what the guest kernel allocated and freed, where and when");
    troff_heading(s, "Synopsis");
    g_string_append(s, ".B ka\n");
    troff(s, mc_help_params());
    g_string_append(s, ".br\n.B ka \\-f\n");
    troff(s, "FILE [--at us] [command]");
    g_string_append(s, ".br\n.B ka \\-q\n");
    troff(s, "socket [command]");
    troff_heading(s, "Description");
    troff(s, "A command of QEMU's monitor, and so of gdb and lldb (monitor "
          "ka ...) and of QMP (human-monitor-command); and a program that "
          "queries a journal file or a running VM.");
    troff_commands(s);
    troff_options(s);
    troff_sections(s);
    troff_names(s);
    return g_string_free(s, FALSE);
}

/* ---- markdown ------------------------------------------------------------ */

/* Append the text of a table cell or paragraph; @cell: escape what ends a
 * cell. */
static void markdown(GString *s, const char *text, bool cell)
{
    for (; *text; text++) {
        if (strchr("<>*_\\[]", *text) || (cell && *text == '|')) {
            g_string_append_c(s, '\\');
        }
        g_string_append_c(s, *text);
    }
}

static void markdown_code(GString *s, const char *text)
{
    g_string_append_c(s, '`');
    for (; *text; text++) {
        if (*text == '|') {
            g_string_append_c(s, '\\');
        }
        g_string_append_c(s, *text);
    }
    g_string_append_c(s, '`');
}

static void markdown_head(GString *s, const char *title, const char *a,
                          const char *b)
{
    g_string_append_printf(s, "\n## %s\n\n| %s | %s |\n|---|---|\n", title, a,
                           b);
}

static void markdown_row(GString *s, const char *code, const char *text)
{
    g_string_append(s, "| ");
    markdown_code(s, code);
    g_string_append(s, " | ");
    markdown(s, text, true);
    g_string_append(s, " |\n");
}

static void markdown_details(GString *s)
{
    g_string_append(s, "\n## In detail\n");
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const McCommand *c = &mc_commands[i];
        g_autofree char *usage = mc_command_usage(c);
        g_autofree char *options = mc_command_options(c);

        g_string_append_printf(s, "\n**`%s`** ", usage);
        markdown(s, c->detail, false);
        g_string_append_printf(s, " Options: `%s`.\n", options);
    }
}

static void markdown_sections(GString *s)
{
    for (unsigned i = 0; i < mc_n_sections; i++) {
        g_string_append_printf(s, "\n## %s\n", mc_sections[i].title);
        for (unsigned j = 0; mc_sections[i].paragraphs[j]; j++) {
            g_string_append_c(s, '\n');
            markdown(s, mc_sections[i].paragraphs[j], false);
            g_string_append_c(s, '\n');
        }
    }
}

static void markdown_names(GString *s)
{
    markdown_head(s, "Types of JSON objects", "type", "meaning");
    put_items(s, markdown_row, add_object);
    markdown_head(s, "Fields", "key", "meaning");
    put_items(s, markdown_row, add_fields);
    markdown_head(s, "Fields of top and diff", "key", "meaning");
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        markdown_row(s, mc_top_columns[i].key, mc_top_columns[i].help);
    }
    markdown_head(s, "Errors", "kind", "meaning");
    for (unsigned i = 0; i < KT_ERR__COUNT; i++) {
        markdown_row(s, kt_error_name(i), kt_error_text(i));
    }
    markdown_head(s, "Counters", "counter", "meaning");
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        markdown_row(s, kt_counter_name(i), kt_counter_help(i));
    }
}

char *mc_render_markdown(void)
{
    GString *s = g_string_new(
        "<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n"
        "<!-- Made by scripts/gen-docs from monitor-cmds; do not edit. -->\n"
        "# Commands of ka\n");

    markdown_head(s, "Commands", "command", "what it does");
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        g_autofree char *usage = mc_command_usage(&mc_commands[i]);

        markdown_row(s, usage, mc_commands[i].help);
    }
    markdown_head(s, "Options", "option", "what it does");
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        g_autofree char *usage = mc_option_usage(i);
        g_autofree char *text = mc_option_help(i);

        markdown_row(s, usage, text);
    }
    markdown_details(s);
    markdown_sections(s);
    markdown_names(s);
    return g_string_free(s, FALSE);
}
