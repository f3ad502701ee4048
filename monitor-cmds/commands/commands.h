/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command functions of commands.def, and functions that several commands
 * share. Each command runs on the thread that called mc_run(). On entry it
 * holds no lock.
 */
#ifndef MC_COMMANDS_H
#define MC_COMMANDS_H

#include "monitor-cmds/output/block-row.h"
#include "monitor-cmds/parse/parse.h"
#include "monitor-cmds/table/top-table.h"

/**
 * McRunFn - run a command
 *
 * Errors in the input set @errp before any output. A closed sink is no error;
 * @out->closed is set.
 */
typedef bool McRunFn(McOut *out, const McArgs *args, GError **errp);

/* The functions of the rows, mc_cmd_show() and so on, and the kinds of rows
 * that they print, ended by NULL. */
#define MC_COMMAND(id, word, topic, args, params, options, run, objects, ...) \
    McRunFn run; \
    extern const McObject *const objects[];
#include "monitor-cmds/table/commands.def"
extern McRunFn *const mc_command_functions[MC_CMD__COUNT];
extern const McObject *const *const mc_command_objects[MC_CMD__COUNT];

/** mc_help_command() - print the help page of one command (help.c) */
void mc_help_command(McOut *out, const McCommand *c);

/* Limits of a batch: rows that are copied, and rows that are visited, under one
 * hold of the tracer's lock. */
#define MC_BATCH_ROWS 4096
#define MC_BATCH_VISITS 65536

/** mc_print_history() - print all lives of @va but @shown (nullable), newest
 *  first, in batches */
void mc_print_history(McOut *out, uint64_t va, const KtBlock *shown);

extern const McObject mc_mapping_object;
/** mc_print_mapping() - if no live block contains @va, but a page of one is
 *  mapped there, print that block, and its past lives if @history */
void mc_print_mapping(McOut *out, uint64_t va, bool history);

/** mc_has_only() - return true if only options of the set @options were given
 *  (1 << MC_OPT_*). Else set an error: @why, and the option to omit. */
bool mc_has_only(const McArgs *args, uint64_t options, const char *why,
                 GError **errp);

/** mc_why_nothing() - return (owned) the reason why no event was recorded, as
 *  the end of a "no blocks" line; empty if events were recorded */
char *mc_why_nothing(McOut *out);

/** mc_why_missing() - return (owned) why blocks may exist that ka does not
 *  know, NULL if none can. mc_remark_missing() remarks it, where a list of
 *  blocks or a sum would be read as that of all. */
char *mc_why_missing(McOut *out);
void mc_remark_missing(McOut *out);

/** mc_why_unchecked() - return why accesses are wanted and not checked
 *  (access.c) */
const char *mc_why_unchecked(const McOut *out, const KtAccessInfo *info);

/** mc_whatis_pointer() - append the first fact of ka whatis about where a
 *  pointer outside of all blocks leads: a symbol, per-CPU memory, a struct page
 *  (whatis.c). Return false if there is none. */
bool mc_whatis_pointer(const KtAddress *w, GString *to);

/** mc_range_text() - return (owned) " at <va>" or " in <va>-<va>" */
char *mc_range_text(const McRange *r);

/** mc_remark_waits() - remark that a condition (nullable) names modules that
 *  are not loaded (calls.c) */
void mc_remark_waits(McOut *out, const char *condition);

/** mc_remark_module() - remark that no loaded module has the name of --module,
 *  @module (nullable), and which modules are loaded (calls.c) */
void mc_remark_module(McOut *out, const char *module);

/* ---- registers at a panic (bt.c) ----------------------------------------- */

/** enum McPanic - is a vCPU in the kernel's panic()? */
typedef enum McPanic {
    MC_PANIC_NONE,
    MC_PANIC_EXCEPTION,         /* an exception led to it */
    MC_PANIC_CALL,              /* it was called by other code */
} McPanic;

/** struct McException - an exception. @regs: address of the struct pt_regs of
 *  the interrupted code; @pc: where that code is */
typedef struct McException {
    uint64_t regs, pc;
} McException;

