/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where everything is, for C, the assembler and the linker. The same virtual
 * addresses on both architectures, so that one listing fits both.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#ifdef __aarch64__
#define RAM         0x40000000
#define BOOT        (RAM + 0x80000)     /* where QEMU leaves room for a DTB */
#define UART        0x09000000
#else
#define RAM         0x80000000
#define BOOT        RAM                 /* where the CPU starts */
#define UART        0x10000000
#endif

#ifdef LIKE_XNU
#define KERNEL      0xfffffff000000000  /* RAM appears there */
#define HEAP        0xffffffe380000000  /* and there */
#define CALLERS     0xfffffff02a7da000
#define CALLERS2    0xfffffff02ae0a000
#define TEXT        0xfffffff02b000000
#define KERNEL_MAIN arm_init
#else
#define KERNEL      0x80000000
#define HEAP        0x80000000
#define CALLERS     0x80102000
#define CALLERS2    0x80104000
#define TEXT        0x80110000
#define KERNEL_MAIN main
#endif

/* The entry of a table of 1 GiB pages, three levels of 9 bits. */
#define SLOT(va)    (((va) >> 30) & 0x1ff)

#endif /* LAYOUT_H */
