/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture in a VM snapshot: the kernel and its address, modules, pending
 * calls, return sites, caches. The map is not part of it.
 *
 * After a load nothing from before is valid, and QEMU translates all code
 * again. The snapshot's kernel has to be found in the loaded memory:
 *
 *   1. At once, through the page tables of any vCPU. Then nothing is missed.
 *   2. If no vCPU maps it now (in user mode with separate page tables, or on
 *      arm64 and riscv64): the kernel known before the load, if it is the same.
 *   3. Else as soon as it executes (KtResume). Events until then are a gap.
 *
 * These data need the kernel, so they are a stream of their own inside the
 * stream of the map, and are decoded when the kernel is found.
 *
 * Threads: QEMU's main thread, or the vCPU that found the kernel; always with
 * the capture's lock.
 */
#include "kalloc-tracer/capture/seam.h"
#include "kalloc-tracer/kernel/guest-learn.h"
#include "kalloc-tracer/kernel/load-code.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <stdio.h>
#include <string.h>

#define BANNER_MAX  1024
#define REST_MAX    (1u << 30)
#define TRIES_MAX   4096
#define PAGE        4096u

/* What the inner stream has. States of VMs without quarantine= are as those
 * that older versions saved. */
enum { NO_KERNEL, KERNEL, KERNEL_AND_DELAY };

/* @rest: the inner stream
 * @at: the kernel to look for */
struct KtResume {
    KtSnapshot *saved;
    GByteArray *rest;
    KtKernelAt at;
    unsigned tries;
};

/* ---- writing ------------------------------------------------------------ */

static unsigned n_hooks(const KtCapture *c)
{
    return kt_hook_table_count(kt_tracer_hooks(c->shared.tracer));
}

static void pack_boot(KtCapture *c, GsOut *p)
{
    unsigned n = n_hooks(c);

    gs_out_varint(p, n);
    for (unsigned id = 1; id <= n; id++) {
        gs_out_varint(p, kt_capture_hook_hits(c, (KtHookId) { id }));
        gs_out_varint(p, c->boot->inner_records[id]);
    }
    kt_guest_pack(c->boot->guest, p);
    gs_kernel_pack_modules(c->shared.kernel, p);
    kt_pending_calls_pack(c->shared.calls, p);
    kt_return_sites_pack(c->shared.sites, p);
    if (c->shared.delay) {
        kt_delay_free_pack(c, p);
    }
    kt_guest_pack_learned(c->boot->guest, p);
}

static void pack_kernel(const GsKernel *k, GsOut *p)
{
    KtKernelAt at;

    kt_kernel_at(k, &at);
    gs_out_text(p, at.banner);
    gs_out_varint(p, at.memory);
    gs_out_varint(p, at.start);
    gs_out_varint(p, at.end);
    kt_kernel_at_clear(&at);
}

static GByteArray *pack_all(KtCapture *c)
{
    GByteArray *bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);

    gs_out_varint(p, !c->boot ? NO_KERNEL :
                     c->shared.delay ? KERNEL_AND_DELAY : KERNEL);
    if (c->boot) {
        pack_kernel(c->shared.kernel, p);
        pack_boot(c, p);
    }
    gs_stream_out_end(writer);
    return bytes;
}

/* While a snapshot waits for its kernel, its inner stream is still valid. */
void kt_capture_pack(KtCapture *c, GsOut *p)
{
    g_autoptr(GByteArray) bytes =
        c->resume ? g_byte_array_ref(c->resume->rest) : pack_all(c);

    gs_out_varint(p, bytes->len);
    gs_out_bytes(p, bytes->data, bytes->len);
}

/* ---- reading ------------------------------------------------------------ */

GByteArray *kt_capture_unpack(GsBytes *u)
{
    uint64_t left = gs_bytes_upto(u, REST_MAX, "the data on the kernel");
    GByteArray *rest = g_byte_array_new();

    while (left && gs_bytes_ok(u)) {
        uint8_t buf[PAGE];
        size_t n = MIN(left, sizeof(buf));

        gs_bytes_copy(u, buf, n);
        g_byte_array_append(rest, buf, n);
        left -= n;
    }
    return rest;
}

/* Return what the snapshot has. If that is a kernel, @at is set. */
static uint64_t unpack_kernel(KtKernelAt *at, GsBytes *u)
{
    uint64_t has = gs_bytes_upto(u, KERNEL_AND_DELAY, "what is saved");
    char banner[BANNER_MAX];

    if (has == NO_KERNEL) {
        return has;
    }
    gs_bytes_text(u, banner, sizeof(banner), "the kernel's banner");
    at->banner = g_strdup(banner);
    at->memory = gs_bytes_upto(u, 1, "a flag");
    at->start = gs_bytes_varint(u, UINT64_MAX);
    at->end = gs_bytes_varint(u, UINT64_MAX);
    return has;
}

