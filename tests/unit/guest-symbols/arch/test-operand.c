/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory operands of single instructions of the three architectures. The bytes
 * are what binutils assembles; the answers were written by hand from the rules
 * of gs-instruction.h. test-kernel-operands.c compares with disassemblers.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/gs.h"

#include <string.h>

typedef struct Sample {
    const char *text, *hex;
    bool touches;
} Sample;

/* gas's syntax, AT&T's for x86-64 */
static const Sample x86_64[] = {
    { "mov (%rax),%rbx", "488b18", true },
    { "mov %rbx,0x8(%r12)", "49895c2408", true },
    { "mov (%r13),%eax", "418b4500", true },
    { "mov 0x10(%rsp),%rax", "488b442410", false },
    { "mov (%rsp,%rax,8),%rax", "488b04c4", false },
    { "mov (%rax,%rsi,1),%al", "8a0430", true },
    { "mov 0x10(%r12,%rcx,8),%rax", "498b44cc10", true },
    { "mov 0x1234(%rip),%rax", "488b0534120000", false },
    { "mov %gs:0x1234(%rip),%rax", "65488b0534120000", false },
    { "mov %gs:(%rax),%rdx", "65488b10", false },
    { "addq $1,%gs:0x8(%rbx)", "654883430801", false },
    { "mov %fs:(%rax),%rdx", "64488b10", true },
    { "mov 0xffffffff82000000,%eax", "8b042500000082", false },
    { "mov -0x7e000000(,%rax,8),%rax", "488b04c500000082", true },
    { "movabs 0xffff888000001000,%eax", "a1001000008088ffff", true },
    { "movabs %gs:0x1234,%eax", "65a13412000000000000", false },
    { "lea 0x8(%rax),%rbx", "488d5808", false },
    { "mov %rax,%rbx", "4889c3", false },
    { "push %rax", "50", false },
    { "push 0x8(%rax)", "ff7008", true },
    { "pop 0x8(%rax)", "8f4008", true },
    { "pop %rbx", "5b", false },
    { "call *0x18(%rax)", "ff5018", true },
    { "call *%rax", "ffd0", false },
    { "call .+100", "e85f000000", false },
    { "jmp *0x10(%r8)", "41ff6010", true },
    { "jmp *-0x7e000000(,%rax,8)", "ff24c500000082", true },
    { "ret", "c3", false },
    { "leave", "c9", false },
    { "enter $16,$0", "c8100000", false },
    { "rep movsq", "f348a5", true },
    { "rep stosb", "f3aa", true },
    { "lodsb", "ac", true },
    { "scasb", "ae", true },
    { "cmpsb", "a6", true },
    { "xlat", "d7", true },
    { "insb", "6c", true },
    { "lock cmpxchg %rdx,(%rdi)", "f0480fb117", true },
    { "lock incl 0x4(%r14)", "f041ff4604", true },
    { "lock decl %gs:0x40(%rip)", "65f0ff0d40000000", false },
    { "xadd %eax,(%rbx)", "0fc103", true },
    { "cmpxchg16b %gs:(%rsi)", "65480fc70e", false },
    { "cmpxchg16b (%rsi)", "480fc70e", true },
    { "movzbl (%rdi),%eax", "0fb607", true },
    { "movzbl 0x7(%rsp),%eax", "0fb6442407", false },
    { "movzbl %al,%eax", "0fb6c0", false },
    { "nopw 0x0(%rax,%rax,1)", "660f1f0400", false },
    { "nopl (%rax)", "0f1f00", false },
    { "endbr64", "f30f1efa", false },
    { "prefetcht0 (%rax)", "0f1808", false },
    { "prefetchw (%rax)", "0f0d08", false },
    { "clflush (%rax)", "0fae38", false },
    { "clflushopt (%rax)", "660fae38", false },
    { "clzero", "0f01fc", true },
    { "invlpg (%rax)", "0f0138", false },
    { "swapgs", "0f01f8", false },
    { "sgdt (%rax)", "0f0100", true },
    { "lfence", "0faee8", false },
    { "fxsave (%rdi)", "0fae07", true },
    { "xsave64 (%rdi)", "480fae27", true },
    { "ud2", "0f0b", false },
    { "bt %rax,(%rdi)", "480fa307", true },
    { "btsl $3,(%rdi)", "0fba2f03", true },
    { "setne (%rdi)", "0f9507", true },
    { "cmove (%rdi),%rax", "480f4407", true },
    { "movntiq %rax,(%rdi)", "480fc307", true },
    { "movdqu (%rsi),%xmm0", "f30f6f06", true },
    { "movdqu %xmm0,%xmm1", "f30f6fc8", false },
    { "pshufb (%r9),%xmm1", "66410f380009", true },
    { "palignr $8,(%r9),%xmm1", "66410f3a0f0908", true },
    { "palignr $8,%xmm3,%xmm1", "660f3a0fcb08", false },
    { "maskmovdqu %xmm1,%xmm0", "660ff7c1", true },
    { "crc32q (%rdi),%rax", "f2480f38f107", true },
    { "movdir64b (%rsp),%rax", "660f38f80424", true },
    { "invpcid (%rsp),%rax", "660f38820424", false },
    { "fldcw 0x8(%rsp)", "d96c2408", false },
    { "fnstcw (%rax)", "d938", true },
    { "fninit", "dbe3", false },
    { "vmovdqu (%rsi),%ymm0", "c5fe6f06", true },
    { "vmovdqu (%r9),%ymm12", "c4417e6f21", true },
    { "vmovdqu (%rsp),%ymm0", "c5fe6f0424", false },
    { "vmovdqu (%r12),%ymm0", "c4c17e6f0424", true },
    { "vpxor %ymm1,%ymm2,%ymm3", "c5edefd9", false },
    { "vpxor (%rcx),%ymm2,%ymm3", "c5edef19", true },
    { "vzeroupper", "c5f877", false },
    { "vmaskmovdqu %xmm1,%xmm0", "c5f9f7c1", true },
    { "vpgatherdd %ymm1,(%rax,%ymm2,4),%ymm3", "c4e275901c90", true },
    { "vpshufb 0x20(%rsp),%ymm2,%ymm3", "c4e26d005c2420", false },
    { "vmovdqu64 (%rsi),%zmm0", "62f1fe486f06", true },
    { "vmovdqu64 (%rsp),%zmm0", "62f1fe486f0424", false },
    { "vmovdqu64 (%r12),%zmm0", "62d1fe486f0424", true },
    { "vmovdqu64 %zmm1,%zmm0", "62f1fe486fc1", false },
    { "vpternlogd $0x96,(%rip),%zmm1,%zmm0", "62f3754825050000000096", false },
    { "mov (%eax),%ebx", "678b18", true },
    { "mov (%esp),%ebx", "678b1c24", true },
    { "iretq", "48cf", false },
    { "int3", "cc", false },
    { "syscall", "0f05", false },
    { "cpuid", "0fa2", false },
    { "rdmsr", "0f32", false },
    { "hlt", "f4", false },
    { "outb %al,%dx", "ee", false },
    { "mov %cr3,%rax", "0f20d8", false },
};

