/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-symbols/arch/arch.h"
#include "tests/lib/printk-writer.h"

#include <bpf/btf.h>
#include <string.h>

#define STATE_SHIFT 62
#define ID_MASK     ((1ull << STATE_SHIFT) - 1)
#define DESC        24u

static uint64_t count(const PrintkWriter *w)
{
    return 1ull << w->count_bits;
}

static uint64_t size(const PrintkWriter *w)
{
    return 1ull << w->size_bits;
}

void *pw_at(PrintkWriter *w, uint64_t va, size_t len)
{
    uint64_t at = va - PW_BASE;

    return at < PW_BYTES && len <= PW_BYTES - at ? w->mem + at : NULL;
}

static void put(PrintkWriter *w, uint64_t va, uint64_t v, size_t len)
{
    void *at = pw_at(w, va, len);

    g_assert_nonnull(at);
    memcpy(at, &v, len);
}

static uint64_t get(PrintkWriter *w, uint64_t va)
{
    uint64_t v;

    memcpy(&v, pw_at(w, va, sizeof(v)), sizeof(v));
    return v;
}

/* ---- places -------------------------------------------------------------- */

static uint64_t arrays(const PrintkWriter *w)
{
    return PW_BASE + 0x10000 + w->ring * 0x40000;
}

uint64_t pw_struct(const PrintkWriter *w)
{
    return PW_BASE + 0x100 + w->ring * 0x100;
}

uint64_t pw_desc(const PrintkWriter *w, uint64_t id)
{
    return arrays(w) + (id & (count(w) - 1)) * DESC;
}

uint64_t pw_info(const PrintkWriter *w, uint64_t id)
{
    return arrays(w) + 0x8000 + (id & (count(w) - 1)) * PW_INFO;
}

uint64_t pw_data(const PrintkWriter *w)
{
    return arrays(w) + 0x20000;
}

/* ---- the ring ------------------------------------------------------------ */

static void put_struct(PrintkWriter *w)
{
    uint64_t va = pw_struct(w), text = va + (w->late ? 48 : 40);

    put(w, va, w->count_bits, 4);
    put(w, va + 8, pw_desc(w, 0), 8);
    put(w, va + 16, pw_info(w, 0), 8);
    put(w, va + 24, w->head_id, 8);
    put(w, va + 32, w->tail_id, 8);
    put(w, text, w->size_bits, 4);
    put(w, text + 8, pw_data(w), 8);
    put(w, text + 16, w->head_lpos, 8);
    put(w, text + 24, w->tail_lpos, 8);
}

/* The initial values of a ring: _DEFINE_PRINTKRB() in Linux. */
static void begin(PrintkWriter *w)
{
    w->head_id = w->tail_id = -(count(w) + 1) & ID_MASK;
    w->head_lpos = w->tail_lpos = -size(w);
    put(w, pw_desc(w, w->head_id), w->head_id |
        (uint64_t)PW_REUSABLE << STATE_SHIFT, 8);
    put(w, pw_info(w, 0), -count(w), 8);
    put_struct(w);
}

PrintkWriter *pw_new(unsigned count_bits, unsigned size_bits, bool late)
{
    PrintkWriter *w = g_new0(PrintkWriter, 1);

    g_assert_true(count_bits <= 9 && size_bits <= 16);
    w->count_bits = count_bits;
    w->size_bits = size_bits;
    w->late = late;
    begin(w);
    pw_publish(w);
    return w;
}

void pw_move(PrintkWriter *w)
{
    w->ring++;
    g_assert_true(w->ring < PW_RINGS);
    begin(w);
}

void pw_publish(PrintkWriter *w)
{
    put(w, PW_PRB, pw_struct(w), 8);
}

void pw_set_state(PrintkWriter *w, uint64_t id, unsigned state)
{
    put(w, pw_desc(w, id), id | (uint64_t)state << STATE_SHIFT, 8);
}

/* ---- storing ------------------------------------------------------------- */

/* Free the text up to position @lpos: the oldest records lose theirs. A block
 * that did not fit before the end has its id at both places. */
