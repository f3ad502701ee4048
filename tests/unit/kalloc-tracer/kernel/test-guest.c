/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtGuest, with a few pages of guest memory made by hand: reads cross pages and
 * stop at the end of memory, and what a kernel's types do not describe stays
 * unknown.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kernel/guest-internal.h"
#include "kalloc-tracer/kernel/guest-learn.h"
#include "kalloc-tracer/kernel/guest.h"

#include "guest-symbols/types/btf.h"
#include "guest-symbols/kernel/kernel.h"

#include <bpf/btf.h>
#include <string.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtGuest, kt_guest_free)

#define BASE 0xffff888000000000ull
#define IMAGE 0xffffffff81000000ull     /* maps the first page, too */
#define PAGES 2

static uint8_t memory[PAGES * 4096];

static const void *view(uint64_t va, size_t *avail)
{
    *avail = 4096 - (va & 4095);
    if (va - IMAGE < 4096) {
        return &memory[va - IMAGE];
    }
    return va >= BASE && va < BASE + sizeof(memory) ? &memory[va - BASE]
                                                    : NULL;
}

static GsKernel *kernel;

/* Make a kernel. @types: (owned, nullable) its BTF; @symbol: one more symbol,
 * before all others */
static KtGuest *guest_with(struct btf *types, const char *symbol, KtTracer **t)
{
    static const char map[] = "ffffffff81000000 T _stext\n"
                              "ffffffff81000000 T _text\n"
                              "ffffffff81000010 T kfree\n"
                              "ffffffff81000020 T __primary_switched\n"
                              "ffffffff82000000 T _etext\n"
                              "ffffffff82100000 R linux_banner\n";
    g_autofree char *symbols = g_strconcat(symbol, map, NULL);
    KtConfig config = KT_CONFIG_DEFAULT;
    const void *raw;
    __u32 len;

    gs_kernel_free(kernel);
    kernel = gs_kernel_new_from_data(symbols, strlen(symbols), "map", NULL);
    g_assert_nonnull(kernel);
    if (types) {
        raw = btf__raw_data(types, &len);
        kernel->btf = gs_btf_new(raw, len, NULL);
        btf__free(types);
        g_assert_nonnull(kernel->btf);
    }
    *t = kt_tracer_new(&config, NULL);
    return kt_guest_new(kernel, *t, view);
}

static KtGuest *guest_with_types(struct btf *types, KtTracer **t)
{
    return guest_with(types, "", t);
}

static KtGuest *guest_without_types(KtTracer **t)
{
    return guest_with_types(NULL, t);
}

TEST(reads_cross_pages, "/guest/reads-cross-pages")
{
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_without_types(&t);
    uint8_t got[16];
    uint64_t word;

    for (unsigned i = 0; i < sizeof(memory); i++) {
        memory[i] = i * 7;
    }
    g_assert_true(kt_guest_read(g, BASE + 4088, got, sizeof(got)));
    g_assert_cmpmem(got, sizeof(got), memory + 4088, sizeof(got));
    g_assert_true(kt_guest_u64(g, BASE + 4092, &word));
    g_assert_cmpmem(&word, sizeof(word), memory + 4092, sizeof(word));
}

TEST(reads_stop_where_memory_ends, "/guest/reads-stop-where-memory-ends")
{
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_without_types(&t);
    uint8_t got[16];
    uint64_t word;

    g_assert_false(kt_guest_read(g, BASE + sizeof(memory) - 8, got,
                                 sizeof(got)));
    g_assert_false(kt_guest_read(g, BASE - 1, got, 1));
    g_assert_false(kt_guest_read(g, UINT64_MAX - 3, got, sizeof(got)));
    g_assert_false(kt_guest_u64(g, BASE + sizeof(memory) - 4, &word));
}

/* Pointers in memory and in the register of the task have no tags, if the
 * kernel keeps some. */
