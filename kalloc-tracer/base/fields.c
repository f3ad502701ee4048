/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of fields: see fields.h. */
#include "kalloc-tracer/base/fields.h"

static uint64_t get(const void *row, unsigned at, unsigned size)
{
    const void *p = (const char *)row + at;

    return size == 1 ? *(const uint8_t *)p : size == 2 ? *(const uint16_t *)p :
           size == 4 ? *(const uint32_t *)p : *(const uint64_t *)p;
}

static void set(void *p, unsigned size, uint64_t v)
{
    switch (size) {
    case 1:
        *(uint8_t *)p = v;
        break;
    case 2:
        *(uint16_t *)p = v;
        break;
    case 4:
        *(uint32_t *)p = v;
        break;
    default:
        *(uint64_t *)p = v;
    }
}

/* Return what a distance is counted from. */
static uint64_t origin(const KtField *f, const void *row, const void *before)
{
    return f->form == KT_FORM_STEP ? get(row, f->from, sizeof(uint64_t)) :
           before ? get(before, f->at, f->size) : 0;
}

void kt_fields_pack(const KtField *f, const void *row, const void *before,
                    GsOut *out)
{
    for (; f->form; f++) {
        uint64_t v = get(row, f->at, f->size);
        uint64_t le = GUINT64_TO_LE(v);

        if (f->form == KT_FORM_FIXED) {
            gs_out_bytes(out, &le, f->bytes);
        } else if (f->form == KT_FORM_NUMBER) {
            gs_out_varint(out, v);
        } else {
            gs_out_step(out, origin(f, row, before), v);
        }
    }
}

/* Read a number that is no varint, and compare it with its bound. */
static uint64_t read_other(const KtField *f, const void *row,
                           const void *before, uint64_t max, GsBytes *in)
{
    uint64_t v = 0;

    if (f->form == KT_FORM_FIXED) {
        gs_bytes_copy(in, &v, f->bytes);
        v = GUINT64_FROM_LE(v);
    } else {
        v = gs_bytes_step(in, origin(f, row, before));
    }
    if (v > max) {
        gs_bytes_fail(in, "%s", f->what ? f->what : "a number is too large");
    }
    return v;
}

void kt_fields_unpack(const KtField *f, void *row, const void *before,
                      const uint64_t *limits, GsBytes *in)
{
    for (; f->form; f++) {
        uint64_t max = f->limit ? limits[f->limit - 1] : f->max ? f->max :
                       UINT64_MAX >> (64 - 8 * f->size);
        uint64_t v = f->form != KT_FORM_NUMBER ?
                     read_other(f, row, before, max, in) :
                     f->what ? gs_bytes_upto(in, max, f->what) :
                     gs_bytes_varint(in, max);

        set((char *)row + f->at, f->size, in->failed ? 0 : v);
    }
}