static const Sample arm64[] = {
    { "ldr x0, [x1]", "200040f9", true },
    { "ldr x0, [x1, x2, lsl #3]", "207862f8", true },
    { "str w0, [x1, #4]!", "204c00b8", true },
    { "ldr x0, [sp, #8]", "e00740f9", false },
    { "stp x29, x30, [sp, #-16]!", "fd7bbfa9", false },
    { "ldp x19, x20, [x29, #16]", "b35341a9", false },
    { "ldp x0, x1, [x2], #16", "4004c1a8", true },
    { "ldur x0, [x3, #-8]", "60805ff8", true },
    { "ldr x0, .+8", "40000058", false },
    { "ldr q0, .+16", "8000009c", false },
    { "ldrsw x0, .+8", "40000098", false },
    { "ldr q0, [x1]", "2000c03d", true },
    { "ld1 {v0.16b-v3.16b}, [x0], #64", "0020df4c", true },
    { "st1 {v0.16b}, [sp]", "e073004c", false },
    { "prfm pldl1keep, [x0, #64]", "002080f9", false },
    { "prfm pldl1keep, [x0, x1]", "0068a1f8", false },
    { "prfum pldl1keep, [x0, #-8]", "00809ff8", false },
    { "ldxr x0, [x1]", "207c5fc8", true },
    { "stlxr w2, x0, [x1]", "20fc02c8", true },
    { "ldxp x0, x1, [x2]", "40047fc8", true },
    { "ldar x0, [x1]", "20fcdfc8", true },
    { "ldapr x0, [x1]", "20c0bff8", true },
    { "ldapur x0, [x1, #8]", "208040d9", true },
    { "cas x0, x1, [x2]", "417ca0c8", true },
    { "casp x0, x1, x2, x3, [x4]", "827c2048", true },
    { "ldadd x0, x1, [x2]", "410020f8", true },
    { "swpal x0, x1, [x2]", "4180e0f8", true },
    { "ldtr x0, [x1]", "200840f8", true },
    { "sttrb w0, [x1]", "20080038", true },
    { "ldraa x0, [x1]", "200420f8", true },
    { "stg x0, [x1]", "200820d9", true },
    { "stzg x0, [x1], #16", "201460d9", true },
    { "stg sp, [sp]", "ff0b20d9", false },
    { "cpyfp [x0]!, [x1]!, x2!", "40040119", true },
    { "setp [x0]!, x1!, x2", "2004c219", true },
    { "dc zva, x0", "20740bd5", true },
    { "dc gzva, x0", "80740bd5", true },
    { "dc cvac, x0", "207a0bd5", false },
    { "ic ivau, x0", "20750bd5", false },
    { "tlbi vaae1is, x0", "608308d5", false },
    { "mrs x0, tpidr_el1", "80d038d5", false },
    { "msr daifset, #2", "df4203d5", false },
    { "add x0, x1, x2", "2000028b", false },
    { "add x0, sp, #16", "e0430091", false },
    { "movz x0, #1", "200080d2", false },
    { "adrp x0, .", "00000090", false },
    { "bl .+64", "10000094", false },
    { "blr x0", "00003fd6", false },
    { "ret", "c0035fd6", false },
    { "cbz x0, .+8", "400000b4", false },
    { "tbz x0, #3, .+8", "40001836", false },
    { "brk #0x800", "000021d4", false },
    { "eret", "e0039fd6", false },
    { "isb", "df3f03d5", false },
    { "nop", "1f2003d5", false },
    { "paciasp", "3f2303d5", false },
    { "fadd d0, d1, d2", "2028621e", false },
    { "aese v0.16b, v1.16b", "2048284e", false },
    { "fmov d0, x0", "0000679e", false },
    { "crc32x w0, w1, x2", "204cc29a", false },
    { "udf #0", "00000000", false },
    { "ld1b {z0.b}, p0/z, [x0]", "00a000a4", true },
    { "str z0, [x0]", "004080e5", true },
    { "add z0.b, z1.b, z2.b", "20002204", false },
    { "ptrue p0.b", "e0e31825", false },
    { "rdvl x0, #1", "2050bf04", false },
};

