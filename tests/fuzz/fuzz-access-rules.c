/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any bytes as a file of access rules.
 *
 * Checks: accepted rows are within bounds. A refused file has an error text of
 * one line.
 */
#include "tests/fuzz/fuzz.h"
#include "kalloc-tracer/access/code-classes.h"

static bool is_arg(int arg)
{
    return arg >= KT_NO_ARG && arg <= 5;
}

static void check_row(const KtCodeRow *row)
{
    bool is_checked = row->dst != KT_NO_ARG || row->src != KT_NO_ARG;

    if (!*row->name || row->class >= KT_CODE__COUNT || row->max_past > 63 ||
        row->max_before > 63 || !is_arg(row->dst) || !is_arg(row->src) ||
        !is_arg(row->n) || row->unit > 1u << 30) {
        abort();
    }
    if (row->class == KT_CODE_RANGE && is_checked && !row->unit) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(KtAccessRules) r =
        kt_access_rules_new_from_data((const char *)data, len, "fuzz", &err);
    const KtCodeRow *row;

    if (!r) {
        if (!err || !g_str_has_prefix(err->message, "fuzz:") ||
            strpbrk(err->message, "\n\r\033")) {
            abort();
        }
        return 0;
    }
    if (err) {
        abort();
    }
    for (unsigned i = 0; (row = kt_access_rules_nth(r, i)); i++) {
        check_row(row);
    }
    return 0;
}
