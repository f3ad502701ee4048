/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A VM for tests, see fake-vm.h. Pages are in a hash table. */
#include "tests/lib/fake-vm.h"

#include <string.h>

#define PAGE 4096ull

typedef struct Reg {
    unsigned vcpu;
    KtRegister reg;
} Reg;

struct TestVm {
    KtVm look;
    GArray *regs;
    GHashTable *pages;
};

static bool read_bytes(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                       size_t len)
{
    TestVm *vm = opaque;
    char *to = buf;

    while (len) {
        uint64_t start = va & -PAGE;
        size_t n = MIN(len, start + PAGE - va);
        const char *page = g_hash_table_lookup(vm->pages, &start);

        if (!page || vcpu >= vm->look.n_vcpus) {
            return false;
        }
        memcpy(to, page + (va - start), n);
        to += n;
        va += n;
        len -= n;
    }
    return true;
}

static bool read_reg(void *opaque, unsigned vcpu, unsigned i, KtRegister *out)
{
    const TestVm *vm = opaque;

    for (unsigned j = 0; !vm->look.running && j < vm->regs->len; j++) {
        const Reg *r = &g_array_index(vm->regs, Reg, j);

        if (r->vcpu == vcpu && !i--) {
            *out = r->reg;
            return true;
        }
    }
    return false;
}

TestVm *test_vm_new(void)
{
    TestVm *vm = g_new0(TestVm, 1);

    vm->regs = g_array_new(FALSE, FALSE, sizeof(Reg));
    vm->pages = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                      g_free);
    vm->look = (KtVm) {
        .n_vcpus = 1, .read = read_bytes, .reg = read_reg, .opaque = vm,
    };
    return vm;
}

void test_vm_free(TestVm *vm)
{
    if (vm) {
        g_array_unref(vm->regs);
        g_hash_table_unref(vm->pages);
        g_free(vm);
    }
}

KtVm *test_vm_look(TestVm *vm)
{
    return &vm->look;
}

void test_vm_set(TestVm *vm, unsigned n_vcpus, bool running)
{
    vm->look.n_vcpus = n_vcpus;
    vm->look.running = running;
}

void test_vm_reg(TestVm *vm, unsigned vcpu, const char *name, uint64_t value)
{
    Reg r = { vcpu, { name, value } };

    g_array_append_val(vm->regs, r);
}

void test_vm_bytes(TestVm *vm, uint64_t va, const void *bytes, size_t len)
{
    uint64_t start = va & -PAGE;
    char *page = g_hash_table_lookup(vm->pages, &start);

    if (!page) {
        page = g_malloc0(PAGE);
        g_hash_table_insert(vm->pages, g_memdup2(&start, sizeof(start)),
                            page);
    }
    g_assert_cmpuint(va - start + len, <=, PAGE);
    memcpy(page + (va - start), bytes, len);
}

void test_vm_word(TestVm *vm, uint64_t va, uint64_t value)
{
    test_vm_bytes(vm, va, &value, sizeof(value));
}
