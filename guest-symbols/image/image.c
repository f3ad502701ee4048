/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the bytes of a kernel file to sections with link-time addresses.
 *
 * A file is a nest of wrappers around an ELF vmlinux or a raw "Image":
 *
 *     bzImage { setup, payload { gzip stream { ELF vmlinux } } }
 *     EFI zboot { zstd stream { raw Image } }
 *
 * gs_image_new() removes one wrapper after the other, then lists the loaded
 * sections. Called by kernel-open.c while a kernel is opened; does not change
 * afterwards, so there are no locks.
 */
#include "guest-symbols/image/image-internal.h"
#include "guest-symbols/base/bytes.h"

#include <elf.h>
#include <string.h>

#define WRAPPERS_MAX    4

/* A wrapper: @is recognises it, @peel returns the bytes inside. */
typedef struct Wrapper {
    bool (*is)(const uint8_t *data, size_t len);
    GBytes *(*peel)(GBytes *outer, GError **errp);
} Wrapper;

/* The innermost form: @fill lists its sections. */
typedef struct Form {
    bool (*is)(const uint8_t *data, size_t len);
    bool (*fill)(GsImage *img, GError **errp);
} Form;

static GBytes *unpack_part(GBytes *outer, uint64_t at, uint64_t len,
                           const char *what, GError **errp)
{
    size_t total;
    const uint8_t *data = g_bytes_get_data(outer, &total);

    if (at > total || len > total - at) {
        return gs_fail(errp, GS_ERROR_FORMAT, "%s: payload at 0x%"
                       G_GINT64_MODIFIER "x of 0x%" G_GINT64_MODIFIER
                       "x bytes lies beyond the file's 0x%zx", what, at, len,
                       total);
    }
    if (gs_has_magic(data + at, len, 0, ELFMAG)) {
        return g_bytes_new_from_bytes(outer, at, len);
    }
    if (!gs_compression_name(data + at, len)) {
        return gs_fail(errp, GS_ERROR_UNSUPPORTED, "%s: payload at 0x%"
                       G_GINT64_MODIFIER "x is compressed in an unknown way",
                       what, at);
    }
    return gs_decompress(data + at, len, errp);
}

/* ---- bzImage (Documentation/arch/x86/boot.rst) ---- */

#define BZ_SETUP_SECTS      0x1f1
#define BZ_HEADER           0x202
#define BZ_VERSION          0x206
#define BZ_PAYLOAD_OFFSET   0x248

static bool is_bzimage(const uint8_t *data, size_t len)
{
    return gs_has_magic(data, len, BZ_HEADER, "HdrS");
}

static GBytes *peel_bzimage(GBytes *outer, GError **errp)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(outer, &len);
    unsigned sects, version;
    uint32_t at, payload;
    GsBytes c;

    gs_bytes_init(&c, data, len, "bzImage setup header");
    gs_bytes_seek(&c, BZ_SETUP_SECTS);
    sects = gs_bytes_u8(&c);
    gs_bytes_seek(&c, BZ_VERSION);
    version = gs_bytes_u16(&c);
    gs_bytes_seek(&c, BZ_PAYLOAD_OFFSET);
    at = gs_bytes_u32(&c);
    payload = gs_bytes_u32(&c);
    if (!gs_bytes_check(&c, errp)) {
        return NULL;
    }
    if (version < 0x208) {
        return gs_fail(errp, GS_ERROR_UNSUPPORTED,
                       "bzImage: boot protocol %u.%02u is older than 2.08",
                       version >> 8, version & 0xff);
    }
    return unpack_part(outer, ((sects ? sects : 4) + 1) * 512ull + at,
                       payload, "bzImage", errp);
}

/* ---- EFI zboot (drivers/firmware/efi/libstub/zboot-header.S) ---- */

static bool is_zboot(const uint8_t *data, size_t len)
{
    return gs_has_magic(data, len, 0, "MZ") &&
           gs_has_magic(data, len, 4, "zimg");
}

