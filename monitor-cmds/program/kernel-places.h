/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which kernel runs, and where, by answers of ka: to find its vmlinux, and to
 * refuse another one. One thread.
 */
#ifndef MC_KERNEL_PLACES_H
#define MC_KERNEL_PLACES_H

#include "monitor-cmds/program/source-file.h"

/* Ranges of ka base that begin and end with symbols. */
#define KA_KERNEL_RANGES 4

/**
 * struct KaKernelPlaces - all texts are owned, and NULL if they are not known
 * @banner: the version line; @release: its third word
 * @build_id: in hex
 * @start, @last: of text, rodata, data and bss; 0: not known
 * @slide: (out of the comparison) address = address of the file + @slide
 */
typedef struct KaKernelPlaces {
    char *banner, *release, *build_id;
    uint64_t start[KA_KERNEL_RANGES], last[KA_KERNEL_RANGES];
    uint64_t slide;
} KaKernelPlaces;

/** ka_kernel_places_read() - read the answers to `ka stat -j` and
 *  `ka base -v -j`; untrusted */
void ka_kernel_places_read(KaKernelPlaces *k, const char *stat,
                           const char *base);
void ka_kernel_places_clear(KaKernelPlaces *k);
/** ka_kernel_places_search() - (owned) return the path of a file with the
 *  kernel's debug information in the usual places. NULL: there is none, *@why
 *  (owned) says where it was searched. */
char *ka_kernel_places_search(const KaKernelPlaces *k, char **why);
/** ka_kernel_places_compare() - (owned) return why the file is not this
 *  kernel's; NULL: it is, and k->slide is set */
char *ka_kernel_places_compare(KaKernelPlaces *k, const KaSourceFile *f);

#endif /* MC_KERNEL_PLACES_H */
