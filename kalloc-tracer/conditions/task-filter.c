/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Task filter: see task-filter.h. */
#include "kalloc-tracer/conditions/task-filter.h"
#include "kalloc-tracer/layout/layout.h"

#include <string.h>

#define ANCESTORS_MAX 64

/** struct Mark - a task; a bit of @of for each process that it belongs to */
typedef struct Mark {
    uint64_t va, start;
    uint32_t of;
} Mark;

/*
 * struct KtTaskFilter
 * @marks: address of a task -> Mark; under @lock
 */
struct KtTaskFilter {
    unsigned n_names, n_processes;
    char *name[KT_TASK_FILTER_MAX];
    uint32_t process[KT_TASK_FILTER_MAX];
    GMutex lock;
    GHashTable *marks;
};

KtTaskFilter *kt_task_filter_new(void)
{
    KtTaskFilter *f = g_new0(KtTaskFilter, 1);

    g_mutex_init(&f->lock);
    f->marks = g_hash_table_new_full(gs_number_hash, g_int64_equal, NULL,
                                     g_free);
    return f;
}

void kt_task_filter_free(KtTaskFilter *f)
{
    if (!f) {
        return;
    }
    for (unsigned i = 0; i < f->n_names; i++) {
        g_free(f->name[i]);
    }
    g_hash_table_destroy(f->marks);
    g_mutex_clear(&f->lock);
    g_free(f);
}

int kt_task_filter_add_name(KtTaskFilter *f, const char *pattern)
{
    if (f->n_names == KT_TASK_FILTER_MAX) {
        return -1;
    }
    f->name[f->n_names] = g_strdup(pattern);
    return f->n_names++;
}

int kt_task_filter_add_process(KtTaskFilter *f, uint32_t pid)
{
    for (unsigned i = 0; i < f->n_processes; i++) {
        if (f->process[i] == pid) {
            return i;
        }
    }
    if (f->n_processes == KT_TASK_FILTER_MAX) {
        return -1;
    }
    f->process[f->n_processes] = pid;
    return f->n_processes++;
}

bool kt_task_filter_has_processes(const KtTaskFilter *f)
{
    return f->n_processes;
}

bool kt_task_filter_name(const KtTaskFilter *f, unsigned i, const char *comm)
{
    return kt_name_matches(f->name[i], comm);
}

/* ---- tasks in the guest's memory ---------------------------------------- */

KtTaskLayout kt_task_layout_find(const GsKernel *k)
{
    return (KtTaskLayout) {
        .tgid = kt_member(k, KT_M_TASK_TGID),
        .real_parent = kt_member(k, KT_M_TASK_PARENT),
        .start = kt_member(k, KT_M_TASK_START),
    };
}

static bool read_member(const KtTaskReader *r, uint64_t va, uint32_t at,
                        void *out, size_t len)
{
    return va && at != UINT32_MAX && r->read(r->opaque, va + at, out, len);
}

/* The task's start, 0 if the kernel's is not known: then an address that is
 * used again cannot be told from the first task. */
static uint64_t start_of(const KtTaskReader *r, uint64_t va)
{
    uint64_t start;

    return read_member(r, va, r->at->start, &start, sizeof(start)) ? start : 0;
}

/* ---- marks -------------------------------------------------------------- */

static bool is_marked(KtTaskFilter *f, unsigned i, uint64_t va, uint64_t start)
{
    const Mark *m;
    bool marked;

    g_mutex_lock(&f->lock);
    m = g_hash_table_lookup(f->marks, &va);
    marked = m && m->start == start && m->of >> i & 1;
    g_mutex_unlock(&f->lock);
    return marked;
}

static void mark(KtTaskFilter *f, unsigned i, uint64_t va, uint64_t start)
{
    Mark *m;

    g_mutex_lock(&f->lock);
    m = g_hash_table_lookup(f->marks, &va);
    if (!m && g_hash_table_size(f->marks) < KT_TASK_MARKS_MAX) {
        m = g_new0(Mark, 1);
        m->va = va;
        g_hash_table_insert(f->marks, &m->va, m);
    }
    if (m) {
        m->of = m->start == start ? m->of : 0;
        m->start = start;
        m->of |= 1u << i;
    }
    g_mutex_unlock(&f->lock);
}

unsigned kt_task_filter_n_marks(KtTaskFilter *f)
{
    unsigned n;

    g_mutex_lock(&f->lock);
    n = g_hash_table_size(f->marks);
    g_mutex_unlock(&f->lock);
    return n;
}

KtAnswer kt_task_filter_child(KtTaskFilter *f, unsigned i,
                              const KtTaskReader *r, uint64_t va)
{
    uint64_t start = start_of(r, va), at = va, parent;
    uint32_t tgid;

    if (is_marked(f, i, va, start)) {
        return KT_YES;
    }
    for (unsigned n = 0; n < ANCESTORS_MAX; n++) {
        if (!read_member(r, at, r->at->tgid, &tgid, sizeof(tgid))) {
            return KT_UNKNOWN;
        }
        if (tgid == f->process[i] ||
            (n && is_marked(f, i, at, start_of(r, at)))) {
            mark(f, i, va, start);
            return KT_YES;
        }
        if (!read_member(r, at, r->at->real_parent, &parent, sizeof(parent))) {
            return KT_UNKNOWN;
        }
        if (!tgid || parent == at) {
            return KT_NO;
        }
        at = parent;
    }
    return KT_NO;
}

void kt_task_filter_forked(KtTaskFilter *f, const KtTaskReader *r,
                           uint64_t parent, uint64_t child)
{
    for (unsigned i = 0; i < f->n_processes; i++) {
        if (kt_task_filter_child(f, i, r, parent) == KT_YES) {
            mark(f, i, child, start_of(r, child));
        }
    }
}
