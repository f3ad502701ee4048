/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC tables: recognise the layout, sort, normalise, search.
 *
 * objtool writes two parallel arrays into each image and module:
 *
 *     .orc_unwind_ip   int32, distance from the element itself to the code
 *     .orc_unwind      {int16 sp_offset, int16 bp_offset, uint16 flags}
 *
 * The meaning of the flags has changed four times. It is recognised by the
 * data, never by the kernel's version, and turned into a GsOrcRule, so no
 * other file knows of layouts.
 *
 * orc-set.c calls this when a kernel is opened, modules.c when a module is
 * loaded. A table does not change once made: any thread may search it.
 */
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/base/bytes.h"
#include <inttypes.h>
#include <string.h>

#define ENTRY_SIZE 6
#define HEADER_SIZE 20
#define MAX_ENTRIES (4u << 20)
#define BLOCK_SHIFT 10

/* Offsets in the x86-64 struct pt_regs; fixed by the entry code's pushes. */
enum {
    PT_R13 = 16,
    PT_R10 = 56,
    PT_AX = 80,
    PT_DX = 96,
    PT_DI = 112,
};

/* What a register number means as the base of sp and as the base of bp. */
typedef struct RegRow {
    uint8_t sp;
    uint8_t pt_off;
    uint8_t bp;
} RegRow;

#define NO_BP .bp = GS_ORC_BP_INVALID

/* ee9f8fce9964 (4.14) */
static const RegRow regs_4_14[16] = {
    [0] = { .bp = GS_ORC_BP_KEEP },
    [1] = { .bp = GS_ORC_BP_AT_CFA },
    [2] = { .sp = GS_ORC_SP_REG, .pt_off = PT_DX, NO_BP },
    [3] = { .sp = GS_ORC_SP_REG, .pt_off = PT_DI, NO_BP },
    [4] = { .sp = GS_ORC_SP_BP, .bp = GS_ORC_BP_AT_BP },
    [5] = { .sp = GS_ORC_SP, NO_BP },
    [6] = { .sp = GS_ORC_SP_REG, .pt_off = PT_R10, NO_BP },
    [7] = { .sp = GS_ORC_SP_REG, .pt_off = PT_R13, NO_BP },
    [8] = { .sp = GS_ORC_SP_AT_BP_OFF, NO_BP },
    [9] = { .sp = GS_ORC_SP_AT_SP, NO_BP },
    [10] = { .sp = GS_ORC_SP_REG, .pt_off = PT_AX, NO_BP },
    [11 ... 15] = { NO_BP },
};

/* 1735858caa4b (7.1) */
static const RegRow regs_7_1[16] = {
    [0] = { .bp = GS_ORC_BP_KEEP },
    [1] = { .sp = GS_ORC_SP_REG, .pt_off = PT_AX, NO_BP },
    [2] = { .sp = GS_ORC_SP_REG, .pt_off = PT_DX, NO_BP },
    [3] = { .sp = GS_ORC_SP, NO_BP },
    [4] = { .sp = GS_ORC_SP_BP, .bp = GS_ORC_BP_AT_BP },
    [5] = { .sp = GS_ORC_SP_REG, .pt_off = PT_DI, NO_BP },
    [6] = { .sp = GS_ORC_SP_REG, .pt_off = PT_R10, NO_BP },
    [7] = { .sp = GS_ORC_SP_REG, .pt_off = PT_R13, NO_BP },
    [8] = { .bp = GS_ORC_BP_AT_CFA },
    [9] = { .sp = GS_ORC_SP_AT_SP, NO_BP },
    [10] = { .sp = GS_ORC_SP_AT_BP_OFF, NO_BP },
    [11 ... 15] = { NO_BP },
};

