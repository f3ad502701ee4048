/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's list of modules, if it is damaged: the walk ends, says why, and
 * no module of the table is missing. The guest is that of a golden case.
 */
#include "kalloc-tracer/api/kt-modules.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define CASE KA_SOURCE_DIR "/tests/replay/cases/079-mod/events"
#define IN_TABLE 2u

static KtModuleList *list(TestWorld **w, const char *damage)
{
    g_autofree char *script = NULL;
    const McContext *ctx;

    g_assert_true(g_file_get_contents(CASE, &script, NULL, NULL));
    *w = test_world_new(script);
    test_world_events(*w, damage);
    ctx = test_world_context(*w);
    return kt_module_list_new(
        &(KtObjects) { ctx->tracer, ctx->kernel, ctx->vm });
}

TEST(test_whole, "/module-list/whole")
{
    g_autoptr(TestWorld) w = NULL;
    g_autoptr(KtModuleList) l = list(&w, "");
    const KtModuleInfo *m = &g_array_index(l->module, KtModuleInfo, 0);

    g_assert_null(l->why_no_list);
    g_assert_cmpuint(l->module->len, ==, 3);
    g_assert_cmpstr(m->name, ==, "ext4");
    g_assert_cmpstr(kt_module_state(m), ==, "Live");
    g_assert_cmpuint(kt_module_size(m), ==, 0x4000);
    g_assert_cmpuint(m->n_users, ==, 1);
}

TEST(test_damaged, "/module-list/damaged")
{
    static const struct {
        const char *damage, *why;
    } row[] = {
        { "word va=ffff888000020808 value=ffff888000020808",
          "it leads back into itself" },
        { "word va=ffff888000020808 value=dead00000000",
          "it leads to unreadable memory" },
        { "word va=ffffffff82000000 value=0",
          "it leads to unreadable memory" },
        { "types structs=none", "the kernel has no types" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(TestWorld) w = NULL;
        g_autoptr(KtModuleList) l = list(&w, row[i].damage);

        g_assert_cmpstr(l->why_no_list, ==, row[i].why);
        g_assert_cmpuint(l->module->len, >=, IN_TABLE);
    }
}

/* Users without an end are cut; a state that does not exist is unknown. */
TEST(test_numbers, "/module-list/numbers")
{
    g_autoptr(TestWorld) w = NULL;
    g_autoptr(KtModuleList) l = list(
        &w, "word va=ffff888000020c00 value=ffff888000020c00\n"
            "word va=ffff888000020000 value=77");
    const KtModuleInfo *m = &g_array_index(l->module, KtModuleInfo, 0);

    g_assert_cmpuint(m->n_users, ==, KT_MODULE_USERS_MAX);
    g_assert_false(m->known & KT_MODULE_USERS);
    g_assert_null(kt_module_state(m));
}
