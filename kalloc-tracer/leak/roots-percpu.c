/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks of the per-CPU allocator (mm/percpu.c): kt_roots_find_percpu_chunks().
 *
 * Per-CPU memory comes from chunks. Each chunk has a unit for each CPU:
 *
 *     first chunk    | static | reserved for modules | dynamic |
 *     later chunks   | dynamic                                 |
 *
 *     __percpu pointer = address in the chunk's first unit
 *                        - pcpu_base_addr + __per_cpu_start
 *     memory of a CPU  = __percpu pointer + __per_cpu_offset[cpu]
 *
 * chunk.alloc_map has a bit for each 4 bytes, which is set while they are
 * allocated. Three kinds of memory follow:
 *
 *     known block       scanned as a block: if it is reached
 *     other allocated   a root: it was allocated before ka recorded events
 *     free              has stale words, and is not scanned
 *
 * The pages of a chunk become KT_PAGE_ALIASED, so that they are no roots. Pages
 * of the first chunk are in the direct map. Each page of a later chunk has the
 * address of its chunk in its struct page. If types or symbols are missing, the
 * pages stay roots.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include <string.h>

#define CHUNKS_MAX      4096
#define SLOTS_MAX       128
#define CHUNK_PAGES_MAX 16384
#define UNIT            4u          /* bytes of a bit: PCPU_MIN_ALLOC_SIZE */
#define BATCH           32          /* struct pages that are read together */
#define STRUCT_PAGE_MAX 256

/*
 * struct Finding - state of the search
 * @at: offsets of members
 * @to_pointer: add it to an address in the first unit to get a __percpu pointer
 * @later: addresses of later chunks
 */
typedef struct Finding {
    KtLiveSet *w;
    const uint32_t *at;
    uint64_t to_pointer;
    GHashTable *later;
} Finding;

/*
 * struct Chunk - copy of a struct pcpu_chunk
 * @pointer: __percpu pointer of its first byte
 * @len: bytes of a unit
 * @lo, @hi: offsets of the memory that it allocates. The first chunk's memory
 *           need not begin or end with a page
 * @map: address of alloc_map
 */
typedef struct Chunk {
    uint64_t pointer, len, lo, hi, map;
} Chunk;

/* Read a variable of @len bytes; 0 if it is missing or unreadable. */
static uint64_t variable(const KtLiveSet *w, const char *name, size_t len)
{
    uint64_t va = kt_live_set_symbol(w, name), v = 0;

    return va && w->mem.read(w->mem.opaque, va, &v, len) ? v : 0;
}

/* Read the chunk at @va; false if it is none. */
static bool read_chunk(const Finding *f, uint64_t va, Chunk *c)
{
    const KtLiveSet *w = f->w;
    unsigned shift = gs_kernel_page_shift(w->plan->kernel);
    uint64_t base, pages = kt_live_set_u32(w, va + f->at[KT_M_CHUNK_PAGES]);
    uint64_t start = kt_live_set_u32(w, va + f->at[KT_M_CHUNK_START]);
    uint64_t end = kt_live_set_u32(w, va + f->at[KT_M_CHUNK_END]);

    c->len = pages << shift;
    if (!pages || pages > CHUNK_PAGES_MAX || start + end >= c->len ||
        !kt_live_set_load(w, va + f->at[KT_M_CHUNK_BASE], &base) || !base ||
        base & ((1ull << shift) - 1) ||
        !kt_live_set_load(w, va + f->at[KT_M_CHUNK_MAP], &c->map)) {
        return false;
    }
    c->pointer = base + f->to_pointer;
    c->lo = start;
    c->hi = c->len - end;
    return true;
}

/* ---- allocated memory --------------------------------------------------- */

static void clear_bits(uint64_t *map, uint64_t lo, uint64_t hi)
{
    for (uint64_t i = lo; i < hi; i++) {
        map[i / 64] &= ~(1ull << i % 64);
    }
}

/* Return the number of the first live block at or after @va. */
static uint32_t first_at(const KtLiveSet *w, uint64_t va)
{
    uint32_t lo = 0, hi = w->live->len;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (kt_live_set_block(w, mid)->va < va) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Clear the bits of known blocks. */
static void clear_blocks(const KtLiveSet *w, const Chunk *c, uint64_t *map)
{
    for (uint32_t i = first_at(w, c->pointer); i < w->live->len; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);
        uint64_t off = b->va - c->pointer;

        if (off >= c->len) {
            return;
        }
        if (b->layer == KT_LAYER_PERCPU) {
            uint64_t len = MIN(b->len, c->len - off);

            clear_bits(map, off / UNIT, (off + len + UNIT - 1) / UNIT);
        }
    }
}

