/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Journal: see journal.h. Collects events, and gives jobs to the writer thread,
 * which calls frame-writer.c.
 *
 *     @run (tracer's lock) --full, or flush--> @jobs (@lock) --> writer thread
 *
 * @lock protects the jobs and is held only for a moment; the writer holds no
 * lock while it packs or writes. The number of jobs is bounded: a disk that is
 * slower than the guest makes the guest wait, as write() would.
 *
 * Before events are applied, the head of the file gets their number (promised)
 * by pwrite(): then it is in the page cache and survives the process, and a
 * reader knows how many events are missing. A mapping would also do, but if
 * somebody truncates the file QEMU would get SIGBUS. If this pwrite() fails
 * (the disk is full, and the file system copies on write), it is tried again
 * later.
 */
#include "kalloc-tracer/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kalloc-tracer/journal/journal-format.h"
#include "kalloc-tracer/journal/frame-writer.h"

#define JOBS_MAX 4

/* What the writer thread has to write: events, or another frame. */
typedef struct Job {
    KtEvent *ev;
    unsigned n;
    KtFrameKind kind;
    GByteArray *data;
} Job;

struct KtJournal {
    int fd;
    KtFrameWriter *out;
    KtCounters *counters;
    KtEvent *run;
    unsigned used;
    uint64_t wanted;            /* how far the file will go */
    uint64_t promised;          /* what its head says of that */
    bool ended;
    bool repeatable;            /* KtConfig */
    pthread_mutex_t lock;       /* of all that follows */
    pthread_cond_t more;        /* there is a job, or it is to stop */
    pthread_cond_t less;        /* a job is done */
    GQueue jobs;                /* of Job; the first may be in work */
    GPtrArray *spare;           /* runs to use again */
    pthread_t thread;
    bool started;
    bool stop;
};

/* ---- jobs --------------------------------------------------------------- */

static uint64_t thread_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void do_job(KtJournal *j, const Job *job)
{
    uint64_t since = thread_ns();

    if (job->ev) {
        kt_frame_writer_events(j->out, job->ev, job->n);
        kt_counters_add(j->counters, KT_CNT_JOURNAL_NS, thread_ns() - since);
    } else {
        kt_frame_writer_add(j->out, job->kind, job->data);
    }
}

static void end_job_locked(KtJournal *j, Job *job)
{
    if (job->ev) {
        g_ptr_array_add(j->spare, job->ev);
    } else {
        g_byte_array_unref(job->data);
    }
}

static void *writer(void *opaque)
{
    KtJournal *j = opaque;

    pthread_mutex_lock(&j->lock);
    for (;;) {
        Job *job = g_queue_peek_head(&j->jobs);

        if (job) {
            pthread_mutex_unlock(&j->lock);
            do_job(j, job);
            pthread_mutex_lock(&j->lock);
            g_queue_pop_head(&j->jobs);
            end_job_locked(j, job);
            g_free(job);
            pthread_cond_broadcast(&j->less);
        } else if (j->stop) {
            break;
        } else {
            pthread_cond_wait(&j->more, &j->lock);
        }
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

static void submit(KtJournal *j, Job job)
{
    pthread_mutex_lock(&j->lock);
    if (j->started) {
        Job *copy = g_new(Job, 1);

        *copy = job;
        while (j->jobs.length >= JOBS_MAX) {
            pthread_cond_wait(&j->less, &j->lock);
        }
        g_queue_push_tail(&j->jobs, copy);
        pthread_cond_signal(&j->more);
    } else {
        do_job(j, &job);
        end_job_locked(j, &job);
    }
    pthread_mutex_unlock(&j->lock);
}

static KtEvent *new_run(KtJournal *j)
{
    KtEvent *run = NULL;

    pthread_mutex_lock(&j->lock);
    if (j->spare->len) {
        run = g_ptr_array_steal_index_fast(j->spare, j->spare->len - 1);
    }
    pthread_mutex_unlock(&j->lock);
    return run ? run : g_new(KtEvent, KT_RUN_EVENTS);
}

static void submit_run(KtJournal *j)
{
    if (j->used) {
        submit(j, (Job) { .ev = j->run, .n = j->used });
        j->run = new_run(j);
        j->used = 0;
    }
}

void kt_journal_start(KtJournal *j)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&j->lock);
    j->started = pthread_create(&j->thread, NULL, writer, j) == 0;
    pthread_mutex_unlock(&j->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void kt_journal_stop(KtJournal *j)
{
    bool started;

    pthread_mutex_lock(&j->lock);
    started = j->started;
    j->stop = true;
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
    if (started) {
        pthread_join(j->thread, NULL);
        pthread_mutex_lock(&j->lock);
        j->started = j->stop = false;
        pthread_mutex_unlock(&j->lock);
    }
}

/* ---- entries ------------------------------------------------------------ */

static void write_promise(KtJournal *j)
{
    const KtLive live = { j->wanted, kt_frame_writer_dropped(j->out) };
    uint8_t bytes[KT_HEAD_LIVE];

    if (j->wanted == j->promised) {
        return;
    }
    kt_part_pack(KT_PART_LIVE, &live, bytes);
    if (kt_write_at(j->fd, bytes, sizeof(bytes), KT_HEAD_LIVE)) {
        j->promised = j->wanted;
    }
}

void kt_journal_promise(KtJournal *j, uint64_t seq)
{
    if (!j->ended) {
        j->wanted = MAX(j->wanted, seq);
        write_promise(j);
    }
}

static uint64_t second_of(const KtEvent *ev)
{
    return ev->us / G_USEC_PER_SEC;
}

/* Return how many of @n events the run takes. */
static unsigned fitting(const KtJournal *j, const KtEvent *ev, unsigned n)
{
    unsigned room = MIN(n, KT_RUN_EVENTS - j->used), k = 0;
    uint64_t second = second_of(j->used ? j->run : ev);

    while (j->repeatable && k < room && second_of(&ev[k]) == second) {
        k++;
    }
    return j->repeatable ? k : room;
}

static void append(KtJournal *j, const KtEvent *ev, unsigned n)
{
    while (n) {
        unsigned k = fitting(j, ev, n);

        memcpy(j->run + j->used, ev, k * sizeof(*ev));
        j->used += k;
        ev += k;
        n -= k;
        if (n || j->used == KT_RUN_EVENTS) {
            submit_run(j);
        }
    }
}

void kt_journal_events(KtJournal *j, const KtEvent *ev, unsigned n)
{
    if (j->ended) {
        kt_counters_add(j->counters, KT_CNT_JOURNAL_LOST, n);
        return;
    }
    append(j, ev, n);
}

void kt_journal_add_frame(KtJournal *j, KtFrameKind kind, GByteArray *data)
{
    if (j->ended) {
        g_byte_array_unref(data);
        return;
    }
    submit_run(j);
    submit(j, (Job) { .kind = kind, .data = data });
}

void kt_journal_control(KtJournal *j, KtControl control, uint32_t value)
{
    GByteArray *data = g_byte_array_new();
    GsOut out = gs_out(data);

    gs_out_u32(&out, control);
    gs_out_u32(&out, value);
    kt_journal_add_frame(j, KT_FRAME_CONTROL, data);
}

static void wait_for_writer(KtJournal *j)
{
    pthread_mutex_lock(&j->lock);
    while (j->jobs.length) {
        pthread_cond_wait(&j->less, &j->lock);
    }
    pthread_mutex_unlock(&j->lock);
}

void kt_journal_settle(KtJournal *j)
{
    submit_run(j);
    wait_for_writer(j);
}

void kt_journal_flush(KtJournal *j, bool wait)
{
    if (!j->repeatable) {
        submit_run(j);
    }
    if (wait) {
        wait_for_writer(j);
    }
    write_promise(j);
}

/* ---- life --------------------------------------------------------------- */

static const char no_file[] = "it is no regular file";

/* Lock the file for this VM until it is closed. Return NULL, or why that is not
 * possible. Readers do not lock it. On a file system without locks it is used
 * without. */
static const char *why_not_ours(int fd)
{
    struct stat st;

    if (fstat(fd, &st)) {
        return g_strerror(errno);
    }
    if (!S_ISREG(st.st_mode)) {
        return no_file;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        return "another VM writes to it; each needs a file of its own, a "
               "migration's target, too";
    }
    return NULL;
}

static bool write_head(int fd, const KtConfig *config)
{
    const KtHead head = {
        .history_bytes = config->history_bytes,
        .map_bytes = config->map_bytes,
        .max_stacks = config->max_stacks,
        .n_cpus = config->n_cpus,
        .begun = config->repeatable ? 0 : g_get_real_time() / G_USEC_PER_SEC,
    };
    uint8_t bytes[KT_HEAD_BYTES];

    kt_part_pack(KT_PART_HEAD, &head, bytes);
    kt_part_pack(KT_PART_LIVE, &(KtLive) { 0 }, bytes + KT_HEAD_LIVE);
    return kt_write_at(fd, bytes, sizeof(bytes), 0);
}

static KtJournal *journal_new(int fd, const KtDepot *stacks,
                              const KtTasksCaches *names,
                              const KtHookTable *hooks, KtCounters *counters)
{
    KtJournal *j = g_new0(KtJournal, 1);

    j->fd = fd;
    j->out = kt_frame_writer_new(fd, stacks, names, hooks, counters);
    j->counters = counters;
    j->spare = g_ptr_array_new_with_free_func(g_free);
    j->run = g_new(KtEvent, KT_RUN_EVENTS);
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->more, NULL);
    pthread_cond_init(&j->less, NULL);
    return j;
}

KtJournal *kt_journal_open(const KtConfig *config, const KtDepot *stacks,
                           const KtTasksCaches *names,
                           const KtHookTable *hooks, KtCounters *counters,
                           GError **errp)
{
    /* O_NONBLOCK: opening a FIFO would wait for a reader. */
    int fd = open(config->journal, O_WRONLY | O_CREAT | O_NONBLOCK |
                  O_CLOEXEC, 0666);
    const char *why_not = fd >= 0 ? why_not_ours(fd) :
                          errno == ENXIO ? no_file : g_strerror(errno);
    KtJournal *j;

    if (!why_not && (ftruncate(fd, 0) || !write_head(fd, config))) {
        why_not = g_strerror(errno);
    }
    if (why_not) {
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "journal %s: %s", config->journal, why_not);
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    j = journal_new(fd, stacks, names, hooks, counters);
    j->repeatable = config->repeatable;
    return j;
}

void kt_journal_end(KtJournal *j)
{
    if (!j->ended) {
        submit_run(j);
        kt_journal_flush(j, true);
        kt_journal_stop(j);
        kt_frame_writer_end(j->out);
        write_promise(j);
        j->ended = true;
    }
}

void kt_journal_close(KtJournal *j)
{
    if (!j) {
        return;
    }
    kt_journal_end(j);
    close(j->fd);
    kt_frame_writer_free(j->out);
    g_free(j->run);
    g_ptr_array_free(j->spare, TRUE);
    pthread_mutex_destroy(&j->lock);
    pthread_cond_destroy(&j->more);
    pthread_cond_destroy(&j->less);
    g_free(j);
}
