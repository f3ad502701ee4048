/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Caches, slabs and slots as the running kernel has them: see api/kt-slabs.h.
 * Each structure is copied once, and its numbers are compared with each other
 * before they are used.
 */
#include "kalloc-tracer/objects/slab-internal.h"

#include <string.h>

#define PFN_BITS        40
#define ORDER_MAX       12u
#define SIZE_MAX_SLOT   (1u << 24)
#define NODES_MAX       1024u
#define NODES_GUESSED   64u
/* kmem_cache.oo.x and min.x */
#define OBJECTS(x)      ((x) & 0xffff)
#define ORDER(x)        ((x) >> 16)

/* ---- opening ------------------------------------------------------------- */

/* Is there a CPU with this offset already? Without SMP all have offset 0, and
 * CPUs that are not possible have that of early boot. */
static bool has_offset(const KtSlabs *s, uint64_t offset)
{
    for (unsigned i = 0; i < s->cpus->len; i++) {
        if (g_array_index(s->cpus, KtSlabCpu, i).offset == offset) {
            return true;
        }
    }
    return false;
}

static void find_cpus(KtSlabs *s)
{
    bool has_lists = kt_slab_has(&s->at, KT_M_CACHE_CPU_SLAB) ||
                     kt_slab_has(&s->at, KT_M_CACHE_SHEAVES);
    unsigned n = has_lists ? kt_objects_n_cpus(&s->o) : 0;

    s->knows_cpus = true;
    for (unsigned i = 0; i < n; i++) {
        KtSlabCpu cpu = { .cpu = i };

        if (!kt_objects_cpu_is_possible(&s->o, i)) {
            continue;
        }
        if (!kt_objects_percpu(&s->o, i, 0, &cpu.offset)) {
            s->knows_cpus = false;
        } else if (!has_offset(s, cpu.offset)) {
            g_array_append_val(s->cpus, cpu);
        }
    }
}

static unsigned count_nodes(const KtSlabs *s)
{
    uint64_t n;

    if (!kt_objects_variable(&s->o, "nr_node_ids", 4, &n)) {
        return 0;
    }
    return MIN(MIN(n, NODES_MAX), s->at.n_nodes);
}

static bool find_memory(KtSlabs *s, GError **errp)
{
    const KtVm *vm = s->o.vm;

    if (!s->o.kernel || !vm) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED, "%s",
                    vm ? "the running kernel is not known; its slabs are not "
                         "shown" :
                         "slabs are in the memory of a VM; a journal has none");
        return false;
    }
    s->vmemmap = vm->vmemmap;
    s->page_offset = vm->page_offset;
    if (!s->vmemmap || !s->page_offset) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "it is not known yet where the direct map is; slabs are "
                    "not shown");
        return false;
    }
    return kt_slab_layout_init(&s->at, s->o.kernel, errp);
}

KtSlabs *kt_slabs_new(const KtObjects *o, GError **errp)
{
    g_autoptr(KtSlabs) s = g_new0(KtSlabs, 1);

    s->o = *o;
    s->cpus = g_array_new(FALSE, FALSE, sizeof(KtSlabCpu));
    if (!find_memory(s, errp)) {
        return NULL;
    }
    s->tag_bits = gs_kernel_tag_bits(o->kernel);
    s->n_nodes = count_nodes(s);
    find_cpus(s);
    return g_steal_pointer(&s);
}

void kt_slabs_free(KtSlabs *s)
{
    if (s) {
        g_array_unref(s->cpus);
        g_free(s);
    }
}

bool kt_slabs_knows_cpus(const KtSlabs *s)
{
    return s->knows_cpus;
}

/* ---- reading ------------------------------------------------------------- */

bool kt_slabs_pointer(const KtSlabs *s, uint64_t va, uint64_t *out)
{
    bool ok = kt_objects_number(&s->o, va, sizeof(*out), out);

    *out = gs_untag(s->tag_bits, *out);
    return ok;
}

bool kt_slabs_member(const KtSlabs *s, uint64_t va, KtMember m,
                     uint64_t *out)
{
    *out = 0;
    return kt_slab_has(&s->at, m) &&
           kt_objects_number(&s->o, va + s->at.layout.at[m],
                             s->at.layout.size[m], out);
}

bool kt_slabs_link(const KtSlabs *s, uint64_t va, KtMember m,
                   uint64_t *out)
{
    *out = 0;
    return kt_slab_has(&s->at, m) &&
           kt_slabs_pointer(s, va + s->at.layout.at[m], out);
}

/* ---- caches -------------------------------------------------------------- */

uint64_t kt_slabs_cache_of(const KtSlabs *s, uint64_t va)
{
    KtSlab slab;

    return va && kt_slabs_slab_of(s, va, &slab) && slab.is_slab ? slab.cache :
                                                                  0;
}

