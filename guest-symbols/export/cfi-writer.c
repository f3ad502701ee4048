/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes .debug_frame: encodes entries and instructions; see cfi-writer.h.
 */
#include "guest-symbols/export/cfi-writer.h"

#include <dwarf.h>

#define VERSION     3
#define ENTRY_ALIGN 8

/* ---- numbers ------------------------------------------------------------ */

/* LEB128 with a sign. */
static void put_signed(GsCfi *w, int64_t v)
{
    bool more = true;

    while (more) {
        uint8_t byte = v & 0x7f;

        v >>= 7;
        more = !((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40)));
        gs_out_u8(&w->out, byte | (more ? 0x80 : 0));
    }
}

static void put_op(GsCfi *w, uint8_t op, unsigned reg)
{
    gs_out_u8(&w->out, op);
    gs_out_varint(&w->out, reg);
}

/* ---- entries ------------------------------------------------------------ */

static void begin_entry(GsCfi *w, uint32_t id)
{
    w->entry_at = w->out.to->len;
    gs_out_u32(&w->out, 0);
    gs_out_u32(&w->out, id);
}

uint32_t gs_cfi_begin_cie(GsCfi *w, bool signal, unsigned ra)
{
    begin_entry(w, UINT32_MAX);
    gs_out_u8(&w->out, VERSION);
    gs_out_bytes(&w->out, signal ? "zS" : "", signal ? 3 : 1);
    gs_out_varint(&w->out, w->code_align);
    put_signed(w, GS_CFI_DATA_ALIGN);
    gs_out_varint(&w->out, ra);
    if (signal) {
        gs_out_varint(&w->out, 0);      /* no data, as 'z' announces */
    }
    return w->entry_at;
}

/* A reader that does not know 'z' takes the length of no data for a nop. */
void gs_cfi_begin_fde(GsCfi *w, uint32_t cie, uint64_t start, uint64_t end)
{
    begin_entry(w, cie);
    gs_out_u64(&w->out, start);
    gs_out_u64(&w->out, end - start);
    gs_out_u8(&w->out, 0);
    w->pc = start;
    w->n++;
}

void gs_cfi_end(GsCfi *w)
{
    static const uint8_t nops[ENTRY_ALIGN] = { DW_CFA_nop };
    GByteArray *to = w->out.to;
    uint32_t len;

    gs_out_bytes(&w->out, nops, -to->len & (ENTRY_ALIGN - 1));
    if (!w->out.failed) {
        len = GUINT32_TO_LE(to->len - w->entry_at - sizeof(len));
        memcpy(to->data + w->entry_at, &len, sizeof(len));
    }
}

void gs_cfi_advance(GsCfi *w, uint64_t pc)
{
    uint64_t step = (pc - w->pc) / w->code_align;

    w->pc = pc;
    if (!step) {
        return;
    }
    if (step < 0x40) {
        gs_out_u8(&w->out, DW_CFA_advance_loc | step);
    } else if (step <= UINT8_MAX) {
        gs_out_u8(&w->out, DW_CFA_advance_loc1);
        gs_out_u8(&w->out, step);
    } else if (step <= UINT16_MAX) {
        gs_out_u8(&w->out, DW_CFA_advance_loc2);
        gs_out_u8(&w->out, step);
        gs_out_u8(&w->out, step >> 8);
    } else {
        gs_out_u8(&w->out, DW_CFA_advance_loc4);
        gs_out_u32(&w->out, step);
    }
}

/* ---- expressions -------------------------------------------------------- */

/* Write an expression, whose length comes first: begin, operations, end. */
static GsCfi begin_block(GByteArray *block)
{
    return gs_cfi(block, 1);
}

static void end_block(GsCfi *w, const GsCfi *block)
{
    gs_out_varint(&w->out, block->out.to->len);
    gs_out_bytes(&w->out, block->out.to->data, block->out.to->len);
}

static void put_base(GsCfi *w, unsigned reg, int64_t off)
{
    gs_out_u8(&w->out, DW_OP_breg0 + (reg & 31));
    put_signed(w, off);
}

/* ---- the CFA ------------------------------------------------------------ */

void gs_cfi_cfa(GsCfi *w, unsigned reg, int64_t off)
{
    g_autoptr(GByteArray) bytes = NULL;
    GsCfi block;

    if (off >= 0) {
        put_op(w, DW_CFA_def_cfa, reg);
        gs_out_varint(&w->out, off);
        return;
    }
    bytes = g_byte_array_new();
    block = begin_block(bytes);
    put_base(&block, reg, off);
    gs_out_u8(&w->out, DW_CFA_def_cfa_expression);
    end_block(w, &block);
}

