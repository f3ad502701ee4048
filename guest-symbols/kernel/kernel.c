/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens kernel files and answers for them in run-time addresses.
 *
 * The tables of image.c, kallsyms.c, systemmap.c and btf.c know link-time
 * addresses and never change; modules.c and orc.c know run-time ones and
 * lock for themselves. What is here only adds the slide and asks the kernel
 * proper before its modules. Except gs_kernel_set_slide(), everything may be
 * called from any thread.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/kernel/banner.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/symbols/kallsyms.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/symbols/systemmap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SIZE_MAX   (2ull << 30)
#define BTF_SEARCH_MAX  (64u << 20)

/* ---- opening ---- */

static bool read_all(int fd, uint8_t *buf, size_t len, GError **errp)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, buf + done, len - done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            g_set_error(errp, GS_ERROR, GS_ERROR_IO, "%s",
                        n ? g_strerror(errno) : "became shorter while read");
            return false;
        }
        done += n;
    }
    return true;
}

/*
 * Reads instead of mapping: a file that is rebuilt while it is mapped would
 * take the process down.
 */
static GBytes *read_open_file(int fd, GError **errp)
{
    struct stat st;
    uint8_t *buf;

    if (fd < 0 || fstat(fd, &st) < 0) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "%s", g_strerror(errno));
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "not a regular file");
        return NULL;
    }
    if (!st.st_size || (uint64_t)st.st_size > FILE_SIZE_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "%s",
                    st.st_size ? "too large for a kernel" : "empty file");
        return NULL;
    }
    buf = g_try_malloc(st.st_size);
    if (!buf) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "not enough memory");
        return NULL;
    }
    if (!read_all(fd, buf, st.st_size, errp)) {
        g_free(buf);
        return NULL;
    }
    return g_bytes_new_take(buf, st.st_size);
}

GBytes *gs_kernel_read_file(const char *path, GError **errp)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    GBytes *bytes = read_open_file(fd, errp);

    if (fd >= 0) {
        close(fd);
    }
    return bytes;
}

/* Types where sections have no names. */
static void search_btf(GsKernel *k)
{
    size_t room = BTF_SEARCH_MAX;

    for (size_t i = 0; !k->btf && i < gs_image_n_sections(k->image); i++) {
        const GsSection *s = gs_image_nth_section(k->image, i);

        gs_guest_copy_need(gs_image_copy(k->image), s->va, s->len);
        if (s->data && !*s->name) {
            k->btf = gs_btf_search(s->data, s->len, &room, &k->btf_left_out);
        }
    }
}

static bool load_btf(GsKernel *k, GError **errp)
{
    uint64_t va;
    const uint8_t *data;
    size_t len;

    if (gs_image_section(k->image, ".BTF", &va, &data, &len)) {
        k->btf = gs_btf_new(data, len, errp);
        return k->btf != NULL;
    }
    search_btf(k);
    return true;
}

/* What the labels tell of an image whose sections have no names. */
static const struct {
    const char *name;
    const char *start;
    const char *end;
    bool exec;
} labelled[] = {
    { ".text", "_stext", "_etext", true },
    { ".init.text", "_sinittext", "_einittext", true },
    { ".orc_unwind_ip", "__start_orc_unwind_ip", "__stop_orc_unwind_ip" },
    { ".orc_unwind", "__start_orc_unwind", "__stop_orc_unwind" },
    { ".orc_header", "__start_orc_header", "__stop_orc_header" },
    { ".BTF", "__start_BTF", "__stop_BTF" },
};

static void name_sections(GsKernel *k)
{
    for (size_t i = 0; i < G_N_ELEMENTS(labelled); i++) {
        GsSymbol from, to;

        if (gs_symtab_lookup(k->symtab, labelled[i].start, &from) &&
            gs_symtab_lookup(k->symtab, labelled[i].end, &to)) {
            gs_image_add_section(k->image, labelled[i].name, from.va, to.va,
                                 labelled[i].exec);
        }
    }
}

