/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of --deref: what is said of lists that are wrong, reading from a made
 * up memory into a record and back, and what damaged records do: nothing.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/deref-types.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/types/prototype.h"
#include "kalloc-tracer/calls/deref-plan.h"

#include <string.h>

static GsPrototype *prototype(const char *func)
{
    g_autoptr(GBytes) bytes = deref_types();
    g_autoptr(GsBtf) btf = gs_btf_new(g_bytes_get_data(bytes, NULL),
                                      g_bytes_get_size(bytes), NULL);
    const char *why;

    return gs_prototype_new(btf, &gs_arch_x86_64, func, &why);
}

/* ---- lists --------------------------------------------------------------- */

static const char *const wrong_syntax[][2] = {
    { "", "column 1: expected a name, found the end" },
    { "file", NULL },
    { "*file", NULL },
    { "file->name.hash,*pos", NULL },
    { "file->", "column 7: expected a member, found the end" },
    { "file->a,", "column 9: expected a name, found the end" },
    { "a->b,c..d", "column 8: expected a member, found '.'" },
    { "a->b c", "column 5: expected '->', '.' or ',', found ' '" },
    { "a[1]", "column 2: expected '->', '.' or ',', found '['" },
    { "1a->b", "column 1: expected a name, found '1'" },
    { "**a", "column 2: expected a name, found '*'" },
    { "a,b,c,d,e,f,g,h,i", "9 expressions, the limit is 8" },
    { "a->b,c,a->b", "column 8: the value of a->b is there already" },
    { "a,*a", "column 3: the value of *a is there already" },
    { "*a->b,a->b,a,ab", NULL },
};

TEST(test_syntax, "/derefs/syntax")
{
    g_autofree char *name = g_strnfill(GS_DEREF_EXPR_MAX, 'x');
    g_autofree char *longer = g_strdup_printf("a,%sx", name);

    for (size_t i = 0; i < G_N_ELEMENTS(wrong_syntax); i++) {
        g_autoptr(GError) err = NULL;
        bool ok = kt_derefs_check(wrong_syntax[i][0], &err);

        g_assert_true(ok == !wrong_syntax[i][1]);
        g_assert_cmpstr(err ? err->message : NULL, ==, wrong_syntax[i][1]);
    }
    g_assert_true(kt_derefs_check(name, NULL));
    g_assert_false(kt_derefs_check(longer, NULL));
}

static const char *const checked[][2] = {
    { "file->f_inode->i_ino,*pos", NULL },
    { "ret->f_flags", NULL },
    { "name", NULL },
    { "file->nme", "--deref file->nme: struct file has no member \"nme\"" },
    { "dfd->x", "--deref dfd->x: \"dfd\" is no pointer" },
    { "buf", "--deref buf: \"buf\" leads to no member: write ARG->MEMBER, or "
      "*ARG" },
    { "none->x", "--deref none->x: no parameter \"none\": the function has "
      "dfd, name, page" },
    { "ret->none", "--deref ret->none: struct file has no member \"none\"" },
    { "*page", "--deref *page: a value of type struct page has 320 bytes, the "
      "limit is 128" },
    { "name,ret->name.name,*ret->name.name,*ret,ret->name", "--deref "
      "ret->name: with this one the values have more than the 256 bytes that a "
      "call has room for" },
};

TEST(test_checked, "/derefs/checked")
{
    KtCallFunctions f = {
        .protos = g_ptr_array_new_with_free_func(
            (GDestroyNotify)gs_prototype_free),
    };

    g_ptr_array_add(f.protos, prototype("do_filp_open"));
    g_ptr_array_add(f.protos, prototype("vfs_read"));
    for (size_t i = 0; i < G_N_ELEMENTS(checked); i++) {
        g_autoptr(GError) err = NULL;
        KtDerefList *l = kt_deref_list_new(checked[i][0], NULL);

        g_assert_true(kt_deref_list_check(l, &f, NULL, &err) ==
                      !checked[i][1]);
        g_assert_cmpstr(err ? err->message : NULL, ==, checked[i][1]);
        kt_deref_list_free(l);
    }
    g_ptr_array_unref(f.protos);
}

TEST(test_no_types, "/derefs/no-types")
{
    KtCallFunctions f = { .protos = g_ptr_array_new(), .why_not = "a copy" };
    KtDerefList *l = kt_deref_list_new("a->b", NULL);
    g_autoptr(GError) err = NULL;

    g_assert_false(kt_deref_list_check(l, &f, NULL, &err));
    g_assert_nonnull(strstr(err->message, "are not known: a copy"));
    f.pending = true;
    g_assert_true(kt_deref_list_check(l, &f, NULL, NULL));
    kt_deref_list_free(l);
    g_ptr_array_unref(f.protos);
}

/* ---- a guest ------------------------------------------------------------- */

#define BASE    0xffff888000001000ull
#define FILE_AT (BASE + 0x100)
#define INODE   (BASE + 0x200)
#define NAME    (BASE + 0x300)
#define LONG    (BASE + 0x400)
#define LAST    (BASE + 0xffd)      /* the next page is not mapped */

