# SPDX-License-Identifier: GPL-2.0-or-later
"""ka from Python: the JSON objects of a journal or of a running VM as Python
objects, for checks of your own. docs/python.md has an example.

    import ka
    run = ka.Journal('run.journal')         # or ka.Vm('qmp.sock')
    for error in run.errors():
        print(error.title, hex(error.va), error.alloc.functions())

Both ask the program ka: that of $KA_PROGRAM, of the build folder of this tree,
or of the PATH. This file needs nothing else, so it may be copied.
"""
import fnmatch
import json
import os
import re
import shutil
import subprocess
from typing import NamedTuple, Optional

# Keys whose values are numbers in hex. Values of other keys are texts, which
# may be names of the guest that look like numbers.
HEX = frozenset((
    'va', 'end', 'at', 'value', 'error_va', 'error_size', 'error_offset',
    'neighbour_va', 'neighbour_distance', 'neighbour_before', 'ref_at', 'gfp',
    'start', 'last', 'object', 'next', 'slab', 'block', 'offset'))
SYMBOLS = '_symbols'        # the end of the key with the names of a stack
SYMBOL = re.compile(r'(.+)\+0x([0-9a-f]+)(?:\[(.*)\])?')
HEX_VALUE = re.compile(r'0x[0-9a-f]+')


class KaError(Exception):
    """There is no answer: no such file, no VM, a program that is missing."""


class BadCommand(KaError):
    """ka refuses the command; the text says what would be right."""


# --- stacks ------------------------------------------------------------------

class Frame(NamedTuple):
    """An address of code; without a symbol the rest is None."""
    address: int
    function: Optional[str] = None
    offset: Optional[int] = None
    module: Optional[str] = None

    @classmethod
    def parse(cls, address, symbol=None):
        found = SYMBOL.fullmatch(symbol or '')
        if not found:
            return cls(int(address, 16))
        return cls(int(address, 16), found[1], int(found[2], 16), found[3])

    def __str__(self):
        if self.function is None:
            return f'{self.address:016x}'
        module = f'[{self.module}]' if self.module else ''
        return f'{self.function}+{self.offset:#x}{module}'


class Stack(tuple):
    """Frames, the leaf first; empty if no stack was kept."""

    def functions(self):
        """The names of the functions; '?' for a frame without a symbol."""
        return [frame.function or '?' for frame in self]

    def has(self, function='*', module='*'):
        """Does a frame match? Both may contain * ? and [...]."""
        return any(fnmatch.fnmatchcase(frame.function or '', function) and
                   fnmatch.fnmatchcase(frame.module or '', module)
                   for frame in self)

    def __str__(self):
        return ' '.join(map(str, self))


# --- objects -----------------------------------------------------------------

class Object:
    """A JSON object of ka. Its keys are attributes (docs/commands.md has
    them): addresses are numbers, stacks are a Stack, what is unknown is None.
    The key of a name with a dot, as of ka stat, is object['errors.recorded'].
    .raw is the object as it came."""

    def __init__(self, raw):
        self.raw = raw

    def __getitem__(self, key):
        value = self.raw[key]
        symbols = self.raw.get(key + SYMBOLS)
        if isinstance(value, list) and (symbols is not None or
                                        all(map(is_hex, value))):
            symbols = symbols or [None] * len(value)
            return Stack(map(Frame.parse, value, symbols))
        if key in HEX and is_hex(value):
            return int(value, 16)
        if key == 'caller' and value:
            return Frame.parse(value, self.raw.get('caller_symbol'))
        return value

    def __getattr__(self, key):
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f'{self.raw.get("type")} has no {key}') \
                from None

    def get(self, key, default=None):
        return self[key] if key in self.raw else default

    def __contains__(self, key):
        return key in self.raw

    def __repr__(self):
        return f'<ka {self.raw.get("type")} {json.dumps(self.raw)}>'


class Block(Object):
    """A block. .state: A allocated, F freed, P a past life; .requested and
    .actual bytes; .alloc and .free: stacks; .alloc_us and .free_us."""

    @property
    def allocated(self):
        return self.raw['state'] == 'A'


class Error(Block):
    """An error: .error is its kind, .error_stack where it was found, and the
    block is as it was then. Two errors with the same .fold are one bug."""


class Sum(Object):
    """A row of ka top or ka diff: .live, .blocks, .allocs and so on."""


TYPES = {'block': Block, 'error': Error, 'top': Sum, 'top_all': Sum,
         'diff': Sum, 'diff_all': Sum}


def is_hex(value):
    return isinstance(value, str) and HEX_VALUE.fullmatch(value) is not None


def typed(raw):
    return TYPES.get(raw.get('type'), Object)(raw)


def parse(text):
    """The objects of an answer to a command with -j. Raise BadCommand if the
    command was refused."""
    objects = []
    for line in filter(None, text.split('\n')):
        try:
            objects.append(typed(json.loads(line)))
        except ValueError:
            raise KaError(f'no JSON: {line[:200]}') from None
        if 'fail' in objects[-1]:
            raise BadCommand(objects[-1].raw['fail'])
    return objects


