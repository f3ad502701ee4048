/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtSlabWitnesses, with addresses as a randomised kernel has them: the struct
 * pages are found for each size of struct page, and only if all calls agree.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kernel/witnesses.h"

#define DIRECT  0xffff9b2440000000ull
#define VMEMMAP 0xfffff1e9c0000000ull
#define N       64

/* Free an object in page @page of the slab at page frame @pfn, which is a
 * multiple of its pages. */
static void free_object(KtSlabWitnesses *w, uint32_t bytes, unsigned pfn,
                        unsigned page)
{
    kt_slab_witnesses_freed(w, VMEMMAP + (uint64_t)pfn * bytes,
                            DIRECT + (pfn + page) * 4096ull + 64);
}

/* Slabs of 1, 2, 4 and 8 pages. */
static void free_many(KtSlabWitnesses *w, uint32_t bytes)
{
    for (unsigned i = 0; i < N; i++) {
        unsigned pages = 1u << i % 4;

        free_object(w, bytes, 1000 + 8 * i + (pages == 1), i % pages);
    }
}

TEST(place_is_found, "/slab-witnesses/place-is-found")
{
    for (unsigned i = 0; i < KT_PAGE_SIZES; i++) {
        KtSlabWitnesses w = { .page_shift = 12 };
        uint32_t bytes = kt_page_sizes[i];
        const KtSlabBase *found;

        free_many(&w, bytes);
        found = kt_slab_witnesses_learned(&w);
        g_assert_nonnull(found);
        g_assert_cmpuint(found->struct_page, ==, bytes);
        g_assert_cmphex(found->base + (DIRECT >> 12) * bytes, ==, VMEMMAP);
    }
}

/* A slab of two pages could be one of one page that is elsewhere. */
TEST(more_than_one_place_is_possible,
     "/slab-witnesses/more-than-one-place-is-possible")
{
    KtSlabWitnesses w = { .page_shift = 12 };

    for (unsigned i = 0; i < N; i++) {
        free_object(&w, 64, 2 * i, 1);
    }
    g_assert_cmpuint(w.seen, ==, N);
    g_assert_cmpuint(w.n, >, 1);
    g_assert_null(kt_slab_witnesses_learned(&w));
}

TEST(one_page_is_one_witness, "/slab-witnesses/one-page-is-one-witness")
{
    KtSlabWitnesses w = { .page_shift = 12 };

    for (unsigned i = 0; i < N; i++) {
        free_object(&w, 64, 7, 0);
    }
    g_assert_cmpuint(w.seen, ==, 1);
    g_assert_null(kt_slab_witnesses_learned(&w));
}

TEST(contradiction_is_final, "/slab-witnesses/contradiction-is-final")
{
    KtSlabWitnesses w = { .page_shift = 12 };

    free_many(&w, 64);
    g_assert_nonnull(kt_slab_witnesses_learned(&w));
    kt_slab_witnesses_freed(&w, VMEMMAP + 12345, DIRECT);
    g_assert_true(w.contradicted);
    free_many(&w, 64);
    g_assert_null(kt_slab_witnesses_learned(&w));
}

/* Arguments of another function are no witnesses. */
TEST(what_is_no_kernel_address_is_ignored,
     "/slab-witnesses/what-is-no-kernel-address-is-ignored")
{
    KtSlabWitnesses w = { .page_shift = 12 };

    kt_slab_witnesses_freed(&w, 0, DIRECT);
    kt_slab_witnesses_freed(&w, VMEMMAP, 0x7fff00000000);
    g_assert_cmpuint(w.seen, ==, 0);
}