/** mc_panic_exception() - find the exception that led to the panic of a vCPU of
 *  a stopped VM. @e: (out) set for MC_PANIC_EXCEPTION */
McPanic mc_panic_exception(const McContext *ctx, unsigned vcpu, McException *e);

/* ---- guest access -------------------------------------------------------- */

/** mc_vm() - return (borrowed) the VM for the command @word, or NULL and an
 *  error */
const KtVm *mc_vm(const McOut *out, const char *word, GError **errp);

/** mc_objects() - return what finds objects of the kernel */
KtObjects mc_objects(const McOut *out);
/** mc_find_block() - find the block at @va. mc_stats() - copy the tracer's
 *  figures. Both take the tracer's lock. */
bool mc_find_block(const McOut *out, uint64_t va, KtBlock *b);
KtStats mc_stats(const McOut *out);

/** mc_read_guest() - read the guest's memory at @va, as some vCPU maps it.
 *  Return false if no vCPU maps it. */
bool mc_read_guest(const McOut *out, uint64_t va, void *buf, size_t len);

/** struct McProgress - state of the progress lines of a long search; @quiet:
 *  print none; @printed_at: time of the last line, or of the start */
typedef struct McProgress {
    McOut *out;
    bool quiet;
    gint64 printed_at;
} McProgress;
#define MC_PROGRESS_US (2 * G_USEC_PER_SEC)
/** mc_on_progress() - callback for KtLeakPlan.progress; @opaque is an
 *  McProgress. Return false if nobody reads the output any more. */
bool mc_on_progress(void *opaque, uint64_t bytes);
/** mc_leak_plan() - return the plan of a search of @vm, and begin @p */
KtLeakPlan mc_leak_plan(McOut *out, const KtVm *vm, bool quiet, McProgress *p);

/* ---- block walk ---------------------------------------------------------- */

/*
 * A walk over all live blocks in batches: the tracer's lock is held for one
 * batch.
 */
/**
 * struct McBlockWalk - @visit, @opaque: called for each block, by address
 * @behind: the last address that is done, if @resumed
 * @resumed: a batch is done
 * @stopped: there are more blocks
 * @last, @visits: of the batch that is walked
 */
typedef struct McBlockWalk {
    void (*visit)(void *opaque, const KtBlock *b);
    void *opaque;
    uint64_t behind, last;
    unsigned visits;
    bool resumed, stopped;
} McBlockWalk;

/** mc_block_walk_batch() - visit the next blocks; between kt_query_begin() and
 *  kt_query_end() */
void mc_block_walk_batch(McBlockWalk *w, KtTracer *t);

/* ---- callers ------------------------------------------------------------- */

/*
 * Callers of many blocks, counted: what a listing prints instead of thousands
 * of lines. For the listings.
 */
typedef struct McCallers McCallers;

McCallers *mc_callers_new(void);
void mc_callers_free(McCallers *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McCallers, mc_callers_free)

/** mc_callers_add() - count @b for the caller of @stack, its leaf frame */
void mc_callers_add(McCallers *c, KtTracer *t, KtStackId stack,
                    const KtBlock *b);
/** mc_callers_blocks() - return how many blocks were counted */
uint64_t mc_callers_blocks(const McCallers *c);
/** mc_callers_print() - print, as text, the few callers of most of the blocks,
 *  and how many blocks others have */
void mc_callers_print(McOut *out, const McCallers *c);

/* ---- cache parts --------------------------------------------------------- */

/*
 * Blocks that belong to a kmem_cache: the kernel allocated them in the same
 * call that made the cache. Examples: its name, its entries in sysfs, its part
 * for each CPU. A listing counts them at the line of the cache. For the
 * listings, without the tracer's lock.
 */
typedef struct McCacheParts McCacheParts;

/** mc_cache_parts_new() - (owned) an empty set of caches. @k names the frames
 *  of stacks; both are borrowed. */
McCacheParts *mc_cache_parts_new(KtTracer *t, const GsKernel *k);
void mc_cache_parts_free(McCacheParts *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McCacheParts, mc_cache_parts_free)

