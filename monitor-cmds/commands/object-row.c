/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects that belong to a row: see commands.h. */
#include "monitor-cmds/commands/commands.h"

#include "monitor-cmds/output/block-row.h"

/** struct Row - a block that is an object of what was printed before */
typedef struct Row {
    McBlockRow b;
    const char *object;
} Row;

static const McColumn name_columns[] = {
    MC_COLUMN(Row, object, WORD, "  %-8",
              "ka task of one task: which object of it the block is",
              .flags = MC_HEAD),
    MC_END
};
const McObject mc_part_object = {
    "block", "a block",
    { name_columns, mc_margin_columns, mc_block_columns,
      mc_block_more_columns }, .is_block = true,
};

/* What is no block: init_cred and the like are variables of the kernel. */
typedef struct NoBlock {
    const char *object;
    uint64_t va;
    const char *leads_to;
} NoBlock;

const McObject mc_no_block_object = MC_LINE_OBJECT("object",
    "ka task of one task, ka mod: an object that is no block",
    MC_COLUMN(NoBlock, object, WORD, "  %-8 - ", "which one"),
    MC_COLUMN(NoBlock, va, HEX, "%", "its address"),
    MC_COLUMN(NoBlock, leads_to, TEXT, NULL,
              "what is known of va, such as a variable"),
    MC_KEY(NULL, NoBlock, leads_to, TEXT, " > %", NULL, .flags = MC_OMIT),
    MC_ONLY_TEXT(" no block", MC_UNLESS(NoBlock, leads_to)));

static void print_no_block(McOut *out, const char *name, uint64_t va)
{
    bool freed;
    g_autofree char *note = mc_pointer_note(out, va, &freed);

    mc_print(out, &mc_no_block_object, &(NoBlock) { name, va, note });
}

void mc_object_print_block(McOut *out, const char *name, uint64_t va)
{
    KtBlock b;

    if (!mc_find_block(out, va, &b)) {
        print_no_block(out, name, va);
        return;
    }
    out->margin = 0;
    mc_print(out, &mc_part_object, &(Row) {
        .b = { .block = &b, .hit = va != b.va, .offset = va - b.va },
        .object = name });
}
