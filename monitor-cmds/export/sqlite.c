/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sqlite: the sums as a database.
 *
 *     stack(id, live, blocks ...)             the fields of ka top
 *     stack_frame(stack, depth, frame)        depth 0 is the leaf
 *     frame(id, name, function, module, offset, pc, file, line)
 *     total(live, blocks ...), note(text)
 *
 * The database is made in memory, and its bytes are written. Values are bound
 * to statements, and never part of their text. SQLite stores numbers with a
 * sign, so addresses are texts.
 */
#include "monitor-cmds/export/export.h"

#include <sqlite3.h>
#include <string.h>

static const char tables[] =
    "CREATE TABLE note(text TEXT NOT NULL);"
    "CREATE TABLE frame(id INTEGER PRIMARY KEY, name TEXT NOT NULL,"
    " function TEXT NOT NULL, module TEXT, \"offset\" INTEGER, pc TEXT,"
    " file TEXT, line INTEGER);"
    "CREATE TABLE stack_frame(stack INTEGER NOT NULL REFERENCES stack(id),"
    " depth INTEGER NOT NULL, frame INTEGER NOT NULL REFERENCES frame(id),"
    " PRIMARY KEY(stack, depth)) WITHOUT ROWID;";

/** struct Writer - @failed: a call failed; the later ones do nothing */
typedef struct Writer {
    const McExport *e;
    sqlite3 *db;
    bool failed;
} Writer;

static void run(Writer *w, const char *sql)
{
    w->failed = w->failed ||
                sqlite3_exec(w->db, sql, NULL, NULL, NULL) != SQLITE_OK;
}

static sqlite3_stmt *prepare(Writer *w, const char *sql)
{
    sqlite3_stmt *s = NULL;

    w->failed = w->failed ||
                sqlite3_prepare_v2(w->db, sql, -1, &s, NULL) != SQLITE_OK;
    return s;
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
}

/* Insert a row, and unbind its values: the next row begins with NULLs. */
static void step(Writer *w, sqlite3_stmt *s)
{
    w->failed = w->failed || sqlite3_step(s) != SQLITE_DONE;
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
}

/* ---- sums ---------------------------------------------------------------- */

/* Make a table with a column for each field of ka top, after @first. */
static void make_sums(Writer *w, const char *name, const char *first)
{
    g_autoptr(GString) sql = g_string_new(NULL);

    g_string_printf(sql, "CREATE TABLE %s(%s", name, first);
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        g_string_append_printf(sql, "%s%s INTEGER", i || *first ? ", " : "",
                               mc_top_columns[i].key);
    }
    g_string_append(sql, ")");
    run(w, sql->str);
}

static sqlite3_stmt *prepare_sums(Writer *w, const char *name, unsigned first)
{
    g_autoptr(GString) sql = g_string_new(NULL);

    g_string_printf(sql, "INSERT INTO %s VALUES(", name);
    for (unsigned i = 0; i < MC_TOP__COUNT + first; i++) {
        g_string_append(sql, i ? ",?" : "?");
    }
    g_string_append(sql, ")");
    return prepare(w, sql->str);
}

static void bind_sums(sqlite3_stmt *s, const McProfileStack *sums, int first)
{
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        if (sums->known & (1u << i)) {
            sqlite3_bind_int64(s, first + i + 1, sums->value[i]);
        }
    }
}

static void put_total(Writer *w)
{
    sqlite3_stmt *s = prepare_sums(w, "total", 0);

    bind_sums(s, &w->e->profile->total, 0);
    step(w, s);
    sqlite3_finalize(s);
}

static void put_path(Writer *w, sqlite3_stmt *s, unsigned id,
                     const McProfileStack *stack)
{
    const unsigned *path = (const unsigned *)w->e->profile->path->data;

    for (unsigned i = 0; i < stack->n && !w->failed; i++) {
        sqlite3_bind_int64(s, 1, id);
        sqlite3_bind_int64(s, 2, i);
        sqlite3_bind_int64(s, 3, path[stack->first + i] + 1);
        step(w, s);
    }
}