/** mc_cache_parts_add() - add @b if it is a kmem_cache; do nothing else. */
void mc_cache_parts_add(McCacheParts *p, const KtBlock *b);
/** mc_cache_parts_find() - return the address of the kmem_cache that @b belongs
 *  to, its own if it is one; 0 if there is none. */
uint64_t mc_cache_parts_find(McCacheParts *p, const KtBlock *b);

/* ---- pointer note -------------------------------------------------------- */

/*
 * What a pointer leads to, as the end of a line:
 *
 *     > +0 A ffff8beb81818300-ffff8beb818183b7 (b8/c0) filp
 *     ! +20 F ffff8beb81b72d80-ffff8beb81b72f7f (200/240) kmalloc-576
 *     > kernel data ka_fops+0x0
 *
 * The mark is ! if that is a freed block. The tracer's lock is taken
 * for each query.
 */
/**
 * mc_pointer_note() - say what a pointer leads to
 * @word: a word of the guest; the tag and the low 3 bits, in which the kernel
 *        keeps flags, do not count
 * @freed: (out) it leads to a freed block
 *
 * Blocks have their stacks if @out prints symbols (-s). Returns: (owned,
 * nullable) the text without the mark; NULL if the word is no address of the
 * kernel, or if nothing certain is known of it.
 */
char *mc_pointer_note(McOut *out, uint64_t word, bool *freed);
/** mc_put_pointer_note() - append " > " or " ! " and the text; nothing if there
 *  is none. */
void mc_put_pointer_note(McOut *out, GString *to, uint64_t word);
/** mc_block_note() - (owned) return the same text for an address in a block. */
char *mc_block_note(McOut *out, const KtBlock *b, uint64_t va);

/* ---- ref names ----------------------------------------------------------- */

/* Names of what refers to a block: for ka refs and ka leak module. */
/** mc_ref_member() - return (owned, nullable) the name of the member at @off in
 *  the block's type. The type is known only if the cache has the name of a type
 *  and is not merged. */
char *mc_ref_member(const McOut *out, const KtBlock *b, uint64_t off);
/** mc_ref_symbol() - return (owned, nullable) the variable that has the word,
 *  as symbol+0xoff. */
char *mc_ref_symbol(const McOut *out, const KtRef *r);
/** mc_ref_place() - return (owned) where the word is, in one word: symbol, or
 *  address. */
char *mc_ref_place(const McOut *out, const KtRef *r);
/** mc_ref_owner() - return (owned, nullable) what has the word, in one word:
 *  type and member, cache, the function that allocated, or CPU or pid. */
char *mc_ref_owner(McOut *out, const KtRef *r);

/* ---- task choice --------------------------------------------------------- */

/* Which tasks the word of ka task and ka files means. */
/** mc_task_is_thread() - is it a thread that is not the first one of its
 *  process? */
bool mc_task_is_thread(const KtTask *t);
/** mc_task_has_pid() - return false also if its pid is not known. */
bool mc_task_has_pid(const KtTask *t, uint64_t pid);

/**
 * mc_tasks_choose() - append (borrowed) tasks to @chosen
 * @word: a decimal pid; a name, a pattern; or an address in a task_struct.
 *        NULL: all
 * @threads: threads, too, not only the first task of each process
 * @one: (out) the word means one task
 *
 * Returns: false if there is none.
 */
bool mc_tasks_choose(const McContext *ctx, const KtTasks *tasks,
                     const char *word, bool threads, GPtrArray *chosen,
                     bool *one);
/** mc_tasks_none() - set the error that no task is meant by @word; return
 *  false. */
bool mc_tasks_none(const McContext *ctx, const KtTasks *tasks,
                   const char *word, GError **errp);

/* ---- object row ---------------------------------------------------------- */

/* Objects of the kernel that belong to a row: of ka task, ka files, ka mod. */
/** mc_object_print_block() - print an object that belongs to what was printed
 *  before: its name, and the line of the block at @va. If there is no block,
 *  print what else is known of @va. */
void mc_object_print_block(McOut *out, const char *name, uint64_t va);
extern const McObject mc_part_object, mc_no_block_object;

/* ---- leak row ------------------------------------------------------------ */

