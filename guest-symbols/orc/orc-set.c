/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GsOrcSet: which table is in force at a run-time address.
 *
 * The kernel's own table is fixed when the kernel is opened. Modules come and
 * go while vCPU threads unwind. So all that is known of modules is in an
 * immutable snapshot behind one atomic pointer. A writer (modules.c, any
 * thread) takes the lock, publishes a new snapshot, increments the generation,
 * retires the old snapshot and frees those that nobody reads.
 *
 * Each reader has a hazard pointer:
 *
 *     reader                              writer
 *     1. p = current                      1. current = new
 *     2. hazard = p                       2. free a retired snapshot unless
 *     3. if current != p: again              it is in some hazard pointer
 *     4. search p
 *
 * These four accesses are sequentially consistent. Either the reader sees the
 * new pointer in step 3, or the writer sees the hazard pointer in step 2. A
 * reader does this only after a cache miss of its unwinder on module code; a
 * cached frame costs no barrier. At most one retired snapshot a reader exists.
 */
#include "guest-symbols/base/lock.h"
#include "guest-symbols/base/sorted.h"
#include "guest-symbols/orc/orc.h"
#include <string.h>

#define MAX_TEXT 16

/*
 * x86-64 puts modules, and with them all code that is generated at run time
 * (BPF, ftrace trampolines, kprobe slots), between the kernel image and the
 * fixmap. Documentation/arch/x86/x86_64/mm.rst; the start is the lower of
 * the two that CONFIG_RANDOMIZE_BASE chooses from.
 */
#define MODULES_START 0xffffffffa0000000ull
#define MODULES_END   0xffffffffff600000ull

typedef struct Span {
    uint64_t start;
    uint64_t end;
    uint64_t key;
    GsOrcTable *table;
} Span;

/* Sorted by address, no two overlap, each holds a reference on its table. */
typedef struct Snap {
    size_t n;
    Span span[];
} Snap;

struct GsOrcReader {
    GsOrcSet *set;
    _Atomic(Snap *) hazard;
};

/*
 * @lock: protects @spans, @retired, @readers
 * @spans: what the next snapshot is made of; references of its own
 */
struct GsOrcSet {
    GsOrcTable *kernel;
    GsOrcLayout layout;
    GsRange image;
    GsRange text[MAX_TEXT];
    size_t n_text;
    atomic_uint_fast64_t slide;

    _Atomic(Snap *) cur;
    atomic_uint_fast64_t generation;

    pthread_mutex_t lock;
    GArray *spans;
    GPtrArray *retired;
    GPtrArray *readers;
};

/* ---- snapshots -------------------------------------------------------- */

static void span_clear(gpointer p)
{
    Span *s = p;

    gs_orc_table_unref(s->table);
}

static void snap_free(gpointer p)
{
    Snap *snap = p;

    for (size_t i = 0; snap && i < snap->n; i++) {
        gs_orc_table_unref(snap->span[i].table);
    }
    g_free(snap);
}

static Snap *snap_new_locked(GsOrcSet *set)
{
    size_t n = set->spans->len;
    Snap *snap = g_malloc(sizeof(*snap) + n * sizeof(Span));

    snap->n = n;
    for (size_t i = 0; i < n; i++) {
        snap->span[i] = g_array_index(set->spans, Span, i);
        gs_orc_table_ref(snap->span[i].table);
    }
    return snap;
}

static bool in_use_locked(GsOrcSet *set, const Snap *snap)
{
    for (size_t i = 0; i < set->readers->len; i++) {
        GsOrcReader *r = set->readers->pdata[i];

        if (atomic_load(&r->hazard) == snap) {
            return true;
        }
    }
    return false;
}

static void reclaim_locked(GsOrcSet *set)
{
    for (size_t i = set->retired->len; i-- > 0;) {
        if (!in_use_locked(set, set->retired->pdata[i])) {
            g_ptr_array_remove_index_fast(set->retired, i);
        }
    }
}

static void publish_locked(GsOrcSet *set)
{
    Snap *old = atomic_exchange(&set->cur, snap_new_locked(set));

    atomic_fetch_add(&set->generation, 1);
    g_ptr_array_add(set->retired, old);
    reclaim_locked(set);
}

/* ---- life ------------------------------------------------------------- */

