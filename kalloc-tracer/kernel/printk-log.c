/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follow the ring of printk records: see printk-log.h.
 *
 * Records that cannot be read are counted with the line after them: the kernel
 * overwrote them, or had no room for their text.
 *
 * A record that is not finished stops the reading, so that lines stay in order.
 * But its writer may never finish it: a panic on another CPU stopped it. So the
 * record is left out if later ones are readable, and the VM is stopped or
 * STUCK_US have gone by. If it is finished after all, its line comes late.
 *
 * A host that is busy may not run that vCPU for some tens of milliseconds. The
 * others then store hundreds of records, whose writers are kept in @returned.
 */
#include "kalloc-tracer/kernel/printk-log.h"

#include <pthread.h>
#include <time.h>

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/kernel/printk-ring.h"
#include "kalloc-tracer/log/log-lines.h"
#include "kalloc-tracer/tracer/tracer.h"

#define STUCK_US        1000000
#define STUCK_LOOK      64          /* records that are looked at behind it */
#define TIME_NS         1000000     /* for one call */
#define TIME_STEP       16          /* records between two looks at the clock */
#define LEFT_OUT        16          /* unfinished records that are awaited */
#define WRITERS         64          /* lines whose writers may come later */
#define RETURNED        4096        /* writers whose lines may come later */
#define MOVE_MAX        8192        /* records of a new ring that are read */

/* A line that was added, and whose writer may still come. */
typedef struct Waiting {
    uint64_t number, seq;
    uint32_t caller;
} Waiting;

/* A writer that has returned; @seq: number of its record plus one, 0: none. */
typedef struct Returned {
    uint64_t seq;
    uint32_t caller;
    KtPrintkWriter by;
} Returned;

/*
 * @lock: of all that follows
 * @sure: the layout is from types, or was confirmed
 * @ring: address of the ring that was read last
 * @next: number of the next record to read
 * @last_ns: time of the record before
 * @lost: records that were passed over since the last line
 * @stuck_since: when @next was first found unfinished; 0: it was not
 * @left_out: numbers of the @n_left_out unfinished records
 * @waiting: the newest lines without a writer, a ring
 * @n_waiting: lines that were ever put there
 * @returned: writers that have returned and whose records are not readable
 *            yet, each at its record's number modulo RETURNED
 * @marked: a line of a program was added since the lines were saved
 */
struct KtPrintkLog {
    KtTracer *tracer;
    const char *why_not;
    KtPrintkLayout at;
    pthread_mutex_t lock;
    bool sure;
    uint64_t ring;
    uint64_t next;
    uint64_t last_ns;
    uint64_t lost;
    uint64_t stuck_since;
    uint64_t left_out[LEFT_OUT];
    unsigned n_left_out;
    Waiting waiting[WRITERS];
    unsigned n_waiting;
    bool marked;
    Returned returned[RETURNED];
    KtPrintkRecord record;
};

void kt_printk_log_drop_types(KtPrintkLog *l, const GsKernel *k)
{
    l->why_not = kt_printk_layout_find(&l->at, k);
    l->sure = l->at.from_types;
}

