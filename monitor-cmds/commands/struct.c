/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka struct: the definition of a struct, the values of an object, and the names
 * of types.
 *
 * Called through mc_run(). guest-symbols knows the types and makes the text of
 * values, kalloc-tracer copies the object; struct-rows.c prints. The tracer's
 * lock is held for one query at a time.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

#define OPT(id) (1ull << MC_OPT_##id)

/* ---- rows ---------------------------------------------------------------- */

/** struct HeadRow - what is before the members. @cpu: -1 if none is meant;
 *  @block: (nullable) what contains @va; @called: (nullable) its name */
typedef struct HeadRow {
    const char *name, *ctype, *types, *block, *called;
    uint32_t size, offset;
    uint64_t va;
    int64_t cpu;
} HeadRow;

static const McColumn head_columns[] = {
    MC_COLUMN(HeadRow, name, TEXT, NULL, "as typed"),
    MC_COLUMN(HeadRow, ctype, TEXT, NULL, "the type in C"),
    MC_COLUMN(HeadRow, size, NUMBER, NULL, "its bytes"),
    MC_END
};
static const McColumn offset_columns[] = {
    MC_COLUMN(HeadRow, offset, NUMBER, NULL, "of a member"),
    MC_END
};
static const McColumn types_columns[] = {
    MC_COLUMN(HeadRow, types, TEXT, NULL, "where types are from"),
    MC_END
};
static const McColumn va_columns[] = {
    MC_COLUMN(HeadRow, va, HEX, NULL, "address of the object"),
    MC_COLUMN(HeadRow, cpu, NUMBER, NULL, "whose per-CPU memory it is",
              .flags = MC_MOST | MC_OMIT),
    MC_COLUMN(HeadRow, called, TEXT, NULL,
              "name of the object, such as of a dentry", .flags = MC_OMIT),
    MC_COLUMN(HeadRow, block, TEXT, NULL, "what contains va",
              .flags = MC_OMIT),
    MC_END
};
static const McObject definition_object = {
    "struct", "ka struct, before its members",
    { head_columns, offset_columns, types_columns }, .line = true,
};
static const McObject object_object = {
    "struct", "ka struct, before its members",
    { head_columns, types_columns, va_columns }, .line = true,
};

typedef struct LostRow {
    const char *name;
    const char *va;
} LostRow;

static const McObject lost_object = MC_LINE_OBJECT("struct",
    "ka struct, before its members",
    MC_COLUMN(LostRow, name, TEXT, NULL, "as typed"),
    MC_COLUMN(LostRow, va, TEXT, NULL, "not known"));

static const McColumn shown_columns[] = {
    MC_COLUMN(GsStructSum, shown, NUMBER, NULL, "members"),
    MC_END
};
static const McColumn sum_columns[] = {
    MC_COLUMN(GsStructSum, zeros, NUMBER, NULL,
              "members that are zero and not shown"),
    MC_KEY("unreadable", GsStructSum, unknown, NUMBER, NULL,
           "members that are shown without a value"),
    MC_COLUMN(GsStructSum, behind, NUMBER, NULL,
              "members behind the end of the block"),
    MC_END
};
static const McColumn cut_columns[] = {
    MC_COLUMN(GsStructSum, cut, NUMBER, NULL, "1 if there are more"),
    MC_END
};
static const McObject end_object = {
    "struct_end", "ka struct, at the end of an object",
    { shown_columns, sum_columns, cut_columns }, .line = true,
};
static const McObject cut_object = {
    "struct_end", "ka struct, at the end of an object",
    { shown_columns, cut_columns }, .line = true,
};

MC_WHEN(is_one)
{
    return ((const GsStructName *)row)->n <= 1;
}

MC_WHEN(is_several)
{
    return !is_one(o, row);
}

static const McObject name_object = MC_LINE_OBJECT("struct_name",
    "ka struct with a pattern",
    MC_COLUMN(GsStructName, name, TEXT, "%", "its name"),
    MC_COLUMN(GsStructName, size, NUMBER, NULL, "its bytes"),
    MC_KEY("definitions", GsStructName, n, NUMBER, NULL,
           "different ones of this name"),
    MC_KEY(NULL, GsStructName, size, NUMBER, " % bytes", NULL,
           .when = is_one),
    MC_KEY(NULL, GsStructName, n, NUMBER, " % definitions", NULL,
           .when = is_several));

