/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin's options: one field for each row of options.def. QEMU-free. */
#ifndef KT_OPTIONS_H
#define KT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef const char *KtOptionPATH;
typedef uint64_t KtOptionSIZE;
typedef unsigned KtOptionSECONDS;
typedef bool KtOptionBOOL;
typedef const char *KtOptionWORDS;
typedef const char *KtOptionACCESS;
typedef const char *KtOptionREPORT;

typedef struct KtOptions {
#define KT_OPTION(field, type, ...) KtOption##type field;
#include "kalloc-tracer/plugin/options.def"
} KtOptions;

/**
 * kt_options_parse() - Read words "name=value"
 * @out: (out) options without a word have their default; strings are borrowed
 *       from @argv
 * @why: (out, owned) one line, set on error only
 *
 * Returns: false if a word, or the combination of options, is wrong.
 */
bool kt_options_parse(KtOptions *out, int argc, char **argv, char **why);

#endif /* KT_OPTIONS_H */
