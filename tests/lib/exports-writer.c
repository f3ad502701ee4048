/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/exports-writer.h"

#include <string.h>

static void put(ExportsWriter *w, uint64_t va)
{
    int32_t near = va - (w->va + w->at);

    if (w->relative) {
        memcpy(w->image + w->at, &near, sizeof(near));
        w->at += sizeof(near);
    } else {
        memcpy(w->image + w->at, &va, sizeof(va));
        w->at += sizeof(va);
    }
}

void exports_write(ExportsWriter *w, const char *name, uint64_t value)
{
    put(w, value);
    put(w, w->va + w->strings);
    put(w, w->relative ? w->va + w->at : 0);
    memcpy(w->image + w->strings, name, strlen(name) + 1);
    w->strings += strlen(name) + 1;
}

void exports_write_many(ExportsWriter *w, const char *prefix, unsigned n,
                        uint64_t value)
{
    for (unsigned i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("%s%03u", prefix, i);

        exports_write(w, name, value + 16 * i);
    }
}

static bool read_image(void *opaque, uint64_t va, void *buf, size_t len)
{
    const ExportsWriter *w = opaque;

    if (va < w->va || va - w->va >= w->len || len > w->len - (va - w->va)) {
        return false;
    }
    memcpy(buf, w->image + (va - w->va), len);
    return true;
}

GsSymtab *exports_decode(ExportsWriter *w, uint64_t *at)
{
    const GsMem mem = { .read = read_image, .opaque = w };
    g_autoptr(GsGuestCopy) copy = gs_guest_copy_new(&mem, w->va,
                                                    w->va + w->len);
    g_autoptr(GsImage) img = gs_image_new_memory(copy);

    return gs_exports_decode(img, at);
}
