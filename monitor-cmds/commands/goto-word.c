/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ka goto <va> write: see goto-word.h. */
#include "monitor-cmds/commands/goto-word.h"

#include "monitor-cmds/output/block-row.h"

typedef struct WordRow {
    const KtGotoInsn *insn;
    uint64_t us, now_us;
    const char *way;
} WordRow;

const McObject mc_goto_word_object = MC_LINE_OBJECT("goto_word",
    "ka goto <va> write",
    MC_VIA("va", WordRow, insn, word.va, HEX, NULL, "address of the word"),
    MC_VIA("loads", WordRow, insn, word.loads, YES_NO, NULL,
           "are loads looked for, too?"),
    MC_VIA("since", WordRow, insn, word.since.event, NUMBER, NULL,
           "number of the event that allocated the word's block; 0: none"),
    MC_VIA("found", WordRow, insn, found, NUMBER, NULL,
           "accesses since then, as far as they were looked for"),
    MC_VIA("pc", WordRow, insn, pc, ADDRESS, NULL,
           "instruction of the last one", .flags = MC_ZERO),
    MC_COLUMN(WordRow, us, NUMBER, NULL,
              "a VM state before this time of the VM's clock has to be "
              "loaded"),
    MC_COLUMN(WordRow, now_us, NUMBER, NULL, "the VM's clock now"),
    MC_COLUMN(WordRow, way, WORD, NULL, MC_GOTO_WAY));

/* (owned) */
static char *word_text(const KtGotoInsn *insn)
{
    const char *what = insn->word.loads ? "access" : "write";

    if (insn->step == KT_GOTO_SEARCHES) {
        return g_strdup_printf("the last %s to the word at %" PRIx64 ": "
                               "\"loadvm ka-begin\", then continue, twice",
                               what, insn->word.va);
    }
    return g_strdup_printf("the last of %" PRIu64 " %s%s to the word at %"
                           PRIx64 "%s", insn->found, what,
                           insn->found == 1 ? "" :
                           insn->word.loads ? "es" : "s", insn->word.va,
                           insn->step == KT_GOTO_THERE ? ": the VM is here" :
                           ", behind: \"loadvm ka-begin\", then continue");
}

static bool fail_no_access(const KtGotoInsn *insn, GError **errp)
{
    const char *what = insn->word.loads ? "accessed" : "written to";
    uint64_t since = insn->word.since.event;

    if (!since) {
        return mc_fail_unknown(errp, "the word at %" PRIx64 " was not %s "
                               "before", insn->word.va, what);
    }
    return mc_fail_unknown(errp, "the word at %" PRIx64 " was not %s since "
                           "event %" PRIu64 ", its allocation", insn->word.va,
                           what, since);
}

bool mc_print_goto_word(McOut *out, const KtGotoInsn *insn, GError **errp)
{
    const KtGoto *go = out->ctx->go;
    bool searches = insn->step == KT_GOTO_SEARCHES;
    g_autofree char *text = word_text(insn);

    if (insn->step == KT_GOTO_NOTHING) {
        return fail_no_access(insn, errp);
    }
    if (insn->step == KT_GOTO_THERE) {
        mc_print_block_access(out, &insn->access, insn->word.va);
    }
    mc_print_line(out, &mc_goto_word_object, &(WordRow) {
        insn, searches ? insn->word.since_us : insn->access.us,
        go->us(go->opaque), insn->step == KT_GOTO_THERE ? "here" : "behind" },
        text);
    return true;
}
