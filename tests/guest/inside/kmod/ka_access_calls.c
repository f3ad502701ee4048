/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access: accesses by functions of the kernel, and by instructions other
 * than loads and stores.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "ka_access.h"

noinline __attribute__((noipa)) size_t ka_hidden(size_t n)
{
    return n;
}

/* ---- memory and strings -------------------------------------------------- */

KA_CASE(memset_oob)
{
    u8 *p = ka_access_alloc(115);

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_OOB, "w120", p, p, 115);
    memset(p, 0, ka_hidden(120));
    ka_site_end();
    ka_access_free(p);
    return 0;
}

KA_CASE(memset_uaf)
{
    u8 *p = ka_access_take(ka_own);

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "w32", p + KA_SAFE, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    memset(p + KA_SAFE, 0, ka_hidden(32));
    ka_site_end();
    return 0;
}

static int copy(const char *site, size_t from_bytes, size_t to_bytes, size_t n,
                void (*access)(void *to, const void *from, size_t n))
{
    u8 *from = ka_access_alloc(from_bytes), *to = ka_access_alloc(to_bytes);

    if (from && to) {
        bool reads = from_bytes < n;

        ka_truth(site, KA_OOB, reads ? "r120" : "w120", reads ? from : to,
                 reads ? from : to, reads ? from_bytes : to_bytes);
        access(to, from, n);
    }
    ka_access_free(from);
    ka_access_free(to);
    return from && to ? 0 : -ENOMEM;
}

KA_SITE_DOES(ka_site_memcpy, (void *to, const void *from, size_t n),
             memcpy(to, from, n))
KA_SITE_DOES(ka_site_memmove, (void *to, const void *from, size_t n),
             memmove(to, from, n))

/* A case that copies 120 bytes; one of the blocks has fewer. */
#define KA_COPY(name, site, from_bytes, to_bytes) \
    KA_CASE(name) \
    { \
        int error = copy(#site, from_bytes, to_bytes, 120, site); \
        \
        ka_site_end(); \
        return error; \
    }

KA_COPY(memcpy_from, ka_site_memcpy, 115, 120)
KA_COPY(memcpy_to, ka_site_memcpy, 120, 115)
KA_COPY(memmove_to, ka_site_memmove, 120, 115)

KA_CASE(memcmp)
{
    u8 *p = ka_access_take(ka_own), *other = ka_access_take(ka_own);
    int result;

    if (!p || !other) {
        return -ENOMEM;
    }
    memset(other, 0, KA_OBJECT);
    memset(p, 0, KA_OBJECT);
    ka_truth(__func__, KA_UAF, "r", p + KA_SAFE, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    result = memcmp(p + KA_SAFE, other + KA_SAFE, ka_hidden(16));
    barrier_data(&result);
    ka_access_give(ka_own, other);
    return 0;
}

KA_CASE(memchr)
{
    u8 *p = ka_access_take(ka_own);
    void *found;

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r1", p + KA_SAFE, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    found = memchr(p + KA_SAFE, 'x', ka_hidden(4));
    barrier_data(&found);
    return 0;
}

/* A freed string, whose end is behind SAFE + 2. */
static char *freed_string(const char *site, const char *how)
{
    char *p = ka_access_take(ka_own);

    if (p) {
        memset(p, 0, KA_OBJECT);
        memcpy(p + KA_SAFE, "ka", 3);
        ka_truth(site, KA_UAF, how, p + KA_SAFE, p, KA_OBJECT);
        ka_access_give(ka_own, p);
    }
    return p ? p + KA_SAFE : NULL;
}

/* A case that calls one function with a freed string. */
#define KA_STRING(name, type, call) \
    KA_CASE(name) \
    { \
        char *p = freed_string(__func__, "r1"); \
        type result = p ? call : (type)0; \
        \
        barrier_data(&result); \
        return p ? 0 : -ENOMEM; \
    }

KA_STRING(strlen, size_t, strlen(p))
KA_STRING(strnlen, size_t, strnlen(p, ka_hidden(8)))
KA_STRING(strcmp, int, strcmp(p, "ka"))
KA_STRING(strchr, char *, strchr(p, 'x'))

/* ---- bits and atomics ---------------------------------------------------- */

/* The freed object at SAFE, or NULL. */
static void *freed_number(const char *site, const char *how)
{
    u8 *p = ka_access_take(ka_own);

    if (p) {
        ka_truth(site, KA_UAF, how, p + KA_SAFE, p, KA_OBJECT);
        ka_access_give(ka_own, p);
    }
    return p ? p + KA_SAFE : NULL;
}

/* A case that does one thing with a freed number. */
#define KA_NUMBER(name, how, type, action) \
    KA_CASE(name) \
    { \
        type *p = freed_number(__func__, how); \
        \
        if (!p) { \
            return -ENOMEM; \
        } \
        action; \
        ka_site_end(); \
        return 0; \
    }

KA_NUMBER(set_bit, "w8", unsigned long, set_bit(ka_hidden(5), p))
KA_NUMBER(test_bit, "r8", unsigned long, (void)test_bit(ka_hidden(5), p))
KA_NUMBER(change_bit, "w8", unsigned long, change_bit(ka_hidden(5), p))
KA_NUMBER(test_and_set_bit, "w8", unsigned long,
          (void)test_and_set_bit(ka_hidden(5), p))
KA_NUMBER(atomic_read, "r4", atomic_t, (void)atomic_read(p))
KA_NUMBER(atomic_set, "w4", atomic_t, atomic_set(p, 1))
KA_NUMBER(atomic_inc, "w4", atomic_t, atomic_inc(p))
KA_NUMBER(atomic_fetch_add, "w4", atomic_t, (void)atomic_fetch_add(3, p))
KA_NUMBER(atomic_cmpxchg, "w4", atomic_t, (void)atomic_cmpxchg(p, 1, 2))
KA_NUMBER(atomic64_xchg, "w8", atomic64_t, (void)atomic64_xchg(p, 7))

/* ---- instructions that KASAN does not see -------------------------------- */

#ifdef CONFIG_X86_64
KA_CASE(rep_movs)
{
    u8 *p = ka_access_take(ka_own), to[16];
    const u8 *from = p + KA_SAFE;
    u8 *into = to;
    long n = sizeof(to);

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r16", p + KA_SAFE, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    asm volatile("rep movsb" : "+S" (from), "+D" (into), "+c" (n) : : "memory");
    return 0;
}

KA_CASE(asm_load)
{
    u8 *p = ka_access_take(ka_own);
    u32 value;

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r4", p + KA_SAFE, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    asm volatile("movl (%1), %0" : "=r" (value) : "r" (p + KA_SAFE) : "memory");
    return 0;
}
#endif

/* ---- user memory --------------------------------------------------------- */

static void __user *user_page(void)
{
    unsigned long at = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, 0);

    return IS_ERR_VALUE(at) || clear_user((void __user *)at, PAGE_SIZE) ?
           NULL : (void __user *)at;
}

static void unmap_user_page(void __user *user)
{
    vm_munmap((unsigned long)user, PAGE_SIZE);
}

KA_CASE(copy_to_user)
{
    void __user *user = user_page();
    u8 *p = user ? freed_number(__func__, "r32") : NULL;
    unsigned long left;

    if (!p) {
        return -ENOMEM;
    }
    left = copy_to_user(user, p, ka_hidden(32));
    unmap_user_page(user);
    return left ? -EFAULT : 0;
}

KA_CASE(copy_to_user_oob)
{
    void __user *user = user_page();
    u8 *p = user ? ka_access_alloc(115) : NULL;
    unsigned long left;

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_OOB, "r120", p, p, 115);
    left = copy_to_user(user, p, ka_hidden(120));
    ka_access_free(p);
    unmap_user_page(user);
    return left ? -EFAULT : 0;
}

