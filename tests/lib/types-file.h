/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Types files of tests, as types=FILE names them. Single-threaded. */
#ifndef TYPES_FILE_H
#define TYPES_FILE_H

#include "guest-symbols/gs.h"

/** types_file() - open bytes as a types file, whose path ends in "types".
 *  Returns: (owned) NULL and @errp if it is refused. */
GsTypesFile *types_file(GBytes *bytes, GError **errp);

#endif /* TYPES_FILE_H */
