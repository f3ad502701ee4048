/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of page/ as texts; embed.py makes them when ka is built. */
#ifndef MC_PAGE_FILES_H
#define MC_PAGE_FILES_H

#include <stddef.h>

extern const char mc_page_body[];
extern const char mc_page_style[];
/* Its scripts in their order; NULL is the last. */
extern const char *const mc_page_scripts[];

#endif /* MC_PAGE_FILES_H */
