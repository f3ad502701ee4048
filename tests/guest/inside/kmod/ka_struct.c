/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_struct: an object with a member of each kind, for test_struct.py. It says
 * where the object is, and what it has:
 *
 *   ka_struct: va=ADDRESS
 *   ka_struct: MEMBER=VALUE
 */
#include <linux/init.h>
#include <linux/list.h>

#include "ka_kmod.h"

#define TAIL 5

enum ka_colour { KA_RED, KA_GREEN = 5, KA_MINUS = -7 };

struct ka_point {
    u16 x;
    s8 y;
};

struct ka_thing {
    unsigned int low : 3, high : 5;
    int neg : 4;
    u64 wide : 40;
    enum ka_colour colour, other;
    union {
        u64 word;
        struct {
            u32 left, right;
        };
        struct ka_point point;
    };
    bool flag;
    char name[12];
    s8 tiny;
    short shorts[4];
    int grid[2][3];
    struct list_head list, empty;
    void *self, *nothing;
    const void *code;
    struct ka_point points[4];
    int n;
    struct ka_point tail[];
};

static struct ka_thing *thing;

/* Not inlined: the compiler keeps the type. */
static noinline void fill(struct ka_thing *t)
{
    t->low = 5;
    t->high = 19;
    t->neg = -3;
    t->wide = 0xa123456789ull;
    t->colour = KA_GREEN;
    t->other = KA_MINUS;
    t->word = 0x1122334455667788ull;
    t->flag = true;
    strscpy(t->name, "a \"thing\"", sizeof(t->name));
    t->tiny = -100;
    t->shorts[0] = -1;
    t->shorts[3] = 30000;
    t->grid[1][2] = 42;
    INIT_LIST_HEAD(&t->empty);
    INIT_LIST_HEAD(&t->list);
    t->self = t;
    t->code = fill;
    t->points[1].x = t->points[2].x = 7;
    t->n = TAIL;
}

#define SAY(member) \
    pr_info("ka_struct: " #member "=%lld\n", (long long)t->member)

static void say(const struct ka_thing *t)
{
    pr_info("ka_struct: va=%px\n", t);
    SAY(low);
    SAY(high);
    SAY(neg);
    SAY(wide);
    SAY(colour);
    SAY(other);
    SAY(word);
    SAY(left);
    SAY(right);
    SAY(point.x);
    SAY(point.y);
    SAY(flag);
    SAY(tiny);
    pr_info("ka_struct: points[1..2].x=%d\n", t->points[1].x);
    SAY(n);
    SAY(tail[4].x);
    SAY(tail[4].y);
    pr_info("ka_struct: self=%lld\n", (long long)(long)t->self);
    pr_info("ka_struct: code=%lld\n", (long long)(long)t->code);
}

static int __init ka_struct_init(void)
{
    thing = kzalloc(sizeof(*thing) + TAIL * sizeof(thing->tail[0]),
                    GFP_KERNEL);
    if (!thing) {
        return -ENOMEM;
    }
    fill(thing);
    thing->tail[4].x = 60000;
    thing->tail[4].y = -9;
    say(thing);
    return 0;
}

static void __exit ka_struct_exit(void)
{
    kfree(thing);
}

KA_MODULE(ka_struct_init, ka_struct_exit,
          "an object with a member of each kind");
