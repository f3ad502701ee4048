/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest-symbols: what is known of a guest kernel without its debug package.
 *
 * A GsKernel is made from a kernel file (vmlinuz/bzImage, ELF vmlinux or
 * System.map) and answers in run-time addresses once its KASLR slide is set.
 * A GsUnwinder walks kernel stacks, on x86-64 with the kernel's own ORC
 * tables, elsewhere by frame records.
 *
 * Everything that is parsed here, file or guest memory, is untrusted: bounds
 * and caps everywhere, a GError for the cold paths, never an assertion.
 *
 * This is the only header of the folder that other folders include.
 */
#ifndef GS_H
#define GS_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** GS_HOT - functions that each event goes through lie side by side: between
 *  two events the guest's own code takes their place in the host's caches
 *  and TLBs, so that what counts is how many lines and pages they are */
#define GS_HOT __attribute__((hot))

/** gs_number_hash() - hash the uint64_t at @key, for a GHashTable with
 *  g_int64_equal(). The hash has a random key for each process, so a guest or
 *  a file cannot choose numbers that collide. Any thread. */
guint gs_number_hash(gconstpointer key);
/** gs_number_hash_direct() - hash the number that @key is, for a GHashTable
 *  with g_direct_equal(). */
guint gs_number_hash_direct(gconstpointer key);

#define GS_ERROR gs_error_quark()
GQuark gs_error_quark(void);

typedef enum GsErrorCode {
    GS_ERROR_IO,            /* the file could not be read */
    GS_ERROR_FORMAT,        /* not a kernel, truncated, inconsistent */
    GS_ERROR_UNSUPPORTED,   /* a kernel, but of a kind not known here */
    GS_ERROR_NO_SYMBOLS,    /* a kernel without kallsyms */
    GS_ERROR_GUEST,         /* guest memory unreadable or inconsistent */
} GsErrorCode;

/**
 * struct GsMem - bounded reader of guest memory, supplied by the embedder
 * @read: copy @len bytes from guest virtual address @va to @buf; all or
 *        nothing, false when any byte is not plain readable RAM
 * @opaque: handed to @read
 * @room: bytes that may be copied of it at once, 0: as many as have a use
 */
typedef struct GsMem {
    bool (*read)(void *opaque, uint64_t va, void *buf, size_t len);
    void *opaque;
    uint64_t room;
} GsMem;

/* ---- architectures ---------------------------------------------------- */

typedef enum GsArchId {
    GS_ARCH_X86_64, GS_ARCH_ARM64, GS_ARCH_RISCV64, GS_ARCH__COUNT
} GsArchId;

/** enum GsReg - registers by what they are for. @GS_REG_LINK: the return
 *  address at a function's entry, where it is not on the stack;
 *  @GS_REG_BASE: leads to the current task, see struct GsArch */
typedef enum GsReg {
    GS_REG_SP, GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3,
    GS_REG_RESULT, GS_REG_FP, GS_REG_BASE, GS_REG_ARG4, GS_REG_ARG5,
    GS_REG_LINK, GS_REG__COUNT
} GsReg;

/**
 * struct GsArch - a row of the table of architectures (static)
 * @name: what QEMU calls the target
 * @reg: gdb's names of registers, NULL where there is none for it
 * @base_is_task: GS_REG_BASE is the address of the current task; otherwise
 *                that of the CPU's percpu variables
 * @text_start, @text_end: between these the kernel's own code runs
 * @slide_align: KASLR moves a kernel by multiples of this
 * @map_step: early in boot its image is mapped in steps of this
 * @patch_byte: an instruction that begins with it traps: the kernel is about
 *              to patch it, or probes it; -1 where patching needs no traps
 */
typedef struct GsArch {
    GsArchId id;
    const char *name;
    const char *reg[GS_REG__COUNT];
    bool base_is_task;
    uint64_t text_start, text_end;
    uint64_t slide_align, map_step;
    int patch_byte;
} GsArch;