static void push_text(PrintkWriter *w, uint64_t lpos)
{
    while ((int64_t)(lpos - w->tail_lpos) > 0) {
        uint64_t id = get(w, pw_data(w) + (w->tail_lpos & (size(w) - 1)));
        uint64_t next = get(w, pw_desc(w, id) + 16);

        pw_set_state(w, id, PW_REUSABLE);
        if (next == w->tail_lpos) {
            break;
        }
        w->tail_lpos = next;
    }
}

static uint64_t wrap_of(const PrintkWriter *w, uint64_t lpos)
{
    return lpos >> w->size_bits;
}

static void alloc_text(PrintkWriter *w, uint64_t id, size_t len)
{
    uint64_t bytes = (8 + len + 7) & ~7ull, begun = w->head_lpos;
    uint64_t next = begun + bytes, at = begun;

    if (!len) {                 /* NO_LPOS */
        put(w, pw_desc(w, id) + 8, 3, 8);
        put(w, pw_desc(w, id) + 16, 3, 8);
        return;
    }
    if (wrap_of(w, begun) != wrap_of(w, next)) {
        at = next & ~(size(w) - 1);
        next = at + bytes;
    }
    g_assert_true(bytes <= size(w) / 2);
    push_text(w, next - size(w));
    w->head_lpos = next;
    if (begun == -size(w)) {
        w->tail_lpos = begun;
    }
    put(w, pw_data(w) + (begun & (size(w) - 1)), id, 8);
    put(w, pw_data(w) + (at & (size(w) - 1)), id, 8);
    put(w, pw_desc(w, id) + 8, begun, 8);
    put(w, pw_desc(w, id) + 16, next, 8);
}

static uint64_t text_at(PrintkWriter *w, uint64_t id)
{
    uint64_t from = get(w, pw_desc(w, id) + 8);
    uint64_t next = get(w, pw_desc(w, id) + 16);
    bool wraps = wrap_of(w, from) != wrap_of(w, next - 1);

    return pw_data(w) + (wraps ? 0 : from & (size(w) - 1)) + 8;
}

static void put_record(PrintkWriter *w, uint64_t id, const PwRecord *r)
{
    uint64_t info = pw_info(w, id);

    put(w, info + 8, r->ns, 8);
    put(w, info + PW_TEXT_LEN, r->len, 2);
    put(w, info + PW_FACILITY, r->facility, 1);
    put(w, info + PW_LEVEL, r->level << 5 | 2, 1);
    put(w, info + PW_CALLER, r->caller, 4);
    if (r->len) {
        memcpy(pw_at(w, text_at(w, id), r->len), r->text, r->len);
    }
}

uint64_t pw_reserve(PrintkWriter *w, const PwRecord *r)
{
    uint64_t id = (w->head_id + 1) & ID_MASK, old, index;

    if (((id - count(w)) & ID_MASK) == w->tail_id) {
        pw_set_state(w, w->tail_id, PW_REUSABLE);
        w->tail_id = (w->tail_id + 1) & ID_MASK;
    }
    w->head_id = id;
    old = get(w, pw_info(w, id));
    index = id & (count(w) - 1);
    put(w, pw_info(w, id), old || !index ? old + count(w) : index, 8);
    pw_set_state(w, id, PW_RESERVED);
    alloc_text(w, id, r->len);
    put_record(w, id, r);
    put_struct(w);
    return id;
}

void pw_extend(PrintkWriter *w, uint64_t id, const char *text)
{
    uint64_t info = pw_info(w, id);
    uint16_t len;
    uint64_t next = get(w, pw_desc(w, id) + 16);

    memcpy(&len, pw_at(w, info + PW_TEXT_LEN, 2), 2);
    memcpy(pw_at(w, text_at(w, id) + len, strlen(text)), text, strlen(text));
    len += strlen(text);
    next += (strlen(text) + 7) & ~7ull;
    put(w, info + PW_TEXT_LEN, len, 2);
    put(w, pw_desc(w, id) + 16, next, 8);
    w->head_lpos = next;
    put_struct(w);
}

