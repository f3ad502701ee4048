/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/slab-guest.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"

#include <bpf/btf.h>
#include <string.h>

#define PAGE        4096u
#define AT_STRUCTS  (1 * PAGE)
#define AT_PERCPU   (2 * PAGE)
#define AT_IMAGE    (4 * PAGE)
#define AT_NODES    (5 * PAGE)
#define FIRST_CACHE 8u              /* page */
#define CACHE_SIZE  512u
#define PGTY_SLAB   0xf5u
#define PG_SLAB     9u

/* Offsets of variables in the image. */
enum { PER_CPU_OFFSET = 0, NR_CPU_IDS = 16, NR_NODE_IDS = 20 };

/* Offsets in the structs. */
enum {
    C_FLAGS = 0, C_SIZE = 4, C_OBJECT_SIZE = 8, C_OFFSET = 12, C_OO = 16,
    C_MIN = 20, C_REFCOUNT = 24, C_LEFT_PAD = 28, C_NAME = 32, C_LIST = 40,
    C_RANDOM = 56, C_PERCPU = 64, C_CAPACITY = 72, C_ALIGN = 76, C_NODE = 80,
    C_TEXT = 256,                   /* the bytes of the name */
    P_FLAGS = 0, P_CACHE = 8, P_LIST = 16, P_FREELIST = 32, P_COUNTERS = 40,
    P_TYPE = 48, P_HEAD = 56,
    CPU_FREELIST = 0, CPU_SLAB = 8, CPU_PARTIAL = 16,
    S_MAIN = 0, S_SPARE = 8, S_RCU = 16,
    SHEAF_LIST = 0, SHEAF_CACHE = 16, SHEAF_SIZE = 24, SHEAF_OBJECTS = 32,
    N_NR_PARTIAL = 0, N_PARTIAL = 8, N_NR_SLABS = 24, N_OBJECTS = 32,
    N_LOCK = SG_NODE_LOCK,
    B_FULL = 0, B_EMPTY = 16, B_NR_FULL = 32, B_NR_EMPTY = 36,
};

/* ---- memory -------------------------------------------------------------- */

static uint8_t *at(SlabGuest *g, uint64_t va, size_t len)
{
    static const struct {
        uint64_t va, len, at;
    } map[] = {
        { SG_DIRECT, SG_PAGES * PAGE, 0 },
        { SG_VMEMMAP, PAGE, AT_STRUCTS },
        { SG_IMAGE, PAGE, AT_IMAGE },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(map); i++) {
        if (va - map[i].va < map[i].len &&
            len <= map[i].len - (va - map[i].va)) {
            return g->ram + map[i].at + (va - map[i].va);
        }
    }
    return NULL;
}

void sg_put(SlabGuest *g, uint64_t va, uint64_t v, unsigned bytes)
{
    memcpy(at(g, va, bytes), &v, bytes);
}

uint64_t sg_word(SlabGuest *g, uint64_t va)
{
    uint64_t v;

    memcpy(&v, at(g, va, 8), 8);
    return v;
}

static bool read_ram(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                     size_t len)
{
    const uint8_t *from = at(opaque, va, len);

    if (from) {
        memcpy(buf, from, len);
    }
    return from;
}

static bool read_reg(void *opaque, unsigned vcpu, unsigned i, KtRegister *out)
{
    return false;
}

uint64_t sg_struct(unsigned page)
{
    return SG_VMEMMAP + page * 64;
}

uint64_t sg_cache(unsigned i)
{
    return SG_DIRECT + FIRST_CACHE * PAGE + i * CACHE_SIZE;
}

uint64_t sg_node(unsigned i)
{
    return SG_DIRECT + AT_NODES + i * 64;
}

static uint64_t barn_of(unsigned i)
{
    return SG_DIRECT + AT_NODES + 1024 + i * 64;
}

uint64_t sg_sheaf(unsigned number)
{
    return SG_DIRECT + AT_NODES + 2048 + number * 64;
}

uint64_t sg_object(const SlabGuest *g, unsigned cache, unsigned page,
                   unsigned slot)
{
    return SG_DIRECT + page * PAGE + slot * g->size[cache];
}

/* ---- types --------------------------------------------------------------- */

typedef struct Types {
    struct btf *b;
    int t_int, t_long, list;
} Types;

