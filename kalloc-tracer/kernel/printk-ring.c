/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's ring of printk records: see printk-ring.h. */
#include "kalloc-tracer/kernel/printk-ring.h"

#include <string.h>

#include "kalloc-tracer/base/host-memory.h"
#include "kalloc-tracer/layout/layout.h"

#define STATE_SHIFT     62
#define ID_MASK         ((1ull << STATE_SHIFT) - 1)

/* States of a record: enum desc_state in printk_ringbuffer.h. */
enum { RESERVED, COMMITTED, FINALIZED, REUSABLE };

/* A text block begins with the id of its record. */
#define BLOCK_HEAD      8
/* An empty line: both ends of its block have this value. */
#define NO_BLOCK        3

/* What the kernel can be configured to: a ring of 4 KiB to 2 GiB, and a record
 * for each 32 bytes of it, or for less. */
#define COUNT_BITS_MIN  4
#define COUNT_BITS_MAX  26
#define SIZE_BITS_MIN   10
#define SIZE_BITS_MAX   31

#define SURE_RECORDS    4
#define RETRIES         4
#define STRUCT_MAX      256

/* ---- layout -------------------------------------------------------------- */

/* Offsets of all 64-bit kernels since 5.10, see the vmcoreinfo of a kernel. */
static const KtPrintkLayout usual = {
    .count_bits = 0, .descs = 8, .infos = 16, .head_id = 24, .tail_id = 32,
    .size_bits = 40, .data = 48,
    .desc_size = 24, .state = 0, .begin = 8, .next = 16,
    .info_size = 88, .seq = 0, .ns = 8, .text_len = 16, .facility = 18,
    .caller = 20,
};

static bool find_members(KtPrintkLayout *at, const GsKernel *k)
{
    const struct {
        KtMember m;
        uint32_t *offset;
        uint32_t bytes;
    } row[] = {
        { KT_M_PRB_COUNT_BITS, &at->count_bits, 4 },
        { KT_M_PRB_DESCS, &at->descs, 8 },
        { KT_M_PRB_INFOS, &at->infos, 8 },
        { KT_M_PRB_HEAD, &at->head_id, 8 },
        { KT_M_PRB_TAIL, &at->tail_id, 8 },
        { KT_M_PRB_SIZE_BITS, &at->size_bits, 4 },
        { KT_M_PRB_DATA, &at->data, 8 },
        { KT_M_PRB_STATE, &at->state, 8 },
        { KT_M_PRB_BEGIN, &at->begin, 8 },
        { KT_M_PRB_NEXT, &at->next, 8 },
        { KT_M_PRINTK_SEQ, &at->seq, 8 },
        { KT_M_PRINTK_NS, &at->ns, 8 },
        { KT_M_PRINTK_LEN, &at->text_len, 2 },
        { KT_M_PRINTK_FACILITY, &at->facility, 1 },
        { KT_M_PRINTK_CALLER, &at->caller, 4 },
    };
    KtLayout l;

    kt_layout_init(&l, k);
    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        *row[i].offset = l.at[row[i].m];
        if (l.size[row[i].m] != row[i].bytes ||
            *row[i].offset > STRUCT_MAX - row[i].bytes) {
            return false;
        }
    }
    return gs_kernel_type_size(k, "prb_desc", &at->desc_size) &&
           gs_kernel_type_size(k, "printk_info", &at->info_size) &&
           at->desc_size <= STRUCT_MAX && at->info_size <= STRUCT_MAX &&
           at->next + 8 <= at->desc_size && at->caller + 4 <= at->info_size;
}

const char *kt_printk_layout_find(KtPrintkLayout *at, const GsKernel *k)
{
    GsSymbol sym;

    *at = usual;
    if (!gs_kernel_lookup(k, "prb", &sym)) {
        return gs_kernel_lookup(k, "log_first_seq", &sym) ?
               "this kernel keeps its log as kernels before 5.10 did" :
               "this kernel has no symbol of its log (prb)";
    }
    at->pointer = sym.va;
    if (gs_kernel_has_types(k)) {
        at->from_types = find_members(at, k);
        return at->from_types ? NULL :
               "this kernel's types do not describe its log";
    }
    return NULL;
}

/* ---- the ring ------------------------------------------------------------ */

static bool read_u64(const GsMem *mem, uint64_t va, uint64_t *out)
{
    bool ok = mem->read(mem->opaque, va, out, sizeof(*out));

    *out = GUINT64_FROM_LE(*out);
    return ok;
}

static uint64_t u64_in(const uint8_t *bytes, uint32_t at)
{
    uint64_t v;

    memcpy(&v, bytes + at, sizeof(v));
    return GUINT64_FROM_LE(v);
}

static uint32_t u32_in(const uint8_t *bytes, uint32_t at)
{
    uint32_t v;

    memcpy(&v, bytes + at, sizeof(v));
    return GUINT32_FROM_LE(v);
}

