/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types that test-dwarf-types.c looks for in the debug info of dwarf-sample.c,
 * and compares with what the compiler made of them for the test itself.
 */
#ifndef DWARF_SAMPLE_H
#define DWARF_SAMPLE_H

#include <stdint.h>

struct sample_inner {
    int a;
    long b;
};

typedef const volatile struct sample_inner sample_inner_t;

union sample_union {
    char bytes[12];
    uint64_t word;
};

struct sample_list {
    struct sample_list *next, *prev;
};

struct sample_outer {
    char *name;
    union {
        struct {
            int x, y;
        };
        sample_inner_t in;
    };
    unsigned one : 1, seven : 7;
    unsigned : 0;
    unsigned far : 3;
    char comm[16];
    int matrix[3][5];
    struct sample_list list;
    union sample_union u[4];
    void (*fn)(int a, struct sample_outer *b);
    _Bool flag;
    uint8_t tail[];
};

enum sample_colour { SAMPLE_RED, SAMPLE_GREEN = 7, SAMPLE_MINUS = -3 };
enum { SAMPLE_ANON = 0x80000000u };
enum { SAMPLE_OTHER = 5 };

int sample_function(struct sample_outer *object, unsigned long size, int gfp);

#endif /* DWARF_SAMPLE_H */
