# SPDX-License-Identifier: GPL-2.0-or-later
#
# A kernel with XNU's allocators: kalloc_ext() and kfree_ext(), which tell the
# size of what they free, over zones (zalloc(), zfree()). docs/profiles.md
# says what the keys mean.

[kernel]
# The first C function, where the kernel runs at the addresses it is linked at.
start = arm_init
# Threads begin with a frame pointer of 0, which ends a walk by itself; these
# are for those that do not.
outermost = arm_init thread_continue Call_continuation
# Above these 39 bits may be a signature (47 bits on macOS).
va_bits = 39
# KALLOC_MINALIGN; the size of an element depends on the version's zones.
rounding = 16

# struct zone: where it has its name and its elements' size is a matter of the
# version. Take these out where they are not known: zones are still told apart.
[cache]
name_at = 0
size_at = 8
size_bytes = 2

# kalloc_ext(heap, size, flags, site), kfree_ext(heap, data, size)
[hook kalloc_ext]
role = alloc
layer = kmalloc
size = 1
flags = 2

[hook kfree_ext]
role = free
layer = kmalloc
ptr = 1
size = 2

# zalloc(zone), zfree(zone, element): also what kalloc works with
[hook zalloc]
role = alloc
layer = cache
cache = 0
inner = yes

[hook zfree]
role = free
layer = cache
cache = 0
ptr = 1
inner = yes

# Drivers' functions that only call these.
[hook IOMalloc]
role = wrapper

[hook IOFree]
role = wrapper
