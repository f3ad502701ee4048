/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prototypes of functions, see prototype.h. In BTF a function is a FUNC record
 * with its name, which refers to a FUNC_PROTO with result and parameters:
 *
 *     FUNC "kfree" -> FUNC_PROTO { result: void, { "object", const void * } }
 *
 * The compiler names copies of a function "kfree.isra.0": they have the FUNC
 * record of the original, or none, and possibly other arguments.
 */
#include "guest-symbols/types/prototype.h"
#include "guest-symbols/types/arg-places.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/types-internal.h"
#include "guest-symbols/types/value.h"
#include "guest-symbols/api/gs-symbols.h"
#include "guest-symbols/base/source-name.h"

#define ERRNO_MAX   4095        /* MAX_ERRNO of include/linux/err.h */
#define TEXTS_CHUNK 256

static const char not_there[] =
    "the types have no function of this name";
static const char optimised[] =
    "an optimised copy of a function: its arguments may be others";
static const char several[] =
    "several functions have this name, with different arguments";
static const char senseless[] =
    "the record of this function makes no sense";

static const char assembler[] =
    "a function in assembler: the types do not have its arguments";

struct GsPrototype {
    gatomicrefcount owners;
    GsBtf *btf;
    const GsArch *arch;
    const char *func;           /* its name in the sources */
    GStringChunk *texts;
    bool variadic;
    unsigned n;
    GsParam result;
    GsParam param[];
};

/* ---- names ---- */

/* (owned) Return the name in the sources; NULL for an optimised copy. */
static char *source_name(const char *symbol)
{
    size_t len = gs_source_name_len(symbol, strlen(symbol));

    return memchr(symbol, '.', len) ? NULL : g_strndup(symbol, len);
}

static const char *keep_text(GsPrototype *p, char *text)
{
    for (char *c = text; *c; c++) {
        if (!g_ascii_isprint(*c)) {
            *c = '?';
        }
    }
    return g_string_chunk_insert(p->texts, text);
}

/* ---- records ---- */

static bool is_same(const GsBtfType *a, const GsBtfType *b)
{
    if (a->word != b->word || a->vlen != b->vlen) {
        return false;
    }
    for (uint32_t i = 0; i < a->vlen; i++) {
        if (gs_btf_word(a, i * 2ul + 1) != gs_btf_word(b, i * 2ul + 1)) {
            return false;
        }
    }
    return true;
}

static bool prototype_of(const GsBtfRecords *r, uint32_t func, GsBtfType *out)
{
    GsBtfType t;

    return gs_btf_type(r, func, &t) && gs_btf_type(r, t.word, out) &&
           out->kind == GS_BTF_FUNC_PROTO && out->vlen <= GS_PARAMS_MAX;
}

