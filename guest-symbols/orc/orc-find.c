/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the ORC tables in a kernel's image without a symbol: a kernel without
 * CONFIG_KALLSYMS_ALL has no labels around its data. Called when a kernel is
 * opened, in that thread; no state.
 *
 * include/asm-generic/vmlinux.lds.h places the tables side by side:
 *
 *     .orc_header (20 bytes, since 6.4)  .orc_unwind_ip  .orc_unwind
 *
 * The addresses are sorted since 5.6, begin at the start of the image, and
 * ascend for as many elements as the table has. So the longest run of ascending
 * addresses that begins there is searched for; the entries behind it must look
 * like frames.
 */
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/base/bytes.h"

#define HEADER_SIZE     20
#define ENTRY_SIZE      6
#define ENTRIES_MIN     1024
/* The first function is so near to the start of the image. */
#define FIRST_WITHIN    (64u << 10)
/* No code is so near to the table. */
#define NEAR            4096

/* Return the address that the element at @pos stands for; 0 if it is not the
 * address of code in the image. */
static uint64_t code_at(const GsSection *s, size_t pos)
{
    int64_t off = (int32_t)gs_u32_at(s->data + pos);
    uint64_t at = pos + off;

    return (off > NEAR || off < -NEAR) && at < s->len ? s->va + at : 0;
}

/* Count the elements from @pos on whose addresses ascend. */
static size_t run_at(const GsSection *s, size_t pos)
{
    uint64_t before = 0;
    size_t n = 0;

    for (; s->len - pos >= 4; pos += 4, n++) {
        uint64_t va = code_at(s, pos);

        if (!va || va < before) {
            break;
        }
        before = va;
    }
    return n;
}

/* Are @n entries at @pos mostly call frames that are based on sp? The number of
 * sp is 5, or 3 since 7.1. */
static bool are_frames(const GsSection *s, size_t pos, size_t n)
{
    size_t frames = 0;

    if (n > (s->len - pos) / ENTRY_SIZE) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned sp = s->data[pos + i * ENTRY_SIZE + 4] & 0xf;

        frames += sp == 5 || sp == 3;
    }
    return frames > n / 2;
}

static void set_raw(const GsSection *s, size_t pos, size_t n, GsOrcRaw *out)
{
    *out = (GsOrcRaw) {
        .ip_va = s->va + pos,
        .ip = s->data + pos, .ip_len = 4 * n,
        .orc = s->data + pos + 4 * n, .orc_len = ENTRY_SIZE * n,
    };
    if (pos >= HEADER_SIZE) {
        out->header = out->ip - HEADER_SIZE;
        out->header_len = HEADER_SIZE;
    }
}

bool gs_orc_find(const GsSection *s, GsOrcRaw *out)
{
    for (size_t pos = -s->va & 3; s->data && pos < s->len &&
         s->len - pos >= 4;) {
        uint64_t first = code_at(s, pos);
        size_t n = first && first - s->va < FIRST_WITHIN ? run_at(s, pos) : 0;

        if (n >= ENTRIES_MIN && are_frames(s, pos + 4 * n, n)) {
            set_raw(s, pos, n, out);
            return true;
        }
        pos += 4 * MAX(n, 1);
    }
    return false;
}
