/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-threads: threads that allocate in the kernel.
 *
 *   ka-threads N
 *
 * Runs inside the guest. N threads, one after the other, open and close a pipe,
 * and so does the first thread. Each has a pid of its own, and all have the
 * same tgid. Exit code: 0, 1 if a call failed, 2 usage.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *use_pipe(void *unused)
{
    int end[2];

    (void)unused;
    if (pipe(end)) {
        exit(1);
    }
    close(end[0]);
    close(end[1]);
    return NULL;
}

int main(int argc, char **argv)
{
    long n = argc == 2 ? strtol(argv[1], NULL, 10) : 0;

    if (n <= 0) {
        return 2;
    }
    for (long i = 0; i < n; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, use_pipe, NULL)) {
            return 1;
        }
        use_pipe(NULL);
        pthread_join(thread, NULL);
    }
    return 0;
}
