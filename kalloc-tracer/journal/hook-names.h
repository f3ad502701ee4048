/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hook table of who wrote a journal. QEMU-free. */
#ifndef KT_SAVED_HOOKS_H
#define KT_SAVED_HOOKS_H

#include "kalloc-tracer/base/bytes.h"

/**
 * kt_hook_names_use() - name hooks as a journal's frame does from here on
 * @in: the frame
 *
 * Until another table takes its place; nothing is done when it is the one in
 * use. One thread.
 *
 * Returns: false when the frame makes no sense.
 */
bool kt_hook_names_use(KtBytes *in);

#endif /* KT_SAVED_HOOKS_H */
