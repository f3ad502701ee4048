/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The QEMU that loads the plugin: can ka trace its guest? */
#ifndef KT_QEMU_CHECK_H
#define KT_QEMU_CHECK_H

#include "guest-symbols/gs.h"
#include "kalloc-tracer/capture/plugin-api.h"

/**
 * kt_qemu_check() - Check that QEMU has ka's patches and a guest that ka
 * supports
 *
 * Call from qemu_plugin_install(), before any other function of the API.
 *
 * Returns: (owned, nullable) one line that says what is wrong, NULL if all is
 * right.
 */
char *kt_qemu_check(const qemu_info_t *info);

#endif /* KT_QEMU_CHECK_H */