/* Rows of leaked blocks, and of blocks that a module left behind. */
/**
 * struct McLeakRow - a block that stands for all of its allocation stack
 * @leak: (static, nullable) it is leaked: who refers to it
 * @kept: (static, nullable) it is in use: the kind of memory with a word that
 *        refers to it. @kept_by: this word; @kept_in: what has it
 * @same_stack: other blocks for which the row stands, too; @same_bytes: of all
 * @held: blocks that only those of the row hold
 */
typedef struct McLeakRow {
    McBlockRow b;
    const char *leak;
    const char *kept, *kept_by, *kept_in;
    uint64_t same_stack, same_bytes;
    uint64_t held;
} McLeakRow;

extern const McObject mc_leak_object;
/** mc_print_leak() - print a row; of a leak with its identity */
void mc_print_leak(McOut *out, McLeakRow *row);

/* ---- module row ---------------------------------------------------------- */

/* The row of a module that was unloaded, of ka leak module. */
/**
 * struct McModuleRow - sums of the blocks that a module had not freed
 * @report: (borrowed)
 * @blocks, @bytes: not freed until now
 * @classified: it is known which of them are in use
 * @leaked, @leaked_bytes: of @blocks, those to which nothing in use refers
 * @kept, @kept_bytes: of @blocks, those in use
 * @no_pages: pages of the page allocator were not looked at
 * @withdrawn: freed since
 * @filtered: options exclude some; @matching: number of @blocks that match
 */
typedef struct McModuleRow {
    const KtModuleReport *report;
    uint64_t blocks;
    uint64_t bytes;
    bool classified;
    uint64_t leaked, leaked_bytes;
    uint64_t kept, kept_bytes;
    bool no_pages;
    uint64_t withdrawn;
    uint64_t matching;
    bool filtered;
} McModuleRow;

/** mc_print_module() - print the row */
void mc_print_module(McOut *out, const McModuleRow *m);


/* ---- cache row ----------------------------------------------------------- */

/* Rows of ka cache: caches, and lists of free objects. */
/**
 * struct McCacheRow - a cache
 * @transit: objects that are neither live nor on a list: calls under way,
 *           objects that wait for RCU, or that were handed out before ka
 *           recorded events
 * @c: what is known of it, NULL for a kernel without types
 * @merged: (or 0) number of caches that share this one
 * @aliases, @names: (nullable) its other names, as a list and joined
 */
typedef struct McCacheRow {
    uint64_t va;
    const char *name;
    uint32_t object_size, size;
    uint64_t slabs, live, free, rcu;
    int64_t transit;
    bool transit_known;
    uint64_t active_objs, num_objs;
    const KtSlabCache *c;
    uint32_t merged;
    const char *const *aliases;
    const char *names;
} McCacheRow;
/* The second one is for a kernel without types. */
extern const McObject mc_cache_object, mc_named_cache_object;

/** struct McFreeListRow - a list of free objects. @l: (nullable) NULL: the
 *  slabs on no list; @capacity: (or 0) of a sheaf; @units: of @parts */
typedef struct McFreeListRow {
    const char *owner, *name;
    unsigned number;
    const char *list;
    const KtSlabList *l;
    uint32_t capacity;
    uint64_t parts, free, next;
    const char *units;
} McFreeListRow;
extern const McObject mc_free_list_object;

/* ---- slab view ----------------------------------------------------------- */

/*
 * What the commands about slabs share: how they begin, and how they print lists
 * and slots.
 */
/** mc_slabs_open() - (owned) find out how the running kernel keeps its slabs.
 *  NULL and an error if that is not known. */
KtSlabs *mc_slabs_open(McOut *out, GError **errp);
/** mc_slab_note_running() - print a line if the VM runs. */
void mc_slab_note_running(McOut *out);
/** mc_slab_list_text() - (owned) return "cpu0-freelist" or "node0-partial". */
char *mc_slab_list_text(KtSlabListKind kind, unsigned number);
/** mc_slab_print_problem() - print what is wrong with a list. */
void mc_slab_print_problem(McOut *out, const KtSlabProblem *p);

