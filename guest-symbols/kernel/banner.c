/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the "Linux version ..." line, see kernel.h. Runs while a kernel is
 * opened, in that thread; no state. */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/image/guest-copy.h"

#include <string.h>

#define BANNER_MAX  512
#define TRIES_MAX   64      /* of what begins like a banner; kernels have 2 */

static const char start[] = "Linux version ";

/* The line's printable part at @va, or NULL. */
static char *banner_at(const GsImage *img, uint64_t va)
{
    char text[BANNER_MAX];
    size_t n = 0;

    while (n < sizeof(text) - 1 && gs_image_read(img, va + n, &text[n], 1) &&
           g_ascii_isprint(text[n])) {
        n++;
    }
    text[n] = 0;
    return g_str_has_prefix(text, start) ? g_strndup(text, n) : NULL;
}

/* "#1": a build number, which a placeholder of the banner lacks. */
static bool has_build_number(const char *banner)
{
    const char *hash = strchr(banner, '#');

    return hash && g_ascii_isdigit(hash[1]);
}

/* Finds the best line that begins like a banner in one section. */
static char *search_section(const GsImage *img, const GsSection *s,
                            unsigned *tries, uint64_t *va)
{
    char *best = NULL;
    size_t pos = 0;

    gs_guest_copy_need(img->copy, s->va, s->len);
    while (s->data && pos < s->len && *tries) {
        const uint8_t *hit = memmem(s->data + pos, s->len - pos, start,
                                    strlen(start));
        uint64_t at = hit ? s->va + (hit - s->data) : 0;
        g_autofree char *banner = hit ? banner_at(img, at) : NULL;

        if (!hit) {
            break;
        }
        --*tries;
        pos = hit - s->data + strlen(start);
        if (banner && (!best || has_build_number(banner))) {
            g_free(best);
            best = g_steal_pointer(&banner);
            *va = at;
        }
        if (best && has_build_number(best)) {
            break;
        }
    }
    return best;
}

char *gs_banner_find(const GsImage *img, const GsSymtab *tab, uint64_t *va)
{
    GsSymbol sym;
    unsigned tries = TRIES_MAX;
    char *banner = NULL;

    if (gs_symtab_lookup(tab, "linux_banner", &sym)) {
        banner = banner_at(img, sym.va);
        *va = sym.va;
    }
    for (size_t i = 0; !banner && i < img->sections->len; i++) {
        banner = search_section(img, gs_image_nth_section(img, i), &tries,
                                va);
    }
    return banner;
}
