/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-int3 N: a program under a debugger: N calls of a function with a
 * breakpoint. The debugger takes the breakpoint away, steps, and plants it
 * again, as gdb does. x86-64.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int calls;

static __attribute__((noipa)) void called(void)
{
    calls++;
}

static int debugged(int n)
{
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    for (int i = 0; i < n; i++) {
        called();
    }
    return calls == n ? 0 : 1;
}

static int await(pid_t pid)
{
    int status = 0;

    waitpid(pid, &status, 0);
    return status;
}

/* Put the original byte back, execute the instruction, and set the breakpoint
 * again. Return 0 if the program did not stop right after the breakpoint. */
static int step_over(pid_t pid, long place, long old, long trap)
{
    struct user_regs_struct regs;

    ptrace(PTRACE_GETREGS, pid, 0, &regs);
    if ((long)regs.rip != place + 1) {
        return 0;
    }
    regs.rip = place;
    ptrace(PTRACE_SETREGS, pid, 0, &regs);
    ptrace(PTRACE_POKETEXT, pid, place, old);
    ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
    await(pid);
    ptrace(PTRACE_POKETEXT, pid, place, trap);
    return 1;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? strtol(argv[1], NULL, 10) : 100, traps = 0, status;
    long place = (long)called, old, trap;
    pid_t pid = fork();

    if (!pid) {
        return debugged(n);
    }
    await(pid);
    old = ptrace(PTRACE_PEEKTEXT, pid, place, 0);
    trap = (old & ~0xffl) | 0xcc;
    ptrace(PTRACE_POKETEXT, pid, place, trap);
    ptrace(PTRACE_CONT, pid, 0, 0);
    while (WIFSTOPPED(status = await(pid)) && WSTOPSIG(status) == SIGTRAP &&
           step_over(pid, place, old, trap)) {
        traps++;
        ptrace(PTRACE_CONT, pid, 0, 0);
    }
    printf("int3: %d breakpoints, status %x\n", traps, status);
    return traps != n || status;
}
