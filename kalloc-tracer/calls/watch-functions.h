/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watch functions: the prototypes of the functions that a request names, to
 * check the names of arguments that its options use. QEMU-free.
 *
 * Any thread; nothing is kept between calls.
 */
#ifndef KT_WATCH_FUNCTIONS_H
#define KT_WATCH_FUNCTIONS_H

#include "guest-symbols/gs.h"

/**
 * struct KtWatchFunctions - functions of a request
 * @protos: (owned) GsPrototype of those that have one
 * @pending: a kernel or a module is missing, so there may be more functions
 * @why_not: (static, nullable) why a function has no prototype
 */
typedef struct KtWatchFunctions {
    GPtrArray *protos;
    bool pending;
    const char *why_not;
} KtWatchFunctions;

/** kt_watch_functions_init() - Find the functions of @text, patterns joined by
 *  ",". @k: (nullable). @errp: as kt_call_points_add(). Returns: false on
 *  error; then nothing has to be freed. */
bool kt_watch_functions_init(KtWatchFunctions *f, const GsKernel *k,
                             const char *text, GError **errp);
void kt_watch_functions_deinit(KtWatchFunctions *f);

/** kt_watch_functions_has_arg() - Return true if a function has an argument
 *  @name, or if there may be more functions. */
bool kt_watch_functions_has_arg(const KtWatchFunctions *f, const char *name);

#endif /* KT_WATCH_FUNCTIONS_H */
