/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gs_file_read() reads a whole regular file. It refuses folders, devices, pipes
 * and files that are larger than the limit. It does not block on a pipe that
 * has no writer.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/api/gs-types.h"

#include <glib/gstdio.h>
#include <sys/stat.h>

typedef struct Folder {
    char *path, *file;
} Folder;

static Folder *folder_new(void)
{
    Folder *f = g_new0(Folder, 1);

    f->path = g_dir_make_tmp("ka-file.XXXXXX", NULL);
    f->file = g_build_filename(f->path, "file", NULL);
    return f;
}

static void folder_free(Folder *f)
{
    g_remove(f->file);
    g_rmdir(f->path);
    g_free(f->file);
    g_free(f->path);
    g_free(f);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Folder, folder_free)

static void expect(const char *path, uint64_t max, const char *want)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GBytes) bytes = gs_file_read(path, max, &err);

    g_assert_null(bytes);
    g_assert_cmpstr(err->message, ==, want);
}

TEST(test_whole, "/user-file/whole")
{
    g_autoptr(Folder) f = folder_new();
    g_autoptr(GError) err = NULL;
    g_autoptr(GBytes) bytes = NULL;
    const char *data;
    size_t len;

    g_file_set_contents(f->file, "a\0b\n", 4, &err);
    g_assert_no_error(err);
    bytes = gs_file_read(f->file, 4, &err);
    g_assert_no_error(err);
    data = g_bytes_get_data(bytes, &len);
    g_assert_cmpmem(data, len, "a\0b\n", 4);
    g_assert_cmpint(data[len], ==, 0);
    expect(f->file, 3, "4 bytes; the limit is 3");
}

TEST(test_empty, "/user-file/empty")
{
    g_autoptr(Folder) f = folder_new();
    g_autoptr(GError) err = NULL;
    g_autoptr(GBytes) bytes = NULL;

    g_file_set_contents(f->file, "", 0, &err);
    bytes = gs_file_read(f->file, 0, &err);
    g_assert_no_error(err);
    g_assert_cmpuint(g_bytes_get_size(bytes), ==, 0);
}

TEST(test_no_file, "/user-file/no-file")
{
    g_autoptr(Folder) f = folder_new();
    g_autoptr(GError) err = NULL;

    expect(f->file, 9, "No such file or directory");
    expect(f->path, 9, "not a regular file");
    expect("/dev/zero", 9, "not a regular file");
    g_assert_null(gs_file_read_named("/dev/null", 9, &err));
    g_assert_cmpstr(err->message, ==, "/dev/null: not a regular file");
}

TEST(test_pipe, "/user-file/pipe")
{
    g_autoptr(Folder) f = folder_new();

    g_assert_cmpint(mkfifo(f->file, 0600), ==, 0);
    expect(f->file, 9, "not a regular file");
}
