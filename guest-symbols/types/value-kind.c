/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What kind of value a type has, see value.h. */
#include "guest-symbols/types/value.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/btf-records.h"

#define INT_SIGNED  1           /* BTF_INT_* of include/uapi/linux/btf.h */
#define INT_BOOL    4
#define ENUM_MAX    4096        /* enumerators that are read */
#define CHAIN_MAX   32

static GsValueKind int_kind(const GsBtfType *t)
{
    unsigned encoding = gs_btf_word(t, 0) >> 24;

    return encoding & INT_BOOL ? GS_VALUE_BOOL :
           encoding & INT_SIGNED ? GS_VALUE_SIGNED : GS_VALUE_UNSIGNED;
}

GsValueKind gs_value_kind(const GsBtf *btf, uint32_t id)
{
    static const GsValueKind kinds[GS_BTF_KINDS] = {
        [GS_BTF_PTR] = GS_VALUE_POINTER, [GS_BTF_ARRAY] = GS_VALUE_ARRAY,
        [GS_BTF_STRUCT] = GS_VALUE_STRUCT, [GS_BTF_UNION] = GS_VALUE_STRUCT,
        [GS_BTF_ENUM] = GS_VALUE_ENUM, [GS_BTF_ENUM64] = GS_VALUE_ENUM,
        [GS_BTF_FLOAT] = GS_VALUE_FLOAT,
    };
    GsBtfType t;

    if (!gs_btf_real(gs_btf_records(btf), &id, &t)) {
        return id ? GS_VALUE_OTHER : GS_VALUE_VOID;
    }
    return t.kind == GS_BTF_INT ? int_kind(&t) :
           t.kind < GS_BTF_KINDS ? kinds[t.kind] : GS_VALUE_OTHER;
}

/* Before 6.0 no enum says that it is signed: then one that has a value with the
 * top bit set is. */
static bool is_signed_enum(const GsBtf *btf, const GsBtfType *t)
{
    for (uint32_t i = 0; !t->flag && i < MIN(t->vlen, ENUM_MAX); i++) {
        if (t->kind == GS_BTF_ENUM && gs_btf_word(t, i * 2ul + 1) >> 31) {
            return !gs_btf_enums_have_signs(btf);
        }
    }
    return t->flag;
}

bool gs_value_is_signed(const GsBtf *btf, uint32_t id, GsValueKind kind)
{
    GsBtfType t;

    return kind == GS_VALUE_SIGNED ||
           (kind == GS_VALUE_ENUM && gs_btf_real(gs_btf_records(btf), &id, &t)
            && is_signed_enum(btf, &t));
}

bool gs_value_is_char(const GsBtf *btf, uint32_t id)
{
    const GsBtfRecords *r = gs_btf_records(btf);
    GsBtfType t;

    return gs_btf_real(r, &id, &t) && t.kind == GS_BTF_INT && t.word == 1 &&
           !strcmp(gs_btf_name(r, t.name), "char");
}

GsNumberNames gs_value_names(const GsBtf *btf, uint32_t id)
{
    const GsBtfRecords *r = gs_btf_records(btf);
    GsBtfType t;

    for (unsigned i = 0; i < CHAIN_MAX && gs_btf_type(r, id, &t); i++) {
        if (t.kind == GS_BTF_TYPEDEF &&
            !strcmp(gs_btf_name(r, t.name), "gfp_t")) {
            return GS_NAMES_GFP;
        }
        if (t.kind < GS_BTF_TYPEDEF || t.kind > GS_BTF_RESTRICT) {
            break;
        }
        id = t.word;
    }
    return GS_NAMES_NONE;
}
