/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access checks: callbacks, translation, arming. See capture-internal.h. */
#include "kalloc-tracer/capture/capture-internal.h"

#include "kalloc-tracer/capture/watch-internal.h"
#include "kalloc-tracer/capture/seam.h"
#include "kalloc-tracer/tracer/tracer.h"

#define INSN_MAX 16

/* The callbacks of all vCPUs use one object: their only argument is the address
 * of the instruction. Valid while KtShared.access points to it. */
static KtAccessWatch watch = {
    .look = { &kt_shadow_none, &kt_shadow_none },
};
static KtCapture *capture;

/* ---- execution ----------------------------------------------------------- */

/* Return false if nothing can be judged: the boot ends, the vCPU has no
 * registers, or calls are not recorded; or checks have ended, and the code that
 * was translated for them is not flushed yet. */
static bool begin(KtHookCall *m, unsigned vcpu_index, void *udata)
{
    *m = (KtHookCall) {
        .c = &capture->shared,
        .boot = kt_capture_boot(capture),
        .v = &capture->vcpu[vcpu_index],
        .insns_left = kt_watch_left(udata),
    };
    return m->boot && m->c->access && m->v->unwinder &&
           kt_tracer_is_on(m->c->tracer) &&
           __atomic_load_n(&watch.stale, __ATOMIC_RELAXED) == KT_STALE_NOT;
}

/* Return the shadow that has codes for @va, if one has: that of the direct map
 * or of areas. Not NULL. */
static inline const KtShadow *shadow_of(uint64_t va)
{
    const KtShadow *map = __atomic_load_n(&watch.look.map, __ATOMIC_ACQUIRE);

    return kt_shadow_covers(map, va) ?
               map : __atomic_load_n(&watch.look.vm, __ATOMIC_ACQUIRE);
}

static void on_bad_access(unsigned vcpu_index, KtSuspect *s, void *udata)
{
    KtHookCall m;

    if (begin(&m, vcpu_index, udata) &&
        kt_shadow_find_bad(s->shadow, s->va, s->len, &s->bad, &s->state)) {
        s->pc = kt_watch_pc(udata);
        kt_access_watch_suspect(&watch, &m, s);
    }
}

/* Not inline, so that on_access() saves no registers. */
G_GNUC_NO_INLINE
static void on_doubtful_access(unsigned vcpu_index, qemu_plugin_meminfo_t info,
                               uint64_t va, void *udata)
{
    KtSuspect s = {
        .va = va, .len = 1ull << qemu_plugin_mem_size_shift(info),
        .shadow = shadow_of(va),
    };

    if (!kt_shadow_is_good(s.shadow, va, (unsigned)s.len)) {
        s.write = qemu_plugin_mem_is_store(info);
        on_bad_access(vcpu_index, &s, udata);
    }
}

/* After each access of a chosen instruction. */
GS_HOT
static void on_access(unsigned vcpu_index, qemu_plugin_meminfo_t info,
                      uint64_t va, void *udata)
{
    if (G_UNLIKELY(kt_shadow_may_be_bad(shadow_of(va), va))) {
        on_doubtful_access(vcpu_index, info, va, udata);
    }
}

/* The same if few blocks are armed: few pages have some of them. */
GS_HOT
static void on_access_few(unsigned vcpu_index, qemu_plugin_meminfo_t info,
                          uint64_t va, void *udata)
{
    const KtShadow *map = __atomic_load_n(&watch.look.map, __ATOMIC_ACQUIRE);

    if (G_UNLIKELY(kt_shadow_is_marked(map, va)) &&
        kt_shadow_may_be_bad(map, va)) {
        on_doubtful_access(vcpu_index, info, va, udata);
    }
}

static void check_range(KtHookCall *m, uint64_t pc, uint64_t va, uint64_t len,
                        bool write)
{
    KtSuspect s = {
        .pc = pc, .va = va, .len = len, .write = write, .range = true,
        .shadow = shadow_of(va),
    };

    if (kt_shadow_find_bad(s.shadow, va, len, &s.bad, &s.state) &&
        kt_record_find_return(m)) {
        kt_access_watch_suspect(&watch, m, &s);
    }
}

/* Return true if the function is in code that is checked, or called from
 * there. */
static bool is_of_areas(KtHookCall *m, uint64_t pc)
{
    return kt_access_watch_in_areas(&watch, pc) ||
           (kt_record_find_return(m) &&
            kt_code_areas_has(watch.areas, m->ra - 1));
}