/** gs_arch_find() - (static, nullable) by QEMU's name. */
const GsArch *gs_arch_find(const char *name);
/** gs_arch_nth() - (static, nullable) the @i-th row. */
const GsArch *gs_arch_nth(unsigned i);

/* ---- kernels ---------------------------------------------------------- */

typedef struct GsKernel GsKernel;

/**
 * gs_kernel_open() - read a kernel file
 * @path: a bzImage/vmlinuz (any compression the kernel offers), an ELF
 *        vmlinux (stripped or not), or a System.map
 * @errp: one line: what is wrong, and where in the file
 *
 * Returns: (owned) a kernel with slide 0, or NULL.
 */
GsKernel *gs_kernel_open(const char *path, GError **errp);

/**
 * gs_kernel_new_from_data() - the same from memory (tests, fuzzers)
 * @data: (borrowed for the call) the file's bytes
 * @len: their count
 * @name: what error messages call the file
 * @errp: as gs_kernel_open()
 */
GsKernel *gs_kernel_new_from_data(const void *data, size_t len,
                                  const char *name, GError **errp);
/**
 * gs_kernel_new_from_memory() - from the guest's memory, where it runs
 * @arch: the guest's
 * @mem: guest memory
 * @va: an address in the kernel's image
 * @errp: why that is no kernel, or not one that can be read
 *
 * To be called early in its boot: later, parts of the image may be gone.
 * Returns: (owned) a kernel in run-time addresses, its slide is 0; or NULL.
 */
GsKernel *gs_kernel_new_from_memory(const GsArch *arch, const GsMem *mem,
                                    uint64_t va, GError **errp);
/**
 * gs_kernel_new_from_extent() - the same at any time, of one that was found
 * before
 * @start, @end: what gs_kernel_extent() said then; anything may be given
 *
 * What the kernel has given back meanwhile (its init code) is zeros.
 */
GsKernel *gs_kernel_new_from_extent(const GsArch *arch, const GsMem *mem,
                                    uint64_t start, uint64_t end,
                                    GError **errp);
/** gs_kernel_extent() - where it was read; false unless it is one of memory. */
bool gs_kernel_extent(const GsKernel *k, uint64_t *start, uint64_t *end);
void gs_kernel_free(GsKernel *k);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsKernel, gs_kernel_free)

/**
 * struct GsElfOptions - what has to be told of a kernel that is no Linux
 * @start: (nullable) a function that runs before anything is allocated, at
 *         the address that it is linked at; NULL: the file's entry point
 * @outermost: (nullable) functions that stacks begin in, NULL-terminated;
 *             GS_OUTERMOST_MAX count, those that the kernel lacks do not
 * @va_bits: bits of an address; above there may be a signature in a return
 *           address on the stack; 0: never
 */
typedef struct GsElfOptions {
    const char *start;
    const char *const *outermost;
    unsigned va_bits;
} GsElfOptions;
#define GS_OUTERMOST_MAX 16

/**
 * gs_kernel_open_elf() - a kernel of any kind, from an ELF file's symbol table
 * @path: the file; it runs where it is linked, and keeps frame pointers
 * @errp: one line: what is wrong, and where in the file
 *
 * Returns: (owned) or NULL. It has no types, no modules and no banner.
 */
GsKernel *gs_kernel_open_elf(const char *path, const GsElfOptions *o,
                             GError **errp);
/** gs_kernel_new_elf_from_data() - the same from memory (tests, fuzzers). */
GsKernel *gs_kernel_new_elf_from_data(const void *data, size_t len,
                                      const GsElfOptions *o, GError **errp);
/** gs_kernel_is_plain() - from these two. */
bool gs_kernel_is_plain(const GsKernel *k);

/** gs_kernel_is_memory() - from gs_kernel_new_from_memory(). */
bool gs_kernel_is_memory(const GsKernel *k);
/** gs_kernel_symbols_from() - (static) the kind of table that symbols of the
 *  kernel proper are from: "kallsyms", "ELF" or "System.map". */
