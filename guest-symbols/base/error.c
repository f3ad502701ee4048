/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The error domain of guest-symbols. Errors are made where something is
 * found wrong and reported by the embedder; nothing is printed here.
 */
#include "guest-symbols/gs.h"

G_DEFINE_QUARK(gs-error-quark, gs_error)
