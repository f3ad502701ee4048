/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All functions in the types of real kernels have the prototype that pfunct
 * (of pahole) prints: KA_TEST_KERNELS=<vmlinuz>[:<vmlinuz>...].
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/kernel/kernel.h"

#include <string.h>
#include <unistd.h>

/* (owned, nullable) Write the types to a file. */
static char *btf_file(const GsKernel *k)
{
    const uint8_t *data;
    char *path = NULL;
    uint64_t va;
    size_t len;
    int fd;

    if (!gs_image_section(k->image, ".BTF", &va, &data, &len)) {
        return NULL;
    }
    fd = g_file_open_tmp("ka-btf-XXXXXX", &path, NULL);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(write(fd, data, len), ==, (ssize_t)len);
    close(fd);
    return path;
}

/* (nullable) Run pfunct on the file. */
static char *pfunct(const char *btf)
{
    const char *argv[] = { "pfunct", "-F", "btf", "-P", btf, NULL };
    char *out = NULL;
    int status = -1;

    if (!g_spawn_sync(NULL, (char **)argv, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                      NULL, &out, NULL, &status, NULL) || status) {
        g_clear_pointer(&out, g_free);
    }
    return out;
}

/* What both print in different ways: names of int types, blanks, the parameters
 * of functions that pointers lead to, and qualifiers, which pfunct prints in
 * front of "*" ("const char * p" for "char *const p"). */
static const char *const rewrites[][2] = {
    { "\\)\\(((?:[^()]|\\((?1)\\))*)\\)", ")()" },
    { "long long unsigned int", "unsigned long long" },
    { "long unsigned int", "unsigned long" },
    { "short unsigned int", "unsigned short" },
    { "long long int", "long long" },
    { "long int", "long" },
    { "short int", "short" },
    { "\\b_Bool\\b", "bool" },
    { "\\b(?:const|volatile|restrict)\\b", "" },
    { "[ \t;]", "" },
};

typedef struct Rewrites {
    GRegex *regex[G_N_ELEMENTS(rewrites)];
} Rewrites;

static char *rewrite(const Rewrites *w, const char *text)
{
    char *out = g_strdup(text);

    for (size_t i = 0; i < G_N_ELEMENTS(rewrites); i++) {
        char *next = g_regex_replace_literal(w->regex[i], out, -1, 0,
                                             rewrites[i][1], 0, NULL);

        g_free(out);
        out = next;
    }
    return out;
}

/* "int num_digits(int val);": the name is in front of the last parenthesis
 * that closes at the end. */
static char *name_of(const char *line)
{
    int depth = 0;
    size_t i = strlen(line);
    size_t end;

    while (i > 0 && (depth || line[i] != '(')) {
        i--;
        depth += line[i] == ')' ? 1 : line[i] == '(' ? -1 : 0;
        if (!depth && line[i] == '(') {
            break;
        }
    }
    end = i;
    while (i > 0 && (g_ascii_isalnum(line[i - 1]) || line[i - 1] == '_')) {
        i--;
    }
    return g_strndup(line + i, end - i);
}

typedef struct Counts {
    unsigned same, differ, several, other;
} Counts;

/* Is a name missing? Several functions have the prototype, with other names. */
static bool lacks_name(const GsPrototype *p)
{
    for (unsigned i = 0; i < gs_prototype_n(p); i++) {
        if (!gs_prototype_param(p, i)->name) {
            return true;
        }
    }
    return false;
}

static void compare_line(const GsKernel *k, const Rewrites *w,
                         const char *line, Counts *n)
{
    g_autofree char *name = name_of(line);
    g_autofree char *want = rewrite(w, line);
    g_autofree char *text = NULL;
    g_autofree char *got = NULL;
    g_autoptr(GsPrototype) p = NULL;
    const char *why;

    p = gs_kernel_prototype(k, NULL, name, &why);
    if (!p) {
        n->several += !!strstr(why, "several");
        n->other += !strstr(why, "several");
        return;
    }
    text = gs_prototype_text(p, name);
    got = rewrite(w, text);
    if (!strcmp(got, want)) {
        n->same++;
    } else if (lacks_name(p) || strstr(line, "unused")) {
        n->several++;
    } else if (strstr(text, ")[")) {
        n->other++;         /* pfunct has "char **p" for "char (**p)[32]" */
    } else if (n->differ++ < 20) {
        g_test_message("%s is not %s", text, line);
    }
}

static Counts compare_all(const GsKernel *k, char *text)
{
    Rewrites w;
    Counts n = { 0 };

    for (size_t i = 0; i < G_N_ELEMENTS(rewrites); i++) {
        w.regex[i] = g_regex_new(rewrites[i][0], 0, 0, NULL);
    }
    for (char *line; (line = strsep(&text, "\n"));) {
        if (*line) {
            compare_line(k, &w, line, &n);
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(rewrites); i++) {
        g_regex_unref(w.regex[i]);
    }
    return n;
}

static void check_kernel(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = gs_kernel_open(path, &err);
    g_autofree char *text = NULL;
    g_autofree char *btf = NULL;
    Counts n;

    g_assert_no_error(err);
    btf = btf_file(k);
    text = btf ? pfunct(btf) : NULL;
    unlink(btf ? btf : "");
    if (!text) {
        g_test_skip("no section .BTF, or pfunct is not installed");
        return;
    }
    n = compare_all(k, text);
    g_test_message("%s: %u prototypes as pfunct prints them, %u functions of "
                   "one name, %u others", path, n.same, n.several, n.other);
    g_assert_cmpuint(n.differ, ==, 0);
    g_assert_cmpuint(n.other, <, 10);
    g_assert_cmpuint(n.several, <, 1000);
    g_assert_cmpuint(n.same, >, 30000);
}

static void test_real(void)
{
    const char *list = g_getenv("KA_TEST_KERNELS");
    g_auto(GStrv) paths = g_strsplit(list ? list : "", ":", -1);

    if (!paths[0]) {
        g_test_skip("KA_TEST_KERNELS is not set");
    }
    for (size_t i = 0; paths[i]; i++) {
        check_kernel(paths[i]);
    }
}

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/prototypes/real", test_real },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