TEST(tags_are_removed, "/guest/tags-are-removed")
{
    static const char *const symbols[] = {
        "", "ffffffff80ffff00 T __hwasan_tag_memory\n",
    };
    const uint64_t pointer = BASE + 4096, tagged = pointer ^ 0xd1ull << 56;

    for (unsigned tags = 0; tags < 2; tags++) {
        KtTracer *t;
        KtGuest *g = guest_with(NULL, symbols[tags], &t);
        uint64_t word = 0, task = 0;

        memcpy(memory + 64, &tagged, sizeof(tagged));
        g_assert_true(kt_guest_u64(g, BASE + 64, &word));
        g_assert_cmphex(word, ==, tagged);
        g_assert_true(kt_guest_pointer(g, BASE + 64, &word));
        g_assert_cmphex(word, ==, tags ? pointer : tagged);
        g_assert_true(kt_guest_current(g, tagged, &task));
        g_assert_cmphex(task, ==, tags ? pointer : tagged);
        g_assert_false(kt_guest_pointer(g, BASE - 8, &word));
        kt_guest_free(g);
        kt_tracer_free(t);
    }
}

static uint32_t task_of(KtGuest *g, KtGuestCpu *cpu)
{
    KtTaskAt at;

    kt_guest_find_task(g, BASE, &at);
    return kt_guest_task(g, cpu, &at).v;
}

TEST(nothing_is_guessed_without_types,
     "/guest/nothing-is-guessed-without-types")
{
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_without_types(&t);
    KtGuestCpu cpu = { 0 };

    g_assert_cmpuint(task_of(g, &cpu), ==, 0);
    g_assert_cmpint(kt_guest_in_interrupt(g, BASE), ==, KT_UNKNOWN);
    g_assert_null(kt_guest_cache(g, &cpu, BASE));
    g_assert_null(kt_guest_cache(g, &cpu, 0));
    g_assert_cmphex(kt_guest_cache_of(g, BASE), ==, 0);
    kt_guest_object_freed(g, (KtCacheId) { 0 }, BASE);
}

/* What a guest has learned, as bytes. */
static GByteArray *pack_learned(KtGuest *g)
{
    GByteArray *bytes = g_byte_array_new();

    kt_guest_pack_learned(g, &GS_OUT(bytes));
    return bytes;
}

/* The members of caches, comm and pages; pid is at 24 or 28. */
static void pack_by_hand(GsOut *p, uint64_t name)
{
    const uint64_t words[] = { 1, name, 24, 2, 28, 88, 0x35000, 2976, 1, 2, 24,
                               28, 1, 64, 8, 8 };

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        gs_out_varint(p, words[i]);
    }
}

TEST(what_was_learned_survives_a_snapshot,
     "/guest/what-was-learned-survives-a-snapshot")
{
    g_autoptr(GByteArray) first = g_byte_array_new();
    g_autoptr(GByteArray) again = NULL;
    g_autofree char *line = NULL;
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_without_types(&t);
    GsBytes u;

    pack_by_hand(&GS_OUT(first), 96);
    u = gs_bytes(first->data, first->len);
    kt_guest_unpack_learned(g, &u);
    g_assert_true(gs_bytes_ok(&u));
    g_assert_cmpuint(gs_bytes_left(&u), ==, 0);
    line = kt_guest_learned(g);
    g_assert_cmpstr(line, ==, "cache.name=96 cache.object_size=28 "
                    "cache.size=24 task.comm=2976 task.pid=24 "
                    "page.slab_cache=8 page.bytes=64");
    again = pack_learned(g);
    g_assert_cmpmem(again->data, again->len, first->data, first->len);
}

TEST(damaged_snapshot_teaches_nothing,
     "/guest/damaged-snapshot-teaches-nothing")
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_without_types(&t);
    KtGuestCpu cpu = { 0 };
    GsBytes u;

    pack_by_hand(&GS_OUT(bytes), 1 << 20);
    u = gs_bytes(bytes->data, bytes->len);
    kt_guest_unpack_learned(g, &u);
    g_assert_false(gs_bytes_ok(&u));
    g_assert_null(kt_guest_cache(g, &cpu, BASE));
    g_assert_null(kt_guest_learned(g));
}

