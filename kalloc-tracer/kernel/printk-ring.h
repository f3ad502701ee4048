/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's ring of printk records (since 5.10), read from guest memory:
 * where its parts are, and how one record is copied.
 *
 *     prb --> struct printk_ringbuffer
 *               desc_ring: descs --> | state_var, begin, next | ... |
 *                          infos --> | seq, ts_nsec, level    | ... |
 *               text_data_ring: data --> ...| id | text | id | text |...
 *
 * The record with sequence number s is descs[s & mask] and infos[s & mask]. The
 * top two bits of state_var are its state, the others its id:
 *
 *     reserved --> committed --> finalized --> reusable --> reserved ...
 *        ^             |  a continuation line
 *        '-------------'  opens it again
 *
 * Only a finalized record may be read. Writers on other vCPUs do not wait for
 * us, so state_var is read again after the copy: if it has changed, the copy is
 * thrown away. See kernel/printk/printk_ringbuffer.c in Linux.
 *
 * Everything that is read is untrusted. Pure functions: any thread.
 */
#ifndef KT_PRINTK_RING_H
#define KT_PRINTK_RING_H

#include "kalloc-tracer/kt.h"

/**
 * struct KtPrintkLayout - offsets in bytes
 * @pointer: address of the variable prb; 0: the kernel has none
 * @from_types: the offsets are the kernel's own. If not, they are those that
 *              the ring has had in every 64-bit kernel so far, and
 *              kt_printk_ring_fits() has to confirm them
 * @count_bits, @descs, @infos, @head_id, @tail_id, @size_bits, @data: in
 *              struct printk_ringbuffer
 * @desc_size, @state, @begin, @next: of struct prb_desc
 * @info_size, @seq, @ns, @text_len, @facility, @caller: of struct printk_info.
 *              The byte after @facility has the level in its top three bits
 */
typedef struct KtPrintkLayout {
    uint64_t pointer;
    bool from_types;
    uint32_t count_bits, descs, infos, head_id, tail_id, size_bits, data;
    uint32_t desc_size, state, begin, next;
    uint32_t info_size, seq, ns, text_len, facility, caller;
} KtPrintkLayout;

/** kt_printk_layout_find() - find the ring's layout in a kernel. Returns: NULL,
 *  or (static) why the log cannot be read. */
const char *kt_printk_layout_find(KtPrintkLayout *at, const GsKernel *k);

/**
 * struct KtPrintkRing - the ring's arrays at this moment
 * @va: of the struct printk_ringbuffer
 * @mask: number of records - 1
 * @text_size: bytes of the text
 * @head_id, @tail_id: ids of the newest and the oldest record
 */
typedef struct KtPrintkRing {
    uint64_t va;
    uint64_t descs, infos, data;
    uint64_t mask, text_size;
    uint64_t head_id, tail_id;
} KtPrintkRing;

/** kt_printk_ring_open() - read where the ring is. The kernel moves its ring
 *  once, in setup_log_buf(). Returns: false if it is unreadable, or its sizes
 *  cannot be. */
bool kt_printk_ring_open(KtPrintkRing *r, const KtPrintkLayout *at,
                         const GsMem *mem);

/**
 * kt_printk_ring_fits() - confirm a layout that is not from types
 * @at: (in, out) its two variants are tried: with and without the member
 *      last_finalized_seq, which came with 6.8
 *
 * Four records in a row must have ascending numbers and times, and texts whose
 * blocks have the ids of the records. Returns: true if exactly one variant
 * fits.
 */
bool kt_printk_ring_fits(KtPrintkLayout *at, const GsMem *mem);

/** What there is of a record. */
typedef enum KtPrintkState {
    KT_PRINTK_RECORD,   /* here it is */
    KT_PRINTK_NOT_YET,  /* not stored yet, or being stored */
    KT_PRINTK_OPEN,     /* stored, but a continuation line may follow. Only
                         * seq and caller are valid */
    KT_PRINTK_GONE,     /* overwritten */
    KT_PRINTK_NO_TEXT,  /* the kernel had no room for the text, or it is gone */
    KT_PRINTK_BAD,      /* unreadable, or its parts contradict each other */
} KtPrintkState;

/**
 * struct KtPrintkRecord - a copy of a record
 * @len: bytes of @text; @cut: the record has more
 */
typedef struct KtPrintkRecord {
    uint64_t seq, ns;
    uint32_t caller;
    uint8_t level, facility;
    uint16_t len;
    bool cut;
    char text[KT_LOG_TEXT_MAX];
} KtPrintkRecord;

/** kt_printk_ring_read() - copy record @seq. @out: its members are valid as
 *  the result says. */
KtPrintkState kt_printk_ring_read(const KtPrintkRing *r,
                                  const KtPrintkLayout *at, const GsMem *mem,
                                  uint64_t seq, KtPrintkRecord *out);

/** kt_printk_ring_oldest() - read the number of the oldest record; false if it
 *  is unreadable. */
bool kt_printk_ring_oldest(const KtPrintkRing *r, const KtPrintkLayout *at,
                           const GsMem *mem, uint64_t *seq);
/**
 * kt_printk_ring_newer() - return how many records were begun when @r was
 * opened, from number @seq on; less by whole laps if it is more than a lap.
 *
 * It is from the id of the newest record. The number of that record is not
 * asked for: a writer takes the id first and writes the number later, so in
 * between the place has the number of an older record, or 0 (prb_reserve()).
 */
uint64_t kt_printk_ring_newer(const KtPrintkRing *r, uint64_t seq);
/** kt_printk_ring_caller() - read who stored the record in the place of number
 *  @seq, whatever its state; false if that is unreadable. */
bool kt_printk_ring_caller(const KtPrintkRing *r, const KtPrintkLayout *at,
                           const GsMem *mem, uint64_t seq, uint32_t *caller);
/** kt_printk_ring_time() - read number and time of the record in the place of
 *  number @seq, whatever its state; false if they are unreadable. */
bool kt_printk_ring_time(const KtPrintkRing *r, const KtPrintkLayout *at,
                         const GsMem *mem, uint64_t seq, uint64_t *found,
                         uint64_t *ns);

#endif /* KT_PRINTK_RING_H */
