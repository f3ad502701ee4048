# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan: a file that says which VMs run, as lines, one a VM.

    [axes]                      every combination of these values
    kernel = ["6.12", "6.1"]
    seed = "1-8"

    [[job]]                     is run with each of them
    name = "boot"
    append = "ka.run=work ka.end=poweroff"

The key of a line is a hash of all that it says. So the same plan has the same
keys, and a line whose result is there need not run again.
"""
import collections
import dataclasses
import datetime
import fnmatch
import hashlib
import itertools
import json
import os
import re
import tomllib

from ..prepared import paths
from . import FarmError, options

MOST_LINES = 100000
MOST_PLAN = 64 << 20            # bytes of plan.jsonl
KEY_DIGITS = 32
NAME = re.compile(r'[A-Za-z0-9][\w.+-]{0,63}', re.ASCII)
NAME_RULE = 'at most 64 letters, digits and . _ + -'
MEM = re.compile(r'[1-9][0-9]{0,7}[MG]?')


@dataclasses.dataclass(frozen=True)
class Line:
    """One VM.

    batch     lines that are compared with those of earlier batches, such as
              those of one night. Batches are in the order of their names
    job       name of the job in the plan
    seed      is given to the workload as ka.seed=N
    run       the script that the guest runs, and must end with status 0
    expect    texts that its console must show
    options   more options of scripts/sweep; qemu: more arguments of QEMU
    journal   keep the journal if the run is not clean
    """
    batch: str
    job: str
    kernel: str
    seed: int = 1
    smp: int = 1
    mem: str = '1G'
    initrd: str = ''
    share: str = ''
    append: str = ''
    timeout: int = 600
    options: tuple = ()
    qemu: tuple = ()
    journal: bool = False
    run: str = ''
    expect: tuple = ()

    @property
    def text(self):
        """The line as JSON. Its key is a hash of that, so keys that came later
        are in it only if a plan uses them."""
        made = dataclasses.asdict(self)
        return json.dumps({k: v for k, v in made.items()
                           if k not in LATER or v}, sort_keys=True)

    def __str__(self):
        return f'{self.key} {self.job} {self.kernel} seed={self.seed} ' \
            f'smp={self.smp} mem={self.mem}'

    @property
    def key(self):
        return hashlib.sha256(self.text.encode()).hexdigest()[:KEY_DIGITS]


TYPES = {f.name: f.type for f in dataclasses.fields(Line)}
AXES = 'kernel', 'seed', 'smp', 'mem'
JOB_KEYS = tuple(k for k in TYPES if k not in ('batch', 'job')) + ('name',)
LATER = 'run', 'expect'     # keys that older lines do not have
PATHS = 'initrd', 'share', 'run'
ONLY = (*AXES, 'job')        # keys that cut a plan
MOST_LISTED = 10            # values that an error names
# name -> (least, most)
LIMITS = {'vms': (0, 100000), 'minutes': (1, 100000), 'attempts': (1, 999)}


@dataclasses.dataclass(frozen=True)
class Limits:
    """What [limits] of a plan says.

    vms       VMs at once; 0: as many as fit the CPUs
    minutes   a worker begins no VM after this time
    attempts  runs of a line whose VM did not come to an end
    """
    vms: int = 0
    minutes: int = 60
    attempts: int = 2


# --- values ------------------------------------------------------------------

def numbers(text, what):
    """Return the numbers of a text such as 1-3,7."""
    found = []
    for part in str(text).split(','):
        m = re.fullmatch(r'\s*(\d{1,9})(?:-(\d{1,9}))?\s*', part)
        if not m or int(m[2] or m[1]) - int(m[1]) not in range(MOST_LINES):
            raise FarmError(f"{what}: '{part}' is not N or N-M")
        found += range(int(m[1]), int(m[2] or m[1]) + 1)
    return found


def axis(name, value, what):
    """Return the values of an axis as a list."""
    what = f'{what}: {name}'
    if name in ('seed', 'smp') and isinstance(value, str):
        values = numbers(value, what)
    else:
        values = [typed(name, v, what) for v in
                  (value if isinstance(value, list) else [value])]
    if not values:
        raise FarmError(f'{what}: no values')
    twice = [v for v, n in collections.Counter(values).items() if n > 1]
    if twice:
        raise FarmError(f'{what}: {twice[0]} is there twice')
    return values


def typed(name, value, what):
    """Return a value of a key of a line, with the type of the key."""
    kind = TYPES[name]
    if kind is tuple:
        if not isinstance(value, (list, tuple)) or \
                not all(isinstance(v, str) for v in value):
            raise FarmError(f'{what}: not a list of texts')
        return tuple(value)
    if type(value) is not kind:     # pylint: disable=unidiomatic-typecheck
        raise FarmError(f'{what}: {value!r} is no {kind.__name__}')
    return value


def check(line, what):
    """Raise FarmError if a line cannot be run."""
    for name in ('batch', 'job'):
        if not NAME.fullmatch(getattr(line, name)):
            raise FarmError(f"{what}: '{getattr(line, name)}' is no name: "
                            + NAME_RULE)
    for name, most in (('smp', 255), ('timeout', 1000000)):
        if not 1 <= getattr(line, name) <= most:
            raise FarmError(f'{what}: {name} is not 1 to {most}')
    if not MEM.fullmatch(line.mem):
        raise FarmError(f"{what}: mem '{line.mem}' is no size such as 512M")
    if not 0 <= line.seed < 1 << 32:
        raise FarmError(f'{what}: seed is not 0 to 2^32-1')
    if not line.kernel or '\n' in line.text or len(line.text) > 16384:
        raise FarmError(f'{what}: no kernel, or the line is too long')
    return line


# --- a plan file -------------------------------------------------------------

def substitute(value, names):
    """Replace {kernel}, {seed}, {smp} and {mem} in texts."""
    if isinstance(value, tuple):
        return tuple(substitute(v, names) for v in value)
    if not isinstance(value, str):
        return value
    for name, text in names.items():
        value = value.replace('{' + name + '}', str(text))
    return value


def place(path, folder):
    """Return a path relative to the folder of the plan as an absolute one."""
    return os.path.normpath(os.path.join(folder, path)) if path else ''


def table(value, keys, what):
    """Check the keys of a table."""
    if not isinstance(value, dict):
        raise FarmError(f'{what}: not a table')
    for key in value:
        if key not in keys:
            raise FarmError(f"{what}: no key '{key}'; there are: "
                            + ' '.join(keys))
    return value


def batch_name(name):
    """Return the name of a batch: by default, today's date."""
    if name is None:
        return datetime.datetime.now(datetime.timezone.utc).strftime(
            '%Y-%m-%d')
    if not NAME.fullmatch(str(name)):
        raise FarmError(f"batch '{name}' is no name: {NAME_RULE}")
    return str(name)