uint64_t pw_store(PrintkWriter *w, const PwRecord *r)
{
    uint64_t id = pw_reserve(w, r);

    pw_set_state(w, id, PW_FINALIZED);
    return id;
}

void pw_print(PrintkWriter *w, const char *text)
{
    pw_store(w, &(PwRecord) { .text = text, .len = strlen(text), .level = 6 });
}

/* ---- readers ------------------------------------------------------------- */

static bool read_memory(void *opaque, uint64_t va, void *buf, size_t len)
{
    PrintkWriter *w = opaque;
    const void *from = pw_at(w, va, len);

    w->reads++;
    if (w->on_read) {
        w->on_read(w, va, len);
    }
    if (from) {
        memcpy(buf, from, len);
    }
    return from;
}

GsMem pw_memory(PrintkWriter *w)
{
    return (GsMem) { .read = read_memory, .opaque = w };
}

static void add_types(struct btf *b, bool late, const char *without)
{
    int t_int = btf__add_int(b, "int", 4, 0);
    int t_long = btf__add_int(b, "long", 8, 0);
    int t_short = btf__add_int(b, "short", 2, 0);
    int t_char = btf__add_int(b, "char", 1, 0);
    int descs, text, lpos;

    descs = btf__add_struct(b, "prb_desc_ring", late ? 48 : 40);
    btf__add_field(b, "count_bits", t_int, 0, 0);
    btf__add_field(b, "descs", t_long, 64, 0);
    btf__add_field(b, "infos", t_long, 128, 0);
    btf__add_field(b, "head_id", t_long, 192, 0);
    btf__add_field(b, "tail_id", t_long, 256, 0);
    text = btf__add_struct(b, "prb_data_ring", 32);
    btf__add_field(b, "size_bits", t_int, 0, 0);
    btf__add_field(b, "data", t_long, 64, 0);
    btf__add_struct(b, g_strcmp0(without, "printk_ringbuffer") ?
                       "printk_ringbuffer" : "other", 88);
    btf__add_field(b, "desc_ring", descs, 0, 0);
    btf__add_field(b, "text_data_ring", text, (late ? 48 : 40) * 8, 0);
    lpos = btf__add_struct(b, "prb_data_blk_lpos", 16);
    btf__add_field(b, "begin", t_long, 0, 0);
    btf__add_field(b, "next", t_long, 64, 0);
    btf__add_struct(b, "prb_desc", DESC);
    btf__add_field(b, "state_var", t_long, 0, 0);
    btf__add_field(b, "text_blk_lpos", lpos, 64, 0);
    btf__add_struct(b, "printk_info", PW_INFO);
    btf__add_field(b, "seq", t_long, 0, 0);
    btf__add_field(b, "ts_nsec", t_long, 64, 0);
    btf__add_field(b, "text_len", t_short, PW_TEXT_LEN * 8, 0);
    btf__add_field(b, "facility", t_char, PW_FACILITY * 8, 0);
    btf__add_field(b, "caller_id", t_int, PW_CALLER * 8, 0);
}

void pw_kernel_init(GsKernel *k, const PrintkWriter *w, bool types,
                    const char *without)
{
    memset(k, 0, sizeof(*k));
    k->arch = &gs_arch_x86_64;
    k->modules = gs_modules_new();
    k->symtab = gs_symtab_new();
    gs_symtab_add(k->symtab, PW_PRB, 'd', "prb", 3);
    gs_symtab_seal(k->symtab, NULL);
    if (types) {
        struct btf *b = btf__new_empty();
        const void *raw;
        __u32 len;

        add_types(b, w->late, without);
        raw = btf__raw_data(b, &len);
        k->btf = gs_btf_new(raw, len, NULL);
        btf__free(b);
    }
}

void pw_kernel_deinit(GsKernel *k)
{
    gs_modules_free(k->modules);
    gs_symtab_free(k->symtab);
    gs_btf_free(k->btf);
}