/* struct task_struct { char comm[16]; struct { struct { ... int pid; }; }; },
 * each struct @bits into the one around it. */
static struct btf *task_types(unsigned depth, uint32_t bits)
{
    struct btf *b = btf__new_empty();
    int inner = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    int t_char = btf__add_int(b, "char", 1, BTF_INT_CHAR);
    int comm = btf__add_array(b, inner, t_char, 16);
    const char *name = "pid";

    for (unsigned i = 1; i < depth; i++) {
        int around = btf__add_struct(b, "", 8);

        btf__add_field(b, name, inner, bits, 0);
        inner = around;
        name = "";
    }
    btf__add_struct(b, "task_struct", 4096);
    btf__add_field(b, "comm", comm, 0, 0);
    btf__add_field(b, name, inner, bits, 0);
    return b;
}

TEST(task_is_read_where_types_have_it,
     "/guest/task-is-read-where-types-have-it")
{
    const uint32_t pid = 42;
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_with_types(task_types(2, 16 * 8), &t);
    KtGuestCpu cpu = { 0 };
    char comm[17];
    uint32_t got;
    KtTaskAt at;

    memcpy(memory, "init", 5);
    memcpy(&memory[32], &pid, sizeof(pid));
    kt_guest_find_task(g, BASE, &at);
    g_assert_true(at.comm == (char *)memory && at.pid == at.comm + 32);
    g_assert_true(kt_tracer_task(t, (KtTaskId) { task_of(g, &cpu) }, &got,
                                 comm));
    g_assert_cmpuint(got, ==, pid);
    g_assert_cmpstr(comm, ==, "init");
}

/* Eight nested structs of almost 512 MiB: the sum of the offsets would overflow
 * 32 bits, and point into the first bytes. */
TEST(task_is_read_in_its_page_only, "/guest/task-is-read-in-its-page-only")
{
    static const unsigned depth[] = { 1, 8 };

    for (unsigned i = 0; i < G_N_ELEMENTS(depth); i++) {
        KtTracer *t;
        KtGuest *g = guest_with_types(task_types(depth[i], 0xfffffff8), &t);
        KtGuestCpu cpu = { 0 };
        KtTaskAt at;

        kt_guest_find_task(g, BASE, &at);
        g_assert_null(at.pid);
        g_assert_null(at.comm);
        g_assert_cmpuint(task_of(g, &cpu), ==, 0);
        kt_guest_free(g);
        kt_tracer_free(t);
    }
}

static void put_word(unsigned at, uint64_t word)
{
    memcpy(&memory[at], &word, sizeof(word));
}

/* struct task_struct { struct { unsigned int preempt_count; } thread_info;
 * int pid, softirq_disable_cnt; }, the last only with PREEMPT_RT. */
static struct btf *preempt_types(bool rt)
{
    struct btf *b = btf__new_empty();
    int t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    int info = btf__add_struct(b, "thread_info", 4);

    btf__add_field(b, "preempt_count", t_int, 0, 0);
    btf__add_struct(b, "task_struct", 12);
    btf__add_field(b, "thread_info", info, 0, 0);
    btf__add_field(b, "pid", t_int, 32, 0);
    if (rt) {
        btf__add_field(b, "softirq_disable_cnt", t_int, 64, 0);
    }
    return b;
}

/* preempt_count of 5.2 and of 7.3. PREEMPT_NEED_RESCHED is in another word, or
 * in bit 31, where it is mostly set. */
