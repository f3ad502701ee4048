/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: .BTF sections.
 *
 * Byte 0 even: the rest is the section. Byte 0 odd: the rest are type records;
 * a correct header and a table of names are added.
 */
#include "guest-symbols/types/btf.h"

#include <bpf/btf.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char names[] = "\0a\0b\0c\0d\0e\0f";

static const char *const queries[][2] = {
    { "a", "b" }, { "a", "b.c" }, { "b", "c.d.e.f" }, { "c", "a" },
    { "d", "f" }, { "e", "a.a.a.a" },
};

static void query(const GsBtf *b)
{
    for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
        uint32_t offset, size;
        int64_t value;

        gs_btf_member(b, queries[i][0], queries[i][1], &offset, &size);
        gs_btf_type_size(b, queries[i][0], &size);
        gs_btf_enum_value(b, queries[i][0], &value);
    }
}

static void parse(const uint8_t *data, size_t len)
{
    g_autofree uint8_t *copy = g_memdup2(data, len);
    g_autoptr(GError) err = NULL;
    g_autoptr(GsBtf) b = gs_btf_new(copy, len, &err);

    if (b) {
        query(b);
    } else if (!err) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct btf_header h = {
        .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(h),
    };
    g_autoptr(GByteArray) out = g_byte_array_new();

    if (!len) {
        return 0;
    }
    if (!(data[0] & 1)) {
        parse(data + 1, len - 1);
        return 0;
    }
    h.type_len = h.str_off = (len - 1) & ~3u;
    h.str_len = sizeof(names);
    g_byte_array_append(out, (uint8_t *)&h, sizeof(h));
    g_byte_array_append(out, data + 1, h.type_len);
    g_byte_array_append(out, (const uint8_t *)names, sizeof(names));
    parse(out->data, out->len);
    return 0;
}
