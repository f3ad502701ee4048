/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of errors: see block-row.h. */
#include "monitor-cmds/output/block-row.h"

#include <glib.h>

#include "monitor-cmds/output/format.h"

/* ---- names of error codes ------------------------------------------------ */

/*
 * Names of Linux's error codes: include/uapi/asm-generic/errno-base.h, errno.h
 * and include/linux/errno.h of Linux. The host's own names do not have those
 * that only the kernel uses. All architectures that ka traces have these codes.
 */
static const char *const names[] = {
    [1] = "EPERM", [2] = "ENOENT", [3] = "ESRCH", [4] = "EINTR",
    [5] = "EIO", [6] = "ENXIO", [7] = "E2BIG", [8] = "ENOEXEC",
    [9] = "EBADF", [10] = "ECHILD", [11] = "EAGAIN", [12] = "ENOMEM",
    [13] = "EACCES", [14] = "EFAULT", [15] = "ENOTBLK", [16] = "EBUSY",
    [17] = "EEXIST", [18] = "EXDEV", [19] = "ENODEV", [20] = "ENOTDIR",
    [21] = "EISDIR", [22] = "EINVAL", [23] = "ENFILE", [24] = "EMFILE",
    [25] = "ENOTTY", [26] = "ETXTBSY", [27] = "EFBIG", [28] = "ENOSPC",
    [29] = "ESPIPE", [30] = "EROFS", [31] = "EMLINK", [32] = "EPIPE",
    [33] = "EDOM", [34] = "ERANGE", [35] = "EDEADLK", [36] = "ENAMETOOLONG",
    [37] = "ENOLCK", [38] = "ENOSYS", [39] = "ENOTEMPTY", [40] = "ELOOP",
    [42] = "ENOMSG", [43] = "EIDRM", [44] = "ECHRNG", [45] = "EL2NSYNC",
    [46] = "EL3HLT", [47] = "EL3RST", [48] = "ELNRNG", [49] = "EUNATCH",
    [50] = "ENOCSI", [51] = "EL2HLT", [52] = "EBADE", [53] = "EBADR",
    [54] = "EXFULL", [55] = "ENOANO", [56] = "EBADRQC", [57] = "EBADSLT",
    [59] = "EBFONT", [60] = "ENOSTR", [61] = "ENODATA", [62] = "ETIME",
    [63] = "ENOSR", [64] = "ENONET", [65] = "ENOPKG", [66] = "EREMOTE",
    [67] = "ENOLINK", [68] = "EADV", [69] = "ESRMNT", [70] = "ECOMM",
    [71] = "EPROTO", [72] = "EMULTIHOP", [73] = "EDOTDOT", [74] = "EBADMSG",
    [75] = "EOVERFLOW", [76] = "ENOTUNIQ", [77] = "EBADFD",
    [78] = "EREMCHG", [79] = "ELIBACC", [80] = "ELIBBAD", [81] = "ELIBSCN",
    [82] = "ELIBMAX", [83] = "ELIBEXEC", [84] = "EILSEQ", [85] = "ERESTART",
    [86] = "ESTRPIPE", [87] = "EUSERS", [88] = "ENOTSOCK",
    [89] = "EDESTADDRREQ", [90] = "EMSGSIZE", [91] = "EPROTOTYPE",
    [92] = "ENOPROTOOPT", [93] = "EPROTONOSUPPORT",
    [94] = "ESOCKTNOSUPPORT", [95] = "EOPNOTSUPP", [96] = "EPFNOSUPPORT",
    [97] = "EAFNOSUPPORT", [98] = "EADDRINUSE", [99] = "EADDRNOTAVAIL",
    [100] = "ENETDOWN", [101] = "ENETUNREACH", [102] = "ENETRESET",
    [103] = "ECONNABORTED", [104] = "ECONNRESET", [105] = "ENOBUFS",
    [106] = "EISCONN", [107] = "ENOTCONN", [108] = "ESHUTDOWN",
    [109] = "ETOOMANYREFS", [110] = "ETIMEDOUT", [111] = "ECONNREFUSED",
    [112] = "EHOSTDOWN", [113] = "EHOSTUNREACH", [114] = "EALREADY",
    [115] = "EINPROGRESS", [116] = "ESTALE", [117] = "EUCLEAN",
    [118] = "ENOTNAM", [119] = "ENAVAIL", [120] = "EISNAM",
    [121] = "EREMOTEIO", [122] = "EDQUOT", [123] = "ENOMEDIUM",
    [124] = "EMEDIUMTYPE", [125] = "ECANCELED", [126] = "ENOKEY",
    [127] = "EKEYEXPIRED", [128] = "EKEYREVOKED", [129] = "EKEYREJECTED",
    [130] = "EOWNERDEAD", [131] = "ENOTRECOVERABLE", [132] = "ERFKILL",
    [133] = "EHWPOISON", [512] = "ERESTARTSYS", [513] = "ERESTARTNOINTR",
    [514] = "ERESTARTNOHAND", [515] = "ENOIOCTLCMD",
    [516] = "ERESTART_RESTARTBLOCK", [517] = "EPROBE_DEFER",
    [518] = "EOPENSTALE", [519] = "ENOPARAM", [521] = "EBADHANDLE",
    [522] = "ENOTSYNC", [523] = "EBADCOOKIE", [524] = "ENOTSUPP",
    [525] = "ETOOSMALL", [526] = "ESERVERFAULT", [527] = "EBADTYPE",
    [528] = "EJUKEBOX", [529] = "EIOCBQUEUED", [530] = "ERECALLCONFLICT",
    [531] = "ENOGRACE",
};

