/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scripts of events; their language is in events.h. Single-threaded. */
#include "tests/lib/fake-vm.h"
#include "tests/lib/statements.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct TestWorld {
    KtTracer *t;
    GsKernel *k;
    GString *map;           /* System.map text until the kernel is made */
    GArray *hooks;          /* McHookStatus, strings owned by @strings */
    GPtrArray *strings;
    GHashTable *caches;     /* name -> id */
    GArray *modsyms;        /* GsModuleSymbol */
    GHashTable *module;     /* arguments of the current module */
    char *why;
    TestVm *vm;
    McContext ctx;
    GString *out;
    unsigned chunks, close_after;
    uint64_t us;
};

/* ---- words --------------------------------------------------------------- */

static char *unescape(const char *s)
{
    GString *out = g_string_new(NULL);

    while (*s) {
        if (s[0] == '\\' && s[1] == 'x') {
            g_string_append_c(out, g_ascii_xdigit_value(s[2]) << 4 |
                                   g_ascii_xdigit_value(s[3]));
            s += 4;
        } else {
            g_string_append_c(out, *s++);
        }
    }
    return g_string_free(out, FALSE);
}

static GHashTable *parse_args(char **words)
{
    GHashTable *a = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                          g_free);

    for (; *words; words++) {
        char *eq = strchr(*words, '=');

        if (!**words) {
            continue;
        }
        if (!eq) {
            g_error("%s: a key=value was expected", *words);
        }
        g_hash_table_insert(a, g_strndup(*words, eq - *words),
                            unescape(eq + 1));
    }
    return a;
}

static const char *keep(TestWorld *w, const char *s)
{
    g_ptr_array_add(w->strings, g_strdup(s));
    return g_ptr_array_index(w->strings, w->strings->len - 1);
}

/* ---- kernel -------------------------------------------------------------- */

static void finish_module(TestWorld *w)
{
    g_autoptr(GError) err = NULL;

    if (!w->module) {
        return;
    }
    gs_kernel_add_module_data(w->k, arg_hex(w->module, "va"),
                              arg_text(w->module, "name", "?"),
                              arg_hex(w->module, "base"),
                              arg_hex(w->module, "size"),
                              (const GsModuleSymbol *)w->modsyms->data,
                              w->modsyms->len, 0, NULL, NULL, 0, &err);
    g_assert_no_error(err);
    g_clear_pointer(&w->module, g_hash_table_unref);
    g_array_set_size(w->modsyms, 0);
}

/* Make the kernel of the symbols so far. Does nothing if it was made. */
void test_world_make_kernel(TestWorld *w)
{
    g_autoptr(GError) err = NULL;

    if (!w->k && w->map->len) {
        w->k = gs_kernel_new_from_data(w->map->str, w->map->len, "script",
                                       &err);
        g_assert_no_error(err);
        w->ctx.kernel = w->k;
        w->ctx.kernel_found = true;
        w->ctx.why_no_kernel = NULL;
        kt_tracer_find_backing(w->t, w->k);
    }
    if (w->k) {
        finish_module(w);
    }
}

static void do_symbol(TestWorld *w, GHashTable *a)
{
    g_string_append_printf(w->map, "%016" PRIx64 " %s %s\n", arg_hex(a, "va"),
                           arg_text(a, "type", "T"), arg_text(a, "name", "?"));
}

static void do_module(TestWorld *w, GHashTable *a)
{
    test_world_make_kernel(w);
    w->module = g_hash_table_ref(a);
}

static void do_modsym(TestWorld *w, GHashTable *a)
{
    GsModuleSymbol s = {
        .va = arg_hex(a, "va"), .name = keep(w, arg_text(a, "name", "?")),
        .type = *arg_text(a, "type", "t"),
    };

    g_array_append_val(w->modsyms, s);
}

/* ---- events -------------------------------------------------------------- */

static KtStackId read_stack(TestWorld *w, GHashTable *a)
{
    const char *s = g_hash_table_lookup(a, "stack");
    GsStop stop = arg_number(a, "stop", 10, GS_STOP_END);
    g_auto(GStrv) pcs = g_strsplit(s ? s : "", ",", -1);
    uint64_t frames[KT_MAX_FRAMES];
    unsigned n = 0;

    for (; pcs[n] && n < KT_MAX_FRAMES; n++) {
        frames[n] = strtoull(pcs[n], NULL, 16);
    }
    if (!w->k) {
        return kt_tracer_intern_stack(w->t, frames, n, stop);
    }
    finish_module(w);
    return kt_tracer_intern_stack_of(w->t, frames, n, stop,
                                     gs_kernel_era(w->k, frames, n));
}