const char *gs_kernel_symbols_from(const GsKernel *k);

/** gs_kernel_arch() - (static) what it is built for. */
const GsArch *gs_kernel_arch(const GsKernel *k);
/** gs_kernel_page_shift() - log2 of its page size. */
unsigned gs_kernel_page_shift(const GsKernel *k);
/** gs_kernel_start() - link-time address of code that runs before anything is
 *  allocated; 0 unknown. */
uint64_t gs_kernel_start(const GsKernel *k);
/** gs_kernel_lowest() - the lowest address that can be the kernel's: mostly
 *  that of the upper half. */
uint64_t gs_kernel_lowest(const GsKernel *k);
/** gs_kernel_in_image() - is @va (run time) in the kernel's image, code or
 *  data? */
bool gs_kernel_in_image(const GsKernel *k, uint64_t va);

/**
 * gs_kernel_banner() - the "Linux version ..." line of the image
 * Returns: (borrowed) text without newline, or NULL (System.map).
 */
const char *gs_kernel_banner(const GsKernel *k);
/** gs_kernel_banner_va() - where it is in the guest, 0 unknown. */
uint64_t gs_kernel_banner_va(const GsKernel *k);

/**
 * gs_kernel_set_slide() - run-time minus link-time address (KASLR)
 *
 * Not thread safe against readers: the caller sets it while nothing queries.
 * Modules are forgotten by it (a new boot).
 */
void gs_kernel_set_slide(GsKernel *k, uint64_t slide);
uint64_t gs_kernel_slide(const GsKernel *k);

/** gs_kernel_text_range() - run-time [_stext, _etext) joined with the
 *  init text, false when the symbols are missing. */
bool gs_kernel_text_range(const GsKernel *k, uint64_t *start, uint64_t *end);

/** gs_kernel_is_text() - is @va kernel or loaded-module code (run time)? */
bool gs_kernel_is_text(const GsKernel *k, uint64_t va);

/**
 * gs_kernel_read_image() - initial contents of the image
 * @va: link-time address
 * Returns: false where the image has no such bytes (bss, System.map).
 */
bool gs_kernel_read_image(const GsKernel *k, uint64_t va, void *buf,
                          size_t len);

/* ---- symbols ---------------------------------------------------------- */

/* Bound on a symbol's name; KSYM_NAME_LEN is 512 since Linux 6.1. */
#define GS_SYMBOL_NAME_MAX  1024

/**
 * struct GsSymbol - one symbol, by value
 * @va: run-time address (percpu symbols: offset in the percpu area)
 * @size: bytes up to the next symbol of another address; 0 = unknown
 * @module: (borrowed from the kernel, valid until it is freed) module name,
 *          NULL for the kernel proper
 * @type: kallsyms letter ('T', 't', 'D', 'A', ...)
 * @name: a copy, as names are kept compressed; NUL-terminated
 */
typedef struct GsSymbol {
    uint64_t va;
    uint64_t size;
    const char *module;
    char type;
    char name[GS_SYMBOL_NAME_MAX + 1];
} GsSymbol;

/** gs_kernel_n_symbols() - how many symbols, modules included. */
size_t gs_kernel_n_symbols(const GsKernel *k);
/** gs_kernel_bytes() - about the host memory of all that is known of it,
 *  modules included. */
uint64_t gs_kernel_bytes(const GsKernel *k);
/** gs_kernel_set_module_room() - modules that come may take so many bytes
 *  more, at most: those that do not fit are refused, when the ones that are
 *  gone have been forgotten. */
void gs_kernel_set_module_room(GsKernel *k, uint64_t bytes);
/** gs_kernel_symbol_bytes() - host memory that those of the kernel proper
 *  take. */
size_t gs_kernel_symbol_bytes(const GsKernel *k);

