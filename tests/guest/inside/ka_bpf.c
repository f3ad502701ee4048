/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-bpf: lets a BPF program allocate.
 *
 * Runs inside the guest. The program puts an element into an LPM trie, which
 * allocates it. While it is loaded its line of /proc/kallsyms is printed; then
 * it is unloaded. Exit code: 0, 1 when something failed, 77 where the kernel
 * has no JIT for it.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME "ka_prog"

typedef struct Key {
    uint32_t bits;
    uint8_t data[4];
} Key;

static int bpf(int cmd, union bpf_attr *attr)
{
    int ret = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

    if (ret < 0) {
        perror("ka-bpf: bpf");
    }
    return ret;
}

static int make_map(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_LPM_TRIE, .key_size = sizeof(Key),
        .value_size = 8, .max_entries = 16, .map_flags = BPF_F_NO_PREALLOC,
    };

    return bpf(BPF_MAP_CREATE, &attr);
}

#define INSN(c, d, s, o, i) \
    { .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) }

static int load(int map)
{
    const struct bpf_insn code[] = {
        INSN(BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8, 32),
        INSN(BPF_ST | BPF_MEM | BPF_DW, 10, 0, -16, 1),
        INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map),
        INSN(0, 0, 0, 0, 0),
        INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
        INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -8),
        INSN(BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0),
        INSN(BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, -16),
        INSN(BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, 0),
        INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_update_elem),
        INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
        INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
        .insns = (uintptr_t)code, .insn_cnt = sizeof(code) / sizeof(*code),
        .license = (uintptr_t)"GPL", .prog_name = NAME,
    };

    return bpf(BPF_PROG_LOAD, &attr);
}

static int run(int prog)
{
    char packet[64] = { 0 };
    union bpf_attr attr = {
        .test.prog_fd = prog, .test.data_in = (uintptr_t)packet,
        .test.data_size_in = sizeof(packet), .test.repeat = 1,
    };

    return bpf(BPF_PROG_TEST_RUN, &attr);
}

static int show_name(void)
{
    FILE *f = fopen("/proc/kallsyms", "r");
    char line[512];
    int found = 0;

    while (f && fgets(line, sizeof(line), f)) {
        if (strstr(line, "bpf_prog_") && strstr(line, NAME)) {
            printf("ka-bpf: %s", line);
            found = 1;
        }
    }
    if (f) {
        fclose(f);
    }
    return found;
}

int main(void)
{
    int map = make_map();
    int prog = map < 0 ? -1 : load(map);

    if (prog < 0 || run(prog) < 0) {
        return 1;
    }
    return show_name() ? 0 : 77;
}
