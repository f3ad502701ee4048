/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access checks (`ka access`): which accesses of the guest's kernel are
 * checked, and what was found to be no error.
 *
 *     ka access on --cache dentry --writes
 *       spec --> capture/ --> callbacks on chosen instructions
 *                               |  an access to freed memory, or to slack
 *                               v
 *                             explained (counted)  or  an event --> error
 *
 * Arming is a wish: it lasts across resets of the VM and loaded snapshots, and
 * takes effect when the kernel is known.
 *
 * Threads: any; a lock inside.
 */
#ifndef KT_API_ACCESS_H
#define KT_API_ACCESS_H

#include "kalloc-tracer/api/kt-block-filter.h"
#include "kalloc-tracer/api/kt-tracer.h"

/**
 * struct KtAccessSpec - which accesses are checked
 * @block: (borrowed) its cache, its layer and the code of its allocation are
 *         conditions on the block, its task is the one that accesses
 * @module: (borrowed, nullable) a pattern: only the code of these modules
 *          accesses; BPF programs are the module "bpf"
 * @writes: only stores
 * @kinds: bits by KtErrorKind: only these errors; 0: any
 * @verify: before the first error of an instruction and a cache, ask the
 *          allocator whether the object is free
 *
 * What is about the block is decided when it is allocated. Blocks that are
 * allocated already when checks begin are decided then. @module is decided when
 * code is translated: other code has no callbacks. A module can be loaded
 * later.
 */
typedef struct KtAccessSpec {
    KtBlockSpec block;
    const char *module;
    bool writes;
    unsigned kinds;
    bool verify;
} KtAccessSpec;

/** kt_access_arm() - Check accesses from now on. @spec: (copied) replaces the
 *  one before. The VM drops all translated code. */
void kt_access_arm(KtTracer *t, const KtAccessSpec *spec);
/** kt_access_disarm() - End the checks. Returns: false if there were none. */
bool kt_access_disarm(KtTracer *t);

/** What explains an access to bad bytes that is no error. */
typedef enum KtAccessReason {
    KT_ACCESS_OVERREAD,     /* a whole word was loaded for its good bytes */
    KT_ACCESS_LOADS_OK,     /* this code may load from anywhere */
    KT_ACCESS_BY_ALLOCATOR, /* the allocator, or what it had called */
    KT_ACCESS_PAGE_GONE,    /* the page has another owner */
    KT_ACCESS_UNSEEN_ALLOC, /* the block was handed out by an unseen call */
    KT_ACCESS__COUNT
} KtAccessReason;
const char *kt_access_reason_name(KtAccessReason why);

/**
 * struct KtAccessInfo - the state of the checks
 * @wanted: they were asked for
 * @armed: accesses are checked now
 * @why_not: (static, nullable) why they are wanted and not armed
 * @since_us: guest time at which they were armed
 * @text: (owned by the caller, nullable) the filters in words, NULL: none
 * @disarmed: (owned by the caller, nullable) names of the caches that are not
 *            checked any more, because blocks of them were handed out unseen
 * @bytes: host memory of the shadow
 */
typedef struct KtAccessInfo {
    bool wanted, armed;
    const char *why_not;
    uint64_t since_us;
    char *text;
    char *disarmed;
    uint64_t bytes;
} KtAccessInfo;
/** kt_access_info() - Read the state. @out: (out) zeroed by the caller */
void kt_access_info(KtTracer *t, KtAccessInfo *out);

/**
 * struct KtAccessPlace - an instruction that explains accesses
 * @pc: the instruction
 * @era: when it was executed, see gs_kernel_era()
 * @n: accesses that it made
 */
typedef struct KtAccessPlace {
    KtAccessReason why;
    uint64_t pc;
    uint32_t era;
    uint64_t n;
} KtAccessPlace;
/** Called for each place; false ends it. */
typedef bool (*KtAccessPlaceFn)(const KtAccessPlace *place, void *opaque);
/** kt_access_places() - Call @fn for the places that explained accesses since
 *  checks began, in no order; under a lock. */
void kt_access_places(KtTracer *t, KtAccessPlaceFn fn, void *opaque);

/**
 * struct KtQuarantineInfo - frees that are delayed (quarantine=)
 * @limit: bytes that may wait; 0: frees are not delayed
 * @blocks, @bytes: that wait now
 * @running: frees are delayed in this boot
 * @why_not: (static, nullable) why they cannot be
 */