/* Functions in assembler are recorded as void f(void). */
static bool is_assembler(const char *name, const GsBtfType *proto)
{
    static const char *const names[] = {
        "__arch_clear_user", "__arch_copy_from_user", "__arch_copy_to_user",
        "__asm_copy_from_user", "__asm_copy_to_user", "memcmp", "memcpy",
        "memmove", "memset", "strcmp", "strlen", "strncmp",
    };

    for (size_t i = 0; !proto->vlen && !proto->word &&
                       i < G_N_ELEMENTS(names); i++) {
        if (!strcmp(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* Find the one prototype of all functions with that name. */
static const char *find_record(const GsBtf *btf, const char *name,
                               const uint32_t **ids, unsigned *n,
                               GsBtfType *proto)
{
    const GsBtfRecords *r = gs_btf_records(btf);
    GsBtfType other;

    *ids = gs_btf_functions(btf, name, n);
    if (!*n || !*name) {
        return not_there;
    }
    if (!prototype_of(r, **ids, proto)) {
        return senseless;
    }
    for (unsigned i = 1; i < *n; i++) {
        if (!prototype_of(r, (*ids)[i], &other) || !is_same(proto, &other)) {
            return several;
        }
    }
    return is_assembler(name, proto) ? assembler : NULL;
}

/* Of several functions of one name, one may be a stub with "__unused". */
static bool is_meant(const char *name)
{
    return *name && !g_str_has_prefix(name + strspn(name, "_"), "unused");
}

/* Return the name of parameter @i; "" if functions of one name differ there. */
static const char *param_name(const GsBtfRecords *r, const uint32_t *ids,
                              unsigned n, unsigned i)
{
    const char *name = "";
    GsBtfType proto;

    for (unsigned f = 0; f < n && prototype_of(r, ids[f], &proto); f++) {
        const char *here = gs_btf_name(r, gs_btf_word(&proto, i * 2ul));

        if (is_meant(name) && is_meant(here) && strcmp(name, here)) {
            return "";
        }
        name = is_meant(name) ? name : here;
    }
    return name;
}

/* ---- types ---- */

static bool is_text(const GsBtf *btf, uint32_t id)
{
    GsBtfType t;

    return gs_btf_real(gs_btf_records(btf), &id, &t) &&
           t.kind == GS_BTF_PTR && gs_value_is_char(btf, t.word);
}

void gs_param_set_type(GsParam *param, const GsBtf *btf, uint32_t id)
{
    param->id = id;
    param->kind = gs_value_kind(btf, id);
    param->is_signed = gs_value_is_signed(btf, id, param->kind);
    param->is_text = is_text(btf, id);
    param->names = gs_value_names(btf, id);
    if (!gs_btf_size(gs_btf_records(btf), id, &param->size)) {
        param->size = 0;
    }
}

/* ---- making one ---- */

static void set_type(GsPrototype *p, GsParam *param, uint32_t id)
{
    g_autoptr(GString) type = g_string_new(NULL);

    gs_type_declare(type, gs_btf_records(p->btf), id, NULL);
    param->type = keep_text(p, type->str);
    gs_param_set_type(param, p->btf, id);
}

static void set_name(GsPrototype *p, GsParam *param, const char *name)
{
    g_autofree char *copy = g_strndup(name, GS_SYMBOL_NAME_MAX);

    param->name = *copy ? keep_text(p, copy) : NULL;
}

/* A parameter @cap of capable(), ns_capable(), cap_capable() ... is the number
 * of a capability. */
static void set_number_names(GsPrototype *p, const char *func)
{
    int cap = strstr(func, "capable") ? gs_prototype_find(p, "cap") : -1;

    if (cap >= 0 && p->param[cap].kind == GS_VALUE_SIGNED) {
        p->param[cap].names = GS_NAMES_CAPABILITY;
    }
    if (p->result.kind == GS_VALUE_SIGNED && p->result.size >= sizeof(int)) {
        p->result.names = GS_NAMES_ERRNO;
    }
}

/* A last parameter without name and type is "...". */
static void drop_variadic(GsPrototype *p)
{
    const GsParam *last = p->n ? &p->param[p->n - 1] : NULL;

    p->variadic = last && !last->name && !last->id;
    p->n -= p->variadic;
}

static GsPrototype *make(GsBtf *btf, const GsBtfType *proto)
{
    GsPrototype *p = g_malloc0(sizeof(GsPrototype) +
                               proto->vlen * sizeof(GsParam));

    g_atomic_ref_count_init(&p->owners);
    p->btf = gs_btf_ref(btf);
    p->texts = g_string_chunk_new(TEXTS_CHUNK);
    p->n = proto->vlen;
    set_type(p, &p->result, proto->word);
    return p;
}

static void place_all(GsPrototype *p)
{
    const GsBtfRecords *r = gs_btf_records(p->btf);
    GsArgPlaces places;

    p->result.place = gs_arg_places_init(&places, p->arch->abi, r,
                                         p->result.id);
    for (unsigned i = 0; i < p->n; i++) {
        p->param[i].place = gs_arg_places_next(&places, p->param[i].id);
    }
}

GsPrototype *gs_prototype_new(GsBtf *btf, const GsArch *arch,
                              const char *func, const char **why)
{
    const GsBtfRecords *r = gs_btf_records(btf);
    g_autofree char *name = source_name(func);
    const uint32_t *ids = NULL;
    unsigned n = 0;
    GsBtfType proto;
    GsPrototype *p;

    *why = name ? find_record(btf, name, &ids, &n, &proto) : optimised;
    if (*why) {
        return NULL;
    }
    p = make(btf, &proto);
    p->arch = arch;
    p->func = keep_text(p, name);
    for (unsigned i = 0; i < p->n; i++) {
        set_type(p, &p->param[i], gs_btf_word(&proto, i * 2ul + 1));
        set_name(p, &p->param[i], param_name(r, ids, n, i));
    }
    drop_variadic(p);
    set_number_names(p, name);
    place_all(p);
    return p;
}

GsPrototype *gs_prototype_ref(GsPrototype *p)
{
    g_atomic_ref_count_inc(&p->owners);
    return p;
}

void gs_prototype_free(GsPrototype *p)
{
    if (p && g_atomic_ref_count_dec(&p->owners)) {
        gs_btf_free(p->btf);
        g_string_chunk_free(p->texts);
        g_free(p);
    }
}

/* ---- answers ---- */

const GsBtf *gs_prototype_types(const GsPrototype *p)
{
    return p->btf;
}

const GsArch *gs_prototype_arch(const GsPrototype *p)
{
    return p->arch;
}

const char *gs_prototype_func(const GsPrototype *p)
{
    return p->func;
}

unsigned gs_prototype_n(const GsPrototype *p)
{
    return p->n;
}

const GsParam *gs_prototype_param(const GsPrototype *p, unsigned i)
{
    return i < p->n ? &p->param[i] : NULL;
}

const GsParam *gs_prototype_result(const GsPrototype *p)
{
    return &p->result;
}

int gs_prototype_find(const GsPrototype *p, const char *name)
{
    for (unsigned i = 0; i < p->n; i++) {
        if (p->param[i].name && !strcmp(p->param[i].name, name)) {
            return i;
        }
    }
    return -1;
}

bool gs_prototype_is_variadic(const GsPrototype *p)
{
    return p->variadic;
}

char *gs_prototype_text(const GsPrototype *p, const char *func)
{
    const GsBtfRecords *r = gs_btf_records(p->btf);
    GString *s = g_string_new(p->result.type);

    g_string_append(s, g_str_has_suffix(s->str, "*") ? "" : " ");
    g_string_append_printf(s, "%s(", func);
    for (unsigned i = 0; i < p->n; i++) {
        g_string_append(s, i ? ", " : "");
        gs_type_declare(s, r, p->param[i].id, p->param[i].name);
    }
    g_string_append(s, !p->variadic ? "" : p->n ? ", ..." : "...");
    g_string_append(s, p->n || p->variadic ? ")" : "void)");
    return g_string_free(s, FALSE);
}

bool gs_param_number(const GsParam *param, uint64_t word, int64_t *value)
{
    unsigned unused = param->size < 8 ? 64 - param->size * 8 : 0;

    if (!param->size || param->size > 8 || param->kind < GS_VALUE_SIGNED ||
        param->kind > GS_VALUE_POINTER) {
        return false;
    }
    *value = param->is_signed ? (int64_t)(word << unused) >> unused :
                                (int64_t)(word << unused >> unused);
    return true;
}

bool gs_param_failed(const GsParam *result, uint64_t word)
{
    int64_t value;

    if (!gs_param_number(result, word, &value)) {
        return false;
    }
    return (result->kind == GS_VALUE_POINTER && !value) ||
           ((result->kind == GS_VALUE_POINTER ||
             result->kind == GS_VALUE_SIGNED) &&
            value < 0 && value >= -ERRNO_MAX);
}

void gs_param_print(GString *to, const GsPrototype *p, const GsParam *param,
                    const void *bytes, size_t len)
{
    GsLeaf value = gs_value_leaf(param, param->name ? param->name : "");

    if (param->kind != GS_VALUE_VOID) {
        gs_value_print(to, p->btf, &value, bytes, len);
    }
}
