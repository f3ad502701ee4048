/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prototypes of the kernel's functions: names and types of parameters and
 * result, and the place of each value by the ABI of the architecture.
 *
 *     at the entry     x86-64                   arm64, riscv64
 *     parameters       rdi rsi rdx rcx r8 r9    x0 ... x7, a0 ... a7
 *     more of them     rsp + 8, rsp + 16 ...    sp + 0, sp + 8 ...
 *     at the return
 *     result           rax (rdx)                x0 (x1), a0 (a1)
 *
 * A prototype does not change once made: any thread may read it. The types of
 * the kernel are untrusted: what makes no sense is unknown.
 */
#ifndef GS_API_PROTOTYPES_H
#define GS_API_PROTOTYPES_H

#include "guest-symbols/api/gs-kernel.h"

typedef struct GsPrototype GsPrototype;

/** enum GsValueKind - how the bytes of a value are read; GS_VALUE_OTHER: not
 *  known, or not a type of a value */
typedef enum GsValueKind {
    GS_VALUE_OTHER,
    GS_VALUE_VOID,
    GS_VALUE_SIGNED,
    GS_VALUE_UNSIGNED,
    GS_VALUE_BOOL,
    GS_VALUE_ENUM,
    GS_VALUE_POINTER,
    GS_VALUE_FLOAT,
    GS_VALUE_STRUCT,        /* or a union */
    GS_VALUE_ARRAY,
} GsValueKind;

/** enum GsPlaceKind - where a value is */
typedef enum GsPlaceKind {
    GS_PLACE_UNKNOWN,
    GS_PLACE_NONE,          /* it has no bytes */
    GS_PLACE_REGISTERS,     /* words in @reg[0] and @reg[1] */
    GS_PLACE_STACK,         /* at the stack pointer + @stack */
    GS_PLACE_SPLIT,         /* a word in @reg[0], one on the stack */
} GsPlaceKind;

/** enum GsNumberNames - what numbers of a value have names */
typedef enum GsNumberNames {
    GS_NAMES_NONE,
    GS_NAMES_ERRNO,         /* negative ones: -ENOMEM */
    GS_NAMES_CAPABILITY,    /* CAP_SYS_ADMIN */
    GS_NAMES_GFP,           /* a combination: GFP_KERNEL|ZERO */
} GsNumberNames;

#define GS_PLACE_WORDS 2

/**
 * struct GsPlace - where a value is
 * @by_address: the place has the address of the value, not the value
 * @words: words of 8 bytes in registers
 * @reg: those registers, low half first
 * @stack: bytes above the stack pointer at the entry
 */
typedef struct GsPlace {
    GsPlaceKind kind;
    bool by_address;
    uint8_t words;
    GsReg reg[GS_PLACE_WORDS];
    uint32_t stack;
} GsPlace;

/**
 * struct GsParam - a parameter, a result, or a member that one leads to
 * @name: (borrowed from the prototype, nullable) NULL: not known, or a result
 * @type: (borrowed) its type in C: "struct page *"; printable
 * @kind: how its bytes are read
 * @size: its bytes; 0: void, or unknown
 * @is_signed: the value may be negative
 * @is_text: a pointer to char
 * @names: what numbers have names
 * @bit, @bits: a bit field: so many bits, from this bit of its bytes on; 0, 0:
 *              all bytes
 * @id: its type, in the types that the prototype is from
 * @place: at the entry of the function; of a result: at the return
 */
typedef struct GsParam {
    const char *name;
    const char *type;
    GsValueKind kind;
    uint32_t size;
    bool is_signed;
    bool is_text;
    GsNumberNames names;
    uint8_t bit, bits;
    uint32_t id;
    GsPlace place;
} GsParam;

#define GS_PARAMS_MAX 32

/**
 * gs_kernel_prototype() - find the prototype of a function
 * @module: (nullable) the module that the function is in; NULL: the kernel
 *          proper
 * @func: its symbol, for example "kmem_cache_alloc_noprof"
 * @why: (out, nullable, static) one line that says why there is none
 *
 * An optimised copy of a function (.isra, .constprop, .part, .cold) has none:
 * the compiler may have removed arguments. Neither have several functions of
 * one name with different types.
 * Returns: (owned) or NULL.
 */
GsPrototype *gs_kernel_prototype(const GsKernel *k, const char *module,
                                 const char *func, const char **why);
/** gs_prototype_ref() - return @p with one more owner. */
GsPrototype *gs_prototype_ref(GsPrototype *p);
/** gs_prototype_free() - drop one owner's share; the last one frees. */
void gs_prototype_free(GsPrototype *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsPrototype, gs_prototype_free)

/** gs_prototype_n() - count the parameters that have a name and a type. */
unsigned gs_prototype_n(const GsPrototype *p);
/** gs_prototype_param() - (borrowed, nullable) return parameter @i; NULL behind
 *  the last. */
const GsParam *gs_prototype_param(const GsPrototype *p, unsigned i);
/** gs_prototype_result() - (borrowed) return the result; its kind may be
 *  GS_VALUE_VOID. */
const GsParam *gs_prototype_result(const GsPrototype *p);
/** gs_prototype_find() - return the index of a parameter, -1 if there is
 *  none. */
int gs_prototype_find(const GsPrototype *p, const char *name);
/** gs_prototype_is_variadic() - are there more arguments, "..."? */
bool gs_prototype_is_variadic(const GsPrototype *p);
/** gs_prototype_text() - (owned) return it in C: "void *__kmalloc(size_t size,
 *  gfp_t flags)". @func: name to print */
char *gs_prototype_text(const GsPrototype *p, const char *func);

/**
 * gs_prototype_pack() - append what prints the same values elsewhere
 *
 * That are the types of result and parameters, without the structs that they
 * point to: some hundred bytes, GS_PROTOTYPE_MAX at most.
 * Returns: false if it would be longer; then nothing is appended.
 */
bool gs_prototype_pack(const GsPrototype *p, GByteArray *to);
#define GS_PROTOTYPE_MAX (64u << 10)
/** gs_prototype_unpack() - (owned, nullable) make the prototype that
 *  gs_prototype_pack() stored. The bytes are untrusted: NULL if they make no
 *  sense. */
GsPrototype *gs_prototype_unpack(const void *bytes, size_t len);

/**
 * gs_param_number() - read a value of at most 8 bytes
 * @word: the register, or 8 bytes of the stack; what is above the value's own
 *        bytes is ignored
 * Returns: false if the value is no number: a struct, a float, unknown.
 */
bool gs_param_number(const GsParam *param, uint64_t word, int64_t *value);
/** gs_param_failed() - does the result @word say by its type that the call
 *  failed: NULL, an error pointer, or a negative errno? */
bool gs_param_failed(const GsParam *result, uint64_t word);

#endif /* GS_API_PROTOTYPES_H */