/* The type field, bits 8 and up, before and since fb799447ae29 (6.4). */
static const uint8_t types_4_14[4] = {
    GS_ORC_CALL, GS_ORC_REGS, GS_ORC_REGS_PARTIAL, GS_ORC_UNDEFINED,
};
static const uint8_t types_6_4[8] = {
    GS_ORC_UNDEFINED, GS_ORC_END, GS_ORC_CALL, GS_ORC_REGS,
    GS_ORC_REGS_PARTIAL, GS_ORC_UNDEFINED, GS_ORC_UNDEFINED, GS_ORC_UNDEFINED,
};

/*
 * One layout. @end: the bit that tells the end of the stack from code
 * without information when sp has no base; 0 = there is a type for each.
 * @signal: the bit for an exact ip; 0 = true of all saved registers.
 * @hash: contents of .orc_header (b9f174c811e3, 6.4; also in 6.3.10).
 */
typedef struct Layout {
    const RegRow *regs;
    const uint8_t *types;
    uint16_t type_mask;
    uint16_t signal;
    uint16_t end;
    bool undefined_is_end;
    uint8_t hash[HEADER_SIZE];
} Layout;

static const Layout layouts[GS_ORC_LAYOUT__COUNT] = {
    /* ee9f8fce9964: the first; whatever has no base ends the stack */
    [GS_ORC_LAYOUT_4_14] = {
        .regs = regs_4_14, .types = types_4_14, .type_mask = 3,
        .undefined_is_end = true,
    },
    /* d31a580266ee: a bit for the end */
    [GS_ORC_LAYOUT_4_18] = {
        .regs = regs_4_14, .types = types_4_14, .type_mask = 3,
        .end = 1 << 10,
    },
    /* ffb1b4a41016: a bit for interrupted code, before that of the end */
    [GS_ORC_LAYOUT_6_3] = {
        .regs = regs_4_14, .types = types_4_14, .type_mask = 3,
        .signal = 1 << 10, .end = 1 << 11,
        .hash = { 0xdb, 0x84, 0xae, 0xd4, 0x10, 0x3b, 0x31, 0xdd, 0x51, 0xe0,
                  0x17, 0xf8, 0xf7, 0x97, 0x83, 0xca, 0x98, 0x5c, 0x2c, 0x51 },
    },
    /* fb799447ae29: the end is a type */
    [GS_ORC_LAYOUT_6_4] = {
        .regs = regs_4_14, .types = types_6_4, .type_mask = 7,
        .signal = 1 << 11,
        .hash = { 0xfe, 0x5d, 0x32, 0xbf, 0x58, 0x1b, 0xd6, 0x3b, 0x2c, 0xa9,
                  0xa5, 0xc6, 0x5b, 0xa5, 0xa6, 0x25, 0xea, 0xb3, 0xfe, 0x24 },
    },
    /* 1735858caa4b: other register numbers */
    [GS_ORC_LAYOUT_7_1] = {
        .regs = regs_7_1, .types = types_6_4, .type_mask = 7,
        .signal = 1 << 11,
        .hash = { 0x13, 0x7c, 0x36, 0xad, 0x76, 0x27, 0xc4, 0xdd, 0x55, 0x93,
                  0x21, 0x76, 0xbb, 0x0e, 0xcd, 0xbd, 0x50, 0x41, 0xfc, 0x82 },
    },
};

/*
 * @ip: ascending distances from @base
 * @block: entry in force at each multiple of (1 << BLOCK_SHIFT) bytes: a search
 *         starts there. NULL if the table would be larger than it is useful
 */
struct GsOrcTable {
    atomic_uint refs;
    uint64_t base;
    size_t n;
    uint32_t *ip;
    GsOrcRule *rule;
    uint32_t *block;
    size_t n_blocks;
};

/* An entry on its way into a table. */
typedef struct Row {
    uint64_t va;
    uint32_t order;
    GsOrcRule rule;
} Row;

static uint16_t raw_flags(const GsOrcRaw *raw, size_t i)
{
    return gs_u16_at(raw->orc + i * ENTRY_SIZE + 4);
}

/* ---- layout ----------------------------------------------------------- */

/* Look the layout up by the hash in .orc_header (6.4, commit b9f174c811e3).
 * Return PROBE if there is no header or the hash is unknown. */
