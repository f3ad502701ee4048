/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a file that a user named: see gs-types.h. */
#include "guest-symbols/api/gs-types.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-symbols/gs.h"

static bool read_all(int fd, uint8_t *buf, size_t len, GError **errp)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, buf + done, len - done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return gs_fail(errp, GS_ERROR_IO, "%s",
                           n ? g_strerror(errno) : "became shorter while read");
        }
        done += n;
    }
    return true;
}

static GBytes *read_open_file(int fd, uint64_t max, GError **errp)
{
    struct stat st;
    uint8_t *buf;

    if (fd < 0 || fstat(fd, &st) < 0) {
        return gs_fail(errp, GS_ERROR_IO, "%s", g_strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return gs_fail(errp, GS_ERROR_IO, "not a regular file");
    }
    if ((uint64_t)st.st_size > max) {
        return gs_fail(errp, GS_ERROR_FORMAT, "%" PRIu64
                       " bytes; the limit is %" PRIu64, (uint64_t)st.st_size,
                       max);
    }
    buf = g_try_malloc(st.st_size + 1);
    if (!buf) {
        return gs_fail(errp, GS_ERROR_IO, "not enough memory");
    }
    if (!read_all(fd, buf, st.st_size, errp)) {
        g_free(buf);
        return NULL;
    }
    buf[st.st_size] = 0;
    return g_bytes_new_take(buf, st.st_size);
}

GBytes *gs_file_read(const char *path, uint64_t max, GError **errp)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    GBytes *bytes = read_open_file(fd, max, errp);

    if (fd >= 0) {
        close(fd);
    }
    return bytes;
}

GBytes *gs_file_read_named(const char *path, uint64_t max, GError **errp)
{
    GBytes *bytes = gs_file_read(path, max, errp);

    if (!bytes) {
        g_prefix_error(errp, "%s: ", path);
    }
    return bytes;
}
