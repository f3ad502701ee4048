/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: the debug file of a kernel (ka symbols) whose symbols, ORC
 * tables, module and code are any bytes.
 *
 * Byte 0 selects the ORC layout (bits 0 to 2), frame pointers in place of ORC
 * (bit 3), the architecture (bits 4 and 5) and whether unloaded modules are
 * asked for (bit 6) and memory can be read (bit 7). Bytes 1 to 3 are the
 * numbers of symbols of the kernel (4 bytes each), of entries of its ORC table
 * (6 bytes each) and twice that of symbols of a module (4 bytes each), which
 * follow in this order; if the latter is odd, the module is unloaded and
 * another one comes. The rest, again and again, is the code.
 *
 * Checks: libelf and libdw read all symbols and all rules of the file.
 */
#include "tests/fuzz/fuzz.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "tests/lib/orc-writer.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <inttypes.h>

#define TEXT        0xffffffff81000000ull
#define MODULE      0xffffffff81040000ull
#define ORC_IP      0xffffffff82800000ull
#define ROWS_MAX    255

/* The bytes of the input that are left; then zeros. */
typedef struct Input {
    const uint8_t *data;
    size_t len;
} Input;

static uint8_t byte(Input *in)
{
    if (!in->len) {
        return 0;
    }
    in->len--;
    return *in->data++;
}

static unsigned two_bytes(Input *in)
{
    unsigned low = byte(in);

    return low | byte(in) << 8;
}

static bool read_code(void *opaque, uint64_t va, void *buf, size_t len)
{
    const Input *code = opaque;
    uint8_t *to = buf;

    for (size_t i = 0; i < len && code->len; i++) {
        to[i] = code->data[(va + i) % code->len];
    }
    return code->len;
}

/* ---- a kernel ----------------------------------------------------------- */

static void put_line(GString *map, uint64_t va, char letter, const char *name)
{
    g_string_append_printf(map, "%016" PRIx64 " %c %s\n", va, letter, name);
}

/* Append a symbol: its address, letter and name are of the input. */
static void put_symbol(GString *map, Input *in)
{
    uint64_t va = TEXT + two_bytes(in) * 4;
    char letter = "tTdDbBrRaAwWVuU"[byte(in) % 15];
    unsigned n = byte(in);
    g_autofree char *name = g_strdup_printf("%s%u", n < 16 ? "entry_SYSCALL_" :
                                                             "f", n);

    put_line(map, n == 0xff ? va - TEXT : va, letter, name);
}

static GsKernel *make_kernel(Input *in, unsigned n)
{
    g_autoptr(GString) map = g_string_new(NULL);

    put_line(map, TEXT, 'T', "_stext");
    put_line(map, TEXT + 0x40, 'T', "start_kernel");
    put_line(map, TEXT + 0x8000, 'T', "__entry_text_start");
    put_line(map, TEXT + 0x9000, 'T', "__entry_text_end");
    put_line(map, TEXT + 0x20000, 'T', "_etext");
    put_line(map, TEXT + 0x30000, 'T', "_sinittext");
    put_line(map, TEXT + 0x31000, 'T', "_einittext");
    for (unsigned i = 0; i < n; i++) {
        put_symbol(map, in);
    }
    return gs_kernel_new_from_data(map->str, map->len, "System.map", NULL);
}

static OrcArrays make_orc(Input *in, GsOrcLayout layout, uint64_t va,
                          unsigned n)
{
    OrcRow row[ROWS_MAX];

    for (unsigned i = 0; i < n; i++) {
        uint8_t types = byte(in), regs = byte(in);

        va += byte(in);
        row[i] = (OrcRow) {
            .va = va, .type = types % (GS_ORC_REGS_PARTIAL + 1),
            .sp = (regs & 15) % R__COUNT, .bp = (regs >> 4) % R__COUNT,
            .sp_off = (int8_t)byte(in), .bp_off = (int8_t)byte(in),
        };
        row[i].sp_off *= byte(in);
    }
    return orc_writer_finish(layout, ORC_IP, row, n);
}

static void add_orc(GsKernel *k, Input *in, GsOrcLayout layout, unsigned n)
{
    const GsRange text = { TEXT, TEXT + 0x31000 };
    g_auto(OrcArrays) a = make_orc(in, layout, TEXT, n);
    GsOrcRaw raw = orc_writer_raw(&a);

    if (n) {
        gs_orc_set_load(k->orc, text, &text, 1, &raw, NULL);
    }
}

/* Add a module, which may lie over the kernel and over the module before.
 * Returns: its address. */
