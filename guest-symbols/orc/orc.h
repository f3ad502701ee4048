/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC: the unwind tables that x86-64 kernels carry for themselves.
 *
 * A GsOrcTable is the table of one image or module in our own form, which is
 * the same for every kernel release. A GsOrcSet is the table of the kernel
 * proper plus those of the loaded modules. A GsOrcReader, one a thread,
 * searches a set by run-time address.
 *
 * The lookup, for address va:
 *
 *     va --> snapshot of the set: which span contains va?
 *        --> its table: i = (va - base) >> shift; block[i] and block[i + 1]
 *            bound the search
 *        --> binary search in ip[] for the last entry at or below va
 *        --> rule: {type, where sp is, where bp is}
 *
 * Example: in "push %rbp; mov %rsp,%rbp; call f" the caller's sp is sp + 8 at
 * the first instruction, sp + 16 behind the push, and bp + 16 behind the mov:
 * three entries, each in force up to the next.
 */
#ifndef GS_ORC_H
#define GS_ORC_H

#include "guest-symbols/base/range.h"
#include "guest-symbols/gs.h"
#include "guest-symbols/image/image.h"
#include <stdatomic.h>

/**
 * enum GsOrcLayout - what the 16 flag bits of an entry mean
 * @GS_ORC_LAYOUT_PROBE: unknown; find out from the entries
 *
 * The others are named after the release that introduced them; the kernel
 * commits are cited beside the table in orc.c.
 */
typedef enum GsOrcLayout {
    GS_ORC_LAYOUT_PROBE,
    GS_ORC_LAYOUT_4_14,
    GS_ORC_LAYOUT_4_18,
    GS_ORC_LAYOUT_6_3,
    GS_ORC_LAYOUT_6_4,
    GS_ORC_LAYOUT_7_1,
    GS_ORC_LAYOUT__COUNT
} GsOrcLayout;

/** What a rule describes. NONE is never stored in a table. */
typedef enum GsOrcType {
    GS_ORC_NONE,
    GS_ORC_UNDEFINED,       /* code that must not be unwound through */
    GS_ORC_END,             /* outermost frame of a stack */
    GS_ORC_CALL,            /* return address just below the caller's sp */
    GS_ORC_REGS,            /* a whole struct pt_regs */
    GS_ORC_REGS_PARTIAL,    /* only its last five words, the iret frame */
} GsOrcType;

/** Where the caller's stack pointer (or the saved registers) is found. */
typedef enum GsOrcSp {
    GS_ORC_SP_INVALID,
    GS_ORC_SP,              /* sp + off */
    GS_ORC_SP_BP,           /* bp + off */
    GS_ORC_SP_AT_SP,        /* *sp + off, since 5.12 */
    GS_ORC_SP_AT_SP_OFF,    /* *(sp + off), before that */
    GS_ORC_SP_AT_BP_OFF,    /* *(bp + off) */
    GS_ORC_SP_REG,          /* word at off in the latest struct pt_regs */
} GsOrcSp;

/** Where the caller's frame pointer is found. */
typedef enum GsOrcBp {
    GS_ORC_BP_KEEP,         /* unchanged, or from the saved registers */
    GS_ORC_BP_AT_CFA,       /* *(caller's sp + off) */
    GS_ORC_BP_AT_BP,        /* *(bp + off) */
    GS_ORC_BP_INVALID,
} GsOrcBp;

/**
 * struct GsOrcRule - one normalised entry
 * @sp_off: bytes; for GS_ORC_SP_REG the offset in struct pt_regs
 * @bp_off: bytes
 * @sp: a GsOrcSp
 * @bp: a GsOrcBp
 * @type: a GsOrcType
 * @exact: the next frame's ip is an interrupted instruction (1) or a return
 *         address (0)
 */
typedef struct GsOrcRule {
    int16_t sp_off;
    int16_t bp_off;
    uint8_t sp;
    uint8_t bp;
    uint8_t type;
    uint8_t exact;
} GsOrcRule;
G_STATIC_ASSERT(sizeof(GsOrcRule) == 8);

/**
 * struct GsOrcRaw - a table as the kernel has it
 * @ip_va: address of the first element of @ip
 * @ip: (borrowed) .orc_unwind_ip, little-endian int32 distances from the
 *      element's own address to the code it stands for
 * @ip_len: bytes
 * @orc: (borrowed) .orc_unwind, six bytes an entry
 * @orc_len: bytes
 * @header: (borrowed, nullable) .orc_header, present since 6.4
 * @header_len: bytes
 */
typedef struct GsOrcRaw {
    uint64_t ip_va;
    const uint8_t *ip;
    size_t ip_len;
    const uint8_t *orc;
    size_t orc_len;
    const uint8_t *header;
    size_t header_len;
} GsOrcRaw;

/**
 * gs_orc_find() - find the tables in an image that has no labels
 * @s: the image; all of its bytes are readable
 * @out: (out) parts of @s; the header may be other bytes, which
 *       gs_orc_layout_probe() does not know
 * Returns: false if there are none, or they are not sorted.
 */
bool gs_orc_find(const GsSection *s, GsOrcRaw *out);

typedef struct GsOrcTable GsOrcTable;

/**
 * gs_orc_layout_probe() - find the layout of a table's entries
 *
 * A known hash in the header decides, else the shape of the entries. Never
 * returns GS_ORC_LAYOUT_PROBE.
 */
GsOrcLayout gs_orc_layout_probe(const GsOrcRaw *raw);

/**
 * gs_orc_table_new() - sort and normalise a table
 * @layout: GS_ORC_LAYOUT_PROBE unless it is known
 * @errp: GS_ERROR_FORMAT
 *
 * Immutable once made. Returns: (owned) with one reference, or NULL.
 */
