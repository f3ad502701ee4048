/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members that an argument leads to: where they are, how they are printed, and
 * what is said of expressions that are wrong. The types are made with libbpf.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/types/prototype.h"

#include <string.h>

/*
 * struct name { unsigned hash; const char *text; };
 * struct node { struct node *next; struct name name; unsigned low : 3, up : 5;
 *               char id[4]; };
 * struct node *f(struct node *node, int *len, void *data, int n,
 *                const unsigned char *s, u8 *raw);
 */
static GsPrototype *make(void)
{
    struct btf *b = btf__new_empty();
    int t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    int t_unsigned = btf__add_int(b, "unsigned int", 4, 0);
    int t_char = btf__add_int(b, "char", 1, BTF_INT_SIGNED);
    int t_uchar = btf__add_int(b, "unsigned char", 1, 0);
    int s = btf__add_ptr(b, btf__add_const(b, t_uchar));
    int raw = btf__add_ptr(b, btf__add_typedef(b, "u8", t_uchar));
    int text = btf__add_ptr(b, btf__add_const(b, t_char));
    int id = btf__add_array(b, t_int, t_char, 4);
    int node = btf__type_cnt(b) + 2, p_node = btf__add_ptr(b, node);
    int name, len, data, proto;
    g_autoptr(GsBtf) btf = NULL;
    const char *why;

    name = btf__add_struct(b, "name", 16);
    btf__add_field(b, "hash", t_unsigned, 0, 0);
    btf__add_field(b, "text", text, 64, 0);
    btf__add_struct(b, "node", 32);
    btf__add_field(b, "next", p_node, 0, 0);
    btf__add_field(b, "name", name, 64, 0);
    btf__add_field(b, "low", t_unsigned, 192, 3);
    btf__add_field(b, "up", t_unsigned, 195, 5);
    btf__add_field(b, "id", id, 224, 0);
    len = btf__add_ptr(b, t_int);
    data = btf__add_ptr(b, 0);
    proto = btf__add_func_proto(b, p_node);
    btf__add_func_param(b, "node", p_node);
    btf__add_func_param(b, "len", len);
    btf__add_func_param(b, "data", data);
    btf__add_func_param(b, "n", t_int);
    btf__add_func_param(b, "s", s);
    btf__add_func_param(b, "raw", raw);
    btf__add_func(b, "f", BTF_FUNC_GLOBAL, proto);
    btf = types_end(b);
    return gs_prototype_new(btf, &gs_arch_x86_64, "f", &why);
}

