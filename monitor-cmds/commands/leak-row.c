/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of leaks: see commands.h. */
#include "monitor-cmds/commands/commands.h"

#include "monitor-cmds/output/block-row.h"

static const McColumn columns[] = {
    MC_COLUMN(McLeakRow, leak, WORD, " leak[%]",
              "who refers to a leaked block: nobody, or only other leaked "
              "blocks, by a pointer to its start or into its interior",
              MC_IF(McLeakRow, leak)),
    MC_COLUMN(McLeakRow, kept, WORD, " kept[%",
              "ka leak module: the block is in use; the kind of memory with a "
              "word that refers to it: data, percpu, block and so on, as for "
              "ka refs; otherwise: no word was found, but a rule or an owner "
              "of the page says so", MC_IF(McLeakRow, kept)),
    MC_COLUMN(McLeakRow, kept_by, WORD, " %",
              "that word: offset in a variable, address of a block and offset "
              "in it", MC_IF(McLeakRow, kept)),
    MC_COLUMN(McLeakRow, kept_in, WORD, " %]",
              "what has that word: member or cache of the block, or the "
              "function that allocated it", MC_IF(McLeakRow, kept)),
    MC_COLUMN(McLeakRow, same_stack, NUMBER, " +% more with the same stack",
              "other blocks of the same allocation stack, which are not "
              "listed", .flags = MC_ZERO | MC_OMIT),
    MC_COLUMN(McLeakRow, held, NUMBER, " and % more that only it holds",
              "other blocks to which only the blocks of this line refer, "
              "directly or not; they are not listed",
              .flags = MC_ZERO | MC_OMIT),
    MC_COLUMN(McLeakRow, same_bytes, NUMBER, " same_bytes=%",
              "requested bytes of all leaked blocks of this stack",
              .flags = MC_V, MC_IF(McLeakRow, leak)),
    MC_END
};

const McObject mc_leak_object = {
    "block", "a block",
    { mc_margin_columns, mc_block_columns, columns, mc_block_more_columns,
      mc_identity_columns },
    .is_block = true,
};

void mc_print_leak(McOut *out, McLeakRow *row)
{
    g_autoptr(McIdentity) id = row->leak && mc_prints_identity(out) ?
                               mc_identity_of_leak(out, row->b.block) : NULL;

    row->b.identity = id;
    mc_print(out, &mc_leak_object, row);
}
