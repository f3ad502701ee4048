/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file that is replaced whole or not at all: see ka.h. */
#include "monitor-cmds/program/ka.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static bool fail(const KaOutput *o, int error)
{
    fprintf(stderr, "ka: %s: %s\n", o->path ? o->path : "stdout",
            strerror(error));
    return false;
}

/* Return true if the path is something that a rename would destroy. */
static bool is_special(const char *path)
{
    return g_file_test(path, G_FILE_TEST_EXISTS) &&
           !g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

bool ka_output_begin(KaOutput *o, const char *path)
{
    int fd;

    *o = (KaOutput) { .path = path };
    if (!path) {
        o->to = stdout;
        return true;
    }
    if (is_special(path)) {
        fd = g_open(path, O_WRONLY | O_CLOEXEC, 0);
    } else {
        o->temp = g_strconcat(path, ".XXXXXX", NULL);
        fd = g_mkstemp_full(o->temp, O_RDWR | O_CLOEXEC, 0666);
    }
    o->to = fd < 0 ? NULL : fdopen(fd, "w");
    if (!o->to) {
        fail(o, errno);
        g_clear_pointer(&o->temp, g_free);
    }
    return o->to != NULL;
}

/* Write what is buffered. Return errno of a failure, or 0. */
static int finish(const KaOutput *o)
{
    int error = ferror(o->to) ? EIO : 0;

    errno = 0;
    if (fflush(o->to)) {
        error = errno ? errno : EIO;
    }
    if (o->path && fclose(o->to) && !error) {
        error = errno ? errno : EIO;
    }
    return error;
}

bool ka_output_end(KaOutput *o, bool complete)
{
    g_autofree char *temp = g_steal_pointer(&o->temp);
    int error = finish(o);

    if (complete && !error && temp && g_rename(temp, o->path)) {
        error = errno;
    }
    if (temp && (error || !complete)) {
        g_unlink(temp);
    }
    return error && complete ? fail(o, error) : !error;
}
