/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/statements.h"

#include <stdlib.h>
#include <string.h>

#include "guest-symbols/kernel/kernel.h"
#include "tests/lib/types-file.h"
#include "tests/lib/types-writer.h"

static uint64_t hex(const char *s)
{
    return s ? g_ascii_strtoull(s, NULL, 16) : 0;
}

/* Return the type of a member: of "=NAME" that struct; of a number of bytes a
 * number, or an array of bytes. */
static int type_of(struct btf *b, const char *text)
{
    unsigned bytes = hex(text);
    g_autofree char *name = g_strdup_printf("u%u", 8 * bytes);
    int byte;

    if (*text == '=') {
        return btf__find_by_name_kind(b, text + 1, BTF_KIND_STRUCT);
    }
    if (bytes <= 8 && !(bytes & (bytes - 1))) {
        return btf__add_int(b, name, bytes, 0);
    }
    byte = btf__add_int(b, "u8", 1, 0);
    return btf__add_array(b, byte, byte, bytes);
}

/* Add a struct: NAME:SIZE:MEMBER@OFFSET:TYPE,... */
static void add_struct(struct btf *b, const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    g_auto(GStrv) members = g_strsplit(parts[2], ",", -1);
    g_autoptr(GArray) types = g_array_new(FALSE, FALSE, sizeof(int));

    for (unsigned i = 0; members[i]; i++) {
        int type = type_of(b, strchr(members[i], ':') + 1);

        g_array_append_val(types, type);
    }
    btf__add_struct(b, parts[0], hex(parts[1]));
    for (unsigned i = 0; members[i]; i++) {
        char *at = strchr(members[i], '@');

        *at = 0;
        btf__add_field(b, members[i], g_array_index(types, int, i),
                       8 * hex(at + 1), 0);
    }
}

static void set_types(GsKernel *k, const char *text)
{
    g_auto(GStrv) structs = g_strsplit(text, ";", -1);
    struct btf *b = btf__new_empty();
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GError) err = NULL;
    g_autoptr(GsTypesFile) types = NULL;

    for (unsigned i = 0; structs[i]; i++) {
        add_struct(b, structs[i]);
    }
    bytes = types_bytes(b);
    types = types_file(bytes, &err);
    g_assert_no_error(err);
    gs_kernel_set_types(k, types);
}

void types_statement(TestWorld *w, GHashTable *a)
{
    McContext *ctx = test_world_context(w);
    KtVm *vm = (KtVm *)ctx->vm;
    const char *structs = g_hash_table_lookup(a, "structs");

    test_world_events(w, "");   /* makes the kernel of the symbols so far */
    g_assert_nonnull(ctx->kernel);
    if (structs && !strcmp(structs, "none")) {
        gs_kernel_set_types((GsKernel *)ctx->kernel, NULL);
    } else if (structs) {
        set_types((GsKernel *)ctx->kernel, structs);
    }
    if (g_hash_table_contains(a, "frames")) {
        ((GsKernel *)ctx->kernel)->unwind_by = GS_UNWIND_BY_FRAMES;
    }
    if (vm) {
        vm->task_pid = hex(g_hash_table_lookup(a, "task_pid"));
        vm->task_comm = hex(g_hash_table_lookup(a, "task_comm"));
    }
}
