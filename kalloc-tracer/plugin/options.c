/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plugin's options: reads words "name=value" by the rows of options.def.
 * plugin.c calls it once, at install, in QEMU's main thread. A row's type T
 * selects parse_T(), and wants_T, which describes a right value in errors.
 */
#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/plugin/options.h"

#include <glib.h>
#include <stddef.h>
#include <string.h>

typedef struct Option {
    const char *name;
    bool (*parse)(void *field, const char *value);
    size_t offset;
    const char *wants;
} Option;

static bool parse_PATH(void *field, const char *value)
{
    *(const char **)field = value;
    return *value != '\0';
}

static bool parse_SIZE(void *field, const char *value)
{
    static const char suffixes[] = "kMG";
    char *end;
    guint64 n = g_ascii_strtoull(value, &end, 10);
    unsigned shift = 0;

    if (end == value || *value == '-') {
        return false;
    }
    if (*end) {
        const char *s = strchr(suffixes, *end);

        if (!s || end[1]) {
            return false;
        }
        shift = 10 * (s - suffixes + 1);
    }
    if (n > UINT64_MAX >> shift) {
        return false;
    }
    *(uint64_t *)field = n << shift;
    return true;
}

static bool parse_SECONDS(void *field, const char *value)
{
    guint64 n;

    if (!g_ascii_string_to_unsigned(value, 10, 0, KT_LEAK_EVERY_MAX, &n,
                                    NULL)) {
        return false;
    }
    *(unsigned *)field = n;
    return true;
}

static bool parse_BOOL(void *field, const char *value)
{
    bool on = !strcmp(value, "on");

    *(bool *)field = on;
    return on || !strcmp(value, "off");
}

static bool parse_WORDS(void *field, const char *value)
{
    *(const char **)field = value;
    return gs_kernel_hide(NULL, value);
}

/* mc_access_arm() knows the filters. */
static bool parse_ACCESS(void *field, const char *value)
{
    *(const char **)field = value;
    return *value;
}

static bool parse_REPORT(void *field, const char *value)
{
    *(const char **)field = value;
    return !strcmp(value, "kasan");
}

#define wants_ACCESS \
    "on, or filters of ka access on, such as module:NAME+writes"
#define wants_BOOL "on or off"
#define wants_REPORT "kasan"
#define wants_SECONDS "a number of seconds, at most " \
    G_STRINGIFY(KT_LEAK_EVERY_MAX)
#define wants_WORDS "kallsyms, types, data, percpu, unwind or symbol:NAME, " \
    "joined by +"
#define wants_PATH "a file name"
#define wants_SIZE "a size in bytes, such as 512M"

static const Option options[] = {
#define KT_OPTION(field, type, word, ...) \
    { word, parse_##type, offsetof(KtOptions, field), wants_##type },
#include "kalloc-tracer/plugin/options.def"
};

static char *names(void)
{
    GString *s = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        g_string_append_printf(s, "%s%s=", i ? ", " : "", options[i].name);
    }
    return g_string_free(s, FALSE);
}

static const Option *find(const char *word, size_t len)
{
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        if (strlen(options[i].name) == len &&
            !strncmp(options[i].name, word, len)) {
            return &options[i];
        }
    }
    return NULL;
}

static bool parse_word(KtOptions *out, const char *word, char **why)
{
    const char *eq = strchr(word, '=');
    const Option *o = eq ? find(word, eq - word) : NULL;

    if (!o) {
        g_autofree char *all = names();
        g_autofree char *shown = g_strescape(word, NULL);

        *why = g_strdup_printf("unknown option '%s': the options are %s",
                               shown, all);
        return false;
    }
    if (!o->parse((char *)out + o->offset, eq + 1)) {
        g_autofree char *shown = g_strescape(eq + 1, NULL);

        *why = g_strdup_printf("option '%s': '%s' is not right, use %s",
                               o->name, shown, o->wants);
        return false;
    }
    return true;
}

static bool fit_together(const KtOptions *o, char **why)
{
    if (o->profile && !o->kernel) {
        *why = g_strdup("option 'profile' needs option 'kernel': add "
                        "kernel=FILE, an ELF file with symbols");
    } else if (o->profile && o->pages) {
        *why = g_strdup("options 'pages' and 'profile' exclude each other: "
                        "'pages' is for Linux only, remove one of them");
    } else if (o->profile && o->types) {
        *why = g_strdup("options 'types' and 'profile' exclude each other: "
                        "'types' is for Linux only, remove one of them");
    } else if (o->profile && (o->access || o->access_rules)) {
        *why = g_strdup("options 'access' and 'profile' exclude each other: "
                        "'access' is for Linux only, remove one of them");
    } else if (o->access_verify && !o->access) {
        *why = g_strdup("option 'access-verify' needs option 'access': add "
                        "access=on");
    } else if (!o->script && (o->script_module || o->script_output)) {
        *why = g_strdup_printf("option '%s' needs option 'script': add "
                               "script=FILE", o->script_module ?
                               "script-module" : "script-output");
    } else {
        return true;
    }
    return false;
}

bool kt_options_parse(KtOptions *out, int argc, char **argv, char **why)
{
    *out = (KtOptions) {
#define KT_OPTION(field, type, word, value, ...) .field = value,
#include "kalloc-tracer/plugin/options.def"
    };
    for (int i = 0; i < argc; i++) {
        if (!parse_word(out, argv[i], why)) {
            return false;
        }
    }
    return fit_together(out, why);
}
