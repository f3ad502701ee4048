/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel files are unpacked from every wrapper and compression, and their ELF
 * sections are found. Damaged files are refused.
 */
#include "tests/lib/elf-writer.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/image/image.h"

#include <lz4.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#if __has_include(<bzlib.h>)
#include <bzlib.h>
#define HAVE_BZIP2 1
#endif

#define TEXT    0xffffffff81000000ull
#define DATA    0xffffffff81004000ull
#define LEN     0x4000

typedef GByteArray *(*PackFn)(const uint8_t *in, size_t len);

/* .text, .data right behind it, bss. Not too compressible. */
static GBytes *make_elf(void)
{
    g_autofree uint32_t *text = g_new(uint32_t, LEN / 4);
    g_autofree uint32_t *data = g_new(uint32_t, LEN / 4);
    uint8_t percpu[64] = { 0x11 };
    ElfWriter w;

    for (uint32_t i = 0; i < LEN / 4; i++) {
        text[i] = i * 2654435761u;
        data[i] = i % 512;
    }
    elf_writer_start(&w);
    elf_writer_add(&w, ".data", DATA, SHF_WRITE, data, LEN);
    elf_writer_add(&w, ".text", TEXT, SHF_EXECINSTR, text, LEN);
    elf_writer_add(&w, ".bss", DATA + LEN, SHF_WRITE, NULL, 0x100000);
    elf_writer_add(&w, ".data..percpu", 0, SHF_WRITE, percpu, sizeof(percpu));
    return elf_writer_finish(&w);
}

static void check_elf(const GsImage *img)
{
    uint64_t va;
    const uint8_t *data;
    size_t len;
    uint32_t word[2];

    g_assert_false(img->raw);
    g_assert_cmpuint(img->sections->len, ==, 4);
    g_assert_cmphex(gs_image_nth_section(img, 0)->va, ==, 0);
    g_assert_true(gs_image_nth_section(img, 1)->exec);
    g_assert_true(gs_image_section(img, ".text", &va, &data, &len));
    g_assert_cmphex(va, ==, TEXT);
    g_assert_cmphex(len, ==, LEN);
    g_assert_false(gs_image_section(img, ".bss", &va, &data, &len));
    g_assert_true(gs_image_read(img, DATA - 4, word, 8));
    g_assert_cmphex(word[0], ==, (LEN / 4 - 1) * 2654435761u);
    g_assert_cmphex(word[1], ==, 0);
    g_assert_false(gs_image_read(img, DATA + LEN - 4, word, 8));
    g_assert_false(gs_image_read(img, TEXT - 1, word, 1));
    g_assert_false(gs_image_read(img, UINT64_MAX, word, 8));
}

static void append_size(GByteArray *out, uint32_t size)
{
    g_byte_array_append(out, (const uint8_t *)&size, 4);
}

/* ---- packers: what the kernel's build runs ---- */

static GByteArray *pack_none(const uint8_t *in, size_t len)
{
    return g_byte_array_append(g_byte_array_new(), in, len);
}

static GByteArray *pack_gzip(const uint8_t *in, size_t len)
{
    GByteArray *out = g_byte_array_new();
    z_stream z = { .next_in = (Bytef *)in, .avail_in = len };

    g_byte_array_set_size(out, len + 1024);
    g_assert_cmpint(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, 0), ==, Z_OK);
    z.next_out = out->data;
    z.avail_out = out->len;
    g_assert_cmpint(deflate(&z, Z_FINISH), ==, Z_STREAM_END);
    g_byte_array_set_size(out, z.total_out);
    deflateEnd(&z);
    return out;
}

static GByteArray *pack_lzma_with(lzma_stream *s, const uint8_t *in,
                                  size_t len)
{
    GByteArray *out = g_byte_array_new();

    g_byte_array_set_size(out, len + 4096);
    s->next_in = in;
    s->avail_in = len;
    s->next_out = out->data;
    s->avail_out = out->len;
    g_assert_cmpint(lzma_code(s, LZMA_FINISH), ==, LZMA_STREAM_END);
    g_byte_array_set_size(out, s->total_out);
    lzma_end(s);
    append_size(out, len);
    return out;
}

