/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heap profile: see export.h. */
#include "monitor-cmds/export/export.h"

#include <string.h>

typedef struct FrameKey {
    uint64_t pc;
    const char *symbol;     /* interned: equal texts have the same pointer */
} FrameKey;

static guint hash_key(gconstpointer p)
{
    const FrameKey *k = p;
    const uint64_t mixed = (k->pc ^ (uintptr_t)k->symbol) *
                           0x9e3779b97f4a7c15ull;

    return (guint)(mixed >> 32);
}

static gboolean equal_keys(gconstpointer a, gconstpointer b)
{
    const FrameKey *x = a, *y = b;

    return x->pc == y->pc && x->symbol == y->symbol;
}

McHeapProfile *mc_heap_profile_new(void)
{
    McHeapProfile *p = g_new0(McHeapProfile, 1);

    p->frame = g_array_new(FALSE, TRUE, sizeof(McProfileFrame));
    p->path = g_array_new(FALSE, FALSE, sizeof(unsigned));
    p->stack = g_array_new(FALSE, TRUE, sizeof(McProfileStack));
    p->range = g_array_new(FALSE, TRUE, sizeof(McProfileRange));
    p->note = g_ptr_array_new_with_free_func(g_free);
    p->frame_ids = g_hash_table_new_full(hash_key, equal_keys, g_free, NULL);
    p->names = g_string_chunk_new(4096);
    return p;
}

void mc_heap_profile_free(McHeapProfile *p)
{
    if (!p) {
        return;
    }
    g_array_unref(p->frame);
    g_array_unref(p->path);
    g_array_unref(p->stack);
    g_array_unref(p->range);
    g_ptr_array_unref(p->note);
    g_hash_table_unref(p->frame_ids);
    g_string_chunk_free(p->names);
    g_free(p);
}

/* ---- names --------------------------------------------------------------- */

/* Append untrusted bytes: those that are not in [@least, 0x7e] become \xNN. A
 * text that is too long ends in "...". */
static void put_clean(GString *to, const char *text, size_t len, int least)
{
    const size_t end = to->len + MC_PROFILE_NAME_MAX;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = text[i];

        if (to->len + 4 > end - 3) {
            g_string_append(to, "...");
            return;
        }
        if (c >= least && c < 0x7f) {
            g_string_append_c(to, c);
        } else {
            g_string_append_printf(to, "\\x%02x", c);
        }
    }
}

char *mc_profile_clean(const char *text)
{
    GString *s = g_string_new(NULL);

    put_clean(s, text, strlen(text), 0x20);
    return g_string_free(s, FALSE);
}

/* Return (borrowed from @p) a name without blanks; "?" if it is empty, because
 * readers take an empty name for none. Equal names have the same pointer. */
static const char *intern(McHeapProfile *p, const char *text, size_t len)
{
    g_autoptr(GString) s = g_string_new(NULL);

    put_clean(s, text, len, 0x21);
    return g_string_chunk_insert_const(p->names, *s->str ? s->str : "?");
}

void mc_heap_profile_note(McHeapProfile *p, const char *format, ...)
{
    g_autoptr(GString) s = g_string_new(NULL);
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, format);
    text = g_strdup_vprintf(format, ap);
    va_end(ap);
    put_clean(s, text, strlen(text), 0x20);
    p->missing += g_str_has_prefix(text, "missing: ");
    g_ptr_array_add(p->note, g_strdup(s->str));
}

void mc_heap_profile_set_banner(McHeapProfile *p, const char *banner)
{
    g_autoptr(GString) s = g_string_new(NULL);

    put_clean(s, banner, strlen(banner), 0x20);
    p->banner = g_string_chunk_insert_const(p->names, s->str);
}

/* ---- frames -------------------------------------------------------------- */

/* Find the last "+0x<hex>" that ends the text, or that "[" follows. Return
 * NULL if there is none. A name may contain all of these characters. */
