/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's plugin API with one vCPU and no emulation, for tests of capture. A
 * translation block is one instruction, and is translated each time that it
 * runs. One VM at a time. Single-threaded.
 */
#ifndef FAKE_QEMU_H
#define FAKE_QEMU_H

#include "kalloc-tracer/capture/capture.h"

/** test_qemu_start() - start capture for @t (borrowed) on the first
 *  architecture. @file: (borrowed, nullable) the kernel of kernel=FILE.
 *  Returns: (borrowed) the capture. */
KtCapture *test_qemu_start(KtTracer *t, GsKernel *file);
/** test_qemu_end() - end the VM; frees the capture and guest memory. */
void test_qemu_end(void);

/** test_qemu_map() - map @len bytes of zeroed RAM at @va, in place of what was
 *  mapped there; whole pages. Returns: (borrowed until test_qemu_end()) it. */
uint8_t *test_qemu_map(uint64_t va, size_t len);
/** test_qemu_hide() - let the kernel be mapped only while a vCPU runs. */
void test_qemu_hide(bool hidden);
/** test_qemu_smap() - let loads of user space fail, as the kernel's do. */
void test_qemu_smap(bool smap);
/** test_qemu_view() - let @view (nullable) find guest memory for the tracer, in
 *  place of the machine's map. */
void test_qemu_view(const void *(*view)(uint64_t va, size_t *avail));
/** test_qemu_reg() - (borrowed) the value of a register. */
uint64_t *test_qemu_reg(GsReg r);
/** test_qemu_pc() - (borrowed) the program counter, for commands. */
uint64_t *test_qemu_pc(void);
/** test_qemu_trap() - let each instruction be a breakpoint. */
void test_qemu_trap(bool trap);

/** test_qemu_run() - run the instruction at @va. */
void test_qemu_run(uint64_t va);
/** struct TestQemuAccess - an access of 2^@shift bytes at @va */
typedef struct TestQemuAccess {
    uint64_t va;
    unsigned shift;
    bool store;
} TestQemuAccess;
/** test_qemu_access() - run the instruction at @va, which makes one access.
 *  Returns: true if it has a callback for accesses. */
bool test_qemu_access(uint64_t va, const TestQemuAccess *a);
/** test_qemu_traps() - Return true if accesses to the page at @va are trapped:
 *  test_qemu_access() then tells the plugin, too. */
bool test_qemu_traps(uint64_t va);
/** test_qemu_page_updates() - how many pages the plugin has changed. */
unsigned test_qemu_page_updates(void);
/** test_qemu_rewind() - set the clock to its begin, as a VM state does. */
void test_qemu_rewind(void);
/** test_qemu_write() - be in a callback that may write registers. @refused: bit
 *  N: the Nth write from now on fails, from 0. */
void test_qemu_write(unsigned refused);
/** test_qemu_when_translated() - call @fn once, after the next instruction is
 *  translated and before it runs. */
void test_qemu_when_translated(void (*fn)(void *opaque), void *opaque);
/** test_qemu_left() - where the vCPU went on after the last instruction, if its
 *  callback set the PC; else 0. */
uint64_t test_qemu_left(void);
/** test_qemu_stops() - how often the plugin stopped the VM. */
unsigned test_qemu_stops(void);
/** test_qemu_reset() - reset the VM. */
void test_qemu_reset(void);
/** test_qemu_save() - (owned) the plugin's section of a saved VM. */
GByteArray *test_qemu_save(void);
/** test_qemu_load() - load a VM with that section, or with none if it is NULL.
 *  Returns: (owned, nullable) why the section was refused. */
char *test_qemu_load(const GByteArray *section);

#endif /* FAKE_QEMU_H */
