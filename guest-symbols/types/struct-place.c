/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of structs by their paths, see struct-place.h. */
#include "guest-symbols/types/struct-place.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/types-internal.h"

#include <stdlib.h>

#define PARTS_MAX   16          /* of a path */
#define OFFSET_MAX  (1u << 30)  /* bytes from a pointer */

/* A path under way. @word: the expression so far, for errors. @at: where the
 * member is, from the last pointer on */
typedef struct Way {
    const GsBtf *btf;
    const GsBtfRecords *rec;
    GString *word;
    GString *path;              /* behind the last pointer */
    const char *name;
    GsStructAt at;
    char *pointer[GS_STRUCT_POINTERS];      /* owned */
    GsBtfPlace place;
} Way;

G_GNUC_PRINTF(3, 4)
static bool fail(const Way *w, GError **errp, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    return gs_fail(errp, GS_ERROR_FORMAT, "\"%s\": %s", w->word->str, text);
}

static bool is_pointer(const Way *w, GsBtfType *t)
{
    uint32_t id = w->place.type;

    return gs_btf_real(w->rec, &id, t) && t->kind == GS_BTF_PTR;
}

static bool follow(Way *w, const GsBtfType *pointer, GError **errp)
{
    if (w->at.n == GS_STRUCT_POINTERS) {
        return fail(w, errp, "more than %d pointers", GS_STRUCT_POINTERS);
    }
    w->pointer[w->at.n] = g_strdup(w->word->str);
    w->at.pointer[w->at.n++] = w->place.bit / 8;
    w->place = (GsBtfPlace) { .type = pointer->word };
    g_string_truncate(w->path, 0);
    return true;
}

static bool in_range(Way *w, GError **errp)
{
    return w->place.bit / 8 <= OFFSET_MAX ||
           fail(w, errp, "this is more than %u bytes away", OFFSET_MAX);
}

static bool fail_member(const Way *w, const char *name, GError **errp)
{
    g_autofree char *near = gs_struct_member_near(w->btf, w->place.type, name);
    g_autoptr(GString) in = g_string_new(NULL);

    gs_type_declare(in, w->rec, w->place.type, NULL);
    return fail(w, errp, "%s has no member %s%s%s", in->str, name,
                *near ? "; near: " : "", near);
}

static bool enter_member(Way *w, const char *name, GError **errp)
{
    GsBtfType t;

    if (w->place.bits) {
        return fail(w, errp, "a bit field has no members");
    }
    while (is_pointer(w, &t)) {
        if (!follow(w, &t, errp)) {
            return false;
        }
    }
    g_string_append_printf(w->word, ".%s", name);
    if (!gs_btf_find_path(w->btf, name, &w->place)) {
        return fail_member(w, name, errp);
    }
    g_string_append_printf(w->path, "%s%s", w->path->len ? "." : "", name);
    w->name = name;
    return in_range(w, errp);
}

/* Go to an element: of an array, or of an array that a pointer leads to. */
static bool enter_element(Way *w, uint32_t i, GError **errp)
{
    uint32_t id = w->place.type, size;
    GsBtfType t;

    if (is_pointer(w, &t)) {
        if (!follow(w, &t, errp)) {
            return false;
        }
    } else if (w->place.bits || !gs_btf_real(w->rec, &id, &t) ||
               t.kind != GS_BTF_ARRAY) {
        return fail(w, errp, "this is no array");
    } else if (gs_btf_word(&t, 2) && i >= gs_btf_word(&t, 2)) {
        return fail(w, errp, "the array has %u elements", gs_btf_word(&t, 2));
    } else {
        w->place.type = gs_btf_word(&t, 0);
    }
    if (!gs_btf_size(w->rec, w->place.type, &size)) {
        return fail(w, errp, "the elements have no size");
    }
    w->place.bit += (uint64_t)i * size * 8;
    g_string_append_printf(w->word, "[%u]", i);
    g_string_append_printf(w->path, "[%u]", i);
    return in_range(w, errp);
}

