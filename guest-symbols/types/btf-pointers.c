/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers in a struct, see btf.h.
 *
 *     struct inode { ...
 *     +0x168   union { struct pipe_inode_info *i_pipe;
 *                      struct cdev *i_cdev;
 *                      char *i_link; }
 *
 * At 0x168 there are two pointers to structs. All arms of unions are searched:
 * nothing here knows which of them is in use. The types are untrusted, so the
 * number of members that are examined has a limit.
 */
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/btf-records.h"

#define TODO_MAX    64      /* types that wait to be searched */
#define MEMBERS_MAX 4096    /* examined in one search */

/* A type, the offset in it that is searched for, and the name of the member
 * that has this type: the innermost one with a name. */
typedef struct At {
    uint32_t type, offset;
    const char *member;
} At;

typedef struct Search {
    const GsBtfRecords *rec;
    At todo[TODO_MAX];
    unsigned n_todo, left;
    GsPointeeFn fn;
    void *opaque;
} Search;

static void add(Search *s, uint32_t type, uint32_t offset, const char *member)
{
    if (s->n_todo < TODO_MAX) {
        s->todo[s->n_todo++] = (At) { type, offset, member };
    }
}

static void add_members(Search *s, const GsBtfType *t, const At *at)
{
    uint32_t offset = at->offset;

    for (unsigned i = 0; i < t->vlen && s->left; i++, s->left--) {
        GsBtfMember m = gs_btf_nth_member(t, i);
        uint32_t begin = m.bit / 8, size;

        if (begin <= offset && !gs_btf_is_bit_field(s->rec, &m) &&
            gs_btf_size(s->rec, m.type, &size) && offset - begin < size) {
            const char *name = gs_btf_name(s->rec, m.name);

            add(s, m.type, offset - begin, *name ? name : at->member);
        }
    }
}

/* Call the function if a pointer leads to a struct that has a name. */
static void report_pointee(Search *s, const GsBtfType *pointer,
                           const char *member)
{
    uint32_t id = pointer->word, size;
    GsBtfType t;

    if (gs_btf_real(s->rec, &id, &t) && t.kind == GS_BTF_STRUCT &&
        gs_btf_size(s->rec, id, &size) && *gs_btf_name(s->rec, t.name)) {
        s->fn(member, gs_btf_name(s->rec, t.name), size, s->opaque);
    }
}

static void examine(Search *s, const At *at)
{
    uint32_t id = at->type, size;
    GsBtfType t;

    if (!gs_btf_real(s->rec, &id, &t)) {
        return;
    }
    if (t.kind == GS_BTF_PTR && !at->offset) {
        report_pointee(s, &t, at->member);
    } else if (t.kind == GS_BTF_ARRAY &&
               gs_btf_size(s->rec, gs_btf_word(&t, 0), &size) && size) {
        add(s, gs_btf_word(&t, 0), at->offset % size, at->member);
    } else if (gs_btf_is_composite(&t)) {
        add_members(s, &t, at);
    }
}

void gs_btf_pointers_at(const GsBtf *btf, const char *type, uint32_t at,
                        GsPointeeFn fn, void *opaque)
{
    Search s = {
        .rec = gs_btf_records(btf), .left = MEMBERS_MAX, .fn = fn,
        .opaque = opaque,
    };
    uint32_t id;

    if (gs_btf_find_type(btf, type, &id)) {
        add(&s, id, at, "");
    }
    while (s.n_todo && s.left) {
        At next = s.todo[--s.n_todo];

        s.left--;
        examine(&s, &next);
    }
}
