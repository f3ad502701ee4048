/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of numbers: see constants.h. */
#include "kalloc-tracer/conditions/constants.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t value;
} constants[] = {
    { "NULL", 0 }, { "false", 0 }, { "true", 1 },
};

static const struct {
    const char *name, *bit_name;
    uint8_t bit;
} gfp_bits[KT_GFP__COUNT] = {
#define GS_GFP_BIT(name, bit) { "__GFP_" #name, "___GFP_" #name "_BIT", bit },
#include "guest-symbols/api/gfp-flags.def"
};

/* The masks as sets of KtGfpBit. */
#define B(name) (1u << KT_GFP_##name)
static const struct {
    const char *name;
    uint32_t bits;
} gfp_masks[] = {
#define GS_GFP_SUM(name, bits) { name, bits },
#define GS_GFP_NAME(name, bits) { name, bits },
#include "guest-symbols/api/gfp-flags.def"
};
#undef B
G_STATIC_ASSERT(KT_GFP__COUNT <= 32);

KtGfp kt_gfp_find(const GsKernel *k)
{
    KtGfp gfp = { 0 };

    for (unsigned i = 0; i < KT_GFP__COUNT; i++) {
        int64_t bit = gfp_bits[i].bit;

        if (k && gs_kernel_enum_value(k, gfp_bits[i].bit_name, &bit) &&
            (bit < 0 || bit > 31)) {
            bit = gfp_bits[i].bit;
        }
        gfp.mask[i] = 1u << bit;
    }
    return gfp;
}

static int64_t combine(const KtGfp *gfp, uint32_t bits)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < KT_GFP__COUNT; i++) {
        mask |= bits >> i & 1 ? gfp->mask[i] : 0;
    }
    return mask;
}

static bool find_gfp(const KtGfp *gfp, const char *name, int64_t *value)
{
    for (unsigned i = 0; i < KT_GFP__COUNT; i++) {
        if (!strcmp(name, gfp_bits[i].name)) {
            *value = gfp->mask[i];
            return true;
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(gfp_masks); i++) {
        if (!strcmp(name, gfp_masks[i].name)) {
            *value = combine(gfp, gfp_masks[i].bits);
            return true;
        }
    }
    return false;
}

bool kt_constant_find(const KtGfp *gfp, const char *name, int64_t *value)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(constants); i++) {
        if (!strcmp(name, constants[i].name)) {
            *value = constants[i].value;
            return true;
        }
    }
    return gs_number_find(name, value) || find_gfp(gfp, name, value);
}

void kt_constant_each(void (*fn)(void *opaque, const char *name), void *opaque)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(constants); i++) {
        fn(opaque, constants[i].name);
    }
    for (unsigned i = 0; gs_number_nth(i); i++) {
        fn(opaque, gs_number_nth(i));
    }
    for (unsigned i = 0; i < KT_GFP__COUNT; i++) {
        fn(opaque, gfp_bits[i].name);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(gfp_masks); i++) {
        fn(opaque, gfp_masks[i].name);
    }
}
