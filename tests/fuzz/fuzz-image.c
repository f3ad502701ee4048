/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: kernel files.
 *
 * Byte 0 says what the rest is: a file, the payload of a bzImage, or changes of
 * three bytes each (position, value) to a correct ELF file.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/elf-writer.h"
#include "guest-symbols/image/image.h"

static GBytes *good_elf(void)
{
    uint8_t bytes[256] = { 1, 2, 3 };
    ElfWriter w;

    elf_writer_start(&w);
    elf_writer_add(&w, ".text", 0xffffffff81000000ull, SHF_EXECINSTR, bytes,
                   256);
    elf_writer_add(&w, ".rodata", 0xffffffff81000100ull, 0, bytes, 256);
    elf_writer_add(&w, ".bss", 0xffffffff81000200ull, 0, NULL, 4096);
    return elf_writer_finish(&w);
}

static GBytes *bent_elf(const uint8_t *data, size_t len)
{
    size_t total;
    uint8_t *bytes = g_bytes_unref_to_data(good_elf(), &total);

    for (size_t i = 0; i + 3 <= len; i += 3) {
        bytes[(data[i] | data[i + 1] << 8) % total] = data[i + 2];
    }
    return g_bytes_new_take(bytes, total);
}

static GBytes *make_file(const uint8_t *data, size_t len)
{
    switch (data[0] % 3) {
    case 0:
        return g_bytes_new(data + 1, len - 1);
    case 1:
        return bz_writer_wrap(data + 1, len - 1);
    default:
        return bent_elf(data + 1, len - 1);
    }
}

/* Read each section: it must be readable up to its end. */
static void walk(const GsImage *img)
{
    uint64_t before = 0;
    uint8_t buf[64];

    for (size_t i = 0; i < img->sections->len; i++) {
        const GsSection *s = gs_image_nth_section(img, i);
        size_t n = MIN(s->len, sizeof(buf));

        if (s->va < before || s->va + s->len < s->va) {
            abort();
        }
        before = s->va;
        if (s->data && (!gs_image_read(img, s->va, buf, n) ||
                        !gs_image_read(img, s->va + s->len - n, buf, n))) {
            abort();
        }
        gs_image_read(img, s->va + s->len - 1, buf, sizeof(buf));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(GBytes) file = len ? make_file(data, len) : NULL;
    g_autoptr(GError) err = NULL;
    g_autoptr(GsImage) img = file ? gs_image_new(file, &err) : NULL;

    if (img) {
        walk(img);
    } else if (file && !err) {
        abort();
    }
    return 0;
}