typedef struct World {
    uint8_t memory[4096];
    uint64_t args[6];
    KtCall call;
    uint8_t extra[KT_CALL_EXTRA_MAX];
} World;

static void put(World *w, uint64_t va, const void *bytes, size_t len)
{
    memcpy(w->memory + (va - BASE), bytes, len);
}

static void put_word(World *w, uint64_t va, uint64_t value)
{
    uint64_t word = GUINT64_TO_LE(value);

    put(w, va, &word, sizeof(word));
}

static World world(void)
{
    World w = { .args = { 0 } };

    put_word(&w, FILE_AT, INODE);
    put_word(&w, FILE_AT + 8, 0x41ull << 32 | 0x8000);
    put_word(&w, FILE_AT + 24, NAME);
    put(&w, FILE_AT + 32, "tag", 4);
    put_word(&w, INODE, 4242);
    put_word(&w, INODE + 8, 0x2d);
    put(&w, NAME, "a \"name\"\n", 10);
    memset(w.memory + (LONG - BASE), 'x', 100);
    put(&w, LAST, "end", 3);
    return w;
}

static bool read_word(void *opaque, GsReg reg, uint64_t *out)
{
    static const GsReg order[] = {
        GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3,
    };
    const World *w = opaque;

    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++) {
        if (order[i] == reg) {
            *out = w->args[i];
            return true;
        }
    }
    return false;
}

static bool read_memory(void *opaque, uint64_t va, void *buf, size_t len)
{
    const World *w = opaque;
    uint64_t at = va - BASE;
    bool known = at <= sizeof(w->memory) && len <= sizeof(w->memory) - at;

    if (known) {
        memcpy(buf, w->memory + at, len);
    }
    return known;
}

static const KtCallOps ops = { .word = read_word, .read = read_memory };

static KtDerefPlan *plan(GsPrototype *p, const char *text)
{
    KtDerefList *l = kt_deref_list_new(text, NULL);
    KtDerefPlan *plan = kt_deref_plan_new(l, p);

    kt_deref_list_free(l);
    return plan;
}

/* ---- values -------------------------------------------------------------- */

static void add_value(void *text, const KtCallDeref *d)
{
    GString *s = text;

    g_string_append_printf(s, "%s%s%s=", s->len ? " " : "",
                           d->of_result ? "^" : "",
                           gs_deref_value(d->expr)->name);
    if (d->state == KT_DEREF_KNOWN) {
        gs_deref_print(s, d->expr, d->bytes, d->len);
    } else {
        g_string_append(s, d->state == KT_DEREF_NULL ? "NULL" : "?");
    }
}

static char *text_of(const KtDerefPlan *p, const World *w)
{
    const KtCallView v = { &w->call, w->args, w->extra };
    GString *s = g_string_new(NULL);

    kt_deref_foreach(p, &v, add_value, s);
    return g_string_free(s, FALSE);
}

static unsigned read_call(World *w, const KtDerefPlan *p,
                          const GsPrototype *proto)
{
    const KtCallFacts f = {
        .call = &w->call, .proto = proto, .ops = &ops,
        .opaque = w,
    };
    unsigned bad = kt_deref_read_entry(p, &f, w->extra, &w->call.n_extra);

    return bad + kt_deref_read_return(p, &f, w->extra, &w->call.n_extra);
}

/* The same text is printed by a plan that was packed. */
static void expect(World *w, const char *func, const char *exprs,
                   unsigned unreadable, const char *want)
{
    g_autoptr(GsPrototype) proto = prototype(func);
    KtDerefPlan *p = plan(proto, exprs);
    KtDerefPlan *stored;
    g_autofree char *got = NULL, *again = NULL;
    gsize len;
    const void *packed;

    g_assert_nonnull(p);
    g_assert_cmpuint(read_call(w, p, proto), ==, unreadable);
    got = text_of(p, w);
    g_assert_cmpstr(got, ==, want);
    packed = g_bytes_get_data(p->packed, &len);
    stored = kt_deref_plan_unpack(gs_bytes(packed, len));
    g_assert_nonnull(stored);
    again = text_of(stored, w);
    g_assert_cmpstr(again, ==, want);
    kt_deref_plan_free(stored);
    kt_deref_plan_free(p);
}

TEST(test_values, "/derefs/values")
{
    World w = world();

    w.args[0] = FILE_AT;
    w.args[3] = BASE + 0xff9;           /* 7 bytes are mapped */
    expect(&w, "vfs_read", "file->f_inode->i_ino,file->f_flags,file->gfp", 0,
           "file->f_inode->i_ino=0x1092 file->f_flags=0x8000 "
           "file->gfp=0x41 DMA|IO");
    expect(&w, "vfs_read", "file->f_inode->low,file->f_inode->high", 0,
           "file->f_inode->low=5 file->f_inode->high=5");
    expect(&w, "vfs_read", "file->name.name,file->tag,file->raw,*pos", 1,
           "file->name.name=\"a \\\"name\\\"\\n\" file->tag=\"tag\" "
           "file->raw=0x0 *pos=?");
    expect(&w, "vfs_read", "*file->f_inode,file->nothing,count->x", 0,
           "*file->f_inode={.i_ino=0x1092,.low=5,.high=5}");
}

