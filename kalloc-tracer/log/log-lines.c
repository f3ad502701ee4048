/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of the kernel's log: see log-lines.h. They are a boot part. */
#include "kalloc-tracer/log/log-lines.h"

#include <pthread.h>
#include <string.h>

#include "kalloc-tracer/base/fields.h"
#include "kalloc-tracer/tracer/frame-ids.h"
#include "kalloc-tracer/tracer/tracer.h"

/*
 * struct Chunk - some lines, one behind the other
 * @last, @n: number of the last line, and how many there are
 * @used: bytes of @data
 */
typedef struct Chunk {
    uint64_t last;
    unsigned n;
    size_t used;
    uint8_t data[];
} Chunk;

#define CHUNK_ROOM (KT_LOG_CHUNK - sizeof(Chunk))
G_STATIC_ASSERT(sizeof(KtLogLine) + KT_LOG_TEXT_MAX + 8 < CHUNK_ROOM);

/*
 * struct Lines - the part
 * @budget: (borrowed)
 * @save_lock: held while lines are put into the journal's queue, so that they
 *             stay in order; taken before @lock
 * @lock: of all that follows. No GMutex: the thread sanitizer does not know it
 * @chunks: of Chunk, the oldest first
 * @last: number of the newest line
 * @saved: number of the last line that is in the journal
 * @boot: of the next line
 */
typedef struct Lines {
    KtBudget *budget;
    pthread_mutex_t save_lock;
    pthread_mutex_t lock;
    GQueue chunks;
    uint64_t last;
    uint64_t saved;
    uint32_t boot;
} Lines;

static void *lines_new(KtBudget *budget)
{
    Lines *l = g_new0(Lines, 1);

    l->budget = budget;
    pthread_mutex_init(&l->save_lock, NULL);
    pthread_mutex_init(&l->lock, NULL);
    g_queue_init(&l->chunks);
    return l;
}

static void drop_oldest(Lines *l)
{
    g_free(g_queue_pop_head(&l->chunks));
    kt_budget_release(l->budget, KT_MEM_LOG, KT_LOG_CHUNK);
}

static void lines_free(void *part)
{
    Lines *l = part;

    while (l->chunks.length) {
        drop_oldest(l);
    }
    pthread_mutex_destroy(&l->save_lock);
    pthread_mutex_destroy(&l->lock);
    g_free(l);
}

/* A reset keeps the lines: what the kernel said last is why it was reset. A
 * snapshot is another time of the VM's life; its kernel's ring has the lines
 * that belong to it. */
static void lines_reset(void *part, KtBootEnd why)
{
    Lines *l = part;

    if (why == KT_BOOT_CLEAR) {
        return;
    }
    pthread_mutex_lock(&l->lock);
    l->boot++;
    while (why == KT_BOOT_LOAD && l->chunks.length) {
        drop_oldest(l);
    }
    pthread_mutex_unlock(&l->lock);
}

static const KtBootPart part_row = {
    .name = "log", .new = lines_new, .free = lines_free, .reset = lines_reset,
};

static Lines *lines_of(KtTracer *t)
{
    return kt_tracer_part(t, &part_row);
}

/* ---- adding -------------------------------------------------------------- */

static void evict_locked(Lines *l, KtTracer *t)
{
    const Chunk *oldest = g_queue_peek_head(&l->chunks);

    kt_tracer_count(t, KT_CNT_LOG_EVICTED, oldest->n);
    drop_oldest(l);
}

/* Return a new last chunk. NULL if there is no memory for a single one. */
static Chunk *new_chunk_locked(Lines *l, KtTracer *t)
{
    Chunk *c;

    while (l->chunks.length &&
           (l->chunks.length + 1) * KT_LOG_CHUNK > KT_LOG_BYTES) {
        evict_locked(l, t);
    }
    while (!kt_budget_take(l->budget, KT_MEM_LOG, KT_LOG_CHUNK)) {
        if (!l->chunks.length) {
            return NULL;
        }
        evict_locked(l, t);
    }
    c = g_malloc(KT_LOG_CHUNK);
    *c = (Chunk) { 0 };
    g_queue_push_tail(&l->chunks, c);
    return c;
}

static size_t size_of(const KtLogLine *line)
{
    return (sizeof(*line) + line->len + 7) & ~(size_t)7;
}