static KtTaskId read_task(TestWorld *w, GHashTable *a)
{
    char comm[16] = "";

    if (!g_hash_table_contains(a, "pid")) {
        return (KtTaskId) { 0 };
    }
    g_strlcpy(comm, arg_text(a, "comm", ""), sizeof(comm));
    return kt_tracer_intern_task(w->t, arg_dec(a, "pid"), comm);
}

static KtCacheId read_cache(TestWorld *w, GHashTable *a)
{
    const char *name = arg_text(a, "cache", NULL);
    KtCacheId id = { 0 };

    if (!name) {
        return id;
    }
    id.v = GPOINTER_TO_UINT(g_hash_table_lookup(w->caches, name));
    if (!id.v) {
        uint64_t size = arg_number(a, "actual", 16, arg_hex(a, "size"));

        id = kt_tracer_add_cache(w->t, 0xffff888000c00000 + 0x100 *
                                 g_hash_table_size(w->caches), name, size,
                                 size);
        g_hash_table_insert(w->caches, g_strdup(name),
                            GUINT_TO_POINTER((guint)id.v));
    }
    return id;
}

static uint8_t read_layer(GHashTable *a)
{
    KtLayer layer = KT_LAYER_KMALLOC;
    const char *name = arg_text(a, "layer", NULL);

    if (name && !kt_layer_parse(name, &layer)) {
        g_error("%s: no such layer", name);
    }
    return layer;
}

static uint8_t read_family(GHashTable *a)
{
    static const char *const names[KT_FAMILY__COUNT] = {
        [KT_FAMILY_ANY] = "any", [KT_FAMILY_KFREE] = "kfree",
        [KT_FAMILY_CACHE] = "cache", [KT_FAMILY_VFREE] = "vfree",
        [KT_FAMILY_PERCPU] = "percpu", [KT_FAMILY_PAGES] = "pages",
        [KT_FAMILY_KMALLOC] = "kmalloc", [KT_FAMILY_ZONE] = "zone",
    };
    const char *name = arg_text(a, "family", "kfree");

    for (unsigned i = 0; i < KT_FAMILY__COUNT; i++) {
        if (!strcmp(names[i], name)) {
            return i;
        }
    }
    g_error("%s: no such family", name);
}

/* Find a row of the hook table by the name of its function. */
static KtHookId read_hook(TestWorld *w, GHashTable *a)
{
    const char *name = arg_text(a, "hook", NULL);

    for (unsigned i = 1; name && i <= UINT8_MAX; i++) {
        if (!g_strcmp0(kt_tracer_hook_name(w->t, (KtHookId) { i }), name)) {
            return (KtHookId) { i };
        }
    }
    if (name) {
        g_error("%s: no such hook", name);
    }
    return (KtHookId) { 0 };
}

static KtEvent make_event(TestWorld *w, KtEventKind kind, GHashTable *a)
{
    w->us = arg_number(a, "us", 10, w->us + 10);
    return (KtEvent) {
        .kind = kind,
        .va = arg_hex(a, "va"),
        .size = arg_hex(a, "size"),
        .actual = arg_hex(a, "actual"),
        .us = w->us,
        .cpu = arg_dec(a, "cpu"),
        .stack = read_stack(w, a),
        .task = read_task(w, a),
        .gfp = arg_hex(a, "gfp"), .tag = arg_hex(a, "tag"),
        .cache = read_cache(w, a),
        .hook = read_hook(w, a),
        .layer = read_layer(a),
        .family = read_family(a),
        .flags = arg_hex(a, "flags") |
                 (arg_text(a, "sized", NULL) ? KT_EVF_SIZED : 0),
    };
}

static void push(TestWorld *w, const KtEvent *ev)
{
    kt_tracer_push(w->t, ev->cpu, ev);
}

static void do_many(TestWorld *w, GHashTable *a)
{
    KtEvent ev = make_event(w, KT_EV_ALLOC, a);
    uint64_t n = arg_dec(a, "n");

    for (uint64_t i = 0; i < n; i++) {
        push(w, &ev);
        ev.va += arg_hex(a, "step");
        ev.us++;
    }
    w->us = ev.us;
}

static const char *keep_known(TestWorld *w, GHashTable *a, const char *key)
{
    return g_hash_table_contains(a, key) ? keep(w, arg_text(a, key, "")) : NULL;
}