/* At the entry of memset(), memcpy() and the like: the instructions of these
 * functions have no callbacks. */
static void on_range(unsigned vcpu_index, void *udata)
{
    uint64_t pc = kt_watch_pc(udata);
    const KtCodeRow *row;
    uint64_t len;
    KtHookCall m;

    if ((watch.areas && !watch.areas->len) ||
        !begin(&m, vcpu_index, udata) || !is_of_areas(&m, pc)) {
        return;
    }
    row = kt_code_classes_at(watch.classes, pc);
    if (!row) {
        return;
    }
    len = kt_watch_range_len(&m, row);
    if (row->src != KT_NO_ARG) {
        check_range(&m, pc, kt_vcpu_pointer(m.v, row->src), len, false);
    }
    if (row->dst != KT_NO_ARG) {
        m.have_stack = false;
        check_range(&m, pc, kt_vcpu_pointer(m.v, row->dst), len, true);
    }
}

/* If nobody knows where addresses go, only the first element is judged. */
static void check_string(KtHookCall *m, uint64_t pc, uint64_t va, uint64_t len,
                         const GsString *string, bool write)
{
    KtSuspect s = {
        .pc = pc, .va = va, .len = len, .write = write,
        .shadow = shadow_of(va),
    };

    if (!kt_shadow_find_bad(s.shadow, va, len, &s.bad, &s.state)) {
        return;
    }
    if (kt_watch_may_count_down(m, pc)) {
        s.len = string->unit;
    }
    if (s.bad - va < s.len) {
        kt_access_watch_suspect(&watch, m, &s);
    } else {
        kt_vcpu_count(m->v, KT_CNT_ACCESS_NO_DIRECTION, 1);
    }
}

/* In front of rep movs and rep stos. Each element is an access: one check of
 * all is cheaper. */
static void on_string(unsigned vcpu_index, void *udata)
{
    GsString string = kt_watch_string(kt_watch_how(udata));
    uint64_t pc = kt_watch_pc(udata), len;
    KtHookCall m;

    if (!begin(&m, vcpu_index, udata)) {
        return;
    }
    len = kt_watch_string_len(m.v, &string);
    if (string.loads) {
        check_string(&m, pc, kt_vcpu_pointer(m.v, 1), len, &string, false);
    }
    m.have_stack = false;
    check_string(&m, pc, kt_vcpu_pointer(m.v, 0), len, &string, true);
}

/* At the entry of ksize() before 6.1: the caller may use the slack. */
static void on_ksize(unsigned vcpu_index, void *udata)
{
    KtShadow *shadow = __atomic_load_n(&watch.shadow, __ATOMIC_ACQUIRE);
    KtHookCall m;

    if (shadow && begin(&m, vcpu_index, udata)) {
        kt_shadow_use_slack(shadow, kt_vcpu_pointer(m.v, 0));
    }
}

/* ---- translation --------------------------------------------------------- */

static void add_exec_callback(struct qemu_plugin_insn *insn,
                              qemu_plugin_vcpu_udata_cb_t cb, unsigned how,
                              size_t left)
{
    qemu_plugin_register_vcpu_insn_exec_cb(
        insn, cb, QEMU_PLUGIN_CB_R_REGS,
        kt_watch_pack(qemu_plugin_insn_vaddr(insn), how, left));
}

/* Add the callback that an instruction needs, if any. Returns: how many.
 * @down: addresses of string instructions go down */
static unsigned add_callback(const KtCapture *c, const KtWatchFunction *f,
                             struct qemu_plugin_insn *insn, size_t left,
                             bool *down)
{
    uint64_t va = qemu_plugin_insn_vaddr(insn);
    const GsArch *arch = c->arch;
    uint8_t bytes[INSN_MAX];
    GsString string;
    size_t len;

    if (f->class == KT_CODE_ALLOCATOR ||
        (f->class == KT_CODE_RANGE && (f->is_part || va != f->start))) {
        return 0;
    }
    if (f->class == KT_CODE_RANGE) {
        add_exec_callback(insn, on_range, 0, left);
        return 1;
    }
    len = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));
    *down |= arch->strings && arch->strings->counts_down(bytes, len);
    if (!arch->may_touch_objects(bytes, len)) {
        return 0;
    }
    if (!*down && arch->strings &&
        arch->strings->repeats(bytes, len, &string)) {
        add_exec_callback(insn, on_string, kt_watch_string_how(&string), left);
        return 1;
    }
    qemu_plugin_register_vcpu_mem_cb(insn,
                                     watch.few ? on_access_few : on_access,
                                     QEMU_PLUGIN_CB_R_REGS,
                                     arch->modifies_memory(bytes, len) ?
                                         QEMU_PLUGIN_MEM_W :
                                         QEMU_PLUGIN_MEM_RW,
                                     kt_watch_pack(va, 0, left));
    return 1;
}

