/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Types of one module, see module-read.h. */
#include "guest-symbols/modules/module-read.h"
#include "guest-symbols/modules/modules-internal.h"
#include "guest-symbols/types/btf.h"

#define SECTION_MAX (8u << 20)  /* bytes of one section */
/* Parsed types take about so many times the bytes of their section. */
#define PARSED      3

static const char no_types[] = "this module has no types (BTF)";
static const char unread[] =
    "the types of this module could not be read in guest memory";
static const char too_large[] = "the types of this module are too large";
static const char senseless[] =
    "the types of this module make no sense, or are those of another kernel";

void gs_module_types_read(GsModuleTypes *t, const GsMem *mem,
                          const GsModuleTypesAt *at)
{
    *t = (GsModuleTypes) { .why = no_types };
    if (!at->raw || !at->raw_len) {
        return;
    }
    if (at->raw_len > SECTION_MAX || at->base_len > SECTION_MAX) {
        t->why = too_large;
        return;
    }
    t->why = NULL;
    t->raw = gs_module_dup(mem, at->raw, at->raw_len, unread, NULL);
    t->raw_len = at->raw_len;
    if (at->base && at->base_len) {
        t->base = gs_module_dup(mem, at->base, at->base_len, unread, NULL);
        t->base_len = at->base_len;
    }
    if (!t->raw || !t->base != !t->base_len) {
        gs_module_types_clear(t, unread);
    }
}

void gs_module_types_clear(GsModuleTypes *t, const char *why)
{
    g_free(t->raw);
    g_free(t->base);
    gs_btf_free(t->btf);
    *t = (GsModuleTypes) { .why = why };
}

bool gs_module_types_is_none(const GsModuleTypes *t)
{
    return !t->why || t->why == no_types;
}

void gs_module_types_move(GsModuleTypes *to, GsModuleTypes *from)
{
    *to = *from;
    *from = (GsModuleTypes) { .why = from->why };
}

size_t gs_module_types_bytes(const GsModuleTypes *t)
{
    return t->btf ? gs_btf_bytes(t->btf) : t->raw_len * PARSED + t->base_len;
}

GsBtf *gs_module_types_parse(GsModuleTypes *t, GsBtf *kernel)
{
    GsBtf *btf;

    if (t->btf || !t->raw) {
        return t->btf;
    }
    btf = gs_btf_new_split(kernel, t->raw, t->raw_len, t->base, t->base_len,
                           NULL);
    gs_module_types_clear(t, btf ? NULL : senseless);
    t->btf = btf;
    return btf;
}