GsOrcTable *gs_orc_table_new(const GsOrcRaw *raw, GsOrcLayout layout,
                             GError **errp);
/**
 * gs_orc_table_new_rules() - make a table from normalised entries
 * @va: (borrowed) ascending, less than 4 GiB in all
 * @rule: (borrowed) as many
 *
 * Returns: (owned) NULL if @va is not ascending, or a rule is not valid.
 */
GsOrcTable *gs_orc_table_new_rules(const uint64_t *va, const GsOrcRule *rule,
                                   size_t n);
GsOrcTable *gs_orc_table_ref(GsOrcTable *t);
void gs_orc_table_unref(GsOrcTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsOrcTable, gs_orc_table_unref)

/** gs_orc_table_n() - count the entries; equal addresses are merged. */
size_t gs_orc_table_n(const GsOrcTable *t);

/** gs_orc_table_nth() - return the address of entry @i and (borrowed) its
 *  rule. */
const GsOrcRule *gs_orc_table_nth(const GsOrcTable *t, size_t i,
                                  uint64_t *va);

/**
 * gs_orc_table_find() - find the rule of the instruction at @va
 * Returns: (borrowed) NULL below the table's first address.
 */
const GsOrcRule *gs_orc_table_find(const GsOrcTable *t, uint64_t va);

/* ---- the set ---------------------------------------------------------- */

typedef struct GsOrcSet GsOrcSet;

GsOrcSet *gs_orc_set_new(void);

/** gs_orc_set_free() - free a set; its readers must be freed before. */
void gs_orc_set_free(GsOrcSet *set);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsOrcSet, gs_orc_set_free)

/**
 * gs_orc_set_load_image() - add code ranges and tables of a kernel image
 * @errp: GS_ERROR_FORMAT if the tables are damaged
 *
 * A kernel without tables is no error: its code is unwound by frame pointers.
 * Call this before the set is shared.
 */
bool gs_orc_set_load_image(GsOrcSet *set, const GsImage *img, GError **errp);

/**
 * gs_orc_set_load() - the same from parts
 * @image: link-time extent of everything loaded
 * @text: link-time ranges of code, the first 16 count
 * @raw: (nullable) the tables, @raw->ip_va link-time
 */
bool gs_orc_set_load(GsOrcSet *set, GsRange image, const GsRange *text,
                     size_t n_text, const GsOrcRaw *raw, GError **errp);

/** gs_orc_set_drop_table() - drop the tables of the kernel proper, so that it
 *  is like one without ORC. Call this before the set is shared. */
void gs_orc_set_drop_table(GsOrcSet *set);

/** gs_orc_set_in_image() - is @va (run time) in the kernel's image? */
bool gs_orc_set_in_image(const GsOrcSet *set, uint64_t va);

/** gs_orc_set_layout() - return the kernel's layout; PROBE if it has no
 *  table. */
GsOrcLayout gs_orc_set_layout(const GsOrcSet *set);

/** gs_orc_set_table() - (borrowed, nullable) return the table of the kernel
 *  proper, in link-time addresses. */
const GsOrcTable *gs_orc_set_table(const GsOrcSet *set);

/** gs_orc_set_set_slide() - set the slide of a new boot; all modules are
 *  removed. */
void gs_orc_set_set_slide(GsOrcSet *set, uint64_t slide);

/**
 * gs_orc_set_add_module() - add a module's code; any thread
 * @key: identifies it in gs_orc_set_drop_module()
 * @text: run-time ranges of its code; other modules lose these ranges
 * @table: (nullable, referenced) NULL if it has no ORC
 */
void gs_orc_set_add_module(GsOrcSet *set, uint64_t key, const GsRange *text,
                           size_t n_text, GsOrcTable *table);
/** gs_orc_set_append_module() - add one of many modules that overlap with no
 *  other; readers find them after gs_orc_set_publish(). */
void gs_orc_set_append_module(GsOrcSet *set, uint64_t key,
                              const GsRange *text, size_t n_text,
                              GsOrcTable *table);
void gs_orc_set_publish(GsOrcSet *set);
void gs_orc_set_drop_module(GsOrcSet *set, uint64_t key);

/** gs_orc_set_module_table() - (referenced, nullable) return the table of a
 *  module. */
GsOrcTable *gs_orc_set_module_table(GsOrcSet *set, uint64_t key);

/**
 * gs_orc_set_generation() - return the counter of the set's changes
 * Returns: (borrowed, as long as the set lives). A rule that a reader found is
 * valid while the counter has the value that was loaded (acquire) before.
 */
const atomic_uint_fast64_t *gs_orc_set_generation(const GsOrcSet *set);

/** gs_orc_set_n_retired() - count the snapshots that are kept for readers only
 *  (tests). */
size_t gs_orc_set_n_retired(GsOrcSet *set);

/* ---- readers ---------------------------------------------------------- */

/** What gs_orc_reader_find() says about an address. */
typedef enum GsOrcPlace {
    GS_ORC_NOT_TEXT,
    GS_ORC_NO_TABLE,        /* code, or room for generated code, sans ORC */
    GS_ORC_FOUND,
} GsOrcPlace;

typedef struct GsOrcReader GsOrcReader;

GsOrcReader *gs_orc_reader_new(GsOrcSet *set);
void gs_orc_reader_free(GsOrcReader *r);

/**
 * gs_orc_reader_find() - find the rule for a run-time address
 * @out: (out) set when GS_ORC_FOUND is returned
 *
 * A reader belongs to one thread. No lock, no waiting.
 */
GsOrcPlace gs_orc_reader_find(GsOrcReader *r, uint64_t pc, GsOrcRule *out);

#endif /* GS_ORC_H */
