/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all benchmarks measure: memory of the process and processor time. */
#ifndef PERF_BENCH_H
#define PERF_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Return the resident memory of this process, in bytes. */
static inline uint64_t resident(void)
{
    unsigned long total = 0;
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f) {
        if (fscanf(f, "%lu %lu", &total, &pages) != 2) {
            pages = 0;
        }
        fclose(f);
    }
    return (uint64_t)pages * sysconf(_SC_PAGESIZE);
}

/* Return the processor time of this thread, in nanoseconds. Other processes do
 * not change it. */
static inline uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

#endif /* PERF_BENCH_H */