/* Return (static) the name of an error code, "ENOENT" for 2; NULL if it has
 * none. */
static const char *errno_name(unsigned code)
{
    return code < G_N_ELEMENTS(names) ? names[code] : NULL;
}

/** struct Row - @page_shift: log2 of the size of the kernel's pages, 0: not
 *  known; @former: (nullable) the life of mc_former_owner() */
typedef struct Row {
    McBlockRow b;
    const KtError *error;
    const KtBlock *former;
    const GsInstruction *insn;
    unsigned page_shift;
} Row;

#define E(key_, member_, look_, text_, help_, ...) \
    MC_VIA(key_, Row, error, member_, look_, text_, help_, __VA_ARGS__)

static const KtError *error_of(const void *row)
{
    return ((const Row *)row)->error;
}

/* ---- values -------------------------------------------------------------- */

MC_GETTER(error_stack)
{
    v->stack = mc_stack(o->ctx->tracer, error_of(row)->stack);
    v->stack.exact = kt_error_is_access(error_of(row)->kind);
    return true;
}

MC_GETTER(error_code)
{
    unsigned code = -error_of(row)->va;
    const char *name = errno_name(code);

    if (name) {
        g_snprintf(v->text, sizeof(v->text), "-%s", name);
    } else {
        g_snprintf(v->text, sizeof(v->text), "-%u", code);
    }
    v->s = v->text;
    return true;
}

MC_GETTER(last_owner)
{
    v->s = "may-be-innocent";
    return true;
}

/* The order of @size bytes; the size of a page is the kernel's. */
static bool put_order(McValue *v, const Row *row, uint64_t size)
{
    v->u = size ? g_bit_storage(size) - 1 - row->page_shift : 0;
    return row->page_shift && size >> row->page_shift;
}

MC_GETTER(order)
{
    const KtBlock *b = ((const Row *)row)->b.block;

    return b && put_order(v, row, b->requested);
}

MC_GETTER(error_order)
{
    return put_order(v, row, error_of(row)->size);
}

MC_GETTER(error_insn)
{
    const GsInstruction *insn = ((const Row *)row)->insn;

    v->s = insn ? insn->text : NULL;
    return insn && *v->s;
}

/* ---- which errors have them ---------------------------------------------- */

MC_WHEN(is_coded)
{
    return error_of(row)->va >= KT_ERROR_POINTER;
}

MC_WHEN(is_left_or_v)
{
    return o->verbose || error_of(row)->kind == KT_ERR_OBJECTS_LEFT;
}

MC_WHEN(is_by_instruction)
{
    return kt_error_is_access(error_of(row)->kind) &&
           !(error_of(row)->access.flags & KT_EVF_RANGE);
}

