/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel's ring of printk records, as printk_ringbuffer.c writes it, in the
 * memory of a test; and the kernel that has it. Single-threaded.
 */
#ifndef PRINTK_WRITER_H
#define PRINTK_WRITER_H

#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/types/btf.h"
#include "kalloc-tracer/kt.h"

#define PW_BASE     0xffff888000000000ull
#define PW_BYTES    0x90000u
#define PW_PRB      PW_BASE             /* the variable prb */
#define PW_RINGS    2

/* Offsets in struct printk_info; that of the level is that of its byte. */
#define PW_INFO         88u
#define PW_TEXT_LEN     16u
#define PW_FACILITY     18u
#define PW_LEVEL        19u
#define PW_CALLER       20u

enum { PW_RESERVED, PW_COMMITTED, PW_FINALIZED, PW_REUSABLE };

/** struct PwRecord - what printk() is given */
typedef struct PwRecord {
    const char *text;
    size_t len;
    uint64_t ns;
    uint32_t caller;
    uint8_t level, facility;
} PwRecord;

/**
 * struct PrintkWriter - the memory, and the ring that is in use
 * @count_bits, @size_bits: 2^n records, 2^n bytes of text
 * @late: the ring has the member last_finalized_seq (since 6.8)
 * @ring: number of the ring
 * @on_read: (nullable) called before each read of the memory
 */
typedef struct PrintkWriter {
    uint8_t mem[PW_BYTES];
    unsigned count_bits, size_bits;
    bool late;
    unsigned ring;
    uint64_t head_id, tail_id;
    uint64_t head_lpos, tail_lpos;
    void (*on_read)(struct PrintkWriter *w, uint64_t va, size_t len);
    unsigned reads;
} PrintkWriter;

/** pw_new() - (owned, g_free()) make an empty ring. */
PrintkWriter *pw_new(unsigned count_bits, unsigned size_bits, bool late);
/** pw_move() - make an empty ring at another place, without setting prb. */
void pw_move(PrintkWriter *w);
/** pw_publish() - let prb point to the ring. */
void pw_publish(PrintkWriter *w);
/** pw_reserve() - begin a record. Returns: its id. */
uint64_t pw_reserve(PrintkWriter *w, const PwRecord *r);
/** pw_set_state() - set the state of a record. */
void pw_set_state(PrintkWriter *w, uint64_t id, unsigned state);
/** pw_extend() - append to the text of the record @id, which is the newest. */
void pw_extend(PrintkWriter *w, uint64_t id, const char *text);
/** pw_store() - store a whole record. Returns: its id. */
uint64_t pw_store(PrintkWriter *w, const PwRecord *r);
/** pw_print() - store a line of the kernel with this text. */
void pw_print(PrintkWriter *w, const char *text);

/* Addresses in the ring, to spoil it. */
uint64_t pw_struct(const PrintkWriter *w);
uint64_t pw_desc(const PrintkWriter *w, uint64_t id);
uint64_t pw_info(const PrintkWriter *w, uint64_t id);
uint64_t pw_data(const PrintkWriter *w);
/** pw_at() - (borrowed) the host's address; NULL outside the memory. */
void *pw_at(PrintkWriter *w, uint64_t va, size_t len);

/** pw_memory() - the memory, for readers. */
GsMem pw_memory(PrintkWriter *w);

/** pw_kernel_init() - make a kernel with the symbol prb. @types: it describes
 *  the ring; @without: (nullable) but not this type */
void pw_kernel_init(GsKernel *k, const PrintkWriter *w, bool types,
                    const char *without);
void pw_kernel_deinit(GsKernel *k);

#endif /* PRINTK_WRITER_H */
