/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding the guest's kernel: see find.h.
 *
 * Of a file it is known where start_kernel() is linked: a block that begins
 * there, up to KASLR's steps, and the file's banner at the slide that follows
 * are the kernel. One that a profile tells of runs where it is linked, and
 * begins with the file's own code. Without a file, the first block that runs
 * where kernels are mapped is looked around at, and again after two, four,
 * eight ... blocks, should that have been something else.
 *
 * Guest memory is read while a block executes, not while it is translated:
 * the vCPU's TLB may have to be filled, which may write accessed bits to a
 * page that QEMU holds locked while it translates.
 */
#include "find.h"

#include <string.h>

#define LOOKS_MAX       12
#define CODE_BYTES      64      /* compared with the file's */

struct KtFinder {
    const GsArch *arch;
    KtView view;
    GsKernel *file;
    uint64_t start;             /* of @file, link time, 0 unknown */
    uint64_t step;              /* it is moved by multiples; 0: not at all */
    uint64_t lowest;            /* address of a kernel's */
    bool ran;                   /* @file was found */
    GsKernel *found;            /* owned, in memory */
    uint64_t blocks;            /* that ran where kernels are */
    unsigned looks;             /* atomic */
    bool after_kexec;           /* @found may run for a while yet */
    uint64_t room;              /* for an image in memory, 0: no bound */
    bool late;                  /* the first block may be any */
    GError *err;
};

KtFinder *kt_finder_new(const GsArch *arch, GsKernel *file, KtView view)
{
    KtFinder *f = g_new0(KtFinder, 1);

    f->arch = arch;
    f->view = view;
    f->file = file;
    f->lowest = arch->text_start;
    f->step = arch->slide_align;
    if (file) {
        f->start = gs_kernel_start(file);
    }
    if (file && gs_kernel_is_plain(file)) {
        f->lowest = gs_kernel_lowest(file);
        f->step = 0;
    }
    return f;
}

void kt_finder_set_room(KtFinder *f, uint64_t bytes)
{
    f->room = bytes;
}

void kt_finder_free(KtFinder *f)
{
    if (f) {
        gs_kernel_free(f->found);
        g_clear_error(&f->err);
        g_free(f);
    }
}

static bool may_be_start(const KtFinder *f, uint64_t va)
{
    return va >= f->lowest && f->start &&
           !((va - f->start) & (f->step - 1));
}

uint64_t kt_finder_lowest(const KtFinder *f)
{
    return f->file ? gs_kernel_lowest(f->file) : 1ull << 63;
}

bool kt_finder_may_run(const KtFinder *f, uint64_t va)
{
    return f->step ? va >= f->arch->text_start && va < f->arch->text_end :
           va >= f->lowest;
}

bool kt_finder_wants(const KtFinder *f, uint64_t va)
{
    return f->file ? may_be_start(f, va) : kt_finder_may_run(f, va) &&
           __atomic_load_n(&f->looks, __ATOMIC_RELAXED) < LOOKS_MAX;
}

/* ---- guest memory ------------------------------------------------------- */

static bool read_memory(void *opaque, uint64_t va, void *buf, size_t len)
{
    const KtFinder *f = opaque;

    return kt_view_read(f->view, va, buf, len);
}

/* ---- of a file ---------------------------------------------------------- */

static bool banner_matches(KtFinder *f, const GsKernel *k, uint64_t slide)
{
    const char *banner = gs_kernel_banner(k);
    size_t len = banner ? strlen(banner) : 0;
    g_autofree char *there = g_malloc(len + 1);

    if (!banner) {
        return true;        /* a System.map has none */
    }
    return read_memory(f, gs_kernel_banner_va(k) - gs_kernel_slide(k) + slide,
                       there, len) &&
           !memcmp(there, banner, len);
}

/* Another program may have run there before it. */
static bool code_matches(KtFinder *f)
{
    uint8_t code[CODE_BYTES], there[CODE_BYTES];
    size_t len = sizeof(code);

    while (len && !gs_kernel_read_image(f->file, f->start, code, len)) {
        len /= 2;
    }
    return len && read_memory(f, f->start, there, len) &&
           !memcmp(there, code, len);
}

static GsKernel *look_for_file(KtFinder *f, uint64_t va, uint64_t *slide,
                               bool *complete)
{
    *slide = va - f->start;
    *complete = true;       /* nothing is allocated before it */
    if (!may_be_start(f, va)) {
        return NULL;
    }
    if (!(f->step ? banner_matches(f, f->file, *slide) : code_matches(f))) {
        return NULL;
    }
    f->ran = true;
    return f->file;
}

/* ---- in memory ---------------------------------------------------------- */

/* DOWN, the first of enum slab_state in mm/slab.h: no slab yet. */
static bool nothing_allocated(KtFinder *f, const GsKernel *k)
{
    GsSymbol sym;
    uint32_t state;

    return gs_kernel_lookup(k, "slab_state", &sym) &&
           read_memory(f, sym.va, &state, sizeof(state)) && state == 0;
}

