/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-out: copy files of the guest, above all trace_pipe_raw, to a folder.
 *
 *   ka-out FOLDER FILE...
 *
 * Runs inside the guest. Files are opened without blocking: trace_pipe_raw
 * ends when its buffer is empty, where cat would wait for ever. A copy's name
 * is the last two parts of the file's name, as in "cpu0.trace_pipe_raw". A
 * file that cannot be read is named on stderr, the rest is copied.
 * Exit code: 0, 1 when a file could not be copied, 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * A read of trace_pipe_raw hands out at most one page of the ring buffer, and
 * is to hand out no less: the largest page that there is.
 */
#define READ_SIZE 65536

static int fail(const char *name)
{
    fprintf(stderr, "ka-out: %s: %s\n", name, strerror(errno));
    return 1;
}

static void copy_name(char *to, size_t size, const char *folder,
                      const char *name)
{
    const char *last = strrchr(name, '/');
    const char *before = last;
    char *slash;

    while (before && before > name && before[-1] != '/') {
        before--;
    }
    snprintf(to, size, "%s/%s", folder, before ? before : name);
    slash = strrchr(to, '/');
    if (before && last && slash > to + strlen(folder)) {
        *slash = '.';
    }
}

static int copy(int in, int out)
{
    char data[READ_SIZE];
    ssize_t n;

    while ((n = read(in, data, sizeof(data))) > 0) {
        if (write(out, data, n) != n) {
            return -1;
        }
    }
    return n < 0 && errno != EAGAIN ? -1 : 0;
}

static int copy_file(const char *folder, const char *name)
{
    char to[512];
    int in, out, failed;

    copy_name(to, sizeof(to), folder, name);
    in = open(name, O_RDONLY | O_NONBLOCK);
    if (in < 0) {
        return fail(name);
    }
    out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    failed = out < 0 || copy(in, out) < 0 ? fail(name) : 0;
    if (out >= 0) {
        close(out);
    }
    close(in);
    return failed;
}

int main(int argc, char **argv)
{
    int i, failed = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: ka-out FOLDER FILE...\n");
        return 2;
    }
    for (i = 2; i < argc; i++) {
        failed |= copy_file(argv[1], argv[i]);
    }
    return failed;
}
