/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka struct --format pahole: the definition of a struct as a declaration in C,
 * with offsets, sizes and holes in comments.
 *
 * Called by struct.c, on the thread of the command. No locks.
 */
#include "monitor-cmds/commands/commands.h"

#define INDENT      "        "
#define CODE_WIDTH  50          /* columns before the comment */
#define CACHELINE   64

/* @end: bytes up to the end of the members so far; holes are looked for outside
 * of unions. @depth: of what is open */
typedef struct Pahole {
    McOut *out;
    unsigned depth;
    unsigned members;
    uint32_t base, end, holes;
} Pahole;

static void put_indent(Pahole *p, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++) {
        g_string_append(p->out->line, INDENT);
    }
}

static void put_comment(Pahole *p, const GsMember *m, size_t from)
{
    GString *s = p->out->line;

    while (s->len - from < CODE_WIDTH) {
        g_string_append_c(s, ' ');
    }
    if (m->bits) {
        g_string_append_printf(s, " /* %5u:%2u %3u */", m->offset - p->base,
                               m->bit, m->bits);
    } else {
        g_string_append_printf(s, " /* %5u %5u */", m->offset - p->base,
                               m->size);
    }
}

/* pahole prints holes between members of the struct itself. */
static void put_hole(Pahole *p, const GsMember *m)
{
    uint32_t at = m->offset - p->base;

    if (p->depth > 1 || m->bits || at <= p->end) {
        return;
    }
    mc_out_printf(p->out, "%s", "");
    mc_out_printf(p->out, "%s/* %u %s hole */", INDENT, at - p->end,
                  at - p->end == 1 ? "byte" : "bytes");
    mc_out_printf(p->out, "%s", "");
    p->holes++;
}

static void on_value(Pahole *p, const GsMember *m)
{
    size_t from;

    put_indent(p, p->depth);
    from = p->out->line->len;
    g_string_append_printf(p->out->line, "%s", m->type);
    if (m->bits) {
        g_string_append_printf(p->out->line, ":%u", m->bits);
    }
    g_string_append_c(p->out->line, ';');
    put_comment(p, m, from);
    mc_out_end_line(p->out);
}

static const char *keyword(const GsMember *m)
{
    return g_str_has_prefix(m->type, "union") ? "union" : "struct";
}

static void on_member(const GsMember *m, void *opaque)
{
    Pahole *p = opaque;
    uint32_t end = m->offset - p->base +
                   (m->bits ? (m->bit + m->bits + 7u) / 8 : m->size);

    if (m->kind == GS_MEMBER_CLOSE) {
        p->depth -= p->depth > 1;
        put_indent(p, p->depth);
        g_string_append_printf(p->out->line, "}%s%s;", *m->name ? " " : "",
                               m->name);
        mc_out_end_line(p->out);
        return;
    }
    put_hole(p, m);
    p->end = MAX(p->end, end);
    p->members += p->depth == 1;
    if (m->kind == GS_MEMBER_OPEN) {
        size_t from;

        put_indent(p, p->depth++);
        from = p->out->line->len;
        g_string_append_printf(p->out->line, "%s {", keyword(m));
        put_comment(p, m, from);
        mc_out_end_line(p->out);
    } else {
        on_value(p, m);
    }
}

void mc_struct_pahole(McOut *out, const GsStruct *s, unsigned depth)
{
    GsStructPlan plan = { .depth = depth ? depth : 1, .declare = true };
    Pahole p = {
        .out = out, .depth = 1, .base = gs_struct_at(s)->offset,
    };
    uint32_t size = gs_struct_size(s);

    mc_out_printf(out, "%s {", gs_struct_type(s));
    gs_struct_walk(s, &plan, on_member, &p);
    mc_out_printf(out, "%s", "");
    mc_out_printf(out, "%s/* size: %u, cachelines: %u, members: %u */", INDENT,
                  size, (size + CACHELINE - 1) / CACHELINE, p.members);
    if (p.holes) {
        mc_out_printf(out, "%s/* holes: %u */", INDENT, p.holes);
    }
    mc_out_printf(out, "};");
}