/* Do @n slots fit into 2^@order pages? */
static bool fits_order(const KtSlabs *s, const KtSlabCache *c, uint32_t order,
                       uint32_t n)
{
    return order <= ORDER_MAX &&
           (uint64_t)n * c->size <= 1ull << s->at.page_shift << order;
}

static bool makes_sense(const KtSlabs *s, const KtSlabCache *c)
{
    return c->size && c->size <= SIZE_MAX_SLOT && c->per_slab &&
           c->min_per_slab && c->left_pad < c->size &&
           c->object_size <= c->size - c->left_pad &&
           c->offset <= c->size - c->left_pad - 8 &&
           fits_order(s, c, c->order, c->per_slab) &&
           fits_order(s, c, c->min_order, c->min_per_slab);
}

static void set_orders(KtSlabCache *c, uint32_t oo, uint32_t min)
{
    c->order = ORDER(oo);
    c->per_slab = OBJECTS(oo);
    c->min_order = ORDER(min);
    c->min_per_slab = OBJECTS(min);
}

bool kt_slabs_cache(const KtSlabs *s, uint64_t va, KtSlabCache *out)
{
    const KtSlabLayout *at = &s->at;
    uint8_t copy[KT_CACHE_BYTES_MAX];
    uint64_t all = kt_slabs_cache_of(s, va);

    if (!all || kt_slabs_cache_of(s, all) != all ||
        !kt_objects_read(&s->o, va, copy, at->cache_bytes)) {
        return false;
    }
#define PICK(m) (kt_slab_has(at, KT_M_CACHE_##m) ? \
                 kt_slab_pick(at, copy, KT_M_CACHE_##m) : 0)
    *out = (KtSlabCache) {
        .va = va, .object_size = PICK(OBJECT_SIZE), .size = PICK(SIZE),
        .left_pad = PICK(LEFT_PAD), .align = PICK(ALIGN),
        .offset = PICK(OFFSET), .flags = PICK(FLAGS),
        .users = MAX((int32_t)PICK(REFCOUNT), 1),
        .random = PICK(RANDOM), .hardened = kt_slab_has(at,
                                                        KT_M_CACHE_RANDOM),
        .sheaf_capacity = PICK(CAPACITY), .cpu_slab = PICK(CPU_SLAB),
        .cpu_sheaves = PICK(SHEAVES),
    };
    set_orders(out, PICK(OO), PICK(MIN));
    if (!makes_sense(s, out)) {
        return false;
    }
    kt_objects_text(&s->o, gs_untag(s->tag_bits, PICK(NAME)), out->name,
                    sizeof(out->name));
#undef PICK
    return true;
}

/* ---- nodes --------------------------------------------------------------- */

/* Read where structures of a node are. In 6.18 to 7.0 its kmem_cache_node has
 * the barn; before, there was none. */
static bool read_node(const KtSlabs *s, uint64_t va, uint64_t *node,
                      uint64_t *barn)
{
    bool ok;

    *barn = 0;
    if (kt_slab_has(&s->at, KT_M_PER_NODE_NODE)) {
        kt_slabs_link(s, va, KT_M_PER_NODE_BARN, barn);
        return kt_slabs_link(s, va, KT_M_PER_NODE_NODE, node);
    }
    ok = kt_slabs_pointer(s, va, node);
    if (*node) {
        kt_slabs_link(s, *node, KT_M_NODE_BARN, barn);
    }
    return ok;
}

void kt_slabs_foreach_node(const KtSlabs *s, const KtSlabCache *c,
                           KtSlabNodeFn fn, void *opaque)
{
    unsigned n = s->n_nodes ? s->n_nodes : MIN(NODES_GUESSED, s->at.n_nodes);
    uint64_t va = c->va + s->at.layout.at[KT_M_CACHE_NODES], node, barn;

    for (unsigned i = 0; i < n; i++, va += s->at.node_step) {
        if (!read_node(s, va, &node, &barn) || (!node && !s->n_nodes)) {
            return;
        }
        if (node || barn) {
            fn(opaque, i, node, barn);
        }
    }
}

/** struct Sum - numbers of a cache while its nodes are visited */
typedef struct Sum {
    const KtSlabs *s;
    KtSlabNumbers *out;
} Sum;

static void add(const KtSlabs *s, uint64_t node, KtMember m, uint64_t *to)
{
    uint64_t v;

    if (*to == KT_NO_COUNT || !kt_slabs_member(s, node, m, &v)) {
        *to = KT_NO_COUNT;
    } else {
        *to += v;
    }
}

static void add_node(void *opaque, unsigned number, uint64_t node,
                     uint64_t barn)
{
    const Sum *sum = opaque;

    if (node) {
        add(sum->s, node, KT_M_NODE_NR_SLABS, &sum->out->slabs);
        add(sum->s, node, KT_M_NODE_OBJECTS, &sum->out->objects);
    }
}

void kt_slabs_numbers(const KtSlabs *s, const KtSlabCache *c,
                      KtSlabNumbers *out)
{
    *out = (KtSlabNumbers) { 0, 0 };
    kt_slabs_foreach_node(s, c, add_node, &(Sum) { s, out });
}

/* ---- slabs --------------------------------------------------------------- */

static bool is_slab(const KtSlabLayout *at, const uint8_t *page)
{
    switch (at->mark) {
    case KT_MARK_TYPE:
        return (uint32_t)kt_slab_pick(at, page, KT_M_PAGE_TYPE) >> 24 ==
               at->mark_value;
    case KT_MARK_FLAG:
        return kt_slab_pick(at, page, KT_M_PAGE_FLAGS) >> at->mark_value & 1;
    default:
        return true;
    }
}

static uint64_t pick_pointer(const KtSlabs *s, const uint8_t *page,
                             KtMember m)
{
    return kt_slab_has(&s->at, m) ?
               gs_untag(s->tag_bits, kt_slab_pick(&s->at, page, m)) :
               0;
}

static void parse(const KtSlabs *s, const uint8_t *page, KtSlab *out)
{
    const KtSlabLayout *at = &s->at;

    out->is_slab = is_slab(at, page);
    out->cache = pick_pointer(s, page, KT_M_SLAB_CACHE);
    out->freelist = pick_pointer(s, page, KT_M_SLAB_FREELIST);
    out->next = pick_pointer(s, page, KT_M_SLAB_NEXT);
    out->link = pick_pointer(s, page, KT_M_SLAB_LIST);
    out->objects = kt_slab_pick_bits(page, at->objects);
    out->inuse = kt_slab_pick_bits(page, at->inuse);
    out->frozen = kt_slab_pick_bits(page, at->frozen);
}

/* Read a struct page. @va: its address. False if there is none. */
static bool read_page(const KtSlabs *s, uint64_t va, uint8_t *page)
{
    uint64_t pfn = (va - s->vmemmap) / s->at.struct_page;

    return va >= s->vmemmap && (va - s->vmemmap) % s->at.struct_page == 0 &&
           !(pfn >> PFN_BITS) &&
           kt_objects_read(&s->o, va, page, s->at.struct_page);
}

bool kt_slabs_slab(const KtSlabs *s, uint64_t va, KtSlab *out)
{
    uint8_t page[KT_STRUCT_PAGE_MAX];

    *out = (KtSlab) { .va = va };
    if (!read_page(s, va, page)) {
        return false;
    }
    out->base = s->page_offset + ((va - s->vmemmap) / s->at.struct_page <<
                                  s->at.page_shift);
    parse(s, page, out);
    return true;
}

/* Return the head of a compound page. compound_info has a mask instead of an
 * address if sizeof(struct page) is a power of 2. */
static uint64_t head_of(const KtSlabs *s, uint64_t va, const uint8_t *page)
{
    uint64_t head = kt_slab_pick(&s->at, page, KT_M_PAGE_HEAD);

    if (!(head & 1)) {
        return va;
    }
    head &= ~1ull;
    return (-head & (-head - 1)) ? head : va & head;
}

bool kt_slabs_slab_of(const KtSlabs *s, uint64_t va, KtSlab *out)
{
    uint64_t pfn = (va - s->page_offset) >> s->at.page_shift;
    uint64_t at = s->vmemmap + pfn * s->at.struct_page;
    uint8_t page[KT_STRUCT_PAGE_MAX];

    *out = (KtSlab) { 0 };
    return va >= s->page_offset && read_page(s, at, page) &&
           kt_slabs_slab(s, head_of(s, at, page), out);
}

uint64_t kt_slab_len(const KtSlabs *s, const KtSlabCache *c,
                     const KtSlab *slab)
{
    if (slab->inuse > slab->objects) {
        return 0;
    }
    if (slab->objects == c->per_slab) {
        return 1ull << s->at.page_shift << c->order;
    }
    return slab->objects == c->min_per_slab ?
               1ull << s->at.page_shift << c->min_order :
               0;
}

/* ---- slots --------------------------------------------------------------- */

uint32_t kt_slab_slot(const KtSlabCache *c, const KtSlab *slab, uint64_t va)
{
    uint64_t off = va - slab->base - c->left_pad;

    return va >= slab->base + c->left_pad && off % c->size == 0 &&
                   off / c->size < slab->objects ?
               off / c->size :
               KT_NO_SLOT;
}

uint32_t kt_slab_slot_around(const KtSlabCache *c, const KtSlab *slab,
                             uint64_t va)
{
    uint64_t i = (va - slab->base) / c->size;

    return va >= slab->base && i < slab->objects ? i : KT_NO_SLOT;
}

uint64_t kt_slab_object(const KtSlabCache *c, const KtSlab *slab, uint32_t i)
{
    return slab->base + c->left_pad + (uint64_t)i * c->size;
}
