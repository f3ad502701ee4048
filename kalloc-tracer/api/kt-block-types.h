/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The type of the object in a block, where something says what it is.
 * Implemented in objects/. All functions may be called on any thread, but not
 * between kt_query_begin() and kt_query_end().
 */
#ifndef KT_API_BLOCK_TYPES_H
#define KT_API_BLOCK_TYPES_H

#include "kalloc-tracer/api/kt-objects.h"

/** How a type is known. */
typedef enum KtTypeSource {
    KT_TYPE_BY_CACHE,       /* the cache has objects of one type */
    KT_TYPE_BY_FUNCTION,    /* a function of the allocation stack returns a
                             * pointer to it, and its size is that requested */
    KT_TYPE_BY_POINTER,     /* a member of another block, whose type is known,
                             * points to the block; its size is that
                             * requested */
    KT_TYPE__COUNT
} KtTypeSource;
/** kt_type_source_name() - return "cache", "function" or "pointer". */
const char *kt_type_source_name(KtTypeSource source);

#define KT_TYPE_NAME_MAX 128u

/**
 * struct KtBlockType - a struct that the block may be
 * @name: of the struct, without "struct"; untrusted bytes
 * @size: its bytes
 * @by: name of the cache or function, or "type.member"; untrusted bytes
 * @sure: false: something else may be in the block. Several candidates are not
 *        sure, either
 */
typedef struct KtBlockType {
    char name[KT_TYPE_NAME_MAX];
    char by[2 * KT_TYPE_NAME_MAX];
    uint32_t size;
    KtTypeSource source;
    bool sure;
} KtBlockType;

/**
 * kt_block_types() - find the candidates by the block's cache and its stack
 * @b: live or freed
 *
 * Without a VM it is not known whether the kernel merged other caches into the
 * block's, so a type by its cache is not sure.
 *
 * Returns: (owned) KtBlockType; empty if nothing is known.
 */
GArray *kt_block_types(const KtObjects *o, const KtBlock *b);
/**
 * kt_block_types_add() - add the candidates of a pointer
 * @types: (inout) KtBlockType, all of KT_TYPE_BY_POINTER
 * @owner: the block that has a word with the address of @b
 * @at: offset of the word in @owner
 */
void kt_block_types_add(const KtObjects *o, GArray *types, const KtBlock *b,
                        const KtBlock *owner, uint64_t at);

#endif /* KT_API_BLOCK_TYPES_H */
