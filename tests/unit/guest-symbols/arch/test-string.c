/* SPDX-License-Identifier: GPL-2.0-or-later */
/* String instructions: the bytes are what binutils assembles. */
#include "tests/lib/test-main.h"
#include "guest-symbols/gs.h"

#include <string.h>

/* unit 0: gs_arch_repeats() says no */
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

static void test_samples(void)
{
    const GsArch *x86_64 = gs_arch_nth(0);

    for (size_t i = 0; i < G_N_ELEMENTS(samples); i++) {
        const Sample *s = &samples[i];
        GsString found = { 0 };
        bool is = gs_arch_repeats(x86_64, s->bytes, s->len, &found);

        if (is != (s->unit > 0) || found.unit != s->unit ||
            found.loads != s->loads) {
            g_error("%s: unit %u", s->text, found.unit);
        }
        g_assert_false(is && gs_arch_repeats(x86_64, s->bytes, s->len - 1,
                                             &found));
    }
    g_assert_false(gs_arch_repeats(x86_64, NULL, 0, &(GsString) { 0 }));
}

static void test_other_architectures_have_none(void)
{
    const uint8_t bytes[] = { 0xf3, 0xa4, 0x00, 0x00 }, std[] = { 0xfd };

    for (unsigned a = 1; gs_arch_nth(a); a++) {
        g_assert_false(gs_arch_repeats(gs_arch_nth(a), bytes, sizeof(bytes),
                                       &(GsString) { 0 }));
        g_assert_false(gs_arch_counts_down(gs_arch_nth(a), std, sizeof(std)));
    }
}

static void test_std_counts_down(void)
{
    const uint8_t std[] = { 0xfd }, cld[] = { 0xfc };

    g_assert_true(gs_arch_counts_down(gs_arch_nth(0), std, sizeof(std)));
    g_assert_false(gs_arch_counts_down(gs_arch_nth(0), cld, sizeof(cld)));
    g_assert_false(gs_arch_counts_down(gs_arch_nth(0), NULL, 0));
}

/* The byte of std in another instruction is no std; half an instruction is not
 * known. */
static void test_functions_count_down(void)
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
        g_assert_cmpint(gs_arch_may_count_down(gs_arch_nth(0), rows[i].code,
                                               rows[i].len),
                        ==, rows[i].down);
        g_assert_false(gs_arch_may_count_down(gs_arch_nth(1), rows[i].code,
                                              rows[i].len));
    }
}

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/string/samples", test_samples },
        { "/string/other-architectures-have-none",
          test_other_architectures_have_none },
        { "/string/std-counts-down", test_std_counts_down },
        { "/string/functions-count-down", test_functions_count_down },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
