/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Getters of the output fields, one for each row of fields.def. A getter
 * returns false if the value is unknown.
 *
 * Called by the formatters after the rows were copied, without the tracer's
 * lock: names of tasks, caches and hooks stay valid while the tracer exists.
 */
#include "monitor-cmds/output/errno-name.h"
#include "monitor-cmds/output/format.h"

#include <string.h>

#define GETTER(key) \
    static bool get_##key(KtTracer *t, const McRow *row, McValue *v)

static bool put(McValue *v, uint64_t u)
{
    v->u = u;
    return true;
}

/* Store a value that is 0 if it is unknown, such as a time. */
static bool put_known(McValue *v, uint64_t u)
{
    v->u = u;
    return u != 0;
}

static bool put_stack(McValue *v, KtStackId stack)
{
    v->stack = stack;
    return true;
}

static bool put_name(McValue *v, const char *s)
{
    v->s = s;
    return s && *s;
}

static bool put_pid(KtTracer *t, KtTaskId task, McValue *v)
{
    uint32_t pid;
    char comm[17];

    return task.v && kt_tracer_task(t, task, &pid, comm) && put(v, pid);
}

static bool put_comm(KtTracer *t, KtTaskId task, McValue *v)
{
    uint32_t pid;
    char comm[17];

    if (!task.v || !kt_tracer_task(t, task, &pid, comm)) {
        return false;
    }
    comm[sizeof(comm) - 1] = 0;
    g_strlcpy(v->text, comm, sizeof(v->text));
    return put_name(v, v->text);
}

static bool put_cache(KtTracer *t, KtCacheId cache, McValue *v)
{
    KtCacheInfo info;

    return cache.v && kt_tracer_cache(t, cache, &info) &&
           put_name(v, info.name);
}

/* ---- the line ------------------------------------------------------------ */

GETTER(vcpu)
{
    return put(v, row->place->vcpu);
}

GETTER(reg)
{
    return put_name(v, row->place->reg);
}

GETTER(at)
{
    return put(v, row->place->at);
}

GETTER(value)
{
    return put(v, row->place->value);
}

GETTER(object)
{
    return put_name(v, row->object);
}

GETTER(offset)
{
    return put(v, row->offset);
}

GETTER(state)
{
    if (!row->block) {
        return put(v, '-');
    }
    return put(v, row->block->past                        ? 'P' :
                  row->block->state == KT_BLOCK_ALLOCATED ? 'A' :
                                                            'F');
}

GETTER(slot)
{
    return put(v, row->slot->number);
}

GETTER(va)
{
    return put(v, row->block ? row->block->va :
                  row->slot  ? row->slot->va :
                               row->error->va);
}

GETTER(unseen)
{
    return put_name(v, "unseen");
}

GETTER(list)
{
    return put_name(v, row->slot->list);
}

GETTER(end)
{
    return put(v, row->block ? row->block->va + row->block->requested - 1 :
                  row->error->va);
}

GETTER(requested)
{
    return row->block && put(v, row->block->requested);
}

GETTER(actual)
{
    return row->block && put(v, row->block->actual);
}

GETTER(alloc)
{
    return row->block && put_stack(v, row->block->alloc_stack);
}

GETTER(alloc_us)
{
    return row->block && put_known(v, row->block->alloc_us);
}

GETTER(rcu)
{
    return put_stack(v, row->block->rcu_stack);
}

GETTER(rcu_us)
{
    return put_known(v, row->block->rcu_us);
}

GETTER(free)
{
    return put_stack(v, row->block->free_stack);
}

GETTER(free_us)
{
    return put_known(v, row->block->free_us);
}

GETTER(error)
{
    return put_name(v, kt_error_name(row->error->kind));
}

GETTER(error_stack)
{
    v->exact = kt_error_is_access(row->error->kind);
    return put_stack(v, row->error->stack);
}

GETTER(error_us)
{
    return put_known(v, row->error->us);
}

GETTER(error_va)
{
    return put(v, row->error->va);
}

GETTER(error_code)
{
    unsigned code = -row->error->va;
    const char *name = mc_errno_name(code);

    if (name) {
        g_snprintf(v->text, sizeof(v->text), "-%s", name);
    } else {
        g_snprintf(v->text, sizeof(v->text), "-%u", code);
    }
    return put_name(v, v->text);
}

GETTER(error_size)
{
    return put(v, row->error->size);
}

GETTER(error_objects)
{
    return put_known(v, row->error->size);
}

/* The order of @size bytes; the size of a page is the kernel's. */
static bool put_order(McValue *v, const McRow *row, uint64_t size)
{
    v->u = size ? g_bit_storage(size) - 1 - row->page_shift : 0;
    return row->page_shift && size >> row->page_shift;
}

GETTER(order)
{
    return row->block && put_order(v, row, row->block->requested);
}

GETTER(error_order)
{
    return put_order(v, row, row->error->size);
}

GETTER(same_stack)
{
    return put(v, row->same);
}

/* ---- -v ------------------------------------------------------------------ */

GETTER(layer)
{
    return row->block && row->block->layer != KT_LAYER_NONE &&
           put_name(v, kt_layer_name(row->block->layer));
}

GETTER(hook)
{
    return row->block && row->block->hook.v &&
           put_name(v, kt_tracer_hook_name(t, row->block->hook));
}

GETTER(cache)
{
    return row->block && put_cache(t, row->block->cache, v);
}