static GsOrcLayout layout_by_hash(const GsOrcRaw *raw)
{
    static const uint8_t none[HEADER_SIZE];

    if (!raw->header || raw->header_len != HEADER_SIZE ||
        !memcmp(raw->header, none, HEADER_SIZE)) {
        return GS_ORC_LAYOUT_PROBE;
    }
    for (unsigned i = 1; i < GS_ORC_LAYOUT__COUNT; i++) {
        if (!memcmp(raw->header, layouts[i].hash, HEADER_SIZE)) {
            return i;
        }
    }
    return GS_ORC_LAYOUT_PROBE;
}

/*
 * Nearly every entry of every kernel is a call frame based on sp, so the bits
 * that say this are the most frequent ones by far. In the layouts without
 * types for the end, bit 11 is only ever set since 6.3 (the end), and bit 10
 * is set beside saved registers only since 6.3 (the signal).
 */
GsOrcLayout gs_orc_layout_probe(const GsOrcRaw *raw)
{
    GsOrcLayout known = layout_by_hash(raw);
    size_t n = raw->orc_len / ENTRY_SIZE;
    size_t n_old = 0, n_typed = 0, n_7_1 = 0;
    bool has_6_3 = false, has_end = false;

    if (known != GS_ORC_LAYOUT_PROBE) {
        return known;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t flags = raw_flags(raw, i);

        n_old += (flags & 0x70f) == 0x005;
        n_typed += (flags & 0x70f) == 0x205;
        n_7_1 += (flags & 0x70f) == 0x203;
        has_6_3 |= flags & 0x800;
        has_6_3 |= (flags & 0x400) && (flags & 0x300) && (flags & 0xf);
        has_end |= (flags & 0x40f) == 0x400;
    }
    if (n_7_1 > n_typed && n_7_1 > n_old) {
        return GS_ORC_LAYOUT_7_1;
    }
    if (n_typed >= n_old) {
        return GS_ORC_LAYOUT_6_4;
    }
    if (has_6_3) {
        return GS_ORC_LAYOUT_6_3;
    }
    return has_end ? GS_ORC_LAYOUT_4_18 : GS_ORC_LAYOUT_4_14;
}

/* ---- normalising ------------------------------------------------------ */

static uint8_t type_of(const Layout *l, uint16_t flags)
{
    if (l->types == types_4_14 && !(flags & 0xf)) {
        return l->undefined_is_end || (flags & l->end) ? GS_ORC_END
                                                       : GS_ORC_UNDEFINED;
    }
    return l->types[(flags >> 8) & l->type_mask];
}

static GsOrcRule rule_of(const Layout *l, const uint8_t *entry)
{
    uint16_t flags = gs_u16_at(entry + 4);
    const RegRow *sp = &l->regs[flags & 0xf];
    const RegRow *bp = &l->regs[(flags >> 4) & 0xf];
    uint8_t type = type_of(l, flags);
    GsOrcRule rule = {
        .sp_off = sp->sp == GS_ORC_SP_REG ? sp->pt_off :
                                            (int16_t)gs_u16_at(entry),
        .bp_off = (int16_t)gs_u16_at(entry + 2),
        .sp = sp->sp,
        .bp = bp->bp,
        .type = type,
        .exact = l->signal ? !!(flags & l->signal) : type >= GS_ORC_REGS,
    };

    if (type < GS_ORC_CALL) {
        return (GsOrcRule) { .type = type };
    }
    if (rule.sp == GS_ORC_SP_INVALID || rule.bp == GS_ORC_BP_INVALID) {
        return (GsOrcRule) { .type = GS_ORC_UNDEFINED };
    }
    /*
     * 87ccc826bf1c (5.12) made the offset apply after the load, for call
     * frames; until then only the entry code used this base, for registers.
     */
    if (rule.sp == GS_ORC_SP_AT_SP && type != GS_ORC_CALL) {
        rule.sp = GS_ORC_SP_AT_SP_OFF;
    }
    return rule;
}