static void unpack_hooks(KtCapture *c, KtBoot *boot, GsBytes *u,
                         const KtIdMap *ids)
{
    uint64_t n = gs_bytes_upto(u, UINT8_MAX, "the number of hooks");

    for (unsigned i = 1; i <= n; i++) {
        KtHookId id = kt_id_map_hook(ids, i);
        uint64_t hits = gs_bytes_varint(u, UINT64_MAX);
        bool records = gs_bytes_upto(u, 1, "a flag");

        if (id.v) {
            c->vcpu[0].hits[id.v] = hits;
            boot->inner_records[id.v] = records;
            /* With which flags it was called is not known. */
            boot->put_pages |= hits &&
                               (boot->row[id.v].flags & KT_HOOK_PUT_PAGES);
        }
    }
}

static void push_gap(KtCapture *c, uint8_t flags)
{
    const KtEvent gap = { .kind = KT_EV_GAP, .flags = flags };

    kt_tracer_push(c->shared.tracer, 0, &gap);
}

static void unpack_calls(KtCapture *c, GsBytes *u, const KtIdMap *ids)
{
    unsigned lost = kt_pending_calls_unpack(c->shared.calls, u, ids);

    if (lost) {
        kt_tracer_count(c->shared.tracer, KT_CNT_CALL_DROPPED, lost);
        push_gap(c, KT_EVF_UNSEEN);
    }
}

static void unpack_boot(KtCapture *c, KtBoot *boot, GsBytes *u,
                        const KtSnapshot *s, bool has_delay)
{
    const KtIdMap map = kt_snapshot_ids(s);
    const KtIdMap *ids = &map;

    unpack_hooks(c, boot, u, ids);
    kt_guest_unpack(boot->guest, u, ids);
    kt_load_modules(c->shared.tracer, c->shared.kernel, u,
                    kt_snapshot_has_eras(s));
    unpack_calls(c, u, ids);
    kt_return_sites_unpack(c->shared.sites, u, ids);
    kt_delay_free_unpack(c, has_delay ? u : NULL, ids);
}

/* The stream of a kernel without types has one more section. States that were
 * saved by older versions lack it: then the members are learned again. */
static void unpack_learned(KtBoot *boot, GsStreamIn *reader)
{
    if (gs_stream_in_more(reader)) {
        kt_guest_unpack_learned(boot->guest, gs_stream_in(reader));
    }
}

/* ---- the kernel is found ------------------------------------------------- */

/* Guest memory through the page tables of one vCPU; lock held. */
static unsigned viewer;
static uint8_t viewed[PAGE];

static const void *view_of_vcpu(uint64_t va, size_t *avail)
{
    uint64_t off = va & (PAGE - 1);

    if (!qemu_plugin_read_vaddr_ram(viewer, va - off, viewed, PAGE)) {
        return NULL;
    }
    *avail = PAGE - off;
    return viewed + off;
}

static GsKernel *find_by_vcpus(KtCapture *c, const KtKernelAt *at)
{
    GsKernel *k = NULL;

    for (viewer = 0; !k && viewer < c->max_vcpus; viewer++) {
        k = kt_finder_return(c->finder, at, 0, view_of_vcpu);
    }
    return k ? k : kt_finder_known(c->finder, at);
}

static bool resume_kernel(KtCapture *c, GsKernel *k, const KtResume *r,
                        GError **errp)
{
    GsBytes bytes = { r->rest->data, r->rest->len };
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(gs_stream_from_bytes, &bytes, KT_SNAPSHOT_MAX_BYTES);
    GsBytes *u = gs_stream_in(reader);
    KtKernelAt at = { 0 };
    bool has_delay = unpack_kernel(&at, u) == KERNEL_AND_DELAY;
    KtBoot *boot;

    kt_kernel_at_clear(&at);
    c->shared.kernel = k;
    boot = kt_capture_new_boot(c);
    unpack_boot(c, boot, u, r->saved, has_delay);
    unpack_learned(boot, reader);
    kt_tracer_inherit_modules(c->shared.tracer, k);
    kt_capture_set_kernel(c, k);
    /* While the snapshot waited for its kernel, vCPUs execute. */
    kt_access_watch_begin_boot(c, boot, !c->resume);
    kt_delay_free_begin_boot(c);
    kt_capture_publish(c, boot);
    return gs_stream_in_end(reader, errp);
}

static void free_resume(KtResume *r)
{
    kt_snapshot_free(r->saved);
    g_byte_array_unref(r->rest);
    kt_kernel_at_clear(&r->at);
    g_free(r);
}

void kt_capture_clear_resume(KtCapture *c)
{
    KtResume *r = c->resume;

    __atomic_store_n(&c->resume, NULL, __ATOMIC_RELEASE);
    if (r) {
        free_resume(r);
    }
}

