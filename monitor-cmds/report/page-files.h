/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of page/ as texts; embed.py makes them when ka is built. */
#ifndef MC_PAGE_FILES_H
#define MC_PAGE_FILES_H

extern const char mc_page_body[];
extern const char mc_page_style[];
extern const char mc_page_model[];
extern const char mc_page_flame[];
extern const char mc_page_tables[];
extern const char mc_page_page[];

#endif /* MC_PAGE_FILES_H */
