/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The public interface of kalloc-tracer: events of the guest's allocators, and
 * the map made of them. Other libraries include this header and no other; it
 * includes the headers of api/ and knows no QEMU.
 */
#ifndef KT_H
#define KT_H

#include "kalloc-tracer/api/kt-access.h"
#include "kalloc-tracer/api/kt-accounts.h"
#include "kalloc-tracer/api/kt-aliases.h"
#include "kalloc-tracer/api/kt-block-filter.h"
#include "kalloc-tracer/api/kt-block-watch.h"
#include "kalloc-tracer/api/kt-calls.h"
#include "kalloc-tracer/api/kt-check.h"
#include "kalloc-tracer/api/kt-derefs.h"
#include "kalloc-tracer/api/kt-event.h"
#include "kalloc-tracer/api/kt-faults.h"
#include "kalloc-tracer/api/kt-files.h"
#include "kalloc-tracer/api/kt-goto.h"
#include "kalloc-tracer/api/kt-journal.h"
#include "kalloc-tracer/api/kt-leak.h"
#include "kalloc-tracer/api/kt-log.h"
#include "kalloc-tracer/api/kt-modules.h"
#include "kalloc-tracer/api/kt-mapping.h"
#include "kalloc-tracer/api/kt-objects.h"
#include "kalloc-tracer/api/kt-query.h"
#include "kalloc-tracer/api/kt-refs.h"
#include "kalloc-tracer/api/kt-replay.h"
#include "kalloc-tracer/api/kt-slab-check.h"
#include "kalloc-tracer/api/kt-slabs.h"
#include "kalloc-tracer/api/kt-tasks.h"
#include "kalloc-tracer/api/kt-structs.h"
#include "kalloc-tracer/api/kt-trace.h"
#include "kalloc-tracer/api/kt-tracer.h"
#include "kalloc-tracer/api/kt-types.h"
#include "kalloc-tracer/api/kt-vm.h"

#endif /* KT_H */
