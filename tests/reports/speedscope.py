# SPDX-License-Identifier: GPL-2.0-or-later
"""The viewer speedscope, a package of npm, in headless Chromium: what it reads
in a profile. For the tests of ka export."""
import base64
import json
import os
import time
import urllib.parse

import readers
import webdriver

PAGE = os.path.join(readers.READERS, 'node_modules', 'speedscope', 'dist',
                    'release', 'index.html')
SECONDS = 30
# Its command Export makes a blob; keep the text and save no file.
KEEP_EXPORTS = '''
    window.kaSaved = null;
    URL.createObjectURL = blob => {
        blob.text().then(text => { window.kaSaved = text; });
        return "javascript:void 0";
    };'''
EXPORT = '''
    window.dispatchEvent(new KeyboardEvent("keydown",
                                           {key: "s", ctrlKey: true}));'''
# The rows of its table of functions: total, self, name.
TABLE = '''
    return [...document.querySelectorAll("tr")].map(
        row => [...row.querySelectorAll("td")].map(c => c.textContent));'''


def why_not():
    """What is missing for speedscope, or nothing."""
    if not readers.has_npm('speedscope'):
        return 'no speedscope: scripts/setup --only readers'
    return webdriver.why_not()


class Speedscope:
    """A browser with speedscope. Use it with `with`."""

    def __init__(self, work):
        self.work, self.count = work, 0
        self.browser = webdriver.Browser('--enable-unsafe-swiftshader')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.__exit__()

    def wait(self, script):
        """Return what a script returns, as soon as it is true."""
        end = time.monotonic() + SECONDS
        while True:
            value = self.browser.js(script)
            if value or time.monotonic() > end:
                assert value, (script, self.browser.console())
                return value
            time.sleep(0.05)

    def open(self, name, data):
        """Show a file, as its program does: by a script with its bytes."""
        self.count += 1
        path = os.path.join(self.work, f'speedscope-{self.count}.js')
        with open(path, 'w', encoding='ascii') as f:
            f.write('speedscope.loadFileFromBase64('
                    f'{json.dumps(name)}, '
                    f'{json.dumps(base64.b64encode(data).decode())})')
        self.browser.console()
        # The same page with another fragment is not loaded again.
        self.browser.post('url', {'url': 'about:blank'})
        self.browser.load(f'{PAGE}#view=sandwich&localProfilePath=' +
                          urllib.parse.quote(path))
        self.wait('return document.querySelectorAll("tr").length > 1')

    def table(self):
        """The rows (total, self, name) that it shows, as texts."""
        return [row for row in self.browser.js(TABLE) if len(row) == 3]

    def exported(self):
        """What its command Export writes: (unit, {stack, root first: sum})."""
        self.browser.js(KEEP_EXPORTS)
        self.browser.js(EXPORT)
        whole = json.loads(self.wait('return window.kaSaved'))
        profile, = whole['profiles']
        names = [frame['name'] for frame in whole['shared']['frames']]
        sums, stack, last = {}, [], profile['startValue']
        for event in profile['events']:
            key = tuple(stack)
            sums[key] = sums.get(key, 0) + event['at'] - last
            last, name = event['at'], names[event['frame']]
            if event['type'] == 'O':
                stack.append(name)
            else:
                assert stack.pop() == name, event
        assert not stack and last == profile['endValue'], profile['endValue']
        return profile['unit'], {s: n for s, n in sums.items() if n}
