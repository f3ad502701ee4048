/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-symbols/arch/arch.h"
#include "tests/lib/guest-memory.h"

#include <bpf/btf.h>
#include <string.h>

uint8_t *lg_at(LeakGuest *g, uint64_t va, size_t len)
{
    static const struct {
        uint64_t va, len, at;
    } map[] = {
        { LG_DIRECT, LG_RAM, 0 },
        { LG_IMAGE, 0x6000, LG_AT_IMAGE },
        { LG_VMEMMAP, 0x1000, LG_AT_STRUCTS },
        { LG_VMALLOC, 0x8000, LG_AT_VMALLOC },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(map); i++) {
        if (va - map[i].va < map[i].len && len <= map[i].len -
                                                  (va - map[i].va)) {
            return g->ram + map[i].at + (va - map[i].va);
        }
    }
    return NULL;
}

void lg_put(LeakGuest *g, uint64_t va, uint64_t word)
{
    memcpy(lg_at(g, va, sizeof(word)), &word, sizeof(word));
}

bool lg_read(void *opaque, unsigned vcpu, uint64_t va, void *buf, size_t len)
{
    const uint8_t *from = lg_at(opaque, va, len);

    if (from) {
        memcpy(buf, from, len);
    }
    return from;
}

static bool lg_reg(void *opaque, unsigned vcpu, unsigned i, KtRegister *out)
{
    const LeakGuest *g = opaque;

    *out = (KtRegister) { "rdi", g->reg };
    return i == 0;
}

/* ---- the kernel --------------------------------------------------------- */

static void lg_add_zone_types(struct btf *b, int list, int t_long)
{
    int lists = btf__add_array(b, t_long, list, 2), areas, zones, cpu;
    int area = btf__add_struct(b, "free_area", LG_AREA_SIZE), zone;

    btf__add_field(b, "free_list", lists, 0, 0);
    areas = btf__add_array(b, t_long, area, 3);
    zone = btf__add_struct(b, "zone", LG_ZONE_SIZE);
    btf__add_field(b, "per_cpu_pageset", t_long, 0, 0);
    btf__add_field(b, "free_area", areas, LG_FREE_AREA * 8, 0);
    zones = btf__add_array(b, t_long, zone, 2);
    btf__add_struct(b, "pglist_data", 2 * LG_ZONE_SIZE);
    btf__add_field(b, "node_zones", zones, 0, 0);
    cpu = btf__add_array(b, t_long, list, 12);
    btf__add_struct(b, "per_cpu_pages", LG_PCP_LISTS + 12 * 16);
    btf__add_field(b, "lists", cpu, LG_PCP_LISTS * 8, 0);
}

static void lg_add_task_types(struct btf *b, int t_int, int t_long,
                              uint32_t stack)
{
    int thread = btf__add_struct(b, "thread_struct", 8), node, entity;

    btf__add_field(b, "sp", t_long, 0, 0);
    node = btf__add_struct(b, "rb_node", 24);
    btf__add_field(b, "__rb_parent_color", t_long, 0, 0);
    btf__add_field(b, "rb_right", t_long, LG_NODE_RIGHT * 8, 0);
    btf__add_field(b, "rb_left", t_long, LG_NODE_LEFT * 8, 0);
    entity = btf__add_struct(b, "sched_entity", 24);
    btf__add_field(b, "run_node", node, 0, 0);
    btf__add_struct(b, "task_struct", LG_TASK_SIZE);
    btf__add_field(b, "stack", t_long, LG_TASK_STACK * 8, 0);
    btf__add_field(b, "on_cpu", t_int, LG_TASK_ON_CPU * 8, 0);
    btf__add_field(b, "pid", t_int, LG_TASK_PID * 8, 0);
    btf__add_field(b, "thread", thread, LG_TASK_SP * 8, 0);
    btf__add_field(b, "se", entity, LG_TASK_NODE * 8, 0);
    btf__add_struct(b, "kernfs_node", LG_KERNFS_SIZE);
    btf__add_field(b, "active", t_int, LG_KERNFS_ACTIVE * 8, 0);
    btf__add_field(b, "rb", node, LG_KERNFS_RB * 8, 0);
    btf__add_field(b, "priv", t_long, LG_KERNFS_PRIV * 8, 0);
    btf__add_union(b, "thread_union", stack);
}