/**
 * gs_kernel_lookup() - symbol by name: "name" or "module:name"
 *
 * Of several symbols of one name the global one wins, then the lowest
 * address. "__pfx_" twins and compiler clones (".cold", ".isra.0") only
 * match their full name.
 */
bool gs_kernel_lookup(const GsKernel *k, const char *name, GsSymbol *out);

typedef bool (*GsSymbolFn)(const GsSymbol *sym, void *opaque);

/** gs_kernel_foreach_named() - every symbol of exactly that name, in address
 *  order, until @fn returns false. Returns the number visited. */
unsigned gs_kernel_foreach_named(const GsKernel *k, const char *name,
                                 GsSymbolFn fn, void *opaque);

/**
 * gs_kernel_symbolize() - the symbol that covers a run-time address
 *
 * The nearest symbol at or below @va whose extent covers it; never guesses
 * across a section's or module's end. Does not report percpu/absolute ones.
 */
bool gs_kernel_symbolize(const GsKernel *k, uint64_t va, GsSymbol *out);

/** gs_kernel_is_code() - does @sym, of this kernel or its modules, name code?
 *  Not its letter alone tells. */
bool gs_kernel_is_code(const GsKernel *k, const GsSymbol *sym);

/**
 * gs_kernel_suggest() - near misses of an unknown name, best first
 * Returns: (owned, g_strfreev) NULL-terminated, possibly empty, at most @max.
 */
char **gs_kernel_suggest(const GsKernel *k, const char *name, unsigned max);

/* ---- types (BTF) ------------------------------------------------------ */

bool gs_kernel_has_btf(const GsKernel *k);
/** gs_kernel_btf_left_out() - it has none that was found, but more looks like
 *  it than is looked at. */
bool gs_kernel_btf_left_out(const GsKernel *k);

/**
 * gs_kernel_member() - where a member lies in a struct of this very build
 * @type: struct or union name
 * @member: name, or path "a.b"; anonymous members are looked through
 * @offset: (out) bytes from the start of @type
 * @size: (out, nullable) bytes of the member
 * Returns: false without BTF, for an unknown name, for a bit field or for a
 * member that ends beyond 1 MiB: offsets can be added up in 32 bits.
 */
bool gs_kernel_member(const GsKernel *k, const char *type, const char *member,
                      uint32_t *offset, uint32_t *size);
bool gs_kernel_type_size(const GsKernel *k, const char *type, uint32_t *size);
/** gs_kernel_member_at() - (owned, nullable) path of the innermost member of
 *  @type that begins at or covers @at: "a.b", "a[3].c", with +0xN behind
 *  it when it begins before. */
char *gs_kernel_member_at(const GsKernel *k, const char *type, uint32_t at);
/** gs_kernel_enum_value() - value of an enumerator by its name. */
bool gs_kernel_enum_value(const GsKernel *k, const char *name, int64_t *value);

/**
 * gs_kernel_func_param() - position of a function's parameter by its name
 * Returns: 0, 1, ... or -1 without BTF or for an unknown function or name.
 */
int gs_kernel_func_param(const GsKernel *k, const char *func,
                         const char *param);

/* ---- modules ---------------------------------------------------------- */

/**
 * gs_kernel_add_module() - learn a loaded module from guest memory
 * @mem: guest memory
 * @module_va: its struct module
 * @errp: what was unreadable or inconsistent
 *
 * Reads name, memory ranges, kallsyms and ORC tables by BTF offsets (both
 * the module_layout form of 6.3 and before and module_memory since). A
 * module already known at @module_va is replaced. May be called while other
 * threads unwind or symbolize.
 */
bool gs_kernel_add_module(GsKernel *k, const GsMem *mem, uint64_t module_va,
                          GError **errp);

/**
 * gs_kernel_add_bpf() - learn code that BPF has generated
 * @ksym_va: its struct bpf_ksym, which is known as a module is, by the name
 *           "bpf" (as in /proc/kallsyms) and its address
 */