MC_OBJECTS(mc_struct_objects,
           &definition_object, &object_object, &mc_member_object, &end_object,
           &name_object);

/* ---- definitions --------------------------------------------------------- */

static void print_cut(McOut *out, const GsStructSum *sum)
{
    g_autofree char *text = NULL;

    if (sum->cut) {
        text = g_strdup_printf("... more than %d members: name a member, or "
                               "use --depth", GS_STRUCT_MEMBERS);
        mc_print_line(out, &cut_object, sum, text);
    }
}

static void print_definition_head(McOut *out, const McArgs *args,
                                  const GsStruct *s)
{
    const GsStructAt *at = gs_struct_at(s);
    g_autofree char *where = strchr(args->name, '.') ?
                             g_strdup_printf("+%x %s ", at->offset,
                                             gs_struct_type(s)) : NULL;
    g_autofree char *text = g_strdup_printf("%s %s%u bytes, %s", args->name,
                                            where ? where : "",
                                            gs_struct_size(s),
                                            gs_struct_source(s));

    mc_print_line(out, &definition_object, &(HeadRow) {
        .name = args->name, .ctype = gs_struct_type(s),
        .size = gs_struct_size(s), .offset = at->offset,
        .types = gs_struct_source(s) }, text);
}

static bool print_definition(McOut *out, const McArgs *args, const GsStruct *s,
                             GError **errp)
{
    const GsStructPlan plan = { .depth = args->depth };
    g_auto(McStructRows) rows;
    GsStructSum sum;

    mc_struct_rows_init(&rows, out, false);
    if (!mc_has_only(args, OPT(JSON) | OPT(SYMBOLS) | OPT(VERBOSE) |
                           OPT(DEPTH) | OPT(FORMAT),
                     "the definition has no values: an address is missing",
                     errp)) {
        return false;
    }
    if (args->form == MC_FORM_PAHOLE) {
        mc_struct_pahole(out, s, args->depth);
        return true;
    }
    print_definition_head(out, args, s);
    sum = gs_struct_walk(s, &plan, mc_struct_rows_add, &rows);
    mc_struct_rows_print(&rows);
    print_cut(out, &sum);
    return true;
}

/* ---- values -------------------------------------------------------------- */

/* An object to print. @va: of what the type is; @cpu: -1 if none is meant */
typedef struct Look {
    McOut *out;
    const McArgs *args;
    const GsStruct *s;
    KtObjects o;
    int64_t cpu;
} Look;

static void print_head(const Look *l, uint64_t va, const KtStructCopy *copy)
{
    g_autofree char *note = copy->has_block ?
                            mc_block_note(l->out, &copy->block, va) : NULL;
    g_autoptr(GString) text = g_string_new(l->args->name);
    char called[KT_OBJECT_NAME_MAX + 1];
    bool has_name = kt_object_name(&l->o, gs_struct_type(l->s), va, called);
    HeadRow row = {
        .name = l->args->name, .ctype = gs_struct_type(l->s),
        .size = gs_struct_size(l->s), .types = gs_struct_source(l->s),
        .va = va, .cpu = l->cpu, .block = note,
        .called = has_name ? called : NULL,
    };

    if (l->cpu >= 0) {
        g_string_append_printf(text, " cpu %" PRId64, l->cpu);
    }
    g_string_append_printf(text, " %016" PRIx64, va);
    if (has_name) {
        g_string_append_c(text, ' ');
        gs_value_print_text(text, called, strlen(called) + 1);
    }
    if (note) {
        g_string_append_printf(text, " %c %s", copy->block.state ==
                               KT_BLOCK_FREED ? '!' : '>', note);
    }
    mc_print_line(l->out, &object_object, &row, text->str);
}

static void put_count(GString *s, unsigned n, const char *what)
{
    if (n) {
        g_string_append_printf(s, ", %u %s", n, what);
    }
}

