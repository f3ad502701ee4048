/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of modules in a folder: see source-lines.h. */
#include "monitor-cmds/program/source-lines.h"

#include <string.h>

/* Bound of a search in a folder that has no modules. */
#define MAX_ENTRIES 200000u

/**
 * struct Search - @folders: (char *, owned) folders that are still to be read
 * @left: entries that may still be read
 */
typedef struct Search {
    GHashTable *files;
    GQueue folders;
    unsigned left;
} Search;

static char *plain_name(const char *name, size_t len)
{
    char *plain = g_strndup(name, len);

    return g_strdelimit(plain, "-", '_');
}

/* Return (owned) the name of the module whose file this is, or NULL. */
static char *module_of(const char *file)
{
    static const char *const ends[] = {
        ".ko", ".ko.debug", ".ko.xz", ".ko.gz", ".ko.zst",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
        if (g_str_has_suffix(file, ends[i])) {
            return plain_name(file, strlen(file) - strlen(ends[i]));
        }
    }
    return NULL;
}

static void add_entry(Search *s, const char *folder, const char *entry)
{
    g_autofree char *path = g_build_filename(folder, entry, NULL);
    g_autofree char *name = module_of(entry);

    if (name && g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        bool twice = g_hash_table_contains(s->files, name);

        g_hash_table_insert(s->files, g_steal_pointer(&name),
                            twice ? g_strdup("") : g_steal_pointer(&path));
    } else if (!name && !g_file_test(path, G_FILE_TEST_IS_SYMLINK) &&
               g_file_test(path, G_FILE_TEST_IS_DIR)) {
        g_queue_push_tail(&s->folders, g_steal_pointer(&path));
    }
}

static void search(Search *s, const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *entry;

    while (dir && s->left && (entry = g_dir_read_name(dir))) {
        s->left--;
        add_entry(s, folder, entry);
    }
}

GHashTable *ka_module_files_new(const char *folder)
{
    Search s = {
        .files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                       g_free),
        .folders = G_QUEUE_INIT,
        .left = MAX_ENTRIES,
    };

    g_queue_push_tail(&s.folders, g_strdup(folder));
    while (!g_queue_is_empty(&s.folders)) {
        g_autofree char *next = g_queue_pop_head(&s.folders);

        search(&s, next);
    }
    return s.files;
}

bool ka_module_name_equal(const char *a, const char *b)
{
    g_autofree char *x = plain_name(a, strlen(a));
    g_autofree char *y = plain_name(b, strlen(b));

    return !strcmp(x, y);
}

const char *ka_module_files_find(GHashTable *files, const char *name)
{
    g_autofree char *plain = plain_name(name, strlen(name));

    return g_hash_table_lookup(files, plain);
}