bool kt_capture_may_resume(const KtCapture *c, uint64_t va)
{
    return __atomic_load_n(&c->resume, __ATOMIC_RELAXED) &&
           !__atomic_load_n(&c->stopped_looking, __ATOMIC_RELAXED) &&
           kt_finder_may_run(c->finder, va);
}

void kt_capture_cancel_resume(KtCapture *c)
{
    if (c->resume) {
        push_gap(c, 0);
        kt_capture_clear_resume(c);
    }
}

static void stop_looking(KtCapture *c)
{
    __atomic_store_n(&c->stopped_looking, true, __ATOMIC_RELAXED);
    push_gap(c, 0);
    fputs("ka: the kernel of the loaded VM snapshot was not found at its "
          "address: nothing is traced\n", stderr);
}

/* A try can read a whole kernel image. So we try at the blocks 1, 2, 4, 8 ...,
 * and stop after TRIES_MAX blocks. */
bool kt_capture_resume(KtCapture *c, uint64_t va)
{
    KtResume *r = c->resume;
    g_autoptr(GError) err = NULL;
    GsKernel *k;

    if (!r || r->tries >= TRIES_MAX) {
        return false;
    }
    r->tries++;
    if (r->tries & (r->tries - 1)) {
        return false;
    }
    k = kt_finder_return(c->finder, &r->at, va, qemu_plugin_vaddr_to_host);
    if (!k) {
        if (r->tries == TRIES_MAX) {
            stop_looking(c);
        }
        return false;
    }
    /* Frees were missed. The gap must come before events of the new boot. */
    push_gap(c, 0);
    if (!resume_kernel(c, k, r, &err)) {
        qemu_plugin_outs("ka: the loaded VM snapshot is damaged: its data on "
                         "the kernel cannot be read\n");
    }
    kt_capture_clear_resume(c);
    return true;
}

/* ---- loading ------------------------------------------------------------- */

/* @begun: a kernel may be running already, so its early allocations are
 * unknown. */
static void reset_all(KtCapture *c, bool begun)
{
    kt_capture_clear_resume(c);
    kt_capture_drop_boot(c);
    c->seam->update(c);
    c->shared.kernel = NULL;
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        memset(c->vcpu[i].hits, 0, sizeof(c->vcpu[i].hits));
    }
    if (c->finder) {
        kt_finder_restart(c->finder, false);
        kt_finder_late(c->finder, begun);
    }
}

void kt_capture_reset_unknown(KtCapture *c)
{
    reset_all(c, true);
    kt_tracer_reset_unknown(c->shared.tracer);
}

/* @r: (owned by the callee) */
static bool resume_now(KtCapture *c, KtResume *r, GError **errp)
{
    GsKernel *k = c->finder ? find_by_vcpus(c, &r->at) : NULL;
    bool ok = true;

    if (k) {
        ok = resume_kernel(c, k, r, errp);
        free_resume(r);
    } else {
        __atomic_store_n(&c->stopped_looking, false, __ATOMIC_RELAXED);
        __atomic_store_n(&c->resume, r, __ATOMIC_RELEASE);
    }
    return ok;
}

/* Nothing will be traced, so the snapshot's map must not be used, either.
 * @r: (owned by the callee) */
static void refuse_kernel(KtCapture *c, KtResume *r)
{
    free_resume(r);
    kt_capture_reset_unknown(c);
    fputs("ka: the loaded VM snapshot has another kernel than kernel=FILE: "
          "earlier allocations are unknown, and nothing is traced\n", stderr);
}

bool kt_capture_install(KtCapture *c, KtSnapshot *s, GByteArray *rest,
                        GError **errp)
{
    GsBytes bytes = { rest->data, rest->len };
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(gs_stream_from_bytes, &bytes, KT_SNAPSHOT_MAX_BYTES);
    GsBytes *u = gs_stream_in(reader);
    KtResume *r = g_new0(KtResume, 1);
    bool known = unpack_kernel(&r->at, u) != NO_KERNEL;
    bool ok;

    r->saved = s;
    r->rest = rest;
    if (known && gs_bytes_ok(u) && c->finder &&
        !kt_finder_may_return(c->finder, &r->at)) {
        refuse_kernel(c, r);
        return true;
    }
    reset_all(c, known);
    if (!c->pages) {
        kt_snapshot_drop_pages(s);
    }
    kt_snapshot_install(c->shared.tracer, s);
    if (known && gs_bytes_ok(u)) {
        ok = resume_now(c, r, errp);
    } else {
        ok = gs_stream_in_end(reader, errp);
        free_resume(r);
    }
    if (!ok) {
        kt_capture_reset_unknown(c);
    }
    return ok;
}
