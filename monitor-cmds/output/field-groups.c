/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule when a field is printed: by its group in fields.def.
 *
 * Called by the formatters, on their thread, without a lock.
 */
#include "monitor-cmds/output/format.h"

static bool row_is_freed(const McRow *row)
{
    return row->block &&
           (row->block->past || row->block->state == KT_BLOCK_FREED);
}

static bool is_access(const McRow *row)
{
    return row->error && kt_error_is_access(row->error->kind);
}

static bool has_kind(const McRow *row, KtErrorKind kind)
{
    return row->error && row->error->kind == kind;
}

/* Of a slot without a block nothing is known but its place. */
static bool is_of_slot(const McField *f)
{
    switch (f->group) {
    case MC_GROUP_HIT:
    case MC_GROUP_SLOT:
    case MC_GROUP_CORE:
    case MC_GROUP_UNSEEN:
    case MC_GROUP_LISTED:
        return true;
    default:
        return false;
    }
}

static bool access_has(const KtErrorAccess *a, McFieldGroup group,
                       bool verbose)
{
    switch (group) {
    case MC_GROUP_INSTRUCTION:
        return !(a->flags & KT_EVF_RANGE);
    case MC_GROUP_REPEATS:
        return verbose || a->count > 1;
    case MC_GROUP_BESIDE:
        return a->has_neighbour;
    case MC_GROUP_FRONT:
        return a->has_neighbour && !a->behind;
    case MC_GROUP_BEHIND:
        return a->behind;
    case MC_GROUP_V_BESIDE:
        return verbose && a->has_neighbour;
    default:
        return true;
    }
}

bool mc_field_applies(const McField *f, const McRow *row, bool verbose)
{
    if (row->slot && !row->block && !is_of_slot(f)) {
        return false;
    }
    switch (f->group) {
    case MC_GROUP_PLACE:
        return row->place;
    case MC_GROUP_REG:
        return row->place && row->place->reg;
    case MC_GROUP_WORD:
        return row->place && !row->place->reg;
    case MC_GROUP_OBJECT:
        return row->object;
    case MC_GROUP_HIT:
        return row->hit;
    case MC_GROUP_SLOT:
        return row->slot && row->slot->numbered;
    case MC_GROUP_CORE:
    case MC_GROUP_BLOCK:
        return true;
    case MC_GROUP_UNSEEN:
        return row->slot && !row->block;
    case MC_GROUP_LISTED:
        return row->slot && row->slot->list;
    case MC_GROUP_RCU:
        return row->block && row->block->rcu_queued;
    case MC_GROUP_FREE:
        return row_is_freed(row);
    case MC_GROUP_ERROR:
        return row->error;
    case MC_GROUP_AWAY:
        return row->error && (verbose || (row->block &&
                                          row->block->va != row->error->va));
    case MC_GROUP_CODED:
        return row->error && row->error->va >= KT_ERROR_POINTER;
    case MC_GROUP_SIZED:
        return has_kind(row, KT_ERR_WRONG_SIZE) ||
               has_kind(row, KT_ERR_WRONG_ORDER);
    case MC_GROUP_ORDER:
        return has_kind(row, KT_ERR_WRONG_ORDER);
    case MC_GROUP_LEFT:
        return has_kind(row, KT_ERR_OBJECTS_LEFT);
    case MC_GROUP_ACCESS:
    case MC_GROUP_INSTRUCTION:
    case MC_GROUP_REPEATS:
    case MC_GROUP_BESIDE:
    case MC_GROUP_FRONT:
    case MC_GROUP_BEHIND:
    case MC_GROUP_V_BESIDE:
        return is_access(row) &&
               access_has(&row->error->access, f->group, verbose);
    case MC_GROUP_SAME:
        return row->same;
    case MC_GROUP_LEAK:
        return row->leak;
    case MC_GROUP_KEPT:
        return row->kept;
    case MC_GROUP_HELD:
        return (row->leak && row->leak->held) ||
               (row->kept && row->kept->held);
    case MC_GROUP_REF:
        return row->ref;
    case MC_GROUP_V:
        return verbose;
    case MC_GROUP_V_FREE:
        return verbose && row_is_freed(row);
    case MC_GROUP_V_ERROR:
        return verbose && row->error;
    case MC_GROUP_V_LEFT:
        return (verbose && row->error) || has_kind(row, KT_ERR_OBJECTS_LEFT);
    case MC_GROUP_V_LEAK:
        return verbose && row->leak;
    case MC_GROUP_V_IDENTITY:
        return verbose && row->identity;
    case MC_GROUP__COUNT:
        break;
    }
    return false;
}
