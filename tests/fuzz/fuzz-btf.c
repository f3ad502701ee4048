/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: .BTF sections.
 *
 * Byte 0 even: the rest is the section. Byte 0 odd: the rest are type records;
 * a correct header and a table of names are added. Byte 0 is LONG: the same,
 * but the header has 32 bytes, and the last LAYOUT bytes are the layout.
 */
#include "tests/fuzz/fuzz.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/btf-records.h"

#define LONG            0x81
#define LAYOUT          96      /* 24 kinds */
#define HEADER_LONG     32

static const char names[] = "\0a\0b\0c\0d\0e\0f";

static const char *const queries[][2] = {
    { "a", "b" }, { "a", "b.c" }, { "b", "c.d.e.f" }, { "c", "a" },
    { "d", "f" }, { "e", "a.a.a.a" },
};

static void count(const char *member, const char *name, uint32_t size,
                  void *opaque)
{
    *(size_t *)opaque += strlen(member) + strlen(name) + size;
}

static void query(const GsBtf *b)
{
    for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
        uint32_t offset, size;
        size_t sum = 0;
        int64_t value;

        gs_btf_member(b, queries[i][0], queries[i][1], &offset, &size);
        gs_btf_type_size(b, queries[i][0], &size);
        gs_btf_enum_value(b, queries[i][0], &value);
        gs_btf_func_param(b, queries[i][0], queries[i][1]);
        g_free(gs_btf_member_at(b, queries[i][0], 9 * i));
        gs_btf_pointers_at(b, queries[i][0], 8 * i, count, &sum);
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

static void parse_records(const uint8_t *data, size_t len, size_t layout)
{
    const uint32_t types = (len - layout) & ~3u;
    const uint32_t head[] = {
        0x0001eb9f, layout ? HEADER_LONG : GS_BTF_HEADER, 0, types,
        types + layout, sizeof(names), types, layout,
    };
    g_autoptr(GByteArray) out = g_byte_array_new();

    g_byte_array_append(out, (uint8_t *)head, head[1]);
    g_byte_array_append(out, data, types);
    g_byte_array_append(out, data + len - layout, layout);
    g_byte_array_append(out, (const uint8_t *)names, sizeof(names));
    parse(out->data, out->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (!len) {
        return 0;
    }
    if (!(data[0] & 1)) {
        parse(data + 1, len - 1);
        return 0;
    }
    parse_records(data + 1, len - 1,
                  data[0] == LONG && len > LAYOUT ? LAYOUT : 0);
    return 0;
}