/* A line of a journal has its number and boot already. */
static void number_locked(Lines *l, KtLogLine *line)
{
    if (line->number > l->last) {
        l->boot = MAX(l->boot, line->boot);
    } else {
        line->number = l->last + 1;
        line->boot = l->boot;
    }
    l->last = line->number;
}

static uint64_t add_locked(Lines *l, KtTracer *t, KtLogLine *line,
                           const void *text)
{
    Chunk *c = g_queue_peek_tail(&l->chunks);

    if (!c || c->used + size_of(line) > CHUNK_ROOM) {
        c = new_chunk_locked(l, t);
    }
    number_locked(l, line);
    if (!c) {
        kt_tracer_count(t, KT_CNT_LOG_EVICTED, 1);
        return 0;
    }
    c->last = line->number;
    memcpy(c->data + c->used, line, sizeof(*line));
    memcpy(c->data + c->used + sizeof(*line), text, line->len);
    c->used += size_of(line);
    c->n++;
    return line->number;
}

uint64_t kt_log_add(KtTracer *t, const KtLogLine *line, const void *text)
{
    Lines *l = lines_of(t);
    KtLogLine copy = *line;
    uint64_t number;

    copy.len = MIN(copy.len, KT_LOG_TEXT_MAX);
    pthread_mutex_lock(&l->lock);
    number = add_locked(l, t, &copy, text);
    pthread_mutex_unlock(&l->lock);
    kt_tracer_count(t, KT_CNT_LOG_LINES, 1);
    if (line->lost) {
        kt_tracer_count(t, KT_CNT_LOG_LOST, line->lost);
    }
    return number;
}

/* ---- finding ------------------------------------------------------------- */

/* Return the link of the chunk that has line @number, or of the first one after
 * it; NULL: there is none. Lines are looked for from the newest. */
static GList *find_chunk(const Lines *l, uint64_t number)
{
    GList *at = NULL;

    for (GList *i = l->chunks.tail; i; i = i->prev) {
        const Chunk *c = i->data;

        if (c->last < number) {
            break;
        }
        at = i;
    }
    return at;
}

/* Return the line at @at of a chunk, and its text behind it. */
static KtLogLine *line_at(Chunk *c, size_t at)
{
    return (KtLogLine *)(c->data + at);
}

void kt_log_set_writer(KtTracer *t, uint64_t number, const KtLogLine *from)
{
    Lines *l = lines_of(t);
    GList *i;
    Chunk *c;

    pthread_mutex_lock(&l->lock);
    i = find_chunk(l, number);
    c = i ? i->data : NULL;
    for (size_t at = 0; c && at < c->used; at += size_of(line_at(c, at))) {
        KtLogLine *line = line_at(c, at);

        if (line->number == number) {
            line->task = from->task;
            line->cpu = from->cpu;
            line->stack = from->stack;
            line->us = from->us;
            line->flags |= KT_LOG_SEEN;
        }
    }
    pthread_mutex_unlock(&l->lock);
}

/* ---- reading ------------------------------------------------------------- */

void kt_log_batch_init(KtLogBatch *b)
{
    b->line = g_array_new(FALSE, FALSE, sizeof(KtLogLine));
    b->text = g_byte_array_new();
}

void kt_log_batch_deinit(KtLogBatch *b)
{
    g_array_unref(b->line);
    g_byte_array_unref(b->text);
}

static void copy_chunk(Chunk *c, uint64_t after, unsigned max, KtLogBatch *b)
{
    for (size_t at = 0; at < c->used && b->line->len < max;
         at += size_of(line_at(c, at))) {
        const KtLogLine *line = line_at(c, at);

        if (line->number > after) {
            g_array_append_val(b->line, *line);
            g_byte_array_append(b->text, (const uint8_t *)(line + 1),
                                line->len);
        }
    }
}

static unsigned read_locked(const Lines *l, uint64_t after, unsigned max,
                            KtLogBatch *b)
{
    g_array_set_size(b->line, 0);
    g_byte_array_set_size(b->text, 0);
    for (GList *i = find_chunk(l, after + 1); i && b->line->len < max;
         i = i->next) {
        copy_chunk(i->data, after, max, b);
    }
    return b->line->len;
}

unsigned kt_log_read(KtTracer *t, uint64_t after, unsigned max, KtLogBatch *b)
{
    Lines *l = lines_of(t);
    unsigned n;

    pthread_mutex_lock(&l->lock);
    n = read_locked(l, after, max, b);
    pthread_mutex_unlock(&l->lock);
    return n;
}

