/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded modules of the running kernel. Implemented in objects/.
 *
 * ka records each module when it is loaded. The kernel's own list of modules is
 * walked as a check: a module that hides itself is missing in that list.
 *
 * All functions may be called on any thread, and take no lock of the tracer.
 * The guest may run meanwhile: then facts are of different moments. All values
 * that the kernel has are untrusted.
 */
#ifndef KT_API_MODULES_H
#define KT_API_MODULES_H

#include "kalloc-tracer/api/kt-objects.h"
#include "kalloc-tracer/api/kt-query.h"

#define KT_MODULE_NAME_MAX 64
#define KT_MODULE_AREAS_MAX 8
#define KT_MODULE_USERS_MAX 64

/** Facts that may be unknown: bits of KtModule.known. */
typedef enum KtModuleFact {
    KT_MODULE_STATE = 1 << 0,
    KT_MODULE_REFS = 1 << 1,
    KT_MODULE_AREAS = 1 << 2,
    KT_MODULE_USERS = 1 << 3,
    KT_MODULE_TYPES = 1 << 4,
} KtModuleFact;

/** struct KtModuleArea - memory of a module; @label: (static) "text", "data",
 *  "rodata", "core", "init" and so on */
typedef struct KtModuleArea {
    const char *label;
    uint64_t start, size;
} KtModuleArea;

/**
 * struct KtModuleInfo - a loaded module
 * @va: of its struct module
 * @name: untrusted bytes
 * @in_table, @in_list: see above
 * @known: KtModuleFact
 * @state: that of the kernel's enum module_state
 * @refs: references by others, as in /proc/modules
 * @has_types: it has BTF of its own
 * @n_areas, @area: those that are not empty, as struct module has them
 * @text: address of its code; 0: unknown
 * @n_users, @user: names of the modules that use it; at most
 *                  KT_MODULE_USERS_MAX
 */
typedef struct KtModuleInfo {
    uint64_t va;
    char name[KT_MODULE_NAME_MAX + 1];
    bool in_table, in_list;
    unsigned known;
    unsigned state;
    int64_t refs;
    bool has_types;
    unsigned n_areas;
    KtModuleArea area[KT_MODULE_AREAS_MAX];
    uint64_t text;
    unsigned n_users;
    char user[KT_MODULE_USERS_MAX][KT_MODULE_NAME_MAX + 1];
} KtModuleInfo;

/** kt_module_state() - (static) return the state as /proc/modules has it:
 *  "Live", "Loading", "Unloading"; NULL: not known. */
const char *kt_module_state(const KtModuleInfo *m);
/** kt_module_size() - return the bytes of all areas. */
uint64_t kt_module_size(const KtModuleInfo *m);

/**
 * struct KtModuleList - the loaded modules
 * @module: KtModuleInfo, in the order of their loads
 * @why_no_list: (static) why the kernel's list was not walked to its end; NULL:
 *               it was
 */
typedef struct KtModuleList {
    GArray *module;
    const char *why_no_list;
} KtModuleList;

/** kt_module_list_new() - list the loaded modules, without BPF programs. Never
 *  fails: what is not known stays unknown. Returns: (owned) the list. */
KtModuleList *kt_module_list_new(const KtObjects *o);
void kt_module_list_free(KtModuleList *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtModuleList, kt_module_list_free)

/* ---- what modules left behind -------------------------------------------- */
/*
 * Blocks that modules had not freed when they were unloaded.
 *
 * A block belongs to a module if its allocation stack has a frame in the
 * module. The report is made when the module is unloaded, at its place in the
 * order of events. Functions kt_query_*() need kt_query_begin(), see
 * kt-query.h.
 */

/**
 * struct KtModuleReport - made when a module was unloaded
 * @id: 1, 2, ... in the order of reports
 * @name: (borrowed until kt_query_end())
 * @loaded_us: time when it was loaded; 0: before recording began
 * @us: time when it was unloaded
 * @found: its blocks that were neither freed nor queued by kfree_rcu()
 * @not_kept: of @found, blocks that are not listed: the memory limit was
 *            reached
 * @unsure: blocks that may have been freed in a gap; they are not in @found
 * @bad_frees: errors that the module's frees made
 */
typedef struct KtModuleReport {
    uint64_t id;
    const char *name;
    uint64_t loaded_us;
    uint64_t us;
    uint64_t found;
    uint64_t not_kept;
    uint64_t unsure;
    uint64_t bad_frees;
} KtModuleReport;

/** Called for each report; false ends the query. */
typedef bool (*KtModuleFn)(const KtModuleReport *r, void *opaque);

/** kt_query_modules() - call @fn for each report, the oldest first. */
void kt_query_modules(KtTracer *t, KtModuleFn fn, void *opaque);
/** kt_query_module_leaks() - call @fn for the blocks of report @id that are
 *  still not freed, by the address that they had then. */
void kt_query_module_leaks(KtTracer *t, uint64_t id, KtBlockFn fn,
                           void *opaque);
/** kt_query_module_frees() - call @fn for the errors that the module's frees
 *  made, the oldest first, as far as they are kept. */
void kt_query_module_frees(KtTracer *t, uint64_t id, KtErrorFn fn,
                           void *opaque);
/** kt_query_module_loaded() - return true if a module of that name is
 *  loaded. */
bool kt_query_module_loaded(KtTracer *t, const char *name);

#endif /* KT_API_MODULES_H */
