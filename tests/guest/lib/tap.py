# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of a test program, as TAP. Each test program prints TAP."""
import contextlib
import json
import sys
import traceback


class Tap:
    """Results of a test program, as TAP on standard output.

        tap = Tap()
        with tap.test('what is true if all is well'):
            assert ...            # any exception makes it "not ok"
        tap.skip('name', 'reason')
        tap.ok(condition, 'name', 'what was found instead')
        tap.done()                # prints the plan and exits 0 or 1
    """

    def __init__(self):
        self.count = self.failed = 0

    def _line(self, good, name, more=''):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}{more}",
              flush=True)
        return good

    @staticmethod
    def note(text):
        for line in str(text).splitlines():
            print('# ' + line, flush=True)

    @staticmethod
    def figures(what, **values):
        """Print figures for other programs: scripts/matrix reads them."""
        print('# figures ' + json.dumps({'what': what, **values}), flush=True)

    def ok(self, good, name, found=''):
        if not self._line(bool(good), name):
            self.note(found)
        return bool(good)

    def skip(self, name, reason):
        self._line(True, name, f' # SKIP {reason}')

    @contextlib.contextmanager
    def test(self, name, guest=None):
        """Make one test. If it fails, keep the logs of GUEST, a Guest that goes
        on."""
        try:
            yield
        except Exception:       # a test's failure, of whatever kind
            self._line(False, name)
            self.note(traceback.format_exc())
            if guest:
                self.note('logs: ' + guest.keep())
        else:
            self._line(True, name)

    def done(self):
        print(f'1..{self.count}', flush=True)
        sys.exit(1 if self.failed or not self.count else 0)
