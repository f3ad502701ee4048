/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka type: print what struct is in a block, and how this is known.
 *
 * Called through mc_run(). If neither the block's cache nor its stack says it,
 * all words that have the block's address are searched; the VM is stopped or
 * paused meanwhile. The tracer's lock is held only while blocks are copied.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

#include <string.h>

/* Add what the words that point to the block's start say. A search that is not
 * possible is a remark only. */
static void add_pointers(McOut *out, const KtObjects *o, const KtBlock *b,
                         GArray *types)
{
    McProgress progress = { out, true, g_get_monotonic_time() };
    KtLeakPlan plan = {
        .vm = o->vm, .kernel = o->kernel, .progress = mc_on_progress,
        .opaque = &progress,
    };
    g_autoptr(GError) err = NULL;
    g_autoptr(GArray) refs = NULL;
    uint64_t more, bytes;

    if (!kt_refs(o->tracer, &plan, b->va, b->va, &refs, &more, &bytes, &err)) {
        mc_remarkf(out, "pointers to the block were not searched: %s",
                   err->message);
        return;
    }
    for (unsigned i = 0; i < refs->len; i++) {
        const KtRef *r = &g_array_index(refs, KtRef, i);

        if (r->place == KT_PLACE_BLOCK) {
            kt_block_types_add(o, types, b, &r->owner, r->va - r->owner.va);
        }
    }
}

static char *describe(const KtBlockType *t, const char *member, uint64_t at)
{
    static const char *const how[] = {
        [KT_TYPE_BY_CACHE] = "the cache %s has only these",
        [KT_TYPE_BY_FUNCTION] = ("%s(), which allocated the block, returns "
                                 "a pointer to one"),
        [KT_TYPE_BY_POINTER] = "%s points to the block",
    };
    const char *by = strchr(how[t->source], '%');
    GString *s = g_string_new("struct ");

    mc_put_word(s, t->name);
    g_string_append_printf(s, "%s, %" PRIu32 " bytes: %.*s", t->sure ? "" : "?",
                           t->size, (int)(by - how[t->source]),
                           how[t->source]);
    mc_put_word(s, t->by);
    g_string_append(s, by + strlen("%s"));
    if (member) {
        g_string_append_printf(s, "; +%" PRIx64 " is ", at);
        mc_put_word(s, member);
    }
    return g_string_free(s, FALSE);
}

typedef struct TypeRow {
    const KtBlockType *t;
    const char *by, *member;
} TypeRow;

static const McObject type_object = MC_LINE_OBJECT("block_type",
    "ka type, after the block: a struct that it may be",
    MC_VIA("name", TypeRow, t, name, CHARS, NULL, "its name"),
    MC_VIA("size", TypeRow, t, size, NUMBER, NULL, "its bytes"),
    MC_COLUMN(TypeRow, by, TEXT, NULL, "cache, function or pointer"),
    MC_VIA("source", TypeRow, t, by, CHARS, NULL, "its name"),
    MC_VIA("sure", TypeRow, t, sure, YES_NO, NULL, "yes or no"),
    MC_COLUMN(TypeRow, member, TEXT, NULL, "the one at the address",
              .flags = MC_OMIT));

MC_OBJECTS(mc_type_objects, &type_object);

static void print_type(McOut *out, const GsKernel *k, const KtBlockType *t,
                       uint64_t at)
{
    g_autofree char *member = at && at < t->size ?
                              gs_kernel_member_at(k, t->name, at) : NULL;
    g_autofree char *text = describe(t, member, at);

    mc_print_line(out, &type_object, &(TypeRow) {
        t, kt_type_source_name(t->source), member }, text);
}

static bool find_block(const McOut *out, uint64_t va, KtBlock *b,
                       GError **errp)
{
    return mc_find_block(out, va, b) ||
           mc_fail_unknown(errp, "%016" PRIx64 " is in no block; ka whatis %"
                           PRIx64 " says what is known", va, va);
}

bool mc_cmd_type(McOut *out, const McArgs *args, GError **errp)
{
    KtObjects o = mc_objects(out);
    g_autoptr(GArray) types = NULL;
    uint64_t va = args->va.lo;
    KtBlock b;

    if (!find_block(out, va, &b, errp)) {
        return false;
    }
    mc_print(out, &mc_block_object, &(McBlockRow) {
        .block = &b, .hit = true, .offset = va - b.va });
    if (!o.kernel || !gs_kernel_has_btf(o.kernel)) {
        mc_remark(out, "unknown: the kernel's types are not known");
        return true;
    }
    types = kt_block_types(&o, &b);
    if (!types->len && o.vm && b.state == KT_BLOCK_ALLOCATED) {
        add_pointers(out, &o, &b, types);
    }
    for (unsigned i = 0; i < types->len; i++) {
        print_type(out, o.kernel, &g_array_index(types, KtBlockType, i),
                   va - b.va);
    }
    if (!types->len) {
        mc_remark(out, "unknown: no cache, function or pointer says "
                  "what is in the block");
    }
    return true;
}
