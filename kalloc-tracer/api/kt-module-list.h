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
#ifndef KT_API_MODULE_LIST_H
#define KT_API_MODULE_LIST_H

#include "kalloc-tracer/api/kt-objects.h"

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

#endif /* KT_API_MODULE_LIST_H */