class Plan:
    """The lines of a plan file, and its limits. values: of axes, instead of
    those of the file."""

    def __init__(self, text, folder, batch=None, values=None):
        try:
            whole = tomllib.loads(text)
        except tomllib.TOMLDecodeError as e:
            raise FarmError(f'plan: {e}') from e
        table(whole, ('batch', 'axes', 'job', 'limits'), 'plan')
        self.folder, self.values = folder, values or {}
        self.batch = batch_name(whole.get('batch') if batch is None
                                else batch)
        self.axes = table(whole.get('axes', {}), AXES, '[axes]')
        self.limits = read_limits(whole.get('limits', {}))
        jobs = whole.get('job', [])
        if not isinstance(jobs, list) or not jobs:
            raise FarmError('plan: no [[job]]')
        self.lines = []
        for job in jobs:
            self._add(table(job, JOB_KEYS, '[[job]]'))
        keys = {line.key for line in self.lines}
        if len(keys) < len(self.lines):
            raise FarmError('plan: a line is there twice; give jobs '
                            'different names')

    def _add(self, job):
        name = job.get('name', '')
        what = f"job '{name}'"
        axes = {**self.axes, **{k: job[k] for k in AXES if k in job},
                **self.values}
        if 'kernel' not in axes:
            raise FarmError(f'{what}: no kernel')
        values = {k: axis(k, v, what) for k, v in axes.items()}
        rest = {k: typed(k, v, f'{what}: {k}') for k, v in job.items()
                if k not in AXES and k != 'name'}
        for point in itertools.product(*values.values()):
            if len(self.lines) == MOST_LINES:
                raise FarmError(f'plan: more than {MOST_LINES} lines')
            self.lines.append(self._line(name, dict(zip(values, point)),
                                         rest, what))

    def _line(self, name, point, rest, what):
        names = {'seed': 1, 'smp': 1, 'mem': '1G', **point}
        made = {k: substitute(v, names) for k, v in rest.items()}
        for key in PATHS:
            if made.get(key) and made[key] != 'none':
                made[key] = place(made[key], self.folder)
        if '/' in point['kernel']:
            point['kernel'] = place(point['kernel'], self.folder)
        line = check(Line(batch=self.batch, job=str(name), **point,
                          **made), what)
        options.check(line, what)
        return line


def read_limits(value):
    table(value, LIMITS, '[limits]')
    for key, number in value.items():
        least, most = LIMITS[key]
        # pylint: disable-next=unidiomatic-typecheck
        if type(number) is not int or not least <= number <= most:
            raise FarmError(f'[limits]: {key} is not {least} to {most}')
    return Limits(**value)