static void do_hook(TestWorld *w, GHashTable *a)
{
    McHookStatus h = {
        .name = keep(w, arg_text(a, "name", "?")), .va = arg_hex(a, "va"),
        .symbol = keep_known(w, a, "symbol"), .from = keep_known(w, a, "from"),
        .args_from = keep_known(w, a, "args_from"),
        .note = keep_known(w, a, "note"), .calls = keep_known(w, a, "calls"),
        .hits = arg_dec(a, "hits"),
    };

    g_array_append_val(w->hooks, h);
    w->ctx.n_hooks = w->hooks->len;
}

static void do_count(TestWorld *w, GHashTable *a)
{
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        if (!strcmp(kt_counter_name(i), arg_text(a, "counter", ""))) {
            kt_tracer_count(w->t, i, arg_number(a, "n", 10, 1));
            return;
        }
    }
    g_error("%s: no such counter", arg_text(a, "counter", ""));
}

static void do_event(TestWorld *w, KtEventKind kind, GHashTable *a)
{
    KtEvent ev = make_event(w, kind, a);

    push(w, &ev);
}

/* ---- statements ---------------------------------------------------------- */

static void do_gap(TestWorld *w, GHashTable *a)
{
    const KtEvent gap = {
        .kind = KT_EV_GAP,
        .flags = (arg_text(a, "unseen", NULL) ? KT_EVF_UNSEEN : 0) |
                 (arg_text(a, "blind", NULL) ? KT_EVF_BLIND : 0),
    };

    push(w, &gap);
}

static void do_complete(TestWorld *w, GHashTable *a)
{
    kt_tracer_set_complete(w->t, true);
}

static void do_on(TestWorld *w, GHashTable *a)
{
    kt_tracer_set_enabled(w->t, true);
}

static void do_off(TestWorld *w, GHashTable *a)
{
    kt_tracer_set_enabled(w->t, false);
}

static void do_clear(TestWorld *w, GHashTable *a)
{
    kt_tracer_clear(w->t);
}

static void do_reset(TestWorld *w, GHashTable *a)
{
    kt_tracer_reset(w->t);
}

static void do_lost(TestWorld *w, GHashTable *a)
{
    test_world_make_kernel(w);
    w->ctx.kernel_found = false;
}

static void do_load(TestWorld *w, GHashTable *a)
{
    test_world_make_kernel(w);
    kt_tracer_save_module(w->t, w->k, arg_hex(a, "va"));
}

static void do_inherit(TestWorld *w, GHashTable *a)
{
    test_world_make_kernel(w);
    kt_tracer_inherit_modules(w->t, w->k);
}

static void do_unload(TestWorld *w, GHashTable *a)
{
    test_world_make_kernel(w);
    kt_tracer_drop_module(w->t, w->k, arg_hex(a, "va"));
}

/* ---- the VM -------------------------------------------------------------- */

static void do_vm(TestWorld *w, GHashTable *a)
{
    KtVm *look = test_vm_look(w->vm);

    test_vm_set(w->vm, arg_number(a, "n", 10, 1), arg_dec(a, "running"));
    look->page_offset = arg_hex(a, "page_offset");
    look->vmemmap = arg_hex(a, "vmemmap");
    w->ctx.vm = look;
}

static void do_reg(TestWorld *w, GHashTable *a)
{
    test_vm_reg(w->vm, arg_dec(a, "cpu"),
                keep(w, arg_text(a, "name", "?")), arg_hex(a, "value"));
}

static void do_word(TestWorld *w, GHashTable *a)
{
    test_vm_word(w->vm, arg_hex(a, "va"), arg_hex(a, "value"));
}

static void do_text(TestWorld *w, GHashTable *a)
{
    const char *s = arg_text(a, "value", "");

    test_vm_bytes(w->vm, arg_hex(a, "va"), s, strlen(s));
}

/* The statements of events, which do_event() makes. */
static const struct {
    const char *word;
    KtEventKind kind;
} event_statements[] = {
    { "alloc", KT_EV_ALLOC }, { "free", KT_EV_FREE },
    { "resize", KT_EV_RESIZE }, { "rcu", KT_EV_RCU_QUEUE },
    { "destroy", KT_EV_DESTROY }, { "access", KT_EV_ACCESS },
};

