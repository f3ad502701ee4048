# SPDX-License-Identifier: GPL-2.0-or-later
"""What ka_slabs.c wrote in the guest: the kernel's own count of the objects of
each cache. And the names of the groups in which a block of ours is counted.
"""
import re
from collections import namedtuple

# objsize: without the red zone before the object
Slab = namedtuple('Slab', 'active objsize held link')


def read_slabs(files):
    """Return {cache: Slab} from /proc/slabinfo (format 2.1) and sysfs."""
    links, slabs = {}, {}
    for line in files['slabs'].decode().splitlines():
        name, link, *numbers = line.split()
        before, after, sheaves, pad = map(int, numbers)
        links[name] = link, max(before, after), sheaves, pad
    for line in files['slabinfo'].decode().splitlines():
        words = line.split()
        if len(words) >= 6 and words[1].isdigit():
            link, held, sheaves, pad = links[words[0]]
            each = int(words[4])
            slabs[words[0]] = Slab(int(words[1]), int(words[3]) - pad,
                                   max(held, 0) * each + sheaves, link)
    return slabs, {name: row[0] for name, row in links.items()}


def group_of(layer, cache, actual):
    """Return the name of the group in which a block is counted. For a kmalloc
    block the tracer knows the size, but not always which of the caches of
    that size it is from."""
    if layer == 'kmalloc':
        return f'kmalloc of {actual}'
    return cache


def kmalloc_group(name, slab):
    """Return the same name for a cache of /proc/slabinfo."""
    if re.match(r'(dma-|cg-|rcl-)?kmalloc-', name):
        return f'kmalloc of {slab.objsize}'
    return name
