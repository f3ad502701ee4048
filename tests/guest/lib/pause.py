# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM that is paused while its memory can be read."""
import time


def pause(guest):
    """Stop the VM. If its only vCPU is in user mode, its page tables may not
    map the kernel."""
    for _ in range(20):
        guest.qmp('stop')
        if 'no vCPU maps' not in guest.hmp_qmp('ka refs 0'):
            return
        guest.qmp('cont')
        time.sleep(0.2)
