/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QEMU's plugin API for tests: see fake-qemu.h. */
#include "tests/lib/fake-qemu.h"

#include <setjmp.h>
#include <string.h>

#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/capture/capture.h"
#include "kalloc-tracer/capture/replay-stop.h"

#define PAGE 4096u
#define TRAP 0xcc

struct qemu_plugin_insn {
    uint64_t va;
    qemu_plugin_vcpu_udata_cb_t run;
    void *userdata;
    qemu_plugin_vcpu_mem_cb_t access;
    void *access_userdata;
};

struct qemu_plugin_tb {
    struct qemu_plugin_insn insn;
};

struct qemu_plugin_vm_state {
    GByteArray *bytes;
    size_t done;
    char *why;
};

typedef struct Ram {
    uint64_t va;
    size_t len;
    uint8_t *bytes;
} Ram;

/* The callbacks that the plugin registered, and the machine. */
static struct {
    KtCapture *capture;
    KtFinder *finder;
    qemu_plugin_vcpu_tb_filter_cb_t filter;
    void *filter_userdata;
    qemu_plugin_vcpu_tb_trans_cb_t translate;
    qemu_plugin_vcpu_simple_cb_t vcpu_init;
    qemu_plugin_vm_state_save_cb_t save;
    qemu_plugin_vm_state_load_cb_t load;
    void *state_userdata;
    GArray *ram;
    uint64_t reg[GS_REG__COUNT + 1];    /* the last one is the PC */
    int64_t ns;
    bool hidden, smap;
    const void *(*view)(uint64_t va, size_t *avail);
    bool trap;
    enum qemu_plugin_cb_flags flags;    /* of the callback that runs */
    unsigned refused;                   /* writes, see fake-qemu.h */
    jmp_buf left;
    uint64_t pc;
    unsigned stops;
    qemu_plugin_vcpu_page_filter_cb_t page_filter;
    qemu_plugin_vcpu_page_access_cb_t page_access;
    void *page_userdata;
    uint64_t page_pc;                   /* of the trapped access */
    unsigned page_updates;
    void (*translated)(void *opaque);   /* nullable */
    void *opaque;
} qemu;

/* ---- the machine -------------------------------------------------------- */

static void clear_ram(gpointer at)
{
    g_free(((Ram *)at)->bytes);
}

static Ram *ram_at(uint64_t va)
{
    for (guint i = 0; i < qemu.ram->len; i++) {
        Ram *r = &g_array_index(qemu.ram, Ram, i);

        if (va - r->va < r->len) {
            return r;
        }
    }
    return NULL;
}

uint8_t *test_qemu_map(uint64_t va, size_t len)
{
    Ram *there = ram_at(va);
    Ram ram = { va, len, g_malloc0(len) };

    if (there) {
        clear_ram(there);
        *there = ram;
    } else {
        g_array_append_val(qemu.ram, ram);
    }
    return ram.bytes;
}

void test_qemu_hide(bool hidden)
{
    qemu.hidden = hidden;
}

void test_qemu_smap(bool smap)
{
    qemu.smap = smap;
}

void test_qemu_trap(bool trap)
{
    qemu.trap = trap;
}

void test_qemu_view(const void *(*view)(uint64_t va, size_t *avail))
{
    qemu.view = view;
}

uint64_t *test_qemu_reg(GsReg r)
{
    return &qemu.reg[r];
}

uint64_t *test_qemu_pc(void)
{
    return &qemu.reg[GS_REG__COUNT];
}

KtCapture *test_qemu_start(KtTracer *t, GsKernel *file)
{
    const GsArch *arch = gs_arch_nth(0);

    memset(&qemu, 0, sizeof(qemu));
    test_qemu_rewind();
    qemu.ram = g_array_new(FALSE, FALSE, sizeof(Ram));
    g_array_set_clear_func(qemu.ram, clear_ram);
    qemu.finder = kt_finder_new(arch, file, qemu_plugin_vaddr_to_host);
    qemu.capture = kt_capture_start(0, arch, t, qemu.finder, NULL, 1, false);
    kt_vmstate_register(0, qemu.capture, t);
    qemu.vcpu_init(0, 0);
    return qemu.capture;
}

void test_qemu_end(void)
{
    KtCapture *c = qemu.capture;

    kt_capture_clear_resume(c);
    kt_capture_drop_boot(c);
    kt_vcpu_unplug(&c->vcpu[0]);
    g_aligned_free(c->vcpu);
    kt_return_sites_free(c->shared.sites);
    kt_pending_calls_free(c->shared.calls);
    kt_replay_stop_free(c->shared.stop);
    g_mutex_clear(&c->lock);
    memset(c, 0, sizeof(*c));
    kt_finder_free(qemu.finder);
    g_free(qemu.state_userdata);
    g_array_unref(qemu.ram);
}