static GBytes *peel_zboot(GBytes *outer, GError **errp)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(outer, &len);
    uint32_t at, payload;
    GsBytes c;

    gs_bytes_init(&c, data, len, "EFI zboot header");
    gs_bytes_seek(&c, 8);
    at = gs_bytes_u32(&c);
    payload = gs_bytes_u32(&c);
    if (!gs_bytes_check(&c, errp)) {
        return NULL;
    }
    return unpack_part(outer, at, payload, "EFI zboot", errp);
}

/* ---- a bare compressed stream ---- */

static bool is_compressed(const uint8_t *data, size_t len)
{
    return gs_compression_name(data, len) != NULL;
}

static GBytes *peel_compressed(GBytes *outer, GError **errp)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(outer, &len);

    return gs_decompress(data, len, errp);
}

static const Wrapper wrappers[] = {
    { is_bzimage, peel_bzimage },
    { is_zboot, peel_zboot },
    { is_compressed, peel_compressed },
};

/* ---- raw Image (arch/arm64 and arch/riscv, Documentation/arch) ---- */

#define RAW_MAGIC   0x38

static bool is_raw(const uint8_t *data, size_t len)
{
    return gs_has_magic(data, len, RAW_MAGIC, "ARM\x64") ||
           gs_has_magic(data, len, RAW_MAGIC, "RSC\x05");
}

static bool fill_raw(GsImage *img, GError **errp)
{
    GsSection sec = { .name = "", .exec = true };

    sec.data = g_bytes_get_data(img->bytes, &sec.len);
    g_array_append_val(img->sections, sec);
    img->machine = gs_has_magic(sec.data, sec.len, RAW_MAGIC, "ARM")
                   ? EM_AARCH64 : EM_RISCV;
    img->raw = true;
    return true;
}

static const Form forms[] = {
    { gs_image_is_elf, gs_image_fill_elf },
    { is_raw, fill_raw },
};

/* ---- putting it together ---- */

/* Takes ownership of @bytes; returns the bytes inside all wrappers. */
static GBytes *peel(GBytes *bytes, GError **errp)
{
    for (unsigned depth = 0; depth < WRAPPERS_MAX; depth++) {
        size_t len;
        const uint8_t *data = g_bytes_get_data(bytes, &len);
        const Wrapper *w = NULL;
        GBytes *inner;

        for (size_t i = 0; !w && i < G_N_ELEMENTS(wrappers); i++) {
            w = wrappers[i].is(data, len) ? &wrappers[i] : NULL;
        }
        if (!w) {
            return bytes;
        }
        inner = w->peel(bytes, errp);
        g_bytes_unref(bytes);
        if (!inner) {
            return NULL;
        }
        bytes = inner;
    }
    return bytes;
}

static int by_address(const void *a, const void *b)
{
    const GsSection *x = a, *y = b;

    return x->va < y->va ? -1 : x->va > y->va;
}

/*
 * A vmlinux with debug information is ten times its loaded part. Keeps only
 * that part when much would be saved.
 */
static void drop_unused(GsImage *img)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(img->bytes, &len);
    size_t used = 0;
    GBytes *kept;

    for (unsigned i = 0; i < img->sections->len; i++) {
        GsSection *s = &g_array_index(img->sections, GsSection, i);

        if (s->data) {
            used = MAX(used, (size_t)(s->data - data) + s->len);
        }
    }
    if (used > len / 2) {
        return;
    }
    kept = g_bytes_new(data, used);
    for (unsigned i = 0; i < img->sections->len; i++) {
        GsSection *s = &g_array_index(img->sections, GsSection, i);

        if (s->data) {
            s->data = (const uint8_t *)g_bytes_get_data(kept, NULL) +
                      (s->data - data);
        }
    }
    g_bytes_unref(img->bytes);
    img->bytes = kept;
}

