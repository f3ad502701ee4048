/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest-symbols: what is known of a guest kernel without its debug package.
 *
 * A GsKernel is made from a kernel file (vmlinuz/bzImage, ELF vmlinux or
 * System.map) or from guest memory, and answers in run-time addresses once its
 * KASLR slide is set. A GsUnwinder walks kernel stacks: on x86-64 with the
 * kernel's own ORC tables, elsewhere by frame records.
 *
 * All input, file or guest memory, is untrusted: every access is bounds-checked
 * and every size capped; errors on cold paths are GErrors, never assertions.
 *
 * Other libraries include this header; it includes those of api/.
 */
#ifndef GS_H
#define GS_H

#include "guest-symbols/api/gs-arch.h"
#include "guest-symbols/api/gs-direct-map.h"
#include "guest-symbols/api/gs-export.h"
#include "guest-symbols/api/gs-instruction.h"
#include "guest-symbols/api/gs-kernel.h"
#include "guest-symbols/api/gs-modules.h"
#include "guest-symbols/api/gs-prototypes.h"
#include "guest-symbols/api/gs-structs.h"
#include "guest-symbols/api/gs-symbols.h"
#include "guest-symbols/api/gs-tags.h"
#include "guest-symbols/api/gs-types-file.h"
#include "guest-symbols/api/gs-types.h"
#include "guest-symbols/api/gs-unwind.h"
#include "guest-symbols/api/gs-values.h"

#endif /* GS_H */