/* Return the first bit from @i up to @n that is @set, @n if there is none. */
static uint64_t find_bit(const uint64_t *map, uint64_t i, uint64_t n, bool set)
{
    while (i < n) {
        uint64_t word = (set ? map[i / 64] : ~map[i / 64]) >> i % 64;

        if (word) {
            return MIN(i + __builtin_ctzll(word), n);
        }
        i = (i | 63) + 1;
    }
    return n;
}

/* Add allocated memory that is no known block as a root, of each CPU. */
static void add_unknown(KtLiveSet *w, const Chunk *c, const uint64_t *map)
{
    uint64_t n = c->hi / UNIT, end;

    for (uint64_t i = c->lo / UNIT; (i = find_bit(map, i, n, true)) < n;
         i = end) {
        end = find_bit(map, i, n, false);
        for (unsigned cpu = 0; cpu < w->offset->len; cpu++) {
            uint64_t va = kt_live_set_of_cpu(w, c->pointer, cpu);

            kt_live_set_add(w, KT_PLACE_PERCPU, va + i * UNIT,
                            va + end * UNIT, cpu);
        }
    }
}

/* Add the roots of a chunk. Return false if its alloc_map cannot be read. */
static bool add_chunk(KtLiveSet *w, const Chunk *c)
{
    uint64_t bytes = c->len / UNIT / 8;
    g_autofree uint64_t *map = g_malloc(bytes);

    if (!w->mem.read(w->mem.opaque, c->map, map, bytes)) {
        return false;
    }
    clear_blocks(w, c, map);
    add_unknown(w, c, map);
    return kt_live_set_progress(w, 0);
}

/* ---- pages -------------------------------------------------------------- */

/* Alias the pages of a chunk in the direct map: a part of the first chunk. */
static void alias_first(KtLiveSet *w, const Chunk *c)
{
    for (unsigned cpu = 0; cpu < w->offset->len; cpu++) {
        kt_page_use_set_aliased(
            w->pages, kt_live_set_of_cpu(w, c->pointer, cpu), c->len);
    }
}

static bool is_of_chunk(const Finding *f, const uint8_t *page)
{
    uint64_t word;

    for (KtMember m = KT_M_PAGE_INDEX; m <= KT_M_PAGE_PRIVATE; m++) {
        if (f->at[m] > f->w->pages->struct_page - sizeof(word)) {
            continue;
        }
        memcpy(&word, page + f->at[m], sizeof(word));
        word = gs_untag(f->w->tag_bits, word);
        if (word && g_hash_table_contains(f->later, &word)) {
            return true;
        }
    }
    return false;
}

/* Alias the pages of later chunks from page @first on, at most BATCH. */
static void alias_batch(const Finding *f, uint64_t first)
{
    KtPageUses *p = f->w->pages;
    uint64_t n = MIN(BATCH, p->n - first);
    uint8_t batch[BATCH * STRUCT_PAGE_MAX];

    if (!memchr(p->use + first, KT_PAGE_KERNEL, n) ||
        !f->w->mem.read(f->w->mem.opaque, kt_page_use_struct(p, first), batch,
                        n * p->struct_page)) {
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (p->use[first + i] == KT_PAGE_KERNEL &&
            is_of_chunk(f, batch + i * p->struct_page)) {
            p->use[first + i] = KT_PAGE_ALIASED;
        }
    }
}

static void alias_later(const Finding *f)
{
    const KtPageUses *p = f->w->pages;

    for (uint64_t i = 0; g_hash_table_size(f->later) && i < p->n; i += BATCH) {
        alias_batch(f, i);
    }
}

/* ---- chunks ------------------------------------------------------------- */

/* Add a part of the first chunk, to which the variable @name points. */
static void find_first(const Finding *f, const char *name)
{
    uint64_t va = variable(f->w, name, 8);
    Chunk c;

    if (va && read_chunk(f, va, &c) && add_chunk(f->w, &c)) {
        alias_first(f->w, &c);
    }
}

/* Skip the chunk's own copy of its address: a block can lie at its start. */
static void skip_base(const Finding *f, uint64_t va)
{
    const KtLiveBlock *b = kt_live_set_find(f->w, va);

    if (b) {
        kt_marker_skip(f->w->scan, kt_live_set_index(f->w, b),
                       f->at[KT_M_CHUNK_BASE], f->at[KT_M_CHUNK_BASE] + 8);
    }
}

/* Add a later chunk. Return false if it is none, or was added before. */
static bool find_later(const Finding *f, uint64_t va)
{
    uint64_t pages = variable(f->w, "pcpu_unit_pages", 4);
    unsigned shift = gs_kernel_page_shift(f->w->plan->kernel);
    Chunk c;

    if (g_hash_table_contains(f->later, &va) || !read_chunk(f, va, &c) ||
        c.len != pages << shift || !add_chunk(f->w, &c)) {
        return false;
    }
    skip_base(f, va);
    return g_hash_table_add(f->later, g_memdup2(&va, sizeof(va)));
}

