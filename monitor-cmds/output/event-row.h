/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of events: of ka events, and of ka trace with the block that an event is
 * about. Called by the commands, on their thread.
 */
#ifndef MC_EVENT_ROW_H
#define MC_EVENT_ROW_H

#include "monitor-cmds/output/row.h"

/** mc_print_event() - print an event; @b: (nullable) the block, for ka trace */
void mc_print_event(McOut *o, const KtEvent *ev, const KtTracedBlock *b);
/** mc_print_control() - print a line between events, such as a reset of the
 *  VM */
void mc_print_control(McOut *o, const char *name, uint64_t value);

extern const McObject mc_event_object, mc_traced_object, mc_control_object;

#endif /* MC_EVENT_ROW_H */