MC_WHEN(is_in_front)
{
    return error_of(row)->access.has_neighbour &&
           !error_of(row)->access.behind;
}

static bool is_away(const void *row)
{
    const KtBlock *b = ((const Row *)row)->b.block;

    return b && b->va != error_of(row)->va;
}

static bool is_repeated(const void *row)
{
    return error_of(row)->access.count > 1;
}

#define SET(kind_) (1u << KT_ERR_##kind_)
#define OF(set_) MC_IF_VIA(Row, error, kind, .one_of = set_)
#define ACCESSES \
    OF(SET(USE_AFTER_FREE) | SET(OUT_OF_BOUNDS) | SET(FREE_SLOT))
#define BESIDE MC_IF_VIA(Row, error, access.has_neighbour)

/* ---- the tables ---------------------------------------------------------- */

static const McColumn kind_columns[] = {
    E("error", kind, WORD, "%-14 ", "kind of the error",
      .name = kt_error_name, .flags = MC_HEAD),
    MC_END
};

static const McColumn error_columns[] = {
    MC_GET("error_stack", get_error_stack, STACK, " error[%]",
           "stack in which the error was found, leaf first"),
    E("error_us", us, NUMBER, "@%us", "guest microsecond of the error",
      .flags = MC_ZERO),
    E("error_va", va, ADDRESS, " error_va=%",
      "address at fault; in text only if it is not the block's first byte",
      .text_when = is_away),
    MC_GET("error_code", get_error_code, WORD, " error_code=%",
           "frees of an error pointer: the error that it stands for, such as "
           "-ENOENT", .when = is_coded),
    E("error_size", size, HEX, " error_size=%",
      "wrong-size and wrong-order errors: the size that the caller gave",
      OF(SET(WRONG_SIZE) | SET(WRONG_ORDER))),
    MC_GET("order", get_order, NUMBER, " order=%",
           "wrong-order errors: order with which the pages were allocated",
           OF(SET(WRONG_ORDER))),
    MC_GET("error_order", get_error_order, NUMBER, " error_order=%",
           "wrong-order errors: order that the caller gave",
           OF(SET(WRONG_ORDER))),
    E("error_objects", size, NUMBER, " error_objects=%",
      "objects-left errors: live objects of the cache with this allocation "
      "stack", .flags = MC_ZERO, OF(SET(OBJECTS_LEFT))),
    E("error_access", access.flags, ACCESS, " access=%",
      "use-after-free, out-of-bounds and free-slot errors: r if the memory "
      "was read, w if it was written", .mask = KT_EVF_WRITE, ACCESSES),
    E("error_access_size", size, NUMBER, "%",
      "bytes of this access; of a function such as memset(), the bytes that "
      "it was asked for", ACCESSES),
    E("error_offset", access.offset, HEX, " offset=%",
      "offset in the block of the first bad byte, the largest of all repeats; "
      "without a block: offset in the access", ACCESSES),
    E("error_count", access.count, NUMBER, " count=%",
      "accesses by the same instruction to blocks with the same stacks; in "
      "text only if there are several", ACCESSES,
      .text_when = is_repeated),
    E("error_last_us", access.last_us, NUMBER, "@%us",
      "guest microsecond of the last of them", .flags = MC_ZERO,
      ACCESSES, .text_when = is_repeated),
    MC_GET("error_insn", get_error_insn, TEXT, " insn[%]",
           "this instruction, as it is in the guest's memory now; unknown "
           "without a VM, or if its code is gone", .when = is_by_instruction),
    MC_VIA("error_operand", Row, insn, operand, CHARS, " operand=%",
           "operand of the instruction that had the address",
           .when = is_by_instruction),
    E("neighbour_va", access.neighbour.va, ADDRESS, " neighbour[%",
      "a live block that ends at most 256 bytes in front of the bad byte: the "
      "access may be one behind its end. Of a free slot also one that begins "
      "at most 256 bytes behind the bad byte, if it is nearer",
      BESIDE),
    E("neighbour_size", access.neighbour.requested, BYTES, " (%5)",
      "requested bytes of this neighbour", BESIDE),
    E("neighbour_distance", access.distance, HEX, " +%",
      "bytes between its end and the first bad byte", .when = is_in_front),
    E("neighbour_before", access.distance, HEX, " -%",
      "bytes between the first bad byte and its start, if it begins behind "
      "this byte: the access may be one in front of it",
      MC_IF_VIA(Row, error, access.behind)),
    E("neighbour_alloc", access.neighbour.stack, TAIL, "%]",
      "stack of its allocation, leaf first", BESIDE),
    E("neighbour_us", access.neighbour.us, NUMBER, "@%us",
      "guest microsecond of its allocation", .flags = MC_ZERO,
      BESIDE),
    MC_END
};

