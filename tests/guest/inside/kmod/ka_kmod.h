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
/* Define a site that is one statement, or that returns one expression. Its
 * parameters stand in parentheses. */
#define KA_SITE_DOES(name, params, ...)                 \
    static KA_SITE void name params                     \
    {                                                   \
        __VA_ARGS__;                                    \
        ka_site_end();                                  \
    }
#define KA_SITE_RETURNS(type, name, params, ...)        \
    static KA_SITE type name params                     \
    {                                                   \
        type ka_returned = __VA_ARGS__;                 \
                                                        \
        ka_site_end();                                  \
        return ka_returned;                             \
    }

/* Define the module itself; KA_MODULE_STAYS(): it cannot be unloaded. */
#define KA_MODULE_STAYS(init, what)                     \
    module_init(init);                                  \
    MODULE_LICENSE("GPL");                              \
    MODULE_DESCRIPTION(what)
#define KA_MODULE(init, exit, what)                     \
    KA_MODULE_STAYS(init, what);                        \
    module_exit(exit)

#endif /* KA_KMOD_H */
