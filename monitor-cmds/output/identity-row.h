/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The identity of what a listing prints. Called by commands, on their thread,
 * without the tracer's lock.
 */
#ifndef MC_IDENTITY_ROW_H
#define MC_IDENTITY_ROW_H

#include "monitor-cmds/output/format.h"

/** mc_prints_identity() - Return true if rows of this output have identities:
 *  JSON and -v. */
bool mc_prints_identity(const McOut *out);
/** mc_identity_of_error() - (owned) Return the identity of an error. */
McIdentity *mc_identity_of_error(const McOut *out, const KtError *e);
/** mc_identity_of_leak() - (owned) Return the identity of a leaked block. */
McIdentity *mc_identity_of_leak(const McOut *out, const KtBlock *b);

#endif /* MC_IDENTITY_ROW_H */
