/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-slabs: what the kernel counts of its caches, at one moment.
 *
 *   ka-slabs FOLDER [SECONDS]
 *
 * Runs inside the guest. Writes FOLDER/slabinfo, a copy of /proc/slabinfo,
 * and FOLDER/slabs, one line a cache: its name, what its folder in sysfs is a
 * link to (caches that were merged share that), how many slabs CPUs held just
 * before and just after slabinfo was read, how many free objects they may have
 * held in sheaves (since 6.18; two of them each, a main and a spare one), and
 * how many bytes of a slot lie before its object: with slub_debug=Z a red zone
 * (mm/slub.c, red_left_pad).
 *
 * slabinfo counts every object that a CPU holds as active, so these are given
 * back first: all of them, and when a grace period is over all of them again,
 * because giving back a sheaf frees it, to a cache that has had its turn. All
 * files are opened beforehand and none is closed
 * before the end: opening and closing allocates and frees. While slabinfo is
 * read the process is named "ka-slabinfo", for whoever looks at its events.
 * With SECONDS it then prints KA-STILL and sleeps so long, so that the numbers
 * can be compared with the memory of a VM that stands.
 * Exit code: 0, 1 when a file could not be read or written, 2 usage.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLAB_DIR "/sys/kernel/slab"
#define MAX_CACHES 400
#define READER "ka-slabinfo"

typedef struct Cache {
    char name[64];
    char link[64];
    int shrink, cpu_slabs, cpu_partial;
    int before, after, sheaves, pad;
} Cache;

static Cache caches[MAX_CACHES];
static int n_caches;
static char slabinfo[1 << 18];

static int open_in(const char *cache, const char *file, int flags)
{
    char path[256];

    snprintf(path, sizeof(path), SLAB_DIR "/%s/%s", cache, file);
    return open(path, flags);
}

static int read_number(int fd)
{
    char text[64];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    if (n <= 0) {
        return -1;
    }
    text[n] = '\0';
    return strtol(text, NULL, 10);
}

/*
 * The file cpu_slabs leaves out a CPU that has no slab to allocate from; such
 * a CPU may have partial ones, put there by frees. Those of all CPUs are in
 * the file slabs_cpu_partial (before 7.0), as "OBJECTS(SLABS) ...": with as
 * many more as there are CPUs to have one to allocate from, that is the most
 * that they hold.
 */
static int slabs_held(const Cache *c, int cpus)
{
    int slabs = read_number(c->cpu_slabs);
    long in_partial = 0;
    char text[64];
    ssize_t n = pread(c->cpu_partial, text, sizeof(text) - 1, 0);
    const char *partial;

    if (n <= 0) {
        return slabs;
    }
    text[n] = '\0';
    partial = strchr(text, '(');
    if (partial) {
        in_partial = strtol(partial + 1, NULL, 10);
    }
    return in_partial + (slabs < cpus ? slabs : cpus);
}

static int number_in(const char *cache, const char *file)
{
    int fd = open_in(cache, file, O_RDONLY);
    int number = fd < 0 ? 0 : read_number(fd);

    close(fd);
    return number;
}

static int in_sheaves(const char *cache)
{
    int each = number_in(cache, "sheaf_capacity");

    return each > 0 ? 2 * each * sysconf(_SC_NPROCESSORS_ONLN) : 0;
}

/* The red zone before an object is a pointer, aligned as the object is. */
static int left_pad(const char *cache)
{
    int align = number_in(cache, "align");
    int pad = sizeof(void *);

    if (number_in(cache, "red_zone") != 1) {
        return 0;
    }
    return align > 0 ? (pad + align - 1) / align * align : pad;
}

static void add_cache(const char *name)
{
    Cache *c = &caches[n_caches];
    char path[256], link[sizeof(c->link)];
    ssize_t n;

    snprintf(c->name, sizeof(c->name), "%s", name);
    snprintf(c->link, sizeof(c->link), "%s", name);
    snprintf(path, sizeof(path), SLAB_DIR "/%s", name);
    n = readlink(path, link, sizeof(link) - 1);
    if (n > 0) {
        link[n] = '\0';
        snprintf(c->link, sizeof(c->link), "%s", link);
    }
    c->shrink = open_in(name, "shrink", O_WRONLY);
    c->cpu_slabs = open_in(name, "cpu_slabs", O_RDONLY);
    c->cpu_partial = open_in(name, "slabs_cpu_partial", O_RDONLY);
    c->sheaves = in_sheaves(name);
    c->pad = left_pad(name);
    n_caches++;
}

static int add_caches(void)
{
    DIR *dir = opendir(SLAB_DIR);
    struct dirent *e;

    if (!dir) {
        return 1;
    }
    while ((e = readdir(dir)) && n_caches < MAX_CACHES) {
        if (e->d_name[0] != '.' && e->d_name[0] != ':') {
            add_cache(e->d_name);
        }
    }
    closedir(dir);
    return 0;
}

static size_t read_all(int fd, char *to, size_t size)
{
    size_t done = 0;
    ssize_t n;

    while (done < size && (n = read(fd, to + done, size - done)) > 0) {
        done += n;
    }
    return done;
}

/* Opening and closing any file allocates: an event of the reader's. */
static void make_event(void)
{
    close(open("/proc/self/stat", O_RDONLY));
}

static void give_back(void)
{
    int i;

    sleep(1);       /* what was freed so far waits for a grace period */
    for (i = 0; i < n_caches; i++) {
        if (write(caches[i].shrink, "1", 1) != 1) {
            continue;   /* a merged cache that is gone by now */
        }
    }
}

static size_t take_moment(int fd)
{
    int cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t len;
    int i;

    give_back();
    give_back();
    for (i = 0; i < n_caches; i++) {
        caches[i].before = slabs_held(&caches[i], cpus);
    }
    prctl(PR_SET_NAME, READER);
    make_event();
    len = read_all(fd, slabinfo, sizeof(slabinfo));
    make_event();
    prctl(PR_SET_NAME, "ka-slabs");
    for (i = 0; i < n_caches; i++) {
        caches[i].after = slabs_held(&caches[i], cpus);
    }
    return len;
}

static void stand_still(unsigned seconds)
{
    static const char text[] = "KA-STILL\n";

    if (seconds && write(STDOUT_FILENO, text, sizeof(text) - 1) > 0) {
        sleep(seconds);
    }
}

static FILE *create(const char *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return fopen(path, "w");
}

static int write_files(const char *folder, size_t len)
{
    FILE *info = create(folder, "slabinfo");
    FILE *slabs = create(folder, "slabs");
    int i;

    if (!info || !slabs || fwrite(slabinfo, 1, len, info) != len) {
        return 1;
    }
    for (i = 0; i < n_caches; i++) {
        fprintf(slabs, "%s %s %d %d %d %d\n", caches[i].name,
                caches[i].link, caches[i].before, caches[i].after,
                caches[i].sheaves, caches[i].pad);
    }
    return fclose(info) | fclose(slabs) ? 1 : 0;
}

int main(int argc, char **argv)
{
    int fd = open("/proc/slabinfo", O_RDONLY);
    size_t len;

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: ka-slabs FOLDER [SECONDS]\n");
        return 2;
    }
    if (fd < 0 || add_caches()) {
        perror("ka-slabs");
        return 1;
    }
    len = take_moment(fd);
    stand_still(argc == 3 ? strtoul(argv[2], NULL, 10) : 0);
    return write_files(argv[1], len);
}