/* Go through the [i] behind a name. */
static bool enter_elements(Way *w, const char *text, GError **errp)
{
    while (*text) {
        char *end = NULL;
        uint64_t i = *text == '[' && g_ascii_isdigit(text[1]) ?
                     g_ascii_strtoull(text + 1, &end, 0) : UINT64_MAX;

        if (i > UINT32_MAX || *end != ']') {
            return fail(w, errp, "\"%s\" is no index; [3] would be one", text);
        }
        if (!enter_element(w, i, errp)) {
            return false;
        }
        text = end + 1;
    }
    return true;
}

/* Go through one part of the path: name[i][j]. */
static bool enter(Way *w, char *part, GError **errp)
{
    char *index = strchr(part, '[');
    g_autofree char *indexes = g_strdup(index);

    if (index) {
        *index = 0;
    }
    if (!*part) {
        return fail(w, errp, "a name is missing");
    }
    return enter_member(w, part, errp) &&
           (!indexes || enter_elements(w, indexes, errp));
}

/* Make the result. Its type has to have a size. */
static GsStruct *finish(Way *w, GsBtf *btf, const char *source, GError **errp)
{
    g_autoptr(GString) type = g_string_new(NULL);
    uint32_t size;
    GsStruct *s;

    gs_type_declare(type, w->rec, w->place.type, NULL);
    if (!gs_btf_size(w->rec, w->place.type, &size)) {
        fail(w, errp, "%s has no size", type->str);
        return NULL;
    }
    s = g_new0(GsStruct, 1);
    s->btf = gs_btf_ref(btf);
    s->at = w->at;
    s->at.offset = w->place.bit / 8;
    s->bit = w->place.bit % 8;
    s->bits = MIN(w->place.bits, 64);
    s->id = w->place.type;
    s->size = s->bits ? (s->bit + s->bits + 7u) / 8 : size;
    s->name = g_strdup(w->name);
    s->path = g_strdup(w->path->str);
    memcpy(s->pointer, w->pointer, sizeof(s->pointer));
    s->type = g_strdup(type->str);
    s->source = g_strdup(source);
    return s;
}

GsStruct *gs_struct_new(GsBtf *btf, uint32_t root, const char *word,
                        const char *path, const char *source, GError **errp)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", PARTS_MAX + 1);
    g_autoptr(GString) so_far = g_string_new(word);
    g_autoptr(GString) behind = g_string_new(NULL);
    Way w = {
        .btf = btf, .rec = gs_btf_records(btf), .word = so_far,
        .path = behind, .name = "", .place = { .type = root },
    };
    GsStruct *s;
    bool ok = true;

    if (g_strv_length(parts) > PARTS_MAX) {
        fail(&w, errp, "a path has at most %d names", PARTS_MAX);
        return NULL;
    }
    for (unsigned i = 0; ok && parts[i]; i++) {
        ok = enter(&w, parts[i], errp);
    }
    s = ok ? finish(&w, btf, source, errp) : NULL;
    for (unsigned i = 0; !s && i < w.at.n; i++) {
        g_free(w.pointer[i]);
    }
    return s;
}

void gs_struct_free(GsStruct *s)
{
    if (s) {
        gs_btf_free(s->btf);
        g_free(s->name);
        g_free(s->path);
        for (unsigned i = 0; i < s->at.n; i++) {
            g_free(s->pointer[i]);
        }
        g_free(s->type);
        g_free(s->source);
        g_free(s);
    }
}

const GsStructAt *gs_struct_at(const GsStruct *s)
{
    return &s->at;
}

const char *gs_struct_pointer(const GsStruct *s, unsigned i)
{
    return i < s->at.n ? s->pointer[i] : "";
}

const char *gs_struct_type(const GsStruct *s)
{
    return s->type;
}

const char *gs_struct_source(const GsStruct *s)
{
    return s->source;
}

uint32_t gs_struct_size(const GsStruct *s)
{
    return s->size;
}
