/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Databases of ka export: no name makes a second record. The sums are compared
 * by tests/reports/test_sqlite.py. */
#include "tests/lib/test-main.h"
#include "tests/lib/export-world.h"

#include <sqlite3.h>
#include <string.h>

/* Return the number that a query has as its only value. */
static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int64_t v;

    g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &s, NULL), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_step(s), ==, SQLITE_ROW);
    v = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return v;
}

/* (owned) The bytes of the database, which @db reads. */
static char *open_export(const McHeapProfile *p, sqlite3 **db)
{
    const McExport e = { .profile = p };
    size_t len;
    char *bytes = export_bytes(MC_EXPORT_SQLITE, &e, &len);

    g_assert_cmpint(sqlite3_open(":memory:", db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_deserialize(*db, "main", (unsigned char *)bytes,
                                        len, len,
                                        SQLITE_DESERIALIZE_READONLY),
                    ==, SQLITE_OK);
    return bytes;
}

TEST(hostile_names_are_values, "/sqlite/hostile-names")
{
    unsigned n;
    g_autoptr(McHeapProfile) p = export_hostile(&n);
    sqlite3 *db;
    g_autofree char *bytes = open_export(p, &db);

    g_assert_nonnull(bytes);
    g_assert_cmpint(number(db, "SELECT count(*) FROM stack"), ==, n);
    g_assert_cmpint(number(db, "SELECT count(*) FROM frame"), ==, n + 1);
    g_assert_cmpint(number(db, "SELECT count(*) FROM stack_frame"), ==, n + 1);
    g_assert_cmpint(number(db, "SELECT count(*) FROM note"), ==, 2);
    g_assert_cmpint(number(db, "SELECT max(length(name)) FROM frame"), <=,
                    2 * MC_PROFILE_NAME_MAX + 16);
    g_assert_cmpint(number(db, "SELECT sum(live) FROM stack"), ==, 64 * n);
    sqlite3_close(db);
}

PROFILE_TEST(the_leaf_has_depth_zero, "/sqlite/leaf-first")
{
    g_autofree char *bytes = NULL;
    sqlite3 *db;

    export_stack(p, "leaf+0x10 middle+0x20[ext4] root+0x30", -4096, -2);
    bytes = open_export(p, &db);
    g_assert_cmpint(number(db, "SELECT depth FROM stack_frame, frame WHERE "
                           "frame = id AND name = 'leaf'"), ==, 0);
    g_assert_cmpint(number(db, "SELECT depth FROM stack_frame, frame WHERE "
                           "frame = id AND name = 'root'"), ==, 2);
    g_assert_cmpint(number(db, "SELECT live FROM stack"), ==, -4096);
    g_assert_cmpint(number(db, "SELECT life IS NULL FROM stack"), ==, 1);
    sqlite3_close(db);
}
