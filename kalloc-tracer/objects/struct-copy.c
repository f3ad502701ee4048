/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of kernel objects, see kt-structs.h. Called by ka struct, on any
 * thread. Owns no state.
 */
#include "kalloc-tracer/api/kt-structs.h"
#include "kalloc-tracer/objects/objects-internal.h"

#include <string.h>

bool kt_struct_follow(const KtObjects *o, const GsStructAt *at, uint64_t *va,
                      unsigned *failed)
{
    for (unsigned i = 0; i < at->n; i++) {
        uint64_t from = *va + at->pointer[i];

        *failed = i;
        if (!kt_objects_pointer(o, from, va)) {
            *va = from;
            return false;
        }
        if (!*va) {
            return false;
        }
    }
    return true;
}

/* Find the bytes from @va to the last requested one of the block; false if
 * @va is in no block, or behind that byte. */
static bool find_end(const KtObjects *o, uint64_t va, KtStructCopy *copy,
                     uint64_t *left)
{
    const KtBlock *b = &copy->block;

    kt_query_begin(o->tracer);
    copy->has_block = kt_query_find(o->tracer, va, &copy->block);
    kt_query_end(o->tracer);
    if (!copy->has_block || va - b->va >= b->requested) {
        return false;
    }
    *left = b->requested - (va - b->va);
    return true;
}

/* Copy up to the end of each page, as some of the pages may not be mapped. */
static void read_pages(const KtObjects *o, uint64_t va, uint8_t *bytes,
                       size_t len, KtStructCopy *copy)
{
    unsigned page = 0;

    for (size_t done = 0, step; done < len; done += step, page++) {
        step = GS_STRUCT_PAGE - (va + done) % GS_STRUCT_PAGE;
        step = MIN(step, len - done);
        if (!kt_objects_read(o, va + done, bytes + done, step)) {
            memset(bytes + done, 0, step);
            copy->object.missing |= 1u << page;
            if (done < copy->object.len) {
                copy->unreadable += MIN(step, copy->object.len - done);
            }
        }
    }
}

void kt_struct_copy(const KtObjects *o, const GsStruct *s, uint64_t va,
                    KtStructCopy *copy)
{
    uint64_t size = gs_struct_size(s), left = size, all;
    bool known, open = gs_struct_is_open(s);
    uint8_t *bytes;

    *copy = (KtStructCopy) { 0 };
    known = find_end(o, va, copy, &left);
    left = MIN(left, GS_STRUCT_BYTES);
    size = open && known ? left : MIN(size, left);
    all = known && copy->block.va == va ? left : size;
    bytes = g_malloc0(all + 1);
    copy->object = (GsObject) { .bytes = bytes, .len = size, .va = va };
    read_pages(o, va, bytes, all, copy);
    copy->tail = bytes + size;
    copy->tail_len = all - size;
}

void kt_struct_copy_clear(KtStructCopy *copy)
{
    g_free((uint8_t *)copy->object.bytes);
    *copy = (KtStructCopy) { 0 };
}
