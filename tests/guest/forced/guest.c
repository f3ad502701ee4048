/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest that calls one function, victim(), by its name and by pointer, and
 * counts what it returns and how often its body runs. Somebody outside makes
 * some of the calls return FORCED.
 *
 * CPUS is the number of vCPUs, ROUNDS the number of calls of each kind, and
 * with TIMER a timer interrupts vCPU 0.
 */
#include <stdint.h>

#include "machine.h"

#define FORCED 0x1234567890abcdef

uint64_t call_direct(uint64_t cpu, uint64_t i);
uint64_t call_pointer(uint64_t cpu, uint64_t i);

/* Written by victim() */
uint64_t runs[CPUS];
char stacks[CPUS + 1][1 << 16];

static uint64_t forced[CPUS], ran[CPUS], bad[CPUS], done[CPUS];
static uint64_t ticks, when;

static void print(const char *text)
{
    while (*text) {
        put(*text++);
    }
}

static void print_number(const char *name, uint64_t value)
{
    print(name);
    for (int shift = 60; shift >= 0; shift -= 4) {
        put("0123456789abcdef"[value >> shift & 15]);
    }
}

/* An exception, or a stack that is not as before */
void fault(uint64_t why)
{
    print_number("FAULT ", why);
    print("\n");
    power_off();
    for (;;) {
    }
}

void bad_stack(void)
{
    fault(0);
}

/* Depends on the number of instructions before each interrupt. */
void tick(void)
{
    ticks++;
    when = when * 31 + forced[0] + 3 * ran[0];
    timer_again();
}

static void count(uint64_t cpu, uint64_t i, uint64_t result)
{
    if (result == FORCED) {
        forced[cpu]++;
    } else if (result == 3 * i + 1) {
        ran[cpu]++;
    } else {
        bad[cpu]++;
    }
}

static void call_all(uint64_t cpu)
{
    for (uint64_t i = 0; i < ROUNDS; i++) {
        count(cpu, i, call_direct(cpu, i));
        count(cpu, i, call_pointer(cpu, i));
    }
    __atomic_store_n(&done[cpu], 1, __ATOMIC_RELEASE);
}

static void report(void)
{
    for (int cpu = 0; cpu < CPUS; cpu++) {
        while (!__atomic_load_n(&done[cpu], __ATOMIC_ACQUIRE)) {
        }
        print_number("KA-CPU forced=", forced[cpu]);
        print_number(" ran=", ran[cpu]);
        print_number(" runs=", runs[cpu]);
        print_number(" bad=", bad[cpu]);
        print("\n");
    }
    print_number("KA-END ticks=", ticks);
    print_number(" when=", when);
    print("\n");
}

void cpu_main(uint64_t cpu)
{
    if (cpu == 0) {
        if (CPUS > 1) {
            start_others();
        }
        if (TIMER) {
            timer_start();
        }
    }
    if (cpu < CPUS) {
        call_all(cpu);
    }
    if (cpu == 0) {
        report();
        power_off();
    }
}
