/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin's options, from the rows of options.def. QEMU-free. */
#ifndef KT_OPTIONS_H
#define KT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef const char *KtOptionPATH;
typedef uint64_t KtOptionSIZE;
typedef unsigned KtOptionSECONDS;
typedef bool KtOptionBOOL;

typedef struct KtOptions {
#define KT_OPTION(field, type, ...) KtOption##type field;
#include "kalloc-tracer/plugin/options.def"
} KtOptions;

/**
 * kt_options_parse() - "name=value" words to options
 * @out: (out) defaults where a word is missing; strings are borrowed from
 *       @argv
 * @why: (out, owned) one line on a word that cannot be used
 */
bool kt_options_parse(KtOptions *out, int argc, char **argv, char **why);

#endif /* KT_OPTIONS_H */
