/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the kernel and its parts are, see kt-objects.h: by its symbols, by its
 * variables, and by what the tracer has learned of the direct map. Owns no
 * state.
 */
#include "kalloc-tracer/api/kt-objects.h"

#include <string.h>

#include "kalloc-tracer/objects/objects-internal.h"

static const struct {
    const char *name, *why;
} parts[KT_BASE__COUNT] = {
#define KT_BASE(id, name, why) [KT_BASE_##id] = { name, why },
#include "kalloc-tracer/api/base-ranges.def"
};

const char *kt_base_name(KtBaseId id)
{
    return parts[id].name;
}

/* ---- by symbols ---------------------------------------------------------- */

/* @end: the symbol behind the last byte */
static bool between(const KtObjects *o, const char *start, const char *end,
                    KtBaseRange *out)
{
    GsSymbol first, behind;

    if (!gs_kernel_lookup(o->kernel, start, &first) ||
        !gs_kernel_lookup(o->kernel, end, &behind) || behind.va <= first.va) {
        return false;
    }
    *out = (KtBaseRange) { first.va, behind.va - 1 };
    return true;
}

/* Without symbols only the start is known: the image was read up to the end of
 * its last large page. */
static bool find_image(const KtObjects *o, KtBaseRange *out)
{
    uint64_t end;

    return between(o, "_text", "_end", out) ||
           gs_kernel_extent(o->kernel, &out->start, &end);
}

/* ---- by variables, and learned ------------------------------------------- */

/* high_memory is the address behind the last byte of RAM. */
static bool find_direct(const KtObjects *o, KtBaseRange *out)
{
    uint64_t end;

    out->start = o->vm->page_offset;
    if (kt_objects_variable(o, "high_memory", 8, &end) && end > out->start) {
        out->last = end - 1;
    }
    return out->start != 0;
}

bool kt_base_range(const KtObjects *o, KtBaseId id, KtBaseRange *out,
                   const char **why)
{
    static const char *const symbols[KT_BASE__COUNT][2] = {
        [KT_BASE_TEXT] = { "_stext", "_etext" },
        [KT_BASE_RODATA] = { "__start_rodata", "__end_rodata" },
        [KT_BASE_DATA] = { "_sdata", "_edata" },
        [KT_BASE_BSS] = { "__bss_start", "__bss_stop" },
    };
    bool needs_vm = id >= KT_BASE_DIRECT;
    bool needs_frames = id == KT_BASE_DIRECT || id == KT_BASE_PAGES;

    *why = needs_vm && !o->vm ? "a journal has no memory" : parts[id].why;
    *out = (KtBaseRange) { 0 };
    if (!o->kernel || (needs_vm && !o->vm)) {
        return false;
    }
    if (needs_frames && o->vm->page_offset && !kt_objects_has_frames(o)) {
        *why = "the kernel has no symbols page_offset_base and vmemmap_base";
        return false;
    }
    switch (id) {
    case KT_BASE_IMAGE:
        return find_image(o, out);
    case KT_BASE_DIRECT:
        return find_direct(o, out);
    case KT_BASE_PAGES:
        out->start = o->vm->vmemmap;
        return out->start != 0;
    case KT_BASE_VMALLOC:
        return kt_objects_vmalloc_space(o, &out->start, &out->last);
    default:
        return between(o, symbols[id][0], symbols[id][1], out);
    }
}

bool kt_base_percpu(const KtObjects *o, unsigned cpu, KtBaseRange *out)
{
    KtBaseRange link;

    if (!o->kernel ||
        !between(o, "__per_cpu_start", "__per_cpu_end", &link) ||
        !kt_objects_percpu(o, cpu, link.start, &out->start)) {
        return false;
    }
    out->last = out->start + (link.last - link.start);
    return true;
}

bool kt_base_slide(const KtObjects *o, uint64_t *slide)
{
    if (!o->kernel) {
        return false;
    }
    *slide = gs_kernel_slide(o->kernel);
    return !gs_kernel_is_memory(o->kernel) || kt_objects_slide(o, slide);
}

/* ---- build id ------------------------------------------------------------ */

/* Notes of a kernel are less than 1 KiB. */
#define MAX_NOTES   4096u
#define NOTE_HEAD   12u     /* lengths of name and data, type: u32 each */
#define BUILD_ID    3u      /* NT_GNU_BUILD_ID */

static uint32_t le32_at(const uint8_t *bytes)
{
    uint32_t v;

    memcpy(&v, bytes, sizeof(v));
    return GUINT32_FROM_LE(v);
}

static bool put_id(const uint8_t *id, size_t len, char hex[KT_BUILD_ID_SIZE])
{
    if (!len || len > KT_BUILD_ID_SIZE / 2) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        g_snprintf(hex + 2 * i, 3, "%02x", id[i]);
    }
    return true;
}

/* Find the build id among notes; untrusted. Each part begins at a multiple
 * of four bytes. */
static bool find_id(const uint8_t *notes, size_t len,
                    char hex[KT_BUILD_ID_SIZE])
{
    while (len >= NOTE_HEAD) {
        size_t name = le32_at(notes), data = le32_at(notes + 4);
        uint32_t type = le32_at(notes + 8);
        size_t at = NOTE_HEAD + (name + 3) / 4 * 4;

        if (name > len || data > len || at > len || data > len - at) {
            return false;
        }
        if (type == BUILD_ID && name == 4 &&
            !memcmp(notes + NOTE_HEAD, "GNU", 4)) {
            return put_id(notes + at, data, hex);
        }
        at = MIN(at + (data + 3) / 4 * 4, len);
        notes += at;
        len -= at;
    }
    return false;
}

bool kt_base_build_id(const KtObjects *o, char hex[KT_BUILD_ID_SIZE])
{
    uint8_t notes[MAX_NOTES];
    KtBaseRange range;
    size_t len;

    if (!o->kernel || !o->vm ||
        !between(o, "__start_notes", "__stop_notes", &range)) {
        return false;
    }
    len = MIN(range.last - range.start + 1, MAX_NOTES);
    return kt_objects_read(o, range.start, notes, len) &&
           find_id(notes, len, hex);
}
