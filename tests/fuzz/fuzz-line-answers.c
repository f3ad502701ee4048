/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: answers of ka, any bytes, that get lines of source. The files
 * with debug information are made up here: a kernel with some functions, and a
 * module for each name.
 *
 * Answers keep their lines, and an object of JSON is still one.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "monitor-cmds/program/json-line.h"
#include "monitor-cmds/program/source-lines.h"

/* ---- files with debug information ---------------------------------------- */

#define BASE UINT64_C(0xffffffff81000000)

static const KaFileSymbol symbols[] = {
    { "__bss_start", BASE + 0x4000, 0, 4 },
    { "__bss_stop", BASE + 0x5000, 0, 4 },
    { "_etext", BASE + 0x1000, 0, 1 },
    { "_stext", BASE, 0, 1 },
    { "f", BASE + 0x100, 0x100, 1 },
    { "g", BASE + 0x200, 0x100, 1 },
    { "g", BASE + 0x300, 0x100, 2 },
};

KaSourceFile *ka_source_file_open(const char *path, char **why)
{
    return g_malloc(1);
}

void ka_source_file_free(KaSourceFile *f)
{
    g_free(f);
}

const KaFileSymbol *ka_source_file_symbols(const KaSourceFile *f,
                                           const char *name, unsigned *n)
{
    const KaFileSymbol *first = NULL;

    *n = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(symbols); i++) {
        if (!strcmp(symbols[i].name, name)) {
            first = first ? first : &symbols[i];
            *n += 1;
        }
    }
    return first;
}

char *ka_source_file_text(const KaSourceFile *f, const char *where,
                          const char *begin)
{
    return strcmp(where, "linux_banner") ? NULL :
           g_strdup("Linux version 6.1 (a) #1");
}

char *ka_source_file_build_id(const KaSourceFile *f)
{
    return g_strdup("0123456789abcdef");
}

void ka_source_file_places(KaSourceFile *f, uint64_t va, GArray *out)
{
    KaPlace p = { "h", "mm/h.h", 1 };

    if (va & 2) {
        g_array_append_val(out, p);
    }
    p = (KaPlace) { NULL, va & 1 ? "mm/f.c" : NULL, 7 };
    g_array_append_val(out, p);
}

/* ---- the target ---------------------------------------------------------- */

static unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; (text = strchr(text, '\n')); text++) {
        n++;
    }
    return n;
}

static unsigned count_objects(const char *text)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    unsigned n = 0;

    while (*text) {
        size_t len = strcspn(text, "\n");
        g_autofree char *line = g_strndup(text, len);

        n += ka_json_parse(parser, line, len) != NULL;
        text += len + (text[len] == '\n');
    }
    return n;
}

static void add(const KaLinesFiles *files, const char *answers)
{
    g_autoptr(KaLines) l = ka_lines_open(files, answers, answers);
    g_autofree char *got = ka_lines_add(l, answers, false);

    if (count_objects(got) != count_objects(answers) ||
        (files->inlines ? count_lines(got) < count_lines(answers) :
                          count_lines(got) != count_lines(answers))) {
        abort();
    }
}

/* Refused files are said on stderr, where libFuzzer prints, too. */
static int silence(void)
{
    int was = dup(STDERR_FILENO), none = open("/dev/null", O_WRONLY);

    dup2(none, STDERR_FILENO);
    close(none);
    return was;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autofree char *answers = g_strndup((const char *)data, len);
    const KaLinesFiles kernel = { .vmlinux = "vmlinux" };
    const KaLinesFiles all = {
        .vmlinux = "vmlinux", .modules = "tests/fuzz/none", .inlines = true,
    };
    int was = silence();

    add(&kernel, answers);
    add(&all, answers);
    dup2(was, STDERR_FILENO);
    close(was);
    return 0;
}
