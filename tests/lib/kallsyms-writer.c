/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/kallsyms-writer.h"

#include "tests/lib/elf-writer.h"

#include <stdbool.h>
#include <string.h>

/* The token table: codes that no name contains, and their text. */
static const char *const ks_tokens[256] = {
    [0x01] = "kmem_cache_", [0x02] = "func_", [0x80] = "__", [0xff] = "alloc",
};

void ks_put(GByteArray *out, uint64_t v, unsigned size)
{
    g_byte_array_append(out, (const uint8_t *)&v, size);
}

static void ks_align(KsWriter *w)
{
    while (w->out->len & (w->order == KS_7_0 ? 3 : 7)) {
        ks_put(w->out, 0, 1);
    }
}

static void ks_put_name(GByteArray *out, const KsSymbol *sym)
{
    g_autofree char *full = g_strdup_printf("%c%s", sym->type, sym->name);
    g_autoptr(GByteArray) codes = g_byte_array_new();

    for (const char *s = full; *s;) {
        unsigned best = (uint8_t)*s;

        for (unsigned i = 0; i < 256; i++) {
            if (ks_tokens[i] && g_str_has_prefix(s, ks_tokens[i])) {
                best = i;
            }
        }
        ks_put(codes, best, 1);
        s += ks_tokens[best] ? strlen(ks_tokens[best]) : 1;
    }
    if (codes->len >= 0x80) {
        ks_put(out, 0x80 | (codes->len & 0x7f), 1);
        ks_put(out, codes->len >> 7, 1);
    } else {
        ks_put(out, codes->len, 1);
    }
    g_byte_array_append(out, codes->data, codes->len);
}

static void ks_put_names(KsWriter *w)
{
    unsigned word = w->order == KS_4_6 ? 8 : 4;
    g_autofree uint64_t *markers = g_new(uint64_t, w->n / 256 + 1);
    size_t start;

    ks_align(w);
    ks_put(w->out, w->n, word);
    ks_align(w);
    start = w->out->len;
    for (uint32_t i = 0; i < w->n; i++) {
        if (i % 256 == 0) {
            markers[i / 256] = w->out->len - start;
        }
        ks_put_name(w->out, &w->syms[i]);
    }
    ks_align(w);
    w->markers = w->out->len;
    for (uint32_t i = 0; i < (w->n + 255) / 256; i++) {
        ks_put(w->out, markers[i], word);
    }
}

/* The order by name. No reader of ours uses it, so any order will do. */
static void ks_put_seqs(KsWriter *w)
{
    ks_align(w);
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t seq = w->n - 1 - i;

        ks_put(w->out, seq >> 16, 1);
        ks_put(w->out, seq >> 8, 1);
        ks_put(w->out, seq, 1);
    }
}

static void ks_put_tokens(KsWriter *w)
{
    uint16_t index[256];

    ks_align(w);
    w->tokens = w->out->len;
    for (unsigned i = 0; i < 256; i++) {
        bool plain = g_ascii_isalnum(i) || i == '_' || i == '.';
        char self[2] = { plain ? i : 0, 0 };
        const char *text = ks_tokens[i] ? ks_tokens[i] : self;

        index[i] = w->out->len - w->tokens;
        g_byte_array_append(w->out, (const uint8_t *)text, strlen(text) + 1);
    }
    ks_align(w);
    g_byte_array_append(w->out, (const uint8_t *)index, sizeof(index));
}

static uint64_t ks_base(const KsWriter *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->syms[i].va >> 63) {
            return w->syms[i].va;
        }
    }
    return 0;
}

static void ks_put_addresses(KsWriter *w)
{
    uint64_t base = ks_base(w);

    ks_align(w);
    for (uint32_t i = 0; i < w->n; i++) {
        uint64_t va = w->syms[i].va;

        if (w->addresses == KS_ABSOLUTE) {
            ks_put(w->out, va, 8);
        } else if (w->addresses == KS_PLACE) {
            ks_put(w->out, va - (w->va + w->out->len), 4);
        } else if (w->addresses == KS_BASE_RELATIVE) {
            ks_put(w->out, va - base, 4);
        } else {
            ks_put(w->out, va >> 63 ? base - va - 1 : va, 4);
        }
    }
    if (w->addresses == KS_BASE_RELATIVE || w->addresses == KS_PERCPU) {
        ks_align(w);
        ks_put(w->out, base, 8);
    }
}

void ks_write(KsWriter *w)
{
    w->out = g_byte_array_new();
    if (w->order < KS_6_4) {
        ks_put_addresses(w);
        ks_put_names(w);
        if (w->order == KS_6_2) {
            ks_put_seqs(w);
        }
        ks_put_tokens(w);
    } else {
        ks_put_names(w);
        ks_put_tokens(w);
        ks_put_addresses(w);
        ks_put_seqs(w);
    }
    ks_align(w);
}

GBytes *ks_kernel(KsWriter *w, size_t text_len)
{
    g_autofree uint8_t *text = g_malloc(text_len);
    g_autoptr(GByteArray) ro = g_byte_array_new();
    ElfWriter elf;

    memset(text, 0xcc, text_len);
    w->va = KS_RODATA + KS_TABLE;
    ks_write(w);
    g_byte_array_append(ro, (const uint8_t *)KS_DRAFT, sizeof(KS_DRAFT));
    while (ro->len < KS_BANNER_AT) {
        ks_put(ro, 0, 1);
    }
    g_byte_array_append(ro, (const uint8_t *)KS_BANNER, sizeof(KS_BANNER));
    while (ro->len < KS_TABLE) {
        ks_put(ro, 0x55, 1);
    }
    g_byte_array_append(ro, w->out->data, w->out->len);
    elf_writer_start(&elf);
    elf_writer_add(&elf, ".text", KS_TEXT, SHF_EXECINSTR, text, text_len);
    elf_writer_add(&elf, ".rodata", KS_RODATA, 0, ro->data, ro->len);
    return elf_writer_finish(&elf);
}
