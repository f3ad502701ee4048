/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtFinder: see kernel-finder.h.
 *
 * With a file, start_kernel() is known. A block that begins there, plus a
 * multiple of KASLR's step, gives a slide; the file's banner must be at that
 * slide. A kernel that is not Linux has no slide: its code is compared.
 *
 *     block at  start_kernel + slide     banner at  linux_banner + slide ?
 *
 * Without a file, the first block that runs in the kernel's address range is
 * tried: gs_kernel_new_from_memory() searches a kernel around it. If there is
 * none, because other code ran there (a boot loader, early assembly), blocks
 * number 2, 4, 8, ... are tried, TRIES_MAX in all.
 *
 * A file's kernel that runs already (a loaded snapshot, a late start) is found
 * by its banner, at each slide for which the block is inside the kernel's code.
 *
 * Guest memory is read when a block runs, not when it is translated. A read may
 * fill the vCPU's TLB and set accessed bits in a page table, in a page that
 * QEMU locks during translation.
 */
#include "kalloc-tracer/kernel/kernel-finder.h"

#include <string.h>

#define TRIES_MAX       12
#define CODE_BYTES      64      /* compared with the code of the file */
#define SLIDES_MAX      4096    /* slides of one try */
#define ANY_BANNER      "Linux version "

struct KtFinder {
    const GsArch *arch;
    KtView view;
    GsKernel *file;
    uint64_t start;             /* link address of @file's entry, or 0 */
    uint64_t step;              /* slides are multiples; 0: no slide */
    uint64_t lowest;            /* lowest address of kernel code */
    bool ran;                   /* @file was found */
    GsKernel *found;            /* owned; read from guest memory */
    uint64_t blocks;            /* blocks tried, in the kernel's range */
    unsigned tries;             /* atomic */
    bool after_kexec;           /* @found may still run */
    uint64_t room;              /* most bytes of a copied image; 0: any */
    const char *without;        /* NULL, or words of gs_kernel_hide() */
    bool late;                  /* atomic: see kt_finder_late() */
    bool gave_up;               /* kt_finder_gives_up() said so */
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

void kt_finder_set_without(KtFinder *f, const char *words)
{
    f->without = words;
}

/* Make @k the kernel that was found in memory. */
static void set_found(KtFinder *f, GsKernel *k)
{
    if (f->without) {
        gs_kernel_hide(k, f->without);
    }
    gs_kernel_free(f->found);
    f->found = k;
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
    bool late = __atomic_load_n(&f->late, __ATOMIC_RELAXED);

    return (f->file && may_be_start(f, va)) ||
           ((!f->file || late) && kt_finder_may_run(f, va) &&
            __atomic_load_n(&f->tries, __ATOMIC_RELAXED) < TRIES_MAX);
}

static void set_tries(KtFinder *f, unsigned tries)
{
    __atomic_store_n(&f->tries, tries, __ATOMIC_RELAXED);
}

/* Count a block. Return true for blocks 1, 2, 4, 8, ... */
static bool is_due(KtFinder *f)
{
    f->blocks++;
    if (f->blocks & (f->blocks - 1) || f->tries >= TRIES_MAX) {
        return false;
    }
    set_tries(f, f->tries + 1);
    return true;
}

static void set_late(KtFinder *f, bool late)
{
    __atomic_store_n(&f->late, late, __ATOMIC_RELAXED);
}

/* ---- guest memory ------------------------------------------------------- */

static bool read_memory(void *opaque, uint64_t va, void *buf, size_t len)
{
    const KtFinder *f = opaque;

    return kt_view_read(f->view, va, buf, len);
}

static GsMem memory_of(KtFinder *f)
{
    return (GsMem) {
        .read = read_memory, .opaque = f, .room = f->room,
        .no_kallsyms = f->without && gs_kernel_hides_kallsyms(f->without),
    };
}

/* Has the kernel allocated nothing yet? Then slab_state is 0, which is DOWN in
 * mm/slab.h. */
static bool nothing_allocated(KtFinder *f, const GsKernel *k, uint64_t slide)
{
    GsSymbol sym;
    uint32_t state;

    return gs_kernel_lookup(k, "slab_state", &sym) &&
           read_memory(f, sym.va - gs_kernel_slide(k) + slide, &state,
                       sizeof(state)) && state == 0;
}

/* ---- with a file -------------------------------------------------------- */

/* Return the address of the banner at a slide, 0 if unknown. */
static uint64_t banner_va(const GsKernel *k, uint64_t slide)
{
    uint64_t va = gs_kernel_banner_va(k);
    GsSymbol sym;

    if (!va && gs_kernel_lookup(k, "linux_banner", &sym)) {
        va = sym.va;
    }
    return va ? va - gs_kernel_slide(k) + slide : 0;
}

/* Does the banner in guest memory begin with @text? */
static bool banner_is(KtFinder *f, const GsKernel *k, uint64_t slide,
                      const char *text)
{
    uint64_t va = banner_va(k, slide);
    size_t len = strlen(text);
    g_autofree char *there = g_malloc(len + 1);

    return va && read_memory(f, va, there, len) && !memcmp(there, text, len);
}

static bool banner_matches(KtFinder *f, const GsKernel *k, uint64_t slide)
{
    const char *banner = gs_kernel_banner(k);

    return !banner ||       /* a System.map has none */
           banner_is(f, k, slide, banner);
}

/* Compare the code at the entry with the file: another program may have run
 * there before the kernel. */
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

/* Find the slide from @from to @to (which may wrap) that has the banner. */
static bool find_slide(KtFinder *f, uint64_t from, uint64_t to,
                       const char *banner, uint64_t *slide)
{
    *slide = (from + f->step - 1) & -f->step;
    for (unsigned i = 0; i < SLIDES_MAX && (int64_t)(to - *slide) >= 0; i++) {
        if (banner_is(f, f->file, *slide, banner)) {
            return true;
        }
        *slide += f->step;
    }
    return false;
}

static bool link_text(const GsKernel *k, uint64_t *start, uint64_t *end)
{
    if (!gs_kernel_text_range(k, start, end)) {
        return false;
    }
    *start -= gs_kernel_slide(k);
    *end -= gs_kernel_slide(k);
    return true;
}

/* Find the slide if the file's kernel runs already, and @va is in its code. */
static bool runs_at(KtFinder *f, uint64_t va, uint64_t *slide)
{
    const char *banner = gs_kernel_banner(f->file);
    uint64_t start, end;

    *slide = 0;
    if (!f->step) {
        return code_matches(f);
    }
    return link_text(f->file, &start, &end) &&
           find_slide(f, va - end + 1, va - start,
                      banner ? banner : ANY_BANNER, slide);
}

static bool starts_at(KtFinder *f, uint64_t va, uint64_t *slide)
{
    *slide = va - f->start;
    return may_be_start(f, va) &&
           (f->step ? banner_matches(f, f->file, *slide) : code_matches(f));
}

/* Has the kernel run for some time already? If it has no slabs yet, it has not
 * reached start_kernel(), and may still get another slide: arm64 runs at the
 * link address until it has read the KASLR seed. Such a try does not count. */
static bool has_begun(KtFinder *f, uint64_t va, uint64_t *slide)
{
    if (!f->late || !is_due(f) || !runs_at(f, va, slide)) {
        return false;
    }
    if (nothing_allocated(f, f->file, *slide)) {
        set_tries(f, f->tries - 1);
        return false;
    }
    return true;
}

/* Return the file's kernel, which runs at @slide. A System.map has symbols
 * only; the rest is in memory, around the banner, which the kernel keeps. */
static GsKernel *use_file(KtFinder *f, uint64_t slide)
{
    const GsMem memory = memory_of(f);

    if (f->step && banner_is(f, f->file, slide, ANY_BANNER) &&
        gs_kernel_add_memory(f->file, &memory, slide,
                             banner_va(f->file, slide)) && f->without) {
        gs_kernel_hide(f->file, f->without);
    }
    f->ran = true;
    return f->file;
}

static GsKernel *try_file(KtFinder *f, uint64_t va, uint64_t *slide,
                          bool *complete)
{
    *complete = starts_at(f, va, slide);    /* nothing is allocated yet */
    if (!*complete && !has_begun(f, va, slide)) {
        return NULL;
    }
    set_late(f, false);
    return use_file(f, *slide);
}

/* ---- in guest memory ---------------------------------------------------- */

/* After kexec: is this block still code of the old kernel? The new one may be
 * at the same address, so the banner and the state of its slabs decide. */
static bool still_runs(KtFinder *f, uint64_t va)
{
    return f->found && gs_kernel_in_image(f->found, va) &&
           banner_matches(f, f->found, gs_kernel_slide(f->found)) &&
           !nothing_allocated(f, f->found, gs_kernel_slide(f->found));
}

static GsKernel *try_memory(KtFinder *f, uint64_t va, uint64_t *slide,
                            bool *complete)
{
    const GsMem memory = memory_of(f);
    bool first;
    GsKernel *k;

    if (f->after_kexec && still_runs(f, va)) {
        return NULL;
    }
    first = f->blocks == 0;
    if (!is_due(f)) {
        return NULL;
    }
    g_clear_error(&f->err);
    k = gs_kernel_new_from_memory(f->arch, &memory, va, &f->err);
    if (!k) {
        return NULL;
    }
    set_found(f, k);
    f->after_kexec = false;
    *slide = 0;
    *complete = gs_kernel_has_all_symbols(k) &&
                ((first && !f->late) || nothing_allocated(f, k, 0));
    set_late(f, false);
    return k;
}

GsKernel *kt_finder_try(KtFinder *f, uint64_t va, uint64_t *slide,
                        bool *complete)
{
    return (f->file ? try_file : try_memory)(f, va, slide, complete);
}

/* ---- a loaded snapshot -------------------------------------------------- */

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

/* Is @k the kernel @at? */
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

bool kt_finder_may_return(const KtFinder *f, const KtKernelAt *at)
{
    const char *banner = f->file ? gs_kernel_banner(f->file) : NULL;

    return !banner || !*at->banner || !strcmp(banner, at->banner);
}

/* Find the file's kernel if the snapshot was made without a file. @at has the
 * mapped part of the image: maybe not all of its code, but the banner. */
static bool file_is_in(KtFinder *f, const KtKernelAt *at, uint64_t *slide)
{
    uint64_t va = banner_va(f->file, 0);

    return f->step && *at->banner && va &&
           find_slide(f, at->start - va, at->end - va - strlen(at->banner),
                      at->banner, slide);
}

/* Is the file's kernel at this slide? */
static bool file_is_at(KtFinder *f, const KtKernelAt *at, uint64_t slide)
{
    if (!f->step) {
        return code_matches(f);
    }
    return !(slide & (f->step - 1)) && banner_matches(f, f->file, slide) &&
           (!*at->banner || banner_is(f, f->file, slide, at->banner));
}

/* Return @k without modules: they were loaded in another life of the VM.
 * Setting the slide removes them. */
static GsKernel *without_modules(GsKernel *k)
{
    gs_kernel_set_slide(k, gs_kernel_slide(k));
    return k;
}

static GsKernel *return_of_file(KtFinder *f, const KtKernelAt *at)
{
    uint64_t slide = at->start;
    bool there = at->memory ? file_is_in(f, at, &slide) :
                 file_is_at(f, at, slide);

    if (!there || !kt_finder_may_return(f, at)) {
        return NULL;
    }
    gs_kernel_set_slide(f->file, f->step ? slide : 0);
    return use_file(f, slide);
}

/* Read the kernel from memory again. If the snapshot was made with a file, the
 * address of the image is unknown, and the block at @va is used. */
static GsKernel *read_again(KtFinder *f, const KtKernelAt *at, uint64_t va)
{
    const GsMem memory = memory_of(f);
    g_autoptr(GsKernel) k = NULL;

    g_clear_error(&f->err);
    if (at->memory) {
        k = gs_kernel_new_from_extent(f->arch, &memory, at->start, at->end,
                                      &f->err);
    } else if (va) {
        k = gs_kernel_new_from_memory(f->arch, &memory, va, &f->err);
    }
    if (!k || !(at->memory ? is_at(k, at) :
                !strcmp(gs_kernel_banner(k), at->banner))) {
        return NULL;
    }
    return g_steal_pointer(&k);
}

static GsKernel *return_in_memory(KtFinder *f, const KtKernelAt *at,
                                  uint64_t va)
{
    GsKernel *k;

    if (f->found && is_at(f->found, at) && banner_matches(f, f->found, 0)) {
        return without_modules(f->found);
    }
    k = read_again(f, at, va);
    if (k) {
        set_found(f, k);
    }
    return k;
}

GsKernel *kt_finder_return(KtFinder *f, const KtKernelAt *at, uint64_t va,
                           KtView view)
{
    KtView before = f->view;
    GsKernel *k;

    f->view = view;
    k = f->file ? return_of_file(f, at) : return_in_memory(f, at, va);
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

void kt_finder_late(KtFinder *f, bool begun)
{
    GsSymbol sym;

    set_late(f, begun || !f->file ||
             gs_kernel_lookup(f->file, "slab_state", &sym));
}

bool kt_finder_restart(KtFinder *f, bool after_kexec)
{
    f->blocks = 0;
    f->gave_up = false;
    f->after_kexec = after_kexec;
    set_late(f, false);
    return __atomic_exchange_n(&f->tries, 0, __ATOMIC_RELAXED) > 0;
}

bool kt_finder_gives_up(KtFinder *f)
{
    bool now = !f->gave_up && !f->file && f->tries >= TRIES_MAX && f->err;

    f->gave_up |= now;
    return now;
}

bool kt_finder_has_tried(const KtFinder *f)
{
    return __atomic_load_n(&f->tries, __ATOMIC_RELAXED);
}

const char *kt_finder_why_not(const KtFinder *f)
{
    return f->err ? f->err->message : NULL;
}
