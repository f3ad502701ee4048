/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka goto finds the event that is meant in a journal, asks the replay to stop
 * there, and says whether it is ahead, behind, or not there. The last access to
 * a word.
 */
#include "monitor-cmds/mc.h"
#include "tests/lib/events.h"
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"

#include <string.h>

/* Two lives of one block, and a double free of the second. */
static const char script[] =
    "complete\n"
    "alloc va=ffff888000001000 size=10 us=1\n"          /* 1 */
    "alloc va=ffff888000002000 size=20 us=2\n"          /* 2 */
    "free va=ffff888000001000 us=3\n"                   /* 3 */
    "gap\n"
    "alloc va=ffff888000001000 size=10 us=4\n"          /* 4 */
    "access va=ffff888000002000 size=8 us=4\n"          /* 4.1 */
    "free va=ffff888000001000 us=5\n"                   /* 5 */
    "free va=ffff888000001000 us=6\n";                  /* 6 */

/** struct Fake - a replay. @asked: where it has to stop; @insn: what it knows
 *  of an instruction; @begin: it has a VM state of its beginning; @runs: the VM
 *  runs */
typedef struct Fake {
    JournalPath *path;
    TestWorld *w;
    KtGoto go;
    KtEventPlace now, asked;
    KtGotoInsn insn;
    bool begin, runs;
} Fake;

static KtEventPlace now(void *opaque)
{
    return ((Fake *)opaque)->now;
}

static void stop_at(void *opaque, KtEventPlace place)
{
    ((Fake *)opaque)->asked = place;
}

static uint64_t us(void *opaque)
{
    return ((Fake *)opaque)->now.event;
}

static bool search(void *opaque, const KtWordSearch *word)
{
    Fake *f = opaque;

    f->insn = (KtGotoInsn) {
        .step = KT_GOTO_SEARCHES, .is_word = true, .word = *word,
    };
    return !f->runs;
}

static void insn(void *opaque, KtGotoInsn *out)
{
    *out = ((Fake *)opaque)->insn;
}

static bool has_begin(void *opaque)
{
    return ((Fake *)opaque)->begin;
}

static void fake_init(Fake *f)
{
    *f = (Fake) { .path = new_path(), .w = test_world_new("") };
    test_world_free(test_world_new_at(script, f->path));
    f->go = (KtGoto) {
        .journal = f->path, .now = now, .us = us, .stop_at = stop_at,
        .search = search, .insn = insn, .has_begin = has_begin, .opaque = f,
    };
    test_world_context(f->w)->go = &f->go;
}

static void fake_deinit(Fake *f)
{
    test_world_free(f->w);
    remove_path(f->path);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fake, fake_deinit)

static void check_says(Fake *f, const char *line, const char *text,
                       int expected)
{
    int rc;
    g_autofree char *said = test_world_run(f->w, line, &rc);

    if (!strstr(said, text)) {
        g_error("%s: %s", line, said);
    }
    g_assert_cmpint(rc, ==, expected);
}

static void check_goes(Fake *f, const char *line, uint64_t event,
                       uint64_t access)
{
    f->asked = (KtEventPlace) { 0 };
    check_says(f, line, " ahead: continue the VM", 0);
    g_assert_cmpuint(f->asked.event, ==, event);
    g_assert_cmpuint(f->asked.access, ==, access);
}

TEST(goes_ahead, "/goto/goes-ahead")
{
    g_auto(Fake) f;

    fake_init(&f);
    check_goes(&f, "goto ffff888000001008 alloc", 4, 0);
    check_goes(&f, "goto ffff888000001008 alloc --until 3", 1, 0);
    check_goes(&f, "goto ffff888000001000 free", 6, 0);
    check_goes(&f, "goto ffff888000001000 free --until 5us", 5, 0);
    check_goes(&f, "goto next", 1, 0);
    check_goes(&f, "goto 3us", 3, 0);
    check_goes(&f, "goto event 2", 2, 0);
    check_goes(&f, "goto end", 6, 0);
    check_goes(&f, "goto error 1", 6, 0);
    check_goes(&f, "goto error 1 alloc", 4, 0);
    check_goes(&f, "goto error 1 free", 5, 0);
    f.now.event = 1;
    check_goes(&f, "goto next", 3, 0);
}

TEST(is_there, "/goto/is-there")
{
    g_auto(Fake) f;

    fake_init(&f);
    f.now.event = 5;
    check_says(&f, "goto", "event 5 of 6: the VM is here", 0);
    check_says(&f, "goto event 5", "event 5 of 6: the VM is here", 0);
    f.now = (KtEventPlace) { 4, 1 };
    check_says(&f, "goto", "access 1 after event 4 of 6: the VM is here", 0);
    check_goes(&f, "goto event 5", 5, 0);
}

