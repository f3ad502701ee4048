/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pprof: the bytes of the message. tests/reports/test_pprof.py has a foreign
 * reader; here a reader of our own counts records, so that no name makes a
 * second one.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/export-world.h"

#include <string.h>
#include <zlib.h>

#include "monitor-cmds/export/proto.h"

#define FIELDS  16
#define ROOM    (1u << 20)

/** struct Counts - how often each field of the message is there; @bytes: length
 *  of its texts and messages */
typedef struct Counts {
    unsigned n[FIELDS];
    size_t bytes[FIELDS];
} Counts;

static uint64_t read_varint(const guint8 **at, const guint8 *end)
{
    uint64_t v = 0;
    unsigned shift = 0;

    do {
        g_assert_true(*at < end && shift < 64);
        v |= (uint64_t)(**at & 0x7f) << shift;
        shift += 7;
    } while (*(*at)++ & 0x80);
    return v;
}

static Counts count_fields(const guint8 *at, size_t len)
{
    const guint8 *end = at + len;
    Counts c = { 0 };

    while (at < end) {
        uint64_t tag = read_varint(&at, end), v = read_varint(&at, end);

        g_assert_true((tag & 7) == 0 || (tag & 7) == 2);
        g_assert_true(tag >> 3 > 0 && tag >> 3 < FIELDS);
        c.n[tag >> 3]++;
        if ((tag & 7) == 2) {
            g_assert_true(v <= (uint64_t)(end - at));
            c.bytes[tag >> 3] += v;
            at += v;
        }
    }
    return c;
}

static Counts count_profile(const McHeapProfile *p)
{
    const McExport e = { .profile = p };
    size_t packed;
    g_autofree char *gzip = export_bytes(MC_EXPORT_PPROF, &e, &packed);
    g_autofree guint8 *message = g_malloc(ROOM);
    z_stream z = {
        .next_in = (Bytef *)gzip, .avail_in = packed,
        .next_out = message, .avail_out = ROOM,
    };

    g_assert_cmpint(inflateInit2(&z, 15 + 16), ==, Z_OK);
    g_assert_cmpint(inflate(&z, Z_FINISH), ==, Z_STREAM_END);
    inflateEnd(&z);
    return count_fields(message, z.total_out);
}

TEST(numbers_are_varints, "/pprof/varints")
{
    g_autoptr(GByteArray) b = g_byte_array_new();
    static const guint8 expected[] = {
        0x00, 0x7f, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0x01, 0x18, 0x96, 0x01,
    };

    mc_proto_varint(b, 0);
    mc_proto_varint(b, 127);
    mc_proto_varint(b, 128);
    mc_proto_varint(b, UINT64_MAX);
    mc_proto_number(b, 3, 150);
    mc_proto_number(b, 3, 0);
    g_assert_cmpmem(b->data, b->len, expected, sizeof(expected));
}

PROFILE_TEST(an_empty_profile_has_its_types, "/pprof/empty")
{
    Counts c = count_profile(p);

    g_assert_cmpuint(c.n[1], ==, 5);
    g_assert_cmpuint(c.n[2] + c.n[3] + c.n[4] + c.n[5], ==, 0);
    g_assert_cmpuint(c.n[11], ==, 1);
}

PROFILE_TEST(equal_frames_are_one_location, "/pprof/locations")
{
    Counts c;

    export_stack(p, "b+0x10 a+0x10", 64, 1);
    export_stack(p, "b+0x20 a+0x10", 64, 1);
    export_stack(p, "c+0x20 a+0x10", 0, 0);
    c = count_profile(p);
    g_assert_cmpuint(c.n[2], ==, 2);    /* samples that are not zero */
    g_assert_cmpuint(c.n[4], ==, 4);
    g_assert_cmpuint(c.n[5], ==, 3);
}

/* Code outside of all ranges has a mapping of its own name. */
PROFILE_TEST(each_location_has_a_mapping, "/pprof/mappings")
{
    mc_heap_profile_range(p, MC_PROFILE_KERNEL, 0xffffffff81000000,
                          0xffffffff82000000);
    mc_heap_profile_range(p, "unused", 0xffffffffc0000000,
                          0xffffffffc0001000);
    export_stack(p, "a+0x10", 64, 1);
    g_assert_cmpuint(count_profile(p).n[3], ==, 1);
    export_stack(p, "b+0x10[gone]", 64, 1);
    export_stack(p, "c+0x10[gone]", 64, 1);
    export_stack(p, "d+0x10[also_gone]", 64, 1);
    export_stack(p, "", 64, 1);
    g_assert_cmpuint(count_profile(p).n[3], ==, 4);
}

TEST(hostile_names_are_one_record_each, "/pprof/hostile-names")
{
    unsigned n;
    g_autoptr(McHeapProfile) p = export_hostile(&n);
    Counts c = count_profile(p);

    g_assert_cmpuint(c.n[2], ==, n);
    g_assert_cmpuint(c.n[4], ==, n + 1);
    g_assert_cmpuint(c.n[5], ==, n + 1);
    g_assert_cmpuint(c.n[13], ==, 3);
    /* names, modules, comments: bounded */
    g_assert_cmpuint(c.bytes[6], <, 20 * MC_PROFILE_NAME_MAX);
}
