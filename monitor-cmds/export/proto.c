/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of protobuf: see proto.h. */
#include "monitor-cmds/export/proto.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

void mc_proto_varint(GByteArray *to, uint64_t v)
{
    guint8 buf[10];
    unsigned n = 0;

    do {
        buf[n++] = (v & 0x7f) | (v > 0x7f ? 0x80 : 0);
        v >>= 7;
    } while (v);
    g_byte_array_append(to, buf, n);
}

void mc_proto_number(GByteArray *to, unsigned field, uint64_t v)
{
    if (v) {
        mc_proto_varint(to, field << 3 | WIRE_VARINT);
        mc_proto_varint(to, v);
    }
}

void mc_proto_bytes(GByteArray *to, unsigned field, const void *bytes,
                    size_t len)
{
    mc_proto_varint(to, field << 3 | WIRE_BYTES);
    mc_proto_varint(to, len);
    g_byte_array_append(to, bytes, len);
}

void mc_proto_message(GByteArray *to, unsigned field, GByteArray *message)
{
    mc_proto_bytes(to, field, message->data, message->len);
    g_byte_array_set_size(message, 0);
}
