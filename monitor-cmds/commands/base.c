/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka base: where the kernel and its parts are, one line a range.
 *
 * Called through mc_run(). kalloc-tracer finds the ranges (kt-objects.h). No
 * locks.
 */
#include "monitor-cmds/commands/commands.h"

/** struct Row - @range: (nullable) NULL: it is not known, or there is none;
 *  @note: (nullable) */
typedef struct Row {
    const char *name;
    const KtBaseRange *range;
    const char *note;
} Row;

static const McObject object = MC_LINE_OBJECT("range", "ka base",
    MC_COLUMN(Row, name, WORD, "%-8", "what it is"),
    MC_VIA("start", Row, range, start, POINTER, " %",
           "first byte, if it is known", .flags = MC_OMIT),
    MC_VIA("last", Row, range, last, POINTER, "-%",
           "last byte, if it is known", .flags = MC_ZERO | MC_OMIT),
    MC_COLUMN(Row, note, TEXT, " %",
              "more about it, or why it is not known", .flags = MC_OMIT));

MC_OBJECTS(mc_base_objects, &object);

static void print_line(McOut *out, const char *name, const KtBaseRange *range,
                       const char *text)
{
    mc_print(out, &object, &(Row) { name, range, *text ? text : NULL });
}

/* ---- what is said of a range --------------------------------------------- */

static void put_image(const KtObjects *o, const KtBaseRange *range,
                      GString *to)
{
    uint64_t slide;

    if (kt_base_slide(o, &slide)) {
        g_string_append_printf(to, "slide %" PRIx64 ", ", slide);
    }
    g_string_append_printf(to, "%s, symbols: %s",
                           gs_kernel_is_memory(o->kernel) ? "found in memory" :
                           "read from a file",
                           gs_kernel_symbols_from(o->kernel));
    if (!range->last) {
        g_string_append(to, ", end not known: no symbol _end");
    }
}

static void put_pages(const KtObjects *o, GString *to)
{
    uint32_t size;

    g_string_append(to, "struct pages of physical 0 on");
    if (gs_kernel_type_size(o->kernel, "page", &size)) {
        g_string_append_printf(to, ", %u bytes each", size);
    }
}

static char *note_of(const KtObjects *o, KtBaseId id,
                     const KtBaseRange *range)
{
    GString *to = g_string_new(NULL);

    if (id == KT_BASE_IMAGE) {
        put_image(o, range, to);
    } else if (id == KT_BASE_DIRECT) {
        g_string_append(to, "of physical 0 on");
    } else if (id == KT_BASE_PAGES) {
        put_pages(o, to);
    }
    return g_string_free(to, FALSE);
}

static void print_ranges(McOut *out, const KtObjects *o)
{
    for (unsigned i = 0; i < KT_BASE__COUNT; i++) {
        g_autofree char *text = NULL;
        KtBaseRange range;
        const char *why;
        bool known = kt_base_range(o, i, &range, &why);

        text = known ? note_of(o, i, &range) :
                       g_strconcat("not known: ", why, NULL);
        print_line(out, kt_base_name(i), known ? &range : NULL, text);
    }
}

static void print_percpu(McOut *out, const KtObjects *o)
{
    unsigned n = kt_objects_n_cpus(o), found = 0;
    KtBaseRange range;

    for (unsigned cpu = 0; cpu < n && !out->closed; cpu++) {
        g_autofree char *text = g_strdup_printf("cpu %u", cpu);

        if (kt_base_percpu(o, cpu, &range)) {
            print_line(out, "percpu", &range, text);
            found++;
        }
    }
    if (!found) {
        print_line(out, "percpu", NULL, !o->vm ?
                   "not known: a journal has no memory" :
                   "not known: the kernel has no symbol __per_cpu_offset, or "
                   "the VM runs");
    }
}

/* (owned) Say where types are from. A stored kernel may have had some. */
static char *types_text(const McContext *ctx, const GsKernel *k)
{
    const char *from = gs_kernel_types_from(k);

    if (gs_kernel_has_types(k)) {
        return g_strdup_printf("%s, %u types", from, gs_kernel_n_types(k));
    }
    return ctx->journal ? g_strdup_printf("%s; not stored in a journal", from) :
                          g_strdup("none; see types=FILE");
}

/* Print the id of the kernel's build, if it is in memory. */
static void print_build_id(McOut *out, const KtObjects *o)
{
    char id[KT_BUILD_ID_SIZE];

    if (kt_base_build_id(o, id)) {
        print_line(out, "build-id", NULL, id);
    }
}

static void print_counts(McOut *out, const GsKernel *k)
{
    g_autofree char *types = types_text(out->ctx, k);
    g_autofree char *modules =
        g_strdup_printf("%zu loaded, %u of them with types",
                        gs_kernel_n_modules(k), gs_kernel_n_typed_modules(k));

    print_line(out, "types", NULL, types);
    print_line(out, "modules", NULL, modules);
}

static void print_areas(McOut *out, const GsModule *m)
{
    for (unsigned i = 0; i < m->n && !out->closed; i++) {
        const KtBaseRange range = { m->area[i].start, m->area[i].end - 1 };
        g_autoptr(GString) text = g_string_new(NULL);

        mc_put_word(text, m->name);
        g_string_append(text, m->live ? "" : " unloaded");
        print_line(out, "module", &range, text->str);
    }
}

/* Print where each module is, and was. */
static void print_modules(McOut *out, const GsKernel *k)
{
    GsModule m;

    for (unsigned i = 0; gs_kernel_nth_module(k, i, &m) && !out->closed; i++) {
        print_areas(out, &m);
    }
}

bool mc_cmd_base(McOut *out, const McArgs *args, GError **errp)
{
    const KtObjects o = mc_objects(out);

    if (!o.kernel) {
        return mc_fail_unknown(errp, "%s", out->ctx->kernel ?
                               "the running kernel is not recognised yet" :
                               mc_why_no_kernel(out->ctx));
    }
    print_ranges(out, &o);
    print_percpu(out, &o);
    print_build_id(out, &o);
    print_counts(out, o.kernel);
    if (out->verbose) {
        print_modules(out, o.kernel);
    }
    return true;
}
