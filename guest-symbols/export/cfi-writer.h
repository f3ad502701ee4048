/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one writer of call frame information (DWARF 5, section 6.4), in the form
 * of the section .debug_frame.
 *
 * The section is a list of entries. A CIE has what several ranges of code have
 * in common, an FDE is the table of one range:
 *
 *     CIE   length, ffffffff, version 3, augmentation, alignments, return
 *           address register, the rules at the start of each range
 *     FDE   length, its CIE, start, bytes, then the rules by address:
 *               advance by 1       (behind push %rbp)
 *               CFA = rsp + 16
 *               rbp is at CFA - 16
 *               ...
 *
 * A GsCfi is a plain value of its user: one thread at a time, no locks. What
 * does not fit into the array is not written, and @out.failed is set.
 */
#ifndef GS_CFI_WRITER_H
#define GS_CFI_WRITER_H

#include "guest-symbols/base/bytes.h"
#include "guest-symbols/orc/orc.h"

/** Offsets of saved registers are stored as multiples of this. */
#define GS_CFI_DATA_ALIGN (-8)

/**
 * struct GsCfi - a writer
 * @out: appends to the section
 * @code_align: addresses are advanced by multiples of this
 * @entry_at: where the entry that is being written begins
 * @pc: address that the rules to come are for
 * @n: FDEs, so far
 */
typedef struct GsCfi {
    GsOut out;
    unsigned code_align;
    size_t entry_at;
    uint64_t pc;
    size_t n;
} GsCfi;

/** gs_cfi() - return a writer of an empty section. */
static inline GsCfi gs_cfi(GByteArray *to, unsigned code_align)
{
    return (GsCfi) { .out = gs_out(to), .code_align = code_align };
}

/**
 * gs_cfi_begin_cie() - begin a CIE
 * @signal: the caller's pc is an interrupted instruction, and no return address
 * @ra: DWARF number of the return address
 *
 * The rules that follow, until gs_cfi_end(), are those of each range at its
 * start. Returns: the number of the CIE, for gs_cfi_begin_fde().
 */
uint32_t gs_cfi_begin_cie(GsCfi *w, bool signal, unsigned ra);
/** gs_cfi_begin_fde() - begin the table of the code at [@start, @end) */
void gs_cfi_begin_fde(GsCfi *w, uint32_t cie, uint64_t start, uint64_t end);
/** gs_cfi_end() - end the entry. */
void gs_cfi_end(GsCfi *w);

/** gs_cfi_advance() - the rules that follow are in force from @pc on. */
void gs_cfi_advance(GsCfi *w, uint64_t pc);

/* ---- where the CFA is --------------------------------------------------- */

/** gs_cfi_cfa() - the CFA is @reg + @off. */
void gs_cfi_cfa(GsCfi *w, unsigned reg, int64_t off);
/** gs_cfi_cfa_at() - the CFA is *(@reg + @off) + @add. */
void gs_cfi_cfa_at(GsCfi *w, unsigned reg, int64_t off, int64_t add);

/** gs_cfi_cfa_by() - the CFA is the result of a DWARF expression. */
void gs_cfi_cfa_by(GsCfi *w, const uint8_t *ops, size_t len);

/* ---- where the caller's registers are ---------------------------------- */

/** gs_cfi_saved() - @reg is saved at CFA + @off, a multiple of 8. */
void gs_cfi_saved(GsCfi *w, unsigned reg, int64_t off);
/** gs_cfi_saved_by() - @reg is saved at @base + @off. */
void gs_cfi_saved_by(GsCfi *w, unsigned reg, unsigned base, int64_t off);
/** gs_cfi_value_by() - @reg is the result of a DWARF expression. */
void gs_cfi_value_by(GsCfi *w, unsigned reg, const uint8_t *ops, size_t len);
/** gs_cfi_same() - @reg has its value of the caller. */
void gs_cfi_same(GsCfi *w, unsigned reg);
/** gs_cfi_undefined() - the value that @reg had in the caller is not known; if
 *  it is the return address, there is no caller. */
void gs_cfi_undefined(GsCfi *w, unsigned reg);
/** gs_cfi_value() - @reg of the caller has the value CFA + @off, a multiple of
 *  8. */
void gs_cfi_value(GsCfi *w, unsigned reg, int64_t off);
/** gs_cfi_in() - @reg of the caller is in the register @other. */
void gs_cfi_in(GsCfi *w, unsigned reg, unsigned other);
/** gs_cfi_in_with() - @reg of the caller is in the register @other, but with
 *  the upper bits @bits set: addresses may be signed there. @bits: not 0 */
void gs_cfi_in_with(GsCfi *w, unsigned reg, unsigned other, uint64_t bits);
/** gs_cfi_saved_with() - the same of the word at @base + @off */
void gs_cfi_saved_with(GsCfi *w, unsigned reg, unsigned base, int64_t off,
                       uint64_t bits);
/** gs_cfi_saved_behind() - the same of the word at *@base + @off */
void gs_cfi_saved_behind(GsCfi *w, unsigned reg, unsigned base, int64_t off,
                         uint64_t bits);
/** gs_cfi_restore() - the rule of @reg, below 64, is that of the CIE again. */
void gs_cfi_restore(GsCfi *w, unsigned reg);

/**
 * gs_cfi_next_piece() - return the piece of @left up to the next function
 * @left: (in, out) code; the piece is removed from its start
 * @start: (borrowed) where functions begin, ascending, @n of them
 * @i: (in, out) how many of them were passed; 0 at first
 */
GsRange gs_cfi_next_piece(GsRange *left, const uint64_t *start, size_t n,
                          size_t *i);

#endif /* GS_CFI_WRITER_H */
