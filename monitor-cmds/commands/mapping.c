/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages that are mapped a second time: what ka <va> and ka show print of an
 * address outside of the direct map, such as a driver's of a DMA buffer.
 *
 * Called by these commands, on their thread, without the tracer's lock.
 */
#include "monitor-cmds/commands/commands.h"

/** struct MappingRow - @va maps @page, an address in the direct map */
typedef struct MappingRow {
    uint64_t va, page, phys;
} MappingRow;

const McObject mc_mapping_object = MC_OBJECT("mapping",
    "ka <va>, ka show: the address maps a page whose block follows",
    MC_COLUMN(MappingRow, va, ADDRESS, "% maps ", "the address"),
    MC_COLUMN(MappingRow, page, ADDRESS, "%, ",
              "where the page is in the direct map"),
    MC_COLUMN(MappingRow, phys, HEX, "physical %:", "its physical address"));

static bool is_live(const McOut *out, uint64_t va)
{
    KtBlock b;

    return mc_find_block(out, va, &b) && b.state == KT_BLOCK_ALLOCATED;
}

void mc_print_mapping(McOut *out, uint64_t va, bool history)
{
    const KtAddress a = {
        .va = va, .o = { out->ctx->tracer, mc_symbols(out->ctx), out->ctx->vm },
    };
    KtMapping m;
    KtBlock b;

    if (is_live(out, va) || !kt_address_mapping(&a, &m) || !m.va ||
        !mc_find_block(out, m.va, &b)) {
        return;
    }
    mc_print(out, &mc_mapping_object, &(MappingRow) { va, m.va, m.phys });
    mc_print(out, &mc_block_object, &(McBlockRow) {
        .block = &b, .hit = true, .offset = m.va - b.va });
    if (history) {
        mc_print_history(out, m.va, &b);
    }
}