GsOrcSet *gs_orc_set_new(void)
{
    GsOrcSet *set = g_new0(GsOrcSet, 1);

    pthread_mutex_init(&set->lock, NULL);
    set->spans = g_array_new(false, false, sizeof(Span));
    g_array_set_clear_func(set->spans, span_clear);
    set->retired = g_ptr_array_new_with_free_func(snap_free);
    set->readers = g_ptr_array_new();
    atomic_init(&set->cur, snap_new_locked(set));
    atomic_init(&set->generation, 1);
    return set;
}

void gs_orc_set_free(GsOrcSet *set)
{
    if (!set) {
        return;
    }
    snap_free(atomic_load(&set->cur));
    g_ptr_array_free(set->retired, true);
    g_ptr_array_free(set->readers, true);
    g_array_free(set->spans, true);
    gs_orc_table_unref(set->kernel);
    pthread_mutex_destroy(&set->lock);
    g_free(set);
}

bool gs_orc_set_load(GsOrcSet *set, GsRange image, const GsRange *text,
                     size_t n_text, const GsOrcRaw *raw, GError **errp)
{
    set->image = image;
    set->n_text = MIN(n_text, MAX_TEXT);
    memcpy(set->text, text, set->n_text * sizeof(*text));
    if (!raw) {
        return true;
    }
    set->layout = gs_orc_layout_probe(raw);
    set->kernel = gs_orc_table_new(raw, set->layout, errp);
    return set->kernel != NULL;
}

void gs_orc_set_drop_table(GsOrcSet *set)
{
    g_clear_pointer(&set->kernel, gs_orc_table_unref);
    set->layout = GS_ORC_LAYOUT_PROBE;
}

bool gs_orc_set_load_image(GsOrcSet *set, const GsImage *img, GError **errp)
{
    GsOrcRaw raw = { 0 };
    GsRange image = { UINT64_MAX, 0 };
    GsRange text[MAX_TEXT];
    size_t n_text = 0;
    uint64_t va;
    bool has_orc;

    for (size_t i = 0; i < img->sections->len; i++) {
        const GsSection *s = gs_image_nth_section(img, i);

        /* The percpu section is linked at 0, far from the kernel. */
        if ((int64_t)s->va >= 0) {
            continue;
        }
        image.start = MIN(image.start, s->va);
        image.end = MAX(image.end, s->va + s->len);
        if (s->exec && n_text < MAX_TEXT) {
            text[n_text++] = (GsRange) { s->va, s->va + s->len };
        }
    }
    has_orc = gs_image_section(img, ".orc_unwind_ip", &raw.ip_va, &raw.ip,
                               &raw.ip_len) &&
              gs_image_section(img, ".orc_unwind", &va, &raw.orc,
                               &raw.orc_len);
    if (!gs_image_section(img, ".orc_header", &va, &raw.header,
                          &raw.header_len)) {
        raw.header = NULL;
    }
    return gs_orc_set_load(set, image, text, n_text, has_orc ? &raw : NULL,
                           errp);
}

bool gs_orc_set_in_image(const GsOrcSet *set, uint64_t va)
{
    va -= atomic_load_explicit(&set->slide, memory_order_relaxed);
    return gs_range_has(set->image, va);
}

GsOrcLayout gs_orc_set_layout(const GsOrcSet *set)
{
    return set->layout;
}

const GsOrcTable *gs_orc_set_table(const GsOrcSet *set)
{
    return set->kernel;
}

const atomic_uint_fast64_t *gs_orc_set_generation(const GsOrcSet *set)
{
    return &set->generation;
}

size_t gs_orc_set_n_retired(GsOrcSet *set)
{
    GS_HOLD(&set->lock);

    reclaim_locked(set);
    return set->retired->len;
}

/* ---- changes ---------------------------------------------------------- */

void gs_orc_set_set_slide(GsOrcSet *set, uint64_t slide)
{
    GS_HOLD(&set->lock);

    g_array_set_size(set->spans, 0);
    atomic_store(&set->slide, slide);
    publish_locked(set);
}

static void remove_overlaps_locked(GsOrcSet *set, const GsRange *r)
{
    for (guint i = set->spans->len; i-- > 0;) {
        const Span *s = &g_array_index(set->spans, Span, i);

        if (s->start < r->end && r->start < s->end) {
            g_array_remove_index(set->spans, i);
        }
    }
}

static bool remove_key_locked(GsOrcSet *set, uint64_t key)
{
    guint before = set->spans->len;

    for (guint i = set->spans->len; i-- > 0;) {
        if (g_array_index(set->spans, Span, i).key == key) {
            g_array_remove_index(set->spans, i);
        }
    }
    return set->spans->len != before;
}

