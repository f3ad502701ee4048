/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions as text: see gs-instruction.h. */
#include "guest-symbols/api/gs-instruction.h"

#include <string.h>

#ifdef GS_HAVE_CAPSTONE
#include <capstone/capstone.h>

/* ---- operands ----------------------------------------------------------- */

/* Return the end of the operand that begins at @s: a comma that is in no
 * brackets, or the end of the text. */
static const char *operand_end(const char *s)
{
    int depth = 0;

    for (; *s && (*s != ',' || depth > 0); s++) {
        depth += (*s == '(' || *s == '[' || *s == '{') -
                 (*s == ')' || *s == ']' || *s == '}');
    }
    return s;
}

/* 8(%rdi), [x0, #8], 8(a0); %gs:0x10. */
static bool is_memory(const char *s, size_t len)
{
    return memchr(s, '(', len) || memchr(s, '[', len) ||
           (len && *s == '%' && memchr(s, ':', len));
}

/* Copy an operand without blanks. */
static void copy_operand(GsInstruction *out, const char *s, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 1 < sizeof(out->operand); i++) {
        if (s[i] != ' ') {
            out->operand[n++] = s[i];
        }
    }
    out->operand[n] = 0;
}

/* Destinations are last on x86-64; the others have one operand in memory. */
static void find_operand(GsInstruction *out, const char *operands, bool write)
{
    for (const char *s = operands; *s;) {
        const char *end = operand_end(s);
        size_t len = (size_t)(end - s);

        if (is_memory(s, len)) {
            copy_operand(out, s, len);
            if (!write) {
                return;
            }
        }
        s = end + strspn(end, ", ");
    }
}

/* ---- capstone ----------------------------------------------------------- */

static bool open_arch(const GsArch *arch, csh *cs)
{
    size_t syntax = (size_t)arch->disassembler.syntax;

    return (arch->disassembler.arch || arch->disassembler.mode) &&
           cs_open((cs_arch)arch->disassembler.arch,
                   (cs_mode)arch->disassembler.mode, cs) == CS_ERR_OK &&
           (!syntax ||
            cs_option(*cs, CS_OPT_SYNTAX, syntax) == CS_ERR_OK);
}

bool gs_arch_disassemble(const GsArch *arch, uint64_t va, const uint8_t *bytes,
                         size_t len, bool write, GsInstruction *out)
{
    cs_insn *insn = NULL;
    csh cs = 0;
    size_t n = 0;

    *out = (GsInstruction) { 0 };
    if (open_arch(arch, &cs)) {
        n = cs_disasm(cs, bytes, MIN(len, GS_INSTRUCTION_MAX), va, 1, &insn);
    }
    if (n) {
        out->len = insn->size;
        g_snprintf(out->text, sizeof(out->text), "%s%s%s", insn->mnemonic,
                   *insn->op_str ? " " : "", insn->op_str);
        find_operand(out, insn->op_str, write);
        cs_free(insn, n);
    }
    if (cs) {
        cs_close(&cs);
    }
    return n != 0;
}
#else
bool gs_arch_disassemble(const GsArch *arch, uint64_t va, const uint8_t *bytes,
                         size_t len, bool write, GsInstruction *out)
{
    *out = (GsInstruction) { 0 };
    return false;
}
#endif
