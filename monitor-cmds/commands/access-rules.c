/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka access rules: the functions of the kernel whose accesses are judged
 * otherwise than those of other code, one line a function.
 *
 * Called through mc_run(). kalloc-tracer looks the functions up
 * (kt-access.h). No locks.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

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

typedef struct RuleRow {
    uint64_t va, size;
    const char *class, *function, *rule;
    const char *columns;
} RuleRow;

MC_WHEN(has_columns)
{
    return *((const RuleRow *)row)->columns;
}

static const McObject rule_object = MC_LINE_OBJECT("access_rule",
    "ka access rules: a function",
    MC_COLUMN(RuleRow, va, POINTER, "%", "its code"),
    MC_COLUMN(RuleRow, size, NUMBER, NULL, "bytes of its code"),
    MC_COLUMN(RuleRow, class, WORD, " %-9", "its class"),
    MC_COLUMN(RuleRow, function, TEXT, " %", "its name"),
    MC_COLUMN(RuleRow, rule, TEXT, NULL,
              "the name in the table, which * and clones may differ from"),
    MC_COLUMN(RuleRow, columns, TEXT, NULL,
              "what is known of it, as in a file of access rules"),
    MC_KEY(NULL, RuleRow, columns, TEXT, " %", NULL, .when = has_columns));

static void print_function(McOut *out, const GsKernel *k,
                           const KtCodeFunction *f)
{
    g_autofree char *columns = columns_of(f->row);
    GsSymbol sym;
    const char *name = gs_kernel_symbolize(k, f->start, &sym) ? sym.name
                                                              : f->row->name;

    mc_print(out, &rule_object, &(RuleRow) {
        f->start, f->end - f->start, kt_code_class_name(f->row->class), name,
        f->row->name, *columns ? columns + 1 : "" });
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

typedef struct SumRow {
    const unsigned *n_of;
    unsigned missing;
} SumRow;

MC_GETTER(count)
{
    v->u = ((const SumRow *)row)->n_of[c->at];
    return true;
}

#define CLASS(key_, class_, text_) \
    MC_GET(key_, get_count, NUMBER, text_, "functions of this class", \
           .at = KT_CODE_##class_)

static const McObject sum_object = MC_LINE_OBJECT("access_rules",
    "ka access rules, after the functions",
    CLASS("allocator", ALLOCATOR, "% allocator"),
    CLASS("range", RANGE, ", % range"),
    CLASS("leaf", LEAF, ", % leaf"),
    CLASS("overread", OVERREAD, ", % overread"),
    CLASS("loads_ok", LOADS_OK, ", % loads-ok"),
    MC_COLUMN(SumRow, missing, NUMBER, ", % missing",
              "number of access_missing"));

typedef struct MissingRow {
    const char *from, *names;
} MissingRow;

MC_WHEN(is_of_file)
{
    return !strcmp(((const MissingRow *)row)->from, "file");
}

static const McObject missing_object = MC_LINE_OBJECT("access_missing",
    "ka access rules, last: names that the kernel does not have",
    MC_COLUMN(MissingRow, from, WORD, NULL,
              "built-in, or file for access-rules="),
    MC_COLUMN(MissingRow, names, TEXT, "missing: %", "the names"),
    MC_ONLY_TEXT(", of access-rules=", .when = is_of_file));

MC_OBJECTS(mc_access_rules_objects, &rule_object, &sum_object, &missing_object);

static void print_sum(McOut *out, const KtCodeClasses *c, const unsigned *n_of)
{
    unsigned missing = 0;

    while (kt_code_classes_missing(c, missing)) {
        missing++;
    }
    mc_print(out, &sum_object, &(SumRow) { n_of, missing });
}

static void print_all_missing(McOut *out, const KtCodeClasses *c)
{
    const char *names;

    for (unsigned i = 0; (names = kt_code_classes_missing(c, i)); i++) {
        mc_print(out, &missing_object, &(MissingRow) { "built-in", names });
    }
    for (unsigned i = 0; (names = kt_code_classes_unused(c, i)); i++) {
        mc_print(out, &missing_object, &(MissingRow) { "file", names });
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
