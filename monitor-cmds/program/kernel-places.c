/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which kernel runs, and where: see source-lines.h. */
#include "monitor-cmds/program/source-lines.h"

#include <string.h>

#include "monitor-cmds/program/json-line.h"

/* Comparisons of addresses that must be equal if nothing else tells kernels
 * apart. */
#define MIN_EQUAL   4

/** struct RangeRow - a range of ka base, and the symbols at its begin and
 *  behind its end */
typedef struct RangeRow {
    const char *name, *first, *behind;
} RangeRow;

static const RangeRow ranges[KA_KERNEL_RANGES] = {
    { "text", "_stext", "_etext" },
    { "rodata", "__start_rodata", "__end_rodata" },
    { "data", "_sdata", "_edata" },
    { "bss", "__bss_start", "__bss_stop" },
};

/* ---- answers ------------------------------------------------------------- */

static bool read_stat(void *opaque, JsonObject *o, const char *type)
{
    KaKernelPlaces *k = opaque;
    const char *banner = ka_json_text(o, "kernel.banner");
    g_auto(GStrv) words = banner ? g_strsplit(banner, " ", 4) : NULL;

    if (!banner || k->banner) {
        return true;
    }
    k->banner = g_strdup(banner);
    /* the release becomes part of a path */
    if (g_strv_length(words) > 2 && !strchr(words[2], '/') &&
        g_ascii_isdigit(*words[2])) {
        k->release = g_strdup(words[2]);
    }
    return true;
}

static uint64_t address_of(const char *text)
{
    return text && g_str_has_prefix(text, "0x") ?
           g_ascii_strtoull(text + 2, NULL, 16) : 0;
}

static bool is_hex(const char *text)
{
    return text && strlen(text) >= 8 && strlen(text) <= 128 &&
           strspn(text, "0123456789abcdef") == strlen(text);
}

static bool read_range(void *opaque, JsonObject *o, const char *type)
{
    KaKernelPlaces *k = opaque;
    const char *name = ka_json_text(o, "name");
    const char *note = ka_json_text(o, "note");

    if (!g_strcmp0(name, "build-id") && is_hex(note) && !k->build_id) {
        k->build_id = g_strdup(note);
    }
    for (unsigned i = 0; i < KA_KERNEL_RANGES; i++) {
        if (!g_strcmp0(name, ranges[i].name)) {
            k->start[i] = address_of(ka_json_text(o, "start"));
            k->last[i] = address_of(ka_json_text(o, "last"));
        }
    }
    return true;
}

void ka_kernel_places_read(KaKernelPlaces *k, const char *stat,
                           const char *base)
{
    *k = (KaKernelPlaces) { 0 };
    ka_json_each(stat, read_stat, k);
    ka_json_each(base, read_range, k);
}

void ka_kernel_places_clear(KaKernelPlaces *k)
{
    g_free(k->banner);
    g_free(k->release);
    g_free(k->build_id);
}

/* ---- the usual places ---------------------------------------------------- */

static void add_path(GPtrArray *paths, const char *format, const char *word)
{
    if (word) {
        g_autoptr(GString) path = g_string_new(format);

        g_string_replace(path, "%", word, 1);
        g_ptr_array_add(paths, g_string_free(g_steal_pointer(&path), FALSE));
    }
}

static GPtrArray *usual_paths(const KaKernelPlaces *k)
{
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    const char *cache = g_getenv("DEBUGINFOD_CACHE_PATH");
    g_autofree char *usual = cache ? g_strdup(cache) :
        g_build_filename(g_get_user_cache_dir(), "debuginfod_client", NULL);
    g_autofree char *cached = g_build_filename(usual, "%", "debuginfo", NULL);
    g_autofree char *split = !k->build_id ? NULL :
        g_strdup_printf("%.2s/%s", k->build_id, k->build_id + 2);

    add_path(paths, "/usr/lib/debug/.build-id/%.debug", split);
    add_path(paths, cached, k->build_id);
    add_path(paths, "/usr/lib/debug/boot/vmlinux-%", k->release);
    add_path(paths, "/usr/lib/debug/lib/modules/%/vmlinux", k->release);
    add_path(paths, "/lib/modules/%/build/vmlinux", k->release);
    return paths;
}

char *ka_kernel_places_search(const KaKernelPlaces *k, char **why)
{
    g_autoptr(GPtrArray) paths = usual_paths(k);

    for (unsigned i = 0; i < paths->len; i++) {
        if (g_file_test(paths->pdata[i], G_FILE_TEST_IS_REGULAR)) {
            return g_strdup(paths->pdata[i]);
        }
    }
    g_ptr_array_add(paths, NULL);
    if (paths->len > 1) {
        g_autofree char *all = g_strjoinv(", ", (char **)paths->pdata);

        *why = g_strdup_printf("there is none of %s", all);
    } else {
        *why = g_strdup("the kernel is not known, so its file is not either");
    }
    return NULL;
}

/* ---- comparison ---------------------------------------------------------- */

/* Return (owned) the file's banner as ka prints banners, or NULL. */
static char *banner_of(const KaSourceFile *f)
{
    return ka_source_file_text(f, "linux_banner", "Linux version ");
}

static bool address_in(const KaSourceFile *f, const char *name, uint64_t *va)
{
    unsigned n = 0;
    const KaFileSymbol *s = ka_source_file_symbols(f, name, &n);

    *va = n == 1 ? s->va : 0;
    return n == 1;
}

/** struct Comparison - @equal, @other: addresses; @slid: the slide is known */
typedef struct Comparison {
    unsigned equal, other;
    bool slid;
} Comparison;

static void compare_address(KaKernelPlaces *k, const KaSourceFile *f,
                            const char *name, uint64_t va, Comparison *c)
{
    uint64_t its;

    if (!address_in(f, name, &its)) {
        return;
    }
    if (!c->slid) {
        c->slid = true;
        k->slide = va - its;
    }
    if (va - its == k->slide) {
        c->equal++;
    } else {
        c->other++;
    }
}

static void compare_addresses(KaKernelPlaces *k, const KaSourceFile *f,
                              Comparison *c)
{
    for (unsigned i = 0; i < KA_KERNEL_RANGES; i++) {
        if (k->start[i] && k->last[i]) {
            compare_address(k, f, ranges[i].first, k->start[i], c);
            compare_address(k, f, ranges[i].behind, k->last[i] + 1, c);
        }
    }
}

char *ka_kernel_places_compare(KaKernelPlaces *k, const KaSourceFile *f)
{
    g_autofree char *banner = banner_of(f), *id = ka_source_file_build_id(f);
    bool same_id = id && k->build_id && !strcmp(id, k->build_id);
    bool same_banner = banner && k->banner && !strcmp(banner, k->banner);
    Comparison c = { 0 };

    if (id && k->build_id && !same_id) {
        return g_strdup_printf("it is another kernel: its build id is %s, that "
                               "of the kernel is %s", id, k->build_id);
    }
    if (banner && k->banner && !same_banner) {
        return g_strdup_printf("it is another kernel: it is %s, and this is %s",
                               banner, k->banner);
    }
    compare_addresses(k, f, &c);
    if (c.other) {
        return g_strdup("it is another build of the kernel: symbols have other "
                        "addresses");
    }
    if (!c.slid) {
        return g_strdup("where the kernel is is not known, or the file does "
                        "not have the symbols _stext and _etext");
    }
    if (!same_id && !same_banner && c.equal < MIN_EQUAL) {
        return g_strdup("whether it is this kernel cannot be told: no build "
                        "id, no banner, and too few symbols");
    }
    return NULL;
}
