/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which struct a block has, by its cache, its stack, and pointers to it. */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"

#define SIZE    48u             /* of struct file */
#define CACHE   (LG_DIRECT + LG_AT_SLAB + 0x4000)
#define OWNER   (LG_DIRECT + LG_AT_SLAB + 0x4800)
#define BLOCK   (LG_DIRECT + LG_AT_SLAB + 0x5000)
/* The function _stext() of the guest, which returns a struct file *. */
#define CODE    0xffffffff80fff110ull

static int add_struct(struct btf *b, const char *name, unsigned size, int first)
{
    int id = btf__add_struct(b, name, size);

    btf__add_field(b, "open", first, 0, 0);
    return id;
}

/*
 * struct file { long f_flags; struct inode *f_inode; char more[32]; };
 * struct inode { char open[24]; };     struct cdev { char open[24]; };
 * struct pipe { char open[24], more[8]; };
 * struct task_struct { union { struct inode *i; struct cdev *c;
 *                              struct pipe *p; };
 *                      struct { struct file *open[3]; struct pipe *pipe; }; };
 */
static GsBtf *make_types(void)
{
    struct btf *b = btf__new_empty();
    int t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    int t_long = btf__add_int(b, "long", 8, BTF_INT_SIGNED);
    int t_char = btf__add_int(b, "char", 1, BTF_INT_CHAR);
    int text = btf__add_array(b, t_int, t_char, 24), inode, cdev, pipe, file;
    int any, open, proto;

    inode = btf__add_ptr(b, add_struct(b, "inode", 24, text));
    cdev = btf__add_ptr(b, add_struct(b, "cdev", 24, text));
    pipe = btf__add_ptr(b, add_struct(b, "pipe", 32, text));
    file = btf__add_struct(b, "file", SIZE);
    btf__add_field(b, "f_flags", t_long, 0, 0);
    btf__add_field(b, "f_inode", inode, 64, 0);
    file = btf__add_ptr(b, file);
    any = btf__add_union(b, "", 8);
    btf__add_field(b, "i", inode, 0, 0);
    btf__add_field(b, "c", cdev, 0, 0);
    btf__add_field(b, "p", pipe, 0, 0);
    open = btf__add_array(b, t_int, file, 3);
    open = add_struct(b, "", 32, open);
    btf__add_field(b, "pipe", pipe, 192, 0);
    btf__add_struct(b, "task_struct", 40);
    btf__add_field(b, "", any, 0, 0);
    btf__add_field(b, "", open, 64, 0);
    btf__add_struct(b, "kmem_cache", 64);
    btf__add_field(b, "refcount", t_int, 128, 0);
    proto = btf__add_func_proto(b, file);
    btf__add_func(b, "_stext", BTF_FUNC_GLOBAL, proto);
    return types_end(b);
}

static LeakGuest *guest_new(void)
{
    LeakGuest *g = leak_guest_new();

    gs_btf_free(g->k.btf);
    g->k.btf = make_types();
    return g;
}

static KtObjects objects_of(LeakGuest *g)
{
    return (KtObjects) { .tracer = g->t, .kernel = &g->k, .vm = &g->vm };
}

static KtBlock block_of(KtLayer layer, uint64_t size, KtCacheId cache)
{
    return (KtBlock) {
        .va = BLOCK, .requested = size, .actual = 64, .layer = layer,
        .cache = cache,
    };
}

/* Compare the candidates with "type by, type? by". */
static void expect_types(GArray *types, const char *expected)
{
    g_autoptr(GString) s = g_string_new(NULL);

    for (unsigned i = 0; i < types->len; i++) {
        const KtBlockType *t = &g_array_index(types, KtBlockType, i);

        g_string_append_printf(s, "%s%s%s %s %s", i ? ", " : "", t->name,
                               t->sure ? "" : "?",
                               kt_type_source_name(t->source), t->by);
    }
    g_assert_cmpstr(s->str, ==, expected);
    g_array_unref(types);
}

