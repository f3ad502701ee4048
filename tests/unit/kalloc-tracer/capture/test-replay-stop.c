/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A replay on the fake QEMU stops at the event that was asked for: before the
 * instruction that made it, with the event in the map, once. What is counted,
 * and what is not. The last access to a word before here is found, and reached.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

static void check_now(const KtGoto *go, uint64_t event)
{
    KtEventPlace now = go->now(go->opaque);

    g_assert_cmpuint(now.event, ==, event);
    g_assert_cmpuint(now.access, ==, 0);
}

CAPTURE_TEST(stops_at_a_free, "/replay-stop/stops-at-a-free")
{
    KtGoto go = kt_capture_stop_replay(w->capture, "journal");

    test_qemu_run(START);
    go.stop_at(go.opaque, (KtEventPlace) { .event = 2 });
    run_kmalloc(w, BLOCK);
    check_now(&go, 1);
    g_assert_cmpuint(test_qemu_stops(), ==, 0);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
    g_assert_cmphex(test_qemu_left(), ==, KFREE);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    check_now(&go, 2);
    /* the VM goes on: the same entry is no second free */
    run_kfree(w, BLOCK);
    g_assert_cmphex(test_qemu_left(), ==, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    check_now(&go, 2);
    run_kmalloc(w, BLOCK);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    check_now(&go, 4);
}

CAPTURE_TEST(stops_at_an_allocation, "/replay-stop/stops-at-an-allocation")
{
    KtGoto go = kt_capture_stop_replay(w->capture, "journal");

    test_qemu_run(START);
    go.stop_at(go.opaque, (KtEventPlace) { .event = 1 });
    enter_kmalloc(w, 0);
    g_assert_cmpuint(test_qemu_stops(), ==, 0);
    leave_kmalloc(w, 0, BLOCK);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
    g_assert_cmphex(test_qemu_left(), ==, CALLER);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    leave_kmalloc(w, 0, BLOCK);
    g_assert_cmphex(test_qemu_left(), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_RETURN_FOREIGN), ==, 0);
    check_now(&go, 1);
}

/* Commands make gaps, which the recorded run does not have. */
CAPTURE_TEST(gaps_do_not_count, "/replay-stop/gaps-do-not-count")
{
    KtGoto go = kt_capture_stop_replay(w->capture, "journal");

    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    kt_tracer_set_enabled(w->t, false);
    kt_tracer_set_enabled(w->t, true);
    check_now(&go, 1);
    run_kmalloc(w, BLOCK + 64);
    check_now(&go, 2);
    g_assert_cmpuint(test_qemu_stops(), ==, 0);
}

/* A loaded VM state is at the place at which it was saved. What was asked for
 * stays: the event is ahead then. */
CAPTURE_TEST(vm_states_have_a_place, "/replay-stop/vm-states-have-a-place")
{
    KtGoto go = kt_capture_stop_replay(w->capture, "journal");
    g_autoptr(GByteArray) begin = NULL, later = NULL;

    g_assert_false(go.has_begin(go.opaque));
    begin = test_qemu_save();
    g_assert_true(go.has_begin(go.opaque));
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    later = test_qemu_save();
    run_kfree(w, BLOCK);
    check_now(&go, 2);
    go.stop_at(go.opaque, (KtEventPlace) { .event = 2 });
    run_kmalloc(w, BLOCK);
    g_assert_cmpuint(test_qemu_stops(), ==, 0);
    g_assert_null(test_qemu_load(later));
    check_now(&go, 1);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
    check_now(&go, 2);
    go.stop_at(go.opaque, (KtEventPlace) { .event = 1 });
    go.stop_at(go.opaque, (KtEventPlace) { 0 });
    g_assert_null(test_qemu_load(begin));
    check_now(&go, 0);
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
}

/* ---- a word -------------------------------------------------------------- */

/* Code in not_hooked(), one instruction of a byte each. */
#define PC (TEXT + 0x6c8)
#define WORD (BLOCK + 8)

static void store(uint64_t pc, uint64_t va)
{
    test_qemu_access(pc, &(TestQemuAccess) { va, 3, true });
}

static KtGotoInsn insn_of(const KtGoto *go)
{
    KtGotoInsn insn;

    go->insn(go->opaque, &insn);
    return insn;
}

