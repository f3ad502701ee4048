/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The row of a module that was unloaded: see commands.h. */
#include "monitor-cmds/commands/commands.h"

/* Append ", <n> <what>"; nothing if @n is 0. */
static void put_part(GString *s, uint64_t n, const char *what)
{
    if (n) {
        g_string_append_printf(s, ", %" PRIu64 " %s", n, what);
    }
}

static void put_blocks(GString *s, uint64_t n, const char *what,
                       uint64_t bytes)
{
    g_string_append_printf(s, "%" PRIu64 " %s %s, %" PRIu64 " bytes", n,
                           n == 1 ? "block" : "blocks", what, bytes);
}

/* Print what was not freed: as one number, or, if it is known what is still in
 * use, as two. */
static void put_unfreed(GString *s, const McModuleRow *m)
{
    if (m->blocks && !m->classified) {
        put_blocks(s, m->blocks, "not freed", m->bytes);
        return;
    }
    if (m->leaked) {
        put_blocks(s, m->leaked, "leaked", m->leaked_bytes);
    } else {
        g_string_append(s, m->report->not_kept ? "no leaks listed" :
                                                 "no leaks");
    }
    if (m->kept) {
        g_string_append(s, "; ");
        put_blocks(s, m->kept, "still in use", m->kept_bytes);
    }
}

/* (owned) */
static char *module_text(const McModuleRow *m)
{
    const KtModuleReport *r = m->report;
    GString *s = g_string_new("module ");

    mc_put_word(s, r->name);
    g_string_append_printf(s, " unloaded@%" PRIu64 "us: ", r->us);
    put_unfreed(s, m);
    if (m->filtered && m->blocks) {
        g_string_append_printf(s, ", %" PRIu64 " match the options",
                               m->matching);
    }
    put_part(s, m->withdrawn, "freed since");
    put_part(s, r->bad_frees, "freed without an allocation");
    put_part(s, r->unsure, "may have been freed unseen");
    put_part(s, r->not_kept, "not listed, no memory");
    if (m->no_pages) {
        g_string_append(s, " (pages are not looked at: pages=on)");
    }
    return g_string_free(s, FALSE);
}

#define M(key_, member_, help_) \
    MC_VIA(key_, McModuleRow, report, member_, NUMBER, NULL, help_)
#define N(member_, help_, ...) \
    MC_COLUMN(McModuleRow, member_, NUMBER, NULL, help_, __VA_ARGS__)

MC_GETTER(pages)
{
    v->u = !((const McModuleRow *)row)->no_pages;
    return true;
}

const McObject mc_module_object = MC_OBJECT("module",
    "ka leak module, before its blocks",
    MC_VIA("name", McModuleRow, report, name, TEXT, NULL, "its name"),
    MC_VIA("loaded_us", McModuleRow, report, loaded_us, NUMBER, NULL,
           "null if the load was not recorded", .flags = MC_ZERO),
    M("id", id, "number of the report"),
    M("unloaded_us", us, "time of the unload"),
    N(blocks, "not freed until now"),
    N(bytes, "their bytes"),
    N(withdrawn, "freed since the unload"),
    M("bad_frees", bad_frees, "frees of addresses that were not allocated"),
    M("unsure", unsure, "blocks that may have been freed unseen"),
    M("not_listed", not_kept,
      "blocks that are only counted, because the memory limit was reached"),
    N(leaked, "blocks to which nothing in use refers (these four only with "
      "the memory of a VM)", MC_IF(McModuleRow, classified)),
    N(leaked_bytes, "their bytes", MC_IF(McModuleRow, classified)),
    N(kept, "blocks that are still in use", MC_IF(McModuleRow, classified)),
    N(kept_bytes, "their bytes", MC_IF(McModuleRow, classified)),
    N(matching, "those of blocks that match the options",
      MC_IF(McModuleRow, filtered)),
    MC_GET("pages", get_pages, NUMBER, NULL,
           "1 if pages of the page allocator count, 0 if they are not looked "
           "at"));

void mc_print_module(McOut *out, const McModuleRow *m)
{
    g_autofree char *text = module_text(m);

    mc_print_line(out, &mc_module_object, m, text);
}
