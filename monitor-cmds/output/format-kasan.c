/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An error in the words of KASAN, for programs and people that read its
 * reports: syzkaller, LKFT, decode_stacktrace.sh.
 *
 *     [   12.345678] ==================================================
 *     [   12.345678] BUG: KASAN: slab-use-after-free in close_it+0x1c/0x120
 *     [   12.345678] Read of size 4 at addr ffff888000001010 by task sh/8
 *     ...
 *
 * Called by ka error, on the thread of the command; no locks.
 */
#include "monitor-cmds/output/block-row.h"

#include <stdarg.h>
#include <string.h>

static const char rule[] =
    "==================================================================";

/* Kinds that KASAN has, by its names. */
static const char *const kasan_kinds[KT_ERR__COUNT] = {
    [KT_ERR_DOUBLE_FREE] = "double-free",
    [KT_ERR_INVALID_FREE] = "invalid-free",
    [KT_ERR_INTERIOR_FREE] = "invalid-free",
    [KT_ERR_WRONG_FAMILY] = "invalid-free",
    [KT_ERR_WRONG_CACHE] = "invalid-free",
    [KT_ERR_USE_AFTER_FREE] = "slab-use-after-free",
    [KT_ERR_OUT_OF_BOUNDS] = "slab-out-of-bounds",
    [KT_ERR_FREE_SLOT] = "slab-out-of-bounds",
};

/* Of large blocks, KASAN only sees pages when they are freed. It has one kind
 * for all accesses to areas of vmalloc(). */
static const char *kasan_kind(const KtError *e)
{
    bool area = e->has_block && e->block.layer == KT_LAYER_VMALLOC;
    bool pages = e->has_block && (e->block.layer == KT_LAYER_LARGE ||
                                  e->block.layer == KT_LAYER_PAGES);

    if (area && kt_error_is_access(e->kind)) {
        return "vmalloc-out-of-bounds";
    }
    return pages && e->kind == KT_ERR_USE_AFTER_FREE ? "use-after-free" :
           kasan_kinds[e->kind];
}

/* Begin a line with the time, as printk() does. */
static void begin_line(McOut *out, const KtError *e)
{
    g_string_append_printf(out->line, "[%5" PRIu64 ".%06u] ", e->us / 1000000,
                           (unsigned)(e->us % 1000000));
}

static void put_line(McOut *out, const KtError *e, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

static void put_line(McOut *out, const KtError *e, const char *format, ...)
{
    va_list ap;

    begin_line(out, e);
    va_start(ap, format);
    g_string_append_vprintf(out->line, format, ap);
    va_end(ap);
    mc_out_end_line(out);
}

/* ---- the error ----------------------------------------------------------- */

static McStack error_stack(const McOut *out, const KtError *e)
{
    McStack stack = mc_stack(out->ctx->tracer, e->stack);

    stack.exact = kt_error_is_access(e->kind);
    return stack;
}

/* Return true if readers know the hooked function for one of an allocator. They
 * pass over it when they name a bug: parts of names that syzkaller knows. */
static bool is_known_to_readers(const char *name)
{
    static const char *const parts[] = {
        "kfree", "vfree", "vunmap", "kmem_cache", "krealloc",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (strstr(name, parts[i])) {
            return true;
        }
    }
    return false;
}

/* Return the first frame that has a name; the first one if none has. Readers
 * take a report that begins with a bare address, as of a BPF program without
 * symbols, for a broken one. */
static McFrame first_named(const GsKernel *k, const McStack *stack)
{
    for (unsigned i = 0; i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);
        GsSymbol sym;

        if (mc_frame_symbol(k, &frame, &sym)) {
            return frame;
        }
    }
    return mc_caller(stack);
}

/* Append the function that made the error as the kernel names a function:
 * readers want an offset behind the name. Of a free this is the hooked one if
 * readers pass over it, else its caller; of an access the instruction. */
static void put_function(GString *s, const McOut *out, const KtError *e)
{
    const char *name = kt_tracer_hook_name(out->ctx->tracer, e->hook);
    const GsKernel *k = mc_symbols(out->ctx);
    McStack stack = error_stack(out, e);
    GsSymbol sym = { 0 };

    if (kt_error_is_access(e->kind) ||
        (stack.n && !is_known_to_readers(name))) {
        McFrame frame = first_named(k, &stack);

        mc_put_pc_as_kernel(s, k, &frame);
        return;
    }
    mc_put_word(s, name);
    g_string_append(s, "+0x0/0x");
    mc_put_hex(s, k && gs_kernel_lookup(k, name, &sym) ? sym.size : 0, 1);
}

/* Append the function that the error is named after. */
static void put_title_function(GString *s, const McOut *out, const KtError *e)
{
    g_autoptr(McIdentity) id = mc_identity_of_error(out, e);

    mc_put_word(s, strstr(id->title, MC_TITLE_IN) + strlen(MC_TITLE_IN));
}

/* A line BUG that no rule of a reader matches is taken as it is. So it has the
 * function that the error is named after, without an offset, which would differ
 * from build to build. */
static void print_bug(McOut *out, const KtError *e)
{
    const char *kind = kasan_kind(e);

    begin_line(out, e);
    if (kind) {
        g_string_append_printf(out->line, "BUG: KASAN: %s in ", kind);
        put_function(out->line, out, e);
    } else {
        g_string_append_printf(out->line, "BUG: ka: %s in ",
                               kt_error_name(e->kind));
        put_title_function(out->line, out, e);
    }
    mc_out_end_line(out);
}

