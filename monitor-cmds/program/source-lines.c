/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of source for frames: see source-lines.h.
 *
 * The kernel runs KASLR's slide above the addresses of its vmlinux. Each frame
 * is checked by itself: a symbol of the file with the frame's name, plus the
 * slide, plus the frame's offset, must be the frame's address. So a function
 * that is elsewhere has no line.
 *
 * The sections of a module are where the kernel put them. They are placed on
 * pages of their own, in a fixed layout, so the distance between an address and
 * its place in the file is, modulo 4 KiB, the same for all frames of a section,
 * also if the module was loaded several times.
 */
#include "monitor-cmds/program/source-lines.h"

#include <stdio.h>
#include <string.h>

#include "monitor-cmds/program/json-line.h"

/* ---- files of modules ---------------------------------------------------- */

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

/* Return (owned) all files of modules below a folder: name -> path; "" if
 * several files have the name. */
static GHashTable *module_files_new(const char *folder)
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

/* Return true if both are names of one module; "-" and "_" are the same. */
static bool module_name_equal(const char *a, const char *b)
{
    g_autofree char *x = plain_name(a, strlen(a));
    g_autofree char *y = plain_name(b, strlen(b));

    return !strcmp(x, y);
}

/* Return (borrowed) the path of a module, NULL if there is none. */
static const char *module_files_find(GHashTable *files, const char *name)
{
    g_autofree char *plain = plain_name(name, strlen(name));

    return g_hash_table_lookup(files, plain);
}

#define PAGE_MASK   ((uint64_t)0xfff)

/**
 * struct Module - a module with a file
 * @distance: number of a section -> its distance, modulo a page, plus 1
 * @refused: the file does not fit
 */
typedef struct Module {
    char *path;
    KaSourceFile *file;
    GHashTable *distance;
    bool refused;
} Module;

/**
 * struct KaLines - @kernel: (nullable)
 * @paths: (nullable) name of a module -> path
 * @modules: name -> Module
 * @found: frame -> GArray of KaPlace, NULL: no line is known
 */
struct KaLines {
    KaSourceFile *kernel;
    KaKernelPlaces where;
    GHashTable *paths;
    GHashTable *modules;
    GHashTable *found;
    bool inlines;
};

/** struct Frame - the parts of function+0xoff[module] */
typedef struct Frame {
    char *function;
    char *module;
    uint64_t offset, at;
} Frame;

/* ---- frames -------------------------------------------------------------- */

static bool parse_frame(const char *symbol, uint64_t at, Frame *f)
{
    const char *plus = g_strrstr(symbol, "+0x");
    char *end;

    *f = (Frame) { .at = at };
    if (!plus || plus == symbol || !g_ascii_isxdigit(plus[3])) {
        return false;
    }
    f->offset = g_ascii_strtoull(plus + 3, &end, 16);
    if (*end && (*end != '[' || !g_str_has_suffix(end, "]") || !end[2])) {
        return false;
    }
    f->function = g_strndup(symbol, plus - symbol);
    f->module = *end ? g_strndup(end + 1, strlen(end) - 2) : NULL;
    return true;
}

static void clear_frame(Frame *f)
{
    g_free(f->function);
    g_free(f->module);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Frame, clear_frame)

/* ---- modules ------------------------------------------------------------- */

static void free_module(gpointer p)
{
    Module *m = p;

    g_free(m->path);
    g_clear_pointer(&m->file, ka_source_file_free);
    g_hash_table_unref(m->distance);
    g_free(m);
}

static void refuse(Module *m, const char *name, const char *why)
{
    m->refused = true;
    fprintf(stderr, "ka: %s: %s; frames of module %s have no lines\n", m->path,
            why, name);
}

/* Return (owned) why the file is not of this module, or NULL. A file that has
 * debug information only does not have the texts. */
static char *why_other(const KaLines *l, const Module *m, const char *name)
{
    g_autofree char *its = ka_source_file_text(m->file, ".modinfo", "name=");
    g_autofree char *magic = ka_source_file_text(m->file, ".modinfo",
                                                 "vermagic=");
    const char *release = l->where.release;

    if (its && !module_name_equal(its + strlen("name="), name)) {
        return g_strdup_printf("it is module %s", its + strlen("name="));
    }
    if (magic && release) {
        const char *of = magic + strlen("vermagic=");

        if (!g_str_has_prefix(of, release) || of[strlen(release)] != ' ') {
            return g_strdup_printf("it is for kernel %.*s, and this is %s",
                                   (int)strcspn(of, " "), of, release);
        }
    }
    return NULL;
}

static Module *open_module(const KaLines *l, const char *name, const char *path)
{
    Module *m = g_new0(Module, 1);
    g_autofree char *why = NULL;

    m->path = g_strdup(*path ? path : name);
    m->distance = g_hash_table_new(NULL, NULL);
    if (!*path) {
        why = g_strdup("several files have the name of this module");
    } else {
        m->file = ka_source_file_open(path, &why);
    }
    why = why ? g_steal_pointer(&why) : why_other(l, m, name);
    if (why) {
        refuse(m, name, why);
    }
    return m;
}

static Module *module_named(KaLines *l, const char *name)
{
    Module *m = g_hash_table_lookup(l->modules, name);
    const char *path = m || !l->paths ? NULL :
                       module_files_find(l->paths, name);

    if (!m && path) {
        m = open_module(l, name, path);
        g_hash_table_insert(l->modules, g_strdup(name), m);
    }
    return m && !m->refused ? m : NULL;
}

/* Return the symbol of a frame in the module's file: the only one with its
 * name, because where the module is is not known. */
static const KaFileSymbol *only_symbol(const Module *m, const Frame *f)
{
    unsigned n = 0;
    const KaFileSymbol *s = ka_source_file_symbols(m->file, f->function, &n);

    return n == 1 && f->offset <= s->size ? s : NULL;
}

