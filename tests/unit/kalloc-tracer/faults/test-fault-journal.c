/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log of faults comes back from a journal as it was: records, rules, tasks,
 * stacks, and that it is full. Damaged frames do no harm.
 */
#include "tests/lib/fault-calls.h"
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"

#include "kalloc-tracer/faults/fault-journal.h"

#include <inttypes.h>
#include <string.h>

/* ---- the log as text ----------------------------------------------------- */

static void add_stack(KtTracer *t, KtStackId id, GString *s)
{
    GsStop stop;
    unsigned n = 0;
    const uint64_t *pc = id.v ? kt_tracer_stack(t, id, &n, &stop) : NULL;

    for (unsigned i = 0; pc && i < n; i++) {
        g_string_append_printf(s, " %" PRIx64, pc[i]);
    }
}

static void add_record(KtTracer *t, const KtFaultRecord *r, GString *s)
{
    g_autofree char *command = kt_fault_command(r);
    g_autofree char *rule = kt_fault_spec_command(r->spec);
    g_autofree char *name = NULL;
    uint32_t pid = 0;
    char comm[17] = "";

    kt_tracer_task(t, r->task, &pid, comm);
    name = g_strescape(comm, NULL);
    g_string_append_printf(s, "%s [%u: %s] %s action=%u chance=%u cut=%u us=%"
                           PRIu64 " times=%" PRIu64 " value=%" PRIx64 " size=%"
                           PRIu64 " flags=%x cpu=%u %s/%u", command, r->rule,
                           rule, r->function, r->action, r->chance, r->cut,
                           r->us, r->times, r->value, r->size, r->flags,
                           r->cpu, name, pid);
    for (unsigned i = 0; i < KT_FAULT_ARGS; i++) {
        g_string_append_printf(s, " %" PRIx64, r->arg[i]);
    }
    add_stack(t, r->stack, s);
    g_string_append_c(s, '\n');
}

static char *text_of(KtTracer *t)
{
    GString *s = g_string_new(NULL);
    KtFaultRecord r;
    bool full;

    for (unsigned i = 0; kt_faults_log(t, i, &r); i++) {
        add_record(t, &r, s);
    }
    kt_faults_log_count(t, &full);
    g_string_append(s, full ? "full" : "");
    return g_string_free(s, FALSE);
}

static unsigned lines(const char *text)
{
    unsigned n = 0;

    for (; (text = strchr(text, '\n')); text++) {
        n++;
    }
    return n;
}

/* ---- a tracer with faults ------------------------------------------------ */

/* Rules with and without each option, and calls that differ. */
static void make_faults(FaultWorld *w)
{
    uint64_t value;

    fault_add(w, NULL);
    g_assert_true(fault_call(w, 0));
    g_assert_true(fault_call(w, 0x20));
    w->comm = "a b";
    w->pid = 70000;
    w->reg[GS_REG_ARG2] = UINT64_MAX;
    g_assert_true(fault_call(w, 0x20));
    fault_clear(w);
    fault_add_spec(w, &(KtFaultSpec) {
        .what = "device_add", .condition = "n > 0", .value = "-EIO",
        .module = "ka_test", .task = "a*", .times = 3, .early = true,
        .force = true });
    g_assert_true(fault_call_at(w, ERRNO, 0, &value));
    fault_clear(w);
    fault_add_spec(w, &(KtFaultSpec) { .what = "kmalloc",
                                       .action = KT_FAULT_DO_LOG });
    g_assert_false(fault_call(w, 0x40));
    fault_clear(w);
}

static void fill_log(FaultWorld *w)
{
    KtFaultRecord r;

    while (kt_faults_log(w->t, KT_FAULT_LOG_MAX - 1, &r) == false) {
        g_assert_true(fault_call(w, 0));
    }
}

/* ---- journals ------------------------------------------------------------ */

/* End the VM. Its log has ten faults. Return (owned) its journal, after a check
 * that it has the same log. */
static KtReplay *end_and_compare(FaultWorld *w, const char *path)
{
    g_autofree char *want = text_of(w->t), *got = NULL;
    KtReplay *r;

    g_assert_cmpuint(lines(want), ==, 10);
    fault_world_free(w);
    r = read_all(path);
    got = text_of(kt_replay_tracer(r));
    g_assert_cmpstr(got, ==, want);
    return r;
}