void gs_cfi_cfa_at(GsCfi *w, unsigned reg, int64_t off, int64_t add)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsCfi block = begin_block(bytes);

    put_base(&block, reg, off);
    gs_out_u8(&block.out, DW_OP_deref);
    if (add) {
        gs_out_u8(&block.out, DW_OP_consts);
        put_signed(&block, add);
        gs_out_u8(&block.out, DW_OP_plus);
    }
    gs_out_u8(&w->out, DW_CFA_def_cfa_expression);
    end_block(w, &block);
}

void gs_cfi_cfa_by(GsCfi *w, const uint8_t *ops, size_t len)
{
    gs_out_u8(&w->out, DW_CFA_def_cfa_expression);
    gs_out_varint(&w->out, len);
    gs_out_bytes(&w->out, ops, len);
}

/* ---- registers ---------------------------------------------------------- */

void gs_cfi_saved(GsCfi *w, unsigned reg, int64_t off)
{
    int64_t n = off / GS_CFI_DATA_ALIGN;

    if (n >= 0 && reg < 64) {
        gs_out_u8(&w->out, DW_CFA_offset | reg);
        gs_out_varint(&w->out, n);
    } else {
        put_op(w, DW_CFA_offset_extended_sf, reg);
        put_signed(w, n);
    }
}

void gs_cfi_saved_by(GsCfi *w, unsigned reg, unsigned base, int64_t off)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsCfi block = begin_block(bytes);

    put_base(&block, base, off);
    put_op(w, DW_CFA_expression, reg);
    end_block(w, &block);
}

void gs_cfi_value_by(GsCfi *w, unsigned reg, const uint8_t *ops, size_t len)
{
    put_op(w, DW_CFA_val_expression, reg);
    gs_out_varint(&w->out, len);
    gs_out_bytes(&w->out, ops, len);
}

void gs_cfi_same(GsCfi *w, unsigned reg)
{
    put_op(w, DW_CFA_same_value, reg);
}

void gs_cfi_undefined(GsCfi *w, unsigned reg)
{
    put_op(w, DW_CFA_undefined, reg);
}

void gs_cfi_value(GsCfi *w, unsigned reg, int64_t off)
{
    put_op(w, DW_CFA_val_offset_sf, reg);
    put_signed(w, off / GS_CFI_DATA_ALIGN);
}

void gs_cfi_in(GsCfi *w, unsigned reg, unsigned other)
{
    put_op(w, DW_CFA_register, reg);
    gs_out_varint(&w->out, other);
}

/* Write the operations that set @bits, which are the upper ones of a word. */
static void put_set_bits(GsCfi *w, uint64_t bits)
{
    gs_out_u8(&w->out, DW_OP_const1s);
    gs_out_u8(&w->out, 0xff);
    gs_out_u8(&w->out, DW_OP_lit0 + (__builtin_ctzll(bits) & 31));
    if (__builtin_ctzll(bits) & 32) {
        gs_out_u8(&w->out, DW_OP_plus_uconst);
        gs_out_u8(&w->out, 32);
    }
    gs_out_u8(&w->out, DW_OP_shl);
    gs_out_u8(&w->out, DW_OP_or);
}

void gs_cfi_in_with(GsCfi *w, unsigned reg, unsigned other, uint64_t bits)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsCfi block = begin_block(bytes);

    put_base(&block, other, 0);
    put_set_bits(&block, bits);
    put_op(w, DW_CFA_val_expression, reg);
    end_block(w, &block);
}

void gs_cfi_saved_with(GsCfi *w, unsigned reg, unsigned base, int64_t off,
                       uint64_t bits)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsCfi block = begin_block(bytes);

    put_base(&block, base, off);
    gs_out_u8(&block.out, DW_OP_deref);
    put_set_bits(&block, bits);
    put_op(w, DW_CFA_val_expression, reg);
    end_block(w, &block);
}

void gs_cfi_saved_behind(GsCfi *w, unsigned reg, unsigned base, int64_t off,
                         uint64_t bits)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsCfi block = begin_block(bytes);

    put_base(&block, base, 0);
    gs_out_u8(&block.out, DW_OP_deref);
    gs_out_u8(&block.out, DW_OP_consts);
    put_signed(&block, off);
    gs_out_u8(&block.out, DW_OP_plus);
    gs_out_u8(&block.out, DW_OP_deref);
    put_set_bits(&block, bits);
    put_op(w, DW_CFA_val_expression, reg);
    end_block(w, &block);
}

void gs_cfi_restore(GsCfi *w, unsigned reg)
{
    gs_out_u8(&w->out, DW_CFA_restore | reg);
}

/* ---- functions ---------------------------------------------------------- */

GsRange gs_cfi_next_piece(GsRange *left, const uint64_t *start, size_t n,
                          size_t *i)
{
    GsRange piece = *left;

    while (*i < n && start[*i] <= left->start) {
        ++*i;
    }
    if (*i < n && start[*i] < left->end) {
        piece.end = start[*i];
    }
    left->start = piece.end;
    return piece;
}
