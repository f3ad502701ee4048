# SPDX-License-Identifier: GPL-2.0-or-later
"""What one test program printed, as TAP; and sums over programs."""
import re

SHOWN_LINES = 60        # of the output of a test that failed

TEST_LINE = re.compile(r'(not )?ok\b\s*\d*\s*-?\s*(.*)')
PLAN_LINE = re.compile(r'1\.\.(\d+)')
SKIP_WORD = re.compile(r'\s*#\s*(skip|todo)\b\s*(.*)', re.I)


class Result:
    """The result of one program, from its TAP. SHOW, if it is given, gets each
    line at once; else they are collected in .lines."""

    def __init__(self, label, verbose=False, show=None):
        self.label, self.verbose, self.show = label, verbose, show
        self.lines = []
        self.passed = self.failed = self.skipped = 0
        self.plan = self.skip_all = None
        self.seconds = self.cpu = 0     # by the clock, and of all CPUs
        self.log = None         # file with all that it printed, if kept
        self.before = []        # output since the last test line
        self.shown = 0          # lines still to show after a failure

    def put(self, text):
        if self.show:
            self.show(text)
        else:
            self.lines.append(text)

    def line(self, text):
        plan = PLAN_LINE.match(text)
        test = TEST_LINE.match(text)
        if test:
            self.test(bool(test.group(1)), test.group(2))
        elif plan:
            self.plan = int(plan.group(1))
            skip = SKIP_WORD.search(text)
            if skip and self.plan == 0:
                self.skip_all = skip.group(2)
        elif text.startswith('Bail out!') and not self.failed:
            self.fail(text)
        elif self.shown > 0:
            self.shown -= 1
            self.put('    ' + text)
        else:
            self.before.append(text)
            if self.verbose and text.startswith('# '):
                self.put('    ' + text)

    def test(self, bad, name):
        word = SKIP_WORD.search(name)
        if word and (bad or word.group(1).lower() == 'skip'):
            self.skipped += 1
            self.say('skip', name[:word.start()] + ': ' + word.group(2))
        elif bad:
            self.fail(name)
            return
        else:
            self.passed += 1
            if self.verbose:
                self.say('ok', name)
        self.shown = 0
        self.before.clear()

    def fail(self, name):
        self.failed += 1
        self.say('FAIL', name)
        for text in self.before[-SHOWN_LINES:]:
            self.put('    ' + text)
        self.before.clear()
        self.shown = SHOWN_LINES

    def say(self, word, name):
        self.put(f'  {word:4} {self.label}: {name}')

    def end(self, status):
        """The program ended. Count what its TAP does not say: a bad exit
        status, or a plan that does not match."""
        seen = self.passed + self.failed + self.skipped
        if status == 77 and not self.failed:
            self.skipped += not seen
        elif status and not self.failed:
            self.fail(f'ended with status {status}')
        elif self.skip_all is not None:
            self.skipped += 1
            self.say('skip', f'all: {self.skip_all}')
        elif not seen:
            self.fail('ran no test')
        elif self.plan is None and not self.failed:
            self.fail('printed no plan')
        elif self.plan is not None and self.plan != seen and not self.failed:
            self.fail(f'planned {self.plan} tests, ran {seen}')

    def sums(self):
        return (f'{self.passed} passed, {self.failed} failed, '
                f'{self.skipped} skipped')


class Total:
    """Sums over programs."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, result):
        self.passed += result.passed
        self.failed += result.failed
        self.skipped += result.skipped

    sums = Result.sums
