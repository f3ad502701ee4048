/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scripts for the small guest of leak scans: see leak-script.h. */
#include "tests/replay/leak-script.h"

#include "tests/lib/guest-memory.h"
#include "monitor-cmds/mc.h"

#define PCS_MAX 8u

struct LeakScript {
    LeakGuest *g;
    McContext ctx;
    GString *out;
    char comm[16];          /* of the task that allocates */
};

static bool take(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

LeakScript *leak_script_new(void)
{
    LeakScript *w = g_new0(LeakScript, 1);

    w->g = leak_guest_new();
    kt_tracer_set_enabled(w->g->t, true);
    w->out = g_string_new(NULL);
    g_strlcpy(w->comm, "worker", sizeof(w->comm));
    w->ctx = (McContext) {
        .tracer = w->g->t, .kernel = &w->g->k, .kernel_found = true,
        .vm = &w->g->vm, .puts = take, .puts_opaque = w->out,
        .until_us = UINT64_MAX,
    };
    return w;
}

void leak_script_free(LeakScript *w)
{
    leak_guest_free(w->g);
    g_string_free(w->out, TRUE);
    g_free(w);
}

/* ---- statements ---------------------------------------------------------- */

static uint64_t number(char *const *words, unsigned i, unsigned base)
{
    guint64 v = 0;

    g_assert_true(g_ascii_string_to_unsigned(words[i], base, 0, UINT64_MAX,
                                             &v, NULL));
    return v;
}

/* Push an event of a block of @cache; of kmalloc() if that is {0}. */
static void push(LeakScript *w, char *const *words, KtEventKind kind,
                 uint64_t size, KtCacheId cache)
{
    uint64_t pc[PCS_MAX];
    unsigned n = 0, first = kind == KT_EV_ALLOC ? 4 : 3;
    KtEvent ev = {
        .kind = kind, .va = number(words, 1, 16), .size = size,
        .actual = size, .us = number(words, first - 1, 10),
        .layer = cache.v ? KT_LAYER_CACHE : KT_LAYER_KMALLOC, .cache = cache,
        .family = KT_FAMILY_ANY,
        .task = kt_tracer_intern_task(w->g->t, 7, w->comm),
    };

    while (words[first + n]) {
        g_assert_cmpuint(n, <, PCS_MAX);
        pc[n] = number(words, first + n, 16);
        n++;
    }
    if (n) {
        ev.stack = kt_tracer_intern_stack(w->g->t, pc, n, GS_STOP_END);
    }
    kt_tracer_push(w->g->t, 0, &ev);
}

static void do_alloc(LeakScript *w, char *const *words)
{
    push(w, words, KT_EV_ALLOC, number(words, 2, 16), (KtCacheId) { 0 });
}

/* The cache is named by the first word. */
static void do_object(LeakScript *w, char *const *words)
{
    uint64_t size = number(words, 3, 16);
    KtCacheId cache = kt_tracer_add_cache(w->g->t, LG_CACHE(8), words[1], size,
                                          size);

    push(w, words + 1, KT_EV_ALLOC, size, cache);
}

static void do_free(LeakScript *w, char *const *words)
{
    push(w, words, KT_EV_FREE, 0, (KtCacheId) { 0 });
}

static void do_task(LeakScript *w, char *const *words)
{
    memcpy(w->comm, words[1], MIN(strlen(words[1]) + 1, sizeof(w->comm)));
}

static void do_word(LeakScript *w, char *const *words)
{
    lg_put(w->g, number(words, 1, 16), number(words, 2, 16));
}

static void do_reg(LeakScript *w, char *const *words)
{
    w->g->reg = number(words, 1, 16);
}

static void do_hold(LeakScript *w, char *const *words)
{
    uint64_t at = LG_IMAGE + LG_ROOT + 0x100;

    for (unsigned i = 0; i < LG_OBJECTS; i++) {
        lg_put(w->g, at + 8 * i, LG_OBJECT(i));
    }
    at += 8 * LG_OBJECTS;
    lg_put(w->g, at, LG_LARGE);
    lg_put(w->g, at + 8, LG_VMALLOCED);
    lg_put(w->g, at + 16, LG_PERCPU);
}

static void do_load(LeakScript *w, char *const *words)
{
    uint64_t va = number(words, 2, 16), base = number(words, 3, 16);
    const GsModuleSymbol symbol = {
        .va = base, .name = words[5] ? words[5] : "run", .type = 't',
    };
    g_autoptr(GError) err = NULL;

    gs_kernel_add_module_data(&w->g->k, va, words[1], base,
                              number(words, 4, 16), &symbol, 1, 0, NULL, NULL,
                              0, &err);
    g_assert_no_error(err);
    kt_tracer_save_module(w->g->t, &w->g->k, va);
}

static void do_unload(LeakScript *w, char *const *words)
{
    kt_tracer_drop_module(w->g->t, &w->g->k, number(words, 1, 16));
}

static void do_running(LeakScript *w, char *const *words)
{
    w->g->vm.running = true;
}

static const struct {
    const char *word;
    unsigned n;             /* words that follow it, at least */
    void (*run)(LeakScript *w, char *const *words);
} statements[] = {
    { "alloc", 3, do_alloc }, { "object", 4, do_object },
    { "free", 2, do_free }, { "word", 2, do_word },
    { "reg", 1, do_reg }, { "hold", 0, do_hold }, { "running", 0, do_running },
    { "task", 1, do_task }, { "load", 4, do_load }, { "unload", 1, do_unload },
};

static void run_line(LeakScript *w, char *line)
{
    g_auto(GStrv) words = NULL;

    *strchrnul(line, '#') = 0;
    if (!*g_strstrip(line)) {
        return;
    }
    words = g_strsplit(line, " ", -1);
    for (unsigned i = 0; words[i]; i++) {
        g_autofree char *word = words[i];

        words[i] = g_strcompress(word);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(statements); i++) {
        if (!strcmp(words[0], statements[i].word) &&
            g_strv_length(words) > statements[i].n) {
            statements[i].run(w, words);
            return;
        }
    }
    g_error("%s: no such statement", line);
}

void leak_script_events(LeakScript *w, const char *script)
{
    g_auto(GStrv) lines = g_strsplit(script, "\n", -1);

    for (unsigned i = 0; lines[i]; i++) {
        run_line(w, lines[i]);
    }
}

/* ---- commands ------------------------------------------------------------ */

char *leak_script_run(LeakScript *w, const char *line, int *rc)
{
    g_autoptr(GRegex) times = g_regex_new("(in |\"host_us\":)\\d+", 0, 0,
                                          NULL);

    g_string_truncate(w->out, 0);
    *rc = mc_run(&w->ctx, line);
    return g_regex_replace(times, w->out->str, -1, 0, "\\1N", 0, NULL);
}
