/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mutex that is held until the end of a block. For guest-symbols only.
 *
 * It is a pthread mutex, not a GMutex: the thread sanitizer knows the former,
 * while GLib's own is made of futexes that the sanitizer does not see.
 */
#ifndef GS_LOCK_H
#define GS_LOCK_H

#include <glib.h>
#include <pthread.h>

static inline pthread_mutex_t *gs_lock_take(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    return lock;
}

static inline void gs_lock_drop(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}

/** GS_HOLD() - lock a mutex until the end of the block; a declaration. */
#define GS_HOLD(lock) \
    __attribute__((cleanup(gs_lock_drop))) pthread_mutex_t *held G_GNUC_UNUSED \
        = gs_lock_take(lock)

#endif /* GS_LOCK_H */
