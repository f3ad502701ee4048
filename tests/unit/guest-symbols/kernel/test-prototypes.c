/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All functions in the types of real kernels have the prototype that pfunct
 * (of pahole) prints, and those of their modules have the parameters that
 * bpftool prints: KA_TEST_KERNELS=<vmlinuz>[:<vmlinuz>...], with the modules
 * in the folder modules beside each.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/prototype.h"

#include <fcntl.h>
#include <gelf.h>
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

/* (owned, nullable) The output of a program. */
static char *output_of(const char *const *argv)
{
    char *out = NULL;
    int status = -1;

    if (!g_spawn_sync(NULL, (char **)argv, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                      NULL, &out, NULL, &status, NULL) || status) {
        g_clear_pointer(&out, g_free);
    }
    return out;
}

static char *pfunct(const char *btf)
{
    return output_of((const char *[]) { "pfunct", "-F", "btf", "-P", btf,
                                        NULL });
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
    unsigned same, differ, several, other, assembler;
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
        n->assembler += !!strstr(why, "assembler");
        n->other += !strstr(why, "several") && !strstr(why, "assembler");
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
    g_assert_cmpuint(n.assembler, <, 20);
    g_assert_cmpuint(n.several, <, 1000);
    g_assert_cmpuint(n.same, >, 30000);
}

TEST(test_real, "/prototypes/real")
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

/* ---- modules ---- */

#define MODULES_MAX 40      /* of one kernel: more add nothing */

typedef struct Param {
    char *name;
    unsigned id;
} Param;

/* What bpftool prints: FUNC_PROTO id -> its parameters, the result first. */
static GArray *new_params(const char *line)
{
    const char *ret = strstr(line, "ret_type_id=");
    GArray *params = g_array_new(FALSE, FALSE, sizeof(Param));
    Param result = { NULL, strtoul(ret + strlen("ret_type_id="), NULL, 10) };

    g_array_append_val(params, result);
    return params;
}

/* "\t'name' type_id=3" */
static void add_param(GArray *params, const char *line, GStringChunk *names)
{
    const char *end = strrchr(line, '\'');
    const char *id = strstr(line, "type_id=");
    Param p = { NULL, strtoul(id + strlen("type_id="), NULL, 10) };

    p.name = g_string_chunk_insert_len(names, line + 2, end - line - 2);
    p.name = strcmp(p.name, "(anon)") ? p.name : NULL;
    g_array_append_val(params, p);
}

static void compare_params(const GsPrototype *p, const GArray *params)
{
    const Param *want = (const Param *)params->data;
    bool variadic = gs_prototype_is_variadic(p);

    g_assert_cmpuint(gs_prototype_n(p) + 1 + variadic, ==, params->len);
    g_assert_cmpuint(gs_prototype_result(p)->id, ==, want[0].id);
    for (unsigned i = 0; i < gs_prototype_n(p); i++) {
        const GsParam *got = gs_prototype_param(p, i);

        g_assert_cmpuint(got->id, ==, want[i + 1].id);
        if (got->name) {
            g_assert_cmpstr(got->name, ==, want[i + 1].name);
        }
    }
}

/* "[1234] FUNC 'name' type_id=1233 linkage=static" */
static bool compare_func(GsBtf *btf, GHashTable *protos, const char *line)
{
    const char *name = strchr(line, '\'') + 1;
    g_autofree char *func = g_strndup(name, strcspn(name, "'"));
    unsigned id = strtoul(strstr(line, "type_id=") + strlen("type_id="), NULL,
                          10);
    const GArray *params = g_hash_table_lookup(protos, GUINT_TO_POINTER(id));
    g_autoptr(GsPrototype) p = NULL;
    const char *why;

    p = gs_prototype_new(btf, &gs_arch_x86_64, func, &why);
    if (p && params) {
        compare_params(p, params);
    }
    return p && params;
}

static void free_params(gpointer params)
{
    g_array_unref(params);
}

