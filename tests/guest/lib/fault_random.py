# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers rnd100 and rnd10000 of fault rules, as docs/faults.md defines
them: made of the seed, the hash of the stack, and the number of the call.
"""
MASK = (1 << 64) - 1


def mix(x):
    """One step of splitmix64."""
    x = (x + 0x9e3779b97f4a7c15) & MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def below(seed, stack, n, limit):
    """Return the number below LIMIT of call N of a stack, whose hash is as a
    command prints it."""
    return mix(mix(mix(seed) ^ int(stack, 16)) ^ n) % limit