static void print_end(const Look *l, const GsStructSum *sum, size_t unreadable)
{
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_append_printf(text, "%u %s shown", sum->shown,
                           sum->shown == 1 ? "member" : "members");
    put_count(text, sum->zeros, sum->zeros == 1 ? "is zero" : "are zero");
    put_count(text, sum->behind, sum->behind == 1 ?
              "is behind the end of the block" :
              "are behind the end of the block");
    put_count(text, unreadable, "bytes are not mapped");
    if (sum->cut) {
        g_string_append(text, ", and there are more: name a member, or use "
                        "--depth");
    }
    mc_print_line(l->out, &end_object, sum, text->str);
}

/* ---- the block behind the struct ----------------------------------------- */

static uint64_t tail_word(const KtStructCopy *copy, size_t i)
{
    uint64_t word = 0;

    memcpy(&word, copy->tail + i * 8, MIN(8, copy->tail_len - i * 8));
    return GUINT64_FROM_LE(word);
}

static void add_tail_word(McStructRows *rows, const KtStructCopy *copy,
                          size_t i)
{
    g_autofree char *path = g_strdup_printf("(behind)[%zu]", i);
    uint64_t word = tail_word(copy, i);
    g_autofree char *value = g_strdup_printf("0x%" PRIx64, word);
    const GsMember m = {
        .path = path, .name = path, .type = "word",
        .offset = copy->object.len + i * 8, .size = 8, .value = value,
        .known = true, .has_number = true, .number = word, .n_words = 1,
        .word = { word },
    };

    mc_struct_rows_add(&m, rows);
}

/* Print what follows in the block of a whole object: the words that are not
 * zero with -v, else how many there are. */
static void print_tail(const Look *l, McStructRows *rows,
                       const KtStructCopy *copy)
{
    bool whole = !strchr(l->args->name, '.') && l->args->count <= 1;
    size_t n = whole ? (copy->tail_len + 7) / 8 : 0, words = 0;

    for (size_t i = 0; i < n; i++) {
        if (tail_word(copy, i)) {
            words++;
            if (l->out->verbose && words <= GS_STRUCT_MEMBERS) {
                add_tail_word(rows, copy, i);
            }
        }
    }
    mc_struct_rows_print(rows);
    if (words && !l->out->verbose) {
        mc_remarkf(l->out, "%zu bytes of the block follow, %zu %s not zero; -v "
                   "prints %s", copy->tail_len, words,
                   words == 1 ? "word is" : "words are",
                   words == 1 ? "it" : "them");
    }
}

/* ---- one object ---------------------------------------------------------- */

/* A pointer of the path leads to nothing: that is the value. */
static void print_lost(const Look *l, unsigned pointer, uint64_t value)
{
    const char *name = gs_struct_pointer(l->s, pointer);
    g_autofree char *text = value ?
        g_strdup_printf("%s cannot be read: %016" PRIx64 " is not mapped",
                        name, value) :
        g_strdup_printf("%s is NULL", name);

    mc_print_line(l->out, &lost_object, &(LostRow) { l->args->name }, text);
}

static bool fail_mapped(const Look *l, uint64_t va, GError **errp)
{
    return mc_fail_unknown(errp, "\"%s\": %016" PRIx64 " is not mapped%s",
                           l->args->name, va,
                           l->cpu < 0 && va < gs_kernel_lowest(l->o.kernel) ?
                           "; a per-CPU pointer needs --cpu" : "");
}

/* @first: of several objects; only then an address that is not mapped is an
 * error. */
static bool print_object(const Look *l, uint64_t va, bool first, GError **errp)
{
    g_auto(KtStructCopy) copy;
    g_auto(McStructRows) rows;
    GsStructPlan plan = {
        .depth = l->args->depth, .object = &copy.object,
        .zeros = mc_given(l->args, MC_OPT_ZERO),
        .hex = mc_given(l->args, MC_OPT_HEX),
    };
    GsStructSum sum;

    mc_struct_rows_init(&rows, l->out, true);
    kt_struct_copy(&l->o, l->s, va, &copy);
    if (first && copy.object.len && copy.unreadable == copy.object.len) {
        return fail_mapped(l, va, errp);
    }
    print_head(l, va, &copy);
    sum = gs_struct_walk(l->s, &plan, mc_struct_rows_add, &rows);
    mc_struct_rows_print(&rows);
    print_end(l, &sum, copy.unreadable);
    print_tail(l, &rows, &copy);
    return true;
}