KA_CASE(copy_from_user)
{
    void __user *user = user_page();
    u8 *p = user ? freed_number(__func__, "w32") : NULL;
    unsigned long left;

    if (!p) {
        return -ENOMEM;
    }
    left = copy_from_user(p, user, ka_hidden(32));
    unmap_user_page(user);
    return left ? -EFAULT : 0;
}

KA_CASE(get_user)
{
    void __user *user = user_page();
    u64 *p = user ? freed_number(__func__, "w8") : NULL;
    int error;

    if (!p) {
        return -ENOMEM;
    }
    error = get_user(*p, (u64 __user *)user);
    unmap_user_page(user);
    return error;
}

const struct ka_case ka_call_cases[] = {
    KA_ROW(memset_oob), KA_ROW(memset_uaf), KA_ROW(memcpy_from),
    KA_ROW(memcpy_to), KA_ROW(memmove_to), KA_ROW(memcmp), KA_ROW(memchr),
    KA_ROW(strlen), KA_ROW(strnlen), KA_ROW(strcmp), KA_ROW(strchr),
    KA_ROW(set_bit), KA_ROW(test_bit), KA_ROW(change_bit),
    KA_ROW(test_and_set_bit), KA_ROW(atomic_read), KA_ROW(atomic_set),
    KA_ROW(atomic_inc), KA_ROW(atomic_fetch_add), KA_ROW(atomic_cmpxchg),
    KA_ROW(atomic64_xchg),
#ifdef CONFIG_X86_64
    KA_ROW(rep_movs), KA_ROW(asm_load),
#endif
    KA_ROW(copy_to_user), KA_ROW(copy_to_user_oob), KA_ROW(copy_from_user),
    KA_ROW(get_user),
    {}
};
