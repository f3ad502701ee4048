/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ka_former does for ka_latter. */
#ifndef KA_FORMER_H
#define KA_FORMER_H

#include "ka_kmod.h"

/* Free the block; return its address. */
void *ka_former_free(void);
/* Read and write the block that was freed. */
void ka_former_use(void);

#endif /* KA_FORMER_H */
