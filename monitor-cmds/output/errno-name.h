/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of Linux's error codes. Any thread. */
#ifndef MC_ERRNO_NAME_H
#define MC_ERRNO_NAME_H

/** mc_errno_name() - (static) Return the name of an error code, "ENOENT" for 2;
 *  NULL if it has none. */
const char *mc_errno_name(unsigned code);

#endif /* MC_ERRNO_NAME_H */
