/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka access rules: the functions of the kernel whose accesses are judged
 * otherwise than those of other code, one line a function.
 *
 * Called through mc_run(). kalloc-tracer looks the functions up
 * (kt-access-code.h). No locks.
 */
#include "monitor-cmds/commands/commands.h"

/* Columns of a line, as in a file of access rules. */
static char *columns_of(const KtCodeRow *row)
{
    g_autoptr(GString) s = g_string_new(NULL);

    if (row->class == KT_CODE_OVERREAD) {
        g_string_append_printf(s, " past=%u before=%u", row->max_past,
                               row->max_before);
    }
    if (row->dst != KT_NO_ARG) {
        g_string_append_printf(s, " dst=%d", row->dst);
    }
    if (row->src != KT_NO_ARG) {
        g_string_append_printf(s, " src=%d", row->src);
    }
    if (row->n != KT_NO_ARG) {
        g_string_append_printf(s, " n=%d", row->n);
    } else if (row->unit) {
        g_string_append_printf(s, " size=%u", row->unit);
    }
    return g_string_free(g_steal_pointer(&s), FALSE);
}

static void print_function(McOut *out, const GsKernel *k,
                           const KtCodeFunction *f)
{
    g_autofree char *columns = columns_of(f->row);
    g_autofree char *text = NULL;
    const char *class = kt_code_class_name(f->row->class);
    GsSymbol sym;
    const char *name = gs_kernel_symbolize(k, f->start, &sym) ? sym.name
                                                              : f->row->name;

    text = g_strdup_printf("%016" PRIx64 " %-9s %s%s", f->start, class, name,
                           columns);
    out->format->sum(out, MC_OBJ_ACCESS_RULE, (const McStat[]) {
        { .key = "va", .u = f->start, .hex = true },
        { .key = "size", .u = f->end - f->start },
        { .key = "class", .s = class },
        { .key = "function", .s = name },
        { .key = "rule", .s = f->row->name },
        { .key = "columns", .s = *columns ? columns + 1 : "" },
    }, 6, text);
}

static void print_functions(McOut *out, const GsKernel *k,
                            const KtCodeClasses *c, unsigned *n_of)
{
    const KtCodeFunction *f;

    for (unsigned i = 0; (f = kt_code_classes_nth(c, i)); i++) {
        n_of[f->row->class]++;
        if (!out->closed) {
            print_function(out, k, f);
        }
    }
}

/* How many functions there are of each class. */
static void print_sum(McOut *out, const KtCodeClasses *c, const unsigned *n_of)
{
    static const char *const keys[KT_CODE__COUNT] = {
        [KT_CODE_ALLOCATOR] = "allocator", [KT_CODE_RANGE] = "range",
        [KT_CODE_LEAF] = "leaf", [KT_CODE_OVERREAD] = "overread",
        [KT_CODE_LOADS_OK] = "loads_ok",
    };
    McStat figures[KT_CODE__COUNT];
    g_autoptr(GString) text = g_string_new(NULL);
    unsigned n = 0, missing = 0;

    for (unsigned i = KT_CODE_PLAIN + 1; i < KT_CODE__COUNT; i++) {
        figures[n++] = (McStat) { .key = keys[i], .u = n_of[i] };
        g_string_append_printf(text, "%u %s, ", n_of[i],
                               kt_code_class_name(i));
    }
    while (kt_code_classes_missing(c, missing)) {
        missing++;
    }
    figures[n++] = (McStat) { .key = "missing", .u = missing };
    g_string_append_printf(text, "%u missing", missing);
    out->format->sum(out, MC_OBJ_ACCESS_RULES, figures, n, text->str);
}

static void print_missing(McOut *out, const char *from, const char *names,
                          const char *text)
{
    out->format->sum(out, MC_OBJ_ACCESS_MISSING, (const McStat[]) {
        { .key = "from", .s = from }, { .key = "names", .s = names },
    }, 2, text);
}

static void print_all_missing(McOut *out, const KtCodeClasses *c)
{
    const char *names;

    for (unsigned i = 0; (names = kt_code_classes_missing(c, i)); i++) {
        g_autofree char *text = g_strdup_printf("missing: %s", names);

        print_missing(out, "built-in", names, text);
    }
    for (unsigned i = 0; (names = kt_code_classes_unused(c, i)); i++) {
        g_autofree char *text =
            g_strdup_printf("missing: %s, of access-rules=", names);

        print_missing(out, "file", names, text);
    }
}

bool mc_cmd_access_rules(McOut *out, const McArgs *args, GError **errp)
{
    const GsKernel *k = mc_symbols(out->ctx);
    g_autoptr(KtCodeClasses) c = NULL;
    unsigned n_of[KT_CODE__COUNT] = { 0 };

    if (!k) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "the kernel is not known yet, so its functions are not");
        return false;
    }
    c = kt_access_code(out->ctx->tracer, k);
    print_functions(out, k, c, n_of);
    print_sum(out, c, n_of);
    print_all_missing(out, c);
    return true;
}
