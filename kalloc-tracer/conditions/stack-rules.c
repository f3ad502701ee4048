/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stack rules, and the hash of a stack: see stack-rules.h. */
#include "kalloc-tracer/conditions/stack-rules.h"

#include <string.h>

#include "kalloc-tracer/conditions/code-names.h"

#define FNV_OFFSET  0xcbf29ce484222325ull
#define FNV_PRIME   0x100000001b3ull
#define CUT_MARK    0x6375742e2e2eull       /* "cut..." */
#define GROW_BY     256                     /* entries charged at once */

typedef struct Rule {
    KtStackRuleKind kind;
    char *name;
    GHashTable *set;
} Rule;

/** struct Facts - an entry of @facts; @id: of the stack */
typedef struct Facts {
    uint64_t id;
    KtStackFacts of;
} Facts;

struct KtStackRules {
    unsigned n;
    Rule rule[KT_STACK_RULES_MAX];
    KtStackTable facts;
};

/* ---- what is known of stacks -------------------------------------------- */

void kt_stack_table_init(KtStackTable *t, KtBudget *budget, KtMemoryPart part,
                         size_t bytes)
{
    *t = (KtStackTable) {
        .entries = g_hash_table_new_full(gs_number_hash, g_int64_equal, NULL,
                                         g_free),
        .budget = budget, .part = part, .bytes = bytes,
    };
    g_mutex_init(&t->lock);
}

static uint64_t bytes_of(const KtStackTable *t, unsigned n)
{
    return n * (t->bytes + 3 * sizeof(void *));
}

void kt_stack_table_deinit(KtStackTable *t)
{
    kt_budget_release(t->budget, t->part, bytes_of(t, t->charged));
    g_hash_table_destroy(t->entries);
    g_mutex_clear(&t->lock);
}

static bool has_room(KtStackTable *t)
{
    if (g_hash_table_size(t->entries) < t->charged) {
        return true;
    }
    if (t->charged >= KT_STACK_TABLE_MAX ||
        !kt_budget_take(t->budget, t->part, bytes_of(t, GROW_BY))) {
        return false;
    }
    t->charged += GROW_BY;
    return true;
}

void *kt_stack_table_get(KtStackTable *t, uint64_t number)
{
    uint64_t *entry = g_hash_table_lookup(t->entries, &number);

    if (!entry && has_room(t)) {
        entry = g_malloc0(t->bytes);
        *entry = number;
        g_hash_table_insert(t->entries, entry, entry);
    }
    return entry;
}

/* ---- rules -------------------------------------------------------------- */

KtStackRules *kt_stack_rules_new(KtBudget *budget, KtMemoryPart part)
{
    KtStackRules *r = g_new0(KtStackRules, 1);

    kt_stack_table_init(&r->facts, budget, part, sizeof(Facts));
    return r;
}

void kt_stack_rules_free(KtStackRules *r)
{
    if (!r) {
        return;
    }
    for (unsigned i = 0; i < r->n; i++) {
        g_free(r->rule[i].name);
    }
    kt_stack_table_deinit(&r->facts);
    g_free(r);
}

int kt_stack_rules_add(KtStackRules *r, KtStackRuleKind kind, const char *name)
{
    for (unsigned i = 0; i < r->n; i++) {
        if (r->rule[i].kind == kind && !g_strcmp0(r->rule[i].name, name)) {
            return i;
        }
    }
    if (r->n == KT_STACK_RULES_MAX) {
        return -1;
    }
    r->rule[r->n] = (Rule) { kind, g_strdup(name), NULL };
    return r->n++;
}

int kt_stack_rules_add_set(KtStackRules *r, GHashTable *names)
{
    if (r->n == KT_STACK_RULES_MAX) {
        return -1;
    }
    r->rule[r->n] = (Rule) { KT_STACK_SET, NULL, names };
    return r->n++;
}

