# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that is reset."""
import re
import time

# The end of the workload, in two boots, and the second shell's prompt.
SECOND_SHELL = re.compile(r'\nKA-END\n.*\nKA-END\n.* # ', re.S)


def reset(guest):
    """Reset a VM that has a shell (end='shell') for the first time, and wait
    for the shell of its second boot."""
    guest.qmp('set_action', reboot='reset')
    guest.hmp_qmp('system_reset')
    end = time.monotonic() + guest.timeout
    while not SECOND_SHELL.search(guest.console):
        assert guest.alive() and time.monotonic() < end, guest.console[-1000:]
        time.sleep(0.2)
