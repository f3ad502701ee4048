/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prototypes as bytes: gs_prototype_pack() and gs_prototype_unpack().
 *
 *     number of the architecture (1), name of the function with NUL, a .BTF
 *     section
 */
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/prototype.h"

bool gs_prototype_pack(const GsPrototype *p, GByteArray *to)
{
    g_autoptr(GByteArray) types = gs_prototype_pack_types(p);
    GsOut out = gs_out(to);

    if (!types || types->len > GS_PROTOTYPE_MAX - GS_SYMBOL_NAME_MAX - 2) {
        return false;
    }
    gs_out_u8(&out, (uint8_t)gs_arch_number(gs_prototype_arch(p)));
    gs_out_str(&out, gs_prototype_func(p));
    gs_out_bytes(&out, types->data, types->len);
    return true;
}

GsPrototype *gs_prototype_unpack(const void *bytes, size_t len)
{
    GsBytes in = gs_bytes(bytes, len);
    const GsArch *arch = gs_arch_nth(gs_bytes_u8(&in));
    const char *func = gs_bytes_str(&in, GS_SYMBOL_NAME_MAX, NULL);
    g_autoptr(GsBtf) btf = NULL;
    const char *why;

    if (in.failed || !arch || len > GS_PROTOTYPE_MAX) {
        return NULL;
    }
    btf = gs_btf_new(gs_bytes_at(&in), gs_bytes_left(&in), NULL);
    return btf ? gs_prototype_new(btf, arch, func, &why) : NULL;
}