/**
 * struct McSlotAt - a slot to print
 * @va: address of its object
 * @list: (owned, nullable) the list that it is on, with its position
 * @block: the block that is in it; valid if @has_block
 */
typedef struct McSlotAt {
    uint64_t va;
    uint32_t number;
    char *list;
    bool has_block;
    KtBlock block;
} McSlotAt;

/** mc_slots_new() - (owned) an empty array of McSlotAt, which frees the
 *  texts. */
GArray *mc_slots_new(void);
/** mc_slots_find_blocks() - find the blocks of [@first, @end) of @slots, under
 *  one hold of the tracer's lock. */
void mc_slots_find_blocks(KtTracer *t, GArray *slots, unsigned first,
                          unsigned end);
/** mc_slot_print() - print a slot, or an object on a list. @va: the address in
 *  question, if it is in the slot, else 0; @numbered: print its number */
void mc_slot_print(McOut *out, const McSlotAt *slot, uint64_t va,
                   bool numbered);

/* ---- a slab -------------------------------------------------------------- */

/** mc_slab_place() - (owned) return "node0-partial", "full" and so on. */
char *mc_slab_place(const KtSlabs *s, const KtListedSlab *slab);
/** mc_slab_slots() - (owned) return its slots: McSlotAt without blocks. */
GArray *mc_slab_slots(const KtSlabCache *c, const KtListedSlab *slab);
/** mc_slab_print_letters() - print a slab as one line with a letter for each
 *  slot: A, F, R if kfree_rcu() queued the block, "." if none is known. @hit:
 *  (or KT_NO_SLOT) a ">" comes before its letter */
void mc_slab_print_letters(McOut *out, const KtSlabs *s, const KtSlabCache *c,
                           const KtListedSlab *slab, uint32_t hit);

extern const McObject mc_list_problem_object, mc_slab_letters_object;
extern const McObject mc_slot_object, mc_unseen_object;

/* ---- struct rows --------------------------------------------------------- */

/*
 * Rows of ka struct: members of a definition or of an object, as text with
 * aligned columns, and as JSON.
 */
/** struct McStructRows - rows that are collected before they are printed.
 *  @values: they are of an object, not of a definition */
typedef struct McStructRows {
    McOut *out;
    bool values;
    GPtrArray *row;
} McStructRows;

void mc_struct_rows_init(McStructRows *r, McOut *out, bool values);
void mc_struct_rows_deinit(McStructRows *r);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(McStructRows, mc_struct_rows_deinit)
/** mc_struct_rows_add() - a GsMemberFn; @opaque is an McStructRows */
void mc_struct_rows_add(const GsMember *m, void *opaque);
/** mc_struct_rows_print() - print all rows, and forget them */
void mc_struct_rows_print(McStructRows *r);

extern const McObject mc_member_object;

/** mc_struct_pahole() - print the definition of a struct as pahole does.
 *  @name: as typed; @depth: of the members that are opened */
void mc_struct_pahole(McOut *out, const GsStruct *s, unsigned depth);

/* ---- top row ------------------------------------------------------------- */

/* Rows of ka top, ka diff and ka mark. */
/** mc_print_top_head() - print the sum of all rows */
void mc_print_top_head(McOut *out, const McTopTable *table);
void mc_print_top_row(McOut *out, const McTopTable *table,
                      const McTopRow *row);
/** mc_print_top_stray() - print frees without an allocation */
void mc_print_top_stray(McOut *out, const KtStray *s, bool by_stack);
void mc_print_top_mark(McOut *out, const KtMarkInfo *p);

extern const McObject mc_top_all_object, mc_top_object;
extern const McObject mc_diff_all_object, mc_diff_object;
extern const McObject mc_stray_object, mc_stray_stack_object, mc_mark_object;

/* ---- heap map ------------------------------------------------------------ */

/*
 * Heap map: how full each piece of the address space is. Owned by ka map.
 *
 * The addresses that have blocks are cut into cells of one size, a power of two
 * and at least a page. If there would be too many cells, their size is doubled:
 *
 *     cells of 4 KiB   | 1000 | 2000 |      | 4000 |
 *     cells of 8 KiB   | 0000        |  2000       | 4000 ...
 *
 * Objects lie in slabs, whose pages may be blocks of the page allocator, too
 * (pages=on). Bytes of these are counted apart.
 */
