/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of breakpoints in the guest's code: see breakpoint-table.h. */
#include "kalloc-tracer/capture/breakpoint-table.h"

#include "kalloc-tracer/capture/plugin-api.h"

#define BITS    14
#define ROWS    (1u << BITS)
#define FULL    (ROWS / 2)
#define TRAP    0xcc

static struct {
    KtBreakpoint row[ROWS];
    unsigned used;                      /* rows */
    unsigned planted;                   /* atomic */
} table;

/* ---- rows ---------------------------------------------------------------- */

static KtBreakpoint *row_of(uint64_t va)
{
    uint64_t at = va * 0x9e3779b97f4a7c15ull >> (64 - BITS);

    for (;; at++) {
        KtBreakpoint *b = &table.row[at % ROWS];
        uint64_t has = __atomic_load_n(&b->va, __ATOMIC_ACQUIRE);

        if (!has || has == va) {
            return b;
        }
    }
}

const KtBreakpoint *kt_breakpoint_at(uint64_t va)
{
    const KtBreakpoint *b = row_of(va);

    return __atomic_load_n(&b->va, __ATOMIC_ACQUIRE) == va ? b : NULL;
}

static void set_uses(KtBreakpoint *b, uint32_t uses)
{
    __atomic_store_n(&b->use, uses, __ATOMIC_RELEASE);
}

bool kt_breakpoints_add(uint64_t va, KtBreakpointUse use, uint32_t id,
                        uint64_t function)
{
    KtBreakpoint *b = row_of(va);

    if (!b->va && table.used == FULL) {
        return false;
    }
    if (id) {
        __atomic_store_n(&b->id, id, __ATOMIC_RELAXED);
    }
    if (function) {
        __atomic_store_n(&b->function, function, __ATOMIC_RELAXED);
    }
    set_uses(b, b->use | use);
    if (!b->va) {
        table.used++;
        __atomic_store_n(&b->va, va, __ATOMIC_RELEASE);
    }
    return true;
}

void kt_breakpoints_end_uses(KtBreakpointUse uses)
{
    for (unsigned i = 0; i < ROWS; i++) {
        if (table.row[i].use & uses) {
            set_uses(&table.row[i], table.row[i].use & ~uses);
        }
    }
}

/* ---- in the guest -------------------------------------------------------- */

static void count(int n)
{
    __atomic_store_n(&table.planted, table.planted + n, __ATOMIC_RELAXED);
}

static void remove_one(KtBreakpoint *b)
{
    if (b->added) {
        qemu_plugin_remove_code_hook(b->va);
        count(b->disabled ? 0 : -1);
        b->added = b->disabled = false;
    }
}

static bool plant_one(KtBreakpoint *b, const KtGuest *g)
{
    b->added = kt_guest_read(g, b->va, &b->old, 1) &&
               qemu_plugin_add_code_hook(b->va);
    count(b->added);
    return b->added;
}

void kt_breakpoints_remove(KtBreakpointUse uses)
{
    for (unsigned i = 0; i < ROWS; i++) {
        if (table.row[i].use & uses) {
            remove_one(&table.row[i]);
        }
    }
}

void kt_breakpoints_plant(const KtGuest *g,
                          void (*refused)(void *opaque, uint64_t va),
                          void *opaque)
{
    for (unsigned i = 0; i < ROWS; i++) {
        KtBreakpoint *b = &table.row[i];

        if (!b->use) {
            remove_one(b);
        } else if (!b->added && !plant_one(b, g)) {
            refused(opaque, b->va);
        }
    }
}

void kt_breakpoints_replant(void)
{
    for (unsigned i = 0; i < ROWS; i++) {
        KtBreakpoint *b = &table.row[i];

        if (!b->added) {
            continue;
        }
        if (!qemu_plugin_add_code_hook(b->va)) {
            count(b->disabled ? 0 : -1);
            b->added = b->disabled = false;
        } else if (b->disabled) {
            qemu_plugin_enable_code_hook(b->va, false);
        }
    }
}

void kt_breakpoints_enable(bool on)
{
    for (unsigned i = 0; i < ROWS; i++) {
        KtBreakpoint *b = &table.row[i];
        bool enable = on || b->use & KT_AT_KEPT;

        if (b->added && enable == b->disabled &&
            qemu_plugin_enable_code_hook(b->va, enable)) {
            b->disabled = !enable;
            count(enable ? 1 : -1);
        }
    }
}

void kt_breakpoints_clear(void)
{
    for (unsigned i = 0; i < ROWS; i++) {
        KtBreakpoint *b = &table.row[i];

        if (b->va) {
            remove_one(b);
            set_uses(b, 0);
            b->function = b->id = 0;
            __atomic_store_n(&b->va, 0, __ATOMIC_RELEASE);
        }
    }
    table.used = 0;
}

unsigned kt_breakpoints_count(void)
{
    return __atomic_load_n(&table.planted, __ATOMIC_RELAXED);
}

void kt_breakpoints_hide(uint64_t va, void *buf, size_t len)
{
    uint8_t *bytes = buf;

    for (size_t i = 0; i < len; i++) {
        const KtBreakpoint *b = bytes[i] == TRAP ? kt_breakpoint_at(va + i) :
                                                   NULL;

        if (b && b->added) {
            bytes[i] = b->old;
        }
    }
}
