/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Journal: see journal.h. The tracer appends each event as it applies it,
 * under its lock; the cost is a copy into a buffer, and a write() of 1 MiB
 * now and then.
 *
 * The first write that fails ends the journal: from there on events are
 * counted as lost, since those that follow would name stacks the file does
 * not define. The file up to there stays good.
 */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_CELLS 16384      /* 1 MiB */
#define CELL KT_JOURNAL_CELL

/* The ids that the file defines already. */
typedef struct Seen {
    uint64_t *bits;
    uint32_t n;             /* words */
} Seen;

struct KtJournal {
    int fd;
    bool failed;
    const KtDepot *stacks;
    const KtNames *names;
    KtCounters *counters;
    Seen seen_stack;
    Seen seen_task;
    Seen seen_cache;
    Seen seen_hook;
    char *buffer;
    unsigned used;          /* cells */
};

/* ---- output ------------------------------------------------------------- */

static bool is_event(const char *cell)
{
    return ((const KtJournalDef *)cell)->kind < KT_JOURNAL_STACK;
}

/* Events among the buffered cells from @from on. */
static uint64_t buffered_events(const KtJournal *j, unsigned from)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < j->used; i++) {
        const char *cell = j->buffer + (size_t)i * CELL;

        if (is_event(cell)) {
            n += i >= from;
        } else {
            i += ((const KtJournalDef *)cell)->more;
        }
    }
    return n;
}

/* Bytes that reached the file. */
static size_t write_all(int fd, const char *at, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(fd, at + done, len - done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        done += n;
    }
    return done;
}

void kt_journal_flush(KtJournal *j)
{
    size_t len = (size_t)j->used * CELL;
    size_t done;

    if (!j->used) {
        return;
    }
    done = write_all(j->fd, j->buffer, len);
    if (done < len) {
        j->failed = true;
        kt_counters_add(j->counters, KT_CNT_JOURNAL_LOST,
                        buffered_events(j, done / CELL));
    }
    j->used = 0;
}

/* Room for an entry of @cells, which is never torn by a flush. */
static char *append(KtJournal *j, unsigned cells)
{
    char *at;

    if (j->used + cells > BUFFER_CELLS) {
        kt_journal_flush(j);
    }
    at = j->buffer + (size_t)j->used * CELL;
    j->used += cells;
    return at;
}

/* A definition with @len bytes after its first cell. */
static void append_def(KtJournal *j, const KtJournalDef *def,
                       const void *data, size_t len)
{
    unsigned more = (len + CELL - 1) / CELL;
    char *at = append(j, 1 + more);

    memcpy(at, def, CELL);
    ((KtJournalDef *)at)->more = more;
    if (more) {
        memset(at + (size_t)more * CELL, 0, CELL);
        memcpy(at + CELL, data, len);
    }
}

/* ---- definitions -------------------------------------------------------- */

/* True the first time for each @id. */
static bool first_sight(Seen *s, uint32_t id)
{
    uint32_t word = id / 64;
    uint64_t bit = (uint64_t)1 << id % 64;

    if (word >= s->n) {
        uint32_t n = MAX(64, s->n);

        while (n <= word) {
            n *= 2;
        }
        s->bits = g_renew(uint64_t, s->bits, n);
        memset(s->bits + s->n, 0, (n - s->n) * sizeof(*s->bits));
        s->n = n;
    }
    if (s->bits[word] & bit) {
        return false;
    }
    s->bits[word] |= bit;
    return true;
}

static void define_stack(KtJournal *j, KtStackId id)
{
    KtJournalDef def = { .id = id.v, .kind = KT_JOURNAL_STACK };
    unsigned n;
    uint8_t stop;
    const uint64_t *frames;

    if (!id.v || !first_sight(&j->seen_stack, id.v)) {
        return;
    }
    frames = kt_depot_get(j->stacks, id.v, &n, &stop);
    if (frames) {
        def.n = n;
        def.u.stop = stop;
        append_def(j, &def, frames, n * sizeof(*frames));
    }
}