/* Most cells of a map, and most blocks that are listed one by one. */
#define MC_MAP_CELLS    32768u
#define MC_MAP_BLOCKS   20000u
/* log2 of the least size of a cell. */
#define MC_MAP_SHIFT    12u

/** The parts of the address space; cells are ordered by these. */
typedef enum McSpace {
    MC_SPACE_DIRECT,    /* the direct map: slabs and pages */
    MC_SPACE_VMALLOC,
    MC_SPACE_PERCPU,
    MC_SPACE__COUNT
} McSpace;
/** mc_space_name() - return (static) "direct" and so on. */
const char *mc_space_name(McSpace space);

/** struct McMost - what most bytes of a cell are of, if more than half of them
 *  are; else one of many. @key: compared; @id: of the cache, 0: the key is a
 *  layer; or of a stack; @weight: bytes of it less bytes of others */
typedef struct McMost {
    uint64_t key, weight;
    uint32_t id;
} McMost;

/**
 * struct McMapCell - a cell
 * @va: its first address
 * @live, @pages, @freed: bytes of live objects, of live blocks of pages, of
 *                        freed blocks
 * @blocks: live blocks that begin here; @begin: all that do
 * @oldest_us: the oldest of the live ones that lie here, UINT64_MAX: none
 * @cache, @caller: of live objects; of pages, or of freed blocks, if there are
 *                  none
 * @listed: its blocks are listed one by one
 */
typedef struct McMapCell {
    uint64_t va;
    uint64_t live, pages, freed;
    uint64_t blocks, begin;
    uint64_t oldest_us;
    unsigned rank;      /* of what @cache and @caller are */
    McMost cache, caller;
    bool listed;
} McMapCell;

/**
 * struct McHeapMap - all cells
 * @cell: McMapCell, by address, for each part of the address space
 * @shift: log2 of the size of a cell
 * @live, @blocks: sums of all live blocks, pages included
 */
typedef struct McHeapMap {
    GArray *cell[MC_SPACE__COUNT];
    unsigned shift;
    unsigned max;
    uint64_t live, blocks;
} McHeapMap;

/** mc_heap_map_new() - (owned) begin a map. @max: most cells */
McHeapMap *mc_heap_map_new(unsigned max);
void mc_heap_map_free(McHeapMap *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McHeapMap, mc_heap_map_free)

/** mc_heap_map_add() - add a block. Add blocks by address. @caller: a number
 *  that identifies its caller */
void mc_heap_map_add(McHeapMap *m, const KtBlock *b, uint64_t caller);
/** mc_heap_map_at() - return (borrowed) the cell in which a block begins, NULL
 *  if there is none. */
McMapCell *mc_heap_map_at(const McHeapMap *m, McSpace space, uint64_t va);
/** mc_heap_map_choose() - choose the cells whose blocks are listed: those that
 *  were chosen before, then those with most unused bytes, until there are @max
 *  blocks. */
void mc_heap_map_choose(McHeapMap *m, uint64_t max);
/** mc_heap_map_cells() - return the number of cells. */
unsigned mc_heap_map_cells(const McHeapMap *m);
/** mc_space_of() - return where blocks of a layer lie. */
McSpace mc_space_of(KtLayer layer);

/* ---- help ---------------------------------------------------------------- */

/* What the screen of ka help, man page and markdown share; any thread. */
/** struct McSection - a section of the manual; a NULL ends its paragraphs */
typedef struct McSection {
    const char *title;
    const char *paragraphs[8];
} McSection;
extern const McSection mc_sections[];
extern const unsigned mc_n_sections;

/** mc_option_help() - return (owned) the option's help, with the possible
 *  values */
char *mc_option_help(McOptionId id);
/** mc_option_usage() - return (owned) "-h, --help" or "-n N" */
char *mc_option_usage(McOptionId id);

#endif /* MC_COMMANDS_H */
