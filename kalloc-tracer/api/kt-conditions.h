/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditions about calls (--if), as far as commands see them. */
#ifndef KT_API_CONDITIONS_H
#define KT_API_CONDITIONS_H

#include <glib.h>
#include <stdbool.h>

/**
 * kt_condition_check() - Check a condition before its function is known
 * @errp: one line: the column, what is wrong, what was expected
 *
 * Each name in lower case is accepted: it may be an argument. Any thread.
 *
 * Returns: false if no function can have this condition.
 */
bool kt_condition_check(const char *text, GError **errp);

#endif /* KT_API_CONDITIONS_H */
