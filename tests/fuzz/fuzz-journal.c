/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any frames as a journal.
 *
 * Byte 0 not 0: the rest are the contents of frames. Headers and checksums are
 * added here: with a wrong checksum the reader would stop before the content.
 * Byte 0 is 0: the rest is the file.
 *
 * Checks: no more events are listed than the file announces. If a file was not
 * read to its end, the reader reports damage. Calls, faults and other names of
 * caches can be printed.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kalloc-tracer/hooks/hooks.h"
#include "kalloc-tracer/journal/journal-format.h"
#include "kalloc-tracer/kt.h"
#include "monitor-cmds/output/calls-text.h"

static void put_head(GByteArray *file)
{
    const KtHead head = { .history_bytes = 1 << 16, .max_stacks = 1 << 10 };
    uint8_t bytes[KT_HEAD_BYTES];

    kt_part_pack(KT_PART_HEAD, &head, bytes);
    kt_part_pack(KT_PART_LIVE, &(KtLive) { .promised = 100 },
                 bytes + KT_HEAD_LIVE);
    g_byte_array_append(file, bytes, sizeof(bytes));
}

/* Copy sections, uncompressed. In the input their lengths have 16 bits. */
static void put_sections(GByteArray *to, GsBytes *in, unsigned n)
{
    GsOut out = gs_out(to);

    for (unsigned i = 0; i < n; i++) {
        size_t len = gs_bytes_u8(in) | gs_bytes_u8(in) << 8;

        len = MIN(len, gs_bytes_left(in));
        gs_out_u32(&out, len);
        gs_out_u32(&out, len);
        gs_out_bytes(&out, gs_bytes_take(in, len), len);
    }
}

static void put_frame(GByteArray *file, GsBytes *in, uint32_t number)
{
    g_autoptr(GByteArray) payload = g_byte_array_new();
    KtFrame f = { .number = number, .last_us = 1000, .last_seq = 100 };
    uint8_t header[KT_FRAME_BYTES];

    f.kind = gs_bytes_u8(in);
    f.n = gs_bytes_u8(in);
    put_sections(payload, in, gs_bytes_u8(in) % 12);
    f.stored = payload->len;
    f.crc = kt_crc(payload->data, payload->len);
    kt_part_pack(KT_PART_FRAME, &f, header);
    g_byte_array_append(file, header, sizeof(header));
    g_byte_array_append(file, payload->data, payload->len);
}

static bool on_event(void *opaque, const KtEvent *ev)
{
    ++*(uint64_t *)opaque;
    return true;
}

/* What is printed of each fault has no control characters. */
static void print_faults(KtTracer *t)
{
    KtFaultRecord r;

    for (unsigned i = 0; kt_faults_log(t, i, &r); i++) {
        g_autofree char *command = kt_fault_command(&r);

        g_assert_false(strpbrk(command, "\n\r\033"));
        g_assert_false(strpbrk(r.function, "\n\r\033"));
    }
}

static void print_alias(const KtCacheAlias *alias, void *opaque)
{
    for (const char *p = alias->name; *p; p++) {
        g_assert_true(g_ascii_isgraph(*p));
    }
}

/* Names of a call can have any characters: those that print it escape them. */
static void print_calls(KtTracer *t)
{
    g_autoptr(GString) s = g_string_new(NULL);
    g_auto(KtCallList) list = { 0 };
    McCallRow row;

    kt_query_calls(t, &list);
    for (unsigned i = 0; i < list.calls->len; i++) {
        mc_call_row(&row, t, NULL, &g_array_index(list.calls, KtCallView, i));
        g_string_truncate(s, 0);
        mc_put_call_args(s, &row);
        mc_put_call_result(s, &row);
        mc_put_call_result_derefs(s, &row);
        mc_put_call_caller(s, &row);
    }
}

static void read_file(const char *path, bool apply)
{
    uint64_t listed = 0;
    const KtReplayPlan plan = {
        .until_us = UINT64_MAX, .apply = apply, .event = on_event,
        .opaque = &listed,
    };
    g_autoptr(GError) err = NULL;
    g_autoptr(KtReplay) r = kt_replay_open(path, &err);
    const KtReplayInfo *info;

    if (!r) {
        g_assert_true(err && !strpbrk(err->message, "\n\r\033"));
        return;
    }
    kt_replay_run(r, &plan);
    info = kt_replay_info(r);
    g_assert_cmpuint(listed, ==, info->read_events);
    g_assert_cmpuint(listed, <=, info->events);
    g_assert_true(listed == info->events || info->damage);
    print_faults(kt_replay_tracer(r));
    kt_cache_aliases_all(kt_replay_tracer(r), print_alias, NULL);
    print_calls(kt_replay_tracer(r));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GByteArray) file = g_byte_array_new();
    GsBytes in = gs_bytes(data, size);
    bool framed = gs_bytes_u8(&in);
    char path[32];
    int fd = memfd_create("journal", 0);

    if (framed) {
        put_head(file);
        for (uint32_t i = 0; gs_bytes_left(&in); i++) {
            put_frame(file, &in, i);
        }
    } else {
        g_byte_array_append(file, in.data + in.pos, gs_bytes_left(&in));
    }
    g_snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, file->data, file->len) == (ssize_t)file->len) {
        read_file(path, true);
        read_file(path, false);
    }
    close(fd);
    return 0;
}