static const Sample riscv64[] = {
    { "lw a0, 4(a1)", "c841", true },
    { "ld a0, 8(sp)", "2265", false },
    { "sd ra, 40(sp)", "06f4", false },
    { "sd a0, 16(a1)", "88e9", true },
    { "ld a0, -24(s0)", "033584fe", false },
    { "sd a0, -40(s0)", "233ca4fc", false },
    { "ld a0, 24(s0)", "086c", true },
    { "ld a0, 16(tp)", "03350201", false },
    { "lw a0, 16(gp)", "03a50101", false },
    { "lbu a0, 0(a0)", "03450500", true },
    { "fld fa0, 8(a0)", "0825", true },
    { "fsd fa0, -24(s0)", "2734a4fe", false },
    { "fsd fa0, 8(a0)", "08a5", true },
    { "c.lw a0, 4(a1)", "c841", true },
    { "c.ld a0, 8(s0)", "0864", true },
    { "c.sw a0, 4(a1)", "c8c1", true },
    { "c.sd a0, 8(a1)", "88e5", true },
    { "c.fld fa0, 8(a1)", "8825", true },
    { "c.fsd fa0, 8(a1)", "88a5", true },
    { "c.ldsp ra, 8(sp)", "a260", false },
    { "c.sdsp ra, 8(sp)", "06e4", false },
    { "c.lwsp a0, 4(sp)", "1245", false },
    { "c.swsp a0, 4(sp)", "2ac2", false },
    { "c.addi4spn a0, sp, 16", "0808", false },
    { "c.addi16sp sp, -32", "3d71", false },
    { "c.mv a0, a1", "2e85", false },
    { "c.add a0, a1", "2e95", false },
    { "c.li a0, 1", "0545", false },
    { "c.jr ra", "8280", false },
    { "c.ebreak", "0290", false },
    { "c.unimp", "0000", false },
    { "c.j .+16", "01a8", false },
    { "c.beqz a0, .+16", "01c9", false },
    { "lr.d a0, (a1)", "2fb50510", true },
    { "sc.d a0, a2, (a1)", "2fb5c518", true },
    { "amoadd.w a0, a2, (a1)", "2fa5c500", true },
    { "amoswap.d.aqrl a0, a2, (s0)", "2f35c40e", true },
    { "amoadd.w a0, a2, (sp)", "2f25c100", false },
    { "fence rw, rw", "0f003003", false },
    { "fence.i", "0f100000", false },
    { "cbo.zero (a0)", "0f204500", true },
    { "cbo.clean (a0)", "0f201500", false },
    { "prefetch.r 32(a0)", "13601502", false },
    { "csrrw tp, sscratch, tp", "73120214", false },
    { "csrr a0, scause", "73252014", false },
    { "hlv.d a0, (a1)", "73c5056c", true },
    { "sfence.vma", "73000012", false },
    { "ecall", "73000000", false },
    { "sret", "73002010", false },
    { "add a0, a1, a2", "3385c500", false },
    { "addi a0, sp, 16", "0808", false },
    { "lui a0, 1", "0565", false },
    { "auipc a0, 1", "17150000", false },
    { "mulw a0, a1, a2", "3b85c502", false },
    { "addiw a0, a1, 1", "1b851500", false },
    { "beq a0, a1, .+16", "6308b500", false },
    { "jalr 8(a0)", "e7008500", false },
    { "call .+64", "97000000", false },
    { "fadd.d fa0, fa1, fa2", "53f5c502", false },
    { "fmadd.d fa0, fa1, fa2, fa3", "43f5c56a", false },
    { "vsetvli t0, a2, e8, m8", "d7723600", false },
    { "vle8.v v0, (a1)", "07800502", true },
    { "vse8.v v0, (a0)", "27000502", true },
    { "vse8.v v0, (sp)", "27000102", false },
    { "vse8.v v0, (s0)", "27000402", true },
    { "vlse64.v v0, (a1), a2", "07f0c50a", true },
    { "vadd.vv v0, v1, v2", "57001102", false },
    { "zext.b a0, a1", "13f5f50f", false },
};