static int row_cmp(const void *pa, const void *pb)
{
    const Row *a = pa, *b = pb;
    bool weak_a = a->rule.type == GS_ORC_UNDEFINED;
    bool weak_b = b->rule.type == GS_ORC_UNDEFINED;

    if (a->va != b->va) {
        return a->va < b->va ? -1 : 1;
    }
    if (weak_a != weak_b) {
        return weak_a ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

static uint64_t row_va(const GsOrcRaw *raw, size_t i)
{
    int32_t distance = gs_u32_at(raw->ip + i * 4);

    return raw->ip_va + i * 4 + (uint64_t)(int64_t)distance;
}

static bool is_ascending(const GsOrcRaw *raw, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (row_va(raw, i) < row_va(raw, i - 1)) {
            return false;
        }
    }
    return true;
}

static Row *rows_new(const GsOrcRaw *raw, const Layout *l, size_t n)
{
    Row *rows = g_new(Row, n);

    for (size_t i = 0; i < n; i++) {
        rows[i].va = row_va(raw, i);
        rows[i].order = i;
        rows[i].rule = rule_of(l, raw->orc + i * ENTRY_SIZE);
    }
    qsort(rows, n, sizeof(*rows), row_cmp);
    return rows;
}

/* ---- tables ----------------------------------------------------------- */

static bool is_near(uint64_t first, uint64_t last, GError **errp)
{
    if (last - first > UINT32_MAX) {
        return gs_fail(errp, GS_ERROR_FORMAT, "ORC tables: addresses from 0x%"
                       PRIx64 " to 0x%" PRIx64 " are too far apart", first,
                       last);
    }
    return true;
}

/* Of entries with equal addresses, one that only fills a gap between object
 * files is dropped. */
static bool gives_way(const GsOrcRule *to, const GsOrcRule *rule)
{
    return rule->type == GS_ORC_UNDEFINED && to->type != GS_ORC_UNDEFINED;
}

/* Since Linux 5.6, the kernel's build sorts the table. */
static bool fill_ascending(GsOrcTable *t, const GsOrcRaw *raw,
                           const Layout *l, size_t n, GError **errp)
{
    t->base = row_va(raw, 0);
    if (!is_near(t->base, row_va(raw, n - 1), errp)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        GsOrcRule rule = rule_of(l, raw->orc + i * ENTRY_SIZE);
        uint32_t ip = row_va(raw, i) - t->base;

        if (!t->n || t->ip[t->n - 1] != ip) {
            t->n++;
        } else if (gives_way(&t->rule[t->n - 1], &rule)) {
            continue;
        }
        t->ip[t->n - 1] = ip;
        t->rule[t->n - 1] = rule;
    }
    return true;
}

static bool fill_sorting(GsOrcTable *t, const GsOrcRaw *raw, const Layout *l,
                         size_t n, GError **errp)
{
    g_autofree Row *rows = rows_new(raw, l, n);

    t->base = rows[0].va;
    if (!is_near(t->base, rows[n - 1].va, errp)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && rows[i + 1].va == rows[i].va) {
            continue;
        }
        t->ip[t->n] = rows[i].va - t->base;
        t->rule[t->n++] = rows[i].rule;
    }
    return true;
}

static void table_index(GsOrcTable *t)
{
    size_t n_blocks = (t->ip[t->n - 1] >> BLOCK_SHIFT) + 1;
    size_t at = 0;

    if (n_blocks > 4 * t->n) {
        return;
    }
    t->block = g_new(uint32_t, n_blocks);
    t->n_blocks = n_blocks;
    for (size_t b = 0; b < n_blocks; b++) {
        while (at + 1 < t->n && t->ip[at + 1] <= b << BLOCK_SHIFT) {
            at++;
        }
        t->block[b] = at;
    }
}