/* Print what was done, by whom, and where it ran. */
static void print_act(McOut *out, const KtError *e)
{
    uint32_t pid = 0;
    char comm[17] = "-";

    kt_tracer_task(out->ctx->tracer, e->task, &pid, comm);
    if (kt_error_is_access(e->kind)) {
        put_line(out, e, "%s of size %" PRIu64 " at addr %016" PRIx64
                 " by task %s/%u", e->access.flags & KT_EVF_WRITE ? "Write" :
                 "Read", e->size, e->va, comm, pid);
    } else {
        put_line(out, e, "%s addr %016" PRIx64 " by task %s/%u",
                 e->kind == KT_ERR_OVERLAP ? "Allocation at" : "Free of",
                 e->va, comm, pid);
    }
    put_line(out, e, "%s", "");
    put_line(out, e, "CPU: %u PID: %u Comm: %s", e->cpu, pid, comm);
}

/* ---- stacks -------------------------------------------------------------- */

/* Print the frames below a heading. */
static void print_stack(McOut *out, const KtError *e, const McStack *stack)
{
    for (unsigned i = 0; i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);

        begin_line(out, e);
        g_string_append_c(out->line, ' ');
        mc_put_pc_as_kernel(out->line, mc_symbols(out->ctx), &frame);
        mc_out_end_line(out);
    }
    if (!stack->n) {
        put_line(out, e, "(stack is not available)");
    }
}

static void print_track(McOut *out, const KtError *e, const char *what,
                        KtTaskId task, KtStackId id)
{
    McStack stack = mc_stack(out->ctx->tracer, id);
    uint32_t pid = 0;
    char comm[17];

    kt_tracer_task(out->ctx->tracer, task, &pid, comm);
    put_line(out, e, "%s by task %u:", what, pid);
    print_stack(out, e, &stack);
    put_line(out, e, "%s", "");
}

/* ---- the block ----------------------------------------------------------- */

/* Print where @at is in the block. */
static void print_place(McOut *out, const KtError *e, uint64_t at)
{
    const KtBlock *b = &e->block;
    uint64_t end = b->va + b->requested;
    uint64_t away = at < b->va ? b->va - at : at < end ? at - b->va : at - end;

    put_line(out, e, "The buggy address is located %" PRIu64 " bytes %s of",
             away, at < b->va ? "to the left" : at < end ? "inside" :
             "to the right");
    put_line(out, e, " %s%" PRIu64 "-byte region [%016" PRIx64 ", %016" PRIx64
             ")", b->state == KT_BLOCK_FREED ? "freed " : "allocated ",
             b->requested, b->va, end);
}

static void print_block(McOut *out, const KtError *e)
{
    const KtBlock *b = &e->block;
    KtCacheInfo cache;

    print_track(out, e, "Allocated", b->alloc_task, b->alloc_stack);
    if (b->state == KT_BLOCK_FREED) {
        print_track(out, e, "Freed", b->free_task, b->free_stack);
    }
    if (kt_tracer_cache(out->ctx->tracer, b->cache, &cache)) {
        put_line(out, e, "The buggy address belongs to the object at %016"
                 PRIx64, b->va);
        put_line(out, e, " which belongs to the cache %s of size %u",
                 cache.name, cache.object_size);
    }
    print_place(out, e, e->va);
}

/* Print the block that an access may be meant for: of a free slot as KASAN does
 * of a block, else behind it. */
static void print_neighbour(McOut *out, const KtError *e)
{
    const KtErrorAccess *a = &e->access;
    const KtNeighbour *n = &a->neighbour;

    if (!e->has_block) {
        print_track(out, e, "Allocated", n->task, n->stack);
    }
    put_line(out, e, "The buggy address is %s %u bytes to the %s of",
             e->has_block ? "also" : "located", a->distance,
             a->behind ? "left" : "right");
    put_line(out, e, " allocated %" PRIu64 "-byte region [%016" PRIx64
             ", %016" PRIx64 ")", n->requested, n->va, n->va + n->requested);
    if (e->has_block) {
        put_line(out, e, "%s", "");
        print_track(out, e, "Allocated", n->task, n->stack);
    }
}

static void print_former_owner(McOut *out, const KtError *e)
{
    KtBlock life;

    if (mc_former_owner(out, e, &life)) {
        put_line(out, e, "%s", "");
        put_line(out, e, "The last owner may be innocent. A former owner is of "
                 "the module that made the access:");
        print_track(out, e, "Allocated", life.alloc_task, life.alloc_stack);
        print_track(out, e, "Freed", life.free_task, life.free_stack);
    }
}

/* Print what KASAN has no words for: an owner and a block that this may be an
 * access to as well, and how often it happened. */
static void print_more(McOut *out, const KtError *e)
{
    if (!kt_error_is_access(e->kind)) {
        return;
    }
    if (e->access.has_neighbour) {
        print_neighbour(out, e);
    }
    print_former_owner(out, e);
    if (e->access.count > 1) {
        put_line(out, e, "%" PRIu64 " accesses of this kind so far",
                 e->access.count);
    }
}

void mc_print_kasan(McOut *out, const KtError *e)
{
    McStack stack = error_stack(out, e);

    put_line(out, e, "%s", rule);
    print_bug(out, e);
    print_act(out, e);
    put_line(out, e, "Call Trace:");
    print_stack(out, e, &stack);
    put_line(out, e, "%s", "");
    if (e->has_block) {
        print_block(out, e);
    }
    print_more(out, e);
    put_line(out, e, "%s", rule);
}
