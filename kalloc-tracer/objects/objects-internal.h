/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object reader: the checked reader of kernel memory for the views of objects.
 * Owns no state. Used by the files of objects/, on any thread. Nothing here
 * takes a lock; the guest may run meanwhile, unless the caller has stopped it.
 *
 * All values are untrusted. A read that touches memory that is no RAM, or that
 * no vCPU maps, fails as a whole.
 */
#ifndef KT_OBJECTS_INTERNAL_H
#define KT_OBJECTS_INTERNAL_H

#include "kalloc-tracer/api/kt-objects.h"
#include "kalloc-tracer/api/kt-files.h"
#include "kalloc-tracer/layout/layout.h"
#include "kalloc-tracer/api/kt-tasks.h"

/** KT_CPUS_MAX - limit of CPUs, that of the kernel's NR_CPUS. */
#define KT_CPUS_MAX 8192u

/** kt_objects_number() - read an unsigned number of 1, 2, 4 or 8 bytes. False,
 *  with @out 0, if it is unreadable. */
bool kt_objects_number(const KtObjects *o, uint64_t va, unsigned bytes,
                       uint64_t *out);
/** kt_objects_pointer() - read a word that is an address; its tag is removed.
 *  False, with @out 0, if it is unreadable. */
bool kt_objects_pointer(const KtObjects *o, uint64_t va, uint64_t *out);
/** kt_objects_variable() - read a variable of the kernel of 1, 2, 4 or 8 bytes.
 *  False, with @out 0, if there is no such symbol or it is unreadable. */
bool kt_objects_variable(const KtObjects *o, const char *name, unsigned bytes,
                         uint64_t *out);
/** kt_objects_text() - copy a string and its NUL. @buf: of @size bytes, at
 *  least 1; a longer string is cut. The bytes are untrusted: print them with
 *  escapes. False, with an empty @buf, if a byte is unreadable. */
bool kt_objects_text(const KtObjects *o, uint64_t va, char *buf, size_t size);

/** kt_objects_cpu_is_possible() - return false if the kernel says that there
 *  can never be a CPU of this number (__cpu_possible_mask). The per-CPU memory
 *  of such a CPU is that of early boot. */
bool kt_objects_cpu_is_possible(const KtObjects *o, unsigned cpu);
/** kt_objects_register() - read a register of a stopped vCPU; @name: gdb's.
 *  False if the vCPU has none of this name. */
bool kt_objects_register(const KtVm *vm, unsigned vcpu, const char *name,
                         uint64_t *value);
/** kt_objects_slide() - read the slide of KASLR in the kernel's vmcoreinfo. */
bool kt_objects_slide(const KtObjects *o, uint64_t *slide);
/** kt_objects_made_by() - was the block of the stack @id allocated by one of @n
 *  functions itself? */
bool kt_objects_made_by(const KtObjects *o, KtStackId id,
                        const char *const *function, unsigned n);

/** kt_objects_has_frames() - is page_offset of the VM the address of page frame
 *  0? If not, it was learned, and only differences are right: then an address
 *  has a struct page, and no known physical address. */
static inline bool kt_objects_has_frames(const KtObjects *o)
{
    return o->vm->page_offset !=
           gs_kernel_arch(o->kernel)->direct_maps->relative;
}

/** kt_objects_order() - the order of structs that begin with an address. */
static inline int kt_objects_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* ---- paths of files ------------------------------------------------------ */
/*
 * Paths of files: from a dentry and its mount to a text. Used by file.c, on any
 * thread; no locks. All values are untrusted.
 */

/**
 * kt_path_read() - find path and file system of a file
 * @f: has its dentry; gets @f->fs, @f->path and @f->whole
 * @mnt: address of its vfsmount, 0 if unknown
 * @steps: (in, out) links that may still be followed
 */
void kt_path_read(const KtObjects *o, const KtLayout *at, KtFile *f,
                  uint64_t mnt, uint64_t *steps);

/* ---- tasks --------------------------------------------------------------- */
/*
 * Where a kernel has the facts about a task, and how one task is read. Used by
 * task-list.c and file.c, on any thread; no locks. All values are untrusted.
 */

#define KT_TASK_UNKNOWN UINT32_MAX

/**
 * struct KtTaskLayout - offsets, KT_TASK_UNKNOWN if the kernel does not say
 * @at, @bytes: of each fact that is a member of task_struct
 * @comm, @comm_bytes: of the name
 * @end: bytes from the begin of task_struct to the end of the last of these
 * @uid: in struct cred
 * @tasks, @node: in task_struct: links of the lists of processes and threads
 * @signal_head: in signal_struct: the head of the list of threads
 * @types: (static) see KtTasks
 */
typedef struct KtTaskLayout {
    uint32_t at[KT_TASK__COUNT], bytes[KT_TASK__COUNT];
    uint32_t comm, comm_bytes;
    uint32_t end;
    uint32_t uid;
    uint32_t tasks, node, signal_head;
    const char *types;
} KtTaskLayout;

/** kt_task_layout_init() - find the offsets by the kernel's types; without
 *  them by what was learned from calls. */
void kt_task_layout_init(KtTaskLayout *at, const KtObjects *o);
/** kt_task_layout_unknown() - return one bit for each fact whose place is not
 *  known. */
uint32_t kt_task_layout_unknown(const KtTaskLayout *at);
/** kt_task_read() - read the facts of the task at @t->va into @t, except those
 *  that other objects have. What is unreadable stays unknown. */
void kt_task_read(const KtObjects *o, const KtTaskLayout *at, KtTask *t);
/** kt_task_read_others() - the same for what the parent and the credentials
 *  have: ppid and uid. */
void kt_task_read_others(const KtObjects *o, const KtTaskLayout *at,
                         KtTask *t);

/** kt_task_set() - set a fact. */
static inline void kt_task_set(KtTask *t, KtTaskFact fact, uint64_t value)
{
    t->known |= 1u << fact;
    t->fact[fact] = value;
}

#endif /* KT_OBJECTS_INTERNAL_H */
