/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-perf: run a program, and print what probes of the kernel saw meanwhile.
 *
 *   ka-perf FOLDER PROGRAM [ARG]...
 *
 * Runs inside the guest. FOLDER is a folder of events in tracefs; all fields of
 * these events are 64-bit numbers. The lines are those of ftrace, without the
 * names of tasks. They come through the rings of perf: those of ftrace take no
 * event of a breakpoint on an architecture without NMI-safe cmpxchg (riscv64).
 * Exit code: 0, 1 if a call failed or an event is lost, 2 usage.
 */
#include <dirent.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING        (64u << 20)         /* bytes of a vCPU's ring */
#define CPUS_MAX    64
#define FIELDS_MAX  16
#define IDS_MAX     65536

typedef struct Event {
    char name[256];
    unsigned n;
    char field[FIELDS_MAX][256];
    unsigned offset[FIELDS_MAX];
} Event;

/* PERF_SAMPLE_TID | TIME | CPU | RAW, in the order of the ABI. @tid is -1 when
 * the parent has reaped the task, which still executes the end of its exit;
 * @common_pid is right then, too. */
typedef struct Sample {
    struct perf_event_header head;
    uint32_t pid, tid;
    uint64_t ns;
    uint32_t cpu, unused;
    uint32_t size;
    uint16_t id;                        /* the raw event begins here */
    uint16_t flags;
    uint32_t common_pid;
} __attribute__((packed)) Sample;

typedef struct Ring {
    int fd;
    uint8_t *data;
    struct perf_event_mmap_page *page;
} Ring;

static Event *events[IDS_MAX];
static Ring ring[CPUS_MAX];
static Sample **samples;
static size_t n_samples;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static FILE *open_file(const char *folder, const char *event, const char *file)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s/%s", folder, event, file);
    f = fopen(path, "r");
    if (!f) {
        fail(path);
    }
    return f;
}

/* Read the fields behind the address of the probe, from lines such as
 * "\tfield:u64 a0;\toffset:16;\tsize:8;". */
static void read_format(Event *e, FILE *f)
{
    static const char type[] = "\tfield:u64 ", at[] = "\toffset:";
    char line[256];

    while (e->n < FIELDS_MAX && fgets(line, sizeof(line), f)) {
        char *name = line + sizeof(type) - 1;
        char *end = strchr(line, ';');
        char *offset = strstr(line, at);

        if (!strncmp(line, type, sizeof(type) - 1) && end && offset) {
            *end = 0;
            snprintf(e->field[e->n], sizeof(e->field[0]), "%s", name);
            e->offset[e->n++] = strtoul(offset + sizeof(at) - 1, NULL, 10);
        }
    }
}

static void open_on(unsigned id, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = id,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                       PERF_SAMPLE_RAW,
    };
    int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
                     PERF_FLAG_FD_CLOEXEC);
    Ring *r = &ring[cpu];

    if (fd < 0) {
        fail("perf_event_open");
    }
    if (r->page) {
        if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd)) {
            fail("PERF_EVENT_IOC_SET_OUTPUT");
        }
        return;
    }
    r->fd = fd;
    r->page = mmap(NULL, RING + getpagesize(), PROT_READ | PROT_WRITE,
                   MAP_SHARED, fd, 0);
    if (r->page == MAP_FAILED) {
        fail("mmap");
    }
    r->data = (uint8_t *)r->page + getpagesize();
}

static void open_event(const char *folder, const char *name, int cpus)
{
    FILE *id_file = open_file(folder, name, "id");
    FILE *format = open_file(folder, name, "format");
    unsigned id;

    if (fscanf(id_file, "%u", &id) != 1 || id >= IDS_MAX) {
        fail(name);
    }
    events[id] = calloc(1, sizeof(Event));
    snprintf(events[id]->name, sizeof(events[id]->name), "%s", name);
    read_format(events[id], format);
    fclose(id_file);
    fclose(format);
    for (int cpu = 0; cpu < cpus; cpu++) {
        open_on(id, cpu);
    }
}

static void open_all(const char *folder, int cpus)
{
    DIR *d = opendir(folder);
    struct dirent *e;

    if (!d) {
        fail(folder);
    }
    while ((e = readdir(d))) {
        if (e->d_type == DT_DIR && *e->d_name != '.') {
            open_event(folder, e->d_name, cpus);
        }
    }
    closedir(d);
}

static void run(char **argv)
{
    pid_t pid = fork();

    if (!pid) {
        execvp(*argv, argv);
        fail(*argv);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid) {
        fail("fork");
    }
}

static void add_sample(const Ring *r, uint64_t at, unsigned size)
{
    uint8_t *copy = malloc(size);

    for (unsigned i = 0; i < size; i++) {
        copy[i] = r->data[(at + i) % RING];
    }
    if (!(n_samples & (n_samples - 1))) {
        samples = realloc(samples, 2 * (n_samples + 1) * sizeof(*samples));
    }
    samples[n_samples++] = (Sample *)copy;
}

/* Return false if an event is lost. */
static int read_ring(const Ring *r)
{
    uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
    int ok = 1;

    for (uint64_t at = 0; at < head;) {
        struct perf_event_header h;

        memcpy(&h, r->data + at % RING, sizeof(h));     /* 8-byte aligned */
        if (h.type == PERF_RECORD_SAMPLE) {
            add_sample(r, at, h.size);
        }
        ok &= h.type != PERF_RECORD_LOST;
        at += h.size;
    }
    return ok;
}

static int by_time(const void *a, const void *b)
{
    const Sample *x = *(Sample *const *)a, *y = *(Sample *const *)b;

    return (x->ns > y->ns) - (x->ns < y->ns);
}

static void print_sample(const Sample *s)
{
    const Event *e = events[s->id];

    printf("%16s-%-7u [%03u] ..... %5" PRIu64 ".%06" PRIu64 ": %s: ()", "?",
           s->common_pid, s->cpu, s->ns / 1000000000, s->ns / 1000 % 1000000,
           e->name);
    for (unsigned i = 0; i < e->n; i++) {
        uint64_t value;

        memcpy(&value, (const uint8_t *)&s->id + e->offset[i], sizeof(value));
        printf(" %s=0x%" PRIx64, e->field[i], value);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    struct rlimit files = { 65536, 65536 };
    int cpus = sysconf(_SC_NPROCESSORS_ONLN), ok = 1;

    if (argc < 3 || cpus > CPUS_MAX) {
        return 2;
    }
    if (setrlimit(RLIMIT_NOFILE, &files)) {
        fail("setrlimit");
    }
    open_all(argv[1], cpus);
    run(argv + 2);
    for (int cpu = 0; cpu < cpus; cpu++) {
        ok &= read_ring(&ring[cpu]);
    }
    qsort(samples, n_samples, sizeof(*samples), by_time);
    for (size_t i = 0; i < n_samples; i++) {
        print_sample(samples[i]);
    }
    return !ok;
}