bool gs_kernel_add_bpf(GsKernel *k, const GsMem *mem, uint64_t ksym_va,
                       GError **errp);

/** struct GsModuleSymbol - one of a module, on its way in: @name is borrowed
 *  for the call. */
typedef struct GsModuleSymbol {
    uint64_t va;
    const char *name;
    char type;
} GsModuleSymbol;

/** gs_kernel_add_module_data() - the same from parts, for tests; arrays are
 *  copied. @orc_ip/@orc as in guest memory, @orc_ip_va its run-time address. */
bool gs_kernel_add_module_data(GsKernel *k, uint64_t module_va,
                               const char *name, uint64_t base, uint64_t size,
                               const GsModuleSymbol *syms, size_t n_syms,
                               uint64_t orc_ip_va, const int32_t *orc_ip,
                               const void *orc, size_t n_orc, GError **errp);

/** gs_kernel_drop_module() - it is unloaded: its symbols keep naming old
 *  backtraces until the range is reused, its ORC is no longer used. */
void gs_kernel_drop_module(GsKernel *k, uint64_t module_va);
size_t gs_kernel_n_modules(const GsKernel *k);
/** struct GsModuleArea - [start, end), run time */
typedef struct GsModuleArea {
    uint64_t start;
    uint64_t end;
} GsModuleArea;
#define GS_MODULE_AREAS_MAX 8

/**
 * struct GsModule - a module, by value
 * @va: what it was added as
 * @name: (borrowed from the kernel, valid until it is freed)
 * @live: it is loaded; otherwise it was
 * @n, @area: where its code and data are, as far as nothing else has taken
 *            their places; its init code, too
 */
typedef struct GsModule {
    uint64_t va;
    const char *name;
    bool live;
    unsigned n;
    GsModuleArea area[GS_MODULE_AREAS_MAX];
} GsModule;

/** gs_kernel_module() - the one that is loaded as @module_va. Any thread. */
bool gs_kernel_module(const GsKernel *k, uint64_t module_va, GsModule *out);
/** gs_kernel_module_at() - the one that has, or had last, @va in it. */
bool gs_kernel_module_at(const GsKernel *k, uint64_t va, GsModule *out);

typedef bool (*GsModuleSymbolFn)(const GsModuleSymbol *sym, void *opaque);
/** gs_kernel_module_symbols() - those of the one that is loaded as @module_va,
 *  by address, the one that names it best first; @fn runs under a lock, false
 *  from it stops. */
void gs_kernel_module_symbols(const GsKernel *k, uint64_t module_va,
                              GsModuleSymbolFn fn, void *opaque);

/** gs_kernel_nth_module() - oldest first, those that were unloaded, too; false
 *  behind the last. */
bool gs_kernel_nth_module(const GsKernel *k, unsigned i, GsModule *out);

struct GsOut;
struct GsBytes;
/**
 * gs_kernel_pack_modules() - what is known of its modules, as a stream
 * gs_kernel_unpack_modules() - know that instead; nobody queries or unwinds
 * meanwhile. Of a stream that fails no module is known.
 * @room: bytes that these may take beyond what modules take now
 *
 * Returns: how many loaded modules found no room, and are not known.
 */
void gs_kernel_pack_modules(const GsKernel *k, struct GsOut *p);
unsigned gs_kernel_unpack_modules(GsKernel *k, struct GsBytes *u,
                                  uint64_t room);
/* ---- saved kernels ---------------------------------------------------- */

/** gs_kernel_save() - append to @out what names @k's addresses: symbols
 *  (without modules), slide, banner. */
void gs_kernel_save(const GsKernel *k, GByteArray *out);
/**
 * gs_kernel_new_saved() - a kernel of what that wrote
 * @data: (borrowed for the call) untrusted
 * @errp: GS_ERROR_FORMAT
 *
 * Returns: (owned) one that symbolizes and looks names up as the saved one
 * did, has no types and cannot unwind; or NULL.
 */