/* The kernel that was found before, on its way to another; which may lie
 * where that was. */
static bool still_runs(KtFinder *f, uint64_t va)
{
    return f->found && gs_kernel_in_image(f->found, va) &&
           banner_matches(f, f->found, gs_kernel_slide(f->found)) &&
           !nothing_allocated(f, f->found);
}

static GsKernel *look_in_memory(KtFinder *f, uint64_t va, uint64_t *slide,
                                bool *complete)
{
    const GsMem memory = {
        .read = read_memory, .opaque = f, .room = f->room
    };
    bool first;
    GsKernel *k;

    if (f->after_kexec && still_runs(f, va)) {
        return NULL;
    }
    first = f->blocks++ == 0;
    if (f->blocks & (f->blocks - 1) || f->looks >= LOOKS_MAX) {
        return NULL;
    }
    __atomic_store_n(&f->looks, f->looks + 1, __ATOMIC_RELAXED);
    g_clear_error(&f->err);
    k = gs_kernel_new_from_memory(f->arch, &memory, va, &f->err);
    if (!k) {
        return NULL;
    }
    gs_kernel_free(f->found);
    f->found = k;
    f->after_kexec = false;
    *slide = 0;
    *complete = (first && !f->late) || nothing_allocated(f, k);
    f->late = false;
    return k;
}

GsKernel *kt_finder_look(KtFinder *f, uint64_t va, uint64_t *slide,
                         bool *complete)
{
    return (f->file ? look_for_file : look_in_memory)(f, va, slide,
                                                      complete);
}

/* ---- once more ---------------------------------------------------------- */

void kt_kernel_at(const GsKernel *k, KtKernelAt *out)
{
    const char *banner = gs_kernel_banner(k);

    out->banner = g_strdup(banner ? banner : "");
    out->memory = gs_kernel_extent(k, &out->start, &out->end);
    if (!out->memory) {
        out->start = out->end = gs_kernel_slide(k);
    }
}

void kt_kernel_at_clear(KtKernelAt *at)
{
    g_clear_pointer(&at->banner, g_free);
}

/* Is @k that kernel? */
static bool is_at(const GsKernel *k, const KtKernelAt *at)
{
    KtKernelAt mine;
    bool same;

    kt_kernel_at(k, &mine);
    same = mine.memory == at->memory && !strcmp(mine.banner, at->banner) &&
           (!at->memory || (mine.start == at->start && mine.end == at->end));
    kt_kernel_at_clear(&mine);
    return same;
}

/* What was loaded in it was so in a time that was left. */
static GsKernel *without_modules(GsKernel *k)
{
    gs_kernel_set_slide(k, gs_kernel_slide(k));
    return k;
}

static GsKernel *return_of_file(KtFinder *f, const KtKernelAt *at)
{
    bool there = f->file && is_at(f->file, at) &&
                 (f->step ? !(at->start & (f->step - 1)) &&
                  banner_matches(f, f->file, at->start) : code_matches(f));

    if (!there) {
        return NULL;
    }
    gs_kernel_set_slide(f->file, f->step ? at->start : 0);
    f->ran = true;
    return f->file;
}

static GsKernel *return_in_memory(KtFinder *f, const KtKernelAt *at)
{
    const GsMem memory = {
        .read = read_memory, .opaque = f, .room = f->room
    };
    GsKernel *k;

    if (f->found && is_at(f->found, at) && banner_matches(f, f->found, 0)) {
        return without_modules(f->found);
    }
    g_clear_error(&f->err);
    k = gs_kernel_new_from_extent(f->arch, &memory, at->start, at->end,
                                  &f->err);
    if (k && !is_at(k, at)) {
        g_clear_pointer(&k, gs_kernel_free);
    }
    if (k) {
        gs_kernel_free(f->found);
        f->found = k;
    }
    return k;
}

GsKernel *kt_finder_return(KtFinder *f, const KtKernelAt *at, KtView view)
{
    KtView before = f->view;
    GsKernel *k = NULL;

    f->view = view;
    if (at->memory == !f->file) {
        k = (at->memory ? return_in_memory : return_of_file)(f, at);
    }
    f->view = before;
    return k;
}

GsKernel *kt_finder_known(KtFinder *f, const KtKernelAt *at)
{
    GsKernel *k = f->ran ? f->file : f->found;
    bool same = k && is_at(k, at) &&
                (at->memory || gs_kernel_slide(k) == at->start);

    return same ? without_modules(k) : NULL;
}

void kt_finder_late(KtFinder *f)
{
    f->late = true;
}

bool kt_finder_again(KtFinder *f, bool after_kexec)
{
    f->blocks = 0;
    f->after_kexec = after_kexec;
    f->late = false;
    return __atomic_exchange_n(&f->looks, 0, __ATOMIC_RELAXED) > 0;
}

const char *kt_finder_why_not(const KtFinder *f)
{
    return f->err ? f->err->message : NULL;
}
