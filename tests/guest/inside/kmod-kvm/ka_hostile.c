/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_hostile: does to the breakpoints of ka under KVM what no kernel does. The
 * file /proc/ka_hostile takes lines
 *
 *   find ADDRESS    find the breakpoint near the entry of the function there,
 *                   which is called with (size, GFP_KERNEL)
 *   middle          jump behind the first byte of its instruction
 *   step            execute the instruction with RFLAGS.TF set
 *   patch BYTE      write that byte (hexadecimal) over the breakpoint
 *   stack           execute the instruction with a stack that is not mapped:
 *                   the kernel panics
 *
 * and says what became of it in the log. x86-64.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#define INT3 0xcc

static u8 *place;

/* Call @at as a function of two arguments. */
void *ka_hostile_call(void *at, unsigned long a, unsigned long b);
/* The same, with RFLAGS.TF set for the first instruction. */
void *ka_hostile_step(void *at, unsigned long a, unsigned long b);
/* The same, with the stack pointer @sp. Does not return. */
void ka_hostile_jump(void *at, unsigned long sp);

asm(".pushsection .text\n"
    "save:\n"
    "    pop %rax\n"
    "    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "    push %rax\n"
    "    mov %rdi, %rax; mov %rsi, %rdi; mov %rdx, %rsi\n"
    "    .byte 0xc3\n"
    "restore:\n"
    "    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
    "    .byte 0xc3; int3\n"
    ".globl ka_hostile_call\n"
    "ka_hostile_call:\n"
    "    call save\n"
    "    lea 1f(%rip), %rcx; push %rcx\n"
    "    push %rax\n"
    "    .byte 0xc3; int3\n"
    "1:  jmp restore\n"
    ".globl ka_hostile_step\n"
    "ka_hostile_step:\n"
    "    call save\n"
    "    lea 1f(%rip), %rcx; push %rcx\n"
    "    mov %rsp, %rdx\n"
    "    mov %ss, %ecx; push %rcx\n"
    "    push %rdx\n"
    "    pushfq; orq $0x100, (%rsp)\n"
    "    mov %cs, %ecx; push %rcx\n"
    "    push %rax\n"
    "    iretq\n"
    "1:  jmp restore\n"
    ".globl ka_hostile_jump\n"
    "ka_hostile_jump:\n"
    "    mov %rdi, %rax; mov %rsi, %rsp\n"
    "    mov $64, %edi; mov $0xcc0, %esi\n"
    "    push %rax\n"
    "    .byte 0xc3; int3\n"
    ".popsection\n");

static int find(u8 *function)
{
    unsigned int i;

    for (i = 0; i < 32; i++) {
        if (function[i] == INT3) {
            place = function + i;
            pr_warn("ka_hostile: int3 %px, then %02x %02x\n", place, place[1],
                    place[2]);
            return 0;
        }
    }
    return -ENOENT;
}

/* push %r8 to push %r15 are push %rax to push %rdi behind a prefix. */
static int middle(void)
{
    void *p;

    if ((place[1] & 0xf8) != 0x50) {
        return -EOPNOTSUPP;
    }
    p = ka_hostile_call(place + 1, 64, GFP_KERNEL);
    pr_warn("ka_hostile: middle %d\n", p && ksize(p) >= 64);
    kfree(p);
    return 0;
}

static int step(void)
{
    void *p = ka_hostile_step(place, 64, GFP_KERNEL);

    pr_warn("ka_hostile: step %d\n", p && ksize(p) >= 64);
    kfree(p);
    return 0;
}

/* By a mapping of its own: the kernel's own is read-only. */
static int patch(u8 byte)
{
    struct page *page = pfn_to_page(__pa_symbol(place) >> PAGE_SHIFT);
    u8 *text = vmap(&page, 1, VM_MAP, PAGE_KERNEL);

    if (!text) {
        return -ENOMEM;
    }
    text[offset_in_page(place)] = byte;
    vunmap(text);
    pr_warn("ka_hostile: patch %d\n", *(volatile u8 *)place == byte);
    return 0;
}

static bool number_after(const char *line, const char *word,
                         unsigned long *number)
{
    size_t len = strlen(word);

    return !strncmp(line, word, len) && !kstrtoul(line + len, 16, number);
}

static int run(const char *line)
{
    unsigned long number;

    if (number_after(line, "find ", &number)) {
        return find((u8 *)number);
    }
    if (!place) {
        return -EINVAL;
    }
    if (number_after(line, "patch ", &number)) {
        return patch(number);
    }
    if (!strncmp(line, "stack", 5)) {
        ka_hostile_jump(place, 0xffffa00000000000 + 0x123450);
    }
    return !strncmp(line, "middle", 6) ? middle() :
           !strncmp(line, "step", 4) ? step() : -EINVAL;
}

static ssize_t write(struct file *file, const char __user *from, size_t len,
                     loff_t *at)
{
    char line[64] = "";
    int err;

    if (len >= sizeof(line) || copy_from_user(line, from, len)) {
        return -EINVAL;
    }
    err = run(line);
    return err ? err : len;
}

static const struct proc_ops ops = {
    .proc_write = write,
};

static int __init ka_hostile_init(void)
{
    return proc_create("ka_hostile", 0200, NULL, &ops) ? 0 : -ENOMEM;
}

static void __exit ka_hostile_exit(void)
{
    remove_proc_entry("ka_hostile", NULL);
}

module_init(ka_hostile_init);
module_exit(ka_hostile_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a guest that is hostile to ka");