typedef struct KtQuarantineInfo {
    uint64_t limit, blocks, bytes;
    bool running;
    const char *why_not;
} KtQuarantineInfo;
/** kt_quarantine_set() - Delay frees of up to @bytes; 0: none. Before the first
 *  boot. */
void kt_quarantine_set(KtTracer *t, uint64_t bytes);
/** kt_quarantine_info() - Read the state. @out: (out) */
void kt_quarantine_info(KtTracer *t, KtQuarantineInfo *out);

/* ---- classes of code ----------------------------------------------------- */
/*
 * Functions of a kernel whose accesses are judged otherwise than those of plain
 * code: `ka access rules`. The rows are in access/access-code.def, and in the
 * user's file.
 *
 * A KtCodeClasses is constant once made: any thread, no lock. Rows belong to
 * it.
 */

/**
 * enum KtCodeClass - what is known of a function's accesses
 * @KT_CODE_PLAIN: they are checked
 * @KT_CODE_ALLOCATOR: they are not checked, and explain what it calls
 * @KT_CODE_RANGE: one check at the entry, by arguments; none in the function
 * @KT_CODE_LEAF: they are checked; the caller is judged in its place
 * @KT_CODE_OVERREAD: loads may begin or end in bad bytes
 * @KT_CODE_LOADS_OK: loads may touch anything
 */
typedef enum KtCodeClass {
    KT_CODE_PLAIN, KT_CODE_ALLOCATOR, KT_CODE_RANGE, KT_CODE_LEAF,
    KT_CODE_OVERREAD, KT_CODE_LOADS_OK, KT_CODE__COUNT
} KtCodeClass;

/** KT_NO_ARG - instead of the number of an argument: there is none. */
#define KT_NO_ARG (-1)
/** KT_PAGE - as a unit: the size of the kernel's pages. */
#define KT_PAGE 0xffffffffu

/**
 * struct KtCodeRow - what is known of a function, or of some
 * @name: its name; "*" stands for any characters
 * @max_past, @max_before: OVERREAD: so many bad bytes at the end and at the
 *                         start of a load are allowed
 * @dst, @src: RANGE: numbers of the arguments that are written and read, or
 *             KT_NO_ARG
 * @n: RANGE: number of the argument with the size, or KT_NO_ARG
 * @unit: RANGE: bytes that @n counts; without @n, the size itself
 *
 * A RANGE row without @dst and @src is a part of another such function.
 */
typedef struct KtCodeRow {
    const char *name;
    KtCodeClass class;
    unsigned max_past, max_before;
    int dst, src, n;
    uint32_t unit;
} KtCodeRow;

/** struct KtCodeFunction - a function of the kernel that has a row */
typedef struct KtCodeFunction {
    uint64_t start, end;
    const KtCodeRow *row;
} KtCodeFunction;

typedef struct KtCodeClasses KtCodeClasses;

/** kt_code_class_name() - (static) return the word for a class: "allocator",
 *  "loads-ok", ... */
const char *kt_code_class_name(KtCodeClass class);

/**
 * kt_access_rules_load() - Add the rules of a file to the built-in rows
 * @errp: one line: the file, the line's number, what is wrong, and what would
 *        be right
 *
 * Call at most once, before the tracer is used by other threads. Returns: false
 * if the file cannot be used; nothing is added then.
 */
bool kt_access_rules_load(KtTracer *t, const char *path, GError **errp);

/** kt_access_code() - (owned) Look the functions up in a kernel, with the rules
 *  of kt_access_rules_load(). Takes some milliseconds. */
KtCodeClasses *kt_access_code(KtTracer *t, const GsKernel *k);
void kt_code_classes_free(KtCodeClasses *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtCodeClasses, kt_code_classes_free)

/** kt_code_classes_nth() - (borrowed, nullable) return the @i-th function, by
 *  address; NULL after the last. */
const KtCodeFunction *kt_code_classes_nth(const KtCodeClasses *c, unsigned i);
/** kt_code_classes_missing() - (borrowed, nullable) return the names of the
 *  @i-th function that a kernel should have and this one has not: "a" or
 *  "a or b"; NULL after the last. */
const char *kt_code_classes_missing(const KtCodeClasses *c, unsigned i);
/** kt_code_classes_n_missing() - return the number of these. */
unsigned kt_code_classes_n_missing(const KtCodeClasses *c);
/** kt_code_classes_unused() - (borrowed, nullable) return the @i-th of the
 *  user's names that the kernel does not have; NULL after the last. */
const char *kt_code_classes_unused(const KtCodeClasses *c, unsigned i);

#endif /* KT_API_ACCESS_H */