static void place_image(GsKernel *k)
{
    const char *start = k->arch ? gs_arch_image_start(k->arch) : NULL;
    GsSymbol sym;

    if (start && gs_symtab_lookup(k->symtab, start, &sym)) {
        gs_image_rebase(k->image, sym.va);
    }
}

static bool load_tables(GsKernel *k, GError **errp)
{
    k->symtab = gs_kallsyms_decode(k->image, errp);
    if (!k->symtab) {
        return false;
    }
    place_image(k);
    if (gs_image_copy(k->image)) {
        name_sections(k);
    }
    k->banner = gs_banner_find(k->image, k->symtab, &k->banner_va);
    if (!k->banner) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "no \"Linux version\" banner in the image");
        return false;
    }
    return load_btf(k, errp) &&
           gs_orc_set_load_image(k->orc, k->image, errp);
}

/* Labels that the kernel's linker scripts place. */
typedef struct Labels {
    const char *start;
    const char *end;
} Labels;

static const Labels text_labels[] = {
    { "_stext", "_etext" },
    { "_sinittext", "_einittext" },
};
static const Labels data_labels[] = {
    { "_sdata", "_edata" },
    { "__start_rodata", "__end_rodata" },
};

static void find_ranges(const GsKernel *k, const Labels *labels, size_t n,
                        GsTextRange *out)
{
    for (size_t i = 0; i < n; i++) {
        GsSymbol from, to;

        if (gs_symtab_lookup(k->symtab, labels[i].start, &from) &&
            gs_symtab_lookup(k->symtab, labels[i].end, &to) &&
            gs_symbol_slides(from.va) && from.va < to.va) {
            out[i] = (GsTextRange) { from.va, to.va };
        }
    }
}

static void find_text(GsKernel *k)
{
    G_STATIC_ASSERT(G_N_ELEMENTS(text_labels) == G_N_ELEMENTS(k->text));

    find_ranges(k, text_labels, G_N_ELEMENTS(text_labels), k->text);
}

void gs_kernel_find_data(GsKernel *k)
{
    G_STATIC_ASSERT(G_N_ELEMENTS(data_labels) == G_N_ELEMENTS(k->data));

    find_ranges(k, data_labels, G_N_ELEMENTS(data_labels), k->data);
}

static void find_templates(GsKernel *k)
{
    static const char *const names[] = {
        "ftrace_caller", "ftrace_regs_caller"
    };

    G_STATIC_ASSERT(G_N_ELEMENTS(names) == G_N_ELEMENTS(k->templates));
    for (size_t i = 0; k->image && i < G_N_ELEMENTS(names); i++) {
        GsTemplate *t = &k->templates[i];
        GsSymbol sym;

        if (gs_symtab_lookup(k->symtab, names[i], &sym) &&
            gs_image_read(k->image, sym.va, t->bytes, sizeof(t->bytes))) {
            t->va = sym.va;
        }
    }
}

static bool load(GsKernel *k, GBytes *bytes, GError **errp)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(bytes, &len);

    if (!gs_systemmap_is(data, len)) {
        k->image = gs_image_new(bytes, errp);
        k->arch = k->image ? gs_arch_of_machine(gs_image_machine(k->image))
                           : NULL;
        return k->image && load_tables(k, errp);
    }
    k->symtab = gs_systemmap_decode(data, len, errp);
    return k->symtab != NULL;
}

GsKernel *gs_kernel_new_empty(void)
{
    GsKernel *k = g_new0(GsKernel, 1);

    k->orc = gs_orc_set_new();
    k->modules = gs_modules_new();
    return k;
}

/* What can be told once the tables are read. */
static void finish(GsKernel *k)
{
    GsSymbol start;

    if (!k->arch) {
        k->arch = gs_arch_of_symbols(k->symtab);
    }
    if (gs_symtab_lookup(k->symtab, "start_kernel", &start)) {
        k->start = start.va;
    }
    find_text(k);
    gs_kernel_find_data(k);
    find_templates(k);
    k->page_shift = gs_arch_page_shift(k);
}