TEST(in_interrupt_by_the_kernels_own_bits, "/guest/in-interrupt")
{
    static const char *const moved_by[] = {
        "", "ffffffff80000000 D local_interrupt_disable_state\n",
        "ffffffff80000000 T _local_interrupt_enable\n",
    };
    static const struct {
        uint32_t count, softirq;
        bool rt, before, moved;
    } cases[] = {
        { 0, 0, false, false, false },
        { 0x80000000, 0, false, false, false },
        { 0x800000ff, 0, false, false, false },
        { 0x80000200, 0, false, true, true },       /* BH disabled */
        { 0x80000100, 0, false, true, true },
        { 0x00010001, 0, false, true, false },      /* or irqs off once */
        { 0x00ff0001, 0, false, true, false },      /* or many times */
        { 0x00110000, 0, false, true, false },      /* NMI */
        { 0x01000001, 0, false, false, true },
        { 0x01010001, 0, false, true, true },
        { 0x91000000, 0, false, false, true },      /* NMI */
        { 0x22000000, 0, false, false, true },      /* NMI in an NMI */
        { 0x00000001, 0, true, false, false },
        { 0x00000001, 0x100, true, true, true },
        { 0x01000000, 0, true, false, true },
    };

    for (unsigned n = 0; n < G_N_ELEMENTS(moved_by); n++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
            KtTracer *t;
            KtGuest *g = guest_with(preempt_types(cases[i].rt), moved_by[n],
                                    &t);

            memcpy(memory, &cases[i].count, 4);
            memcpy(&memory[8], &cases[i].softirq, 4);
            g_assert_cmpint(kt_guest_in_interrupt(g, BASE), ==,
                            n ? cases[i].moved : cases[i].before);
            kt_guest_free(g);
            kt_tracer_free(t);
        }
    }
}

/* struct thread_info alone is known; PREEMPT_RT counts softirqs in the task. */
TEST(softirqs_of_an_unknown_task, "/guest/softirqs-of-an-unknown-task")
{
    static const struct { const char *map; KtAnswer answer; } cases[] = {
        { "", KT_NO }, { "ffffffff80000000 T rt_spin_lock\n", KT_UNKNOWN },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        KtTracer *t;
        KtGuest *g = guest_with(preempt_types(false), cases[i].map, &t);

        memset(memory, 0, 16);
        g_assert_cmpint(kt_guest_in_interrupt(g, BASE), ==, cases[i].answer);
        kt_guest_free(g);
        kt_tracer_free(t);
    }
}

static struct btf *pid_types(void)
{
    struct btf *types = btf__new_empty();
    int t_int = btf__add_int(types, "int", 4, 0);
    int t_char = btf__add_int(types, "char", 1, 0);
    int t_comm = btf__add_array(types, t_int, t_char, 16);

    btf__add_struct(types, "task_struct", 64);
    btf__add_field(types, "pid", t_int, 8 * 8, 0);
    btf__add_field(types, "comm", t_comm, 16 * 8, 0);
    return types;
}

/* In a kernel for one CPU, per-CPU variables are plain ones, whatever the
 * per-CPU base is. In others the base counts. */
TEST(task_of_a_kernel_for_one_cpu, "/guest/task-of-a-kernel-for-one-cpu")
{
    static const struct { const char *map; bool known; } cases[] = {
        { "ffff888000000100 D current_task\n"
          "ffff888000000800 T x86_64_start_kernel\n"
          "ffff888000000900 T up_late_init\n", true },
        { "ffff888000000100 D current_task\n"
          "ffff888000000800 T x86_64_start_kernel\n", false },
    };
    const uint64_t task = BASE + 0x200;

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        KtTracer *t;
        KtGuest *g = guest_with(pid_types(), cases[i].map, &t);
        KtGuestCpu cpu = { 0 };

        memset(memory, 0, sizeof(memory));
        memcpy(&memory[0x100], &task, sizeof(task));
        memory[0x208] = 7;
        g_strlcpy((char *)&memory[0x210], "init", 16);
        g_assert_cmpint(task_of(g, &cpu) != 0, ==, cases[i].known);
        kt_guest_free(g);
        kt_tracer_free(t);
    }
}

/* Caches (zones) of a kernel with a profile: one each 32 bytes, with the
 * address of the name at 8 and the size, two bytes, at 16. */