GsKernel *gs_kernel_new_saved(const void *data, size_t len, GError **errp);
/** gs_kernel_save_module() - append the module (or BPF program) that was
 *  added as @module_va; false if none is loaded there. */
bool gs_kernel_save_module(const GsKernel *k, uint64_t module_va,
                           GByteArray *out);
/** gs_kernel_save_nth_module() - the same of the one that
 *  gs_kernel_nth_module() tells of. */
bool gs_kernel_save_nth_module(const GsKernel *k, unsigned i, GByteArray *out);
/** gs_kernel_load_module() - add what that wrote, untrusted, to @k. */
bool gs_kernel_load_module(GsKernel *k, const void *data, size_t len,
                           GError **errp);

/* ---- unwinding -------------------------------------------------------- */

/** Why a backtrace ended; kept with each stack. */
typedef enum GsStop {
    GS_STOP_END,            /* the real end of the stack */
    GS_STOP_USER,           /* registers of user mode reached */
    GS_STOP_UNKNOWN_PC,     /* no code, or no telling how its frame is */
    GS_STOP_BAD_FRAME,      /* stack unreadable, or not moving upwards */
    GS_STOP_DEPTH,          /* @max frames stored */
    GS_STOP__COUNT
} GsStop;
const char *gs_stop_name(GsStop stop);

/** struct GsRegs - registers an unwind starts from; @bp: the frame pointer.
 *  @ip is a return address unless @exact_ip (an interrupted instruction). */
typedef struct GsRegs {
    uint64_t ip;
    uint64_t sp;
    uint64_t bp;
    bool exact_ip;
} GsRegs;

/**
 * GsPageFn - host view of the guest page that contains @va
 * Returns: (borrowed for the unwind) host pointer of the *page's first byte*
 * (4096-byte pages), or NULL when not plain RAM.
 */
typedef const void *(*GsPageFn)(void *opaque, uint64_t va);

typedef struct GsUnwinder GsUnwinder;   /* one a thread: holds caches */

/**
 * gs_unwinder_new() - a walker for one vCPU thread
 * @k: (borrowed) with its slide set; must outlive it; modules may come and go
 *     meanwhile
 */
GsUnwinder *gs_unwinder_new(const GsKernel *k);
void gs_unwinder_free(GsUnwinder *u);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsUnwinder, gs_unwinder_free)

/**
 * gs_unwind() - the hot path: no allocation, no lock, no formatting
 * @regs: where to start; @regs->ip is stored as the first frame
 * @page: host view of guest stack pages
 * @frames: (out) leaf first; return addresses as they stand on the stack,
 *          and the exact ip of interrupted code after exception frames, as
 *          the kernel's own arch_stack_walk() delivers them
 * @max: capacity of @frames
 * @n: (out) how many
 */
GsStop gs_unwind(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                 void *opaque, uint64_t *frames, unsigned max, unsigned *n);

/** gs_unwind_expect() - a stack that begins at @ip is unwound soon: what is
 *  needed first is loaded meanwhile. */
GS_HOT void gs_unwind_expect(GsUnwinder *u, uint64_t ip);

/**
 * gs_unwind_again() - recognise a stack that was unwound before
 * @regs, @page, @opaque: as for gs_unwind()
 * @kind: it was remembered as of this kind
 * @value: (out) what gs_unwind_remember() was told of it
 *
 * Returns: true when gs_unwind() would now deliver the same frames, ended for
 * the same reason, as then. False says nothing: not every stack is kept, nor
 * can every one be.
 */
GS_HOT bool gs_unwind_again(GsUnwinder *u, const GsRegs *regs, GsPageFn page,
                            void *opaque, uint32_t kind, uint64_t *value);
/** gs_unwind_remember() - keep the stack of the gs_unwind() just done, whose
 *  @max is to be the same each time. */
void gs_unwind_remember(GsUnwinder *u, uint32_t kind, uint64_t value);

#endif /* GS_H */