static void define_task(KtJournal *j, KtTaskId id)
{
    KtJournalDef def = { .id = id.v, .kind = KT_JOURNAL_TASK };
    char comm[KT_COMM_LEN + 1];
    uint32_t pid;

    if (!id.v || !first_sight(&j->seen_task, id.v)) {
        return;
    }
    if (kt_names_task(j->names, id, &pid, comm)) {
        def.n = pid;
        memcpy(def.u.comm, comm, KT_COMM_LEN);
        append_def(j, &def, NULL, 0);
    }
}

static void define_cache(KtJournal *j, KtCacheId id)
{
    KtJournalDef def = { .id = id.v, .kind = KT_JOURNAL_CACHE };
    KtCacheInfo info;

    if (!id.v || !first_sight(&j->seen_cache, id.v)) {
        return;
    }
    if (kt_names_cache(j->names, id, &info)) {
        def.n = strlen(info.name);
        def.u.cache.va = info.va;
        def.u.cache.object_size = info.object_size;
        def.u.cache.size = info.size;
        append_def(j, &def, info.name, def.n);
    }
}

static void define_hook(KtJournal *j, KtHookId id)
{
    KtJournalDef def = { .id = id.v, .kind = KT_JOURNAL_HOOK };
    const char *name;

    if (!first_sight(&j->seen_hook, id.v)) {
        return;
    }
    name = kt_hook_name(id);
    def.n = strlen(name);
    append_def(j, &def, name, def.n);
}

/* ---- entries ------------------------------------------------------------ */

void kt_journal_event(KtJournal *j, const KtEvent *ev)
{
    KtEvent *out;

    if (j->failed) {
        kt_counters_add(j->counters, KT_CNT_JOURNAL_LOST, 1);
        return;
    }
    define_stack(j, ev->stack);
    define_task(j, ev->task);
    define_cache(j, ev->cache);
    define_hook(j, ev->hook);
    out = (KtEvent *)append(j, 1);
    *out = *ev;
    memset(out->pad, 0, sizeof(out->pad));
}

void kt_journal_mark(KtJournal *j, KtJournalKind kind, uint32_t value)
{
    KtJournalDef def = { .id = value, .kind = kind };

    if (!j->failed) {
        append_def(j, &def, NULL, 0);
    }
}

/* ---- life --------------------------------------------------------------- */

static void *fail_open(const char *path, int err, GError **errp)
{
    g_set_error(errp, G_FILE_ERROR, g_file_error_from_errno(err),
                "journal %s: %s", path, g_strerror(err));
    return NULL;
}

KtJournal *kt_journal_open(const char *path, const KtDepot *stacks,
                           const KtNames *names, KtCounters *counters,
                           GError **errp)
{
    KtJournalHeader header = {
        .magic = KT_JOURNAL_MAGIC,
        .version = KT_JOURNAL_VERSION,
        .header_size = sizeof(header),
        .cell_size = CELL,
    };
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    KtJournal *j;

    if (fd < 0) {
        return fail_open(path, errno, errp);
    }
    if (write_all(fd, (char *)&header, sizeof(header)) < sizeof(header)) {
        int err = errno;

        close(fd);
        return fail_open(path, err, errp);
    }
    j = g_new0(KtJournal, 1);
    j->fd = fd;
    j->stacks = stacks;
    j->names = names;
    j->counters = counters;
    j->buffer = g_malloc((size_t)BUFFER_CELLS * CELL);
    return j;
}

void kt_journal_close(KtJournal *j)
{
    if (!j) {
        return;
    }
    kt_journal_flush(j);
    close(j->fd);
    g_free(j->seen_stack.bits);
    g_free(j->seen_task.bits);
    g_free(j->seen_cache.bits);
    g_free(j->seen_hook.bits);
    g_free(j->buffer);
    g_free(j);
}
