/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A connection to QEMU's QMP (ka-qmp.c), for a command that is more than one
 * question (ka-goto.c). One thread. Errors are printed. */
#ifndef MC_PEER_H
#define MC_PEER_H

#include "monitor-cmds/program/json-line.h"

typedef struct KaPeer KaPeer;

/** ka_peer_fail() - print an error; return KA_NO_ANSWER */
int ka_peer_fail(const KaPeer *p, const char *what);
/** ka_peer_ask() - run a command of ka; @answer: (out, owned) its text */
int ka_peer_ask(const KaPeer *p, const char *line, char **answer);
/** ka_peer_execute() - run a command of QMP, a JSON object. Return (borrowed
 *  until the next use of @p) the message that has "return", or NULL */
JsonObject *ka_peer_execute(const KaPeer *p, const char *command);
/** ka_peer_monitor() - run a command of QEMU's monitor that prints only
 *  errors */
int ka_peer_monitor(const KaPeer *p, const char *line);
/** ka_peer_wait() - wait for an event, for a second at most */
int ka_peer_wait(const KaPeer *p, const char *event);

/** ka_goto() - run ka goto, and have the VM go there; @answer: (out, owned)
 *  where it is then (ka-goto.c) */
int ka_goto(const KaPeer *p, const char *line, char **answer);

#endif /* MC_PEER_H */