TEST(caches_as_told, "/guest/caches-as-told")
{
    const KtCacheLayout at = { .name = 8, .size = 16, .size_bytes = 2 };
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_without_types(&t);
    KtGuestCpu cpu = { 0 };
    const KtGuestCache *c;
    KtCacheInfo info;
    KtCacheId first;

    kt_guest_set_caches(g, &at);
    memcpy(&memory[256], "proc", 5);
    put_word(8, BASE + 256);
    put_word(16, 0xffff0180);
    put_word(32 + 8, BASE + 256);
    put_word(32 + 16, 0x40);
    c = kt_guest_cache(g, &cpu, BASE);
    g_assert_nonnull(c);
    g_assert_cmpuint(c->size, ==, 0x180);
    first = c->id;
    g_assert_true(kt_tracer_cache(t, first, &info));
    g_assert_cmpstr(info.name, ==, "proc");
    c = kt_guest_cache(g, &cpu, BASE + 32);
    g_assert_cmpuint(c->size, ==, 0x40);
    g_assert_cmpuint(c->id.v, !=, first.v);     /* same name, other cache */
    g_assert_null(kt_guest_cache(g, &cpu, BASE - 4096));
    g_assert_cmpuint(task_of(g, &cpu), ==, 0);
}

/* The profile has neither name nor size: caches are distinguished by
 * address. */
TEST(caches_without_a_name, "/guest/caches-without-a-name")
{
    const KtCacheLayout at = { KT_NO_MEMBER, KT_NO_MEMBER, 4 };
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_without_types(&t);
    KtGuestCpu cpu = { 0 };
    KtCacheInfo info;
    KtCacheId first;

    kt_guest_set_caches(g, &at);
    first = kt_guest_cache(g, &cpu, 0x1000)->id;
    g_assert_cmpuint(kt_guest_cache(g, &cpu, 0x2000)->id.v, !=, first.v);
    g_assert_cmpuint(kt_guest_cache(g, &cpu, 0x1000)->id.v, ==, first.v);
    g_assert_true(kt_tracer_cache(t, first, &info));
    g_assert_cmpstr(info.name, ==, "");
    g_assert_cmpuint(info.size, ==, 0);
}

/* struct kmem_cache { char *name; int object_size, size; } */
static struct btf *cache_types(void)
{
    struct btf *b = btf__new_empty();
    int t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    int name = btf__add_ptr(b, btf__add_int(b, "char", 1, BTF_INT_CHAR));

    btf__add_struct(b, "kmem_cache", 24);
    btf__add_field(b, "name", name, 0, 0);
    btf__add_field(b, "object_size", t_int, 64, 0);
    btf__add_field(b, "size", t_int, 96, 0);
    return b;
}

static void on_refused(void *opaque)
{
}

/* The static cache of the image is copied once. A third cache of the same name
 * is another cache. */
TEST(boot_cache_has_one_copy, "/guest/boot-cache-has-one-copy")
{
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_with_types(cache_types(), &t);
    KtGuestCpu cpu = { 0 };

    memset(memory, 0, sizeof(memory));
    memcpy(&memory[4096], "kmem_cache", 11);
    for (unsigned at = 0; at < 4096; at += 16) {
        put_word(at, BASE + 4096);
    }
    g_assert_cmpuint(kt_guest_cache(g, &cpu, IMAGE)->id.v, ==, 1);
    g_assert_cmpuint(kt_guest_cache(g, &cpu, BASE)->id.v, ==, 1);
    for (unsigned i = 1; i < 4096 / 16; i++) {
        g_assert_cmpuint(kt_guest_cache(g, &cpu, BASE + 16 * i)->id.v, ==,
                         i + 1);
    }
    g_assert_cmpuint(kt_guest_cache(g, &cpu, BASE)->id.v, ==, 1);
}

static void put_cache(uint64_t at, uint64_t name, uint32_t size)
{
    put_word(at, BASE + name);
    memcpy(&memory[at + 8], &size, sizeof(size));
    memcpy(&memory[at + 12], &size, sizeof(size));
}

