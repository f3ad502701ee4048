# SPDX-License-Identifier: GPL-2.0-or-later
#
# xv6, and teaching kernels like it: one allocator of single pages. Build the
# kernel with -fno-omit-frame-pointer (xv6's Makefile does).
# docs/profiles.md says what the keys mean.

[kernel]
# Where a kernel's stack begins, if not with a frame pointer of 0.
outermost = _entry main scheduler forkret usertrapret

[hook kalloc]
role = alloc
layer = kmalloc
fixed = 4096

[hook kfree]
role = free
layer = kmalloc
ptr = 0

# These hand all free memory to the allocator by freeing it.
[hook freerange]
role = setup

[hook kinit]
role = setup