/* Return the distance modulo a page, plus 1. The address of a frame may be that
 * of its return address minus 1; sections begin at even addresses. */
static gpointer distance_of(const KaFileSymbol *s, const Frame *f)
{
    uint64_t distance = f->at - f->offset - s->va;

    distance += distance & 1;
    return GUINT_TO_POINTER((distance & PAGE_MASK) + 1);
}

void ka_lines_learn(KaLines *l, const char *symbol, uint64_t at)
{
    g_auto(Frame) f = { 0 };
    gpointer section, known, distance;
    const KaFileSymbol *s;
    Module *m;

    if (!parse_frame(symbol, at, &f) || !f.module) {
        return;
    }
    m = module_named(l, f.module);
    s = m ? only_symbol(m, &f) : NULL;
    if (!s) {
        return;
    }
    section = GUINT_TO_POINTER(s->section);
    distance = distance_of(s, &f);
    known = g_hash_table_lookup(m->distance, section);
    if (known && known != distance) {
        refuse(m, f.module, "it has functions elsewhere than the loaded "
               "module: it is another build");
    }
    g_hash_table_insert(m->distance, section, distance);
}

static void module_places(KaLines *l, const Frame *f, GArray *out)
{
    Module *m = module_named(l, f->module);
    const KaFileSymbol *s = m ? only_symbol(m, f) : NULL;

    if (s && g_hash_table_lookup(m->distance, GUINT_TO_POINTER(s->section)) ==
             distance_of(s, f)) {
        uint64_t distance = f->at - f->offset - s->va;

        distance += distance & 1;
        ka_source_file_places(m->file, f->at - distance, out);
    }
}

/* ---- the kernel ---------------------------------------------------------- */

/* Return true if a symbol of the file is where the frame's function is. */
static bool is_there(const KaLines *l, const Frame *f)
{
    const uint64_t slide = l->where.slide;
    unsigned n = 0;
    const KaFileSymbol *s = ka_source_file_symbols(l->kernel, f->function, &n);

    for (unsigned i = 0; i < n; i++) {
        uint64_t start = s[i].va + slide + f->offset;

        if (f->at == start || f->at == start - 1) {
            return true;
        }
    }
    return false;
}

/* ---- lookups ------------------------------------------------------------- */

static GArray *read_places(KaLines *l, const char *symbol, uint64_t at)
{
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(KaPlace));
    g_auto(Frame) f = { 0 };
    const KaPlace *last;

    if (!parse_frame(symbol, at, &f)) {
        return NULL;
    }
    if (f.module) {
        module_places(l, &f, places);
    } else if (l->kernel && is_there(l, &f)) {
        ka_source_file_places(l->kernel, f.at - l->where.slide, places);
    }
    if (!places->len) {
        return NULL;
    }
    last = &g_array_index(places, KaPlace, places->len - 1);
    return last->file ? g_steal_pointer(&places) : NULL;
}

const GArray *ka_lines_find(KaLines *l, const char *symbol, uint64_t at)
{
    g_autofree char *key = g_strdup_printf("%" G_GINT64_MODIFIER "x %s", at,
                                           symbol);
    gpointer places;

    if (!g_hash_table_lookup_extended(l->found, key, NULL, &places)) {
        places = read_places(l, symbol, at);
        g_hash_table_insert(l->found, g_steal_pointer(&key), places);
    }
    return places;
}

bool ka_lines_inlines(const KaLines *l)
{
    return l->inlines;
}

/* ---- opening ------------------------------------------------------------- */

static void free_places(gpointer p)
{
    if (p) {
        g_array_unref(p);
    }
}

static bool fail(const char *path, const char *why)
{
    fprintf(stderr, "ka: --vmlinux %s: %s; no lines are shown\n", path, why);
    return false;
}

/* Open the kernel's file, if the user named one, and compare it with the
 * kernel. */
static bool open_kernel(KaLines *l, const char *vmlinux)
{
    g_autofree char *path = NULL, *why = NULL;

    if (!vmlinux) {
        return true;
    }
    path = strcmp(vmlinux, "auto") ? g_strdup(vmlinux) :
           ka_kernel_places_search(&l->where, &why);
    l->kernel = path ? ka_source_file_open(path, &why) : NULL;
    why = l->kernel ? ka_kernel_places_compare(&l->where, l->kernel) :
          g_steal_pointer(&why);
    return !why || fail(path ? path : vmlinux, why);
}

static void open_modules(KaLines *l, const char *folder)
{
    g_autofree char *usual = folder || !l->where.release ? NULL :
        g_build_filename("/usr/lib/debug/lib/modules", l->where.release, NULL);

    folder = folder ? folder : usual;
    if (folder && g_file_test(folder, G_FILE_TEST_IS_DIR)) {
        l->paths = module_files_new(folder);
    }
}

KaLines *ka_lines_open(const KaLinesFiles *files, const char *stat,
                       const char *base)
{
    g_autoptr(KaLines) l = g_new0(KaLines, 1);

    l->inlines = files->inlines;
    l->modules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                       free_module);
    l->found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                     free_places);
    ka_kernel_places_read(&l->where, stat, base);
    open_modules(l, files->modules);
    return open_kernel(l, files->vmlinux) ? g_steal_pointer(&l) : NULL;
}

void ka_lines_free(KaLines *l)
{
    if (!l) {
        return;
    }
    g_hash_table_unref(l->found);
    g_hash_table_unref(l->modules);
    g_clear_pointer(&l->paths, g_hash_table_unref);
    g_clear_pointer(&l->kernel, ka_source_file_free);
    ka_kernel_places_clear(&l->where);
    g_free(l);
}
