/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The timer and the console of QEMU's virt machines. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

#include "layout.h"

#ifdef __aarch64__

#define GICD 0x08000000ul
#define GICC 0x08010000ul

static inline void poke(uint64_t at, uint32_t value)
{
    *(volatile uint32_t *)at = value;
}

/* The timer's interrupt wakes the CPU; it is never taken. */
static inline void timer_init(void)
{
    poke(GICD + 0x100, 1u << 27);
    poke(GICD, 1);
    poke(GICC + 4, 0xff);
    poke(GICC, 1);
}

static inline uint64_t timer_hz(void)
{
    uint64_t hz;

    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
}

static inline uint64_t timer_now(void)
{
    uint64_t now;

    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(now));
    return now;
}

static inline void timer_set(uint64_t at)
{
    __asm__ volatile("msr cntv_cval_el0, %0\n\t"
                     "msr cntv_ctl_el0, %1\n\tisb" :: "r"(at), "r"(1ul));
}

static inline void timer_off(void)
{
    __asm__ volatile("msr cntv_ctl_el0, %0\n\tisb" :: "r"(0ul));
}

#else

static inline void timer_init(void)
{
    __asm__ volatile("csrs sie, %0" :: "r"(1ul << 5));
}

static inline uint64_t timer_hz(void)
{
    return 10000000;
}

static inline uint64_t timer_now(void)
{
    uint64_t now;

    __asm__ volatile("rdtime %0" : "=r"(now));
    return now;
}

static inline void timer_set(uint64_t at)
{
    __asm__ volatile("csrw 0x14d, %0" :: "r"(at));      /* stimecmp */
}

static inline void timer_off(void)
{
    timer_set(~0ul);
}

#endif

static inline void wait_for_interrupt(void)
{
    __asm__ volatile("wfi" ::: "memory");
}

static inline void print(const char *text)
{
    while (*text) {
        *(volatile uint8_t *)(uint64_t)UART = *text++;
    }
}

#endif /* MACHINE_H */