static void put_stacks(Writer *w)
{
    const GArray *stacks = w->e->profile->stack;
    sqlite3_stmt *sums = prepare_sums(w, "stack", 1);
    sqlite3_stmt *path = prepare(w, "INSERT INTO stack_frame VALUES(?,?,?)");

    for (unsigned i = 0; i < stacks->len && !w->failed; i++) {
        const McProfileStack *s = &g_array_index(stacks, McProfileStack, i);

        sqlite3_bind_int64(sums, 1, i + 1);
        bind_sums(sums, s, 1);
        step(w, sums);
        put_path(w, path, i + 1, s);
    }
    sqlite3_finalize(sums);
    sqlite3_finalize(path);
}

/* ---- frames and notes ---------------------------------------------------- */

static void put_frame(Writer *w, sqlite3_stmt *s, unsigned id,
                      const McProfileFrame *f)
{
    g_autoptr(GString) name = g_string_new(NULL);
    g_autofree char *pc = g_strdup_printf("0x%016" PRIx64, f->pc);

    mc_put_frame(name, f, w->e->frames);
    sqlite3_bind_int64(s, 1, id);
    bind_text(s, 2, name->str);
    bind_text(s, 3, f->function);
    if (f->module) {
        bind_text(s, 4, f->module);
    }
    if (f->named) {
        sqlite3_bind_int64(s, 5, (sqlite3_int64)f->offset);
    }
    if (f->pc) {
        bind_text(s, 6, pc);
    }
    if (f->file) {
        bind_text(s, 7, f->file);
        sqlite3_bind_int64(s, 8, f->line);
    }
    step(w, s);
}

static void put_frames(Writer *w)
{
    const GArray *frames = w->e->profile->frame;
    sqlite3_stmt *s = prepare(w, "INSERT INTO frame VALUES(?,?,?,?,?,?,?,?)");

    for (unsigned i = 0; i < frames->len && !w->failed; i++) {
        put_frame(w, s, i + 1, &g_array_index(frames, McProfileFrame, i));
    }
    sqlite3_finalize(s);
}

static void put_notes(Writer *w)
{
    const McHeapProfile *p = w->e->profile;
    sqlite3_stmt *s = prepare(w, "INSERT INTO note VALUES(?)");

    if (p->banner) {
        g_autofree char *text = g_strconcat("kernel: ", p->banner, NULL);

        bind_text(s, 1, text);
        step(w, s);
    }
    for (unsigned i = 0; i < p->note->len && !w->failed; i++) {
        bind_text(s, 1, p->note->pdata[i]);
        step(w, s);
    }
    sqlite3_finalize(s);
}

/* ---- the file ------------------------------------------------------------ */

static void fill(Writer *w)
{
    run(w, "BEGIN");
    run(w, tables);
    make_sums(w, "stack", "id INTEGER PRIMARY KEY");
    make_sums(w, "total", "");
    put_total(w);
    put_frames(w);
    put_stacks(w);
    put_notes(w);
    run(w, "COMMIT");
}

static void write_bytes(Writer *w, FILE *to)
{
    sqlite3_int64 len = 0;
    unsigned char *bytes = w->failed ? NULL :
                           sqlite3_serialize(w->db, "main", &len, 0);

    w->failed = !bytes;
    if (bytes) {
        fwrite(bytes, 1, len, to);
    }
    sqlite3_free(bytes);
}

bool mc_export_sqlite(const McExport *e, FILE *to, GError **errp)
{
    Writer w = { .e = e };

    w.failed = sqlite3_open(":memory:", &w.db) != SQLITE_OK;
    fill(&w);
    write_bytes(&w, to);
    if (w.failed) {
        mc_fail_unknown(errp, "sqlite: %s", sqlite3_errmsg(w.db));
    }
    sqlite3_close(w.db);
    return !w.failed;
}
