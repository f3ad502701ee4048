/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the test modules share.
 *
 * The caller of an allocator is a function that is neither inlined nor ends
 * in a jump to the allocator, so that a test knows from /proc/kallsyms which
 * function must be the first frame of a stack.
 */
#ifndef KA_KMOD_H
#define KA_KMOD_H

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>

/*
 * A site: a function of its own, whose last action is not a call. "noipa"
 * keeps gcc from cloning it under another name.
 */
#define KA_SITE noinline __attribute__((noipa))
/* Stands behind the call that must not become a tail call. */
#define ka_site_end() barrier()

#endif /* KA_KMOD_H */