static void fields(const Types *t, const char *name, unsigned size,
                   const char *const *field, const unsigned *offset,
                   const int *type, unsigned n)
{
    btf__add_struct(t->b, name, size);
    for (unsigned i = 0; i < n; i++) {
        btf__add_field(t->b, field[i], type[i], offset[i] * 8, 0);
    }
}

static void add_cache_types(const Types *t, SgKind kind)
{
    int x = btf__add_struct(t->b, "kmem_cache_order_objects", 4), nodes, per;
    const char *const field[] = {
        "flags", "size", "object_size", "offset", "oo", "min", "refcount",
        "red_left_pad", "name", "list", "random", "align",
        kind == SG_7_3 ? "cpu_sheaves" : "cpu_slab",
    };
    const unsigned offset[] = {
        C_FLAGS, C_SIZE, C_OBJECT_SIZE, C_OFFSET, C_OO, C_MIN, C_REFCOUNT,
        C_LEFT_PAD, C_NAME, C_LIST, C_RANDOM, C_ALIGN, C_PERCPU,
    };
    const int type[] = {
        t->t_int, t->t_int, t->t_int, t->t_int, x, x, t->t_int, t->t_int,
        t->t_long, t->list, t->t_long, t->t_int, t->t_long,
    };

    btf__add_field(t->b, "x", t->t_int, 0, 0);
    per = btf__add_struct(t->b, kind == SG_7_3 ? "kmem_cache_per_node_ptrs" :
                                                 "other", 16);
    btf__add_field(t->b, "barn", t->t_long, 0, 0);
    btf__add_field(t->b, "node", t->t_long, 64, 0);
    nodes = btf__add_array(t->b, t->t_int,
                           kind == SG_7_3 ? per : t->t_long, 4);
    fields(t, "kmem_cache", CACHE_SIZE, field, offset, type,
           G_N_ELEMENTS(field));
    btf__add_field(t->b, kind == SG_7_3 ? "per_node" : "node", nodes,
                   C_NODE * 8, 0);
    if (kind == SG_7_3) {
        btf__add_field(t->b, "sheaf_capacity", t->t_int, C_CAPACITY * 8, 0);
    }
}

static void add_slab_fields(const Types *t)
{
    btf__add_field(t->b, "slab_cache", t->t_long, P_CACHE * 8, 0);
    btf__add_field(t->b, "slab_list", t->list, P_LIST * 8, 0);
    btf__add_field(t->b, "next", t->t_long, P_LIST * 8, 0);
    btf__add_field(t->b, "freelist", t->t_long, P_FREELIST * 8, 0);
    btf__add_field(t->b, "counters", t->t_long, P_COUNTERS * 8, 0);
    btf__add_field(t->b, "inuse", t->t_int, P_COUNTERS * 8, 16);
    btf__add_field(t->b, "objects", t->t_int, P_COUNTERS * 8 + 16, 15);
    btf__add_field(t->b, "frozen", t->t_int, P_COUNTERS * 8 + 31, 1);
}

static void add_page_types(const Types *t, SgKind kind)
{
    btf__add_struct(t->b, "page", 64);
    btf__add_field(t->b, "flags", t->t_long, P_FLAGS * 8, 0);
    btf__add_field(t->b, "page_type", t->t_int, P_TYPE * 8, 0);
    btf__add_field(t->b, "compound_head", t->t_long, P_HEAD * 8, 0);
    if (kind != SG_5_10) {
        btf__add_struct(t->b, "slab", 64);
    }
    add_slab_fields(t);
    btf__add_enum(t->b, "pagetype", 4);
    btf__add_enum_value(t->b, kind == SG_5_10 ? "PG_slab" : "PGTY_slab",
                        kind == SG_5_10 ? PG_SLAB : PGTY_SLAB);
}

static void add_cpu_types(const Types *t, SgKind kind)
{
    static const char *const sheaves[] = { "main", "spare", "rcu_free" };
    static const char *const cpu[] = { "freelist", "slab", "partial" };
    const int type[] = { t->t_long, t->t_long, t->t_long };
    const unsigned offset[] = { 0, 8, 16 };
    int lock;

    if (kind == SG_7_3) {
        fields(t, "slub_percpu_sheaves", 24, sheaves, offset, type, 3);
    } else {
        fields(t, "kmem_cache_cpu", 24, cpu, offset, type, 3);
    }
    lock = btf__add_struct(t->b, "spinlock", 4);
    btf__add_field(t->b, "raw_lock", t->t_int, 0, 0);
    btf__add_struct(t->b, "kmem_cache_node", 64);
    btf__add_field(t->b, "nr_partial", t->t_long, N_NR_PARTIAL * 8, 0);
    btf__add_field(t->b, "partial", t->list, N_PARTIAL * 8, 0);
    btf__add_field(t->b, "nr_slabs", t->t_long, N_NR_SLABS * 8, 0);
    btf__add_field(t->b, "total_objects", t->t_long, N_OBJECTS * 8, 0);
    btf__add_field(t->b, "list_lock", lock, N_LOCK * 8, 0);
}

