/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest with three stacks and a page of code. A test writes the words that a
 * kernel would have pushed, walks the stack, and compares the frames. The test
 * brings the kernel's ORC table. Single-threaded.
 */
#ifndef GUEST_STACKS_H
#define GUEST_STACKS_H

#include "tests/lib/orc-writer.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"

#define BPF 0xffffffffc0700000ull

/* The guest's stacks are far from each other. */
#define TASK 0xffffc90000100000ull
#define IRQ  0xffffc90000004000ull
#define NMI  0xfffffe0000009000ull
#define STACK_SIZE 0x4000
#define USER_CS 0x33
#define KERNEL_CS 0x10

/**
 * struct Guest - the guest
 * @k: its kernel
 * @u: (owned) the unwinder under test
 * @task, @irq, @nmi: the stacks
 * @code: the page at BPF, if @has_code
 * @n_pages: pages that the last walk read
 * @frames, @n: the frames that the last walk found
 */
typedef struct Guest {
    GsKernel k;
    GsUnwinder *u;
    uint64_t task[STACK_SIZE / 8];
    uint64_t irq[STACK_SIZE / 8];
    uint64_t nmi[STACK_SIZE / 8];
    uint64_t code[512];
    bool has_code;
    unsigned n_pages;
    uint64_t frames[64];
    unsigned n;
} Guest;

/** guest_page() - return the page that contains @va, or NULL. A GsPageFn, with
 *  the Guest as @opaque. */
const void *guest_page(void *opaque, uint64_t va);

/** guest_put() - write a word to a stack or to the code. */
void guest_put(Guest *g, uint64_t va, uint64_t word);

/* Write consecutive words from @va up. */
#define PUT(g, va, ...) do { \
        const uint64_t words_[] = { __VA_ARGS__ }; \
        for (size_t i_ = 0; i_ < G_N_ELEMENTS(words_); i_++) { \
            guest_put(g, (va) + 8 * i_, words_[i_]); \
        } \
    } while (0)

/** put_regs() - write a struct pt_regs. */
void put_regs(Guest *g, uint64_t va, uint64_t ip, uint64_t cs,
              uint64_t sp, uint64_t bp, uint64_t r10);

/** put_iret() - write the frame that iret pops. */
void put_iret(Guest *g, uint64_t va, uint64_t ip, uint64_t cs, uint64_t sp);

/** guest_new_of() - make a guest whose kernel has its text at @text_va and
 *  @rows as its ORC table. */
Guest *guest_new_of(uint64_t text_va, const OrcRow *rows, size_t n);

void guest_free(Guest *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Guest, guest_free)

/** unwind() - walk the stack; fills @frames, @n and @n_pages. */
GsStop unwind(Guest *g, uint64_t ip, uint64_t sp, uint64_t bp);

/* The last walk found exactly these frames. */
#define ASSERT_FRAMES(g, ...) do { \
        const uint64_t want_[] = { __VA_ARGS__ }; \
        g_assert_cmpuint((g)->n, ==, G_N_ELEMENTS(want_)); \
        for (size_t i_ = 0; i_ < G_N_ELEMENTS(want_); i_++) { \
            g_assert_cmphex((g)->frames[i_], ==, want_[i_]); \
        } \
    } while (0)

#define ASSERT_STOP(got, want) \
    g_assert_cmpstr(gs_stop_name(got), ==, gs_stop_name(want))

#endif /* GUEST_STACKS_H */
