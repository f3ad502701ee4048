/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Console, timer, other vCPUs and the end of QEMU's machines. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

void on_timer(void);
void start16(void);
void start_more(void);

static inline void poke(uint64_t at, uint32_t value)
{
    *(volatile uint32_t *)at = value;
}

#if defined(__x86_64__)

#define APIC 0xfee00000ul
#define TIMER_VECTOR 0x40

static inline void out8(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" :: "a"(value), "Nd"(port));
}

static inline void put(char c)
{
    out8(0x3f8, c);
}

static inline void timer_start(void)
{
    static struct {
        uint16_t low, selector, type, middle;
        uint32_t high, zero;
    } idt[TIMER_VECTOR + 1];
    static struct {
        uint16_t limit;
        uint64_t at;
    } __attribute__((packed)) pointer;
    uint64_t at = (uint64_t)on_timer;

    idt[TIMER_VECTOR].low = at;
    idt[TIMER_VECTOR].selector = 0x18;
    idt[TIMER_VECTOR].type = 0x8e00;
    idt[TIMER_VECTOR].middle = at >> 16;
    pointer.limit = sizeof(idt) - 1;
    pointer.at = (uint64_t)idt;
    __asm__ volatile("lidt %0" :: "m"(pointer));
    poke(APIC + 0xf0, 0x1ff);           /* on */
    poke(APIC + 0x3e0, 0xb);            /* divide by 1 */
    poke(APIC + 0x320, 0x20000 | TIMER_VECTOR); /* periodic */
    poke(APIC + 0x380, 10000);          /* ns */
    __asm__ volatile("sti");
}

static inline void timer_again(void)
{
    poke(APIC + 0xb0, 0);
}

/* INIT, then the page to start at */
static inline void start_others(void)
{
    poke(APIC + 0xf0, 0x1ff);
    poke(APIC + 0x300, 0xc4500);
    poke(APIC + 0x300, 0xc4600 | (uint64_t)start16 >> 12);
}

/* The keyboard's controller resets the machine; QEMU ends by -no-reboot. */
static inline void power_off(void)
{
    out8(0x64, 0xfe);
}

#elif defined(__aarch64__)

#define UART 0x09000000ul
#define GICD 0x08000000ul
#define GICC 0x08010000ul
#define TIMER_IRQ 27
#define TIMER_TICKS 625                 /* of 16 ns */

static inline void put(char c)
{
    poke(UART, c);
}

static inline void timer_set(void)
{
    __asm__ volatile("msr cntv_tval_el0, %0\n\t"
                     "msr cntv_ctl_el0, %1\n\tisb"
                     :: "r"((uint64_t)TIMER_TICKS), "r"(1ul));
}

static inline void timer_start(void)
{
    poke(GICD + 0x100, 1u << TIMER_IRQ);
    poke(GICD, 1);
    poke(GICC + 4, 0xff);
    poke(GICC, 1);
    timer_set();
    __asm__ volatile("msr daifclr, #2");
}

static inline void timer_again(void)
{
    uint32_t irq = *(volatile uint32_t *)(GICC + 0xc);

    timer_set();
    poke(GICC + 0x10, irq);
}

static inline void psci(uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = a;
    register uint64_t x2 __asm__("x2") = b;
    register uint64_t x3 __asm__("x3") = c;

    __asm__ volatile("hvc #0" : "+r"(x0)
                     : "r"(x1), "r"(x2), "r"(x3) : "memory");
}

static inline void start_others(void)
{
    psci(0xc4000003, 1, (uint64_t)start_more, 1);
}

static inline void power_off(void)
{
    psci(0x84000008, 0, 0, 0);
}

#else

#define UART 0x10000000ul
#define CLINT 0x02000000ul
#define TIMER_TICKS 100                 /* of 100 ns */

uint64_t others_may_run;

static inline void put(char c)
{
    *(volatile uint8_t *)UART = c;
}

static inline void timer_again(void)
{
    volatile uint64_t *now = (volatile uint64_t *)(CLINT + 0xbff8);

    *(volatile uint64_t *)(CLINT + 0x4000) = *now + TIMER_TICKS;
}

static inline void timer_start(void)
{
    timer_again();
    __asm__ volatile("csrs mie, %0\n\tcsrs mstatus, %1"
                     :: "r"(1ul << 7), "r"(1ul << 3));
}

static inline void start_others(void)
{
    __atomic_store_n(&others_may_run, 1, __ATOMIC_RELEASE);
}

static inline void power_off(void)
{
    poke(0x100000, 0x5555);
}

#endif

#endif /* MACHINE_H */
