/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An access to the block of ka access watch, as text and as JSON. Called by the
 * formats. */
#include "monitor-cmds/output/json-parts.h"

static const char *access_of(const KtBlockAccess *a)
{
    return a->flags & KT_BLOCK_ACCESS_WRITE ? "w" : "r";
}

static void put_task(McOut *o, const KtBlockAccess *a)
{
    char comm[17];
    uint32_t pid;

    if (kt_tracer_task(o->ctx->tracer, a->task, &pid, comm)) {
        g_string_append(o->line, " comm=");
        mc_put_word(o->line, comm);
        g_string_append_printf(o->line, " pid=%u", pid);
    }
}

void mc_text_watched(McOut *o, const KtBlockAccess *a, uint64_t block)
{
    g_string_append_printf(o->line, "%12" PRIu64 "us +%-4" PRIx64 " access=%s%"
                           PRIu64, a->us, a->va - block, access_of(a), a->len);
    if (a->count > 1) {
        g_string_append_printf(o->line, " count=%" PRIu64 "@%" PRIu64 "us",
                               a->count, a->last_us);
    }
    put_task(o, a);
    g_string_append_printf(o->line, " cpu=%u", a->cpu);
    if (a->flags & KT_BLOCK_ACCESS_ALLOCATOR) {
        g_string_append(o->line, " by=allocator");
    }
    g_string_append(o->line, " [");
    mc_text_stack(o, a->stack, true);
    g_string_append_c(o->line, ']');
    mc_out_end_line(o);
}

static void put_json_task(McOut *o, const KtBlockAccess *a)
{
    char comm[17];
    uint32_t pid;

    if (kt_tracer_task(o->ctx->tracer, a->task, &pid, comm)) {
        mc_json_word(o, "comm", comm);
        mc_json_number(o->line, "pid", pid);
    }
}

void mc_json_watched(McOut *o, const KtBlockAccess *a, uint64_t block)
{
    mc_json_begin(o, MC_OBJ_ACCESS_WATCHED);
    mc_json_number(o->line, "us", a->us);
    mc_json_number(o->line, "last_us", a->last_us);
    mc_json_key(o->line, "va");
    mc_json_address(o->line, a->va);
    mc_json_number(o->line, "offset", a->va - block);
    mc_json_word(o, "access", access_of(a));
    mc_json_number(o->line, "size", a->len);
    mc_json_number(o->line, "count", a->count);
    put_json_task(o, a);
    mc_json_number(o->line, "cpu", a->cpu);
    mc_json_number(o->line, "range", !!(a->flags & KT_BLOCK_ACCESS_RANGE));
    mc_json_number(o->line, "allocator",
                   !!(a->flags & KT_BLOCK_ACCESS_ALLOCATOR));
    mc_json_event_stack(o, a->stack, true);
    mc_json_end(o);
}