static void append_locked(GsOrcSet *set, uint64_t key, const GsRange *text,
                          GsOrcTable *table)
{
    Span span = { text->start, text->end, key, gs_orc_table_ref(table) };

    g_array_append_val(set->spans, span);
}

static void sort_and_publish_locked(GsOrcSet *set)
{
    g_array_sort(set->spans, gs_sorted_compare);
    publish_locked(set);
}

void gs_orc_set_add_module(GsOrcSet *set, uint64_t key, const GsRange *text,
                           size_t n_text, GsOrcTable *table)
{
    GS_HOLD(&set->lock);

    remove_key_locked(set, key);
    for (size_t i = 0; i < n_text; i++) {
        if (text[i].start < text[i].end) {
            remove_overlaps_locked(set, &text[i]);
            append_locked(set, key, &text[i], table);
        }
    }
    sort_and_publish_locked(set);
}

void gs_orc_set_append_module(GsOrcSet *set, uint64_t key,
                              const GsRange *text, size_t n_text,
                              GsOrcTable *table)
{
    GS_HOLD(&set->lock);

    for (size_t i = 0; i < n_text; i++) {
        append_locked(set, key, &text[i], table);
    }
}

void gs_orc_set_publish(GsOrcSet *set)
{
    GS_HOLD(&set->lock);

    sort_and_publish_locked(set);
}

void gs_orc_set_drop_module(GsOrcSet *set, uint64_t key)
{
    GS_HOLD(&set->lock);

    if (remove_key_locked(set, key)) {
        publish_locked(set);
    }
}

GsOrcTable *gs_orc_set_module_table(GsOrcSet *set, uint64_t key)
{
    GS_HOLD(&set->lock);

    for (size_t i = 0; i < set->spans->len; i++) {
        const Span *s = &g_array_index(set->spans, Span, i);

        if (s->key == key) {
            return gs_orc_table_ref(s->table);
        }
    }
    return NULL;
}

/* ---- readers ---------------------------------------------------------- */

GsOrcReader *gs_orc_reader_new(GsOrcSet *set)
{
    GS_HOLD(&set->lock);
    GsOrcReader *r = g_new0(GsOrcReader, 1);

    r->set = set;
    g_ptr_array_add(set->readers, r);
    return r;
}

void gs_orc_reader_free(GsOrcReader *r)
{
    if (!r) {
        return;
    }
    pthread_mutex_lock(&r->set->lock);
    g_ptr_array_remove_fast(r->set->readers, r);
    pthread_mutex_unlock(&r->set->lock);
    g_free(r);
}

static Snap *snap_acquire(GsOrcReader *r)
{
    Snap *snap;

    do {
        snap = atomic_load(&r->set->cur);
        atomic_store(&r->hazard, snap);
    } while (snap != atomic_load(&r->set->cur));
    return snap;
}

static GsOrcPlace table_find(const GsOrcTable *t, uint64_t va, GsOrcRule *out)
{
    const GsOrcRule *rule = t ? gs_orc_table_find(t, va) : NULL;

    if (!rule) {
        return GS_ORC_NO_TABLE;
    }
    *out = *rule;
    return GS_ORC_FOUND;
}

static const Span *snap_span(const Snap *snap, uint64_t pc)
{
    size_t n = gs_sorted_up_to(snap->span, snap->n, sizeof(Span), pc);

    return n && pc < snap->span[n - 1].end ? &snap->span[n - 1] : NULL;
}

static GsOrcPlace find_module(GsOrcReader *r, uint64_t pc, GsOrcRule *out)
{
    Snap *snap = snap_acquire(r);
    const Span *span = snap_span(snap, pc);
    GsOrcPlace place = GS_ORC_NOT_TEXT;

    if (span) {
        place = table_find(span->table, pc, out);
    } else if (pc >= MODULES_START && pc < MODULES_END) {
        place = GS_ORC_NO_TABLE;
    }
    atomic_store_explicit(&r->hazard, NULL, memory_order_release);
    return place;
}

GsOrcPlace gs_orc_reader_find(GsOrcReader *r, uint64_t pc, GsOrcRule *out)
{
    const GsOrcSet *set = r->set;
    uint64_t va = pc - atomic_load_explicit(&set->slide, memory_order_relaxed);

    if (!gs_range_has(set->image, va)) {
        return find_module(r, pc, out);
    }
    return gs_ranges_have(set->text, set->n_text, va) ?
           table_find(set->kernel, va, out) : GS_ORC_NOT_TEXT;
}
