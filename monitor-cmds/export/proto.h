/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of protobuf, as much of it as pprof needs. A message is bytes:
 *
 *     field = varint(number << 3 | wire type), then
 *         wire type 0: varint
 *         wire type 2: varint(length), bytes
 *
 * One thread.
 */
#ifndef MC_PROTO_H
#define MC_PROTO_H

#include <glib.h>
#include <stdint.h>

/** mc_proto_varint() - append a number, seven bits a byte, the least first. */
void mc_proto_varint(GByteArray *to, uint64_t v);
/** mc_proto_number() - append a field that is a number; nothing if it is 0,
 *  which is what readers take a missing field for. */
void mc_proto_number(GByteArray *to, unsigned field, uint64_t v);
/** mc_proto_bytes() - append a field of @len bytes: a text, a message, or
 *  packed numbers. */
void mc_proto_bytes(GByteArray *to, unsigned field, const void *bytes,
                    size_t len);
/** mc_proto_message() - append @message as a field, and empty it. */
void mc_proto_message(GByteArray *to, unsigned field, GByteArray *message);

#endif /* MC_PROTO_H */
