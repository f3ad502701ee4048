/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run a fuzz target on each file of a folder once, and on an empty input. So
 * errors that were found stay fixed, and code that was covered stays covered,
 * in every build, without libFuzzer.
 *
 * usage: corpus-TARGET FOLDER
 */
#include "tests/fuzz/fuzz.h"

#include <glib.h>
#include <stdbool.h>

static void one_file(unsigned n, const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *data = NULL;
    /* Exactly as large as the file: ASan reports a read past the end. */
    g_autofree uint8_t *copy = NULL;
    gsize size;
    bool good = g_file_get_contents(path, &data, &size, NULL);

    if (good) {
        copy = g_memdup2(data, size);
        LLVMFuzzerTestOneInput(copy, size);
    }
    g_print("%sok %u - %s\n", good ? "" : "not ", n, name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) err = NULL;
    g_autoptr(GDir) dir = NULL;
    const char *name;

    if (argc != 2) {
        g_printerr("usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    dir = g_dir_open(argv[1], 0, &err);
    if (!dir) {
        g_printerr("%s\n", err->message);
        return 1;
    }
    while ((name = g_dir_read_name(dir))) {
        g_ptr_array_add(names, g_strdup(name));
    }
    g_ptr_array_sort(names, by_name);
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (unsigned i = 0; i < names->len; i++) {
        one_file(i + 1, argv[1], g_ptr_array_index(names, i));
    }
    g_print("1..%u\n", names->len);
    return 0;
}
