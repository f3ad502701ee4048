/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any bytes as the code of an arm64 function, of which call frame
 * information is made. Byte 0 has bits: the function is known by its name.
 *
 * Checks: nothing behind the code is read, and libdw reads each rule.
 */
#include "tests/fuzz/fuzz.h"
#include "guest-symbols/arch/arm64/arm64-internal.h"
#include "guest-symbols/export/elf-file.h"

#include <elf.h>
#include <elfutils/libdw.h>

#define TEXT    0xffff800080010000ull

static void read_rules(const GByteArray *file, size_t n)
{
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_CFI *cfi;

    elf_version(EV_CURRENT);
    elf = elf_memory((char *)file->data, file->len);
    dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    cfi = dwarf_getcfi(dwarf);
    for (size_t i = 0; i < n; i++) {
        Dwarf_Frame *frame;

        if (!cfi || dwarf_cfi_addrframe(cfi, TEXT + 4 * i, &frame)) {
            abort();
        }
        free(frame);
    }
    dwarf_end(dwarf);
    elf_end(elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t n = len ? (len - 1) / 4 : 0;
    g_autoptr(GByteArray) frames = g_byte_array_new(), file = NULL;
    g_autoptr(GsElfFile) f = gs_elf_file_new(EM_AARCH64);
    g_autofree uint8_t *code = NULL;
    GsCfi w = gs_cfi(frames, 4);
    GsArm64Cfi c = { .w = &w, .canonical = 0xffff800000000000ull };

    if (!n) {
        return 0;
    }
    code = g_memdup2(data + 1, 4 * n);
    c.vectors[0] = data[0] & 1 ? TEXT : 0;
    c.ends[0] = data[0] & 2 ? TEXT : 0;
    c.switches = data[0] & 4 ? TEXT : 0;
    gs_arm64_cfi_begin(&c);
    gs_arm64_cfi(&c, (GsRange) { TEXT, TEXT + 4 * n }, code);
    gs_elf_file_add_section(f, ".text", TEXT, TEXT + 4 * n, true);
    file = gs_elf_file_end(f, frames);
    if (!file) {
        abort();
    }
    read_rules(file, n);
    return 0;
}