static void lg_add_vmalloc_types(struct btf *b, int t_long, bool purge_list)
{
    btf__add_struct(b, "vm_struct", LG_VM_SIZE);
    btf__add_field(b, "addr", t_long, LG_VM_ADDR * 8, 0);
    btf__add_field(b, "pages", t_long, LG_VM_PAGES * 8, 0);
    btf__add_struct(b, "vmap_area", LG_VMAP_SIZE);
    btf__add_field(b, "va_start", t_long, LG_AREA_START * 8, 0);
    btf__add_field(b, "va_end", t_long, LG_AREA_END * 8, 0);
    btf__add_field(b, "vm", t_long, LG_AREA_VM * 8, 0);
    if (purge_list) {
        btf__add_field(b, "purge_list", t_long, LG_AREA_VM * 8, 0);
    }
}

static void lg_add_kmemleak_types(struct btf *b, int t_int, int t_long,
                                  int list)
{
    btf__add_struct(b, "kmemleak_object", LG_RECORD_SIZE);
    btf__add_field(b, "rcu", list, LG_RECORD_RCU * 8, 0);
    btf__add_field(b, "use_count", t_int, LG_RECORD_USE * 8, 0);
    btf__add_field(b, "pointer", t_long, LG_RECORD_POINTER * 8, 0);
}

/* SLAB's arrays of free objects. */
static void lg_add_array_types(struct btf *b, int t_int, int t_long)
{
    int entries = btf__add_array(b, t_long, t_long, 0);
    int array = btf__add_struct(b, "array_cache", LG_ARRAY_ENTRY);

    btf__add_field(b, "avail", t_int, 0, 0);
    btf__add_field(b, "limit", t_int, LG_ARRAY_LIMIT * 8, 0);
    btf__add_field(b, "entry", entries, LG_ARRAY_ENTRY * 8, 0);
    btf__add_struct(b, "kmem_cache_node", LG_NODE_SIZE);
    btf__add_field(b, "shared", t_long, LG_NODE_SHARED * 8, 0);
    btf__add_field(b, "alien", t_long, LG_NODE_ALIEN * 8, 0);
    btf__add_struct(b, "alien_cache", LG_ALIEN_ARRAY + LG_ARRAY_ENTRY);
    btf__add_field(b, "ac", array, LG_ALIEN_ARRAY * 8, 0);
}

static void lg_add_slab_types(struct btf *b, int t_int, int t_long)
{
    int nodes = btf__add_array(b, t_long, t_long, 2), list;

    btf__add_struct(b, "slab", 64);
    btf__add_field(b, "slab_cache", t_long, LG_PAGE_CACHE * 8, 0);
    btf__add_field(b, "freelist", t_long, LG_PAGE_FREELIST * 8, 0);
    btf__add_field(b, "s_mem", t_long, LG_PAGE_FIRST * 8, 0);
    btf__add_struct(b, "kmem_cache", LG_KMEM_CACHE_SIZE);
    btf__add_field(b, "flags", t_int, LG_KMEM_CACHE_FLAGS * 8, 0);
    btf__add_field(b, "sheaf_capacity", t_int, LG_KMEM_CACHE_CAPACITY * 8, 0);
    btf__add_field(b, "cpu_cache", t_long, LG_KMEM_CACHE_ARRAYS * 8, 0);
    btf__add_field(b, "node", nodes, LG_KMEM_CACHE_NODE * 8, 0);
    btf__add_struct(b, "slab_sheaf", LG_SHEAF_OBJECTS + 8);
    btf__add_field(b, "cache", t_long, LG_SHEAF_CACHE * 8, 0);
    btf__add_field(b, "objects", t_long, LG_SHEAF_OBJECTS * 8, 0);
    list = btf__add_struct(b, "llist_head", 8);
    btf__add_field(b, "first", t_long, 0, 0);
    btf__add_struct(b, "kfree_rcu_cpu", LG_KRC_LIST + 8);
    btf__add_field(b, "bkvcache", list, LG_KRC_LIST * 8, 0);
}