/* While nobody looks, one of two caches is destroyed, and another one is made
 * at its address. */
TEST(caches_that_changed, "/guest/caches-that-changed")
{
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_with_types(cache_types(), &t);
    KtGuestCpu cpu = { 0 };
    KtCacheId kept, old, new;
    KtCacheInfo info;

    memset(memory, 0, sizeof(memory));
    memcpy(&memory[4096], "kept\0old\0new", 13);
    put_cache(0, 4096, 64);
    put_cache(64, 4096 + 5, 64);
    kept = kt_guest_cache(g, &cpu, BASE)->id;
    old = kt_guest_cache(g, &cpu, BASE + 64)->id;
    kt_guest_check_caches(g);
    g_assert_cmpuint(kt_guest_cache(g, &cpu, BASE + 64)->id.v, ==, old.v);
    put_cache(64, 4096 + 9, 64);
    kt_guest_check_caches(g);
    g_assert_cmpuint(kt_guest_cache(g, &cpu, BASE)->id.v, ==, kept.v);
    new = kt_guest_cache(g, &cpu, BASE + 64)->id;
    g_assert_cmpuint(new.v, !=, old.v);
    g_assert_true(kt_tracer_cache(t, new, &info));
    g_assert_cmpstr(info.name, ==, "new");
    g_assert_true(kt_tracer_cache(t, old, &info));
    g_assert_true(info.destroyed);
}

/* SLOB's first cache has no object_size. That refutes no types file. */
TEST(boot_cache_without_object_size, "/guest/boot-cache-without-object-size")
{
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = guest_with_types(cache_types(), &t);
    KtTypesFit fit = { .kernel = kernel, .state = KT_TYPES_OPEN,
                       .refused = on_refused };
    KtGuestCpu cpu = { 0 };
    const KtGuestCache *c;

    kt_guest_check_types(g, &fit);
    memset(memory, 0, sizeof(memory));
    memcpy(&memory[4096], "kmem_cache", 11);
    for (unsigned at = 0; at < 128; at += 64) {
        put_word(at, BASE + 4096);
        put_word(at + 8, 80ull << 32);
    }
    c = kt_guest_cache(g, &cpu, IMAGE);
    g_assert_cmpuint(c->object_size, ==, 80);
    g_assert_cmpuint(c->size, ==, 80);
    g_assert_true(kt_types_fit_is_open(&fit));
    g_assert_null(kt_guest_cache(g, &cpu, BASE + 64));
    g_assert_false(kt_types_fit_is_open(&fit));
}

/* An object begins behind the red zone of its slot: it has the rest. A pad that
 * does not fit into the slot is not believed. */
TEST(slot_begins_before_its_object, "/guest/slot-begins-before-its-object")
{
    static const struct {
        uint32_t pad, size;
    } cases[] = { { 0, 96 }, { 24, 72 }, { 32, 64 }, { 33, 96 }, { 97, 96 },
                  { UINT32_MAX, 96 } };
    struct btf *b = cache_types();
    g_autoptr(KtTracer) t = NULL;
    g_autoptr(KtGuest) g = NULL;

    btf__add_field(b, "red_left_pad", btf__find_by_name(b, "int"), 128, 0);
    g = guest_with_types(b, &t);
    memset(memory, 0, sizeof(memory));
    memcpy(&memory[4096], "a cache", 8);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        KtGuestCpu cpu = { 0 };
        const KtGuestCache *c;

        put_word(64 * i, BASE + 4096);
        put_word(64 * i + 8, 64 | 96ull << 32);
        put_word(64 * i + 16, cases[i].pad);
        c = kt_guest_cache(g, &cpu, BASE + 64 * i);
        g_assert_cmpuint(c->object_size, ==, 64);
        g_assert_cmpuint(c->size, ==, cases[i].size);
    }
}

int main(int argc, char **argv)
{
    int failed = test_run(argc, argv);

    gs_kernel_free(kernel);
    return failed;
}