/* Past lives have neither flags nor vCPUs: 0 means unknown. */
GETTER(gfp)
{
    return row->block && (row->block->gfp || !row->block->past) &&
           kt_tracer_hook_has_gfp(t, row->block->hook) &&
           put(v, row->block->gfp);
}

GETTER(cpu)
{
    return row->block && (row->block->alloc_cpu || !row->block->past) &&
           put(v, row->block->alloc_cpu);
}

GETTER(pid)
{
    return row->block && put_pid(t, row->block->alloc_task, v);
}

GETTER(comm)
{
    return row->block && put_comm(t, row->block->alloc_task, v);
}

GETTER(stop)
{
    GsStop stop;
    unsigned n;

    if (!row->block || !row->block->alloc_stack.v ||
        !kt_tracer_stack(t, row->block->alloc_stack, &n, &stop)) {
        return false;
    }
    return put_name(v, gs_stop_name(stop));
}

GETTER(free_hook)
{
    return row->block->free_hook.v &&
           put_name(v, kt_tracer_hook_name(t, row->block->free_hook));
}

GETTER(free_cpu)
{
    return (row->block->free_cpu || !row->block->past) &&
           put(v, row->block->free_cpu);
}

GETTER(free_pid)
{
    return put_pid(t, row->block->free_task, v);
}

GETTER(free_comm)
{
    return put_comm(t, row->block->free_task, v);
}

GETTER(error_id)
{
    return put(v, row->error->id);
}

GETTER(error_hook)
{
    return row->error->hook.v &&
           put_name(v, kt_tracer_hook_name(t, row->error->hook));
}

GETTER(error_cache)
{
    return put_cache(t, row->error->cache, v);
}

GETTER(error_cpu)
{
    return put(v, row->error->cpu);
}

GETTER(error_pid)
{
    return put_pid(t, row->error->task, v);
}

GETTER(error_comm)
{
    return put_comm(t, row->error->task, v);
}

GETTER(error_access)
{
    return put_name(v, row->error->access.flags & KT_EVF_WRITE ? "w" : "r");
}

GETTER(error_access_size)
{
    return put(v, row->error->size);
}

GETTER(error_offset)
{
    return put(v, row->error->access.offset);
}

GETTER(error_count)
{
    return put(v, row->error->access.count);
}

GETTER(error_last_us)
{
    return put_known(v, row->error->access.last_us);
}

GETTER(error_insn)
{
    return put_name(v, row->insn ? row->insn->text : NULL);
}

GETTER(error_operand)
{
    return put_name(v, row->insn ? row->insn->operand : NULL);
}

GETTER(neighbour_va)
{
    return put(v, row->error->access.neighbour.va);
}

GETTER(neighbour_size)
{
    return put(v, row->error->access.neighbour.requested);
}

/* Of the first access: the offset of a repeat may be larger. */
GETTER(neighbour_distance)
{
    return put(v, row->error->access.distance);
}

GETTER(neighbour_before)
{
    return put(v, row->error->access.distance);
}

GETTER(neighbour_alloc)
{
    return put_stack(v, row->error->access.neighbour.stack);
}

GETTER(neighbour_us)
{
    return put_known(v, row->error->access.neighbour.us);
}

GETTER(neighbour_cache)
{
    return put_cache(t, row->error->access.neighbour.cache, v);
}

GETTER(neighbour_pid)
{
    return put_pid(t, row->error->access.neighbour.task, v);
}

GETTER(neighbour_comm)
{
    return put_comm(t, row->error->access.neighbour.task, v);
}

GETTER(leak)
{
    return put_name(v, kt_leak_hold_name(row->leak->hold));
}

GETTER(kept)
{
    return put_name(v, row->kept->place < KT_PLACE__COUNT ?
                           kt_place_name(row->kept->place) :
                           "otherwise");
}

GETTER(kept_by)
{
    return put_name(v, row->kept->by);
}

GETTER(kept_in)
{
    return put_name(v, row->kept->in);
}

static uint64_t held(const McRow *row)
{
    return row->leak ? row->leak->held : row->kept ? row->kept->held : 0;
}

GETTER(held)
{
    return put(v, held(row));
}

GETTER(same_bytes)
{
    return put(v, row->leak->bytes);
}

GETTER(ref)
{
    return put_name(v, row->ref->at ? "interior" : "start");
}

GETTER(ref_at)
{
    return put(v, row->ref->at);
}

GETTER(ref_member)
{
    return put_name(v, row->ref->member);
}

/* ---- identity ------------------------------------------------------------ */

GETTER(title)
{
    return put_name(v, row->identity->title);
}

GETTER(alt)
{
    v->list = row->identity->alt;
    return true;
}

GETTER(fold)
{
    return put_name(v, row->identity->fold);
}

GETTER(exact)
{
    return put_name(v, row->identity->exact);
}

GETTER(weak)
{
    return put(v, row->identity->weak);
}

/* ---- the table ----------------------------------------------------------- */

const McField mc_fields[MC_FIELD__COUNT] = {
#define MC_FIELD(key_, type_, group_, before_, after_, help_) \
    [MC_FIELD_##key_] = { \
        .key = #key_, .type = MC_TYPE_##type_, .group = MC_GROUP_##group_, \
        .before = before_, .after = after_, .get = get_##key_, \
        .help = help_, \
    },
#include "monitor-cmds/table/fields.def"
};
