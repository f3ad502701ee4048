/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the reasons why a walk ends. Constant data, any thread. */
#include "guest-symbols/gs.h"

static const char *const stop_names[GS_STOP__COUNT] = {
    [GS_STOP_END] = "end",
    [GS_STOP_USER] = "user",
    [GS_STOP_UNKNOWN_PC] = "unknown-pc",
    [GS_STOP_BAD_FRAME] = "bad-frame",
    [GS_STOP_DEPTH] = "depth",
    [GS_STOP_NO_UNWINDER] = "no-unwinder",
    [GS_STOP_REPLACED] = "replaced",
};

const char *gs_stop_name(GsStop stop)
{
    return (unsigned)stop < GS_STOP__COUNT ? stop_names[stop] : "?";
}
