/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's plugin API with one vCPU and no emulation, for tests of capture: a
 * block is one instruction, translated each time that it runs. One VM at a
 * time, one thread.
 */
#ifndef FAKE_QEMU_H
#define FAKE_QEMU_H

#include "kalloc-tracer/capture/capture.h"

/** test_qemu_start() - capture for @t (borrowed), @arch is the first one's;
 *  @file: (borrowed, nullable) the kernel that was given */
KtCapture *test_qemu_start(KtTracer *t, GsKernel *file);
/** test_qemu_end() - all of it is gone, the memory too. */
void test_qemu_end(void);

/** test_qemu_map() - (borrowed until it ends) @len bytes of zeroed RAM, instead
 *  of what was mapped at @va; whole pages. */
uint8_t *test_qemu_map(uint64_t va, size_t len);
/** test_qemu_hide() - no stopped vCPU maps the kernel; one that runs does. */
void test_qemu_hide(bool hidden);
/** test_qemu_reg() - a register's value. */
uint64_t *test_qemu_reg(GsReg r);
/** test_qemu_trap() - there are breakpoints everywhere. */
void test_qemu_trap(bool trap);

/** test_qemu_run() - the block at @va runs. */
void test_qemu_run(uint64_t va);
/** test_qemu_reset() - the VM is reset. */
void test_qemu_reset(void);
/** test_qemu_save() - (owned) the plugin's section of the VM's state. */
GByteArray *test_qemu_save(void);
/** test_qemu_load() - such a section is loaded, NULL: a state without one.
 *  Returns: (owned, nullable) why it was refused. */
char *test_qemu_load(const GByteArray *section);

#endif /* FAKE_QEMU_H */