#define FORMER(key_, member_, look_, text_, help_, ...) \
    MC_VIA(key_, Row, former, member_, look_, text_, help_, \
           MC_IF(Row, former), __VA_ARGS__)

static const McColumn former_columns[] = {
    MC_GET("last_owner", get_last_owner, WORD, " last_owner=%",
           "may-be-innocent: use-after-free errors by code of a module that "
           "the last life of the block has nothing to do with, and a past "
           "life has", MC_IF(Row, former)),
    FORMER("former_alloc", alloc_stack, STACK, " former_alloc[%]",
           "allocation stack of this past life, the newest one"),
    FORMER("former_alloc_us", alloc_us, NUMBER, "@%us",
           "guest microsecond of this allocation", .flags = MC_ZERO),
    FORMER("former_free", free_stack, STACK, " former_free[%]",
           "stack of the free that ended this life"),
    FORMER("former_free_us", free_us, NUMBER, "@%us",
           "guest microsecond of this free", .flags = MC_ZERO),
    FORMER("former_pid", alloc_task, PID, " former_pid=%",
           "task of this allocation", .flags = MC_V),
    FORMER("former_comm", alloc_task, COMM, " former_comm=%",
           "name of this task", .flags = MC_V),
    MC_END
};

static const McColumn more_columns[] = {
    E("error_id", id, NUMBER, " error_id=%",
      "number of the error, in order of detection", .flags = MC_V),
    E("error_hook", hook, HOOK, " error_hook=%",
      "function whose call is the error", .flags = MC_V),
    E("error_cache", cache, CACHE, " error_cache=%",
      "kmem_cache that the call named", .when = is_left_or_v),
    E("error_cpu", cpu, NUMBER, " error_cpu=%", "vCPU of the error",
      .flags = MC_V),
    E("error_pid", task, PID, " error_pid=%", "task of the error",
      .flags = MC_V),
    E("error_comm", task, COMM, " error_comm=%", "name of this task",
      .flags = MC_V),
    E("neighbour_cache", access.neighbour.cache, CACHE, " neighbour_cache=%",
      "kmem_cache of the neighbour", .flags = MC_V, BESIDE),
    E("neighbour_pid", access.neighbour.task, PID, " neighbour_pid=%",
      "task that allocated the neighbour", .flags = MC_V,
      BESIDE),
    E("neighbour_comm", access.neighbour.task, COMM, " neighbour_comm=%",
      "name of this task", .flags = MC_V, BESIDE),
    MC_END
};

const McObject mc_error_object = {
    "error", "an error, and the block as it was then",
    { kind_columns, mc_block_head_columns, error_columns,
      mc_block_stack_columns, former_columns, mc_block_more_columns,
      more_columns,
      mc_identity_columns },
    .is_block = true,
};

void mc_print_error(McOut *o, const KtError *e, const GsInstruction *insn)
{
    g_autoptr(McIdentity) id =
        mc_prints_identity(o) ? mc_identity_of_error(o, e) : NULL;
    KtBlock former;
    bool has_former = mc_former_owner(o, e, &former);

    mc_print(o, &mc_error_object, &(Row) {
        .b = { .block = e->has_block ? &e->block : NULL, .va = e->va,
               .identity = id },
        .error = e, .insn = insn, .former = has_former ? &former : NULL,
        .page_shift = o->ctx->kernel_found ?
                      gs_kernel_page_shift(o->ctx->kernel) : 0 });
}
