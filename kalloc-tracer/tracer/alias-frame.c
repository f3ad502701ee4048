/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of aliases: see alias-frame.h. */
#include "kalloc-tracer/tracer/alias-frame.h"

#include "kalloc-tracer/tracer/frame-ids.h"

enum { ALIAS_DROPPED, ALIAS_ADDED };

static const KtTaskId no_task;
static const KtStackId no_stack;

GByteArray *kt_alias_frame_added(KtTracer *t, const KtCacheAlias *alias)
{
    GByteArray *frame = g_byte_array_new();
    GsOut out = gs_out(frame);

    gs_out_u8(&out, ALIAS_ADDED);
    gs_out_u64(&out, alias->cache_va);
    gs_out_varint(&out, alias->us);
    gs_out_varint(&out, alias->object_size);
    gs_out_text(&out, alias->name);
    kt_frame_write_task(t, alias->task, no_task, &out);
    kt_frame_write_stack(t, alias->stack, no_stack, &out);
    return frame;
}

GByteArray *kt_alias_frame_dropped(uint64_t cache_va)
{
    GByteArray *frame = g_byte_array_new();
    GsOut out = gs_out(frame);

    gs_out_u8(&out, ALIAS_DROPPED);
    gs_out_u64(&out, cache_va);
    return frame;
}

static void replay_added(KtTracer *t, const GsKernel *k, GsBytes *in,
                         uint64_t cache_va, uint64_t until_us)
{
    char name[KT_ALIAS_NAME_MAX];
    KtCacheAlias alias = { .cache_va = cache_va, .name = name };

    alias.us = gs_bytes_varint(in, UINT64_MAX);
    alias.object_size = gs_bytes_varint(in, UINT32_MAX);
    gs_bytes_text(in, name, sizeof(name), "a cache's name");
    alias.task = kt_frame_read_task(t, in, no_task);
    alias.stack = kt_frame_read_stack(t, k, in, no_stack);
    if (!in->failed && alias.us <= until_us) {
        kt_cache_alias_add(t, &alias);
    }
}

bool kt_alias_frame_replay(KtTracer *t, const GsKernel *k, GsBytes *in,
                           uint64_t until_us)
{
    unsigned what = gs_bytes_varint(in, ALIAS_ADDED);
    uint64_t cache_va = gs_bytes_u64(in);

    if (!in->failed && what == ALIAS_ADDED) {
        replay_added(t, k, in, cache_va, until_us);
    } else if (!in->failed) {
        kt_cache_alias_drop(t, cache_va);
    }
    return !in->failed;
}
