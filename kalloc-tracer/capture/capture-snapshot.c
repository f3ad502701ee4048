/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What capture knows beside the map, with the VM's state: the kernel and
 * where it runs, modules, calls under way, return sites, caches.
 *
 * When a state was loaded, nothing of before counts, and all code will be
 * translated anew. Mostly the kernel is there at once, in the memory that was
 * loaded, as some vCPU maps it: then nothing is missed. Where no vCPU shows it
 * now (in user mode, with page tables of their own, or on arm64 and riscv64)
 * it is the one that was known before the load, or it is looked for as soon as
 * it runs, and what happens until then is a gap.
 *
 * It is a stream of its own inside that of the map, since it can be used only
 * when the kernel was found.
 */
#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/kernel/load-code.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <stdio.h>
#include <string.h>

#define BANNER_MAX  1024
#define REST_MAX    (1u << 30)
#define TRIES_MAX   4096
#define PAGE        4096u

struct KtReturn {
    KtSnapshot *saved;
    GByteArray *rest;           /* the inner stream */
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
        gs_out_varint(p, c->boot->inner_tells[id]);
    }
    kt_guest_pack(c->boot->guest, p);
    gs_kernel_pack_modules(c->shared.kernel, p);
    kt_pending_calls_pack(c->shared.calls, p);
    kt_return_sites_pack(c->shared.sites, p);
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

    gs_out_varint(p, c->boot != NULL);
    if (c->boot) {
        pack_kernel(c->shared.kernel, p);
        pack_boot(c, p);
    }
    gs_stream_out_end(writer);
    return bytes;
}

/* A kernel that was not found again yet is as it was when it was saved. */
void kt_capture_pack(KtCapture *c, GsOut *p)
{
    g_autoptr(GByteArray) bytes =
        c->returning ? g_byte_array_ref(c->returning->rest) : pack_all(c);

    gs_out_varint(p, bytes->len);
    gs_out_bytes(p, bytes->data, bytes->len);
}

/* ---- reading ------------------------------------------------------------ */

GByteArray *kt_capture_unpack(GsBytes *u)
{
    uint64_t left = gs_bytes_upto(u, REST_MAX, "what is known of the kernel");
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

/* Returns: was a kernel known? */
static bool unpack_kernel(KtKernelAt *at, GsBytes *u)
{
    char banner[BANNER_MAX];

    if (!gs_bytes_upto(u, 1, "a flag")) {
        return false;
    }
    gs_bytes_text(u, banner, sizeof(banner), "the kernel's banner");
    at->banner = g_strdup(banner);
    at->memory = gs_bytes_upto(u, 1, "a flag");
    at->start = gs_bytes_varint(u, UINT64_MAX);
    at->end = gs_bytes_varint(u, UINT64_MAX);
    return true;
}

static void unpack_hooks(KtCapture *c, KtBoot *boot, GsBytes *u,
                         const KtIdMap *ids)
{
    uint64_t n = gs_bytes_upto(u, UINT8_MAX, "the number of hooks");

    for (unsigned i = 1; i <= n; i++) {
        KtHookId id = kt_id_map_hook(ids, i);
        uint64_t hits = gs_bytes_varint(u, UINT64_MAX);
        bool tells = gs_bytes_upto(u, 1, "a flag");

        if (id.v) {
            c->vcpu[0].hits[id.v] = hits;
            boot->inner_tells[id.v] = tells;
        }
    }
}

static void note_gap(KtCapture *c, uint8_t flags)
{
    const KtEvent gap = { .kind = KT_EV_GAP, .flags = flags };

    kt_tracer_push(c->shared.tracer, 0, &gap);
}

static void unpack_calls(KtCapture *c, GsBytes *u, const KtIdMap *ids)
{
    unsigned lost = kt_pending_calls_unpack(c->shared.calls, u, ids);

    if (lost) {
        kt_tracer_count(c->shared.tracer, KT_CNT_CALL_DROPPED, lost);
        note_gap(c, KT_EVF_UNSEEN);
    }
}

static void unpack_boot(KtCapture *c, KtBoot *boot, GsBytes *u,
                        const KtSnapshot *s)
{
    const KtIdMap map = kt_snapshot_ids(s);
    const KtIdMap *ids = &map;

    unpack_hooks(c, boot, u, ids);
    kt_guest_unpack(boot->guest, u, ids);
    kt_load_modules(c->shared.tracer, c->shared.kernel, u);
    unpack_calls(c, u, ids);
    kt_return_sites_unpack(c->shared.sites, u, ids);
}

/* ---- the kernel runs again ---------------------------------------------- */

/* Guest memory as that vCPU maps it; lock held. */
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

static bool take_kernel(KtCapture *c, GsKernel *k, const KtReturn *r,
                        GError **errp)
{
    GsBytes bytes = { r->rest->data, r->rest->len };
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(gs_stream_from_bytes, &bytes, KT_SNAPSHOT_MAX_BYTES);
    GsBytes *u = gs_stream_in(reader);
    KtKernelAt at = { 0 };
    KtBoot *boot;

    unpack_kernel(&at, u);
    kt_kernel_at_clear(&at);
    c->shared.kernel = k;
    boot = kt_capture_new_boot(c);
    unpack_boot(c, boot, u, r->saved);
    kt_tracer_inherit_modules(c->shared.tracer, k);
    kt_capture_set_kernel(c, k);
    kt_capture_publish(c, boot);
    return gs_stream_in_end(reader, errp);
}

static void free_return(KtReturn *r)
{
    kt_snapshot_free(r->saved);
    g_byte_array_unref(r->rest);
    kt_kernel_at_clear(&r->at);
    g_free(r);
}

void kt_capture_forget_return(KtCapture *c)
{
    KtReturn *r = c->returning;

    __atomic_store_n(&c->returning, NULL, __ATOMIC_RELEASE);
    if (r) {
        free_return(r);
    }
}

bool kt_capture_wants_return(const KtCapture *c, uint64_t va)
{
    return __atomic_load_n(&c->returning, __ATOMIC_RELAXED) &&
           !__atomic_load_n(&c->gave_up, __ATOMIC_RELAXED) &&
           kt_finder_may_run(c->finder, va);
}

void kt_capture_drop_return(KtCapture *c)
{
    if (c->returning) {
        note_gap(c, 0);
        kt_capture_forget_return(c);
    }
}

/* Nothing is told of what it does from now on. */
static void give_up(KtCapture *c)
{
    __atomic_store_n(&c->gave_up, true, __ATOMIC_RELAXED);
    note_gap(c, 0);
    fputs("ka: the kernel that the VM's state tells of was not found where it "
          "ran: nothing is traced\n", stderr);
}

/* Each try may read all of an image: it is tried after 1, 2, 4 ... blocks. */
bool kt_capture_return(KtCapture *c, uint64_t va)
{
    KtReturn *r = c->returning;
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
            give_up(c);
        }
        return false;
    }
    /* Before others see the boot and tell of blocks: frees were missed. */
    note_gap(c, 0);
    if (!take_kernel(c, k, r, &err)) {
        qemu_plugin_outs("ka: what the snapshot tells of its kernel is "
                         "damaged\n");
    }
    kt_capture_forget_return(c);
    return true;
}