static void add_sheaf_types(const Types *t)
{
    int objects = btf__add_array(t->b, t->t_int, t->t_long, 0);

    btf__add_struct(t->b, "slab_sheaf", SHEAF_OBJECTS);
    btf__add_field(t->b, "barn_list", t->list, SHEAF_LIST * 8, 0);
    btf__add_field(t->b, "cache", t->t_long, SHEAF_CACHE * 8, 0);
    btf__add_field(t->b, "size", t->t_int, SHEAF_SIZE * 8, 0);
    btf__add_field(t->b, "objects", objects, SHEAF_OBJECTS * 8, 0);
    btf__add_struct(t->b, "node_barn", 40);
    btf__add_field(t->b, "sheaves_full", t->list, B_FULL * 8, 0);
    btf__add_field(t->b, "sheaves_empty", t->list, B_EMPTY * 8, 0);
    btf__add_field(t->b, "nr_full", t->t_int, B_NR_FULL * 8, 0);
    btf__add_field(t->b, "nr_empty", t->t_int, B_NR_EMPTY * 8, 0);
}

static GsBtf *make_types(SgKind kind)
{
    struct btf *b = btf__new_empty();
    Types t = { .b = b, .t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED),
                .t_long = btf__add_int(b, "long", 8, BTF_INT_SIGNED) };
    const void *raw;
    GsBtf *types;
    __u32 len;

    t.list = btf__add_struct(b, "list_head", 16);
    btf__add_field(b, "next", t.t_long, 0, 0);
    btf__add_field(b, "prev", t.t_long, 64, 0);
    add_cache_types(&t, kind);
    add_page_types(&t, kind);
    add_cpu_types(&t, kind);
    if (kind == SG_7_3) {
        add_sheaf_types(&t);
    }
    raw = btf__raw_data(b, &len);
    types = gs_btf_new(raw, len, NULL);
    btf__free(b);
    g_assert_nonnull(types);
    return types;
}

static void make_kernel(GsKernel *k, SgKind kind)
{
    static const struct {
        const char *name;
        uint64_t va;
    } row[] = {
        { "_stext", SG_IMAGE - 0x1000 }, { "_etext", SG_IMAGE },
        { "rcu_gp_kthread", SG_IMAGE - 0x800 },
        { "__per_cpu_offset", SG_IMAGE + PER_CPU_OFFSET },
        { "nr_cpu_ids", SG_IMAGE + NR_CPU_IDS },
        { "nr_node_ids", SG_IMAGE + NR_NODE_IDS },
    };

    k->arch = &gs_arch_x86_64;
    k->page_shift = 12;
    k->orc = gs_orc_set_new();
    k->modules = gs_modules_new();
    k->symtab = gs_symtab_new();
    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        gs_symtab_add(k->symtab, row[i].va, 'D', row[i].name,
                      strlen(row[i].name));
    }
    gs_symtab_seal(k->symtab, NULL);
    k->btf = make_types(kind);
}

/* ---- slabs --------------------------------------------------------------- */

void sg_set_counts(SlabGuest *g, unsigned page, unsigned inuse,
                   unsigned objects)
{
    sg_put(g, sg_struct(page) + P_COUNTERS, inuse | objects << 16, 4);
}

void sg_set_next(SlabGuest *g, unsigned i, unsigned page, unsigned slot,
                 uint64_t next)
{
    uint64_t place = sg_object(g, i, page, slot) + g->size[i] / 2 / 8 * 8;
    const uint64_t stored[] = {
        [SG_PLAIN] = next, [SG_XOR] = next ^ SG_RANDOM ^ place,
        [SG_SWAP] = next ^ SG_RANDOM ^ GUINT64_SWAP_LE_BE(place),
    };

    sg_put(g, place, stored[g->form], 8);
}

uint64_t sg_chain(SlabGuest *g, unsigned i, unsigned page,
                  const unsigned *slots, unsigned n)
{
    for (unsigned j = 0; j < n; j++) {
        sg_set_next(g, i, page, slots[j],
                    j + 1 < n ? sg_object(g, i, page, slots[j + 1]) : 0);
    }
    return n ? sg_object(g, i, page, slots[0]) : 0;
}

