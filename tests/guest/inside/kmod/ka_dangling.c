/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_dangling: a session keeps a pointer to a device that is freed, and uses
 * it. When it is loaded it says
 *
 *   ka_dangling: session=ADDRESS device=ADDRESS at=OFFSET
 *
 * OFFSET: of the pointer in the session. The pointer is set several times;
 * ka_dangling_attach() sets the last, stale one. Memory beside the pointer is
 * written to afterwards, and the pointer is read.
 */
#include "ka_kmod.h"

#define DEVICES 3
#define SENDS   100

struct ka_device {
    unsigned long id;
    unsigned long fill[31];
};

struct ka_session {
    unsigned long sent;
    struct ka_device *device;
    unsigned long received;
    unsigned long fill[21];
};

static struct kmem_cache *cache;

KA_SITE_RETURNS(struct ka_device *, ka_dangling_probe, (void),
                kmem_cache_alloc(cache, GFP_KERNEL))
KA_SITE_DOES(ka_dangling_remove, (struct ka_device *d),
             kmem_cache_free(cache, d))
KA_SITE_DOES(ka_dangling_reset, (struct ka_session *s),
             WRITE_ONCE(s->device, NULL))
KA_SITE_DOES(ka_dangling_attach, (struct ka_session *s, struct ka_device *d),
             WRITE_ONCE(s->device, d))

static KA_SITE unsigned long ka_dangling_send(struct ka_session *s)
{
    s->sent++;
    s->received = s->sent;
    return READ_ONCE(s->device->id);
}

/* A cache with a constructor is not merged, so that nobody else gets the
 * memory. */
static void clear_device(void *at)
{
    memset(at, 0, sizeof(struct ka_device));
}

static int __init ka_dangling_init(void)
{
    struct ka_device *device[DEVICES] = { 0 };
    struct ka_session *s = kzalloc(sizeof(*s), GFP_KERNEL);
    unsigned int i, n;

    cache = kmem_cache_create("ka_dangling", sizeof(struct ka_device), 0, 0,
                              clear_device);
    if (!s || !cache) {
        return -ENOMEM;
    }
    for (i = 0; i < DEVICES; i++) {
        device[i] = ka_dangling_probe();
        if (!device[i]) {
            return -ENOMEM;
        }
        ka_dangling_reset(s);
        ka_dangling_attach(s, device[i]);
        for (n = 0; n < SENDS; n++) {
            ka_dangling_send(s);
        }
    }
    pr_info("ka_dangling: session=%px device=%px at=%zu\n", s,
            device[DEVICES - 1], offsetof(struct ka_session, device));
    ka_dangling_remove(device[DEVICES - 1]);
    return ka_dangling_send(s) == 1;
}

KA_MODULE_STAYS(ka_dangling_init, "uses a stale pointer");
