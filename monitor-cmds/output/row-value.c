/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of rows, as a table of columns says where they are: see row.h.
 *
 * Called by the forms after the rows were copied, without the tracer's lock:
 * names of tasks, caches and hooks stay valid while the tracer exists.
 */
#include "monitor-cmds/output/row.h"

/* Return where a value is, NULL if what has it is not there. @via, @at: as in
 * McColumn */
static const uint8_t *place_of(const void *row, uint16_t via, uint16_t at)
{
    const uint8_t *from = row;

    if (via) {
        from = *(const uint8_t *const *)(from + via - 1);
    }
    return from ? from + at : NULL;
}

static uint64_t read_number(const uint8_t *at, unsigned size)
{
    switch (size) {
    case 1:
        return *at;
    case 2:
        return *(const uint16_t *)at;
    case 4:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static bool matches(const McTest *t, const void *row)
{
    const uint8_t *at = place_of(row, t->via, t->at);
    uint64_t n = at ? read_number(at, t->size) : 0;
    bool set = t->one_of ? at && n < 64 && t->one_of >> n & 1 :
               t->mask ? n & t->mask : n;

    return set != t->no;
}

bool mc_applies(const McOut *o, const McColumn *c, const void *row)
{
    return (!(c->flags & MC_V) || o->verbose) &&
           (!c->only.size || matches(&c->only, row)) &&
           (!c->when || c->when(o, row));
}

static bool read_text(const McColumn *c, const uint8_t *at, McValue *v)
{
    v->s = c->look == MC_LOOK_CHARS ? (const char *)at :
                                 *(const char *const *)at;
    return v->s && (*v->s || c->look == MC_LOOK_TEXT);
}

static bool read_task(KtTracer *t, const McColumn *c, uint32_t id, McValue *v)
{
    char comm[17];
    uint32_t pid;

    if (!id || !kt_tracer_task(t, (KtTaskId) { id }, &pid, comm)) {
        return false;
    }
    v->u = pid;
    comm[sizeof(comm) - 1] = 0;
    g_strlcpy(v->text, comm, sizeof(v->text));
    v->s = v->text;
    return c->look == MC_LOOK_PID || *v->s;
}

static bool read_name(KtTracer *t, const McColumn *c, uint64_t id, McValue *v)
{
    KtCacheInfo info;

    if (!id) {
        return false;
    }
    if (c->look == MC_LOOK_LAYER) {
        v->s = kt_layer_name((KtLayer)id);
    } else if (c->look == MC_LOOK_HOOK) {
        v->s = kt_tracer_hook_name(t, (KtHookId) { (uint8_t)id });
    } else {
        v->s = kt_tracer_cache(t, (KtCacheId) { (uint16_t)id }, &info) ?
               info.name : NULL;
    }
    return v->s && *v->s;
}

static bool read_stop(KtTracer *t, uint32_t id, McValue *v)
{
    GsStop stop;
    unsigned n;

    if (!id || !kt_tracer_stack(t, (KtStackId) { id }, &n, &stop)) {
        return false;
    }
    v->s = gs_stop_name(stop);
    return v->s && *v->s;
}

bool mc_value(const McOut *o, const McColumn *c, const void *row, McValue *v)
{
    const uint8_t *at;

    if (c->get) {
        return c->get(o, c, row, v);
    }
    if (c->look == MC_LOOK_CUSTOM) {
        return true;
    }
    at = place_of(row, c->via, c->at);
    if (!at) {
        return false;
    }
    if (c->name) {
        v->s = c->name((unsigned)read_number(at, c->size));
        return v->s && *v->s;
    }
    switch (c->look) {
    case MC_LOOK_WORD:
    case MC_LOOK_CHARS:
    case MC_LOOK_TEXT:
        return read_text(c, at, v);
    case MC_LOOK_LIST:
        v->list = *(const char *const *const *)at;
        return v->list != NULL;
    default:
        v->u = read_number(at, c->size);
        v->u = c->mask ? !!(v->u & c->mask) : v->u;
    }
    switch (c->look) {
    case MC_LOOK_STACK:
    case MC_LOOK_TAIL:
    case MC_LOOK_FRAMES:
        v->stack = mc_stack(o->ctx->tracer, (KtStackId) { (uint32_t)v->u });
        v->stack.exact = c->flags & MC_EXACT;
        return true;
    case MC_LOOK_STOP:
        return read_stop(o->ctx->tracer, (uint32_t)v->u, v);
    case MC_LOOK_PID:
    case MC_LOOK_COMM:
        return read_task(o->ctx->tracer, c, (uint32_t)v->u, v);
    case MC_LOOK_CACHE:
    case MC_LOOK_HOOK:
    case MC_LOOK_LAYER:
        return read_name(o->ctx->tracer, c, v->u, v);
    default:
        return !(c->flags & MC_ZERO && !v->u) &&
               !(c->flags & MC_MOST && v->u == UINT64_MAX >>
                                              (64 - 8 * c->size));
    }
}
