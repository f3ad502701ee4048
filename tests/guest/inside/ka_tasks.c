/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-tasks: tasks and open files of many kinds, and what /proc says about them.
 *
 *   ka-tasks make    leave processes behind, which do nothing
 *   ka-tasks list    print all tasks, open files and modules
 *
 * Lines of the list; names are in hex, because they may have any bytes:
 *
 *   T tgid pid ppid state cpu uid switches vm start name
 *                    a thread; vm: 1 if it has user memory
 *   F tgid fd flags inode target
 *                    an open file; flags in octal; inode: of the file
 *   M line           a line of /proc/modules
 *
 * Runs inside the guest. Exit code: 0, 1 something failed, 2 usage.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define UID 1234
#define FAR_FD 300              /* beyond the first table of files */

static int check(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

/* ---- make ---------------------------------------------------------------- */

static void rest(void)
{
    for (;;) {
        pause();
    }
}

static void *thread(void *name)
{
    prctl(PR_SET_NAME, name);
    rest();
    return NULL;
}

static void be_threads(void)
{
    static const char *const name[] = { "ka thread 1", "ka-thread-2",
                                        "fifteen-letters" };
    pthread_t id;

    prctl(PR_SET_NAME, "ka\x07\xff\\odd");
    for (int i = 0; i < 3; i++) {
        pthread_create(&id, NULL, thread, (void *)name[i]);
    }
    rest();
}

static void be_another_user(void)
{
    prctl(PR_SET_NAME, "ka-user");
    check(setresuid(UID, UID + 1, UID + 2), "setresuid");
    rest();
}

static void be_parent_of_zombie(void)
{
    prctl(PR_SET_NAME, "ka-parent");
    if (!fork()) {
        prctl(PR_SET_NAME, "ka-zombie");
        _exit(0);
    }
    rest();
}

static void be_stopped(void)
{
    prctl(PR_SET_NAME, "ka-stopped");
    raise(SIGSTOP);
    rest();
}

static void open_sockets(void)
{
    int pair[2];

    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);  /* not all kernels have these */
    socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    socket(AF_INET, SOCK_DGRAM, 0);
}

static void open_anonymous(void)
{
    int pair[2];
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    check(pipe(pair), "pipe");
    check(pipe2(pair, O_NONBLOCK | O_CLOEXEC), "pipe2");
    eventfd(1, 0);
    epoll_create1(EPOLL_CLOEXEC);
    timerfd_create(CLOCK_MONOTONIC, 0);
    signalfd(-1, &set, 0);
    inotify_init();
    memfd_create("ka memory", 0);
}

static void open_paths(void)
{
    int fd;

    mkdir("/tmp/ka files", 0755);
    mkdir("/tmp/ka files/mount", 0755);
    check(mount("none", "/tmp/ka files/mount", "tmpfs", 0, NULL), "mount");
    mkdir("/tmp/ka files/mount/deep", 0755);
    check(open("/tmp/ka files/a", O_CREAT | O_WRONLY | O_APPEND, 0644), "a");
    check(open("/tmp/ka files/mount/deep/b\n", O_CREAT | O_RDWR, 0644), "b");
    check(open("/tmp/ka files/mount", O_RDONLY | O_DIRECTORY), "mount");
    check(open("/tmp/ka files/gone", O_CREAT | O_RDWR, 0644), "gone");
    check(unlink("/tmp/ka files/gone"), "unlink");
    check(open("/", O_PATH), "/");
    check(open("/dev/null", O_RDWR), "null");
    check(open("/proc/self/status", O_RDONLY), "status");
    open("/sys/kernel/vmcoreinfo", O_RDONLY);   /* not all kernels have these */
    open("/proc/self/ns/net", O_RDONLY);
    open("/proc/self/ns/uts", O_RDONLY);
    fd = check(open("/tmp/ka files/a", O_RDONLY | O_CLOEXEC), "a again");
    check(dup2(fd, FAR_FD), "dup2");
}