static const char *find_offset(const char *symbol, uint64_t *offset,
                               const char **rest)
{
    for (const char *at = symbol + strlen(symbol); at-- > symbol;) {
        char *end;

        if (!g_str_has_prefix(at, "+0x") || !g_ascii_isxdigit(at[3])) {
            continue;
        }
        *offset = g_ascii_strtoull(at + 3, &end, 16);
        *rest = end;
        if (!*end || (*end == '[' && g_str_has_suffix(end, "]"))) {
            return at;
        }
    }
    return NULL;
}

static void name_frame(McHeapProfile *p, McProfileFrame *f, const char *symbol)
{
    const char *rest = NULL;
    const char *at = symbol ? find_offset(symbol, &f->offset, &rest) : NULL;
    char hex[24];

    f->named = at > symbol;
    if (f->named) {
        f->function = intern(p, symbol, at - symbol);
        f->module = *rest ? intern(p, rest + 1, strlen(rest) - 2) : NULL;
        return;
    }
    f->offset = 0;
    g_snprintf(hex, sizeof(hex), "0x%016" PRIx64, f->pc);
    f->function = f->pc ? intern(p, hex, strlen(hex)) :
                  g_string_chunk_insert_const(p->names, "[no backtrace]");
}

unsigned mc_heap_profile_frame(McHeapProfile *p, uint64_t pc,
                               const char *symbol)
{
    const FrameKey key = {
        pc, symbol ? g_string_chunk_insert_const(p->names, symbol) : NULL,
    };
    McProfileFrame f = { .pc = pc, .symbol = key.symbol };
    gpointer id;

    if (g_hash_table_lookup_extended(p->frame_ids, &key, NULL, &id)) {
        return GPOINTER_TO_UINT(id);
    }
    name_frame(p, &f, symbol);
    g_array_append_val(p->frame, f);
    g_hash_table_insert(p->frame_ids, g_memdup2(&key, sizeof(key)),
                        GUINT_TO_POINTER(p->frame->len - 1));
    return p->frame->len - 1;
}

void mc_heap_profile_set_at(McHeapProfile *p, unsigned id, uint64_t at)
{
    McProfileFrame *f = &g_array_index(p->frame, McProfileFrame, id);

    f->at = !f->at || f->at == at ? at : 1;     /* no code is there */
}

void mc_heap_profile_set_line(McHeapProfile *p, unsigned id, const char *file,
                              unsigned line)
{
    McProfileFrame *f = &g_array_index(p->frame, McProfileFrame, id);

    f->file = intern(p, file, strlen(file));
    f->line = line;
}

unsigned mc_heap_profile_label(McHeapProfile *p, const char *name)
{
    unsigned id = p->frame->len;
    McProfileFrame f = { .function = intern(p, name, strlen(name)) };

    g_array_append_val(p->frame, f);
    return id;
}

void mc_put_frame(GString *to, const McProfileFrame *f, McFrames frames)
{
    g_string_append(to, f->function);
    if (frames == MC_FRAMES_OFFSET && f->named) {
        g_string_append_printf(to, "+0x%" PRIx64, f->offset);
    }
    if (frames == MC_FRAMES_LINE && f->file) {
        g_string_append_printf(to, " %s:%u", f->file, f->line);
    }
    if (f->module) {
        g_string_append_printf(to, " [%s]", f->module);
    }
}

/* ---- stacks -------------------------------------------------------------- */

McProfileStack *mc_heap_profile_stack(McHeapProfile *p, const unsigned *frame,
                                      unsigned n)
{
    McProfileStack s = { .first = p->path->len, .n = MAX(n, 1) };

    if (n) {
        g_array_append_vals(p->path, frame, n);
    } else {
        unsigned none = mc_heap_profile_frame(p, 0, NULL);

        g_array_append_val(p->path, none);
    }
    g_array_append_val(p->stack, s);
    return &g_array_index(p->stack, McProfileStack, p->stack->len - 1);
}

void mc_profile_set(McProfileStack *s, McTopId id, int64_t value)
{
    s->value[id] = value;
    s->known |= 1u << id;
}

void mc_heap_profile_range(McHeapProfile *p, const char *name, uint64_t start,
                           uint64_t last)
{
    McProfileRange r = { intern(p, name, strlen(name)), start, last };

    if (start <= last) {
        g_array_append_val(p->range, r);
    }
}
