# SPDX-License-Identifier: GPL-2.0-or-later
"""What test programs need beside the usual set-up: steps of scripts/setup.

A word is the name of a step, or "k:" and the name of a guest kernel. The steps
run one after the other on a thread, while programs run whose needs are made.
"""
import os
import subprocess
import threading

from . import ROOT
from .process import start

SETUP = os.path.join(ROOT, 'scripts', 'setup')
# Kernel's architecture -> the step that builds modules for its guests.
CROSS = {'arm64': 'cross-arm64', 'riscv64': 'cross-riscv64'}


def setup_arguments(word):
    """Return the arguments of scripts/setup for a word."""
    if not word.startswith('k:'):
        return ['--only', word]
    cross = CROSS.get(word[2:].split('-')[0])
    return ['--kernel', word[2:], *(('--only', cross) if cross else ())]


def all_paths():
    """Return what scripts/setup --paths prints now, as text."""
    env = {k: v for k, v in os.environ.items() if k != 'KA_PATHS'}
    return subprocess.run([SETUP, '--paths'], check=True, text=True, env=env,
                          stdout=subprocess.PIPE).stdout


class SetUp:
    """The steps of some words, in this order. CHANGE is a Condition, which is
    notified when a word is made or has failed. MADE() is called before that, on
    the same thread."""

    def __init__(self, words, screen, made=lambda: None):
        self.words, self.screen, self.made = list(words), screen, made
        self.change = threading.Condition()
        self.states = {}        # word -> '' if it is made, or what failed
        self.now = ''           # the step that runs
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self.thread.start()

    def running(self):
        return self.thread.is_alive()

    def failure(self, words):
        """Return what failed of the words, '' if all are made, or None if one
        is not made yet."""
        states = [self.states.get(word) for word in words]
        failed = next((text for text in states if text), None)
        return failed or (None if None in states else '')

    def _run(self):
        for word in self.words:
            try:
                state = self._make(word)
                self.made()
            except (OSError, subprocess.SubprocessError) as e:
                state = f'set-up of {word}: {e}'
            with self.change:
                self.states[word] = state
                self.change.notify_all()

    def _make(self, word):
        """Run the steps of a word. Return '' or a line that says what failed,
        and print all that the failed step said."""
        said = []
        with start(['nice', SETUP, *setup_arguments(word)], {}) as proc:
            for raw in proc.stdout:
                line = raw.decode('utf-8', 'replace').rstrip()
                said.append(line)
                if line.endswith(' ...'):
                    self.now = line[:-4]
                elif ': done in ' in line or line.startswith('waiting '):
                    self.screen.say('set-up: ' + line)
            status = proc.wait()
        self.now = ''
        if not status:
            return ''
        self.screen.say(f'  FAIL set-up of {word}',
                        *('    ' + line for line in said))
        log = next((s.split()[1] for s in said if s.startswith('  log:')), '')
        return f'set-up of {word} failed' + (f', see {log}' if log else '')
