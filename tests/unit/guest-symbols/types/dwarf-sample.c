/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program of which only the debug info is of use, see dwarf-sample.h. */
#include "tests/unit/guest-symbols/types/dwarf-sample.h"

static struct sample_outer outer;
static enum sample_colour colour = SAMPLE_MINUS;
static unsigned anon = SAMPLE_ANON;
static int other = SAMPLE_OTHER;

int sample_function(struct sample_outer *object, unsigned long size, int gfp)
{
    return object->one + size + gfp;
}

int main(void)
{
    return sample_function(&outer, colour, anon) + other;
}