TEST(refuses, "/goto/refuses")
{
    g_auto(Fake) f;

    fake_init(&f);
    check_says(&f, "goto", "no event yet; the recording has 6", 1);
    check_says(&f, "goto next", "no block was asked for", 1);
    check_says(&f, "goto event 7", "no such event; it has 6", 1);
    check_says(&f, "goto error 2", "the recording has no error 2", 1);
    check_says(&f, "goto ffff888000003000 alloc", "no such event", 1);
    check_says(&f, "goto ffff888000001000", "places are <va> alloc|free", 1);
    check_says(&f, "goto event", "places are <va> alloc|free", 1);
    f.now.event = 5;
    check_says(&f, "goto event 2", "event 2 is behind: the replay has made 5. "
               "Begin another one: ka-run --replay ", 1);
    check_says(&f, "goto ffff888000001000 write", "no VM state", 1);
    f.begin = f.runs = true;
    check_says(&f, "goto ffff888000001000 write", "the VM runs", 1);
    check_says(&f, "goto ffff888000001000+zz write", "zz", 1);
    check_says(&f, "goto ffff888000001000 write --until 5", "--until", 1);
    test_world_context(f.w)->go = NULL;
    check_says(&f, "goto event 2", "only a replay can go to an event", 1);
}

/* What is behind is asked for, too: a VM state may be loaded afterwards. */
TEST(goes_back, "/goto/goes-back")
{
    g_auto(Fake) f;

    fake_init(&f);
    f.begin = true;
    f.now.event = 5;
    check_says(&f, "goto event 2", "event 2 of 6, behind: \"loadvm ka-begin\"",
               0);
    g_assert_cmpuint(f.asked.event, ==, 2);
    check_says(&f, "goto event 2 -j",
               "\"us\":2,\"now_us\":5,\"way\":\"behind\"", 0);
}

/* The VM has stopped behind an access, and goes to its instruction. */
TEST(access_is_behind, "/goto/access-is-behind")
{
    g_auto(Fake) f;

    fake_init(&f);
    f.begin = true;
    f.now = (KtEventPlace) { 4, 1 };
    f.insn = (KtGotoInsn) { .step = KT_GOTO_KNOWN, .place = { 4, 1 } };
    check_says(&f, "goto -j", "\"way\":\"behind\"", 0);
    f.now = (KtEventPlace) { 3 };
    check_says(&f, "goto -j", "\"way\":\"here\"", 0);
    f.now = (KtEventPlace) { 4 };
    f.insn.step = KT_GOTO_THERE;
    check_says(&f, "goto", "access 1 after event 4 of 6: the VM is here", 0);
    f.insn.step = KT_GOTO_NONE;
    check_says(&f, "goto", "\nevent 4 of 6: the VM is here", 0);
}

TEST(word, "/goto/word")
{
    g_auto(Fake) f;

    fake_init(&f);
    f.begin = true;
    f.now.event = 4;
    check_says(&f, "goto ffff888000001000+8 write",
               "the last write to the word at ffff888000001008: \"loadvm ", 0);
    g_assert_cmphex(f.insn.word.va, ==, 0xffff888000001008);
    g_assert_cmpuint(f.insn.word.since.event, ==, 4);
    g_assert_cmpuint(f.insn.word.since_us, ==, 4);
    f.now.event = 3;
    check_says(&f, "goto ffff888000001000 access -j", "\"loads\":\"yes\"", 0);
    g_assert_cmpuint(f.insn.word.since.event, ==, 1);
    f.insn.step = KT_GOTO_NOTHING;
    check_says(&f, "goto", "was not accessed since event 1, its allocation", 1);
    f.insn = (KtGotoInsn) {
        .step = KT_GOTO_KNOWN, .is_word = true, .found = 2,
        .word.va = 0xffff888000001000, .access = { .us = 2, .len = 8 },
    };
    check_says(&f, "goto", "the last of 2 writes to the word at "
               "ffff888000001000, behind: \"loadvm ka-begin\"", 0);
    f.insn.step = KT_GOTO_THERE;
    check_says(&f, "goto", "access=r8", 0);
    check_says(&f, "goto", "ffff888000001000: the VM is here", 0);
    /* memory that nobody allocated */
    check_says(&f, "goto ffff888000005000 write -j", "\"since\":0", 0);
    f.insn.step = KT_GOTO_NOTHING;
    check_says(&f, "goto", "ffff888000005000 was not written to before", 1);
}
