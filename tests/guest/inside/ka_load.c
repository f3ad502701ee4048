/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-load: load a module of the kernel, and try only once. The insmod of
 * busybox calls init_module() if finit_module() has failed, so a load that
 * fails by one injected fault succeeds.
 *
 *   ka-load [-i] FILE.ko [NAME=VALUE]...
 *
 * With -i it is init_module() that is called. finit_module() has a list of the
 * loads under way since Linux 6.5, on the stacks of their tasks: a task that an
 * oops kills leaves its entry there, and a later load may follow it.
 *
 * Runs inside the guest. Exit code: 0, 1 the kernel refused, 2 usage.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Return 0, or -1 with errno. @copy: by init_module() */
static long load(int fd, const char *parameters, bool copy)
{
    struct stat st;
    void *image;

    if (!copy) {
        return syscall(SYS_finit_module, fd, parameters, 0);
    }
    if (fstat(fd, &st)) {
        return -1;
    }
    image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    return image == MAP_FAILED ?
               -1 : syscall(SYS_init_module, image, st.st_size, parameters);
}

int main(int argc, char **argv)
{
    bool copy = argc > 1 && !strcmp(argv[1], "-i");
    char parameters[4096] = "";
    size_t len = 0;
    int fd;

    argc -= copy;
    argv += copy;
    if (argc < 2) {
        fprintf(stderr, "usage: ka-load [-i] FILE.ko [NAME=VALUE]...\n");
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
    if (fd < 0 || load(fd, parameters, copy)) {
        perror(argv[1]);
        return 1;
    }
    return 0;
}
