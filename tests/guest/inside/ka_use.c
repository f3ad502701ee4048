/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-use: use a module of the kernel a little, where busybox has no program
 * for it.
 *
 *   ka-use socket FAMILY TYPE PROTOCOL   open and close a socket
 *   ka-use alg TYPE NAME                 hash or encrypt 64 bytes
 *   ka-use congestion NAME               send over loopback with this control
 *   ka-use table 4|6 NAME                ask for a table of netfilter
 *   ka-use dm NAME TARGET PARAMETERS     make a device of device mapper
 *   ka-use dm-remove NAME
 *   ka-use ioctl PATH NUMBER             without an argument
 *
 * Runs inside the guest. Exit code: 0, 1 the kernel refused, 2 usage.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/if_alg.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define GET_INFO 64                 /* IPT_SO_GET_INFO, IP6T_SO_GET_INFO */
#define DM_MINOR 236                /* of /dev/mapper/control */
#define SECTORS 2048

static int number(const char *word)
{
    return strtol(word, NULL, 0);
}

static int use_socket(char **word)
{
    return socket(number(word[0]), number(word[1]), number(word[2])) < 0;
}

/* Send zeros with a key of zeros; a hash that has no key refuses it. */
static int use_alg(char **word)
{
    struct sockaddr_alg name = { .salg_family = AF_ALG };
    char data[64] = "", key[16] = "", result[64];
    int s = socket(AF_ALG, SOCK_SEQPACKET, 0), op;

    snprintf((char *)name.salg_type, sizeof(name.salg_type), "%s", word[0]);
    snprintf((char *)name.salg_name, sizeof(name.salg_name), "%s", word[1]);
    if (bind(s, (struct sockaddr *)&name, sizeof(name))) {
        return 1;
    }
    setsockopt(s, SOL_ALG, ALG_SET_KEY, key, sizeof(key));
    op = accept(s, NULL, 0);
    return op < 0 || send(op, data, sizeof(data), 0) < 0 ||
           read(op, result, sizeof(result)) <= 0;
}

static int use_congestion(char **word)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    char data[4096] = "";

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, word[0],
                      strlen(word[0])) ||
           bind(listener, (struct sockaddr *)&at, len) ||
           listen(listener, 1) ||
           getsockname(listener, (struct sockaddr *)&at, &len) ||
           connect(s, (struct sockaddr *)&at, len) ||
           send(s, data, sizeof(data), 0) < 0 ||
           recv(accept(listener, NULL, NULL), data, sizeof(data), 0) < 0;
}

static int use_table(char **word)
{
    int six = !strcmp(word[0], "6");
    char info[84] = "";
    socklen_t len = sizeof(info);
    int s = socket(six ? AF_INET6 : AF_INET, SOCK_RAW, IPPROTO_RAW);

    snprintf(info, 32, "%s", word[1]);
    return getsockopt(s, six ? IPPROTO_IPV6 : IPPROTO_IP, GET_INFO, info,
                      &len) != 0;
}

/* A request to device mapper: with one target, or none. */
typedef struct Request {
    struct dm_ioctl head;
    struct dm_target_spec target;
    char parameters[256];
} Request;

static int dm_call(unsigned long number, const char *name, Request *r)
{
    static int control = -1;

    if (control < 0) {
        mknod("/tmp/dm-control", S_IFCHR | 0600, makedev(10, DM_MINOR));
        control = open("/tmp/dm-control", O_RDWR);
    }
    r->head.version[0] = 4;
    r->head.data_size = sizeof(*r);
    r->head.data_start = sizeof(r->head);
    snprintf(r->head.name, sizeof(r->head.name), "%s", name);
    return ioctl(control, number, r);
}

static int use_dm(char **word)
{
    Request create = { 0 }, resume = { 0 }, load = {
        .head = { .target_count = 1 },
        .target = { .length = SECTORS },
    };

    snprintf(load.target.target_type, sizeof(load.target.target_type), "%s",
             word[1]);
    snprintf(load.parameters, sizeof(load.parameters), "%s", word[2]);
    return dm_call(DM_DEV_CREATE, word[0], &create) ||
           dm_call(DM_TABLE_LOAD, word[0], &load) ||
           dm_call(DM_DEV_SUSPEND, word[0], &resume);
}

static int remove_dm(char **word)
{
    Request r = { 0 };

    return dm_call(DM_DEV_REMOVE, word[0], &r) != 0;
}

static int use_ioctl(char **word)
{
    int fd = open(word[0], O_RDWR);

    return fd < 0 || ioctl(fd, strtoul(word[1], NULL, 0), 0) < 0;
}

static const struct {
    const char *name;
    int words;
    int (*use)(char **word);
} use[] = {
    { "socket", 3, use_socket }, { "alg", 2, use_alg },
    { "congestion", 1, use_congestion }, { "table", 2, use_table },
    { "dm", 3, use_dm }, { "dm-remove", 1, remove_dm },
    { "ioctl", 2, use_ioctl },
};

int main(int argc, char **argv)
{
    int i;

    for (i = 0; i < (int)(sizeof(use) / sizeof(use[0])); i++) {
        if (argc == 2 + use[i].words && !strcmp(argv[1], use[i].name)) {
            int failed = use[i].use(argv + 2);

            if (failed) {
                perror(argv[1]);
            }
            return failed;
        }
    }
    fprintf(stderr, "usage: ka-use USE WORD..., see ka_use.c\n");
    return 2;
}
