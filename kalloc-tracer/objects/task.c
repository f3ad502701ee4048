/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One task: where the kernel has the facts about it, and how they are read. See
 * objects-internal.h.
 *
 * Offsets are those of the kernel's own types, so a random order of members
 * does not matter. A kernel without types has only those that were learned from
 * calls (KtVm.task_pid and KtVm.task_comm).
 */

#include <string.h>

#include "kalloc-tracer/layout/layout.h"
#include "kalloc-tracer/objects/objects-internal.h"

/* Limit of what is copied of a task_struct. */
#define TASK_MAX 0x10000u

G_STATIC_ASSERT(KT_TASK__COUNT <= 32);

enum { NUMBER, POINTER, OBJECT };

static const struct {
    const char *name;
    const char *member[2];
    int kind;
} facts[KT_TASK__COUNT] = {
#define KT_TASK_FACT(id, name_, member_, older, kind_) \
    [KT_TASK_##id] = { name_, { member_, older }, kind_ },
#include "kalloc-tracer/api/task-facts.def"
};

const char *kt_task_fact_name(KtTaskFact fact)
{
    return facts[fact].name;
}

bool kt_task_fact_is_object(KtTaskFact fact)
{
    return facts[fact].kind == OBJECT;
}

bool kt_task_fact(const KtTask *t, KtTaskFact fact, uint64_t *out)
{
    *out = t->fact[fact];
    return t->known & 1u << fact;
}

/* ---- state --------------------------------------------------------------- */

/* Bits of the members __state and exit_state, see include/linux/sched.h. They
 * have these values in all kernels since 4.14. */
#define TASK_REPORT         0x7fu
#define TASK_IDLE           0x402u  /* TASK_UNINTERRUPTIBLE | TASK_NOLOAD */
#define TASK_UNINTERRUPTIBLE 0x2u
#define TASK_RTLOCK_WAIT    0x1000u
#define TASK_FROZEN         0x8000u

/* As task_state_index() of include/linux/sched.h: the letter of the highest
 * bit. */
char kt_task_state(const KtTask *t)
{
    static const char letters[] = "RSDTtXZPI";
    uint64_t state, exit_state = 0;
    unsigned bits;

    if (!kt_task_fact(t, KT_TASK_STATE, &state)) {
        return '-';
    }
    kt_task_fact(t, KT_TASK_EXIT_STATE, &exit_state);
    bits = (state | exit_state) & TASK_REPORT;
    if ((state & TASK_IDLE) == TASK_IDLE) {
        return 'I';
    }
    if (state & (TASK_RTLOCK_WAIT | TASK_FROZEN)) {
        bits = TASK_UNINTERRUPTIBLE;
    }
    return letters[bits ? 32 - __builtin_clz(bits) : 0];
}

/* ---- layout -------------------------------------------------------------- */

/* Use an offset in task_struct. If it is not believable, do not. */
static void use(KtTaskLayout *at, uint32_t *to, uint32_t offset,
                uint32_t bytes)
{
    if (offset <= TASK_MAX - 64 && bytes <= 64) {
        *to = offset;
        at->end = MAX(at->end, offset + bytes);
    }
}

static void find_fact(KtTaskLayout *at, const GsKernel *k, KtTaskFact fact)
{
    for (unsigned i = 0; i < 2 && facts[fact].member[i]; i++) {
        uint32_t offset, bytes;

        if (gs_kernel_member(k, "task_struct", facts[fact].member[i], &offset,
                             &bytes) && bytes <= sizeof(uint64_t) &&
            bytes && !(bytes & (bytes - 1))) {
            use(at, &at->at[fact], offset, bytes);
            at->bytes[fact] = bytes;
            return;
        }
    }
}

static void find_by_types(KtTaskLayout *at, const KtObjects *o)
{
    uint32_t offset, bytes;

    for (unsigned i = 0; i < KT_TASK__COUNT; i++) {
        find_fact(at, o->kernel, i);
    }
    if (gs_kernel_member(o->kernel, "task_struct", "comm", &offset, &bytes)) {
        at->comm_bytes = MIN(bytes, 16);
        use(at, &at->comm, offset, at->comm_bytes);
    }
}

static void find_learned(KtTaskLayout *at, const KtVm *vm)
{
    if (vm->task_pid) {
        use(at, &at->at[KT_TASK_PID], vm->task_pid, 4);
        at->bytes[KT_TASK_PID] = 4;
    }
    if (vm->task_comm) {
        at->comm_bytes = 16;
        use(at, &at->comm, vm->task_comm, 16);
    }
    if (at->end) {
        at->types = "learned";
    }
}

void kt_task_layout_init(KtTaskLayout *at, const KtObjects *o)
{
    memset(at, 0xff, sizeof(*at));
    at->end = at->comm_bytes = 0;
    at->types = o->kernel ? gs_kernel_types_from(o->kernel) : "none";
    at->uid = kt_member(o->kernel, KT_M_CRED_UID);
    at->tasks = kt_member(o->kernel, KT_M_TASK_TASKS);
    at->node = kt_member(o->kernel, KT_M_TASK_NODE);
    at->signal_head = kt_member(o->kernel, KT_M_SIGNAL_HEAD);
    if (o->kernel) {
        find_by_types(at, o);
    }
    if (!at->end && o->vm) {
        find_learned(at, o->vm);
    }
}

uint32_t kt_task_layout_unknown(const KtTaskLayout *at)
{
    uint32_t unknown = 0;

    for (unsigned i = 0; i < KT_TASK__COUNT; i++) {
        if (facts[i].member[0] && at->at[i] == KT_TASK_UNKNOWN) {
            unknown |= 1u << i;
        }
    }
    if (at->at[KT_TASK_PARENT] == KT_TASK_UNKNOWN ||
        at->at[KT_TASK_TGID] == KT_TASK_UNKNOWN) {
        unknown |= 1u << KT_TASK_PPID;
    }
    if (at->at[KT_TASK_REAL_CRED] == KT_TASK_UNKNOWN ||
        at->uid == KT_TASK_UNKNOWN) {
        unknown |= 1u << KT_TASK_UID;
    }
    return unknown;
}

/* ---- reading ------------------------------------------------------------- */

static uint64_t number_at(const uint8_t *bytes, unsigned n)
{
    uint64_t word = 0;

    memcpy(&word, bytes, n);
    return GUINT64_FROM_LE(word);
}

void kt_task_read(const KtObjects *o, const KtTaskLayout *at, KtTask *t)
{
    g_autofree uint8_t *bytes = g_malloc(at->end + 1);
    uint64_t tag_bits = o->kernel ? gs_kernel_tag_bits(o->kernel) : 0;

    if (!at->end || !kt_objects_read(o, t->va, bytes, at->end)) {
        return;
    }
    for (unsigned i = 0; i < KT_TASK__COUNT; i++) {
        uint64_t value;

        if (at->at[i] == KT_TASK_UNKNOWN) {
            continue;
        }
        value = number_at(bytes + at->at[i], at->bytes[i]);
        kt_task_set(t, i, facts[i].kind == NUMBER ? value :
                                                    gs_untag(tag_bits, value));
    }
    if (at->comm != KT_TASK_UNKNOWN) {
        memcpy(t->comm, bytes + at->comm, at->comm_bytes);
    }
}

void kt_task_read_others(const KtObjects *o, const KtTaskLayout *at, KtTask *t)
{
    uint64_t va, value;

    if (kt_task_fact(t, KT_TASK_PARENT, &va) && va &&
        at->at[KT_TASK_TGID] != KT_TASK_UNKNOWN &&
        kt_objects_number(o, va + at->at[KT_TASK_TGID], 4, &value)) {
        kt_task_set(t, KT_TASK_PPID, value);
    }
    if (kt_task_fact(t, KT_TASK_REAL_CRED, &va) && va &&
        at->uid != KT_TASK_UNKNOWN &&
        kt_objects_number(o, va + at->uid, 4, &value)) {
        kt_task_set(t, KT_TASK_UID, value);
    }
}
