/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka goto finds the event that is meant in a journal, asks the replay to stop
 * there, and refuses what is behind or not there.
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

/** struct Fake - a replay. @asked: where it has to stop; @begin: it has a VM
 *  state of its beginning */
typedef struct Fake {
    JournalPath *path;
    TestWorld *w;
    KtGoto go;
    KtEventPlace now, asked;
    bool begin;
} Fake;

static KtEventPlace now(void *opaque)
{
    return ((Fake *)opaque)->now;
}

static void stop_at(void *opaque, KtEventPlace place)
{
    ((Fake *)opaque)->asked = place;
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
        .journal = f->path, .now = now, .stop_at = stop_at,
        .has_begin = has_begin, .opaque = f,
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
    f.begin = true;
    check_says(&f, "goto event 2", "\"loadvm ka-begin\"", 1);
    test_world_context(f.w)->go = NULL;
    check_says(&f, "goto event 2", "only a replay can go to an event", 1);
}