GsKernel *gs_kernel_new_from_image(const GsArch *arch, GsImage *img,
                                   GError **errp)
{
    g_autoptr(GsKernel) k = gs_kernel_new_empty();

    k->image = img;
    k->arch = arch;
    if (!load_tables(k, errp)) {
        return NULL;
    }
    finish(k);
    return g_steal_pointer(&k);
}

static GsKernel *kernel_from_bytes(GBytes *bytes, GError **errp)
{
    g_autoptr(GsKernel) k = gs_kernel_new_empty();

    if (!load(k, bytes, errp)) {
        return NULL;
    }
    finish(k);
    return g_steal_pointer(&k);
}

GsKernel *gs_kernel_open(const char *path, GError **errp)
{
    g_autoptr(GBytes) bytes = gs_kernel_read_file(path, errp);
    GsKernel *k = NULL;

    if (bytes) {
        k = kernel_from_bytes(bytes, errp);
    }
    if (!k) {
        g_prefix_error(errp, "%s: ", path);
    }
    return k;
}

GsKernel *gs_kernel_new_from_data(const void *data, size_t len,
                                  const char *name, GError **errp)
{
    g_autoptr(GBytes) bytes = g_bytes_new(data, len);
    GsKernel *k = kernel_from_bytes(bytes, errp);

    if (!k) {
        g_prefix_error(errp, "%s: ", name);
    }
    return k;
}

void gs_kernel_free(GsKernel *k)
{
    if (!k) {
        return;
    }
    gs_orc_set_free(k->orc);
    gs_modules_free(k->modules);
    gs_btf_free(k->btf);
    gs_symtab_free(k->symtab);
    gs_image_free(k->image);
    g_free(k->banner);
    g_strfreev(k->outermost);
    g_free(k);
}

const GsArch *gs_kernel_arch(const GsKernel *k)
{
    return k->arch;
}

unsigned gs_kernel_page_shift(const GsKernel *k)
{
    return k->page_shift;
}

const char *gs_kernel_banner(const GsKernel *k)
{
    return k->banner;
}

uint64_t gs_kernel_banner_va(const GsKernel *k)
{
    return k->banner_va ? k->banner_va + k->slide : 0;
}

/* ---- slide ---- */

void gs_kernel_set_slide(GsKernel *k, uint64_t slide)
{
    k->slide = slide;
    gs_modules_clear(k->modules);
    gs_orc_set_set_slide(k->orc, slide);
}

uint64_t gs_kernel_slide(const GsKernel *k)
{
    return k->slide;
}

static void slide_symbol(const GsKernel *k, GsSymbol *sym)
{
    if (gs_symbol_slides(sym->va)) {
        sym->va += k->slide;
    }
}

/* ---- text ---- */

bool gs_kernel_text_range(const GsKernel *k, uint64_t *start, uint64_t *end)
{
    const GsTextRange *text = &k->text[0], *init = &k->text[1];

    if (!text->end) {
        return false;
    }
    *start = text->start;
    *end = text->end;
    if (init->end) {
        *start = MIN(*start, init->start);
        *end = MAX(*end, init->end);
    }
    *start += k->slide;
    *end += k->slide;
    return true;
}

static bool in_ranges(const GsTextRange *r, size_t n, uint64_t link)
{
    for (size_t i = 0; i < n; i++) {
        if (link >= r[i].start && link < r[i].end) {
            return true;
        }
    }
    return false;
}

bool gs_kernel_is_text(const GsKernel *k, uint64_t va)
{
    return in_ranges(k->text, G_N_ELEMENTS(k->text), va - k->slide) ||
           gs_modules_is_text(k->modules, va);
}

/*
 * The letter is nm's word for a symbol's section. Of .data that is code where
 * one piece of it is executable, as in x86-64's 7.3; and a weak symbol may be
 * of either. There is code that no labels of text enclose, so the letter
 * counts where none of data say otherwise.
 */
bool gs_kernel_is_code(const GsKernel *k, const GsSymbol *sym)
{
    return strchr("tTwWiI", sym->type) &&
           !in_ranges(k->data, G_N_ELEMENTS(k->data), sym->va - k->slide);
}