static void lg_add_percpu_types(struct btf *b, int t_int, int t_long, int list)
{
    btf__add_struct(b, "pcpu_chunk", LG_CHUNK_SIZE);
    btf__add_field(b, "list", list, LG_CHUNK_LIST * 8, 0);
    btf__add_field(b, "base_addr", t_long, LG_CHUNK_BASE * 8, 0);
    btf__add_field(b, "alloc_map", t_long, LG_CHUNK_MAP * 8, 0);
    btf__add_field(b, "start_offset", t_int, LG_CHUNK_START * 8, 0);
    btf__add_field(b, "end_offset", t_int, LG_CHUNK_END * 8, 0);
    btf__add_field(b, "nr_pages", t_int, LG_CHUNK_PAGES * 8, 0);
}

static void lg_add_big_page_types(struct btf *b, int t_int, int t_long,
                                  int list)
{
    int lists = btf__add_array(b, t_long, list, 1);

    btf__add_struct(b, "hstate", LG_HSTATE_SIZE);
    btf__add_field(b, "order", t_int, 0, 0);
    btf__add_field(b, "hugepage_activelist", list, LG_HSTATE_ACTIVE * 8, 0);
    btf__add_field(b, "hugepage_freelists", lists, LG_HSTATE_FREE * 8, 0);
    btf__add_struct(b, "resource", 16);
    btf__add_field(b, "start", t_long, 0, 0);
    btf__add_field(b, "end", t_long, 64, 0);
}

static void lg_add_percpu_ref_types(struct btf *b, int t_long)
{
    btf__add_struct(b, "percpu_ref", 16);
    btf__add_field(b, "percpu_count_ptr", t_long, LG_REF_COUNT * 8, 0);
    btf__add_field(b, "data", t_long, LG_REF_DATA * 8, 0);
    btf__add_struct(b, "percpu_ref_data", LG_REF_DATA_SIZE);
    btf__add_field(b, "ref", t_long, LG_REF_DATA_REF * 8, 0);
}

static GsBtf *lg_make_types(uint32_t stack, bool purge_list)
{
    struct btf *b = btf__new_empty();
    int t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    int t_long = btf__add_int(b, "long", 8, BTF_INT_SIGNED);
    int list = btf__add_struct(b, "list_head", 16);
    GsBtf *types;
    __u32 len;
    const void *raw;

    btf__add_field(b, "next", t_long, 0, 0);
    btf__add_field(b, "prev", t_long, 64, 0);
    btf__add_struct(b, "page", 64);
    btf__add_field(b, "lru", list, LG_PAGE_LRU * 8, 0);
    btf__add_field(b, "mapping", t_long, LG_PAGE_MAPPING * 8, 0);
    btf__add_field(b, "compound_head", t_long, LG_PAGE_HEAD * 8, 0);
    btf__add_field(b, "private", t_long, LG_PAGE_PRIVATE * 8, 0);
    lg_add_slab_types(b, t_int, t_long);
    lg_add_array_types(b, t_int, t_long);
    lg_add_zone_types(b, list, t_long);
    lg_add_task_types(b, t_int, t_long, stack);
    lg_add_vmalloc_types(b, t_long, purge_list);
    lg_add_kmemleak_types(b, t_int, t_long, list);
    lg_add_percpu_types(b, t_int, t_long, list);
    lg_add_big_page_types(b, t_int, t_long, list);
    lg_add_percpu_ref_types(b, t_long);
    raw = btf__raw_data(b, &len);
    types = gs_btf_new(raw, len, NULL);
    btf__free(b);
    return types;
}

GsBtf *lg_types(uint32_t stack)
{
    return lg_make_types(stack, false);
}

GsBtf *lg_types_of_5_10(void)
{
    return lg_make_types(LG_STACK, true);
}