TEST(test_caches, "/block-types/caches")
{
    static const struct {
        const char *cache;
        uint32_t size, users;
        bool has_vm;
        const char *expected;
    } row[] = {
        { "filp", SIZE, 1, true, "file cache filp" },
        { "filp", SIZE, 1, false, "file? cache filp" },
        { "file", SIZE, 1, true, "file cache file" },
        { "file", SIZE + 8, 1, true, "" },
        { "filp", SIZE, 2, true, "" },          /* merged with others */
        { "task_struct", 1000, 1, true, "task_struct cache task_struct" },
        { "names_cache", SIZE, 1, true, "" },
        { "", SIZE, 1, true, "" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = guest_new();
        KtObjects o = objects_of(g);
        KtCacheId id = kt_tracer_add_cache(g->t, CACHE, row[i].cache,
                                           row[i].size, 64);
        KtBlock b = block_of(KT_LAYER_CACHE, row[i].size, id);

        o.vm = row[i].has_vm ? o.vm : NULL;
        lg_put(g, CACHE + 16, row[i].users);
        expect_types(kt_block_types(&o, &b), row[i].expected);
        b.layer = KT_LAYER_PERCPU;
        expect_types(kt_block_types(&o, &b), "");
    }
}

TEST(test_functions, "/block-types/functions")
{
    static const struct {
        uint64_t pc;
        uint32_t size;
        const char *expected;
    } row[] = {
        { CODE, SIZE, "file function _stext" },
        { CODE, SIZE + 1, "" },
        { LG_IMAGE + LG_ROOT, SIZE, "" },       /* no function */
        { 0, SIZE, "" },
    };
    g_autoptr(LeakGuest) g = guest_new();
    const KtObjects o = objects_of(g);

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        KtBlock b = block_of(KT_LAYER_KMALLOC, row[i].size,
                             (KtCacheId) { 0 });

        b.alloc_stack = kt_tracer_intern_stack(
            g->t, (uint64_t[]) { 1, row[i].pc }, row[i].pc ? 2 : 0,
            GS_STOP_END);
        expect_types(kt_block_types(&o, &b), row[i].expected);
    }
}

/* A word at @at of a task_struct, or of a block of unknown type. */
TEST(test_pointers, "/block-types/pointers")
{
    static const struct {
        const char *cache;
        uint64_t at;
        uint32_t size;
        const char *expected;
    } row[] = {
        { "task_struct", 0, 32, "pipe pointer task_struct.p" },
        { "task_struct", 0, 24, "cdev? pointer task_struct.c, "
                                "inode? pointer task_struct.i" },
        { "task_struct", 0, 40, "" },
        { "task_struct", 16, SIZE, "file pointer task_struct.open" },
        { "task_struct", 17, SIZE, "" },
        { "task_struct", 32, 32, "pipe pointer task_struct.pipe" },
        { "task_struct", 40, 32, "" },
        { "task_struct", 1ull << 32, 32, "" },
        { "names_cache", 32, 32, "" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = guest_new();
        const KtObjects o = objects_of(g);
        KtCacheId id = kt_tracer_add_cache(g->t, CACHE, row[i].cache, 40, 64);
        KtBlock owner = block_of(KT_LAYER_CACHE, 40, id);
        KtBlock b = block_of(KT_LAYER_KMALLOC, row[i].size,
                             (KtCacheId) { 0 });
        GArray *types = g_array_new(FALSE, FALSE, sizeof(KtBlockType));

        owner.va = OWNER;
        lg_put(g, CACHE + 16, 1);
        for (unsigned times = 0; times < 2; times++) {
            kt_block_types_add(&o, types, &b, &owner, row[i].at);
        }
        expect_types(types, row[i].expected);
    }
}

/* A kernel without types, and none at all. */
TEST(test_no_types, "/block-types/no-types")
{
    g_autoptr(LeakGuest) g = guest_new();
    KtObjects o = objects_of(g);
    KtBlock b = block_of(KT_LAYER_KMALLOC, SIZE, (KtCacheId) { 0 });

    o.kernel = NULL;
    expect_types(kt_block_types(&o, &b), "");
    g_assert_cmpstr(kt_type_source_name(KT_TYPE__COUNT), ==, "?");
}
