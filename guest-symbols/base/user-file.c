/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a file that a user named: see gs-user-file.h. */
#include "guest-symbols/api/gs-user-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-symbols/gs.h"

#define FILE_SIZE_MAX   (2ull << 30)

static bool read_all(int fd, uint8_t *buf, size_t len, GError **errp)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, buf + done, len - done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            g_set_error(errp, GS_ERROR, GS_ERROR_IO, "%s",
                        n ? g_strerror(errno) : "became shorter while read");
            return false;
        }
        done += n;
    }
    return true;
}

/*
 * The file is read, not mapped: a mapped file that is truncated by a rebuild
 * would kill the process (SIGBUS).
 */
static GBytes *read_open_file(int fd, GError **errp)
{
    struct stat st;
    uint8_t *buf;

    if (fd < 0 || fstat(fd, &st) < 0) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "%s", g_strerror(errno));
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "not a regular file");
        return NULL;
    }
    if (!st.st_size || (uint64_t)st.st_size > FILE_SIZE_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "%s",
                    st.st_size ? "too large for a kernel" : "empty file");
        return NULL;
    }
    buf = g_try_malloc(st.st_size);
    if (!buf) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "not enough memory");
        return NULL;
    }
    if (!read_all(fd, buf, st.st_size, errp)) {
        g_free(buf);
        return NULL;
    }
    return g_bytes_new_take(buf, st.st_size);
}

GBytes *gs_kernel_read_file(const char *path, GError **errp)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    GBytes *bytes = read_open_file(fd, errp);

    if (fd >= 0) {
        close(fd);
    }
    return bytes;
}