void test_qemu_run(uint64_t va)
{
    struct qemu_plugin_tb tb = { .insn.va = va };

    qemu.pc = 0;
    if (qemu.filter(va, qemu.filter_userdata)) {
        qemu.translate(0, &tb);
        if (qemu.translated) {
            qemu.translated(qemu.opaque);
            qemu.translated = NULL;
        }
        if (tb.insn.run && !setjmp(qemu.left)) {
            tb.insn.run(0, tb.insn.userdata);
        }
    }
    qemu.ns += qemu.pc ? 0 : 1000;
}

void test_qemu_rewind(void)
{
    qemu.ns = 1000;
}

bool test_qemu_traps(uint64_t va)
{
    return qemu.page_filter(va & ~(uint64_t)0xfff, qemu.page_userdata);
}

static void trap_access(uint64_t pc, const TestQemuAccess *a)
{
    unsigned size = 1u << a->shift;

    if (test_qemu_traps(a->va) || test_qemu_traps(a->va + size - 1)) {
        qemu.page_pc = pc;
        qemu.page_access(0, a->va, size,
                         a->store ? QEMU_PLUGIN_MEM_W : QEMU_PLUGIN_MEM_R,
                         qemu.page_userdata);
    }
}

bool test_qemu_access(uint64_t va, const TestQemuAccess *a)
{
    struct qemu_plugin_tb tb = { .insn.va = va };

    trap_access(va, a);
    if (qemu.filter(va, qemu.filter_userdata)) {
        qemu.translate(0, &tb);
    }
    if (tb.insn.access) {
        tb.insn.access(0, a->shift | (qemu_plugin_meminfo_t)a->store << 4,
                       a->va, tb.insn.access_userdata);
    }
    qemu.ns += 1000;
    return tb.insn.access;
}

void test_qemu_write(unsigned refused)
{
    qemu.flags = QEMU_PLUGIN_CB_RW_REGS;
    qemu.refused = refused;
}

void test_qemu_when_translated(void (*fn)(void *opaque), void *opaque)
{
    qemu.translated = fn;
    qemu.opaque = opaque;
}

uint64_t test_qemu_left(void)
{
    return qemu.pc;
}

unsigned test_qemu_page_updates(void)
{
    return qemu.page_updates;
}

unsigned test_qemu_stops(void)
{
    return qemu.stops;
}

void test_qemu_reset(void)
{
    kt_capture_lock(qemu.capture);
    kt_capture_reset(qemu.capture);
    kt_capture_unlock(qemu.capture);
}

GByteArray *test_qemu_save(void)
{
    struct qemu_plugin_vm_state s = { .bytes = g_byte_array_new() };

    qemu.save(&s, qemu.state_userdata);
    g_assert_null(s.why);
    return s.bytes;
}

char *test_qemu_load(const GByteArray *section)
{
    struct qemu_plugin_vm_state s = { .bytes = (GByteArray *)section };

    qemu.load(section ? &s : NULL, 1, qemu.state_userdata);
    return s.why;
}

/* ---- what the plugin calls ---------------------------------------------- */

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id,
                                       qemu_plugin_vcpu_simple_cb_t cb)
{
    qemu.vcpu_init = cb;
}

void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t id,
                                       qemu_plugin_vcpu_simple_cb_t cb)
{
}

void qemu_plugin_register_vcpu_tb_filter(qemu_plugin_id_t id,
                                         qemu_plugin_vcpu_tb_filter_cb_t cb,
                                         void *userdata)
{
    qemu.filter = cb;
    qemu.filter_userdata = userdata;
}

void qemu_plugin_register_vcpu_page_trap(
    qemu_plugin_id_t id, qemu_plugin_vcpu_page_filter_cb_t filter,
    qemu_plugin_vcpu_page_access_cb_t cb, void *userdata)
{
    qemu.page_filter = filter;
    qemu.page_access = cb;
    qemu.page_userdata = userdata;
}

void qemu_plugin_update_page_trap(uint64_t vaddr)
{
    qemu.page_updates++;
}

bool qemu_plugin_page_access_insn(uint64_t *insn_vaddr,
                                  unsigned int *insns_not_run)
{
    *insn_vaddr = qemu.page_pc;
    *insns_not_run = 1;
    return qemu.page_pc;
}

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           qemu_plugin_vcpu_tb_trans_cb_t cb)
{
    qemu.translate = cb;
}

void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            qemu_plugin_vcpu_udata_cb_t cb,
                                            enum qemu_plugin_cb_flags flags,
                                            void *userdata)
{
    insn->run = cb;
    insn->userdata = userdata;
    qemu.flags = flags;
}

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      qemu_plugin_vcpu_mem_cb_t cb,
                                      enum qemu_plugin_cb_flags flags,
                                      enum qemu_plugin_mem_rw rw,
                                      void *userdata)
{
    insn->access = cb;
    insn->access_userdata = userdata;
}

unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info)
{
    return info & 0xf;
}

bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info)
{
    return info >> 4 & 1;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
    return 1;
}

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb)
{
    return tb->insn.va;
}

struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx)
{
    return (struct qemu_plugin_insn *)&tb->insn;
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
    return insn->va;
}

size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest,
                             size_t len)
{
    memset(dest, qemu.trap ? TRAP : 0, len);
    return len;
}

/* The handle of a register is its number plus one. */
GArray *qemu_plugin_get_registers(void)
{
    GArray *list = g_array_new(FALSE, FALSE,
                               sizeof(qemu_plugin_reg_descriptor));
    const qemu_plugin_reg_descriptor pc = {
        .handle = GUINT_TO_POINTER(GS_REG__COUNT + 1),
        .name = gs_arch_nth(0)->pc, .feature = "org.gnu.gdb.i386.core",
    };

    for (unsigned r = 0; r < GS_REG__COUNT; r++) {
        const qemu_plugin_reg_descriptor desc = {
            .handle = GUINT_TO_POINTER(r + 1),
            .name = gs_arch_nth(0)->reg[r],
        };

        if (desc.name) {
            g_array_append_val(list, desc);
        }
    }
    g_array_append_val(list, pc);
    return list;
}

const void *qemu_plugin_register_ptr(unsigned int vcpu,
                                     struct qemu_plugin_register *handle,
                                     size_t *size)
{
    *size = sizeof(uint64_t);
    return &qemu.reg[GPOINTER_TO_UINT(handle) - 1];
}

bool qemu_plugin_write_register(struct qemu_plugin_register *handle,
                                GByteArray *buf)
{
    uint64_t *reg = &qemu.reg[GPOINTER_TO_UINT(handle) - 1];

    bool refused = qemu.refused & 1;

    qemu.refused >>= 1;
    g_assert_cmpint(qemu.flags, >=, QEMU_PLUGIN_CB_RW_REGS);
    g_assert_cmpuint(buf->len, ==, sizeof(*reg));
    if (!refused) {
        memcpy(reg, buf->data, sizeof(*reg));
    }
    return !refused;
}

void qemu_plugin_set_pc(uint64_t vaddr)
{
    g_assert_cmpint(qemu.flags, ==, QEMU_PLUGIN_CB_RW_REGS_PC);
    qemu.pc = vaddr;            /* the instruction has not run */
    longjmp(qemu.left, 1);
}

void qemu_plugin_request_vm_stop(void)
{
    qemu.stops++;
}

static const void *map_page(uint64_t va, size_t *avail)
{
    const Ram *r = ram_at(va);

    *avail = PAGE - va % PAGE;
    return r ? r->bytes + (va - r->va) : NULL;
}

const void *qemu_plugin_vaddr_to_host(uint64_t vaddr, size_t *avail)
{
    const void *host = (qemu.view ? qemu.view : map_page)(vaddr, avail);

    return qemu.smap && !(vaddr >> 63) ? NULL : host;
}

bool qemu_plugin_read_vaddr_ram(unsigned int vcpu_index, uint64_t vaddr,
                                void *buf, size_t len)
{
    return !qemu.hidden && kt_view_read(map_page, vaddr, buf, len);
}

bool qemu_plugin_vcpu_translate_vaddr(unsigned int vcpu_index, uint64_t vaddr,
                                      uint64_t *phys)
{
    return false;
}

bool qemu_plugin_invalidate_vaddr(uint64_t vaddr)
{
    return true;
}

void qemu_plugin_request_flush(void)
{
}

void qemu_plugin_request_exclusive(void (*cb)(void *userdata), void *userdata)
{
    cb(userdata);
}

int64_t qemu_plugin_get_virtual_ns(unsigned int insns_not_run)
{
    return qemu.ns;
}

bool qemu_plugin_vm_is_running(void)
{
    return false;
}

void qemu_plugin_outs(const char *string)
{
}

bool qemu_plugin_register_vm_state(qemu_plugin_id_t id, const char *name,
                                   uint32_t version,
                                   qemu_plugin_vm_state_save_cb_t save,
                                   qemu_plugin_vm_state_load_cb_t load,
                                   void *userdata)
{
    qemu.save = save;
    qemu.load = load;
    qemu.state_userdata = userdata;
    return true;
}

void qemu_plugin_vm_state_put(struct qemu_plugin_vm_state *s, const void *buf,
                              size_t len)
{
    g_byte_array_append(s->bytes, buf, len);
}

size_t qemu_plugin_vm_state_get(struct qemu_plugin_vm_state *s, void *buf,
                                size_t len)
{
    size_t n = MIN(len, s->bytes->len - s->done);

    memcpy(buf, s->bytes->data + s->done, n);
    s->done += n;
    return n;
}

void qemu_plugin_vm_state_fail(struct qemu_plugin_vm_state *s,
                               const char *why)
{
    s->why = g_strdup(why);
}
