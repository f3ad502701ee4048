/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions that call for the script of kernel.c: CALLER(section, name,
 * offset), each with its return address at exactly that offset of the section,
 * whatever the compiler makes of the rest. In order of address.
 *
 * name(fn, a, b, c, d) calls fn(a, b, c, d); name_first() does so as the
 * first function on its stack.
 */
#ifdef LIKE_XNU
CALLER(0, driver_start, 0x740)
CALLER(0, driver_alloc, 0xd00)
CALLER(1, port_alloc, 0x6a0)
CALLER(1, port_free, 0x1004)
CALLER(1, space_create, 0x1cdc)
#else
CALLER(0, uvmalloc, 0x100)
CALLER(0, uvmdealloc, 0x200)
CALLER(0, pipealloc, 0x300)
CALLER(1, sys_sbrk, 0x100)
CALLER(1, sys_pipe, 0x200)
#endif
#undef CALLER