static const struct {
    const char *word;
    void (*run)(TestWorld *w, GHashTable *a);
} statements[] = {
    { "watched", watched_statement }, { "kernel", kernel_statement },
    { "enter", enter_statement }, { "types", types_statement }, { "on", do_on },
    { "alias", alias_statement }, { "complete", do_complete }, { "vm", do_vm },
    { "call", call_statement }, { "mark", mark_statement }, { "many", do_many },
    { "inherit", do_inherit }, { "log", log_statement }, { "clear", do_clear },
    { "symbol", do_symbol }, { "module", do_module }, { "modsym", do_modsym },
    { "unload", do_unload }, { "reset", do_reset }, { "count", do_count },
    { "hook", do_hook }, { "lost", do_lost }, { "word", do_word },
    { "text", do_text }, { "load", do_load }, { "gap", do_gap },
    { "off", do_off }, { "reg", do_reg },
};

static bool run_statement(TestWorld *w, const char *word, GHashTable *a)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(event_statements); i++) {
        if (!strcmp(word, event_statements[i].word)) {
            do_event(w, event_statements[i].kind, a);
            return true;
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(statements); i++) {
        if (!strcmp(word, statements[i].word)) {
            statements[i].run(w, a);
            return true;
        }
    }
    return false;
}

static void run_line(TestWorld *w, char *line)
{
    g_auto(GStrv) words = NULL;
    g_autoptr(GHashTable) a = NULL;

    *strchrnul(line, '#') = 0;
    g_strstrip(line);
    if (g_str_has_prefix(line, "why ")) {
        g_free(w->why);
        w->ctx.why_no_kernel = w->why = g_strdup(line + 4);
        return;
    }
    if (!*line) {
        return;
    }
    words = g_strsplit(line, " ", -1);
    a = parse_args(words + 1);
    if (!run_statement(w, words[0], a)) {
        g_error("%s: no such statement", words[0]);
    }
}

void test_world_events(TestWorld *w, const char *script)
{
    g_auto(GStrv) lines = g_strsplit(script, "\n", -1);

    for (unsigned i = 0; lines[i]; i++) {
        run_line(w, lines[i]);
    }
    test_world_make_kernel(w);
}

/* ---- world --------------------------------------------------------------- */

static bool take(void *opaque, const char *s)
{
    TestWorld *w = opaque;

    g_string_append(w->out, s);
    return ++w->chunks < w->close_after;
}

static bool get_hook(void *opaque, unsigned i, McHookStatus *out)
{
    TestWorld *w = opaque;

    *out = g_array_index(w->hooks, McHookStatus, i);
    return true;
}

TestWorld *test_world_new_at(const char *script, const char *journal)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(GError) err = NULL;
    TestWorld *w = g_new0(TestWorld, 1);

    config.n_cpus = 4;
    config.journal = journal;
    w->t = kt_tracer_new(&config, &err);
    g_assert_no_error(err);
    kt_tracer_set_enabled(w->t, true);
    w->map = g_string_new(NULL);
    w->hooks = g_array_new(FALSE, FALSE, sizeof(McHookStatus));
    w->modsyms = g_array_new(FALSE, FALSE, sizeof(GsModuleSymbol));
    w->strings = g_ptr_array_new_with_free_func(g_free);
    w->caches = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    w->vm = test_vm_new();
    w->out = g_string_new(NULL);
    w->close_after = UINT_MAX;
    w->ctx = (McContext) {
        .tracer = w->t, .why_no_kernel = "no kernel file was given",
        .puts = take, .puts_opaque = w, .hook = get_hook, .hook_opaque = w,
    };
    test_world_events(w, script);
    return w;
}

void test_world_free(TestWorld *w)
{
    if (!w) {
        return;
    }
    kt_tracer_free(w->t);
    gs_kernel_free(w->k);
    test_vm_free(w->vm);
    g_string_free(w->map, TRUE);
    g_array_unref(w->hooks);
    g_array_unref(w->modsyms);
    g_ptr_array_unref(w->strings);
    g_hash_table_unref(w->caches);
    g_clear_pointer(&w->module, g_hash_table_unref);
    g_free(w->why);
    g_string_free(w->out, TRUE);
    g_free(w);
}

KtTracer *test_world_tracer(TestWorld *w)
{
    return w->t;
}

McContext *test_world_context(TestWorld *w)
{
    return &w->ctx;
}

char *test_world_run(TestWorld *w, const char *args, int *rc)
{
    int result;

    g_string_truncate(w->out, 0);
    w->chunks = 0;
    result = mc_run(&w->ctx, args);
    if (rc) {
        *rc = result;
    }
    return g_strdup(w->out->str);
}

unsigned test_world_chunks(TestWorld *w)
{
    return w->chunks;
}

void test_world_close_after(TestWorld *w, unsigned calls)
{
    w->close_after = calls;
}