static uint64_t add_module(GsKernel *k, Input *in, unsigned n)
{
    uint64_t base = MODULE - two_bytes(in), size = two_bytes(in);
    g_autofree GsModuleSymbol *sym = g_new0(GsModuleSymbol, n + 1);

    for (unsigned i = 0; i < n; i++) {
        sym[i] = (GsModuleSymbol) {
            .va = base + two_bytes(in), .name = byte(in) & 1 ? "one" : "two",
            .type = "tTdb"[byte(in) & 3],
        };
    }
    gs_kernel_add_module_data(k, base + size, "m", base, size, sym, n, 0, NULL,
                              NULL, 0, NULL);
    return base + size;
}

/* ---- the file ----------------------------------------------------------- */

/* Return the data of the section @name and its header; NULL: there is none. */
static Elf_Data *section(Elf *elf, const char *name, GElf_Shdr *h)
{
    Elf_Scn *scn = NULL;
    size_t names;

    if (elf_getshdrstrndx(elf, &names)) {
        abort();
    }
    while ((scn = elf_nextscn(elf, scn))) {
        const char *is = gelf_getshdr(scn, h) ?
                         elf_strptr(elf, names, h->sh_name) : NULL;

        if (!is) {
            abort();
        }
        if (!strcmp(is, name)) {
            return elf_getdata(scn, NULL);
        }
    }
    return NULL;
}

static void check_symbols(Elf *elf, const GsDebugFile *f)
{
    GElf_Shdr h;
    Elf_Data *data = section(elf, ".symtab", &h);
    size_t n = 0;
    GElf_Sym sym;

    for (; data && gelf_getsym(data, n, &sym); n++) {
        if (!elf_strptr(elf, h.sh_link, sym.st_name) ||
            (GELF_ST_BIND(sym.st_info) == STB_LOCAL) != (n < h.sh_info)) {
            abort();
        }
    }
    if (n != f->n_symbols + 1) {
        abort();
    }
}

/* Read the rules at the first and the last byte of a range. */
static void check_range(Dwarf_CFI *cfi, const uint8_t *fde)
{
    uint64_t start, size;

    memcpy(&start, fde, sizeof(start));
    memcpy(&size, fde + sizeof(start), sizeof(size));
    for (unsigned i = 0; i < 2 && size; i++) {
        g_autofree Dwarf_Frame *frame = NULL;

        if (dwarf_cfi_addrframe(cfi, start + i * (size - 1), &frame)) {
            abort();
        }
    }
}

static void check_rules(Elf *elf, const GsDebugFile *f)
{
    GElf_Shdr h;
    Elf_Data *data = section(elf, ".debug_frame", &h);
    Dwarf *dwarf = data ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    Dwarf_CFI *cfi = dwarf ? dwarf_getcfi(dwarf) : NULL;
    const unsigned char *ident = (unsigned char *)elf_getident(elf, NULL);
    Dwarf_CFI_Entry entry;
    Dwarf_Off at, next = 0;
    size_t n = 0;
    int more = data ? 0 : 1;

    while (!more) {
        at = next;
        more = dwarf_next_cfi(ident, data, false, at, &next, &entry);
        if (more < 0 || (data && !cfi)) {
            abort();
        }
        if (!more && !dwarf_cfi_cie_p(&entry)) {
            check_range(cfi, entry.fde.start);
            n++;
        }
    }
    if (n != f->n_ranges) {
        abort();
    }
    dwarf_end(dwarf);
}

static void check_file(const GsKernel *k, const GsMem *mem, bool unloaded)
{
    g_auto(GsDebugFile) f = { 0 };
    Elf *elf;

    if (!gs_kernel_debug_file(k, mem, unloaded, &f, NULL)) {
        abort();
    }
    elf_version(EV_CURRENT);
    elf = elf_memory((char *)f.bytes->data, f.bytes->len);
    if (!elf) {
        abort();
    }
    check_symbols(elf, &f);
    check_rules(elf, &f);
    elf_end(elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    Input in = { data, len };
    unsigned bits = byte(&in), n = byte(&in), rows = byte(&in);
    unsigned of_module = byte(&in);
    uint64_t module;
    const GsMem mem = { .read = read_code, .opaque = &in };
    g_autoptr(GsKernel) k = make_kernel(&in, n);

    if (!k) {
        return 0;
    }
    k->arch = gs_arch_nth((bits >> 4 & 3) % GS_N_ARCHS);
    k->unwind_by = bits & 8 ? GS_UNWIND_BY_FRAMES : k->unwind_by;
    add_orc(k, &in, 1 + (bits & 7) % (GS_ORC_LAYOUT__COUNT - 1), rows);
    module = add_module(k, &in, of_module / 2);
    if (of_module & 1) {
        gs_kernel_drop_module(k, module);
        add_module(k, &in, of_module / 4);
    }
    check_file(k, bits & 0x80 ? NULL : &mem, bits & 0x40);
    return 0;
}
