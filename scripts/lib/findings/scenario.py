# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guest was to do: the script of --run, or that of the word ka.run=
for the prepared initramfs. Both report their exit status on the console, with a
random number (token) that nothing else in the guest prints:

    KA-DONE <status> <token>
"""
import os
import re
import secrets
import shutil
import signal

from . import CouldNotRun
from .finding import Finding, hash_words

HERE = os.path.dirname(os.path.realpath(__file__))
NAME, SCRIPT = 'ka-sweep', 'ka-scenario.sh'     # of files in /share
MOST_LINES = 30         # of the output that are printed
MOST_OUTPUT = 8192      # characters of these

# What insmod and modprobe say of a module, those of busybox and of kmod.
MODULE = re.compile(
    r"^(?P<program>insmod|modprobe): (?:ERROR: |FATAL: )?"
    r"(?:(?:can't|could not) insert (?:module )?'?(?P<name>[^'\n]+?)'?: "
    r"(?P<why>[^\n]+)|[Mm]odule (?P<missing>\S+) not found)", re.M)


class Scenario:
    """The work of a guest. wanted: its status must be reported."""

    def __init__(self, args):
        self.run, self.share = args.run, args.share
        self.wanted = bool(args.run)
        self.token = secrets.token_hex(8)
        self.named = bool(self.run) or any(
            word.startswith('ka.run=') for words in args.append
            for word in words.split())

    @property
    def words(self):
        """Words for the kernel command line."""
        words = [f'ka.token={self.token}'] if self.named else []
        return words + ([f'ka.run={NAME}', 'ka.end=poweroff'] if self.run
                        else [])

    def make_share(self, folder):
        """Copy what the guest gets as /share to a folder, which is new."""
        try:
            if self.share:
                shutil.copytree(self.share, folder)
            else:
                os.makedirs(folder)
            shutil.copyfile(self.run, os.path.join(folder, SCRIPT))
        except OSError as e:
            raise CouldNotRun(f'--run, --share: {e}') from e
        with open(os.path.join(HERE, 'scenario.sh'), encoding='ascii') as f:
            text = f.read()
        with open(os.path.join(folder, NAME + '.sh'), 'w',
                  encoding='ascii') as f:
            f.write(f'token={self.token}\n{text}')
        return folder

    def _report(self, console):
        return re.search(rf'KA-DONE (\d{{1,3}}) {self.token}', console)

    def _output(self, console):
        """Return what the guest has printed since the script began, or None if
        it has not."""
        begin = re.search(rf'KA-BEGIN {self.token}\n', console) or \
            re.search(r'^KA-READY\n', console, re.M)
        done = self._report(console)
        return console[begin.end():done.start() if done else None] \
            if begin else None

    def findings(self, console):
        """The finding of a script that failed."""
        done = self._report(console)
        if not done or int(done[1]) == 0:
            return []
        return [failure(int(done[1]), self._output(console) or '')]

    def why_not_known(self, console):
        """Yield why the status is not known, if it must be."""
        if self.wanted and not self._report(console):
            began = f'KA-BEGIN {self.token}' in console
            yield 'the script of --run ' + (
                'did not come to its end' if began else 'never began')


def status_text(status):
    """Return the status; a shell adds 128 to the number of a signal."""
    try:
        return f'{status} ({signal.Signals(status - 128).name})'
    except ValueError:
        return str(status)


def module_failure(output):
    """Return what insmod or modprobe said last, as far as it is the same in
    each run."""
    found = [*MODULE.finditer(output)]
    if not found:
        return ''
    m = found[-1]
    name = os.path.basename(m['name'] or m['missing'])
    return f": {m['program']} {name}: {m['why'] or 'module not found'}"


def failure(status, output):
    title = f'scenario failed: status {status_text(status)}' + \
        module_failure(output)
    lines = output[-MOST_OUTPUT:].strip().split('\n')[-MOST_LINES:]
    text = [f'{title}; the last lines of its output:',
            *(f'  {line}' for line in lines if line.strip())]
    return Finding(kind='scenario', title=title, text='\n'.join(text),
                   fold=hash_words('scenario', title),
                   row={'error': 'scenario'})