static void be_user_of_files(void)
{
    prctl(PR_SET_NAME, "ka-files");
    open_sockets();
    open_anonymous();
    open_paths();
    rest();
}

static int make(void)
{
    static void (*const be[])(void) = {
        be_threads, be_another_user, be_parent_of_zombie, be_stopped,
        be_user_of_files,
    };

    for (unsigned i = 0; i < sizeof(be) / sizeof(be[0]); i++) {
        if (!check(fork(), "fork")) {
            setsid();
            be[i]();
        }
    }
    sleep(1);
    return 0;
}

/* ---- list ---------------------------------------------------------------- */

static char *read_file(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

    if (fd >= 0) {
        close(fd);
    }
    buf[n < 0 ? 0 : n] = 0;
    return n < 0 ? NULL : buf;
}

static void print_hex(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        printf("%02x", (unsigned char)s[i]);
    }
    puts(len ? "" : "-");
}

static long field(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

static void list_thread(const char *pid, const char *tid)
{
    char path[300], status[8192], stat[4096], comm[128], state;
    char *rest;
    long ppid, start = 0;
    int cpu = 0;

    snprintf(path, sizeof(path), "/proc/%s/task/%s/status", pid, tid);
    if (!read_file(path, status, sizeof(status))) {
        return;
    }
    snprintf(path, sizeof(path), "/proc/%s/task/%s/stat", pid, tid);
    if (!read_file(path, stat, sizeof(stat)) || !(rest = strrchr(stat, ')'))) {
        return;
    }
    snprintf(path, sizeof(path), "/proc/%s/task/%s/comm", pid, tid);
    if (!read_file(path, comm, sizeof(comm))) {
        return;
    }
    state = rest[2];
    ppid = strtol(rest + 4, NULL, 10);
    rest += 2;
    /* state is field 3, starttime 22, processor 39 */
    for (int i = 3; (rest = strchr(rest, ' ')); i++) {
        rest++;
        start = i + 1 == 22 ? strtol(rest, NULL, 10) : start;
        cpu = i + 1 == 39 ? strtol(rest, NULL, 10) : cpu;
    }
    printf("T %ld %s %ld %c %d %ld %ld %d %ld ", field(status, "\nTgid:"), tid,
           ppid, state, cpu, field(status, "\nUid:"),
           field(status, "\nvoluntary_ctxt_switches:") +
           field(status, "nonvoluntary_ctxt_switches:"),
           strstr(status, "\nVmSize:") != NULL, start);
    print_hex(comm, strcspn(comm, "\n"));
}

static void list_file(const char *pid, const char *fd)
{
    char path[300], info[4096], target[4096];
    struct stat st;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, fd);
    if (!read_file(path, info, sizeof(info))) {
        return;
    }
    snprintf(path, sizeof(path), "/proc/%s/fd/%s", pid, fd);
    n = readlink(path, target, sizeof(target));
    if (n < 0 || stat(path, &st)) {
        return;
    }
    printf("F %s %s %lo %lu ", pid, fd,
           strtol(strstr(info, "flags:") + 6, NULL, 8),
           (unsigned long)st.st_ino);
    print_hex(target, n);
}

static void each(const char *folder, const char *pid,
                 void (*fn)(const char *pid, const char *name))
{
    DIR *dir = opendir(folder);
    struct dirent *e;

    while (dir && (e = readdir(dir))) {
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9') {
            fn(pid, e->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static void list_process(const char *unused, const char *pid)
{
    char path[300];

    snprintf(path, sizeof(path), "/proc/%s/task", pid);
    each(path, pid, list_thread);
    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    each(path, pid, list_file);
}

static int list(void)
{
    static char line[4096];
    FILE *modules = fopen("/proc/modules", "r");

    each("/proc", NULL, list_process);
    while (modules && fgets(line, sizeof(line), modules)) {
        printf("M %s", line);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "make")) {
        return make();
    }
    if (argc == 2 && !strcmp(argv[1], "list")) {
        return list();
    }
    fprintf(stderr, "usage: ka-tasks make|list\n");
    return 2;
}