static bool matches(const Rule *rule, const GsSymbol *sym, bool first)
{
    switch (rule->kind) {
    case KT_STACK_CALLER:
        return first && kt_code_matches(rule->name, sym);
    case KT_STACK_FRAME:
        return kt_code_matches(rule->name, sym);
    case KT_STACK_CALLER_MODULE:
        return first && sym->module && !strcmp(sym->module, rule->name);
    case KT_STACK_SET:
        return !sym->module && g_hash_table_contains(rule->set, sym->name);
    default:
        return sym->module && !strcmp(sym->module, rule->name);
    }
}

/* ---- the hash ----------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *data, size_t len)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ p[i]) * FNV_PRIME;
    }
    return hash;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return mix(hash, text, strlen(text) + 1);
}

/* Names that begin the code to which the CPU goes from something else: system
 * calls, interrupts, exceptions, and the first function of a new task. */
static bool is_entry(const GsSymbol *sym)
{
    static const char *const prefixes[] = {
        "entry_SYSCALL", "entry_INT80", "asm_", "ret_from_fork",   /* x86 */
        "el0t_", "el1h_", "el0_", "el1_", "call_on_irq_stack",   /* arm64 */
        "handle_exception", "ret_from_exception", "do_irq",      /* riscv */
    };

    if (sym->module) {
        return false;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(prefixes); i++) {
        if (g_str_has_prefix(sym->name, prefixes[i])) {
            return true;
        }
    }
    return false;
}

static uint64_t mix_frame(uint64_t hash, const GsKernel *k, uint64_t va,
                          const GsSymbol *sym)
{
    uint64_t place = va - gs_kernel_slide(k);

    if (sym && sym->module) {
        hash = mix_text(mix_text(hash, sym->module), sym->name);
        place = va - sym->va;
    }
    return mix(hash, &place, sizeof(place));
}

static bool ended(GsStop stop)
{
    return stop == GS_STOP_END || stop == GS_STOP_USER;
}

/* Walk the frames for hash and rules. A frame is named by the byte before its
 * return address: the call can be the last instruction of a function. */
static KtStackFacts work_out(const KtStackRules *r, const GsKernel *k,
                             const KtCallStack *s)
{
    KtStackFacts f = { .hash = FNV_OFFSET, .cut = !ended(s->stop) };
    GsSymbol sym;

    for (unsigned i = 0; i < s->n; i++) {
        bool named = gs_kernel_symbolize_at(k, s->frames[i] - 1, s->era.all,
                                            &sym);

        f.hash = mix_frame(f.hash, k, s->frames[i], named ? &sym : NULL);
        for (unsigned j = 0; named && j < r->n; j++) {
            f.rules |= (uint32_t)matches(&r->rule[j], &sym, !i) << j;
        }
        if (named && is_entry(&sym)) {
            f.cut = false;
            break;
        }
    }
    f.hash = f.cut ? mix(f.hash, &(uint64_t) { CUT_MARK }, 8) : f.hash;
    f.hash += !f.hash;
    return f;
}

/* ---- facts that are kept ------------------------------------------------ */

static bool find(KtStackRules *r, uint64_t id, KtStackFacts *out)
{
    const Facts *f;

    g_mutex_lock(&r->facts.lock);
    f = g_hash_table_lookup(r->facts.entries, &id);
    if (f) {
        *out = f->of;
    }
    g_mutex_unlock(&r->facts.lock);
    return f;
}

static void keep(KtStackRules *r, uint64_t id, const KtStackFacts *of)
{
    Facts *f;

    g_mutex_lock(&r->facts.lock);
    f = kt_stack_table_get(&r->facts, id);
    if (f) {
        f->of = *of;
    }
    g_mutex_unlock(&r->facts.lock);
}

KtStackFacts kt_stack_rules_facts(KtStackRules *r, const GsKernel *k,
                                  const KtCallStack *s)
{
    KtStackFacts f;

    if (!s->id.v || !find(r, s->id.v, &f)) {
        f = work_out(r, k, s);
        if (s->id.v) {
            keep(r, s->id.v, &f);
        }
    }
    return f;
}
