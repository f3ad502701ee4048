/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A spin lock for a few instructions of one vCPU against rare readers. */
#ifndef KT_SPIN_H
#define KT_SPIN_H

#include <glib.h>

static inline void kt_spin_lock(uint32_t *lock)
{
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) {
        while (__atomic_load_n(lock, __ATOMIC_RELAXED)) {
            g_thread_yield();
        }
    }
}

static inline void kt_spin_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif /* KT_SPIN_H */
