/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which tasks the word of a command means, see commands.h. */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

bool mc_task_has_pid(const KtTask *t, uint64_t pid)
{
    uint64_t v;

    return kt_task_fact(t, KT_TASK_PID, &v) && v == pid;
}

static bool is_of_process(const KtTask *t, uint64_t pid)
{
    uint64_t v;

    return kt_task_fact(t, KT_TASK_TGID, &v) && v == pid;
}

bool mc_task_is_thread(const KtTask *t)
{
    uint64_t pid, tgid;

    return kt_task_fact(t, KT_TASK_PID, &pid) &&
           kt_task_fact(t, KT_TASK_TGID, &tgid) && pid != tgid;
}

/* ---- what a word can mean ------------------------------------------------ */

/** struct Choice - the word is @name, or the number @number; @threads: see
 *  mc_tasks_choose() */
typedef struct Choice {
    const KtTasks *tasks;
    GPtrArray *chosen;
    const char *name;
    uint64_t number;
    bool threads;
} Choice;

typedef bool IsMeantFn(const Choice *c, const KtTask *t);

static bool is_pid(const Choice *c, const KtTask *t)
{
    return mc_task_has_pid(t, c->number);
}

static bool is_process(const Choice *c, const KtTask *t)
{
    return is_of_process(t, c->number);
}

static bool is_at(const Choice *c, const KtTask *t)
{
    uint64_t offset = c->number - t->va;

    return !offset || (t->in_map && offset < kt_block_len(&t->block));
}

static bool is_named(const Choice *c, const KtTask *t)
{
    return *t->comm && mc_match(c->name, t->comm);
}

static bool is_any(const Choice *c, const KtTask *t)
{
    return true;
}

/* Return true if there are any. */
static bool choose(const Choice *c, IsMeantFn *is_meant, bool threads)
{
    for (unsigned i = 0; i < c->tasks->task->len; i++) {
        KtTask *t = &g_array_index(c->tasks->task, KtTask, i);

        if (is_meant(c, t) && (threads || !mc_task_is_thread(t))) {
            g_ptr_array_add(c->chosen, t);
        }
    }
    return c->chosen->len > 0;
}

/* A pid is a decimal number. Addresses of kernel memory have 16 digits. */
static bool is_pid_word(const char *word, uint64_t *pid)
{
    return strlen(word) < 8 && mc_parse_decimal(word, "", pid, NULL);
}

static bool choose_pid(const Choice *c, bool *one)
{
    *one = !c->threads || !choose(c, is_process, true);
    return c->chosen->len || choose(c, is_pid, true);
}

bool mc_tasks_choose(const McContext *ctx, const KtTasks *tasks,
                     const char *word, bool threads, GPtrArray *chosen,
                     bool *one)
{
    Choice c = { tasks, chosen, word, 0, threads };

    *one = false;
    if (!word) {
        return choose(&c, is_any, threads);
    }
    if (is_pid_word(word, &c.number)) {
        return choose_pid(&c, one);
    }
    if (choose(&c, is_named, threads) || choose(&c, is_named, true)) {
        *one = chosen->len == 1;
        return true;
    }
    *one = true;
    return mc_parse_address(ctx, word, &c.number, NULL) &&
           choose(&c, is_at, true);
}

bool mc_tasks_none(const McContext *ctx, const KtTasks *tasks,
                   const char *word, GError **errp)
{
    g_autofree char *quoted = mc_quote(word);
    bool known = !(tasks->unknown & 1u << KT_TASK_PID);

    return mc_fail_unknown(errp, "%s: none of %u tasks has this pid, name or "
                           "address%s", quoted, tasks->task->len, known ? "" :
                           !ctx->vm ?
                           "; a journal has no memory, so pids are not known" :
                           "; without types pids are not known, see "
                           "types=FILE");
}
