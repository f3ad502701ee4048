/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-out: send files out of the guest through a character device.
 *
 *   ka-out DEVICE FILE...
 *
 * Runs inside the guest, where the distribution's cloud kernels have no
 * shared folder to offer. Each file is opened without blocking, so that
 * trace_pipe_raw ends when its buffer is empty, and sent as a record:
 *
 *   "KAF1" | u32 length of the name | name | chunks | u32 0
 *   chunk: u32 length (1..65536) | bytes
 *
 * in the guest's byte order. A file that cannot be opened or read further is
 * named on stderr and sent as far as it went. Exit code 1 then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A read of trace_pipe_raw hands out at most one ring buffer page. */
#define READ_SIZE 4096
#define CHUNK_MAX 65536

static int out;

static void put(const void *data, size_t len)
{
    const char *p = data;
    ssize_t n;

    while (len) {
        n = write(out, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            perror("ka-out: write");
            exit(1);
        }
        p += n;
        len -= n;
    }
}

static void put_u32(uint32_t v)
{
    put(&v, sizeof(v));
}

static void flush_chunk(const char *chunk, size_t *used)
{
    if (*used) {
        put_u32(*used);
        put(chunk, *used);
        *used = 0;
    }
}

/* Returns 0, or 1 when the file could not be read to its end. */
static int send_file(const char *name)
{
    static char chunk[CHUNK_MAX];
    size_t used = 0;
    ssize_t n = 0;
    int fd = open(name, O_RDONLY | O_NONBLOCK);

    if (fd < 0) {
        perror(name);
        return 1;
    }
    put("KAF1", 4);
    put_u32(strlen(name));
    put(name, strlen(name));
    for (;;) {
        if (used + READ_SIZE > sizeof(chunk)) {
            flush_chunk(chunk, &used);
        }
        n = read(fd, chunk + used, READ_SIZE);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        used += n;
    }
    if (n < 0 && errno != EAGAIN) {
        perror(name);
    }
    flush_chunk(chunk, &used);
    put_u32(0);
    close(fd);
    return n < 0 && errno != EAGAIN;
}

int main(int argc, char **argv)
{
    int i, failed = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: ka-out DEVICE FILE...\n");
        return 2;
    }
    out = open(argv[1], O_WRONLY);
    if (out < 0) {
        perror(argv[1]);
        return 1;
    }
    for (i = 2; i < argc; i++) {
        failed |= send_file(argv[i]);
    }
    close(out);
    return failed;
}
