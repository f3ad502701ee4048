/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fault rule names a point, a function or a set of functions of a made-up
 * kernel. A name that cannot be used is refused, and the message has one line.
 */
#include <string.h>

#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/fault-calls.h"
#include "tests/lib/test-main.h"

FAULT_TEST(functions, "/fault-points/functions")
{
    uint64_t value;

    fault_add_spec(w, &(KtFaultSpec) { .what = "device_add",
                                 .value = "-ENOMEM" });
    g_assert_true(fault_call_at(w, ERRNO, 0, &value));
    g_assert_cmphex(value, ==, (uint64_t)-12);
}

/* kfree() is of the set, and cannot fail. */
FAULT_TEST(sets, "/fault-points/sets")
{
    uint64_t value;

    fault_add_spec(w, &(KtFaultSpec) { .what = "@common_mm" });
    g_assert_cmpuint(fault_rule(w).n_functions, ==, 2);
    g_assert_cmpuint(fault_rule(w).left_out, ==, 1);
    g_assert_true(fault_call(w, 0));
    g_assert_true(fault_call_at(w, TEXT + 0x2000, 0, &value));
    g_assert_false(fault_call_at(w, TEXT + 0x7000, 0, &value));
    g_assert_false(fault_call(w, KMALLOC + 0x20));        /* an inner call */
    g_assert_cmpuint(fault_rule(w).calls, ==, 2);
    fault_clear(w);
    fault_add_spec(w, &(KtFaultSpec) { .what = "@common_mm",
                                 .action = KT_FAULT_DO_LOG });
    g_assert_cmpuint(fault_rule(w).n_functions, ==, 3);
    g_assert_cmpuint(fault_rule(w).left_out, ==, 0);
}

/* A set that was named before the kernel was found. */
FAULT_TEST(early_sets, "/fault-points/early-sets")
{
    g_autoptr(GError) err = NULL;

    kt_call_points_end_boot(w->points);
    g_assert_cmpuint(kt_faults_add(w->t, NULL, &(KtFaultSpec) {
                         .what = "@common_mm" }, &err), ==, 1);
    g_assert_no_error(err);
    kt_faults_begin_boot(w->t, w->k);
    kt_call_points_begin_boot(w->points, w->k);
    kt_call_points_reclaim(w->points);
    g_assert_true(fault_call(w, 0));
    g_assert_cmpuint(fault_rule(w).n_functions, ==, 2);
}

static void refused(FaultWorld *w, const KtFaultSpec *spec, const char *why)
{
    g_autoptr(GError) err = NULL;

    g_assert_cmpuint(kt_faults_add(w->t, w->k, spec, &err), ==, 0);
    if (!strstr(err->message, why)) {
        g_error("'%s' is not in '%s'", why, err->message);
    }
    g_assert_cmpuint(fault_rule(w).id, ==, 0);
}

FAULT_TEST(bad_rules, "/fault-points/bad-rules")
{
    refused(w, &(KtFaultSpec) { .what = "device_ad" }, "near it: device_add");
    refused(w, &(KtFaultSpec) { .what = "device_add" }, "add --return VALUE");
    refused(w, &(KtFaultSpec) { .what = "vmalloc" }, "none of the functions");
    refused(w, &(KtFaultSpec) { .what = "kmalloc", .condition = "size >" },
            "column 7");
    refused(w, &(KtFaultSpec) { .what = "kmalloc", .value = "ENOMEN" },
            "--return: condition, column 1");
    refused(w, &(KtFaultSpec) { .what = "a*" }, "one @set or one function");
    refused(w, &(KtFaultSpec) { .what = "ka_test:@mutex" },
            "one @set or one function");
    refused(w, &(KtFaultSpec) { .what = "@mutecks" }, "there are @common_mm");
    refused(w, &(KtFaultSpec) { .what = "@mutex" }, "has a known error");
    for (unsigned i = 0; i < KT_FAULT_RULES_MAX; i++) {
        fault_add(w, NULL);
    }
    g_assert_cmpuint(kt_faults_add(w->t, w->k, &(KtFaultSpec) {
                         .what = "kmalloc" }, NULL), ==, 0);
    fault_clear(w);
    kt_faults_set_off(w->t);
    refused(w, &(KtFaultSpec) { .what = "kmalloc" }, "faults=off");
}
