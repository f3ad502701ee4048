/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which client QEMU serves on a unix socket: ka -q asks if QEMU does not greet
 * it. One thread.
 *
 * /proc/net/unix has a line for each end of a connection. The end that QEMU
 * accepted has the path of QEMU's socket, and an inode. A client that still
 * waits has a line with this path, too, but no inode:
 *
 *   Num       RefCount Protocol Flags    Type St Inode Path
 *   00000000: 00000002 00000000 00010000 0001 01  5001 /run/qmp.sock  (listens)
 *   00000000: 00000003 00000000 00000000 0001 03  5010 /run/qmp.sock  (serves)
 *   00000000: 00000002 00000000 00000000 0001 03     0 /run/qmp.sock  (waits)
 */
#include "monitor-cmds/program/ka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TABLE       "/proc/net/unix"
#define STATE       5u      /* fields of a line, from 0 on */
#define INODE       6u
#define CONNECTED   3u      /* a state */

/* QEMU's path may be another name of the same file, or a relative one. */
static bool same_socket(const char *a, const char *b)
{
    struct stat x, y;

    return !strcmp(a, b) ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
            x.st_ino == y.st_ino);
}

/* Return the value of the @n-th field of a line, and where the field ends. */
static uint64_t field(const char *line, unsigned n, unsigned base,
                      const char **end)
{
    for (; n; n--) {
        line += strspn(line, " ");
        line += strcspn(line, " ");
    }
    return g_ascii_strtoull(line, (char **)end, base);
}

/* Return the inode of a line's end if it is an accepted one of @path, else 0.
 * @line has no newline. */
static uint64_t accepted_on(const char *line, const char *path)
{
    const char *end;
    uint64_t state = field(line, STATE, 16, &end);
    uint64_t inode = field(line, INODE, 10, &end);

    return state == CONNECTED && inode && *end == ' ' &&
           same_socket(end + 1, path) ? inode : 0;
}

uint64_t ka_client_of(const char *path)
{
    FILE *table = fopen(TABLE, "re");
    uint64_t inode = 0;
    char *line = NULL;
    size_t room = 0;
    ssize_t len;

    while (table && !inode && (len = getline(&line, &room, table)) > 0) {
        line[len - (line[len - 1] == '\n')] = 0;
        inode = accepted_on(line, path);
    }
    free(line);
    if (table) {
        fclose(table);
    }
    return inode;
}