/* The run, from the VM state of its beginning; @event: it has a free. */
static void run_all(FakeCapture *w)
{
    test_qemu_run(START);
    store(PC, WORD);                    /* before the allocation */
    run_kmalloc(w, BLOCK);
    store(PC + 1, WORD);
    store(PC + 2, WORD + 8);            /* another word */
    store(PC + 3, WORD - 4);            /* half of it */
    test_qemu_access(PC + 4, &(TestQemuAccess) { WORD, 3, false });
    run_kfree(w, BLOCK);
}

/* Begin with a VM state; ask for the last access to the word; run again. */
static GByteArray *search_all(FakeCapture *w, KtGoto *go, bool loads,
                              uint64_t since)
{
    GByteArray *begin;

    *go = kt_capture_stop_replay(w->capture, "journal");
    begin = test_qemu_save();
    run_all(w);
    g_assert_true(go->search(go->opaque, &(KtWordSearch) {
        .va = WORD, .loads = loads, .since.event = since }));
    g_assert_cmpint(insn_of(go).step, ==, KT_GOTO_SEARCHES);
    test_qemu_rewind();
    g_assert_null(test_qemu_load(begin));
    g_assert_true(test_qemu_traps(WORD));
    run_all(w);
    run_kmalloc(w, BLOCK);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
    return begin;
}

CAPTURE_TEST(last_write, "/replay-stop/last-write")
{
    KtGoto go;
    g_autoptr(GByteArray) begin = search_all(w, &go, false, 1);

    g_assert_cmpint(insn_of(&go).step, ==, KT_GOTO_KNOWN);
    g_assert_cmphex(insn_of(&go).pc, ==, PC + 3);
    g_assert_cmpuint(insn_of(&go).found, ==, 2);
    g_assert_false(test_qemu_traps(WORD));
    /* nothing stops before a VM state is loaded */
    store(PC + 3, WORD);
    test_qemu_run(PC + 3);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
    test_qemu_rewind();
    g_assert_null(test_qemu_load(begin));
    test_qemu_run(START);
    test_qemu_run(PC);
    run_kmalloc(w, BLOCK);
    test_qemu_run(PC + 1);
    test_qemu_run(PC + 2);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
    test_qemu_run(PC + 3);
    g_assert_cmpuint(test_qemu_stops(), ==, 2);
    g_assert_cmphex(test_qemu_left(), ==, PC + 3);
    g_assert_cmpint(insn_of(&go).step, ==, KT_GOTO_THERE);
    g_assert_cmpuint(insn_of(&go).access.stack.v, !=, 0);
    /* the VM goes on */
    test_qemu_run(PC + 3);
    g_assert_cmpuint(test_qemu_stops(), ==, 2);
    test_qemu_run(PC + 4);
    g_assert_cmpint(insn_of(&go).step, ==, KT_GOTO_NONE);
}

CAPTURE_TEST(last_access, "/replay-stop/last-access")
{
    KtGoto go;

    g_byte_array_unref(search_all(w, &go, true, 1));
    g_assert_cmphex(insn_of(&go).pc, ==, PC + 4);
    g_assert_cmpuint(insn_of(&go).found, ==, 3);
}

/* Accesses before the allocation do not count. */
CAPTURE_TEST(no_write, "/replay-stop/no-write")
{
    KtGoto go;

    g_byte_array_unref(search_all(w, &go, false, 2));
    g_assert_cmpint(insn_of(&go).step, ==, KT_GOTO_NOTHING);
    g_assert_cmpuint(insn_of(&go).found, ==, 0);
}

TEST(places_have_an_order, "/replay-stop/places-have-an-order")
{
    static const uint8_t kinds[] = {
        KT_EV_ALLOC, KT_EV_ACCESS, KT_EV_GAP, KT_EV_ACCESS, KT_EV_FREE
    };
    static const KtEventPlace places[] = {
        { 1, 0 }, { 1, 1 }, { 1, 1 }, { 1, 2 }, { 2, 0 }
    };
    KtEventPlace p = { 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        KtEventPlace before = p;

        kt_event_place_step(&p, &(KtEvent) { .kind = kinds[i] });
        g_assert_cmpint(kt_event_place_compare(p, places[i]), ==, 0);
        g_assert_cmpint(kt_event_place_compare(before, p), ==,
                        kinds[i] == KT_EV_GAP ? 0 : -1);
    }
}