static GByteArray *pack_xz(const uint8_t *in, size_t len)
{
    lzma_stream s = LZMA_STREAM_INIT;
    lzma_options_lzma opt;
    lzma_filter filters[] = {
        { LZMA_FILTER_X86, NULL }, { LZMA_FILTER_LZMA2, &opt },
        { LZMA_VLI_UNKNOWN, NULL },
    };

    lzma_lzma_preset(&opt, 1);
    g_assert_cmpint(lzma_stream_encoder(&s, filters, LZMA_CHECK_CRC32), ==,
                    LZMA_OK);
    return pack_lzma_with(&s, in, len);
}

static GByteArray *pack_lzma(const uint8_t *in, size_t len)
{
    lzma_stream s = LZMA_STREAM_INIT;
    lzma_options_lzma opt;

    lzma_lzma_preset(&opt, 1);
    g_assert_cmpint(lzma_alone_encoder(&s, &opt), ==, LZMA_OK);
    return pack_lzma_with(&s, in, len);
}

#ifdef HAVE_BZIP2
static GByteArray *pack_bzip2(const uint8_t *in, size_t len)
{
    GByteArray *out = g_byte_array_new();
    unsigned n = len + len / 50 + 1024;

    g_byte_array_set_size(out, n);
    g_assert_cmpint(BZ2_bzBuffToBuffCompress((char *)out->data, &n,
                                             (char *)in, len, 9, 0, 0), ==,
                    BZ_OK);
    g_byte_array_set_size(out, n);
    append_size(out, len);
    return out;
}
#endif

static GByteArray *pack_lz4(const uint8_t *in, size_t len)
{
    GByteArray *out = g_byte_array_new();
    uint32_t n = LZ4_compressBound(len);

    append_size(out, 0x184c2102);
    append_size(out, 0);
    g_byte_array_set_size(out, 8 + n);
    n = LZ4_compress_default((const char *)in, (char *)out->data + 8, len, n);
    g_byte_array_set_size(out, 8 + n);
    memcpy(out->data + 4, &n, 4);
    append_size(out, len);
    return out;
}

static GByteArray *pack_zstd(const uint8_t *in, size_t len)
{
    GByteArray *out = g_byte_array_new();
    size_t n = ZSTD_compressBound(len);

    g_byte_array_set_size(out, n);
    n = ZSTD_compress(out->data, n, in, len, 19);
    g_byte_array_set_size(out, n);
    append_size(out, len);
    return out;
}

static const struct {
    const char *name;
    PackFn pack;
} packers[] = {
    { "none", pack_none }, { "gzip", pack_gzip }, { "xz", pack_xz },
    { "lzma", pack_lzma }, { "lz4", pack_lz4 }, { "zstd", pack_zstd },
#ifdef HAVE_BZIP2
    { "bzip2", pack_bzip2 },
#endif
};

static GByteArray *pack_elf(size_t packer)
{
    g_autoptr(GBytes) elf = make_elf();
    size_t len;
    const uint8_t *data = g_bytes_get_data(elf, &len);

    return packers[packer].pack(data, len);
}

static GsImage *open_bytes(const void *data, size_t len, GError **errp)
{
    g_autoptr(GBytes) bytes = g_bytes_new(data, len);

    return gs_image_new(bytes, errp);
}

static void test_bzimage(const void *opaque)
{
    g_autoptr(GByteArray) packed = pack_elf(GPOINTER_TO_SIZE(opaque));
    g_autoptr(GBytes) bz = bz_writer_wrap(packed->data, packed->len);
    g_autoptr(GError) err = NULL;
    g_autoptr(GsImage) img = gs_image_new(bz, &err);

    g_assert_no_error(err);
    check_elf(img);
}

static void test_bare(const void *opaque)
{
    g_autoptr(GByteArray) packed = pack_elf(GPOINTER_TO_SIZE(opaque));
    g_autoptr(GError) err = NULL;
    g_autoptr(GsImage) img = open_bytes(packed->data, packed->len, &err);

    g_assert_no_error(err);
    check_elf(img);
}

/* Cut anywhere: an error, or (cut behind the stream) still the kernel. */
static void test_truncated(const void *opaque)
{
    g_autoptr(GByteArray) packed = pack_elf(GPOINTER_TO_SIZE(opaque));

    for (size_t len = 0; len < packed->len; len += 61) {
        g_autoptr(GBytes) bz = bz_writer_wrap(packed->data, len);
        g_autoptr(GError) err = NULL;
        g_autoptr(GsImage) img = gs_image_new(bz, &err);

        if (img && packers[GPOINTER_TO_SIZE(opaque)].pack != pack_none) {
            check_elf(img);
        } else if (!img) {
            g_assert_true(err->domain == GS_ERROR);
        }
    }
}