/* Is there a list_head at @head? Its first entry points back to it. */
static bool is_list(const Finding *f, uint64_t head)
{
    uint64_t at, back;

    return kt_live_set_load(f->w, head, &at) &&
           kt_live_set_load(f->w, at + 8, &back) && back == head;
}

/* Walk a list of chunks. @first: address of the first chunk, which is in a
 * list, too */
static void walk_slot(const Finding *f, uint64_t head, uint64_t first)
{
    uint64_t at = head, list = f->at[KT_M_CHUNK_LIST];

    for (unsigned i = 0; i < CHUNKS_MAX; i++) {
        if (!kt_live_set_load(f->w, at, &at) || at == head ||
            (at - list != first && !find_later(f, at - list))) {
            return;
        }
    }
}

/* Walk all lists. From 5.9 to 5.13 there are twice as many, for chunks that are
 * charged to memory cgroups. */
static void find_all_later(const Finding *f)
{
    uint64_t first = variable(f->w, "pcpu_first_chunk", 8);
    uint64_t lists = variable(f->w, "pcpu_chunk_lists", 8);
    uint64_t slots = variable(f->w, "pcpu_nr_slots", 4);

    for (unsigned i = 0; lists && i < 2 * MIN(slots, SLOTS_MAX); i++) {
        if (is_list(f, lists + i * 16)) {
            walk_slot(f, lists + i * 16, first);
        }
    }
}

void kt_roots_find_percpu_chunks(KtLiveSet *w)
{
    g_autoptr(GHashTable) later = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, NULL);
    Finding f = { .w = w, .at = w->layout.at, .later = later };
    uint64_t base = variable(w, "pcpu_base_addr", 8);
    GsSymbol start;

    if (!w->pages || w->pages->struct_page > STRUCT_PAGE_MAX ||
        !w->offset->len || !base ||
        !kt_layout_has_all(&w->layout, KT_M_CHUNK_LIST, KT_M_CHUNK_MAP) ||
        !gs_kernel_lookup(w->plan->kernel, "__per_cpu_start", &start)) {
        return;
    }
    f.to_pointer = start.va - base;
    find_first(&f, "pcpu_first_chunk");
    find_first(&f, "pcpu_reserved_chunk");
    find_all_later(&f);
    alias_later(&f);
}

/* ---- struct percpu_ref --------------------------------------------------- */
/*
 * References with flag bits: struct percpu_ref (lib/percpu-refcount.c, since
 * 5.10).
 *
 *     struct percpu_ref             struct percpu_ref_data
 *     +------------------+          +-----------+
 *     | percpu_count_ptr |<---------| ref       |
 *     | data             |--------->| ...       |
 *     +------------------+          +-----------+
 *
 * percpu_count_ptr is the address of a per-CPU block. While the count is
 * atomic, or the object dies, bits 0 and 1 are set. Most per-CPU blocks have
 * small numbers as addresses, of which only the exact one counts
 * (KT_MARKERF_EXACT). So each such word is added to its block.
 */

#define FLAGS 3ull

/* If the block is a struct percpu_ref_data, which has @size bytes, read the
 * word of its percpu_ref. */
static bool read_word(const KtLiveSet *w, uint32_t size,
                      const KtLiveBlock *b, uint64_t *word)
{
    const uint32_t *at = w->layout.at;
    uint64_t ref, data;

    return b->layer == KT_LAYER_KMALLOC && b->requested == size &&
           kt_live_set_load(w, b->va + at[KT_M_PERCPU_DATA_REF], &ref) && ref &&
           kt_live_set_load(w, ref + at[KT_M_PERCPU_REF_DATA], &data) &&
           data == b->va &&
           kt_live_set_load(w, ref + at[KT_M_PERCPU_REF_COUNT], word);
}

void kt_roots_find_percpu_refs(KtLiveSet *w)
{
    uint32_t size;

    if (!kt_layout_has_all(&w->layout, KT_M_PERCPU_DATA_REF,
                           KT_M_PERCPU_REF_DATA) ||
        !gs_kernel_type_size(w->plan->kernel, "percpu_ref_data", &size)) {
        return;
    }
    for (uint32_t i = 0; i < w->live->len && !w->ended; i++) {
        const KtLiveBlock *of;
        uint64_t word;

        if (!read_word(w, size, kt_live_set_block(w, i), &word) ||
            !(word & FLAGS)) {
            continue;
        }
        of = kt_live_set_find(w, word & ~FLAGS);
        if (of && of->layer == KT_LAYER_PERCPU &&
            kt_live_set_is_exact(w, of->va)) {
            kt_marker_also(w->scan, kt_live_set_index(w, of), word);
        }
    }
}