GsSymtab *lg_symbols(const char *moved, uint64_t to)
{
    static const struct {
        const char *name;
        uint64_t va;
    } row[] = {
        { "__per_cpu_start", 0 },
        { "krc", LG_KRC },
        { "irq_stack_backing_store", 0xc00 },
        { "__per_cpu_end", 0x1000 },
        { "_stext", LG_IMAGE - 0x1000 },
        { "_etext", LG_IMAGE },
        { "_sdata", LG_IMAGE },
        { "phys_base", LG_IMAGE + LG_PHYS_BASE },
        { "page_offset_base", LG_IMAGE + LG_PAGE_OFFSET_BASE },
        { "vmemmap_base", LG_IMAGE + LG_VMEMMAP_BASE },
        { "min_low_pfn", LG_IMAGE + LG_MIN_LOW_PFN },
        { "max_pfn", LG_IMAGE + LG_MAX_PFN },
        { "nr_cpu_ids", LG_IMAGE + LG_NR_CPU_IDS },
        { "__per_cpu_offset", LG_IMAGE + LG_PER_CPU_OFFSET },
        { "pcpu_base_addr", LG_IMAGE + LG_PCPU_BASE },
        { "pcpu_first_chunk", LG_IMAGE + LG_PCPU_FIRST },
        { "pcpu_reserved_chunk", LG_IMAGE + LG_PCPU_RESERVED },
        { "pcpu_chunk_lists", LG_IMAGE + LG_PCPU_LISTS },
        { "pcpu_nr_slots", LG_IMAGE + LG_PCPU_NR_SLOTS },
        { "pcpu_unit_pages", LG_IMAGE + LG_PCPU_UNIT_PAGES },
        { "nr_node_ids", LG_IMAGE + LG_NR_NODE_IDS },
        { "hstates", LG_IMAGE + LG_HSTATES },
        { "hugetlb_max_hstate", LG_IMAGE + LG_MAX_HSTATE },
        { "crashk_res", LG_IMAGE + LG_CRASHK_RES },
        { "init_task", LG_IMAGE + LG_INIT_TASK },
        { "contig_page_data", LG_IMAGE + LG_CONTIG },
        { "roots", LG_IMAGE + LG_ROOT },
        { "init_stack", LG_IMAGE + LG_INIT_STACK },
        { "_edata", LG_IMAGE + LG_DATA_END },
        { "__bss_start", LG_IMAGE + LG_DATA_END },
        { "__start_bss_decrypted_unused", LG_IMAGE + 0x5000 },
        { "__end_bss_decrypted", LG_IMAGE + 0x5000 },
        { "__bss_stop", LG_IMAGE + 0x5000 },
        { "__start_ro_after_init", LG_IMAGE + 0x5000 },
        { "__end_ro_after_init", LG_IMAGE + 0x5800 },
    };
    GsSymtab *tab = gs_symtab_new();

    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        uint64_t va = g_strcmp0(row[i].name, moved) ? row[i].va : to;

        gs_symtab_add(tab, va, 'D', row[i].name, strlen(row[i].name));
    }
    gs_symtab_seal(tab, NULL);
    return tab;
}

static void lg_make_kernel(GsKernel *k)
{
    const GsRange image = { LG_IMAGE - 0x1000, LG_IMAGE + 0x6000 };
    const GsRange text = { LG_IMAGE - 0x1000, LG_IMAGE };

    k->arch = &gs_arch_x86_64;
    k->page_shift = 12;
    k->text[0] = text;
    k->orc = gs_orc_set_new();
    k->modules = gs_modules_new();
    k->symtab = lg_symbols(NULL, 0);
    k->btf = lg_types(LG_STACK);
    g_assert_true(gs_orc_set_load(k->orc, image, &text, 1, NULL, NULL));
}

/* ---- blocks ------------------------------------------------------------- */

void lg_alloc_sized(LeakGuest *g, uint64_t va, uint64_t size,
                    uint64_t actual, KtLayer layer,
                    KtCacheId cache)
{
    KtEvent ev = { .kind = KT_EV_ALLOC, .va = va, .size = size,
                   .actual = actual, .us = 1, .layer = layer, .cache = cache,
                   .family = KT_FAMILY_ANY };

    kt_tracer_push(g->t, 0, &ev);
}

void lg_alloc(LeakGuest *g, uint64_t va, uint64_t size,
              KtLayer layer, KtCacheId cache)
{
    lg_alloc_sized(g, va, size, size, layer, cache);
}