def read_file(path, batch=None, values=None):
    """Return the plan of a file."""
    try:
        with open(path, encoding='utf-8') as f:
            text = f.read(1 << 20)
    except (OSError, UnicodeDecodeError) as e:
        raise FarmError(f'plan: {e}') from e
    return Plan(text, os.path.dirname(os.path.realpath(path)), batch, values)


# --- lines -------------------------------------------------------------------

def read_only(word):
    """Return {key: [pattern]} of a word KEY=V,V,KEY=V of --only. A part without
    '=' is one more pattern of the key before it."""
    found, patterns = {}, None
    for part in word.split(','):
        key, equal, pattern = part.rpartition('=')
        if equal and (key not in ONLY or key in found):
            why = 'there twice' if key in found else 'no key of a line'
            raise FarmError(f"--only '{word}': '{key}' is {why}; keys are "
                            + ' '.join(ONLY))
        if equal:
            patterns = found[key] = []
        if patterns is None:
            raise FarmError(f"--only '{word}' is not KEY=VALUE,... with keys "
                            'of ' + ' '.join(ONLY))
        patterns.append(pattern)
    return found


def accepts(pattern, value):
    """Return whether a pattern, or a range of numbers, has a value."""
    span = re.fullmatch(r'(\d{1,9})-(\d{1,9})', pattern)
    if span and isinstance(value, int):
        return int(span[1]) <= value <= int(span[2])
    return fnmatch.fnmatchcase(str(value), pattern)


def listed(values):
    """Return some values as text."""
    words = [str(v) for v in values]
    more = len(words) - MOST_LISTED
    return ' '.join(words[:MOST_LISTED]) + (f' and {more} more'
                                            if more > 0 else '')


def select(lines, only):
    """Return the lines that all keys of all words of only accept. A pattern
    that no line has is refused: it was mistyped."""
    wanted = [pair for word in only for pair in read_only(word).items()]
    for key, patterns in wanted:
        values = sorted({getattr(line, key) for line in lines})
        for pattern in patterns:
            if not any(accepts(pattern, v) for v in values):
                raise FarmError(f"--only {key}={pattern}: no line has it; "
                                f'{key} of the lines: {listed(values)}')
    found = [line for line in lines if all(
        any(accepts(p, getattr(line, key)) for p in patterns)
        for key, patterns in wanted)]
    if lines and not found:
        raise FarmError(f"--only {' '.join(only)}: no line has all of it")
    return found


def missing_here(lines):
    """Yield a text for each kernel and file of the lines that is not on this
    machine. Workers may run on another one, so that is no error."""
    known = {k.removeprefix('kernel-') for k, v in paths().items() if v}
    counts = collections.Counter(
        pair for line in lines for pair in
        [*((name, getattr(line, name)) for name in ('kernel', *PATHS)),
         *options.files(line)])
    for (name, value), n in counts.items():
        if value in ('', 'none') or value in known or os.path.exists(value):
            continue
        why = 'there is no such file' if '/' in value else \
            'no kernel of that name is prepared'
        yield f'{name} {value}: {why} on this machine ({n} VMs)'


def not_replaced(lines):
    """Yield a text for each {name} in the lines that stands for nothing."""
    counts = collections.Counter(
        (key, name) for line in lines for key in ('append', *PATHS, 'expect',
                                                  'options', 'qemu')
        for text in [getattr(line, key)]
        for name in re.findall(r'\{[a-z]+\}', ' '.join(text) if isinstance(
            text, tuple) else text))
    for (key, name), n in counts.items():
        yield f'{key}: {name} is not replaced, it is none of {{kernel}} ' \
            f'{{seed}} {{smp}} {{mem}} ({n} VMs)'


def from_dict(value, what):
    """Return the line of a dict, which may be of any origin."""
    table(value, TYPES, what)
    if set(TYPES) - set(value) - set(LATER):
        raise FarmError(f'{what}: keys are missing')
    return check(Line(**{k: typed(k, v, f'{what}: {k}')
                         for k, v in value.items()}), what)


def render(lines, limits):
    """Return the text of plan.jsonl."""
    head = {'ka_farm_plan': 1, 'limits': dataclasses.asdict(limits)}
    return ''.join(text + '\n' for text in
                   [json.dumps(head), *(line.text for line in lines)])


def parse(text):
    """Return (lines, limits) of the text of plan.jsonl."""
    rows = text.splitlines()
    try:
        head = json.loads(rows[0])
        if head['ka_farm_plan'] != 1:
            raise ValueError('its version is not 1')
        lines = [from_dict(json.loads(row), f'plan.jsonl: line {number}')
                 for number, row in enumerate(rows[1:], 2)]
        return lines, read_limits(head['limits'])
    except (IndexError, KeyError, TypeError, ValueError,
            RecursionError) as e:
        raise FarmError(f'plan.jsonl: {e!r}') from e
