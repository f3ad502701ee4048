/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin that makes some calls of a function return a value at once, to test
 * the patches of QEMU without the tracer.
 *
 *   entry=ADDR  of the function
 *   value=N     what it returns then
 *   every=N     each N-th call (0, the default: none)
 *   stop=N      stop the VM at the N-th call, before it runs
 *   count=on    under -icount shift=0, compare the clock with the number of
 *               instructions at each of them
 *
 * At the end it prints what it did, by QEMU's "-d plugin".
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* How a function returns. No link register: the address is on the stack. */
static const struct arch {
    const char *target, *result, *link, *sp, *pc;
} arches[] = {
    { "x86_64", "rax", NULL, "rsp", "rip" },
    { "aarch64", "x0", "x30", "sp", "pc" },
    { "riscv64", "a0", "ra", "sp", "pc" },
};

static const struct arch *arch;
static struct qemu_plugin_register *result, *from, *pc;
static uint64_t entry, value, every, stop_at;
static bool counting;

static gint n_calls, n_forced, n_stopped;
/* Of the call that the VM was stopped at, and that is about to be repeated */
static gint stopped_vcpu = -1;
/* With count=on there is one vCPU. */
static int64_t n_insns, n_wrong, first_wrong;

static uint64_t read_register(struct qemu_plugin_register *reg)
{
    g_autoptr(GByteArray) buf = g_byte_array_new();
    uint64_t v;

    g_assert(qemu_plugin_read_register(reg, buf) == sizeof(v));
    memcpy(&v, buf->data, sizeof(v));
    return v;
}

static bool write_register(struct qemu_plugin_register *reg, uint64_t v)
{
    g_autoptr(GByteArray) buf = g_byte_array_new();

    g_byte_array_append(buf, (const uint8_t *)&v, sizeof(v));
    return qemu_plugin_write_register(reg, buf);
}

/* Return the address that the function returns to, as if it did. */
static uint64_t pop_return(void)
{
    g_autoptr(GByteArray) buf = NULL;
    uint64_t sp = read_register(from), to;

    if (arch->link) {
        return sp;
    }
    buf = g_byte_array_new();
    g_assert(qemu_plugin_read_memory_vaddr(sp, buf, sizeof(to)));
    memcpy(&to, buf->data, sizeof(to));
    g_assert(write_register(from, sp + sizeof(to)));
    return to;
}

static void leave(uint64_t to)
{
    n_insns--;                  /* this one does not run */
    qemu_plugin_set_pc(to);
}

static void on_entry(unsigned int vcpu, void *userdata)
{
    gint n;

    if (g_atomic_int_compare_and_exchange(&stopped_vcpu, (gint)vcpu, -1)) {
        return;                 /* the VM goes on */
    }
    n = g_atomic_int_add(&n_calls, 1) + 1;
    if ((uint64_t)n == stop_at) {
        g_atomic_int_inc(&n_stopped);
        g_atomic_int_set(&stopped_vcpu, vcpu);
        qemu_plugin_request_vm_stop();
        leave(entry);
    }
    if (every && n % every == 0) {
        uint64_t to = pop_return();

        g_atomic_int_inc(&n_forced);
        g_assert(write_register(result, value));
        g_assert(!write_register(pc, to));
        leave(to);
    }
}

static void on_insn(unsigned int vcpu, void *n_left)
{
    int64_t ns = qemu_plugin_get_virtual_ns(GPOINTER_TO_UINT(n_left));

    if (ns != n_insns && !n_wrong++) {
        first_wrong = n_insns;
    }
    n_insns++;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);

    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

        if (counting) {
            qemu_plugin_register_vcpu_insn_exec_cb(
                insn, on_insn, QEMU_PLUGIN_CB_NO_REGS,
                GUINT_TO_POINTER(n - i));
        }
        if (qemu_plugin_insn_vaddr(insn) == entry) {
            qemu_plugin_register_vcpu_insn_exec_cb(
                insn, on_entry, QEMU_PLUGIN_CB_RW_REGS_PC, NULL);
        }
    }
}

static void on_vcpu(qemu_plugin_id_t id, unsigned int vcpu)
{
    g_autoptr(GArray) regs = qemu_plugin_get_registers();

    for (size_t i = 0; i < regs->len; i++) {
        const qemu_plugin_reg_descriptor *reg =
            &g_array_index(regs, qemu_plugin_reg_descriptor, i);

        if (!strcmp(reg->name, arch->result)) {
            result = reg->handle;
        } else if (!strcmp(reg->name, arch->link ?: arch->sp)) {
            from = reg->handle;
        } else if (!strcmp(reg->name, arch->pc)) {
            pc = reg->handle;
        }
    }
    g_assert(result && from && pc);
}

static void print_result(qemu_plugin_id_t id, void *userdata)
{
    g_autofree char *text = g_strdup_printf(
        "FORCE calls=%d forced=%d stopped=%d insns=%" G_GINT64_FORMAT
        " wrong=%" G_GINT64_FORMAT " first=%" G_GINT64_FORMAT "\n",
        n_calls, n_forced, n_stopped, n_insns, n_wrong, first_wrong);

    qemu_plugin_outs(text);
}

static bool set_option(const char *name, const char *text)
{
    uint64_t number = g_ascii_strtoull(text, NULL, 0);

    if (!strcmp(name, "entry")) {
        entry = number;
    } else if (!strcmp(name, "value")) {
        value = number;
    } else if (!strcmp(name, "every")) {
        every = number;
    } else if (!strcmp(name, "stop")) {
        stop_at = number;
    } else if (!strcmp(name, "count")) {
        return qemu_plugin_bool_parse(name, text, &counting);
    } else {
        return false;
    }
    return true;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id,
                                           const qemu_info_t *info,
                                           int argc, char **argv)
{
    for (size_t i = 0; i < G_N_ELEMENTS(arches); i++) {
        if (!strcmp(info->target_name, arches[i].target)) {
            arch = &arches[i];
        }
    }
    for (int i = 0; i < argc; i++) {
        g_auto(GStrv) word = g_strsplit(argv[i], "=", 2);

        if (!word[1] || !set_option(word[0], word[1])) {
            fprintf(stderr, "force: '%s' is no option\n", argv[i]);
            return 1;
        }
    }
    if (!arch || !entry) {
        fprintf(stderr, "force: no entry=, or an unknown target\n");
        return 1;
    }
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, print_result, NULL);
    return 0;
}