TEST(test_payload_outside, "/image/payload-outside-file")
{
    g_autoptr(GByteArray) packed = pack_elf(1);
    g_autoptr(GBytes) bz = bz_writer_wrap(packed->data, packed->len);
    size_t len;
    const uint8_t *data = g_bytes_get_data(bz, &len);
    g_autoptr(GError) err = NULL;

    g_assert_null(open_bytes(data, len - 1, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
    g_assert_nonnull(strstr(err->message, "beyond the file"));
}

TEST(test_lzo, "/image/lzo-refused-by-name")
{
    static const char lzo[] = "\x89LZO\0\r\n\x1a\n stuff";
    g_autoptr(GBytes) bz = bz_writer_wrap(lzo, sizeof(lzo));
    g_autoptr(GError) err = NULL;

    g_assert_null(gs_image_new(bz, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_UNSUPPORTED);
    g_assert_nonnull(strstr(err->message, "lzo"));
}

/* 64 MiB of zeros in a few bytes must not be unpacked. */
TEST(test_bomb, "/image/bomb")
{
    size_t len = 64u << 20;
    g_autofree uint8_t *zeros = g_malloc0(len);
    g_autoptr(GByteArray) packed = pack_zstd(zeros, len);
    g_autoptr(GError) err = NULL;

    g_assert_cmpuint(packed->len, <, len / 256);
    g_assert_null(open_bytes(packed->data, packed->len, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
}

TEST(test_not_a_kernel, "/image/not-a-kernel")
{
    static const char text[] = "#!/bin/sh\necho not a kernel\n";
    g_autoptr(GError) err = NULL;

    g_assert_null(open_bytes(text, sizeof(text), &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
    g_clear_error(&err);
    g_assert_null(open_bytes("", 0, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
}

static void change_elf(size_t at, uint16_t value, GsErrorCode code)
{
    g_autoptr(GByteArray) elf = pack_elf(0);
    g_autoptr(GError) err = NULL;

    memcpy(elf->data + at, &value, sizeof(value));
    g_assert_null(open_bytes(elf->data, elf->len, &err));
    g_assert_error(err, GS_ERROR, (int)code);
}

TEST(test_other_elf, "/image/elf-of-other-kind")
{
    change_elf(offsetof(Elf64_Ehdr, e_machine), EM_S390,
               GS_ERROR_UNSUPPORTED);
    change_elf(EI_CLASS, ELFCLASS32 | ELFDATA2LSB << 8,
               GS_ERROR_UNSUPPORTED);
    change_elf(EI_CLASS, ELFCLASS64 | ELFDATA2MSB << 8,
               GS_ERROR_UNSUPPORTED);
    change_elf(offsetof(Elf64_Ehdr, e_type), ET_REL, GS_ERROR_FORMAT);
    change_elf(offsetof(Elf64_Ehdr, e_shnum), 0, GS_ERROR_FORMAT);
}

/* Sections that are not all in the file do not exist. */
TEST(test_section_outside, "/image/section-outside-file")
{
    g_autoptr(GByteArray) elf = pack_elf(0);
    Elf64_Ehdr h;
    Elf64_Shdr *sh;
    g_autoptr(GsImage) img = NULL;
    uint64_t va;
    const uint8_t *data;
    size_t len;

    memcpy(&h, elf->data, sizeof(h));
    sh = (Elf64_Shdr *)(elf->data + h.e_shoff);
    sh[2].sh_size = UINT64_MAX - 0x10000;
    sh[3].sh_size = UINT64_MAX;
    img = open_bytes(elf->data, elf->len, NULL);
    g_assert_nonnull(img);
    g_assert_false(gs_image_section(img, ".text", &va, &data, &len));
    g_assert_true(gs_image_section(img, ".data", &va, &data, &len));
    g_assert_cmpuint(img->sections->len, ==, 2);
}

/* Thousands of sections of the same bytes are searched as often. */
TEST(test_overlapping_sections, "/image/overlapping-sections")
{
    g_autoptr(GByteArray) elf = pack_elf(0);
    g_autoptr(GError) err = NULL;
    g_autoptr(GsImage) img = NULL;
    Elf64_Ehdr h;
    Elf64_Shdr sh;

    memcpy(&h, elf->data, sizeof(h));
    memcpy(&sh, elf->data + h.e_shoff + sizeof(sh), sizeof(sh));
    h.e_shoff = elf->len;
    h.e_shnum = 12;
    memcpy(elf->data, &h, sizeof(h));
    for (unsigned i = 0; i < h.e_shnum; i++) {
        g_byte_array_append(elf, (const uint8_t *)&sh, sizeof(sh));
    }
    img = open_bytes(elf->data, elf->len, &err);
    g_assert_null(img);
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
    g_assert_true(g_str_has_prefix(err->message, "ELF: sections of"));
}

/* Thousands of sections may name ends of one string: names that nobody asks
 * for are not kept. */
TEST(test_long_names, "/image/long-names")
{
    g_autofree char *kept = g_strnfill(64, 'k');
    g_autofree char *not_kept = g_strnfill(65, 'n');
    g_autoptr(GBytes) elf = NULL;
    g_autoptr(GsImage) img = NULL;
    const uint8_t *data;
    uint64_t va;
    size_t len;
    ElfWriter w;

    elf_writer_start(&w);
    elf_writer_add(&w, kept, TEXT, 0, "kept", 4);
    elf_writer_add(&w, not_kept, DATA, 0, "not", 3);
    elf = elf_writer_finish(&w);
    img = gs_image_new(elf, NULL);
    g_assert_nonnull(img);
    g_assert_cmpuint(img->sections->len, ==, 2);
    g_assert_true(gs_image_section(img, kept, &va, &data, &len));
    g_assert_false(gs_image_section(img, not_kept, &va, &data, &len));
    g_assert_cmpstr(gs_image_nth_section(img, 1)->name, ==, "");
}

TEST(test_debug_dropped, "/image/debug-dropped")
{
    g_autoptr(GByteArray) elf = pack_elf(0);
    g_autoptr(GsImage) img = NULL;
    g_autofree uint8_t *debug = g_malloc0(10 * LEN);

    /* behind everything: as debug sections are, not loaded */
    g_byte_array_append(elf, debug, 10 * LEN);
    img = open_bytes(elf->data, elf->len, NULL);
    check_elf(img);
}

TEST(test_raw, "/image/raw-gzip")
{
    g_autofree uint8_t *raw = g_malloc0(0x1000);
    g_autoptr(GByteArray) packed = NULL;
    g_autoptr(GsImage) img = NULL;
    uint8_t magic[4];

    memcpy(raw + 0x38, "ARM\x64", 4);
    packed = pack_gzip(raw, 0x1000);
    img = open_bytes(packed->data, packed->len, NULL);
    g_assert_nonnull(img);
    g_assert_true(img->raw);
    gs_image_rebase(img, 0xffff800080000000ull);
    g_assert_true(gs_image_read(img, 0xffff800080000038ull, magic, 4));
    g_assert_cmpmem(magic, 4, "ARM\x64", 4);
}

TEST(test_zboot, "/image/efi-zboot")
{
    g_autoptr(GByteArray) packed = pack_elf(5);
    g_autoptr(GByteArray) z = g_byte_array_new();
    g_autoptr(GsImage) img = NULL;
    uint32_t head[16] = { 'M' | 'Z' << 8, 0, 64, packed->len };

    memcpy(&head[1], "zimg", 4);
    g_byte_array_append(z, (uint8_t *)head, sizeof(head));
    g_byte_array_append(z, packed->data, packed->len);
    img = open_bytes(z->data, z->len, NULL);
    check_elf(img);
}

static void add_packer_tests(const char *name, GTestDataFunc fn)
{
    for (size_t i = 0; i < G_N_ELEMENTS(packers); i++) {
        g_autofree char *path = g_strdup_printf("/image/%s/%s", name,
                                                packers[i].name);

        test_add(path, NULL, fn, GSIZE_TO_POINTER(i));
    }
}

int main(int argc, char **argv)
{
    add_packer_tests("bzimage", test_bzimage);
    add_packer_tests("bare", test_bare);
    add_packer_tests("truncated", test_truncated);
    return test_run(argc, argv);
}
