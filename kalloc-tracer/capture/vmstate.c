/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's handlers for our section of the vmstate: see capture.h.
 *
 * QEMU calls them with the BQL held and all vCPUs stopped. While it reads or
 * writes bytes of the section it may run other handlers of its main loop, and
 * so one of our monitor commands. Therefore we hold no lock then: the whole
 * section is built, or read, in memory.
 */
#include "kalloc-tracer/capture/replay-stop.h"

#include <stdio.h>
#include <string.h>

#define NAME        "ka"
#define VERSION     1
#define PIECE       (64u * 1024)
#define BYTES_MAX   (1u << 30)

typedef struct VmState {
    KtCapture *capture;
    KtTracer *tracer;
} VmState;

/* Append up to BYTES_MAX bytes, and one more piece that shows the excess. */
static void to_bytes(void *opaque, const void *buf, size_t len)
{
    GByteArray *bytes = opaque;

    if (bytes->len <= BYTES_MAX) {
        g_byte_array_append(bytes, buf, len);
    }
}

GByteArray *kt_vmstate_pack(KtCapture *c, KtTracer *t, KtReplayStop *place)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(to_bytes, bytes);
    GsOut *p = gs_stream_out(writer);

    kt_capture_sync_counters(c);
    kt_snapshot_pack(t, p);
    kt_capture_pack(c, p);
    kt_replay_stop_pack(place, p);
    gs_stream_out_end(writer);
    return bytes->len <= BYTES_MAX ? g_steal_pointer(&bytes) : NULL;
}

static void on_save(struct qemu_plugin_vm_state *s, void *userdata)
{
    const VmState *v = userdata;
    g_autoptr(GByteArray) bytes = NULL;

    kt_capture_lock(v->capture);
    kt_capture_settle(v->capture);
    bytes = kt_vmstate_pack(v->capture, v->tracer, v->capture->shared.stop);
    kt_capture_unlock(v->capture);
    if (!bytes) {
        qemu_plugin_vm_state_fail(s, "ka's section is larger than 1 GiB");
    } else {
        qemu_plugin_vm_state_put(s, bytes->data, bytes->len);
    }
}

/* Return NULL if the section is larger than BYTES_MAX. */
static GByteArray *read_all(struct qemu_plugin_vm_state *s)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autofree uint8_t *buf = g_malloc(PIECE);
    size_t n;

    while ((n = qemu_plugin_vm_state_get(s, buf, PIECE)) > 0) {
        if (bytes->len + n > BYTES_MAX) {
            return NULL;
        }
        g_byte_array_append(bytes, buf, n);
    }
    return g_steal_pointer(&bytes);
}

bool kt_vmstate_install(KtCapture *c, KtTracer *t, KtReplayStop *place,
                        const GByteArray *bytes, GError **errp)
{
    GsBytes b = { bytes->data, bytes->len };
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(gs_stream_from_bytes, &b, KT_SNAPSHOT_MAX_BYTES);
    GsBytes *u = gs_stream_in(reader);
    g_autoptr(KtSnapshot) saved = kt_snapshot_unpack(t, u);
    g_autoptr(GByteArray) rest = kt_capture_unpack(u);

    kt_replay_stop_unpack(place, u);
    if (!gs_stream_in_end(reader, errp)) {
        return false;
    }
    kt_capture_sync_counters(c);
    return kt_capture_install(c, g_steal_pointer(&saved),
                              g_steal_pointer(&rest), errp);
}

void kt_vmstate_prepare(KtTracer *t)
{
    kt_log_save(t);
    kt_calls_save(t);
    kt_faults_save(t);
}

static void load(const VmState *v, struct qemu_plugin_vm_state *s)
{
    g_autoptr(GByteArray) bytes = read_all(s);
    g_autoptr(GError) err = NULL;

    if (!bytes) {
        qemu_plugin_vm_state_fail(s, "ka's section is larger than 1 GiB");
        return;
    }
    kt_vmstate_prepare(v->tracer);
    kt_capture_lock(v->capture);
    kt_capture_forget_image(v->capture);
    if (!kt_vmstate_install(v->capture, v->tracer, v->capture->shared.stop,
                            bytes, &err)) {
        qemu_plugin_vm_state_fail(s, err->message);
    }
    kt_capture_unlock(v->capture);
}

static void on_load(struct qemu_plugin_vm_state *s, uint32_t version,
                    void *userdata)
{
    const VmState *v = userdata;

    if (s) {
        load(v, s);
        return;
    }
    kt_capture_lock(v->capture);
    kt_capture_forget_image(v->capture);
    kt_capture_sync_counters(v->capture);
    kt_capture_reset_unknown(v->capture);
    kt_capture_unlock(v->capture);
    fputs("ka: the loaded VM snapshot came without a map: earlier "
          "allocations are unknown\n", stderr);
}

void kt_vmstate_register(qemu_plugin_id_t id, KtCapture *c, KtTracer *t)
{
    VmState *v = g_new(VmState, 1);

    *v = (VmState) { c, t };
    qemu_plugin_register_vm_state(id, NAME, VERSION, on_save, on_load, v);
}
