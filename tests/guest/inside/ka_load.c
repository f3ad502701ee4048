/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-load: load a module of the kernel, and try only once. The insmod of
 * busybox calls init_module() if finit_module() has failed, so a load that
 * fails by one injected fault succeeds.
 *
 *   ka-load FILE.ko [NAME=VALUE]...
 *
 * Runs inside the guest. Exit code: 0, 1 the kernel refused, 2 usage.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char parameters[4096] = "";
    size_t len = 0;
    int fd;

    if (argc < 2) {
        fprintf(stderr, "usage: ka-load FILE.ko [NAME=VALUE]...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        len += (size_t)snprintf(parameters + len, sizeof(parameters) - len,
                                "%s ", argv[i]);
        if (len >= sizeof(parameters)) {
            fprintf(stderr, "ka-load: the parameters are too long\n");
            return 2;
        }
    }
    fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0)) {
        perror(argv[1]);
        return 1;
    }
    return 0;
}
