/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-allocinfo: copy /proc/allocinfo as it is at one moment.
 *
 *   ka-allocinfo FOLDER
 *
 * Runs inside the guest. Writes FOLDER/allocinfo. The file is opened and read
 * once beforehand, and the memory for its text is there, so that reading
 * allocates as little as it can. While it is read the process is named
 * "ka-reader", for whoever looks at its events; the first and the last event of
 * that name are opening and closing another file.
 * Exit code: 0, 1 when a file could not be read or written, 2 usage.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define READER "ka-reader"

static char text[4 << 20];

static size_t read_all(int fd)
{
    size_t done = 0;
    ssize_t n;

    lseek(fd, 0, SEEK_SET);
    while (done < sizeof(text) &&
           (n = read(fd, text + done, sizeof(text) - done)) > 0) {
        done += n;
    }
    return done;
}

static void make_event(void)
{
    close(open("/proc/self/stat", O_RDONLY));
}

/* What was freed so far waits for a grace period, or for a worker. */
static size_t take_moment(int fd)
{
    size_t len;

    read_all(fd);
    make_event();
    sync();
    sleep(3);
    prctl(PR_SET_NAME, READER);
    make_event();
    len = read_all(fd);
    make_event();
    prctl(PR_SET_NAME, "ka-allocinfo");
    return len;
}

int main(int argc, char **argv)
{
    int fd = open("/proc/allocinfo", O_RDONLY);
    char path[256];
    size_t len;
    FILE *to;

    if (argc != 2) {
        fprintf(stderr, "usage: ka-allocinfo FOLDER\n");
        return 2;
    }
    if (fd < 0 || mlockall(MCL_CURRENT)) {
        perror("ka-allocinfo");
        return 1;
    }
    memset(text, 0, sizeof(text));
    len = take_moment(fd);
    snprintf(path, sizeof(path), "%s/allocinfo", argv[1]);
    to = fopen(path, "w");
    return to && fwrite(text, 1, len, to) == len && !fclose(to) ? 0 : 1;
}