static void lg_add_blocks(LeakGuest *g)
{
    KtCacheId objects = kt_tracer_add_cache(g->t, LG_CACHE(0), "object", 64,
                                            64);
    KtCacheId tasks = kt_tracer_add_cache(g->t, LG_CACHE(1), "task_struct",
                                          LG_TASK_SIZE, LG_TASK_SIZE);
    KtCacheId areas = kt_tracer_add_cache(g->t, LG_CACHE(2), "vmap_area",
                                          LG_VMAP_SIZE, LG_VMAP_SIZE);
    KtCacheId none = { 0 };

    for (unsigned i = 0; i < LG_OBJECTS; i++) {
        lg_alloc(g, LG_OBJECT(i), 64, KT_LAYER_CACHE, objects);
    }
    for (unsigned i = 0; i < 2; i++) {
        lg_alloc(g, LG_TASK(i), LG_TASK_SIZE, KT_LAYER_CACHE, tasks);
        lg_alloc(g, LG_TASK_STACK_VA(i), LG_STACK, KT_LAYER_VMALLOC, none);
    }
    for (unsigned i = 0; i < 3; i++) {
        lg_alloc(g, LG_VM(i), LG_VM_SIZE, KT_LAYER_KMALLOC, none);
        lg_alloc(g, LG_PAGE_LIST(i), 32, KT_LAYER_KMALLOC, none);
    }
    lg_alloc(g, LG_VMAP, LG_VMAP_SIZE, KT_LAYER_CACHE, areas);
    lg_alloc(g, LG_VMALLOCED, 0x2000, KT_LAYER_VMALLOC, none);
    lg_alloc(g, LG_LARGE, 0x2000, KT_LAYER_LARGE, none);
    lg_alloc(g, LG_PERCPU, 64, KT_LAYER_PERCPU, none);
}

/* ---- memory ------------------------------------------------------------- */

uint64_t lg_struct(uint64_t at)
{
    return LG_VMEMMAP + at / 4096 * 64;
}

static void lg_list(LeakGuest *g, uint64_t head, uint64_t entry)
{
    lg_put(g, head, entry ? entry : head);
    lg_put(g, head + 8, entry ? entry : head);
    if (entry) {
        lg_put(g, entry, head);
        lg_put(g, entry + 8, head);
    }
}

static void lg_put_pages(LeakGuest *g)
{
    const uint64_t slab = LG_AT_SLAB, zone = LG_IMAGE + LG_CONTIG;

    for (unsigned i = 0; i < 8; i++) {
        lg_put(g, lg_struct(slab + 4096 * i) + LG_PAGE_CACHE,
               LG_CACHE(i == 1 ? 1 : i == 3 ? 2 : 0));
    }
    lg_put(g, lg_struct(LG_AT_USER) + LG_PAGE_MAPPING, 1);
    lg_put(g, lg_struct(LG_AT_USER + 0x1000) + LG_PAGE_HEAD,
           lg_struct(LG_AT_USER) + 1);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t z = zone + i * LG_ZONE_SIZE;

        lg_put(g, z, LG_PCP);
        for (unsigned order = 0; order < 3; order++) {
            for (unsigned type = 0; type < 2; type++) {
                lg_list(g, z + LG_FREE_AREA + order * LG_AREA_SIZE +
                           16 * type,
                        !i && order == 1 && !type ?
                        lg_struct(LG_AT_FREE) + LG_PAGE_LRU : 0);
            }
        }
    }
    for (unsigned cpu = 0; cpu < 2; cpu++) {
        for (unsigned i = 0; i < 12; i++) {
            lg_list(g, LG_DIRECT + LG_AT_PERCPU + 4096 * cpu + LG_PCP +
                       LG_PCP_LISTS + 16 * i,
                    cpu && !i ? lg_struct(LG_AT_FREE_CPU) + LG_PAGE_LRU : 0);
        }
    }
}

static void lg_put_task(LeakGuest *g, uint64_t task, uint64_t stack,
                        uint64_t pid)
{
    lg_put(g, task + LG_TASK_STACK, stack);
    lg_put(g, task + LG_TASK_ON_CPU, pid << 32);
    lg_put(g, task + LG_TASK_SP, stack + LG_STACK / 2);
}

