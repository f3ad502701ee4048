/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/types-file.h"

#include <glib/gstdio.h>

GsTypesFile *types_file(GBytes *bytes, GError **errp)
{
    g_autofree char *folder = g_dir_make_tmp("types-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "types", NULL);
    GsTypesFile *f;

    g_assert_true(g_file_set_contents(path, g_bytes_get_data(bytes, NULL),
                                      g_bytes_get_size(bytes), NULL));
    f = gs_types_file_open(path, errp);
    g_remove(path);
    g_rmdir(folder);
    return f;
}