GsImage *gs_image_new(GBytes *bytes, GError **errp)
{
    g_autoptr(GsImage) img = g_new0(GsImage, 1);
    const Form *form = NULL;
    const uint8_t *data;
    size_t len;

    img->names = g_string_chunk_new(1024);
    img->sections = g_array_new(FALSE, FALSE, sizeof(GsSection));
    img->bytes = peel(g_bytes_ref(bytes), errp);
    if (!img->bytes) {
        return NULL;
    }
    data = g_bytes_get_data(img->bytes, &len);
    for (size_t i = 0; !form && i < G_N_ELEMENTS(forms); i++) {
        form = forms[i].is(data, len) ? &forms[i] : NULL;
    }
    if (!form) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "neither bzImage, ELF vmlinux, raw Image nor "
                       "System.map");
    }
    if (!form->fill(img, errp)) {
        return NULL;
    }
    g_array_sort(img->sections, by_address);
    drop_unused(img);
    return g_steal_pointer(&img);
}

GsImage *gs_image_new_memory(GsGuestCopy *copy)
{
    GsImage *img = g_new0(GsImage, 1);
    GsSection all = { .name = "", .exec = true };

    img->names = g_string_chunk_new(1024);
    img->sections = g_array_new(FALSE, FALSE, sizeof(GsSection));
    img->copy = copy;
    all.va = gs_guest_copy_start(copy, &all.len);
    all.data = gs_guest_copy_data(copy);
    g_array_append_val(img->sections, all);
    return img;
}

bool gs_image_add_section(GsImage *img, const char *name, uint64_t start,
                          uint64_t end, bool exec)
{
    GsSection *all = &g_array_index(img->sections, GsSection, 0);
    GsSection part = {
        .name = g_string_chunk_insert_const(img->names, name),
        .va = start, .len = end - start, .exec = exec,
    };

    if (start < all->va || end <= start || end - all->va > all->len) {
        return false;
    }
    part.data = all->data + (start - all->va);
    all->exec &= !exec;
    g_array_append_val(img->sections, part);
    return true;
}

void gs_image_free(GsImage *img)
{
    if (!img) {
        return;
    }
    g_clear_pointer(&img->bytes, g_bytes_unref);
    g_string_chunk_free(img->names);
    g_array_free(img->sections, TRUE);
    g_free(img);
}

const GsSection *gs_image_nth_section(const GsImage *img, size_t i)
{
    return &g_array_index(img->sections, GsSection, i);
}

bool gs_image_section(const GsImage *img, const char *name, uint64_t *va,
                      const uint8_t **data, size_t *len)
{
    for (size_t i = 0; i < img->sections->len; i++) {
        const GsSection *s = gs_image_nth_section(img, i);

        if (s->data && !strcmp(s->name, name)) {
            gs_guest_copy_need(img->copy, s->va, s->len);
            *va = s->va;
            *data = s->data;
            *len = s->len;
            return true;
        }
    }
    return false;
}

/* The section with contents that holds @va. */
static const GsSection *section_at(const GsImage *img, uint64_t va)
{
    for (size_t i = 0; i < img->sections->len; i++) {
        const GsSection *s = gs_image_nth_section(img, i);

        if (s->data && va >= s->va && va - s->va < s->len) {
            return s;
        }
    }
    return NULL;
}

bool gs_image_read(const GsImage *img, uint64_t va, void *buf, size_t len)
{
    uint8_t *to = buf;

    while (len) {
        const GsSection *s = section_at(img, va);
        size_t n;

        if (!s) {
            return false;
        }
        n = MIN(len, s->len - (va - s->va));
        gs_guest_copy_need(img->copy, va, n);
        memcpy(to, s->data + (va - s->va), n);
        to += n;
        va += n;
        len -= n;
    }
    return true;
}

void gs_image_rebase(GsImage *img, uint64_t va)
{
    if (img->raw) {
        g_array_index(img->sections, GsSection, 0).va = va;
    }
}
