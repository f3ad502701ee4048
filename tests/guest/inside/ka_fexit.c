/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-fexit FUNCTION...: attaches a BPF program to the exit of each function, by
 * a BPF trampoline, and stays.
 *
 * Runs inside the guest. Functions that the kernel does not have, or that no
 * program can be attached to, are left out. Prints "attached N". Exit code: 1
 * if no program can be attached.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TYPES "/sys/kernel/btf/vmlinux"
#define TYPES_MAX (64 << 20)

static char types[TYPES_MAX];

static int read_types(void)
{
    FILE *f = fopen(TYPES, "r");
    size_t n = f ? fread(types, 1, sizeof(types), f) : 0;

    if (f) {
        fclose(f);
    }
    return n > sizeof(struct btf_header) && n < sizeof(types);
}

/* Bytes behind the struct btf_type. */
static size_t rest_of(const struct btf_type *t)
{
    size_t n = BTF_INFO_VLEN(t->info);

    switch (BTF_INFO_KIND(t->info)) {
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
        return 4;
    case BTF_KIND_ARRAY:
        return sizeof(struct btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
    case BTF_KIND_DATASEC:
    case BTF_KIND_ENUM64:
        return n * 12;
    case BTF_KIND_ENUM:
    case BTF_KIND_FUNC_PROTO:
        return n * 8;
    default:
        return 0;
    }
}

/* Return the number of the function's type, 0 for none. */
static int find_function(const char *name)
{
    const struct btf_header *h = (const void *)types;
    const char *at = types + h->hdr_len + h->type_off, *end = at + h->type_len;
    const char *names = types + h->hdr_len + h->str_off;

    for (int id = 1; at < end; id++) {
        const struct btf_type *t = (const void *)at;

        if (BTF_INFO_KIND(t->info) == BTF_KIND_FUNC &&
            !strcmp(names + t->name_off, name)) {
            return id;
        }
        at += sizeof(*t) + rest_of(t);
    }
    return 0;
}

static int bpf(int cmd, union bpf_attr *attr)
{
    return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* The program returns 0 and does nothing else. */
static int attach(int function)
{
    static const struct bpf_insn code[] = {
        { .code = BPF_ALU64 | BPF_MOV | BPF_K },
        { .code = BPF_JMP | BPF_EXIT },
    };
    union bpf_attr load = {
        .prog_type = BPF_PROG_TYPE_TRACING,
        .expected_attach_type = BPF_TRACE_FEXIT,
        .attach_btf_id = function,
        .insns = (uintptr_t)code, .insn_cnt = sizeof(code) / sizeof(*code),
        .license = (uintptr_t)"GPL",
    };
    union bpf_attr open = { .raw_tracepoint = { .name = 0 } };
    int prog = bpf(BPF_PROG_LOAD, &load);

    if (prog < 0) {
        return 0;
    }
    open.raw_tracepoint.prog_fd = prog;
    return bpf(BPF_RAW_TRACEPOINT_OPEN, &open) >= 0;
}

int main(int argc, char **argv)
{
    int n = 0;

    if (!read_types()) {
        fprintf(stderr, "ka-fexit: cannot read %s\n", TYPES);
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        int function = find_function(argv[i]);

        n += function && attach(function);
    }
    if (!n) {
        perror("ka-fexit: no program can be attached");
        return 1;
    }
    printf("attached %d\n", n);
    fflush(stdout);
    for (;;) {
        pause();
    }
}