void sg_add_slab(SlabGuest *g, unsigned i, unsigned page,
                 const unsigned *slots, unsigned n)
{
    uint64_t va = sg_struct(page);
    unsigned objects = PAGE / g->size[i];

    sg_put(g, va + P_FLAGS, g->kind == SG_5_10 ? 1 << PG_SLAB : 0, 8);
    sg_put(g, va + P_TYPE, g->kind == SG_5_10 ? ~0u : PGTY_SLAB << 24, 4);
    sg_put(g, va + P_CACHE, sg_cache(i), 8);
    sg_put(g, va + P_FREELIST, sg_chain(g, i, page, slots, n), 8);
    sg_set_counts(g, page, objects - n, objects);
    sg_put(g, sg_node(i) + N_NR_SLABS,
           sg_word(g, sg_node(i) + N_NR_SLABS) + 1, 8);
    sg_put(g, sg_node(i) + N_OBJECTS,
           sg_word(g, sg_node(i) + N_OBJECTS) + objects, 8);
}

/* ---- caches -------------------------------------------------------------- */

/* Make a ring of list entries. */
static void link_ring(SlabGuest *g, const uint64_t *entry, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        sg_put(g, entry[i], entry[(i + 1) % n], 8);
        sg_put(g, entry[(i + 1) % n] + 8, entry[i], 8);
    }
}

static void link_caches(SlabGuest *g)
{
    uint64_t entry[SG_CACHES];
    unsigned n = 0;

    for (unsigned i = 0; i < SG_CACHES; i++) {
        if (g->size[i]) {
            entry[n++] = sg_cache(i) + C_LIST;
        }
    }
    link_ring(g, entry, n);
}

static uint64_t percpu_of(unsigned i, unsigned cpu)
{
    return SG_DIRECT + AT_PERCPU + cpu * PAGE + 64 * (i + 1);
}

void sg_add_cache(SlabGuest *g, unsigned i, const char *name, uint32_t size)
{
    uint64_t va = sg_cache(i), node = sg_node(i);
    uint32_t oo = PAGE / size;
    bool has_barn = g->kind == SG_7_3;

    g->size[i] = size;
    sg_put(g, va + C_SIZE, size, 4);
    sg_put(g, va + C_OBJECT_SIZE, size, 4);
    sg_put(g, va + C_OFFSET, size / 2 / 8 * 8, 4);
    sg_put(g, va + C_OO, oo, 4);
    sg_put(g, va + C_MIN, oo, 4);
    sg_put(g, va + C_REFCOUNT, 1, 4);
    sg_put(g, va + C_RANDOM, SG_RANDOM, 8);
    sg_put(g, va + C_NAME, va + C_TEXT, 8);
    memcpy(at(g, va + C_TEXT, 64), name, strlen(name) + 1);
    sg_put(g, va + C_PERCPU, 64 * (i + 1), 8);
    sg_put(g, va + C_CAPACITY, has_barn ? SG_CAPACITY : 0, 4);
    sg_put(g, va + C_NODE, has_barn ? barn_of(i) : node, 8);
    if (has_barn) {
        sg_put(g, va + C_NODE + 8, node, 8);
        sg_set_barn(g, i, true, NULL, 0);
        sg_set_barn(g, i, false, NULL, 0);
    }
    link_ring(g, (uint64_t[]) { node + N_PARTIAL }, 1);
    link_caches(g);
    kt_tracer_add_cache(g->t, va, name, size, size);
}

void sg_set_partial(SlabGuest *g, unsigned i, const unsigned *pages)
{
    uint64_t entry[SG_PAGES] = { sg_node(i) + N_PARTIAL };
    unsigned n = 0;

    for (; pages[n]; n++) {
        entry[n + 1] = sg_struct(pages[n]) + P_LIST;
    }
    link_ring(g, entry, n + 1);
    sg_put(g, sg_node(i) + N_NR_PARTIAL, n, 8);
}

void sg_set_cpu(SlabGuest *g, unsigned i, unsigned cpu, uint64_t freelist,
                unsigned slab, const unsigned *partial)
{
    uint64_t va = percpu_of(i, cpu);

    sg_put(g, va + CPU_FREELIST, freelist, 8);
    sg_put(g, va + CPU_SLAB, slab ? sg_struct(slab) : 0, 8);
    va += CPU_PARTIAL;
    for (unsigned j = 0; partial && partial[j]; j++) {
        sg_put(g, va, sg_struct(partial[j]), 8);
        va = sg_struct(partial[j]) + P_LIST;
    }
    sg_put(g, va, 0, 8);
}