static bool print_at(const Look *l, uint64_t va, GError **errp)
{
    const GsStructAt *at = gs_struct_at(l->s);
    uint64_t n = MAX(l->args->count, 1);
    unsigned pointer = 0;

    if (!kt_struct_follow(&l->o, at, &va, &pointer)) {
        print_lost(l, pointer, va);
        return true;
    }
    va += at->offset;
    for (uint64_t i = 0; i < n && !l->out->closed; i++) {
        if (!print_object(l, va + i * gs_struct_size(l->s), !i, errp)) {
            return false;
        }
    }
    return true;
}

/* ---- CPUs ---------------------------------------------------------------- */

static bool print_cpu(Look *l, unsigned cpu, GError **errp)
{
    uint64_t va;

    l->cpu = cpu;
    if (!kt_objects_percpu(&l->o, cpu, l->args->va.lo, &va)) {
        return mc_fail_unknown(errp, "--cpu %u: there is no such CPU, or its "
                               "per-CPU memory is not known", cpu);
    }
    return print_at(l, va, errp);
}

/* Print the object of each possible CPU. */
static bool print_cpus(Look *l, GError **errp)
{
    unsigned n = kt_objects_n_cpus(&l->o), found = 0;
    uint64_t va;

    for (unsigned cpu = 0; cpu < n && !l->out->closed; cpu++) {
        if (kt_objects_percpu(&l->o, cpu, l->args->va.lo, &va)) {
            found++;
            if (!print_cpu(l, cpu, errp)) {
                return false;
            }
        }
    }
    if (!found) {
        mc_fail_unknown(errp, "--cpu all: the per-CPU memory is not known");
    }
    return found;
}

static bool print_values(McOut *out, const McArgs *args, const GsStruct *s,
                         GError **errp)
{
    Look l = {
        .out = out, .args = args, .s = s, .cpu = -1,
        .o = { out->ctx->tracer, mc_symbols(out->ctx), out->ctx->vm },
    };

    if (args->form == MC_FORM_PAHOLE) {
        return mc_fail_syntax(errp, "--format pahole is the definition; omit "
                              "the address");
    }
    if (!l.o.vm || !l.o.kernel) {
        return mc_fail_unknown(errp, "there is no memory to read%s; the "
                               "definition is known: omit the address",
                               out->ctx->journal ? " in a journal" : "");
    }
    return args->all_cpus ? print_cpus(&l, errp) :
           mc_given(args, MC_OPT_CPU) ? print_cpu(&l, args->cpu, errp) :
           print_at(&l, args->va.lo, errp);
}

/* ---- names --------------------------------------------------------------- */

typedef struct Names {
    McOut *out;
    unsigned n;
} Names;

static void print_name(const GsStructName *name, void *opaque)
{
    Names *names = opaque;

    names->n++;
    mc_print(names->out, &name_object, name);
}

static bool print_names(McOut *out, const McArgs *args, const GsKernel *k,
                        GError **errp)
{
    Names names = { .out = out };

    if (!gs_kernel_struct_names(k, args->name, print_name, &names, errp)) {
        return false;
    }
    if (!names.n) {
        mc_remark(out, "no struct or union matches");
    }
    return true;
}

/* ---- the command --------------------------------------------------------- */

bool mc_cmd_struct(McOut *out, const McArgs *args, GError **errp)
{
    const GsKernel *k = out->ctx->kernel;
    g_autoptr(GsStruct) s = NULL;

    if (!k) {
        return mc_fail_unknown(errp, "no types are known: %s",
                               mc_why_no_kernel(out->ctx));
    }
    if (strpbrk(args->name, "*?")) {
        return print_names(out, args, k, errp);
    }
    s = gs_kernel_struct(k, args->name, errp);
    if (!s) {
        return false;
    }
    return args->has_va ? print_values(out, args, s, errp) :
                          print_definition(out, args, s, errp);
}