class Answer(list):
    """The rows of a listing. .all: every object, with sums and remarks; .more:
    rows that a limit left out; .warnings: what the program said is missing."""

    def __init__(self, objects, wanted=None, warnings=()):
        self.all = [o for o in objects if 'more' not in o.raw]
        self.more = sum(o.raw.get('more', 0) for o in objects)
        self.warnings = list(warnings)
        super().__init__(o for o in self.all
                         if wanted is None or o.raw.get('type') in wanted)

    def first(self, name):
        """The first object of a type, None if there is none."""
        return next((o for o in self.all if o.raw.get('type') == name), None)

    @property
    def total(self):
        """Of ka top and ka diff: the sum of everything."""
        return self.first('top_all') or self.first('diff_all')

    @property
    def incomplete(self):
        """Of errors(): why there may be more errors; '' if these are all. A
        list without errors is no good news otherwise."""
        lines = [o.raw['text'] for o in self.all
                 if o.raw.get('type') == 'incomplete']
        return '; '.join(lines + self.warnings)


# --- who is asked ------------------------------------------------------------

def find_program():
    """The path of the program ka."""
    root = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..')
    build = os.environ.get('KA_BUILD') or os.path.join(root, 'build')
    for path in (os.environ.get('KA_PROGRAM'),
                 os.path.join(build, 'monitor-cmds', 'ka'), 'ka'):
        if path and shutil.which(path):
            return path
    raise KaError('no program ka: build it, or set KA_PROGRAM')


def options(filters):
    """Options as words: task='sh', no_stacks=True, n=5."""
    for key, value in filters.items():
        dashes = '-' if len(key) == 1 else '--'
        yield from () if value is None or value is False else \
            (dashes + key.replace('_', '-'),) if value is True else \
            (dashes + key.replace('_', '-'), str(value))


def every_row(filters):
    """Filters without a limit of rows, unless they have one."""
    return {'n': 0, **filters}


class Ka:
    """Somebody who answers. ASK: gets the words of a command, without the
    leading ka, and returns (text, warnings).

    Filters of all methods are the options of the command by their long names:
    blocks(cache='dentry', task='sh', since=1000), leaks(no_stacks=True)."""

    def __init__(self, ask):
        self.ask = ask

    def text(self, *words):
        """The answer as text."""
        return self.ask([str(word) for word in words])[0]

    def run(self, *words, wanted=None, **filters):
        """An Answer to any command that has -j. WANTED: types of rows."""
        text, warnings = self.ask([*(str(word) for word in words),
                                   *options(filters), '-j'])
        return Answer(parse(text), wanted, warnings)

    def stat(self):
        """The counters of ka stat."""
        return self.run('stat', '-v')[0]

    def blocks(self, where='', **filters):
        """All blocks, live and freed; WHERE: an address or a range."""
        where = (where if isinstance(where, str) else f'{where:x}',)
        return self.run(*filter(None, where), '-s', '-v', wanted=('block',),
                        **every_row(filters))

    def errors(self, **filters):
        """All errors; look at .incomplete, too."""
        return self.run('error', '-s', '-v', wanted=('error',),
                        **every_row(filters))

    def top(self, by='caller', **filters):
        """All rows of ka top; .total is the sum."""
        return self.run('top', '--by', by, '-s', wanted=('top',),
                        **every_row(filters))

    def marks(self):
        return self.run('mark', wanted=('point',))

    def mark(self, name):
        """Make a mark in a VM."""
        return self.run('mark', name)

    def diff(self, first, second=None, by='caller', **filters):
        """What grew from one mark, or time @us of a journal, to another."""
        return self.run('diff', *filter(None, (first, second)), '--by', by,
                        '-s', wanted=('diff',), **every_row(filters))

    def leaks(self, **filters):
        """Search the memory of a VM for leaks: one row a stack, or with
        all=True one a block."""
        return self.run('leak', 'scan', '-s', '-v', wanted=('block',),
                        **every_row(filters))

    def module_leaks(self, name=None, **filters):
        """What modules had not freed when they were unloaded."""
        return self.run('leak', 'module', *filter(None, (name,)), '-s', '-v',
                        wanted=('block',), **every_row(filters))


class Program(Ka):
    """The program ka with options that say whom it asks."""

    def __init__(self, source, program=None):
        super().__init__(self.call)
        self.command = [program or find_program(), '--color=never', *source]

    def call(self, words):
        try:
            done = subprocess.run([*self.command, *words], check=False,
                                  stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, errors='replace')
        except OSError as e:
            raise KaError(str(e)) from e
        if done.returncode and not done.stdout:
            raise (BadCommand if done.returncode == 1 else KaError)(
                done.stderr.strip())
        return done.stdout, done.stderr.splitlines()


class Journal(Program):
    """A journal file; AT: as of this guest microsecond."""

    def __init__(self, path, at=None, program=None):
        at = () if at is None else ('--at', str(at))
        super().__init__(('-f', os.fspath(path), *at), program)


class Vm(Program):
    """A running VM, by QMP's unix socket, which serves one client at a
    time."""

    def __init__(self, socket, program=None):
        super().__init__(('-q', os.fspath(socket)), program)


class Monitor(Ka):
    """A VM by a function that runs a line of the monitor and returns its
    output, for programs that have a connection already."""

    def __init__(self, command):
        super().__init__(lambda words: (command(' '.join(
            ['ka', *map(quoted, words)])).replace('\r', ''), ()))


def quoted(word):
    """The word as ka's command lines have it."""
    quote = '"' if "'" in word else "'"
    return quote + word + quote if re.search(r'\s', word) else word
