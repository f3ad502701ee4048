/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/struct-types.h"
#include "tests/lib/types-writer.h"

typedef struct Types {
    struct btf *b;
    int v_int, v_short, v_unsigned, v_long, v_ulong, v_char, u8, u64, flag;
    int list, point, state, table, box, fn, ptr;
} Types;

static void add_numbers(Types *t)
{
    struct btf *b = t->b;
    int v_uchar = btf__add_int(b, "unsigned char", 1, 0);

    t->v_char = btf__add_int(b, "char", 1, BTF_INT_SIGNED);
    t->v_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    t->v_short = btf__add_int(b, "short int", 2, BTF_INT_SIGNED);
    t->v_unsigned = btf__add_int(b, "unsigned int", 4, 0);
    t->v_long = btf__add_int(b, "long int", 8, BTF_INT_SIGNED);
    t->v_ulong = btf__add_int(b, "long unsigned int", 8, 0);
    t->u8 = btf__add_typedef(b, "u8", v_uchar);
    t->u64 = btf__add_typedef(b, "u64", t->v_ulong);
    t->flag = btf__add_int(b, "_Bool", 1, BTF_INT_BOOL);
    t->state = btf__add_enum(b, "state", 4);
    btf__add_enum_value(b, "RUNNING", 0);
    btf__add_enum_value(b, "DEAD", 7);
    t->ptr = btf__add_ptr(b, 0);
    t->fn = btf__add_ptr(b, btf__add_func_proto(b, t->v_int));
}

/* A pointer to a struct is made before the struct: two types later. */
static void add_list(Types *t)
{
    int ptr = btf__add_ptr(t->b, btf__type_cnt(t->b) + 1);

    t->list = btf__add_struct(t->b, "list_head", 16);
    btf__add_field(t->b, "next", ptr, 0, 0);
    btf__add_field(t->b, "prev", ptr, 64, 0);
    t->point = btf__add_struct(t->b, "point", 8);
    btf__add_field(t->b, "x", t->v_int, 0, 0);
    btf__add_field(t->b, "y", t->v_int, 32, 0);
}

/* The types of box's pointers, and box: some ids are known before. */
static int add_table(Types *t)
{
    int box = btf__type_cnt(t->b) + 4;
    int ptr = btf__add_ptr(t->b, box), ptrs = btf__add_ptr(t->b, ptr);

    t->table = btf__add_struct(t->b, "table", 16);
    btf__add_field(t->b, "max", t->v_unsigned, 0, 0);
    btf__add_field(t->b, "box", ptrs, 64, 0);
    return btf__add_ptr(t->b, t->table);
}

/* What box has, behind box. */
typedef struct Later {
    int name, any, parts, shorts, points, ptrs, more;
} Later;

static void add_box(Types *t, int table)
{
    struct btf *b = t->b;
    int n = btf__type_cnt(b);
    const Later l = { n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7 };

    t->box = btf__add_struct(b, "box", 136);
    btf__add_field(b, "list", t->list, 0, 0);
    btf__add_field(b, "table", table, 0x80, 0);
    btf__add_field(b, "name", l.name, 0xc0, 0);
    btf__add_field(b, "low", t->v_unsigned, 0x100, 3);
    btf__add_field(b, "high", t->v_unsigned, 0x103, 5);
    btf__add_field(b, "state", t->state, 0x120, 0);
    btf__add_field(b, "", l.any, 0x140, 0);
    btf__add_field(b, "shorts", l.shorts, 0x180, 0);
    btf__add_field(b, "points", l.points, 0x1c0, 0);
    btf__add_field(b, "ptrs", l.ptrs, 0x280, 0);
    btf__add_field(b, "fn", t->fn, 0x380, 0);
    btf__add_field(b, "addr", t->v_ulong, 0x3c0, 0);
    btf__add_field(b, "flag", t->flag, 0x400, 0);
    btf__add_field(b, "minus", t->v_int, 0x420, 0);
    btf__add_field(b, "more", l.more, 0x440, 0);
    btf__add_array(b, t->v_int, t->v_char, 8);
    btf__add_union(b, "", 8);
    btf__add_field(b, "word", t->u64, 0, 0);
    btf__add_field(b, "", l.parts, 0, 0);
    btf__add_field(b, "pair", t->point, 0, 0);
    btf__add_struct(b, "", 8);
    btf__add_field(b, "a", t->v_int, 0, 0);
    btf__add_field(b, "b", t->v_int, 32, 0);
    btf__add_array(b, t->v_int, t->v_short, 4);
    btf__add_array(b, t->v_int, t->point, 3);
    btf__add_array(b, t->v_int, t->ptr, 4);
    btf__add_array(b, t->v_int, t->u8, 0);
}

static void add_names(Types *t)
{
    int holder;

    btf__add_struct(t->b, "twice", 4);
    btf__add_field(t->b, "a", t->v_int, 0, 0);
    btf__add_union(t->b, "twice", 8);
    btf__add_field(t->b, "b", t->v_long, 0, 0);
    holder = btf__add_struct(t->b, "", 8);
    btf__add_field(t->b, "p", t->point, 0, 0);
    btf__add_typedef(t->b, "holder_t", holder);
    btf__add_fwd(t->b, "nowhere", BTF_FWD_STRUCT);
}

GBytes *struct_types(void)
{
    Types t = { .b = btf__new_empty() };
    int table;

    add_numbers(&t);
    add_list(&t);
    table = add_table(&t);
    add_box(&t, table);
    add_names(&t);
    return types_bytes(t.b);
}
