/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: kallsyms tables.
 *
 * Random bytes are hardly ever recognised as a table, so the input changes a
 * correct one. Bytes 0 to 2 select order, addresses and number of symbols. Then
 * each three bytes are a position and a value that is xored there. If byte 0 is
 * 255, the rest is the read-only data itself.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/elf-writer.h"
#include "tests/lib/kallsyms-writer.h"
#include "guest-symbols/symbols/symtab.h"

#define TEXT_LEN    0x1000
#define SYMBOLS     700
#define COUNTS      4

static const KsSymbol *symbols(void)
{
    static KsSymbol syms[SYMBOLS];

    for (unsigned i = 0; !syms[0].name && i < SYMBOLS; i++) {
        syms[SYMBOLS - 1 - i] = (KsSymbol) {
            KS_TEXT + (SYMBOLS - 1 - i) * 4, i % 2 ? 't' : 'T',
            SYMBOLS - 1 == i ? "_stext" : i == SYMBOLS - 60 ? "_etext" :
            i % 3 ? "kmem_cache_free" : "__func_9_alloc",
        };
    }
    return syms;
}

static bool count(const GsSymbol *sym, void *opaque)
{
    return ++*(unsigned *)opaque < 10000;
}

/* Check that the answers of an accepted table agree with each other. */
static void query(const GsSymtab *tab)
{
    static const char *const names[] = { "_stext", "kmem_cache_free", "" };
    g_auto(GStrv) near = gs_symtab_suggest(tab, "kmem_cach", 3);

    if (g_strv_length(near) > 3) {
        abort();
    }
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        GsSymbol sym, covering;
        unsigned n = 0;

        gs_symtab_foreach_named(tab, names[i], count, &n);
        if (gs_symtab_lookup(tab, names[i], &sym) != (n > 0) ||
            (n && strcmp(sym.name, names[i]))) {
            abort();
        }
        if (n && gs_symtab_symbolize(tab, sym.va, &covering) &&
            covering.va != sym.va) {
            abort();
        }
    }
}

static void decode(GBytes *elf)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsImage) img = gs_image_new(elf, NULL);
    g_autoptr(GsSymtab) tab = img ? gs_kallsyms_decode(img, &err) : NULL;

    if (tab) {
        query(tab);
    } else if (img && !err) {
        abort();
    }
}

static GBytes *plain(const uint8_t *data, size_t len)
{
    uint8_t text[64] = { 0 };
    ElfWriter elf;

    elf_writer_start(&elf);
    elf_writer_add(&elf, ".text", KS_TEXT, SHF_EXECINSTR, text, sizeof(text));
    elf_writer_add(&elf, ".rodata", KS_RODATA, 0, data, len);
    return elf_writer_finish(&elf);
}

/* A correct file, made once for each choice; its table is *@n bytes at *@at. */
static GBytes *good(const uint8_t *choice, size_t *at, size_t *n)
{
    static const uint32_t counts[COUNTS] = { 62, 256, 300, SYMBOLS };
    static struct {
        GBytes *elf;
        size_t at;
        size_t n;
    } made[KS_ORDER__COUNT][KS_ADDRESSES__COUNT][COUNTS], *m;
    KsWriter w = {
        .order = choice[0] % KS_ORDER__COUNT,
        .addresses = choice[1] % KS_ADDRESSES__COUNT,
        .syms = symbols(), .n = counts[choice[2] % COUNTS],
    };

    m = &made[w.order][w.addresses][choice[2] % COUNTS];
    if (!m->elf) {
        const uint8_t *bytes;
        size_t total;

        m->elf = ks_kernel(&w, TEXT_LEN);
        bytes = g_bytes_get_data(m->elf, &total);
        m->at = (const uint8_t *)memmem(bytes, total, w.out->data,
                                        w.out->len) - bytes;
        m->n = w.out->len;
        g_byte_array_unref(w.out);
    }
    *at = m->at;
    *n = m->n;
    return m->elf;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(GBytes) elf = NULL;
    g_autofree uint8_t *bytes = NULL;
    size_t total, at, n;
    GBytes *base;

    if (len < 3) {
        return 0;
    }
    if (data[0] == 255) {
        elf = plain(data + 1, len - 1);
        decode(elf);
        return 0;
    }
    base = good(data, &at, &n);
    total = g_bytes_get_size(base);
    bytes = g_memdup2(g_bytes_get_data(base, NULL), total);
    for (size_t i = 3; i + 3 <= len; i += 3) {
        bytes[at + (data[i] | data[i + 1] << 8) % n] ^= data[i + 2];
    }
    elf = g_bytes_new_static(bytes, total);
    decode(elf);
    return 0;
}
