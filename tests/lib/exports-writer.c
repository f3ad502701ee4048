/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/exports-writer.h"

#include <glib.h>
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
