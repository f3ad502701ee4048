/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of fields: how a struct is stored in a journal or a snapshot. A table
 * has one row for each member that is stored, in their order in the stream:
 *
 *     static const KtField stray_fields[] = {
 *         KT_ID(KtStray, stack, STACKS, "a backtrace"),
 *         KT_NUMBER(KtStray, unknown),
 *         { 0 }
 *     };
 *
 * What is read is untrusted: each number is compared with the row's bound
 * before the member is set. Pure functions: any thread.
 */
#ifndef KT_FIELDS_H
#define KT_FIELDS_H

#include "guest-symbols/base/bytes.h"

/** What a number is in the stream. */
typedef enum KtFieldForm {
    KT_FORM_END,        /* the end of the table */
    KT_FORM_FIXED,      /* @bytes bytes, little-endian */
    KT_FORM_NUMBER,     /* varint */
    KT_FORM_STEP,       /* distance from the member at @from, of 8 bytes */
    KT_FORM_DELTA,      /* distance from this member of the struct before */
} KtFieldForm;

/**
 * struct KtField - a member that is stored
 * @at, @size: its place in the struct, and its bytes: 1, 2, 4 or 8
 * @limit: 1 + index of its bound in the caller's limits; 0: @max is its bound
 * @max: 0: what fits in the member
 * @what: (nullable) NUMBER: its name in error messages; else the message
 */
typedef struct KtField {
    KtFieldForm form;
    uint16_t at, from;
    uint8_t size, bytes, limit;
    uint64_t max;
    const char *what;
} KtField;

#define KT_FIELD(form_, type_, member_, ...) \
    { .form = KT_FORM_##form_, .at = offsetof(type_, member_), \
      .size = sizeof(((type_ *)NULL)->member_), __VA_ARGS__ }
#define KT_FIXED(type_, member_, bytes_) \
    KT_FIELD(FIXED, type_, member_, .bytes = (bytes_))
#define KT_NUMBER(type_, member_) KT_FIELD(NUMBER, type_, member_, .max = 0)
#define KT_UPTO(type_, member_, max_, what_) \
    KT_FIELD(NUMBER, type_, member_, .max = (max_), .what = (what_))
#define KT_ID(type_, member_, limit_, what_) \
    KT_FIELD(NUMBER, type_, member_, .limit = 1 + (limit_), .what = (what_))
#define KT_STEP(type_, member_, from_) \
    KT_FIELD(STEP, type_, member_, .from = offsetof(type_, from_))
#define KT_DELTA(type_, member_) KT_FIELD(DELTA, type_, member_, .max = 0)

/** kt_fields_pack() - Write the members of @row. @before: (nullable) the struct
 *  before, for DELTA; without one, distances are from 0. */
void kt_fields_pack(const KtField *f, const void *row, const void *before,
                    GsOut *out);
/** kt_fields_unpack() - Read them. @limits: (nullable) bounds, by
 *  KtField.limit. Errors are in @in: members are 0 from then on. */
void kt_fields_unpack(const KtField *f, void *row, const void *before,
                      const uint64_t *limits, GsBytes *in);

#endif /* KT_FIELDS_H */
