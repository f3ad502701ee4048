/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of lists of free objects and of what can be wrong with them: the rows
 * of api/slab-lists.def and api/slab-problems.def. */
#include "kalloc-tracer/api/kt-slabs.h"

static const struct {
    const char *owner, *name, *parts;
} lists[KT_SLAB_LIST__COUNT] = {
#define KT_SLAB_LIST(id, owner, name, parts) \
    [KT_SLAB_LIST_##id] = { owner, name, parts },
#include "kalloc-tracer/api/slab-lists.def"
};

static const struct {
    const char *name, *text;
} problems[KT_SLAB_PROBLEM__COUNT] = {
#define KT_SLAB_PROBLEM(id, name, text) [KT_SLAB_##id] = { name, text },
#include "kalloc-tracer/api/slab-problems.def"
};

const char *kt_slab_list_owner(KtSlabListKind kind)
{
    return lists[kind].owner;
}

const char *kt_slab_list_name(KtSlabListKind kind)
{
    return lists[kind].name;
}

const char *kt_slab_list_parts(KtSlabListKind kind)
{
    return lists[kind].parts;
}

const char *kt_slab_problem_name(KtSlabProblemKind kind)
{
    return problems[kind].name;
}

const char *kt_slab_problem_text(KtSlabProblemKind kind)
{
    return problems[kind].text;
}