static unsigned add_ksize(struct qemu_plugin_insn *insn, size_t left)
{
    if (!kt_access_watch_is_ksize(&watch, qemu_plugin_insn_vaddr(insn))) {
        return 0;
    }
    add_exec_callback(insn, on_ksize, 0, left);
    return 1;
}

void kt_access_watch_translate(const KtCapture *c, struct qemu_plugin_tb *tb,
                        size_t n)
{
    bool whole = kt_access_watch_in_areas(&watch, qemu_plugin_tb_vaddr(tb));
    KtWatchFunction f = { 0 };
    unsigned added = 0;
    bool down = false;

    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

        kt_watch_function(&f, watch.classes, qemu_plugin_insn_vaddr(insn));
        added += add_ksize(insn, n - i);
        if (whole || f.class == KT_CODE_RANGE) {
            added += add_callback(c, &f, insn, n - i, &down);
        }
    }
    kt_tracer_count(c->shared.tracer, KT_CNT_COST_CALLBACKS, added);
}

/* ---- calls that are not recorded ----------------------------------------- */

static void clear_shadow(void *userdata)
{
    if (watch.shadow) {
        kt_shadow_clear(watch.shadow);
    }
    if (watch.vm_areas) {
        kt_vm_areas_clear(watch.vm_areas);
    }
    __atomic_store_n(&watch.stale, KT_STALE_NOT, __ATOMIC_RELAXED);
}

void kt_access_watch_missed(KtAccessWatch *w)
{
    __atomic_store_n(&w->stale, KT_STALE, __ATOMIC_RELAXED);
}

