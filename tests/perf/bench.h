/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a benchmark measures itself by.
 */
#ifndef PERF_BENCH_H
#define PERF_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Host memory that this process has, bytes. */
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

/* Processor time: what the host does besides is not what is measured. */
static inline uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

#endif /* PERF_BENCH_H */
