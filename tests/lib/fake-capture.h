/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture of a VM on the fake QEMU. The guest's kernel has kmalloc() and the
 * functions that free. It is in guest memory, moved by SLIDE as KASLR does, and
 * there is a file of it. One at a time; single-threaded.
 */
#ifndef FAKE_CAPTURE_H
#define FAKE_CAPTURE_H

#include "tests/lib/fake-qemu.h"
#include "tests/lib/kallsyms-writer.h"
#include "tests/lib/test-main.h"

#define SLIDE   0x1a00000ull
#define TEXT    (KS_TEXT + SLIDE)
#define START   (TEXT + 0x200)
#define KMALLOC (TEXT + 0x300)
#define KFREE   (TEXT + 0x400)
#define CALLER  (TEXT + 0x500)
#define CACHE_FREE  (TEXT + 0x600)
#define MODULE_UNDO (TEXT + 0x780)
#define IN_FREE_BULK 0x21       /* a place on the stack, see call() */
#define RCU_CALLBACK (TEXT + 0x690)
#define VMAP    (TEXT + 0x6a0)
#define VUNMAP  (TEXT + 0x6b0)
#define MEMSET  (TEXT + 0x6e0)
#define VMALLOC (TEXT + 0x7a0)
#define VFREE   (TEXT + 0x7c0)
#define VFREE_ATOMIC (TEXT + 0x7e0)
#define IN_VFREE     0x2d
#define IN_WORKER    0x33
#define RETURN_TO_HANDLER (TEXT + 0x860)
#define KFREE_SENSITIVE (TEXT + 0x880)
#define KREALLOC     (TEXT + 0x8a0)
#define IN_KREALLOC  0x3b
#define ALLOC_INNER  (TEXT + 0xa00)
#define FREE_INNER   (TEXT + 0xa20)
#define IMAGE_SAVE   (TEXT + 0xa40)
#define IMAGE_LOAD   (TEXT + 0xa60)
#define IMAGE_WAKES  (TEXT + 0xa80)
#define STATE   0x20            /* positions in .rodata: slab_state, */
#define JIFFIES 0x28            /* jiffies_64 */
#define STACK   0xffffc90000000000ull
#define BLOCK   0xffff888000001000ull
#define MODULES 0xffffffffc0100000ull
#define N_SYMBOLS 30

/**
 * struct FakeCapture - a VM, its tracer and its capture
 * @file: (owned, nullable) the kernel of kernel=FILE
 * @capture: freed by test_qemu_end()
 * @stack, @image: guest memory at STACK and at TEXT, of the fake QEMU
 */
typedef struct FakeCapture {
    KtTracer *t;
    GsKernel *file;
    KtCapture *capture;
    uint8_t *stack, *image;
} FakeCapture;

/** set_banner() - change the running kernel's banner. @banner is not longer
 *  than KS_BANNER. */
void set_banner(FakeCapture *w, const char *banner);

/** set_jiffies() - set jiffies_64 of the running kernel. */
void set_jiffies(FakeCapture *w, uint64_t jiffies);

/** set_slabs_up() - set slab_state to up: the kernel has allocated before it
 *  is seen first. */
void set_slabs_up(FakeCapture *w);

/**
 * fake_capture_new_of() - start capture; no guest code has run yet
 * @journal: (nullable) the path of a journal to write
 * @file: (taken, nullable) the kernel of kernel=FILE
 */
FakeCapture *fake_capture_new_of(const char *journal, GsKernel *file);

/** fake_capture_new() - the same. If @file, kernel=FILE is the same kernel. */
FakeCapture *fake_capture_new(const char *journal, bool file);

void fake_capture_free(FakeCapture *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FakeCapture, fake_capture_free)

/* A case with a capture @w without options. */
#define CAPTURE_TEST(fn, path) \
    TEST_IN(g_autoptr(FakeCapture), FakeCapture *w, \
            fake_capture_new(NULL, false), fn, path)

/** call() - run the first instruction of a function. @place is the slot of
 *  the stack and the call site; calls that overlap need different ones. */
void call(FakeCapture *w, unsigned place, uint64_t va, uint64_t arg);

/* Enter kmalloc(), return from it with @va, or both. */
void enter_kmalloc(FakeCapture *w, unsigned place);
void leave_kmalloc(FakeCapture *w, unsigned place, uint64_t va);
void run_kmalloc(FakeCapture *w, uint64_t va);

/** run_kfree() - call kfree(). */
void run_kfree(FakeCapture *w, uint64_t va);

/** load_module() - add a module with one function. Its id is @va +
 *  0x10000. */
void load_module(FakeCapture *w, uint64_t va, const char *name,
                 const char *function);

/** watch_functions() - add a call point, as "ka calls add" does. Returns: its
 *  id. */
uint32_t watch_functions(FakeCapture *w, const char *functions);

/* Query the tracer once all events are applied. */
KtStats stats_of(FakeCapture *w);
uint64_t counter_of(FakeCapture *w, KtCounter c);

#endif /* FAKE_CAPTURE_H */