static bool is_kernel(uint64_t va)
{
    return va >> 63 && !(va & 7);
}

static bool open_at(KtPrintkRing *r, const KtPrintkLayout *at,
                    const GsMem *mem, uint64_t va)
{
    uint8_t s[STRUCT_MAX + 8];
    uint32_t count_bits, size_bits;
    uint32_t last = MAX(MAX(at->descs, at->infos), at->data);
    size_t len = MAX(MAX(last, at->head_id), at->tail_id) + 8;

    len = MAX(len, MAX(at->count_bits, at->size_bits) + 4);
    if (!is_kernel(va) || !mem->read(mem->opaque, va, s, len)) {
        return false;
    }
    count_bits = u32_in(s, at->count_bits);
    size_bits = u32_in(s, at->size_bits);
    if (count_bits < COUNT_BITS_MIN || count_bits > COUNT_BITS_MAX ||
        size_bits < SIZE_BITS_MIN || size_bits > SIZE_BITS_MAX) {
        return false;
    }
    *r = (KtPrintkRing) {
        .va = va,
        .descs = u64_in(s, at->descs), .infos = u64_in(s, at->infos),
        .data = u64_in(s, at->data),
        .head_id = u64_in(s, at->head_id) & ID_MASK,
        .tail_id = u64_in(s, at->tail_id) & ID_MASK,
        .mask = (1ull << count_bits) - 1, .text_size = 1ull << size_bits,
    };
    return is_kernel(r->descs) && is_kernel(r->infos) && r->data >> 63;
}

bool kt_printk_ring_open(KtPrintkRing *r, const KtPrintkLayout *at,
                         const GsMem *mem)
{
    uint64_t va;

    return read_u64(mem, at->pointer, &va) && open_at(r, at, mem, va);
}

static uint64_t desc_va(const KtPrintkRing *r, const KtPrintkLayout *at,
                        uint64_t i)
{
    return r->descs + (i & r->mask) * at->desc_size;
}

static uint64_t info_va(const KtPrintkRing *r, const KtPrintkLayout *at,
                        uint64_t i)
{
    return r->infos + (i & r->mask) * at->info_size;
}

bool kt_printk_ring_time(const KtPrintkRing *r, const KtPrintkLayout *at,
                         const GsMem *mem, uint64_t seq, uint64_t *found,
                         uint64_t *ns)
{
    uint64_t va = info_va(r, at, seq);

    return read_u64(mem, va + at->seq, found) &&
           read_u64(mem, va + at->ns, ns);
}

bool kt_printk_ring_oldest(const KtPrintkRing *r, const KtPrintkLayout *at,
                           const GsMem *mem, uint64_t *seq)
{
    return read_u64(mem, info_va(r, at, r->tail_id) + at->seq, seq);
}

/* A record's index in the ring is its number modulo the ring's size, and its id
 * modulo the same. */
uint64_t kt_printk_ring_newer(const KtPrintkRing *r, uint64_t seq)
{
    return (r->head_id + 1 - seq) & r->mask;
}

bool kt_printk_ring_caller(const KtPrintkRing *r, const KtPrintkLayout *at,
                           const GsMem *mem, uint64_t seq, uint32_t *caller)
{
    uint8_t b[4];

    if (!mem->read(mem->opaque, info_va(r, at, seq) + at->caller, b,
                   sizeof(b))) {
        return false;
    }
    *caller = u32_in(b, 0);
    return true;
}

/* ---- a record ------------------------------------------------------------ */

/*
 * struct Desc - a descriptor and its info, copied
 * @state_var: before the copy
 */
typedef struct Desc {
    uint64_t state_var, begin, next, seq;
    uint32_t text_len;
} Desc;

static bool copy_desc(const KtPrintkRing *r, const KtPrintkLayout *at,
                      const GsMem *mem, uint64_t seq, Desc *d,
                      KtPrintkRecord *out)
{
    uint8_t desc[STRUCT_MAX], info[STRUCT_MAX];

    if (!mem->read(mem->opaque, desc_va(r, at, seq), desc, at->desc_size)) {
        return false;
    }
    kt_read_fence();
    if (!mem->read(mem->opaque, info_va(r, at, seq), info, at->info_size)) {
        return false;
    }
    *d = (Desc) {
        .state_var = u64_in(desc, at->state), .begin = u64_in(desc, at->begin),
        .next = u64_in(desc, at->next), .seq = u64_in(info, at->seq),
        .text_len = info[at->text_len] | info[at->text_len + 1] << 8,
    };
    out->seq = seq;
    out->ns = u64_in(info, at->ns);
    out->caller = u32_in(info, at->caller);
    out->facility = info[at->facility];
    out->level = info[at->facility + 1] >> 5;
    return true;
}