void kt_access_watch_recover(KtAccessWatch *w)
{
    KtStale stale = KT_STALE;

    if (__atomic_compare_exchange_n(&w->stale, &stale, KT_STALE_CLEARING,
                                    false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        qemu_plugin_request_exclusive(clear_shadow, NULL);
    }
}

/* ---- arming -------------------------------------------------------------- */

static const char *why_not(const KtCapture *c)
{
    uint32_t size;

    if (!c->seam->sees_accesses) {
        return KT_NO_ACCESSES;
    }
    if (c->shared.profile) {
        return "the guest's kernel is not Linux";
    }
    if (!gs_kernel_has_all_symbols(c->shared.kernel)) {
        return "the kernel has no symbol table, so that code of its allocator "
               "cannot be told from other code";
    }
    if (gs_kernel_type_size(c->shared.kernel, "slob_block", &size)) {
        return "the allocator is SLOB, so that nobody knows which pages have "
               "objects";
    }
    return kt_access_watch_layout(&watch, c->shared.kernel) ? NULL :
           "the kernel has no types, so that nobody knows which pages are "
           "free; types=FILE gives them";
}

static void arm(KtCapture *c, KtBoot *boot, KtAccessFilter *filter, bool still)
{
    watch.filter = filter;
    watch.few = kt_access_filter_is_few(filter);
    if (kt_access_filter_verifies(filter)) {
        kt_access_watch_begin_verify(&watch);
    }
    watch.budget = kt_tracer_budget(c->shared.tracer);
    watch.vm_areas = kt_vm_areas_new(watch.budget);
    kt_access_watch_find_code(&watch, c->shared.tracer, c->shared.kernel);
    kt_arming_begun(watch.arming, qemu_plugin_get_virtual_ns(0) / 1000);
    if (still) {
        kt_access_watch_make_shadow(&watch, boot->guest);
    }
    if (watch.shadow) {
        kt_access_watch_fill(&watch, c->shared.tracer, boot->guest);
    }
    kt_tracer_count(c->shared.tracer, KT_CNT_ACCESS_MISSING,
                    kt_code_classes_n_missing(watch.classes));
    c->shared.access = &watch;
}

/* Say that what the user asked for does not happen: "no errors" would else be
 * read as the result of checks. Each boot of a kernel would say the same.
 * seam-kvm.c says the rest. */
static void end_and_say(const KtCapture *c, const char *why)
{
    g_autofree char *line = NULL;

    kt_arming_ended(watch.arming, why);
    if (!why || why == watch.said || !c->say || !c->seam->sees_accesses) {
        return;
    }
    watch.said = why;
    line = g_strdup_printf("accesses are not checked: %s", why);
    c->say(line);
}

void kt_access_watch_refuse(const char *why)
{
    end_and_say(capture, why);
}

void kt_access_watch_begin_boot(KtCapture *c, KtBoot *boot, bool still)
{
    g_autoptr(KtAccessFilter) filter = kt_arming_filter(watch.arming);
    const char *why = filter ? why_not(c) : NULL;

    if (filter && !why) {
        arm(c, boot, g_steal_pointer(&filter), still);
        return;
    }
    end_and_say(c, why);
}

void kt_access_watch_begin_again(KtCapture *c, KtBoot *boot)
{
    if (c->shared.access) {
        kt_access_watch_end_boot(c);
        kt_access_watch_begin_boot(c, boot, true);
    }
}

void kt_access_watch_end_boot(KtCapture *c)
{
    c->shared.access = NULL;
    if (watch.verify) {
        kt_access_watch_end_verify(&watch, &c->shared);
    }
    watch.look = (KtAccessLook) { &kt_shadow_none, &kt_shadow_none };
    g_clear_pointer(&watch.shadow, kt_shadow_free);
    g_clear_pointer(&watch.vm_areas, kt_vm_areas_free);
    g_clear_pointer(&watch.classes, kt_code_classes_free);
    g_clear_pointer(&watch.areas, kt_code_areas_free);
    g_clear_pointer(&watch.filter, kt_access_filter_free);
    g_clear_pointer(&watch.slots, kt_slot_reader_free);
    memset(watch.cache_kind, 0, sizeof(watch.cache_kind));
    watch.stale = KT_STALE_NOT;
    watch.refused = false;
    kt_arming_ended(watch.arming, NULL);
}

/* No vCPU executes. */
static void find_code(void *unused)
{
    kt_capture_lock(capture);
    if (capture->shared.access) {
        kt_access_watch_find_code(&watch, capture->shared.tracer,
                                  capture->shared.kernel);
    }
    kt_capture_unlock(capture);
}

/* No vCPU executes. */
static void read_lists(void *unused)
{
    kt_capture_lock(capture);
    if (capture->shared.access && watch.verify && watch.shadow &&
        capture->boot) {
        kt_access_watch_look(&watch, &capture->shared, capture->boot->guest);
    }
    kt_capture_unlock(capture);
}

/* QEMU's main loop, with the BQL. */
static gboolean on_timer(void *unused)
{
    kt_capture_lock(capture);
    if (capture->shared.access && watch.verify) {
        kt_access_watch_on_time(&watch);
    }
    kt_capture_unlock(capture);
    return G_SOURCE_REMOVE;
}

void kt_capture_resume_looks(KtCapture *c)
{
    if (__atomic_load_n(&watch.stands, __ATOMIC_RELAXED)) {
        on_timer(NULL);
    }
}

void kt_capture_settle(KtCapture *c)
{
    if (c->shared.access && watch.verify && !qemu_plugin_vm_is_running()) {
        kt_access_watch_release_all(&watch, &c->shared);
    }
}

/* No vCPU executes. */
static void change(void *userdata)
{
    KtCapture *c = userdata;

    kt_capture_lock(c);
    kt_access_watch_end_boot(c);
    if (c->boot) {
        kt_access_watch_begin_boot(c, c->boot, true);
    }
    kt_capture_unlock(c);
}

/* The flush is last, so that code is translated for the new state. */
static void on_change(void *opaque)
{
    KtCapture *c = opaque;

    if (!__atomic_load_n(&c->applying, __ATOMIC_ACQUIRE)) {
        return;
    }
    if (!c->seam->sees_accesses) {
        kt_arming_ended(watch.arming, why_not(c));
    } else {
        qemu_plugin_request_exclusive(change, c);
        qemu_plugin_request_flush();
    }
}

void kt_access_watch_start(KtCapture *c)
{
    capture = c;
    watch.find_code = find_code;
    watch.read_lists = read_lists;
    watch.on_timer = on_timer;
    watch.arming = kt_arming_of(c->shared.tracer);
    kt_arming_on_change(watch.arming, on_change, c);
}
