/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A VM whose registers and pages a test fills in. Single-threaded. */
#ifndef FAKE_VM_H
#define FAKE_VM_H

#include "kalloc-tracer/kt.h"

typedef struct TestVm TestVm;

TestVm *test_vm_new(void);
void test_vm_free(TestVm *vm);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TestVm, test_vm_free)

/** test_vm_look() - (borrowed) the VM for commands. */
KtVm *test_vm_look(TestVm *vm);
/** test_vm_set() - set the number of vCPUs and whether they run. */
void test_vm_set(TestVm *vm, unsigned n_vcpus, bool running);
/** test_vm_reg() - add a register; @name is borrowed. */
void test_vm_reg(TestVm *vm, unsigned vcpu, const char *name, uint64_t value);
/** test_vm_bytes() - write bytes within one page; maps the page. */
void test_vm_bytes(TestVm *vm, uint64_t va, const void *bytes, size_t len);
/** test_vm_word() - write 8 bytes within one page; maps the page. */
void test_vm_word(TestVm *vm, uint64_t va, uint64_t value);

#endif /* FAKE_VM_H */