static unsigned compare_module(GsBtf *btf, char *dump)
{
    g_autoptr(GHashTable) protos = g_hash_table_new_full(NULL, NULL, NULL,
                                                         free_params);
    GStringChunk *names = g_string_chunk_new(4096);
    GArray *last = NULL;
    unsigned n = 0;

    for (char *line; (line = strsep(&dump, "\n"));) {
        if (strstr(line, "] FUNC_PROTO ")) {
            last = new_params(line);
            g_hash_table_insert(protos, GUINT_TO_POINTER(strtoul(line + 1,
                                NULL, 10)), last);
        } else if (*line == '[') {
            last = NULL;
            n += strstr(line, "] FUNC '") && compare_func(btf, protos, line);
        } else if (last && g_str_has_prefix(line, "\t'")) {
            add_param(last, line, names);
        }
    }
    g_string_chunk_free(names);
    return n;
}

/* (owned, nullable) The section .BTF of an ELF file. */
static GBytes *btf_section(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    GBytes *found = NULL;
    Elf_Scn *scn = NULL;
    size_t strings;
    GElf_Shdr shdr;
    Elf *elf;

    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    elf_getshdrstrndx(elf, &strings);
    while (!found && (scn = elf_nextscn(elf, scn))) {
        gelf_getshdr(scn, &shdr);
        if (!strcmp(elf_strptr(elf, strings, shdr.sh_name), ".BTF")) {
            Elf_Data *data = elf_getdata(scn, NULL);

            found = g_bytes_new(data->d_buf, data->d_size);
        }
    }
    elf_end(elf);
    close(fd);
    return found;
}

/* (owned, nullable) Unpack a module. */
static char *unpack(const char *path)
{
    bool is_packed = g_str_has_suffix(path, ".xz");
    char *out = g_strdup_printf("%s/ka-module-%d.ko", g_get_tmp_dir(),
                                getpid());
    g_autofree char *packed = g_strconcat(out, ".xz", NULL);
    g_autofree char *data = NULL;
    g_autofree char *said = NULL;
    size_t len;

    if (g_file_get_contents(path, &data, &len, NULL) &&
        g_file_set_contents(is_packed ? packed : out, data, len, NULL)) {
        said = !is_packed ? NULL :
               output_of((const char *[]) { "xz", "-df", packed, NULL });
    }
    if (access(out, R_OK)) {
        g_clear_pointer(&out, g_free);
    }
    return out;
}

static unsigned check_module(const GsKernel *k, const char *btf,
                             const char *path)
{
    g_autofree char *ko = unpack(path);
    g_autoptr(GBytes) raw = ko ? btf_section(ko) : NULL;
    g_autofree char *dump = NULL;
    g_autoptr(GError) err = NULL;
    g_autoptr(GsBtf) types = NULL;
    size_t len;
    const uint8_t *data;

    dump = output_of((const char *[]) { "bpftool", "-B", btf, "btf", "dump",
                                        "file", ko, "format", "raw", NULL });
    unlink(ko ? ko : "");
    if (!raw || !dump) {
        return 0;
    }
    data = g_bytes_get_data(raw, &len);
    types = gs_btf_new_split(k->btf, data, len, NULL, 0, &err);
    g_assert_no_error(err);
    return compare_module(types, dump);
}

static void check_modules(const char *path)
{
    g_autoptr(GsKernel) k = gs_kernel_open(path, NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *btf = k ? btf_file(k) : NULL;
    g_autofree char *modules = g_build_filename(folder, "modules", NULL);
    g_autofree char *list = NULL;
    unsigned n = 0, n_modules = 0;
    char *rest;

    list = output_of((const char *[]) { "find", modules, "-name", "*.ko*",
                                        NULL });
    rest = list;
    for (char *ko; rest && btf && n_modules < MODULES_MAX &&
                   (ko = strsep(&rest, "\n"));) {
        unsigned here = *ko ? check_module(k, btf, ko) : 0;

        n += here;
        n_modules += here != 0;
    }
    unlink(btf ? btf : "");
    g_test_message("%s: %u functions of %u modules as bpftool prints them",
                   path, n, n_modules);
}

TEST(test_modules, "/prototypes/modules")
{
    const char *list = g_getenv("KA_TEST_KERNELS");
    g_auto(GStrv) paths = g_strsplit(list ? list : "", ":", -1);

    if (!paths[0]) {
        g_test_skip("KA_TEST_KERNELS is not set");
    }
    for (size_t i = 0; paths[i]; i++) {
        check_modules(paths[i]);
    }
}
