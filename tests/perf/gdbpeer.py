# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs inside gdb: a tracer of kfree as people write it with breakpoints.

Each hit prints ten frames into a string and goes on without a prompt, the
quickest way that gdb offers. Variables from the command line: $ka_kfree, the
address, and $ka_seconds, how long. Prints "peer HITS SECONDS".
"""
import time

import gdb


class Tracer(gdb.Breakpoint):
    def __init__(self, va, seconds):
        super().__init__(f'*{va:#x}')
        self.hits, self.begin = 0, None
        self.seconds = seconds

    def stop(self):
        self.hits += 1
        gdb.execute('backtrace 10', to_string=True)
        now = time.monotonic()
        if self.begin is None:
            self.begin, self.hits = now, 0
        return now - self.begin >= self.seconds


def value(name):
    return int(gdb.parse_and_eval(name)) & (1 << 64) - 1


tracer = Tracer(value('$ka_kfree'), value('$ka_seconds'))
gdb.execute('continue', to_string=True)
print(f'peer {tracer.hits} {time.monotonic() - tracer.begin:.3f}')
