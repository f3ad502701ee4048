/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: ELF files of kernels other than Linux, and walks over their
 * stacks.
 *
 * Byte 0 selects the architecture and what the rest is: a file, or changes of
 * three bytes each (position, value) to a correct file. The same bytes are also
 * the content of the stack.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/elf-writer.h"
#include "guest-symbols/gs.h"

#define BASE    0xfffffff02a000000ull
#define STACK   0xffffffe386000000ull

static uint8_t stack[8192];

static const void *page(void *opaque, uint64_t va)
{
    return va >= STACK && va - STACK < sizeof(stack)
           ? stack + ((va - STACK) & ~0xfffull) : NULL;
}

static GBytes *bent_elf(unsigned machine, const uint8_t *data, size_t len)
{
    const ElfSymbol syms[] = {
        { "start", BASE, 1, STT_FUNC }, { "kalloc", BASE + 64, 1, STT_FUNC },
        { "$d", BASE + 80, 1, STT_NOTYPE }, { "data", BASE + 256, 2, 1 },
    };
    uint8_t bytes[256] = { 1, 2, 3 };
    size_t total;
    uint8_t *file;
    ElfWriter w;

    elf_writer_start(&w);
    w.machine = machine;
    w.entry = BASE;
    elf_writer_add(&w, ".text", BASE, SHF_EXECINSTR, bytes, 256);
    elf_writer_add(&w, ".data", BASE + 256, SHF_WRITE, bytes, 256);
    elf_writer_symbols(&w, syms, G_N_ELEMENTS(syms));
    file = g_bytes_unref_to_data(elf_writer_finish(&w), &total);
    for (size_t i = 0; i + 3 <= len; i += 3) {
        file[(data[i] | data[i + 1] << 8) % total] = data[i + 2];
    }
    return g_bytes_new_take(file, total);
}

static void use(const GsKernel *k)
{
    g_autoptr(GsUnwinder) u = gs_unwinder_new(k);
    const GsRegs regs = { .ip = BASE + 70, .sp = STACK, .bp = STACK + 16 };
    uint64_t frames[16], start = gs_kernel_start(k);
    unsigned n;
    GsSymbol sym;

    gs_unwind(u, &regs, page, NULL, frames, G_N_ELEMENTS(frames), &n);
    if (n > G_N_ELEMENTS(frames)) {
        abort();
    }
    for (unsigned i = 0; i < n; i++) {
        gs_kernel_symbolize(k, frames[i], &sym);
    }
    gs_kernel_lookup(k, "kalloc", &sym);
    gs_kernel_is_text(k, start);
    gs_kernel_symbolize(k, UINT64_MAX, &sym);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const unsigned machines[] = { EM_AARCH64, EM_RISCV, EM_X86_64 };
    static const char *const outermost[] = { "start", NULL };
    const GsElfOptions o = { .outermost = outermost, .va_bits = 39 };
    g_autoptr(GBytes) file = NULL;
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = NULL;
    const void *bytes;
    size_t total;

    if (!len) {
        return 0;
    }
    memcpy(stack, data + 1, MIN(len - 1, sizeof(stack)));
    file = data[0] & 4 ? g_bytes_new(data + 1, len - 1) :
           bent_elf(machines[(data[0] & 3) % 3], data + 1, len - 1);
    bytes = g_bytes_get_data(file, &total);
    k = gs_kernel_new_elf_from_data(bytes, total, &o, &err);
    if (k) {
        use(k);
    } else if (!err || strpbrk(err->message, "\n\033")) {
        abort();
    }
    return 0;
}
