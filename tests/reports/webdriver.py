# SPDX-License-Identifier: GPL-2.0-or-later
"""A headless Chromium, driven through chromedriver by the WebDriver protocol.
Records what the page prints on its console, and what it requests."""
import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
ARGUMENTS = ('--headless=new', '--no-sandbox', '--disable-gpu',
             '--disable-dev-shm-usage', '--hide-scrollbars')


def why_not():
    """What is missing for a browser, or nothing."""
    names = {'chromium': ('chromium',), 'chromedriver': ('chromedriver',)}
    for name, programs in names.items():
        if not any(map(shutil.which, programs)):
            return f'no {name}: scripts/setup --only browser'
    return None


class Browser:
    """A browser with a fresh profile. Use it with `with`."""

    def __init__(self, *more):
        self.folder = tempfile.TemporaryDirectory(prefix='ka-browser.')
        self.driver = subprocess.Popen(
            ['chromedriver', '--port=0'], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.base = None
        for line in self.driver.stdout:
            if 'started successfully on port' in line:
                port = line.rstrip().rstrip('.').rpartition(' ')[2]
                self.base = f'http://127.0.0.1:{port}'
                break
        assert self.base, 'chromedriver did not start'
        self.session = self.base + '/session/' + self.open(more)

    def open(self, more):
        """Begin a session. Return its id."""
        options = {'args': [*ARGUMENTS, *more,
                            '--user-data-dir=' + self.folder.name]}
        answer = self.call('POST', self.base + '/session', {'capabilities': {
            'alwaysMatch': {
                'goog:chromeOptions': options,
                'goog:loggingPrefs': {'browser': 'ALL',
                                      'performance': 'ALL'}}}})
        return answer['sessionId']

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call('DELETE', self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(30)
            self.folder.cleanup()

    @staticmethod
    def call(method, url, body=None):
        """The value that a command returns."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            url, data, {'Content-Type': 'application/json'}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as e:
            raise AssertionError(e.read().decode()[:1000]) from e

    def post(self, path, body=None):
        return self.call('POST', f'{self.session}/{path}', body or {})

    def load(self, path):
        """Load a file, and wait for the promise of a page of ka report."""
        self.post('url', {'url': 'file://' + path})
        self.js('return window.kaReady')

    def load_anew(self, path):
        """Open a page in light colours; forget what was printed and requested
        before."""
        self.console()
        self.requests()
        self.load(path)
        self.dark(False)

    def check_silent(self, path):
        """The page printed nothing, and requested nothing but itself."""
        lines = self.console()
        assert not lines, lines
        others = [u for u in self.requests() if u != 'file://' + path]
        assert not others, others

    def text(self, selector):
        return self.js('return document.querySelector(arguments[0])'
                       '.textContent', selector)

    def js(self, script, *args):
        """What a script, the body of a function, returns."""
        return self.post('execute/sync', {'script': script,
                                          'args': list(args)})

    def devtools(self, command, **params):
        return self.post('goog/cdp/execute', {'cmd': command,
                                              'params': params})

    def find(self, selector):
        return self.post('element', {'using': 'css selector',
                                     'value': selector})[ELEMENT]

    def type(self, selector, text):
        self.post(f'element/{self.find(selector)}/value', {'text': text})

    def click_at(self, selector, x, y, buttons=('Down', 'Up')):
        """Click at a place, from the left upper corner of an element."""
        left, top = self.js(
            'const e = document.querySelector(arguments[0]);'
            'e.scrollIntoView({block: "start"});'
            'const r = e.getBoundingClientRect(); return [r.left, r.top];',
            selector)
        place = {'x': round(left + x), 'y': round(top + y)}
        self.post('actions', {'actions': [{
            'type': 'pointer', 'id': 'mouse', 'actions': [
                {'type': 'pointerMove', 'duration': 0, 'origin': 'viewport',
                 **place},
                *({'type': f'pointer{b}', 'button': 0}
                  for b in buttons)]}]})

    def hover_at(self, selector, x, y):
        """Move the mouse to a place of an element."""
        self.click_at(selector, x, y, buttons=())

    def resize(self, width, height):
        self.post('window/rect', {'width': width, 'height': height})

    def dark(self, on):
        self.devtools('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme',
             'value': 'dark' if on else 'light'}])

    def screenshot(self, path):
        png = self.call('GET', self.session + '/screenshot')
        with open(path, 'wb') as f:
            f.write(base64.b64decode(png))

    def picture(self, path, width):
        """A picture of the whole page, at most 6000 pixels high."""
        high = self.js('return document.documentElement.scrollHeight')
        png = self.devtools('Page.captureScreenshot', clip={
            'x': 0, 'y': 0, 'width': width, 'height': min(high, 6000),
            'scale': 1}, captureBeyondViewport=True)['data']
        with open(path, 'wb') as f:
            f.write(base64.b64decode(png))

    def console(self):
        """The lines that were printed on the console."""
        return [e['message'] for e in self.post('se/log', {'type': 'browser'})]

    def requests(self):
        """The addresses that were requested; not those of the browser's own
        pages, which it may load when it starts."""
        time.sleep(0.2)
        found = []
        for entry in self.post('se/log', {'type': 'performance'}):
            event = json.loads(entry['message'])['message']
            if event['method'] != 'Network.requestWillBeSent':
                continue
            if not event['params']['documentURL'].startswith('chrome:'):
                found.append(event['params']['request']['url'])
        return found
