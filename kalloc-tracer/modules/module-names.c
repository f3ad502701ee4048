/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of a module's functions: see module-names.h. */
#include "kalloc-tracer/modules/module-names.h"

#include <inttypes.h>
#include <string.h>

typedef struct Name {
    uint64_t va;
    const char *name;
} Name;

struct KtModuleNames {
    char *module;
    GArray *rows;           /* Name, by address, one for each address */
    GStringChunk *texts;
    uint64_t bytes, room;
};

static const Name *last(const KtModuleNames *n)
{
    return n->rows->len ? &g_array_index(n->rows, Name, n->rows->len - 1) :
                          NULL;
}

/* Symbols come by address. Of several at one address the first is used. */
static bool add_symbol(const GsModuleSymbol *sym, void *opaque)
{
    KtModuleNames *n = opaque;
    Name row = { sym->va, NULL };
    uint64_t bytes = sizeof(row) + strlen(sym->name) + 1;

    if (!strchr("tTwW", sym->type) || (last(n) && last(n)->va == sym->va)) {
        return true;
    }
    if (n->bytes + bytes > n->room) {
        return false;
    }
    n->bytes += bytes;
    row.name = g_string_chunk_insert(n->texts, sym->name);
    g_array_append_val(n->rows, row);
    return true;
}

KtModuleNames *kt_module_names_new(const GsKernel *k, uint64_t module_va,
                                   uint64_t room)
{
    KtModuleNames *n = g_new0(KtModuleNames, 1);
    GsModule mod;

    n->room = room;
    n->rows = g_array_new(FALSE, FALSE, sizeof(Name));
    n->texts = g_string_chunk_new(1024);
    n->module = g_strdup(gs_kernel_module(k, module_va, &mod) ? mod.name : "");
    gs_kernel_module_symbols(k, module_va, add_symbol, n);
    return n;
}

void kt_module_names_free(KtModuleNames *n)
{
    if (n) {
        g_array_unref(n->rows);
        g_string_chunk_free(n->texts);
        g_free(n->module);
        g_free(n);
    }
}

uint64_t kt_module_names_bytes(const KtModuleNames *n)
{
    return n ? n->bytes : 0;
}

/* Return the number of functions that begin at or below @va. */
static guint n_upto(const KtModuleNames *n, uint64_t va)
{
    guint lo = 0, hi = n->rows->len;

    while (lo < hi) {
        guint mid = lo + (hi - lo) / 2;

        if (g_array_index(n->rows, Name, mid).va <= va) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

char *kt_module_names_of(const KtModuleNames *n, const GsModuleArea *area,
                         uint64_t pc)
{
    guint i = n ? n_upto(n, pc - 1) : 0;
    const Name *row;

    if (!i) {
        return NULL;
    }
    row = &g_array_index(n->rows, Name, i - 1);
    if (row->va < area->start) {
        return NULL;
    }
    return g_strdup_printf("%s+0x%" PRIx64 "[%s]", row->name, pc - row->va,
                           n->module);
}
