# SPDX-License-Identifier: GPL-2.0-or-later
"""What the user sees while programs run: their lines, and on a terminal one
more line that says what runs now. Any thread may call it."""
import shutil
import sys
import threading
import time


def clock(seconds):
    return f'{int(seconds) // 60}:{int(seconds) % 60:02}'


class Screen:
    """Standard output. If it is no terminal, status() prints nothing."""

    def __init__(self, out=None):
        self.out = out or sys.stdout
        self.terminal = self.out.isatty()
        self.lock = threading.Lock()
        self.begin = time.monotonic()
        self.shown = False      # the status line is there

    def _clear(self):
        if self.shown:
            self.out.write('\r\033[K')
            self.shown = False

    def say(self, *lines):
        with self.lock:
            self._clear()
            self.out.write(''.join(line + '\n' for line in lines))
            self.out.flush()

    def status(self, text):
        """Replace the status line; without a text remove it."""
        if not self.terminal:
            return
        width = shutil.get_terminal_size().columns
        with self.lock:
            self._clear()
            if text:
                passed = clock(time.monotonic() - self.begin)
                self.out.write(f'[{passed}] {text}'[:width - 1])
                self.shown = True
            self.out.flush()
