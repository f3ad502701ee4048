/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/deref-types.h"
#include "tests/lib/types-writer.h"

typedef struct Types {
    struct btf *b;
    int v_int, v_unsigned, v_long, v_ulong, size, gfp, text, name, raw, tag;
    int inode, qstr, file, page;
} Types;

static void add_numbers(Types *t)
{
    int v_char = btf__add_int(t->b, "char", 1, BTF_INT_SIGNED);
    int v_uchar = btf__add_int(t->b, "unsigned char", 1, 0);

    t->v_int = btf__add_int(t->b, "int", 4, BTF_INT_SIGNED);
    t->v_unsigned = btf__add_int(t->b, "unsigned int", 4, 0);
    t->v_long = btf__add_int(t->b, "long int", 8, BTF_INT_SIGNED);
    t->v_ulong = btf__add_int(t->b, "long unsigned int", 8, 0);
    t->size = btf__add_typedef(t->b, "size_t", t->v_ulong);
    t->gfp = btf__add_typedef(t->b, "gfp_t", t->v_unsigned);
    btf__add_enum(t->b, NULL, 4);
    btf__add_enum_value(t->b, "___GFP_DMA_BIT", 0);
    btf__add_enum_value(t->b, "___GFP_IO_BIT", 6);
    t->text = btf__add_ptr(t->b, btf__add_const(t->b, v_char));
    t->name = btf__add_ptr(t->b, btf__add_const(t->b, v_uchar));
    t->raw = btf__add_ptr(t->b, btf__add_typedef(t->b, "u8", v_uchar));
    t->tag = btf__add_array(t->b, t->v_int, v_char, 8);
}

static void add_structs(Types *t)
{
    int words = btf__add_array(t->b, t->v_int, t->v_ulong, 40);

    t->inode = btf__add_struct(t->b, "inode", 16);
    btf__add_field(t->b, "i_ino", t->v_ulong, 0, 0);
    btf__add_field(t->b, "low", t->v_unsigned, 64, 3);
    btf__add_field(t->b, "high", t->v_unsigned, 67, 5);
    t->qstr = btf__add_struct(t->b, "qstr", 16);
    btf__add_field(t->b, "hash", t->v_unsigned, 0, 0);
    btf__add_field(t->b, "name", t->name, 64, 0);
    t->page = btf__add_struct(t->b, "page", 320);
    btf__add_field(t->b, "words", words, 0, 0);
}

static void add_file(Types *t)
{
    int inode = btf__add_ptr(t->b, t->inode);

    t->file = btf__add_struct(t->b, "file", 48);
    btf__add_field(t->b, "f_inode", inode, 0, 0);
    btf__add_field(t->b, "f_flags", t->v_unsigned, 64, 0);
    btf__add_field(t->b, "gfp", t->gfp, 96, 0);
    btf__add_field(t->b, "name", t->qstr, 128, 0);
    btf__add_field(t->b, "tag", t->tag, 256, 0);
    btf__add_field(t->b, "raw", t->raw, 320, 0);
}

static void add_functions(Types *t)
{
    int file = btf__add_ptr(t->b, t->file), page = btf__add_ptr(t->b, t->page);
    int pos = btf__add_ptr(t->b, t->v_long);
    int proto = btf__add_func_proto(t->b, file);

    btf__add_func_param(t->b, "dfd", t->v_int);
    btf__add_func_param(t->b, "name", t->text);
    btf__add_func_param(t->b, "page", page);
    btf__add_func(t->b, "do_filp_open", BTF_FUNC_GLOBAL, proto);
    proto = btf__add_func_proto(t->b, t->v_long);
    btf__add_func_param(t->b, "file", file);
    btf__add_func_param(t->b, "buf", t->raw);
    btf__add_func_param(t->b, "count", t->size);
    btf__add_func_param(t->b, "pos", pos);
    btf__add_func(t->b, "vfs_read", BTF_FUNC_GLOBAL, proto);
    proto = btf__add_func_proto(t->b, 0);
    btf__add_func_param(t->b, "file", file);
    btf__add_func(t->b, "fput", BTF_FUNC_GLOBAL, proto);
    proto = btf__add_func_proto(t->b, t->v_long);
    btf__add_func_param(t->b, "result", pos);
    btf__add_func_param(t->b, "caller", t->v_ulong);
    btf__add_func_param(t->b, "caller", t->v_ulong);
    btf__add_func(t->b, "track_caller", BTF_FUNC_GLOBAL, proto);
}

GBytes *deref_types(void)
{
    Types t = { .b = btf__new_empty() };

    add_numbers(&t);
    add_structs(&t);
    add_file(&t);
    add_functions(&t);
    return types_bytes(t.b);
}
