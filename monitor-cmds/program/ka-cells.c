/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka -f FILE --cells: print a journal's events as a stream of cells of 64
 * bytes, in the host's byte order. Programs can read them without a library.
 * The section "Cells" of docs/journal.md describes the format.
 *
 * Called by main() of the program `ka`, on its only thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "monitor-cmds/program/ka.h"
#include "kalloc-tracer/kt.h"

#define CELL            64
#define CELLS_VERSION   1

typedef enum CellKind {
    CELL_STACK = 0x81,
    CELL_TASK,
    CELL_CACHE,
    CELL_HOOK,
    CELL_RESET,
    CELL_CLEAR,
    CELL_COMPLETE,
    CELL_ENABLED,
    CELL_HOLE,
    CELL_LOAD,
} CellKind;

/* A cell that is no event; @kind is at the same offset as in an event. */
typedef struct Def {
    uint32_t id;
    uint32_t n;             /* number of frames, pid, bytes of a name */
    union {
        uint64_t stop;
        char comm[16];
        struct {
            uint64_t va;
            uint32_t object_size;
            uint32_t size;
        } cache;
    } u;
    uint8_t pad0[30];
    uint8_t kind;
    uint8_t more;           /* number of cells that follow and belong to it */
    uint8_t pad1[8];
} __attribute__((packed)) Def;
G_STATIC_ASSERT(sizeof(Def) == CELL);
G_STATIC_ASSERT(offsetof(Def, kind) == offsetof(KtEvent, kind));

typedef struct Dump {
    KtTracer *t;
    GHashTable *seen[CELL_HOOK + 1 - CELL_STACK];
    bool failed;
} Dump;

static void put(Dump *d, const void *data, size_t len)
{
    d->failed |= len && fwrite(data, 1, len, stdout) != len;
}

static void put_def(Dump *d, Def *def, const void *data, size_t len)
{
    static const char zeros[CELL];

    def->more = (len + CELL - 1) / CELL;
    put(d, def, sizeof(*def));
    put(d, data, len);
    put(d, zeros, def->more * CELL - len);
}

static bool first_sight(Dump *d, CellKind kind, uint32_t id)
{
    return (id || kind == CELL_HOOK) &&
           g_hash_table_add(d->seen[kind - CELL_STACK],
                            GUINT_TO_POINTER(id));
}

static void define(Dump *d, const KtEvent *ev)
{
    Def def = { 0 };
    char comm[17];
    KtCacheInfo info;
    GsStop stop;
    unsigned n = 0;

    if (first_sight(d, CELL_STACK, ev->stack.v)) {
        const uint64_t *pc = kt_tracer_stack(d->t, ev->stack, &n, &stop);

        def = (Def) { .id = ev->stack.v, .n = n, .kind = CELL_STACK,
                      .u.stop = stop };
        put_def(d, &def, pc, n * sizeof(*pc));
    }
    if (first_sight(d, CELL_TASK, ev->task.v)) {
        def = (Def) { .id = ev->task.v, .kind = CELL_TASK };
        kt_tracer_task(d->t, ev->task, &n, comm);
        def.n = n;
        memcpy(def.u.comm, comm, sizeof(def.u.comm));
        put_def(d, &def, NULL, 0);
    }
    if (first_sight(d, CELL_CACHE, ev->cache.v) &&
        kt_tracer_cache(d->t, ev->cache, &info)) {
        def = (Def) { .id = ev->cache.v, .n = strlen(info.name),
                      .kind = CELL_CACHE,
                      .u.cache = { info.va, info.object_size, info.size } };
        put_def(d, &def, info.name, def.n);
    }
    if (first_sight(d, CELL_HOOK, ev->hook.v)) {
        const char *name = kt_tracer_hook_name(d->t, ev->hook);

        def = (Def) { .id = ev->hook.v, .n = strlen(name),
                      .kind = CELL_HOOK };
        put_def(d, &def, name, def.n);
    }
}

static bool on_event(void *opaque, const KtEvent *ev)
{
    Dump *d = opaque;

    define(d, ev);
    put(d, ev, sizeof(*ev));
    return !d->failed;
}

static bool on_control(void *opaque, KtReplayControl control, uint64_t value)
{
    static const uint8_t kinds[] = {
        [KT_REPLAY_RESET] = CELL_RESET, [KT_REPLAY_CLEAR] = CELL_CLEAR,
        [KT_REPLAY_COMPLETE] = CELL_COMPLETE,
        [KT_REPLAY_ENABLED] = CELL_ENABLED, [KT_REPLAY_GAP] = CELL_HOLE,
        [KT_REPLAY_LOAD] = CELL_LOAD,
    };
    Dump *d = opaque;
    Def def = { .id = MIN(value, UINT32_MAX), .kind = kinds[control] };

    put_def(d, &def, NULL, 0);
    return !d->failed;
}

static void put_header(Dump *d)
{
    struct {
        char magic[6];
        uint16_t version;
        uint32_t header_size;
        uint32_t cell_size;
        uint8_t pad[48];
    } header = {
        .magic = "KACELL", .version = CELLS_VERSION, .header_size = CELL,
        .cell_size = CELL,
    };

    G_STATIC_ASSERT(sizeof(header) == CELL);
    put(d, &header, sizeof(header));
}

/* Warn on stderr if the stream is incomplete. A hole in the journal needs no
 * warning, it is a cell. */
static int warn_incomplete(const char *path, const KtReplayInfo *info,
                           bool failed)
{
    if (failed || fflush(stdout)) {
        perror("ka: stdout");
        return KA_NO_ANSWER;
    }
    if (info->damage || !info->ended) {
        ka_warn_missing(path, info);
    }
    return KA_ANSWERED;
}

int ka_dump_file(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(KtReplay) r = kt_replay_open(path, &err);
    Dump d = { 0 };
    const KtReplayPlan plan = {
        .until_us = UINT64_MAX, .event = on_event, .control = on_control,
        .opaque = &d,
    };
    int rc;

    if (!r) {
        fprintf(stderr, "ka: %s\n", err->message);
        return KA_NO_ANSWER;
    }
    d.t = kt_replay_tracer(r);
    for (unsigned i = 0; i < G_N_ELEMENTS(d.seen); i++) {
        d.seen[i] = g_hash_table_new(NULL, NULL);
    }
    put_header(&d);
    kt_replay_run(r, &plan);
    rc = warn_incomplete(path, kt_replay_info(r), d.failed);
    for (unsigned i = 0; i < G_N_ELEMENTS(d.seen); i++) {
        g_hash_table_unref(d.seen[i]);
    }
    return rc;
}