/* ---- sheaves ------------------------------------------------------------- */

void sg_add_sheaf(SlabGuest *g, unsigned i, unsigned number,
                  const uint64_t *object, unsigned n)
{
    uint64_t va = sg_sheaf(number);

    sg_put(g, va + SHEAF_CACHE, sg_cache(i), 8);
    sg_put(g, va + SHEAF_SIZE, n, 4);
    for (unsigned j = 0; j < n; j++) {
        sg_put(g, va + SHEAF_OBJECTS + 8 * j, object[j], 8);
    }
}

void sg_set_sheaves(SlabGuest *g, unsigned i, unsigned cpu, unsigned main,
                    unsigned spare, unsigned rcu)
{
    const unsigned number[] = { main, spare, rcu };

    for (unsigned j = 0; j < G_N_ELEMENTS(number); j++) {
        sg_put(g, percpu_of(i, cpu) + S_MAIN + 8 * j,
               number[j] == UINT_MAX ? 0 : sg_sheaf(number[j]), 8);
    }
}

void sg_set_barn(SlabGuest *g, unsigned i, bool full, const unsigned *sheaves,
                 unsigned n)
{
    uint64_t va = barn_of(i);
    uint64_t entry[SG_PAGES] = { va + (full ? B_FULL : B_EMPTY) };

    for (unsigned j = 0; j < n; j++) {
        entry[j + 1] = sg_sheaf(sheaves[j]) + SHEAF_LIST;
    }
    link_ring(g, entry, n + 1);
    sg_put(g, va + (full ? B_NR_FULL : B_NR_EMPTY), n, 4);
}

/* ---- begin and end ------------------------------------------------------- */

SlabGuest *slab_guest_new(SgKind kind, SgForm form)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    SlabGuest *g = g_new0(SlabGuest, 1);

    g->t = kt_tracer_new(&config, NULL);
    g->kind = kind;
    g->form = form;
    make_kernel(&g->k, kind);
    g->vm = (KtVm) { .n_vcpus = 1, .read = read_ram, .reg = read_reg,
                     .opaque = g, .page_offset = SG_DIRECT,
                     .vmemmap = SG_VMEMMAP };
    g->o = (KtObjects) { g->t, &g->k, &g->vm };
    for (unsigned cpu = 0; cpu < 2; cpu++) {
        sg_put(g, SG_IMAGE + PER_CPU_OFFSET + 8 * cpu,
               SG_DIRECT + AT_PERCPU + cpu * PAGE, 8);
    }
    sg_put(g, SG_IMAGE + NR_CPU_IDS, 2, 4);
    sg_put(g, SG_IMAGE + NR_NODE_IDS, 1, 4);
    sg_add_cache(g, 0, "kmem_cache", CACHE_SIZE);
    sg_add_slab(g, 0, FIRST_CACHE, NULL, 0);
    sg_add_slab(g, 0, FIRST_CACHE + 1, NULL, 0);
    return g;
}

SlabGuest *slab_guest_with_lists(SgKind kind, SgForm form)
{
    SlabGuest *g = slab_guest_new(kind, form);

    sg_add_cache(g, SG_LISTED, "kmalloc-256", SG_LISTED_SIZE);
    sg_add_slab(g, SG_LISTED, 16, (unsigned[]) { 9 }, 1);
    sg_add_slab(g, SG_LISTED, 17, (unsigned[]) { 3, 1 }, 2);
    sg_add_slab(g, SG_LISTED, 18, NULL, 0);
    sg_set_partial(g, SG_LISTED, (unsigned[]) { 17, 0 });
    sg_set_cpu(g, SG_LISTED, 1,
               sg_chain(g, SG_LISTED, 16, (unsigned[]) { 2, 8, 5 }, 3), 16,
               (unsigned[]) { 0 });
    return g;
}

void slab_guest_free(SlabGuest *g)
{
    if (g) {
        kt_tracer_free(g->t);
        gs_orc_set_free(g->k.orc);
        gs_modules_free(g->k.modules);
        gs_symtab_free(g->k.symtab);
        gs_btf_free(g->k.btf);
        g_free(g);
    }
}