bool gs_kernel_in_image(const GsKernel *k, uint64_t va)
{
    return gs_orc_set_in_image(k->orc, va) || gs_kernel_is_text(k, va);
}

uint64_t gs_kernel_start(const GsKernel *k)
{
    return k->start;
}

uint64_t gs_kernel_lowest(const GsKernel *k)
{
    return k->low ? k->low : 1ull << 63;
}

bool gs_kernel_is_plain(const GsKernel *k)
{
    return k->plain;
}

const char *gs_kernel_symbols_from(const GsKernel *k)
{
    return k->plain ? "ELF" :
           k->image || k->memory || k->saved.image ? "kallsyms" : "System.map";
}

bool gs_kernel_read_image(const GsKernel *k, uint64_t va, void *buf,
                          size_t len)
{
    return k->image && gs_image_read(k->image, va, buf, len);
}

/* ---- symbols ---- */

size_t gs_kernel_n_symbols(const GsKernel *k)
{
    return gs_symtab_n(k->symtab) + gs_modules_n_symbols(k->modules);
}

bool gs_kernel_lookup(const GsKernel *k, const char *name, GsSymbol *out)
{
    const char *colon = strchr(name, ':');

    if (colon) {
        g_autofree char *module = g_strndup(name, colon - name);

        return gs_modules_lookup(k->modules, module, colon + 1, out);
    }
    if (gs_symtab_lookup(k->symtab, name, out)) {
        slide_symbol(k, out);
        return true;
    }
    return gs_modules_lookup(k->modules, NULL, name, out);
}

/* Slides each symbol on its way to somebody else's function. */
typedef struct Visitor {
    const GsKernel *k;
    GsSymbolFn fn;
    void *opaque;
    bool stopped;
} Visitor;

static bool visit(const GsSymbol *sym, void *opaque)
{
    Visitor *v = opaque;
    GsSymbol slid = *sym;

    slide_symbol(v->k, &slid);
    v->stopped = !v->fn(&slid, v->opaque);
    return !v->stopped;
}

unsigned gs_kernel_foreach_named(const GsKernel *k, const char *name,
                                 GsSymbolFn fn, void *opaque)
{
    Visitor v = { .k = k, .fn = fn, .opaque = opaque };
    unsigned n = gs_symtab_foreach_named(k->symtab, name, visit, &v);

    if (!v.stopped) {
        n += gs_modules_foreach_named(k->modules, name, fn, opaque);
    }
    return n;
}

bool gs_kernel_symbolize(const GsKernel *k, uint64_t va, GsSymbol *out)
{
    if (gs_symtab_symbolize(k->symtab, va - k->slide, out)) {
        slide_symbol(k, out);
        return true;
    }
    return gs_modules_symbolize(k->modules, va, out);
}

char **gs_kernel_suggest(const GsKernel *k, const char *name, unsigned max)
{
    return gs_symtab_suggest(k->symtab, name, max);
}

/* ---- types ---- */

bool gs_kernel_has_btf(const GsKernel *k)
{
    return k->btf || k->saved.btf;
}

bool gs_kernel_btf_left_out(const GsKernel *k)
{
    return !k->btf && k->btf_left_out;
}

bool gs_kernel_member(const GsKernel *k, const char *type, const char *member,
                      uint32_t *offset, uint32_t *size)
{
    return k->btf && gs_btf_member(k->btf, type, member, offset, size);
}

bool gs_kernel_type_size(const GsKernel *k, const char *type, uint32_t *size)
{
    return k->btf && gs_btf_type_size(k->btf, type, size);
}

char *gs_kernel_member_at(const GsKernel *k, const char *type, uint32_t at)
{
    return k->btf ? gs_btf_member_at(k->btf, type, at) : NULL;
}

bool gs_kernel_enum_value(const GsKernel *k, const char *name, int64_t *value)
{
    return k->btf && gs_btf_enum_value(k->btf, name, value);
}

int gs_kernel_func_param(const GsKernel *k, const char *func,
                         const char *param)
{
    return k->btf ? gs_btf_func_param(k->btf, func, param) : -1;
}
