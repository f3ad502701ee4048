/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mode of a run is found in the arguments of QEMU, and nowhere else. */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/plugin/record-replay.h"

#include <glib.h>

#define EXPECT(args, mode) \
    g_assert_cmpstr(kt_record_replay_in(args, sizeof(args) - 1), ==, mode)

TEST(modes, "/record-replay/modes")
{
    EXPECT("qemu\0-icount\0shift=0,rr=record,rrfile=a\0", "record");
    EXPECT("qemu\0--icount\0rr=replay,rrfile=a\0", "replay");
    EXPECT("qemu\0-icount\0shift=0\0-icount\0rr=replay\0-m\0" "1G\0",
           "replay");
    EXPECT("qemu\0-icount\0rr=record\0-icount\0sleep=off\0", "record");
}

TEST(no_mode, "/record-replay/no-mode")
{
    EXPECT("", NULL);
    EXPECT("qemu\0-icount\0shift=0,sleep=off\0", NULL);
    EXPECT("qemu\0-append\0rr=replay\0", NULL);
    EXPECT("qemu\0-icount\0rrfile=rr=replay\0", NULL);
    EXPECT("qemu\0-icount\0", NULL);
    EXPECT("qemu\0-icount\0rr=replay", NULL);       /* no end */
    g_assert_null(kt_record_replay());
}