static size_t bytes_of(const char *hex, uint8_t *bytes)
{
    size_t n = strlen(hex) / 2;

    for (size_t i = 0; i < n; i++) {
        bytes[i] = g_ascii_xdigit_value(hex[2 * i]) << 4 |
                   g_ascii_xdigit_value(hex[2 * i + 1]);
    }
    return n;
}

static void check(const GsArch *arch, const Sample *s)
{
    uint8_t bytes[16] = { 0 };
    size_t n = bytes_of(s->hex, bytes);

    if (arch->may_touch_objects(bytes, n) != s->touches) {
        g_error("%s: %s (%s)", arch->name, s->text, s->hex);
    }
    for (size_t len = 0; s->touches && len < n; len++) {
        g_assert_true(arch->may_touch_objects(bytes, len));
    }
}

static void samples(const GsArch *arch, const Sample *sample, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check(arch, &sample[i]);
    }
}

TEST(samples_x86_64, "/operand/x86-64")
{
    samples(&gs_arch_x86_64, x86_64, G_N_ELEMENTS(x86_64));
}

TEST(samples_arm64, "/operand/arm64")
{
    samples(&gs_arch_arm64, arm64, G_N_ELEMENTS(arm64));
}

TEST(samples_riscv64, "/operand/riscv64")
{
    samples(&gs_arch_riscv64, riscv64, G_N_ELEMENTS(riscv64));
}

/* More bytes than the instruction has change nothing. */
TEST(longer, "/operand/longer")
{
    static const uint8_t load[] = { 0x48, 0x8b, 0x00, 0xff, 0xff };
    static const uint8_t move[] = { 0x48, 0x8b, 0xc0, 0x00, 0x00 };
    const GsArch *arch = &gs_arch_x86_64;

    g_assert_true(arch->may_touch_objects(load, sizeof(load)));
    g_assert_false(arch->may_touch_objects(move, sizeof(move)));
}

/* An encoding that is not known counts as one that accesses memory. */
TEST(unknown, "/operand/unknown")
{
    static const struct {
        const GsArch *arch;
        uint8_t bytes[4];
    } bad[] = {
        { &gs_arch_x86_64, { 0x06 } },                   /* push es */
        { &gs_arch_x86_64, { 0x0f, 0x04 } },
        { &gs_arch_x86_64, { 0x8f, 0xe9, 0x78, 0xc0 } }, /* XOP */
        { &gs_arch_x86_64, { 0xd5, 0x00, 0x8b, 0xc0 } }, /* REX2 */
        { &gs_arch_x86_64, { 0xc4, 0xe4, 0x78, 0xc0 } }, /* map 4 */
        { &gs_arch_x86_64, { 0x66, 0x66, 0x66, 0x66 } },
        { &gs_arch_arm64, { 0, 0, 0, 0x02 } },
        { &gs_arch_arm64, { 0, 0, 0, 0x06 } },
        { &gs_arch_arm64, { 0, 0, 1, 0 } },
        { &gs_arch_riscv64, { 0x1f, 0, 0, 0 } },         /* 48 bits */
        { &gs_arch_riscv64, { 0x0b, 0, 0, 0 } },         /* custom-0 */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_true(bad[i].arch->may_touch_objects(bad[i].bytes, 4));
    }
}