uint64_t kt_log_last(KtTracer *t)
{
    Lines *l = lines_of(t);
    uint64_t last;

    pthread_mutex_lock(&l->lock);
    last = l->last;
    pthread_mutex_unlock(&l->lock);
    return last;
}

/* ---- the journal: frames ------------------------------------------------- */

#define FLAGS (KT_LOG_SEEN | KT_LOG_CALLER | KT_LOG_CUT)

static const KtField fields[] = {
    KT_DELTA(KtLogLine, number), KT_DELTA(KtLogLine, seq),
    KT_DELTA(KtLogLine, ns), KT_DELTA(KtLogLine, us),
    KT_NUMBER(KtLogLine, lost), KT_NUMBER(KtLogLine, boot),
    KT_NUMBER(KtLogLine, caller), KT_UPTO(KtLogLine, flags, FLAGS, NULL),
    KT_UPTO(KtLogLine, level, 7, NULL), KT_FIXED(KtLogLine, facility, 1),
    KT_NUMBER(KtLogLine, cpu),
    { 0 }
};

static void write_line(KtTracer *t, const KtLogLine *line,
                       const KtLogLine *before, const void *text, GsOut *out)
{
    kt_fields_pack(fields, line, before, out);
    kt_frame_write_task(t, line->task, before->task, out);
    kt_frame_write_stack(t, line->stack, before->stack, out);
    gs_out_varint(out, line->len);
    gs_out_bytes(out, text, line->len);
}

void kt_log_frame_write(KtTracer *t, const KtLogBatch *b, GsOut *out)
{
    KtLogLine before = { 0 };
    size_t at = 0;

    gs_out_varint(out, b->line->len);
    for (unsigned i = 0; i < b->line->len; i++) {
        const KtLogLine *line = &g_array_index(b->line, KtLogLine, i);

        write_line(t, line, &before, b->text->data + at, out);
        at += line->len;
        before = *line;
    }
}

/* Read one line; @text: (out, borrowed from @in) NULL if it is malformed. */
static KtLogLine read_line(KtTracer *t, const GsKernel *k, GsBytes *in,
                           const KtLogLine *before, const uint8_t **text)
{
    KtLogLine line = { 0 };

    kt_fields_unpack(fields, &line, before, NULL, in);
    line.task = kt_frame_read_task(t, in, before->task);
    line.stack = kt_frame_read_stack(t, k, in, before->stack);
    line.len = gs_bytes_varint(in, KT_LOG_TEXT_MAX);
    *text = gs_bytes_take(in, line.len);
    return line;
}

bool kt_log_frame_read(KtTracer *t, const GsKernel *k, GsBytes *in,
                       KtLogBatch *b)
{
    uint64_t n = gs_bytes_varint(in, KT_LOG_FRAME_LINES);
    KtLogLine before = { 0 };

    g_array_set_size(b->line, 0);
    g_byte_array_set_size(b->text, 0);
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *text;
        KtLogLine line = read_line(t, k, in, &before, &text);

        if (in->failed) {
            return false;
        }
        g_array_append_val(b->line, line);
        g_byte_array_append(b->text, text, line.len);
        before = line;
    }
    return !in->failed;
}

/* ---- the journal: what is saved ------------------------------------------ */

/* Copy the next lines that are not saved, and take them for saved. */
static unsigned take_unsaved(Lines *l, KtLogBatch *b)
{
    unsigned n;

    pthread_mutex_lock(&l->lock);
    n = read_locked(l, l->saved, KT_LOG_FRAME_LINES, b);
    if (n) {
        l->saved = g_array_index(b->line, KtLogLine, n - 1).number;
    }
    pthread_mutex_unlock(&l->lock);
    return n;
}

void kt_log_save(KtTracer *t)
{
    Lines *l = lines_of(t);
    KtLogBatch b;

    if (!kt_tracer_has_journal(t)) {
        return;
    }
    kt_log_batch_init(&b);
    pthread_mutex_lock(&l->save_lock);
    while (take_unsaved(l, &b)) {
        GByteArray *frame = g_byte_array_new();

        kt_log_frame_write(t, &b, &GS_OUT(frame));
        kt_tracer_save_frame(t, KT_MODULE_EVENT_LOG, frame);
    }
    pthread_mutex_unlock(&l->save_lock);
    kt_log_batch_deinit(&b);
}
