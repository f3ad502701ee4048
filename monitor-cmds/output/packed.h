/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes as lines of text: see packed.c. */
#ifndef MC_PACKED_H
#define MC_PACKED_H

#include "monitor-cmds/output/format.h"

/** mc_packed() - print @len bytes, compressed by gzip, in lines of base64 */
void mc_packed(McOut *o, const void *bytes, size_t len);

#endif /* MC_PACKED_H */
