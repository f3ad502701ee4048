/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moments of a boot at which the plugin may act: the kernel is found, a module
 * is loaded or unloaded.
 */
#ifndef KT_MOMENTS_H
#define KT_MOMENTS_H

/**
 * enum KtMoment - what happens
 * @KT_MOMENT_FOUND: the kernel is found; it runs its first instructions, or a
 *                   snapshot was loaded
 * @KT_MOMENT_LOAD: a module is loaded; its init has not begun
 * @KT_MOMENT_UNLOAD: a module's exit has run, or its init failed; the module is
 *                    about to be freed
 */
typedef enum KtMoment {
    KT_MOMENT_FOUND,
    KT_MOMENT_LOAD,
    KT_MOMENT_UNLOAD
} KtMoment;

/**
 * KtMomentFn - called at a moment
 * @module: (borrowed, nullable) name of the module
 *
 * On a vCPU's thread, or on the main thread while no vCPU executes; the
 * capture's lock may be held. It must not wait: to act, it asks for a call
 * while no vCPU executes. The vCPU runs no further instruction before that.
 */
typedef void (*KtMomentFn)(void *opaque, KtMoment moment, const char *module);

/** struct KtMoments - who is called; @fn: NULL for nobody */
typedef struct KtMoments {
    KtMomentFn fn;
    void *opaque;
} KtMoments;

/** kt_moment() - Call who wants to know. */
static inline void kt_moment(const KtMoments *m, KtMoment moment,
                             const char *module)
{
    if (m->fn) {
        m->fn(m->opaque, moment, module);
    }
}

#endif /* KT_MOMENTS_H */