TEST(test_texts, "/derefs/texts")
{
    World w = world();
    char want[100];

    w.args[1] = NAME;
    expect(&w, "do_filp_open", "name", 0, "*name=\"a \\\"name\\\"\\n\"");
    w.args[1] = 0;
    expect(&w, "do_filp_open", "name", 0, "*name=NULL");
    w.args[1] = BASE + 4096;
    expect(&w, "do_filp_open", "name", 1, "*name=?");
    w.args[1] = LAST;
    expect(&w, "do_filp_open", "name", 0, "*name=\"end\"...");
    w.args[1] = LONG;
    g_snprintf(want, sizeof(want), "*name=\"%.*s\"...", (int)KT_DEREF_TEXT_MAX,
               w.memory + (LONG - BASE));
    expect(&w, "do_filp_open", "name", 0, want);
}

TEST(test_result, "/derefs/result")
{
    World w = world();

    w.call.result = FILE_AT;
    w.args[1] = NAME;
    expect(&w, "do_filp_open", "ret->f_inode->i_ino,name,ret->tag", 0,
           "*name=\"a \\\"name\\\"\\n\" ^ret->f_inode->i_ino=0x1092 "
           "^ret->tag=\"tag\"");
    w.call.result = -2ull;
    expect(&w, "do_filp_open", "ret->f_flags", 1, "^ret->f_flags=?");
}

/* A call that has not returned has no value of its result; at the return with
 * another plan nothing is added. */
TEST(test_not_returned, "/derefs/not-returned")
{
    g_autoptr(GsPrototype) proto = prototype("do_filp_open");
    KtDerefPlan *p = plan(proto, "name,ret->f_flags");
    KtDerefPlan *other = plan(proto, "ret->f_flags");
    World w = world();
    const KtCallFacts f = {
        .call = &w.call, .proto = proto, .ops = &ops,
        .opaque = &w,
    };
    g_autofree char *got = NULL;

    other->id = 300;
    w.args[1] = NAME;
    kt_deref_read_entry(p, &f, w.extra, &w.call.n_extra);
    kt_deref_read_return(other, &f, w.extra, &w.call.n_extra);
    got = text_of(p, &w);
    g_assert_cmpstr(got, ==, "*name=\"a \\\"name\\\"\\n\"");
    kt_deref_plan_free(p);
    kt_deref_plan_free(other);
}

/* Each byte of a record may be anything. */
TEST(test_damaged, "/derefs/damaged")
{
    g_autoptr(GsPrototype) proto = prototype("vfs_read");
    KtDerefPlan *p = plan(proto, "file->f_inode->i_ino,file->name.name,*pos");
    World w = world();

    w.args[0] = FILE_AT;
    read_call(&w, p, proto);
    for (unsigned i = 0; i < w.call.n_extra; i++) {
        for (unsigned value = 0; value < 256; value += 51) {
            World bad = w;
            g_autofree char *text = NULL;

            bad.extra[i] = value;
            bad.call.n_extra = (value & 1) ? i + 1 : w.call.n_extra;
            text = text_of(p, &bad);
        }
    }
    kt_deref_plan_free(p);
}

/* ---- the table ----------------------------------------------------------- */

TEST(test_table, "/derefs/table")
{
    g_autoptr(GsPrototype) proto = prototype("fput");
    KtDerefTable *t = kt_deref_table_new(NULL);
    KtDerefList *l = kt_deref_list_new("file->f_flags", NULL);
    KtDerefList *none = kt_deref_list_new("page->x", NULL);
    const KtDerefPlan *p = kt_deref_table_get(t, l, (KtPointId) { 3 }, proto);
    g_autoptr(GBytes) packed = g_bytes_ref(p->packed);
    gsize len;
    const void *bytes = g_bytes_get_data(packed, &len);

    g_assert_cmpuint(p->id, ==, 1);
    g_assert_true(kt_deref_table_get(t, l, (KtPointId) { 3 }, proto) == p);
    g_assert_null(kt_deref_table_get(t, none, (KtPointId) { 3 }, proto));
    g_assert_cmpuint(kt_deref_table_get(t, l, (KtPointId) { 4 }, proto)->id,
                     ==, 2);
    g_assert_true(kt_deref_table_find(t, 1) == p);
    g_assert_null(kt_deref_table_find(t, 0));
    g_assert_null(kt_deref_table_find(t, 3));
    kt_deref_table_define(t, 9, gs_bytes(bytes, len));
    kt_deref_table_define(t, 8, gs_bytes(bytes, len - 1));
    kt_deref_table_define(t, 0, gs_bytes(bytes, len));
    g_assert_cmpuint(kt_deref_table_find(t, 9)->n, ==, 1);
    g_assert_null(kt_deref_table_find(t, 8));
    g_assert_null(kt_deref_table_find(t, 5));
    kt_deref_table_clear(t);
    g_assert_null(kt_deref_table_find(t, 9));
    kt_deref_list_free(l);
    kt_deref_list_free(none);
    kt_deref_table_free(t);
}