KtPrintkLog *kt_printk_log_new(const GsKernel *k, KtTracer *t)
{
    KtPrintkLog *l = g_new0(KtPrintkLog, 1);

    l->tracer = t;
    kt_budget_charge(kt_tracer_budget(t), KT_MEM_FIXED, sizeof(*l));
    kt_printk_log_drop_types(l, k);
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void kt_printk_log_free(KtPrintkLog *l)
{
    if (l) {
        kt_budget_release(kt_tracer_budget(l->tracer), KT_MEM_FIXED,
                          sizeof(*l));
        pthread_mutex_destroy(&l->lock);
        g_free(l);
    }
}

const char *kt_printk_log_why_not(const KtPrintkLog *l)
{
    if (l->why_not || __atomic_load_n(&l->sure, __ATOMIC_RELAXED)) {
        return l->why_not;
    }
    return "this kernel has no types, and not yet enough records to be sure "
           "where the parts of its log are";
}

/* ---- lines --------------------------------------------------------------- */

/* In an interrupt the kernel stores the CPU's number. With softirqs disabled it
 * stores the pid, although @w->irq is set. */
static bool is_of(const KtPrintkWriter *w, uint64_t seq, uint32_t caller)
{
    return w && w->known && seq >= w->since &&
           (caller == w->pid ||
            (w->irq && caller == (KT_LOG_CALLER_CPU | w->cpu)));
}

static void set_writer(KtLogLine *line, const KtPrintkWriter *w)
{
    line->us = w->us;
    line->task = w->task;
    line->stack = w->stack;
    line->cpu = w->cpu;
    line->flags |= KT_LOG_SEEN;
}

/* Return who stored the record, NULL if that is not known yet. */
static const KtPrintkWriter *writer_of(const KtPrintkLog *l,
                                       const KtPrintkWriter *w)
{
    const KtPrintkRecord *r = &l->record;
    const Returned *returned = &l->returned[r->seq % RETURNED];

    if (returned->seq == r->seq + 1 && returned->caller == r->caller) {
        return &returned->by;
    }
    return is_of(w, r->seq, r->caller) ? w : NULL;
}

static void add_line(KtPrintkLog *l, const KtPrintkWriter *w, uint64_t us)
{
    const KtPrintkRecord *r = &l->record;
    const KtPrintkWriter *by = writer_of(l, w);
    KtLogLine line = {
        .seq = r->seq, .ns = r->ns, .us = us, .lost = l->lost,
        .caller = r->caller, .level = r->level, .facility = r->facility,
        .flags = KT_LOG_CALLER | (r->cut ? KT_LOG_CUT : 0), .len = r->len,
    };
    uint64_t number;

    if (by) {
        set_writer(&line, by);
    }
    number = kt_log_add(l->tracer, &line, r->text);
    if (!by) {
        l->waiting[l->n_waiting++ % WRITERS] = (Waiting) {
            number, r->seq, r->caller
        };
    }
    l->last_ns = MAX(l->last_ns, r->ns);
    l->lost = 0;
    l->marked |= r->facility;
}

/* The writer returns only now; other writers caused its lines to be read. */
static void name_waiting(KtPrintkLog *l, const KtPrintkWriter *w)
{
    KtLogLine from = { 0 };

    set_writer(&from, w);
    for (unsigned i = 0; i < MIN(l->n_waiting, WRITERS); i++) {
        Waiting *waits = &l->waiting[i];

        if (waits->number && is_of(w, waits->seq, waits->caller)) {
            kt_log_set_writer(l->tracer, waits->number, &from);
            waits->number = 0;
        }
    }
}

/* Keep the writer of the record at hand. It keeps the one that began it. */
static void keep_writer(KtPrintkLog *l, const KtPrintkWriter *w)
{
    const KtPrintkRecord *r = &l->record;
    Returned *returned = &l->returned[r->seq % RETURNED];

    if (is_of(w, r->seq, r->caller) && returned->seq != r->seq + 1) {
        *returned = (Returned) { r->seq + 1, r->caller, *w };
    }
}

/* ---- the ring ------------------------------------------------------------ */

/* Pass over record @next, and those up to the oldest one. */
static void pass_over(KtPrintkLog *l, const KtPrintkRing *r, const GsMem *mem)
{
    uint64_t oldest, to = l->next + 1;

    if (kt_printk_ring_oldest(r, &l->at, mem, &oldest) &&
        oldest - to <= INT64_MAX) {
        to = oldest;
    }
    l->lost += to - l->next;
    l->next = to;
}

static bool later_is_readable(const KtPrintkLog *l, const KtPrintkRing *r,
                              const GsMem *mem)
{
    g_autofree KtPrintkRecord *rec = g_new(KtPrintkRecord, 1);

    for (unsigned i = 1; i <= STUCK_LOOK; i++) {
        KtPrintkState state = kt_printk_ring_read(r, &l->at, mem, l->next + i,
                                                  rec);

        if (state == KT_PRINTK_RECORD) {
            return true;
        }
        if (state == KT_PRINTK_BAD) {
            return false;
        }
    }
    return false;
}

static void leave_out(KtPrintkLog *l, uint64_t seq)
{
    if (l->n_left_out < LEFT_OUT) {
        l->left_out[l->n_left_out++] = seq;
    } else {
        l->lost++;
    }
}

/* Record @next is not finished. Return true if it is left out. */
static bool is_stuck(KtPrintkLog *l, const KtPrintkRing *r, const GsMem *mem,
                     const KtPrintkNow *now)
{
    if (!l->stuck_since) {
        l->stuck_since = now->us + 1;
    }
    if ((!now->stopped && now->us + 1 - l->stuck_since < STUCK_US) ||
        !later_is_readable(l, r, mem)) {
        return false;
    }
    leave_out(l, l->next++);
    l->stuck_since = 0;
    return true;
}

/*
 * The kernel has moved its records to another ring, mostly under the same
 * numbers. Those that were overwritten in the old ring have no number in the
 * new one; then the place is found by the time of the last line.
 */
static void find_place(KtPrintkLog *l, const KtPrintkRing *r, const GsMem *mem)
{
    uint64_t seq, ns, from = 0;

    if (!l->next || (kt_printk_ring_time(r, &l->at, mem, l->next - 1, &seq,
                                         &ns) &&
                     seq == l->next - 1 && ns == l->last_ns)) {
        return;
    }
    for (uint64_t i = 0; i < MIN(r->mask + 1, MOVE_MAX); i++) {
        if (!kt_printk_ring_time(r, &l->at, mem, i, &seq, &ns) || seq != i ||
            ns > l->last_ns) {
            break;
        }
        from = i + 1;
    }
    l->next = from;
}

/* Add the lines of records that were left out, and are finished now. */
static void read_left_out(KtPrintkLog *l, const KtPrintkRing *r,
                          const GsMem *mem, const KtPrintkWriter *w,
                          uint64_t us)
{
    unsigned n = 0;

    for (unsigned i = 0; i < l->n_left_out; i++) {
        uint64_t seq = l->left_out[i];

        switch (kt_printk_ring_read(r, &l->at, mem, seq, &l->record)) {
        case KT_PRINTK_RECORD:
            add_line(l, w, us);
            break;
        case KT_PRINTK_NOT_YET:
        case KT_PRINTK_OPEN:
            l->left_out[n++] = seq;
            break;
        default:
            l->lost++;
            break;
        }
    }
    l->n_left_out = n;
}

static bool open_ring(KtPrintkLog *l, KtPrintkRing *r, const GsMem *mem)
{
    if (!l->sure) {
        __atomic_store_n(&l->sure, kt_printk_ring_fits(&l->at, mem),
                         __ATOMIC_RELAXED);
    }
    if (!l->sure || !kt_printk_ring_open(r, &l->at, mem)) {
        return false;
    }
    if (l->ring && l->ring != r->va) {
        find_place(l, r, mem);
        l->lost += l->n_left_out;
        l->n_left_out = 0;
    }
    l->ring = r->va;
    return true;
}

/* Handle record @next. Return false if nothing more can be read now. */
static bool step(KtPrintkLog *l, const KtPrintkRing *r, const GsMem *mem,
                 const KtPrintkWriter *w, const KtPrintkNow *now)
{
    KtPrintkState state = kt_printk_ring_read(r, &l->at, mem, l->next,
                                              &l->record);

    switch (state) {
    case KT_PRINTK_RECORD:
        add_line(l, w, now->us);
        l->next++;
        l->stuck_since = 0;
        return true;
    case KT_PRINTK_OPEN:
        return false;
    case KT_PRINTK_NOT_YET:
        return is_stuck(l, r, mem, now);
    case KT_PRINTK_BAD:
        kt_tracer_count(l->tracer, KT_CNT_LOG_BAD, 1);
        break;
    default:
        break;
    }
    pass_over(l, r, mem);
    return true;
}

/* In another ring than that of the last read, records may have other numbers:
 * they are found at the next read. */
uint64_t kt_printk_log_end(KtPrintkLog *l, const GsMem *mem)
{
    uint64_t seq = UINT64_MAX;
    KtPrintkRing r;

    pthread_mutex_lock(&l->lock);
    if (!l->why_not && l->sure && kt_printk_ring_open(&r, &l->at, mem)) {
        seq = l->next;
        if (!l->ring || l->ring == r.va) {
            seq += kt_printk_ring_newer(&r, l->next);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return seq;
}

static uint64_t host_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static bool read_ring(KtPrintkLog *l, const KtPrintkRing *r, const GsMem *mem,
                      const KtPrintkWriter *w, const KtPrintkNow *now)
{
    uint64_t since = 0;

    for (unsigned i = 1; step(l, r, mem, w, now); i++) {
        if (i == KT_PRINTK_BATCH) {
            return true;
        }
        if (i % TIME_STEP == 0 && !l->tracer->config.repeatable) {
            since = since ? since : host_ns();
            if (host_ns() - since >= TIME_NS) {
                return true;
            }
        }
    }
    return false;
}

static bool may_be_of(const KtPrintkLog *l, const KtPrintkRing *r,
                      const GsMem *mem, const KtPrintkWriter *w, uint64_t seq)
{
    uint32_t caller;

    return kt_printk_ring_caller(r, &l->at, mem, seq, &caller) &&
           is_of(w, seq, caller);
}

/*
 * The record of @w is stored, but cannot be read yet, because one in front of
 * it is not finished: keep @w until it can. There may be thousands in between:
 * while the host does not run one vCPU, the others go on storing.
 */
static void keep_unread(KtPrintkLog *l, const KtPrintkRing *r,
                        const GsMem *mem, const KtPrintkWriter *w)
{
    uint64_t seq = MAX(w->since, l->next);
    uint64_t end = seq + MIN(kt_printk_ring_newer(r, seq), RETURNED);

    for (; seq != end; seq++) {
        KtPrintkState state;

        if (!may_be_of(l, r, mem, w, seq)) {
            continue;
        }
        state = kt_printk_ring_read(r, &l->at, mem, seq, &l->record);
        if (state == KT_PRINTK_RECORD || state == KT_PRINTK_OPEN) {
            keep_writer(l, w);
        }
    }
}

static bool read_locked(KtPrintkLog *l, const GsMem *mem,
                        const KtPrintkWriter *w, const KtPrintkNow *now)
{
    KtPrintkRing r;
    bool more;

    if (!open_ring(l, &r, mem)) {
        return false;
    }
    read_left_out(l, &r, mem, w, now->us);
    more = read_ring(l, &r, mem, w, now);
    /* its ids are of before the read, so it is opened anew */
    if (w && w->known && kt_printk_ring_open(&r, &l->at, mem)) {
        keep_unread(l, &r, mem, w);
    }
    return more;
}

bool kt_printk_log_read(KtPrintkLog *l, const GsMem *mem,
                        const KtPrintkWriter *w, const KtPrintkNow *now)
{
    bool more, marked;

    if (l->why_not) {
        return false;
    }
    pthread_mutex_lock(&l->lock);
    if (w && w->known) {
        name_waiting(l, w);
    }
    more = read_locked(l, mem, w, now);
    marked = l->marked;
    l->marked = false;
    pthread_mutex_unlock(&l->lock);
    if (marked) {
        kt_log_save(l->tracer);     /* its place is here, among the events */
    }
    return more;
}
