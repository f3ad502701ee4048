/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-failnth: let the kernel itself fail each allocation of a system call.
 *
 *   ka-failnth CALL
 *
 * Runs inside the guest, on a kernel with FAULT_INJECTION. The call is made
 * some times; then once while nothing fails, so that all its points can be
 * counted; then some times for each N from 1 on, with N in /proc/self/fail-nth:
 * a cache that needs a new slab has more points than it has at other times.
 * During a call the process is named "kn-CALL.N". Prints a line each time:
 *
 *   CALL N LEFT ERRNO
 *
 * LEFT is what /proc/self/fail-nth contains after the call: 0 if allocation N
 * was reached, and failed. ERRNO is the error of the call, 0 if it succeeded.
 *
 * Before each call it writes "ka-failnth: CALL N" to the kernel's log, where
 * the kernel says what it failed. N is 0 for the call that fails nothing.
 * Exit code: 0, 1 when something could not be done, 2 usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY  100000
#define WARM  20
#define TIMES 3         /* calls for each N */
#define OVER  3         /* Ns that are more than there are allocations */
#define DIR   "/tmp/failnth"

typedef struct Call {
    const char *name;
    long (*make)(void);
    void (*undo)(long result);
} Call;

static int nth, kmsg;
static int fds[2];

static long make_pipe(void)
{
    return syscall(SYS_pipe2, fds, 0);
}

static void undo_pipe(long result)
{
    close(fds[0]);
    close(fds[1]);
}

static long make_epoll(void)
{
    return syscall(SYS_epoll_create1, 0);
}

static void undo_fd(long result)
{
    close(result);
}

static long make_memfd(void)
{
    return syscall(SYS_memfd_create, "ka-failnth", 0);
}

static long make_mkdir(void)
{
    return syscall(SYS_mkdirat, AT_FDCWD, DIR, 0700);
}

static void undo_mkdir(long result)
{
    rmdir(DIR);
}

static long make_open(void)
{
    return syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY);
}

/* The child ends at once. */
static long make_fork(void)
{
    long pid = syscall(SYS_fork);

    if (!pid) {
        syscall(SYS_exit_group, 0);
    }
    return pid;
}

static void undo_fork(long result)
{
    waitpid(result, NULL, 0);
}

static const Call calls[] = {
    { "pipe", make_pipe, undo_pipe },
    { "epoll", make_epoll, undo_fd },
    { "memfd", make_memfd, undo_fd },
    { "mkdir", make_mkdir, undo_mkdir },
    { "open", make_open, undo_fd },
    { "fork", make_fork, undo_fork },
};

static int say(const Call *c, int n)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "<5>ka-failnth: %s %d\n", c->name,
                       n);

    return write(kmsg, text, len) == len;
}

static int set_nth(int n)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%d", n);

    return pwrite(nth, text, len, 0) == len;
}

static int left(void)
{
    char text[16] = "";

    if (pread(nth, text, sizeof(text) - 1, 0) <= 0) {
        return -1;
    }
    return strtol(text, NULL, 10);
}

/* Make the call; the kernel fails its allocation @n. Return LEFT, or -1. */
static int make(const Call *c, int n)
{
    char line[96], name[16];
    long result;
    int err, rest, len;

    if (!say(c, n) || !set_nth(n ? n : MANY)) {
        return -1;
    }
    snprintf(name, sizeof(name), "kn-%s.%d", c->name, n);
    prctl(PR_SET_NAME, name);
    result = c->make();
    err = result < 0 ? errno : 0;
    prctl(PR_SET_NAME, "ka-failnth");
    rest = left();
    set_nth(0);
    if (result >= 0) {
        c->undo(result);
    }
    len = snprintf(line, sizeof(line), "%s %d %d %d\n", c->name, n, rest, err);
    return write(STDOUT_FILENO, line, len) == len ? rest : -1;
}

static int run(const Call *c)
{
    int rest = 0;

    for (int i = 0; i < WARM; i++) {
        long result = c->make();

        if (result < 0) {
            return 1;
        }
        c->undo(result);
    }
    rest = make(c, 0);
    for (int n = 1, over = 0; rest >= 0 && over < OVER; n++) {
        bool all = true;

        for (int i = 0; i < TIMES && rest >= 0; i++) {
            rest = make(c, n);
            all = all && rest > 0;
        }
        over += all;
    }
    return rest < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    nth = open("/proc/self/fail-nth", O_RDWR);
    kmsg = open("/dev/kmsg", O_WRONLY);
    if (argc != 2) {
        fprintf(stderr, "usage: ka-failnth CALL\n");
        return 2;
    }
    if (nth < 0 || kmsg < 0) {
        perror("ka-failnth");
        return 1;
    }
    for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (!strcmp(argv[1], calls[i].name)) {
            return run(&calls[i]);
        }
    }
    return 2;
}