static bool raw_check(const GsOrcRaw *raw, GError **errp)
{
    size_t n = raw->ip_len / 4;

    if (!n || raw->ip_len % 4 || raw->orc_len != n * ENTRY_SIZE) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "ORC tables: %zu bytes of addresses do not go with %zu "
                       "bytes of entries", raw->ip_len, raw->orc_len);
    }
    if (n > MAX_ENTRIES) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "ORC tables: %zu entries are more than any kernel has",
                       n);
    }
    return true;
}

GsOrcTable *gs_orc_table_new(const GsOrcRaw *raw, GsOrcLayout layout,
                             GError **errp)
{
    size_t n = raw->ip_len / 4;
    GsOrcTable *t;

    if (!raw_check(raw, errp)) {
        return NULL;
    }
    if (layout == GS_ORC_LAYOUT_PROBE) {
        layout = gs_orc_layout_probe(raw);
    }
    t = g_new0(GsOrcTable, 1);
    atomic_init(&t->refs, 1);
    t->ip = g_new(uint32_t, n);
    t->rule = g_new(GsOrcRule, n);
    if (!(is_ascending(raw, n) ? fill_ascending : fill_sorting)(
            t, raw, &layouts[layout], n, errp)) {
        gs_orc_table_unref(t);
        return NULL;
    }
    table_index(t);
    return t;
}

/* Words of struct pt_regs. */
static bool is_reg(int off)
{
    return off >= 0 && off < 21 * 8 && !(off & 7);
}

static bool is_rule(const GsOrcRule *r)
{
    return r->type > GS_ORC_NONE && r->type <= GS_ORC_REGS_PARTIAL &&
           r->sp <= GS_ORC_SP_REG && r->bp <= GS_ORC_BP_INVALID &&
           r->exact <= 1 && (r->sp != GS_ORC_SP_REG || is_reg(r->sp_off));
}

static bool are_rules(const uint64_t *va, const GsOrcRule *rule, size_t n)
{
    if (!n || n > MAX_ENTRIES || va[n - 1] - va[0] > UINT32_MAX) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if ((i && va[i] <= va[i - 1]) || !is_rule(&rule[i])) {
            return false;
        }
    }
    return true;
}

GsOrcTable *gs_orc_table_new_rules(const uint64_t *va, const GsOrcRule *rule,
                                   size_t n)
{
    GsOrcTable *t;

    if (!are_rules(va, rule, n)) {
        return NULL;
    }
    t = g_new0(GsOrcTable, 1);
    atomic_init(&t->refs, 1);
    t->base = va[0];
    t->n = n;
    t->ip = g_new(uint32_t, n);
    t->rule = g_memdup2(rule, n * sizeof(*rule));
    for (size_t i = 0; i < n; i++) {
        t->ip[i] = va[i] - t->base;
    }
    table_index(t);
    return t;
}

GsOrcTable *gs_orc_table_ref(GsOrcTable *t)
{
    if (t) {
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    }
    return t;
}

void gs_orc_table_unref(GsOrcTable *t)
{
    if (!t || atomic_fetch_sub(&t->refs, 1) > 1) {
        return;
    }
    g_free(t->ip);
    g_free(t->rule);
    g_free(t->block);
    g_free(t);
}

size_t gs_orc_table_n(const GsOrcTable *t)
{
    return t->n;
}

const GsOrcRule *gs_orc_table_nth(const GsOrcTable *t, size_t i, uint64_t *va)
{
    *va = t->base + t->ip[i];
    return &t->rule[i];
}

const GsOrcRule *gs_orc_table_find(const GsOrcTable *t, uint64_t va)
{
    uint64_t off = va - t->base;
    uint64_t b = off >> BLOCK_SHIFT;
    size_t lo = 0, hi = t->n - 1;

    if (va < t->base || off > UINT32_MAX) {
        return NULL;
    }
    if (t->block) {
        lo = t->block[MIN(b, t->n_blocks - 1)];
        hi = b + 1 < t->n_blocks ? t->block[b + 1] : hi;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo + 1) / 2;

        if (t->ip[mid] <= off) {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    return &t->rule[lo];
}
