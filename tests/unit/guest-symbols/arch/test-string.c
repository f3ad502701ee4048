/* SPDX-License-Identifier: GPL-2.0-or-later */
/* String instructions: the bytes are what binutils assembles. */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch-internal.h"

#include <string.h>

/* unit 0: does not repeat */
typedef struct Sample {
    const char *text;
    uint8_t bytes[8];
    size_t len;
    unsigned unit;
    bool loads;
} Sample;

static const Sample samples[] = {
    { "rep movsb", { 0xf3, 0xa4 }, 2, 1, true },
    { "rep movsw", { 0x66, 0xf3, 0xa5 }, 3, 2, true },
    { "rep movsl", { 0xf3, 0xa5 }, 2, 4, true },
    { "rep movsq", { 0xf3, 0x48, 0xa5 }, 3, 8, true },
    { "rep stosb", { 0xf3, 0xaa }, 2, 1, false },
    { "rep stosw", { 0xf3, 0x66, 0xab }, 3, 2, false },
    { "rep stosl", { 0xf3, 0xab }, 2, 4, false },
    { "rep stosq", { 0xf3, 0x48, 0xab }, 3, 8, false },
    { "movsb", { 0xa4 }, 1, 0, false },
    { "stosq", { 0x48, 0xab }, 2, 0, false },
    { "repz cmpsb", { 0xf3, 0xa6 }, 2, 0, false },
    { "repnz scasb", { 0xf2, 0xae }, 2, 0, false },
    { "rep lodsb", { 0xf3, 0xac }, 2, 0, false },
    { "rep movsb %gs:(%rsi),(%rdi)", { 0xf3, 0x65, 0xa4 }, 3, 0, false },
    { "rep movsb (%esi),(%edi)", { 0xf3, 0x67, 0xa4 }, 3, 0, false },
    { "pause", { 0xf3, 0x90 }, 2, 0, false },
    { "movdqu (%rax),%xmm0", { 0xf3, 0x0f, 0x6f, 0x00 }, 4, 0, false },
};

static const GsStringRules *const rules = &gs_strings_x86_64;

TEST(test_samples, "/string/samples")
{
    for (size_t i = 0; i < G_N_ELEMENTS(samples); i++) {
        const Sample *s = &samples[i];
        GsString found = { 0 };
        bool is = rules->repeats(s->bytes, s->len, &found);

        if (is != (s->unit > 0) || found.unit != s->unit ||
            found.loads != s->loads) {
            g_error("%s: unit %u", s->text, found.unit);
        }
        g_assert_false(is && rules->repeats(s->bytes, s->len - 1, &found));
    }
    g_assert_false(rules->repeats(NULL, 0, &(GsString) { 0 }));
}

TEST(test_std_counts_down, "/string/std-counts-down")
{
    const uint8_t std[] = { 0xfd }, cld[] = { 0xfc };

    g_assert_true(rules->counts_down(std, sizeof(std)));
    g_assert_false(rules->counts_down(cld, sizeof(cld)));
    g_assert_false(rules->counts_down(NULL, 0));
}

/* The byte of std in another instruction is no std; half an instruction is not
 * known. */
TEST(test_functions_count_down, "/string/functions-count-down")
{
    static const struct {
        uint8_t code[8];
        size_t len;
        bool down;
    } rows[] = {
        { { 0 }, 0, false },
        { { 0xe8, 0xfd, 0xfd, 0xff, 0xff, 0x90 }, 6, false },
        { { 0x48, 0x8b, 0x7d, 0xfd, 0xfc }, 5, false },
        { { 0x48, 0x8b, 0x7d, 0xfd, 0xfd, 0xeb, 0x00 }, 7, true },
        { { 0xfd, 0xfc, 0x90 }, 3, true },
        { { 0x90, 0xe8, 0x00, 0x00 }, 4, true },
        { { 0x06 }, 1, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpint(rules->may_count_down(rows[i].code, rows[i].len), ==,
                        rows[i].down);
    }
}
