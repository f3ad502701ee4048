/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of a small kernel with a member of each kind, for ka struct:
 *
 *     struct list_head { struct list_head *next, *prev; };
 *     struct point { int x, y; };
 *     enum state { RUNNING, DEAD = 7 };
 *     struct table { unsigned int max; struct box **box; };
 *     struct box {
 *         struct list_head list;           0
 *         struct table *table;             10
 *         char name[8];                    18
 *         unsigned int low : 3, high : 5;  20
 *         enum state state;                24
 *         union {                          28
 *             u64 word;
 *             struct { int a, b; };
 *             struct point pair;
 *         };
 *         short shorts[4];                 30
 *         struct point points[3];          38
 *         void *ptrs[4];                   50
 *         int (*fn)(int);                  70
 *         unsigned long addr;              78
 *         bool flag;                       80
 *         int minus;                       84
 *         u8 more[];                       88
 *     };
 *     struct twice { int a; };  union twice { long b; };
 *     typedef struct { struct point p; } holder_t;
 *
 * Single-threaded.
 */
#ifndef STRUCT_TYPES_H
#define STRUCT_TYPES_H

#include <glib.h>

/** struct_types() - (owned) write them as raw BTF. */
GBytes *struct_types(void);

#endif /* STRUCT_TYPES_H */
