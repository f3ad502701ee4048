/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack of a vCPU, as ka bt prints it: see vcpu-stack.c. */
#ifndef MC_VCPU_STACK_H
#define MC_VCPU_STACK_H

#include "monitor-cmds/output/format.h"

/** mc_vcpu_stack() - print the stack of @vcpu, in the format of @o; @n: frames
 *  to print, at most. Frames are named by the kernel of @o's context. */
void mc_vcpu_stack(McOut *o, unsigned vcpu, const McStack *stack, unsigned n);
/** mc_vcpu_no_stack() - print why there is no stack of @vcpu; @stop: the same
 *  in a word */
void mc_vcpu_no_stack(McOut *o, unsigned vcpu, const char *stop,
                      const char *why);

#endif /* MC_VCPU_STACK_H */