/* Write a struct vm_struct and the list of its pages. */
static void lg_put_book(LeakGuest *g, unsigned i, uint64_t va, unsigned pages)
{
    lg_put(g, LG_VM(i) + LG_VM_ADDR, va);
    lg_put(g, LG_VM(i) + LG_VM_PAGES, LG_PAGE_LIST(i));
    for (unsigned n = 0; n < pages; n++) {
        lg_put(g, LG_PAGE_LIST(i) + 8 * n,
               lg_struct(LG_AT_VMALLOC + va - LG_VMALLOC + 4096 * n));
    }
}

static void lg_put_vmalloc(LeakGuest *g)
{
    for (unsigned i = 0; i < 2; i++) {
        lg_put_book(g, i, LG_TASK_STACK_VA(i), 1);
        lg_put(g, LG_TASK(i) + 24, LG_VM(i));
    }
    lg_put_book(g, 2, LG_VMALLOCED, 2);
    lg_put(g, LG_VMAP + LG_AREA_START, LG_VMALLOCED);
    lg_put(g, LG_VMAP + LG_AREA_END, LG_VMALLOCED + 0x3000);
    lg_put(g, LG_VMAP + LG_AREA_VM, LG_VM(2));
}

void lg_reset(LeakGuest *g)
{
    const uint64_t image = LG_IMAGE;

    memset(g->ram, 0, sizeof(g->ram));
    g->reg = 0;
    lg_put(g, image + LG_PHYS_BASE, LG_AT_IMAGE - 0x1000000);
    lg_put(g, image + LG_PAGE_OFFSET_BASE, LG_DIRECT);
    lg_put(g, image + LG_VMEMMAP_BASE, LG_VMEMMAP);
    lg_put(g, image + LG_MIN_LOW_PFN, 1);
    lg_put(g, image + LG_MAX_PFN, LG_PAGES);
    lg_put(g, image + LG_NR_CPU_IDS, 2);
    lg_put(g, image + LG_PER_CPU_OFFSET, LG_DIRECT + LG_AT_PERCPU);
    lg_put(g, image + LG_PER_CPU_OFFSET + 8,
           LG_DIRECT + LG_AT_PERCPU + 4096);
    lg_put_pages(g);
    lg_put_task(g, image + LG_INIT_TASK, image + LG_INIT_STACK, 0);
    for (unsigned i = 0; i < 2; i++) {
        lg_put_task(g, LG_TASK(i), LG_TASK_STACK_VA(i), 1 + i);
        lg_put(g, image + LG_INIT_TASK + 32 + 8 * i, LG_TASK(i));
    }
    lg_put_vmalloc(g);
    lg_put(g, image + LG_INIT_TASK + 48, LG_VMAP);
}

LeakGuest *leak_guest_new(void)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    LeakGuest *g = g_new0(LeakGuest, 1);

    g->t = kt_tracer_new(&config, NULL);
    lg_make_kernel(&g->k);
    g->vm = (KtVm) {
        .n_vcpus = 1, .read = lg_read, .reg = lg_reg, .opaque = g,
    };
    lg_add_blocks(g);
    lg_reset(g);
    return g;
}

void leak_guest_free(LeakGuest *g)
{
    kt_tracer_free(g->t);
    gs_orc_set_free(g->k.orc);
    gs_modules_free(g->k.modules);
    gs_symtab_free(g->k.symtab);
    gs_btf_free(g->k.btf);
    g_free(g);
}

/* ---- scans --------------------------------------------------------------- */

bool lg_is_leaked(LeakGuest *g, uint64_t va)
{
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_auto(KtLeakReport) r = { 0 };
    g_autoptr(GError) err = NULL;

    kt_leak_scan(g->t, &plan, &r, &err);
    g_assert_no_error(err);
    for (unsigned i = 0; i < r.leaks->len; i++) {
        if (g_array_index(r.leaks, KtLeak, i).block.va == va) {
            return true;
        }
    }
    return false;
}

KtPlace lg_place_of(LeakGuest *g, uint64_t object, uint64_t va)
{
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_autoptr(GArray) refs = NULL;
    uint64_t more, bytes;

    g_assert_true(kt_refs(g->t, &plan, object, object + 63, &refs, &more,
                          &bytes, NULL));
    for (unsigned i = 0; i < refs->len; i++) {
        const KtRef *r = &g_array_index(refs, KtRef, i);

        if (r->va == va) {
            return r->place;
        }
    }
    return KT_PLACE__COUNT;
}