static const struct {
    const char *expr;
    unsigned param, n;
    uint32_t offset[GS_DEREF_MAX];
    const char *type;
    uint32_t size;
    const char *bytes, *text;
} rows[] = {
    { "node->name.hash", 0, 1, { 8 }, "unsigned int", 4, "\7\0\0\0", "7" },
    { "node->next", 0, 1, { 0 }, "struct node *", 8, "\0\0\0\0\0\0\0\0",
      "0x0" },
    { "node->next->next->name.text", 0, 3, { 0, 0, 16 }, "const char *", 8,
      "ab\n\0\0\0\0\0", "\"ab\\n\"" },
    { "node->low", 0, 1, { 24 }, "unsigned int", 1, "\x2d", "5" },
    { "node->up", 0, 1, { 24 }, "unsigned int", 1, "\x2d", "5" },
    { "node->id", 0, 1, { 28 }, "char[4]", 4, "abc\0", "\"abc\"" },
    { "node->name", 0, 1, { 8 }, "struct name", 16,
      "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "{.hash=1,.text=0x0}" },
    { "*len", 1, 1, { 0 }, "int", 4, "\xff\xff\xff\xff", "-1" },
    { "*node->next", 0, 2, { 0, 0 }, "struct node", 32, "", NULL },
    { "*node->name.text", 0, 1, { 16 }, "const char *", 8, "a\0\0\0\0\0\0\0",
      "\"a\"" },
    { "*s", 4, 0, { 0 }, "const unsigned char *", 8, "abcdefgh",
      "\"abcdefgh\"..." },
    { "*raw", 5, 1, { 0 }, "u8", 1, "a", "97" },
    { "ret->next->name.hash", GS_DEREF_RESULT, 2, { 0, 8 }, "unsigned int", 4,
      "\7\0\0\0", "7" },
};

/* What was packed prints the same. */
static void assert_same_packed(const GsDeref *d, const char *bytes,
                               const char *text)
{
    const GsParam *value = gs_deref_value(d), *other;
    g_autoptr(GByteArray) packed = g_byte_array_new();
    g_autoptr(GString) again = g_string_new(NULL);
    g_autoptr(GsDeref) e = NULL;

    g_assert_true(gs_deref_pack(d, packed));
    e = gs_deref_unpack(packed->data, packed->len);
    g_assert_nonnull(e);
    other = gs_deref_value(e);
    g_assert_cmpstr(other->name, ==, value->name);
    g_assert_cmpstr(other->type, ==, value->type);
    g_assert_cmpuint(other->size, ==, value->size);
    g_assert_true(other->is_text == value->is_text);
    gs_deref_print(again, e, bytes, value->size);
    g_assert_cmpstr(again->str, ==, text);
    for (unsigned len = 0; len < packed->len; len++) {
        gs_deref_free(gs_deref_unpack(packed->data, len));
    }
}

TEST(test_found, "/deref/found")
{
    g_autoptr(GsPrototype) p = make();

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) err = NULL;
        g_autoptr(GsDeref) d = gs_deref_new(p, rows[i].expr, &err);
        g_autoptr(GString) text = g_string_new(NULL);
        const GsParam *value;

        g_assert_no_error(err);
        value = gs_deref_value(d);
        g_assert_cmpuint(gs_deref_at(d)->param, ==, rows[i].param);
        g_assert_cmpuint(gs_deref_at(d)->n, ==, rows[i].n);
        for (unsigned j = 0; j < rows[i].n; j++) {
            g_assert_cmpuint(gs_deref_at(d)->offset[j], ==, rows[i].offset[j]);
        }
        g_assert_cmpstr(value->name, ==, rows[i].expr);
        g_assert_cmpstr(value->type, ==, rows[i].type);
        g_assert_cmpuint(value->size, ==, rows[i].size);
        if (rows[i].text) {
            gs_deref_print(text, d, rows[i].bytes, rows[i].size);
            g_assert_cmpstr(text->str, ==, rows[i].text);
            assert_same_packed(d, rows[i].bytes, rows[i].text);
        }
    }
}

static const char *const wrong[][2] = {
    { "nod->next", "no parameter \"nod\": the function has node, len, data, "
      "n, s, raw" },
    { "node->nxt", "struct node has no member \"nxt\"" },
    { "node->name.", "struct node has no member \"name.\"" },
    { "node->name->hash", "\"name\" is no pointer" },
    { "node->low.x", "struct node has no member \"low.x\"" },
    { "*node->low", "\"node->low\" is no pointer" },
    { "*n", "\"n\" is no pointer" },
    { "*data", "no size" },
    { "data->x", "void has no member \"x\"" },
    { "node", "leads to no member" },
    { "raw", "leads to no member" },
    { "ret", "leads to no member" },
    { "node->next->next->next->next->next", "more than 4 pointers" },
    { "", "1 to 128 characters" },
    { "*", "1 to 128 characters" },
    { "->", "no parameter" },
};

TEST(test_wrong, "/deref/wrong")
{
    g_autoptr(GsPrototype) p = make();

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_null(gs_deref_new(p, wrong[i][0], &err));
        g_assert_nonnull(err);
        if (!strstr(err->message, wrong[i][1])) {
            g_assert_cmpstr(err->message, ==, wrong[i][1]);
        }
    }
}