/* ---- from outside ------------------------------------------------------- */

/* @begun: a kernel may be running whose start nobody will see. */
static void leave_all(KtCapture *c, bool begun)
{
    kt_capture_forget_return(c);
    kt_capture_drop_boot(c);
    c->shared.kernel = NULL;
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        memset(c->vcpu[i].hits, 0, sizeof(c->vcpu[i].hits));
    }
    if (c->finder) {
        kt_finder_restart(c->finder, false);
        kt_finder_late(c->finder, begun);
    }
}

void kt_capture_lost(KtCapture *c)
{
    leave_all(c, true);
    kt_tracer_reset_unknown(c->shared.tracer);
}

/* @r: taken. */
static bool return_now(KtCapture *c, KtReturn *r, GError **errp)
{
    GsKernel *k = c->finder ? find_by_vcpus(c, &r->at) : NULL;
    bool ok = true;

    if (k) {
        ok = take_kernel(c, k, r, errp);
        free_return(r);
    } else {
        __atomic_store_n(&c->gave_up, false, __ATOMIC_RELAXED);
        __atomic_store_n(&c->returning, r, __ATOMIC_RELEASE);
    }
    return ok;
}

/* @r: taken. Of blocks that nobody will tell of nothing is to be known. */
static void refuse_kernel(KtCapture *c, KtReturn *r)
{
    free_return(r);
    kt_capture_lost(c);
    fputs("ka: the VM's state is of another kernel than kernel=FILE: what was "
          "allocated is unknown, and nothing is traced\n", stderr);
}

bool kt_capture_install(KtCapture *c, KtSnapshot *s, GByteArray *rest,
                        GError **errp)
{
    GsBytes bytes = { rest->data, rest->len };
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(gs_stream_from_bytes, &bytes, KT_SNAPSHOT_MAX_BYTES);
    GsBytes *u = gs_stream_in(reader);
    KtReturn *r = g_new0(KtReturn, 1);
    bool known = unpack_kernel(&r->at, u);
    bool ok;

    r->saved = s;
    r->rest = rest;
    if (known && gs_bytes_ok(u) && c->finder &&
        !kt_finder_may_return(c->finder, &r->at)) {
        refuse_kernel(c, r);
        return true;
    }
    leave_all(c, known);
    if (!c->pages) {
        kt_snapshot_drop_pages(s);
    }
    kt_snapshot_install(c->shared.tracer, s);
    if (known && gs_bytes_ok(u)) {
        ok = return_now(c, r, errp);
    } else {
        ok = gs_stream_in_end(reader, errp);
        free_return(r);
    }
    if (!ok) {
        kt_capture_lost(c);
    }
    return ok;
}
