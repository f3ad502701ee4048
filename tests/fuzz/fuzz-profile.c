/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any bytes as a kernel profile.
 *
 * Checks: the rows of an accepted profile are valid for the hook table. A
 * refused profile has an error text of one line.
 */
#include "tests/fuzz/fuzz.h"
#include "kalloc-tracer/hooks/profile.h"

static void check_row(const KtHook *hook)
{
    uint64_t big = UINT64_MAX / 2;

    if (!*hook->symbol || (hook->role == KT_ROLE_FREE && hook->ptr < 0)) {
        abort();
    }
    if (hook->role == KT_ROLE_ALLOC &&
        (!hook->sizes || hook->layer == KT_LAYER_NONE ||
         (!hook->sizes->fixed &&
          kt_reserve_rule_bytes(hook->sizes, big) < big))) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(KtProfile) p = kt_profile_new_from_data((const char *)data, len,
                                                      "fuzz", &err);

    if (!p) {
        if (!err || !g_str_has_prefix(err->message, "fuzz: ") ||
            strpbrk(err->message, "\n\r\033")) {
            abort();
        }
        return 0;
    }
    if (err || !p->n_hooks || p->n_hooks > 254) {
        abort();
    }
    for (unsigned i = 0; i < p->n_hooks; i++) {
        check_row(&p->hook[i]);
    }
    return 0;
}