TEST(test_same, "/fault-journal/same")
{
    g_autoptr(JournalPath) path = new_path();
    FaultWorld *w = fault_world_new_at(path);
    g_autoptr(KtReplay) r = NULL;

    kt_faults_save(w->t);       /* nothing is new */
    make_faults(w);
    kt_faults_save(w->t);
    kt_faults_save(w->t);
    make_faults(w);
    kt_faults_save(w->t);
    r = end_and_compare(w, path);
    g_assert_null(kt_replay_info(r)->damage);
}

/* The log stays over a reset, in the VM and in the journal. */
TEST(test_reset, "/fault-journal/reset")
{
    g_autoptr(JournalPath) path = new_path();
    FaultWorld *w = fault_world_new_at(path);
    g_autoptr(KtReplay) r = NULL;

    make_faults(w);
    kt_faults_save(w->t);
    kt_tracer_reset(w->t);
    make_faults(w);
    kt_faults_save(w->t);
    r = end_and_compare(w, path);
}

static unsigned count_until(const char *path, uint64_t us)
{
    g_autoptr(KtReplay) r = kt_replay_open(path, NULL);
    g_autofree char *text = NULL;

    kt_replay_run(r, &(KtReplayPlan) { .until_us = us, .apply = true });
    text = text_of(kt_replay_tracer(r));
    return lines(text);
}

/* All calls are at 123 us. */
TEST(test_until, "/fault-journal/until")
{
    g_autoptr(JournalPath) path = new_path();
    FaultWorld *w = fault_world_new_at(path);

    make_faults(w);
    kt_faults_save(w->t);
    fault_world_free(w);
    g_assert_cmpuint(count_until(path, 122), ==, 0);
    g_assert_cmpuint(count_until(path, 123), ==, 5);
}

/* A full log: many frames, and a last one that only says so. */
TEST(test_full, "/fault-journal/full")
{
    g_autoptr(JournalPath) path = new_path();
    FaultWorld *w = fault_world_new_at(path);
    g_autofree char *want = NULL, *got = NULL;
    g_autoptr(KtReplay) r = NULL;

    fault_add(w, NULL);
    fill_log(w);
    kt_faults_save(w->t);
    g_assert_false(fault_call(w, 0));
    kt_faults_save(w->t);
    want = text_of(w->t);
    g_assert_true(g_str_has_suffix(want, "full"));
    fault_world_free(w);
    r = read_all(path);
    got = text_of(kt_replay_tracer(r));
    g_assert_true(!strcmp(got, want));  /* megabytes: do not print them */
}

/* ---- frames -------------------------------------------------------------- */

static GByteArray *frame(KtTracer *t, unsigned n)
{
    GByteArray *bytes = g_byte_array_new();
    g_auto(KtFaultBatch) b;
    KtFaultRecord r;

    kt_fault_batch_init(&b);
    for (unsigned i = 0; i < n; i++) {
        g_assert_true(kt_faults_log(t, i, &r));
        kt_fault_records_add(b.records, &r);
    }
    kt_fault_frame_write(t, &b, &GS_OUT(bytes));
    return bytes;
}

static bool read_bytes(const uint8_t *bytes, size_t len, char **text)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    g_autofree uint8_t *copy = g_memdup2(bytes, len);
    GsBytes in = gs_bytes(copy, len);
    bool ok = kt_faults_replay(t, NULL, &in, UINT64_MAX);

    *text = text_of(t);
    return ok;
}

/* A frame that is cut anywhere is refused. With any byte changed, the frame is
 * read or refused, and the printed log has no control characters. */
FAULT_TEST(test_damaged, "/fault-journal/damaged")
{
    g_autoptr(GByteArray) bytes = NULL;

    make_faults(w);
    bytes = frame(w->t, 5);
    for (unsigned len = 0; len <= bytes->len; len++) {
        g_autofree char *text = NULL;

        g_assert_true(read_bytes(bytes->data, len, &text) ==
                      (len == bytes->len));
    }
    for (unsigned i = 0; i < bytes->len * 8; i++) {
        g_autofree char *text = NULL;

        bytes->data[i / 8] ^= 1u << i % 8;
        read_bytes(bytes->data, bytes->len, &text);
        g_assert_null(strpbrk(text, "\r\033\177"));
        bytes->data[i / 8] ^= 1u << i % 8;
    }
}
