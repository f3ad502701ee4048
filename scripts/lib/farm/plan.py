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
from . import FarmError

MOST_LINES = 100000
MOST_PLAN = 64 << 20            # bytes of plan.jsonl
KEY_DIGITS = 32
NAME = re.compile(r'[A-Za-z0-9][\w.+-]{0,63}')
MEM = re.compile(r'[1-9][0-9]{0,7}[MG]?')


@dataclasses.dataclass(frozen=True)
class Line:
    """One VM.

    batch     lines that are compared with those of earlier batches, such as
              those of one night. Batches are in the order of their names
    job       name of the job in the plan
    seed      is given to the workload as ka.seed=N
    options   more options of scripts/sweep; qemu: more arguments of QEMU
    journal   keep the journal if there are findings
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

    @property
    def text(self):
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    def __str__(self):
        return f'{self.key} {self.job} {self.kernel} seed={self.seed} ' \
            f'smp={self.smp} mem={self.mem}'

    @property
    def key(self):
        return hashlib.sha256(self.text.encode()).hexdigest()[:KEY_DIGITS]


TYPES = {f.name: f.type for f in dataclasses.fields(Line)}
AXES = 'kernel', 'seed', 'smp', 'mem'
JOB_KEYS = tuple(k for k in TYPES if k not in ('batch', 'job')) + ('name',)
PATHS = 'initrd', 'share'
# name -> (default, what it limits)
LIMITS = {'vms': (0, 'VMs at once; 0: as many as fit the CPUs'),
          'minutes': (60, 'minutes of a worker'),
          'attempts': (2, 'runs of a line whose VM did not come to an end')}


@dataclasses.dataclass(frozen=True)
class Limits:
    """What [limits] of a plan says."""
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
        return numbers(value, what)
    values = value if isinstance(value, list) else [value]
    if not values:
        raise FarmError(f'{what}: no values')
    return [typed(name, v, what) for v in values]


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
                            'letters, digits and . _ + -')
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
        self.batch = batch or whole.get('batch') or \
            datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%d')
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
        return check(Line(batch=str(self.batch), job=str(name), **point,
                          **made), what)


def read_limits(value):
    table(value, LIMITS, '[limits]')
    for key, number in value.items():
        if type(number) is not int or not 0 <= number <= 100000:
            raise FarmError(f'[limits]: {key} is not 0 to 100000')
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

def select(lines, only):
    """Return the lines that all words KEY=PATTERN,... of only accept."""
    for word in only:
        key, equal, patterns = word.partition('=')
        if key not in (*AXES, 'job') or not equal:
            raise FarmError(f"--only '{word}' is not KEY=VALUE with a KEY of "
                            + ' '.join((*AXES, 'job')))
        patterns = patterns.split(',')
        lines = [line for line in lines if any(
            fnmatch.fnmatchcase(str(getattr(line, key)), p)
            for p in patterns)]
    return lines


def missing_here(lines):
    """Yield a text for each kernel, initrd and share that is not on this
    machine. Workers may run on another one, so that is no error."""
    known = {k.removeprefix('kernel-') for k, v in paths().items() if v}
    counts = collections.Counter(
        (name, getattr(line, name)) for line in lines
        for name in ('kernel', *PATHS))
    for (name, value), n in counts.items():
        if value in ('', 'none') or value in known or os.path.exists(value):
            continue
        why = 'there is no such file' if '/' in value else \
            'no kernel of that name is prepared'
        yield f'{name} {value}: {why} on this machine ({n} VMs)'


def from_dict(value, what):
    """Return the line of a dict, which may be of any origin."""
    table(value, TYPES, what)
    if set(value) != set(TYPES):
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