/*
 * Find the bytes of a block. Positions count on when the ring wraps. A block
 * never wraps: if there is no room until the end of the ring, it begins at the
 * ring's begin, and its id is there. The first position is minus the ring's
 * size, so that they run over early.
 *
 *     begin = 0x0f0, next = 0x120, ring of 0x100: bytes 0x000 to 0x01f
 */
static bool find_block(const KtPrintkRing *r, const Desc *d, uint64_t *at,
                       uint64_t *len)
{
    uint64_t size = r->text_size, last = d->next - 1;
    uint64_t lap = d->begin & -size, last_lap = last & -size;

    if ((d->begin | d->next) & 7 || d->next - d->begin > 2 * size ||
        d->next == d->begin) {
        return false;
    }
    if (lap == last_lap) {
        *at = d->begin & (size - 1);
        *len = d->next - d->begin;
    } else {
        *at = 0;
        *len = (last & (size - 1)) + 1;
        if (lap + size != last_lap) {
            return false;
        }
    }
    return *len > BLOCK_HEAD && *len <= size;
}

static KtPrintkState copy_text(const KtPrintkRing *r, const GsMem *mem,
                               const Desc *d, KtPrintkRecord *out)
{
    uint64_t at, len, id;

    out->len = out->cut = 0;
    if (d->begin & d->next & 1) {
        return d->begin == NO_BLOCK && d->next == NO_BLOCK && !d->text_len ?
               KT_PRINTK_RECORD : KT_PRINTK_NO_TEXT;
    }
    if (!find_block(r, d, &at, &len) ||
        !read_u64(mem, r->data + at, &id) || id != (d->state_var & ID_MASK) ||
        d->text_len > len - BLOCK_HEAD) {
        return KT_PRINTK_BAD;
    }
    out->len = MIN(d->text_len, KT_LOG_TEXT_MAX);
    out->cut = d->text_len > KT_LOG_TEXT_MAX;
    return mem->read(mem->opaque, r->data + at + BLOCK_HEAD, out->text,
                     out->len) ? KT_PRINTK_RECORD : KT_PRINTK_BAD;
}

/* Until a place is used for the first time, its number is less: 0, and in the
 * first place minus the number of records. */
static KtPrintkState copy_record(const KtPrintkRing *r, const GsMem *mem,
                                 const Desc *d, KtPrintkRecord *out)
{
    unsigned state = d->state_var >> STATE_SHIFT;

    if ((int64_t)(d->seq - out->seq) > 0) {
        return KT_PRINTK_GONE;
    }
    if (d->seq != out->seq || state == RESERVED) {
        return KT_PRINTK_NOT_YET;
    }
    if (state == COMMITTED) {
        return KT_PRINTK_OPEN;
    }
    return state == FINALIZED ? copy_text(r, mem, d, out) : KT_PRINTK_NO_TEXT;
}

KtPrintkState kt_printk_ring_read(const KtPrintkRing *r,
                                  const KtPrintkLayout *at, const GsMem *mem,
                                  uint64_t seq, KtPrintkRecord *out)
{
    for (unsigned i = 0; i < RETRIES; i++) {
        KtPrintkState state;
        uint64_t now;
        Desc d;

        if (!copy_desc(r, at, mem, seq, &d, out)) {
            return KT_PRINTK_BAD;
        }
        state = copy_record(r, mem, &d, out);
        kt_read_fence();
        if (!read_u64(mem, desc_va(r, at, seq) + at->state, &now)) {
            return KT_PRINTK_BAD;
        }
        if (now == d.state_var) {
            return state;
        }
    }
    return KT_PRINTK_NOT_YET;
}

/* ---- without types ------------------------------------------------------- */

static bool records_fit(const KtPrintkRing *r, const KtPrintkLayout *at,
                        const GsMem *mem)
{
    g_autofree KtPrintkRecord *rec = g_new(KtPrintkRecord, 1);
    uint64_t first, ns = 0;

    if (!kt_printk_ring_oldest(r, at, mem, &first)) {
        return false;
    }
    for (unsigned i = 0; i < SURE_RECORDS; i++) {
        if (kt_printk_ring_read(r, at, mem, first + i, rec) !=
                KT_PRINTK_RECORD || rec->ns < ns) {
            return false;
        }
        ns = rec->ns;
    }
    return true;
}

bool kt_printk_ring_fits(KtPrintkLayout *at, const GsMem *mem)
{
    KtPrintkLayout found = *at;
    unsigned n = 0;

    for (unsigned i = 0; i < 2; i++) {
        KtPrintkLayout variant = *at;
        KtPrintkRing r;

        variant.size_bits = usual.size_bits + 8 * i;
        variant.data = usual.data + 8 * i;
        if (kt_printk_ring_open(&r, &variant, mem) &&
            records_fit(&r, &variant, mem)) {
            found = variant;
            n++;
        }
    }
    *at = found;
    return n == 1;
}
