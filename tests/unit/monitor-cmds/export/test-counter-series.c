/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counter series: few values are all kept; of many the extremes, the first and
 * the last, and each stretch has its share of the points. */
#include "tests/lib/test-main.h"

#include "monitor-cmds/export/timeline.h"

static const McPoint *at(const GArray *points, unsigned i)
{
    return &g_array_index(points, McPoint, i);
}

TEST(few_values_are_all_kept, "/counter-series/few")
{
    static const uint64_t values[] = { 3, 9, 4, 5, 5, 1, 0 };
    static const uint64_t want[] = { 3, 9, 4, 5, 1, 0 };
    g_autoptr(McCounterSeries) s = mc_counter_series_new(16);
    const GArray *points;

    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        mc_counter_series_add(s, 10 * i, values[i]);
    }
    points = mc_counter_series_points(s);
    g_assert_cmpuint(points->len, ==, G_N_ELEMENTS(want));
    for (unsigned i = 0; i < points->len; i++) {
        g_assert_cmpuint(at(points, i)->value, ==, want[i]);
    }
    g_assert_cmpuint(at(points, 4)->us, ==, 50);
}

TEST(a_series_can_be_empty, "/counter-series/empty")
{
    g_autoptr(McCounterSeries) s = mc_counter_series_new(8);

    g_assert_cmpuint(mc_counter_series_points(s)->len, ==, 0);
}

/* Check the points of @n values, of which @value[@n] are what was added. */
static void check(const GArray *points, const uint64_t *value, unsigned n,
                  unsigned max)
{
    uint64_t least = UINT64_MAX, most = 0, low = UINT64_MAX, high = 0;

    g_assert_cmpuint(points->len, <=, max);
    for (unsigned i = 0; i < n; i++) {
        least = MIN(least, value[i]);
        most = MAX(most, value[i]);
    }
    for (unsigned i = 0; i < points->len; i++) {
        const McPoint *p = at(points, i);

        g_assert_cmpuint(p->us, <, n);
        g_assert_cmpuint(p->value, ==, value[p->us]);
        g_assert_true(!i || at(points, i - 1)->us < p->us);
        low = MIN(low, p->value);
        high = MAX(high, p->value);
    }
    g_assert_cmpuint(low, ==, least);
    g_assert_cmpuint(high, ==, most);
    g_assert_cmpuint(at(points, 0)->value, ==, value[0]);
    g_assert_cmpuint(at(points, points->len - 1)->value, ==, value[n - 1]);
}

TEST(extremes_first_and_last_are_kept, "/counter-series/extremes")
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);

    for (unsigned run = 0; run < 2000; run++) {
        unsigned max = g_rand_int_range(rand, 8, 64);
        unsigned n = g_rand_int_range(rand, 1, 3000);
        g_autofree uint64_t *value = g_new(uint64_t, n);
        g_autoptr(McCounterSeries) s = mc_counter_series_new(max);

        for (unsigned i = 0; i < n; i++) {
            value[i] = g_rand_int_range(rand, 0, run % 2 ? 5 : 1000000);
            mc_counter_series_add(s, i, value[i]);
        }
        check(mc_counter_series_points(s), value, n, max);
    }
}

TEST(a_single_peak_is_kept, "/counter-series/peak")
{
    g_autoptr(McCounterSeries) s = mc_counter_series_new(2000);
    const GArray *points;
    unsigned found = 0;

    for (unsigned i = 0; i < 1000000; i++) {
        mc_counter_series_add(s, i, i == 777777 ? 1 << 30 : i % 7);
    }
    points = mc_counter_series_points(s);
    g_assert_cmpuint(points->len, <=, 2000);
    for (unsigned i = 0; i < points->len; i++) {
        found += at(points, i)->value == 1 << 30 && at(points, i)->us == 777777;
    }
    g_assert_cmpuint(found, ==, 1);
}

/* A tenth of the values has about a tenth of the points, wherever it is. */
TEST(all_stretches_have_points, "/counter-series/stretches")
{
    g_autoptr(McCounterSeries) s = mc_counter_series_new(2000);
    unsigned n[10] = { 0 };
    const GArray *points;

    for (unsigned i = 0; i < 1000000; i++) {
        mc_counter_series_add(s, i, i * 7919u % 1000);
    }
    points = mc_counter_series_points(s);
    g_assert_cmpuint(points->len, >=, 900);
    for (unsigned i = 0; i < points->len; i++) {
        n[at(points, i)->us / 100000]++;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(n); i++) {
        g_assert_cmpuint(n[i], >=, points->len / 20);
        g_assert_cmpuint(n[i], <=, points->len / 5);
    }
}
