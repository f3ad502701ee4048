# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's health: reports of its kernel (oops, warning, lockup and so on)
as findings. health_kinds.py is the table of reports.

    lines = health_lines.read_rows(rows of `ka log -j`)
    for incident in health.incidents(lines): ...

A report is the lines of one writer (a task, or an interrupt on one CPU) from
the line that begins it, to its end mark, to the begin of another report, or to
a pause. What follows from an oops in the same task is part of its incident, and
so is the panic that an incident leads to.
"""
import contextlib
import dataclasses
import functools
import os
import re

from scripts.ka import KaError

from . import clean, health_frames, health_kinds, health_lines
from .finding import Finding, hash_words, read_frame
from ..prepared import ROOT
from ..qmp import GuestError

MOST_ROWS = 100000          # lines of ka log
MOST_INCIDENTS = 500
MOST_REPORT = 1000          # lines of a report that count
MOST_SHOWN = 50             # lines of a report in the text of its finding
MOST_FRAMES = 64
PAUSE = 2 * 10**9           # ns between two lines of a report, at most
AFTER = 10 * 10**9          # ns, at most, from an oops to what follows from it
MOST_TITLE = 120
NO_FUNCTION = 'an unknown function'


@dataclasses.dataclass
class Incident:
    """What the kernel reported, once.

    kind    a key of health_kinds.MEANINGS
    text    the lines of the report
    console the same as a console prints them
    task    name-pid, or ''
    cpu     or None
    frames  [finding.Frame] of the code that the report is about, the leaf
            first; empty if the report has none
    first   index of its first line
    us      time of the VM's clock of that line, or None
    ns      the kernel's time of its first and of its last line
    """
    kind: str
    title: str
    alt: tuple
    text: str
    console: str
    task: str
    cpu: int
    frames: list
    first: int
    us: int
    ns: tuple
    row: health_kinds.Row


# --- reports: which lines belong together ------------------------------------

class Report:
    """Lines of a report.

    rows      (row, match) of those of the table that can fit it
    ended     its end mark was there
    all_cpus  the kernel prints the stacks of other CPUs, too
    next      the report that its writer began before it had ended
    """

    def __init__(self, line, rows):
        self.lines, self.rows = [line], rows
        self.ended = self.all_cpus = False
        self.next = None

    @property
    def deadly(self):
        return self.rows[0][0].deadly

    def age(self, line):
        """Return the ns from its last line to LINE, 0 if they are not known."""
        last = self.lines[-1]
        return 0 if None in (last.ns, line.ns) else line.ns - last.ns

    def takes(self, line):
        """Does a line that begins nothing belong to it?"""
        return not self.ended and self.age(line) <= PAUSE

    def add(self, line):
        if len(self.lines) < MOST_REPORT:
            self.lines.append(line)
        text = line.text
        self.all_cpus |= 'Sending NMI from CPU' in text
        self.ended |= text.startswith('---[ end ') or text.startswith('======')


class Book:
    """The reports of a log, line by line."""

    def __init__(self):
        self.reports, self.dropped = [], 0
        self.open, self.panicked, self.newest = {}, {}, {}

    def read(self, line):
        key = line.boot, line.writer
        report = self.open.get(key)
        if len(self.reports) == MOST_INCIDENTS and \
                health_kinds.can_begin(line.text):
            self.dropped += 1
            self.open.pop(key, None)
            return
        rows = health_kinds.find_rows(line.text)
        if rows:
            cause = self.cause_of(line, report)
            if not cause:
                self.begin(key, Report(line, rows), report)
                return
            self.open[key] = report = cause
            report.ended = False
            if health_kinds.PANIC.search(line.text):
                self.panicked[line.boot] = report
        elif report and not report.takes(line):
            return
        report = report or self.of_all_cpus(line)
        if report:
            report.add(line)

    def begin(self, key, report, before):
        """Begin a report. BEFORE: the last one of its writer."""
        self.reports.append(report)
        if report.rows[0][0].single:
            return
        if before and before.takes(report.lines[0]):
            before.next = report
        self.open[key] = self.newest[key[0]] = report
        if health_kinds.PANIC.search(report.lines[0].text):
            self.panicked[key[0]] = report

    def cause_of(self, line, report):
        """Return the report that the beginning of another one follows from.
        REPORT: the last one of its writer."""
        if line.boot in self.panicked:
            return self.panicked[line.boot]
        if health_kinds.CONSEQUENCE.search(line.text):
            return report or self.newest.get(line.boot)
        if not report or not report.deadly:
            return None
        follows = health_kinds.FOLLOWS.search(line.text)
        return report if follows and report.takes(line) or \
            report.age(line) <= AFTER and (line.writer or not report.ended) \
            else None

    def of_all_cpus(self, line):
        """Return the report in which the kernel prints the stacks of other
        CPUs, too."""
        report = self.newest.get(line.boot)
        return report if report and report.all_cpus and \
            line.writer[:1] == 'C' and report.takes(line) else None


# --- what a report says ------------------------------------------------------

# What in a title differs from boot to boot, and what stands for it.
CHANGING = [(re.compile(pattern), text) for pattern, text in (
    (r'(?<=[^a-zA-Z0-9])(?:0x)?[0-9a-f]{6,}', 'ADDR'),
    (r'\d{1,3}(?:\.\d{1,3}){3}', 'IP'),
    (r'(\.\w+)(?::\d+)+', r'\1:LINE'),
    (r'([a-zA-Z][\w.]+)\+0x[0-9a-z]+/0x[0-9a-z]+', r'\1'),
    (r'CPU#\d+', 'CPU'),
    (r'(?<=\W)\d+(?=\W|$)', 'NUM'),
    (r'\d{7,}', 'NUM'))]


def tidy(title):
    """Return a title that all boots have, as one line."""
    for pattern, text in CHANGING:
        title = pattern.sub(text, title)
    title = ''.join(c for c in title.replace('\t', ' ') if ' ' <= c < '\x7f')
    return re.sub(' +', ' ', title[:MOST_TITLE]).strip()


def is_guess(text):
    """Is it a frame that the kernel only guesses?"""
    return text.endswith(' (unreliable)') or \
        '<EOI>' not in text and health_frames.GUESS.search(text)


def sure_lines(report):
    """Return the texts of a report without guesses."""
    first, *rest = report.lines
    return [first.text,
            *(line.text for line in rest if not is_guess(line.text))]


def describe(report):
    """Return (the row that fits a report, its title, more titles, the function
    that it is named after), or None. If the report has no stack, the one in its
    midst may have it."""
    texts = sure_lines(report)
    for row, match in report.rows:
        words = [w or '' for w in match.groups()]
        if row.more:
            m = next(filter(None, map(row.more.search, texts)), None)
            if not m:
                continue
            words += m.groups()
        name = health_frames.name(texts, row.trails, row.skip, row.pick) or \
            report.next and health_frames.name(
                texts + sure_lines(report.next), row.trails, row.skip,
                row.pick)
        titles = [tidy(t.format(*words, f=name or NO_FUNCTION))
                  for t in (row.title, *row.alt)]
        return row, titles[0], tuple(titles[1:]) if name else (), name
    return None


COMM = re.compile(r'CPU: (\d+) (?:UID: \d+ )?PID: (\d+) Comm: (.{1,40}?) '
                  r'(?:Not tainted|Tainted|Kdump)')
TASK = re.compile(r'INFO: task (.{1,40}?):(\d+) ')


def whose(lines):
    """Return (task, CPU) of a report."""
    task, cpu = lines[0].task, lines[0].cpu
    for line in lines:
        m = COMM.search(line.text)
        if m:
            task, cpu = task or f'{m[3]}-{m[2]}', \
                int(m[1]) if cpu is None else cpu
            break
    m = TASK.search(lines[0].text)
    return f'{m[1]}-{m[2]}' if m else task, cpu


def make(report):
    """Return the incident of a report, or None if no row fits it."""
    found = describe(report)
    if not found:
        return None
    row, title, alt, function = found
    first = report.lines[0]
    return Incident(row.kind, title, alt,
                    '\n'.join(line.text for line in report.lines),
                    '\n'.join(line.printed for line in report.lines),
                    *whose(report.lines),
                    health_frames.code(sure_lines(report), function,
                                       row.is_exception)[:MOST_FRAMES],
                    first.index, first.us,
                    (first.ns or 0, report.lines[-1].ns or 0), row)


def read(lines):
    """Return ([Incident], number of reports that were not kept)."""
    book = Book()
    for line in lines:
        book.read(line)
    found = [make(r) for r in book.reports]
    return [i for i in found if i], book.dropped


def incidents(lines):
    """Return what a kernel reported, of lines of health_lines.py, in their
    order."""
    return read(lines)[0]


# --- identity ----------------------------------------------------------------

HELPERS = os.path.join(ROOT, 'monitor-cmds', 'output', 'helper-functions.def')


@functools.lru_cache(maxsize=None)
def names():
    """Return the rows of helper-functions.def: patterns of helpers, beginnings
    of entries and of system calls."""
    with open(HELPERS, encoding='utf-8') as f:
        text = f.read()
    helper, entry, syscall = (
        re.findall(rf'^{macro}\("(.+)"\)', text, re.M)
        for macro in ('MC_HELPER', 'MC_ENTRY', 'MC_SYSCALL'))
    return re.compile('|'.join(re.escape(p).replace(r'\*', '.*')
                               for p in helper)), tuple(entry), syscall


def source_function(name):
    """Return the name that a function has in the source."""
    for prefix in names()[2]:
        if name.startswith(prefix) and name != prefix:
            name = 'sys_' + name.removeprefix(prefix)
            break
    return re.match(r'\.*[^.]*', name)[0].removesuffix('_noprof')


def words_of(frames):
    """Return (words for fold, words for exact, whether the stack is known to
    its end)."""
    helpers, entries, _ = names()
    fold, exact, seen = [], [], set()
    for frame in frames:
        function = source_function(frame.function)
        if not frame.module and function.startswith(entries):
            return fold, exact, bool(exact)
        m = re.search(r'\+0x([0-9a-f]+)', frame.text)
        exact += [frame.module, frame.function, m[1] if m else '0']
        key = frame.module, function
        if key not in seen and (frame.module or
                                not helpers.fullmatch(function)):
            fold += key
        seen.add(key)
    return fold, exact, False


def identity(kind, stacks):
    """Return (fold, exact, weak) of stacks, [(name, frames)], by the rules of
    docs/errors.md: those of monitor-cmds/output/identity.c."""
    fold, exact, whole = [kind], [kind], True
    for name, frames in stacks:
        more_fold, more_exact, known = words_of(frames)
        fold += name, *more_fold
        exact += name, *more_exact
        whole &= known
    return hash_words(*fold), hash_words(*exact), not whole


# --- findings ----------------------------------------------------------------

def excerpt(incident):
    lines = incident.text.split('\n')
    more = len(lines) - MOST_SHOWN
    return '\n'.join('    ' + clean.line(line.expandtabs(), 200)
                     for line in lines[:MOST_SHOWN]) + \
        (f'\n    ... {more} more lines: ka log' if more > 0 else '')


def head(incident):
    where = [incident.task and f'task={clean.line(incident.task, 60)}',
             f'cpu={incident.cpu}' if incident.cpu is not None else '',
             f'at={incident.frames[0].text}' if incident.frames else '',
             f'@{incident.us}us' if incident.us is not None else '']
    return ' '.join([f'kernel[{incident.title}]', *filter(None, where)])


def from_incident(incident):
    """Return the finding of an incident. If its stack is another one each time
    (wandering), or not known, the title is its identity."""
    kind, row = incident.kind, incident.row
    symbols = [f.text for f in incident.frames]
    by_title = hash_words(kind, incident.title)
    if row.wandering or not symbols:
        fold = exact = by_title
        weak = NO_FUNCTION in incident.title
    else:
        fold, exact, weak = identity(
            kind, [('error', incident.frames)])
    return Finding(
        kind=kind, title=incident.title, alt=incident.alt, fold=fold,
        exact=exact, weak=weak, kasan=incident.console,
        text=f'{head(incident)}\n{excerpt(incident)}',
        row={'error': kind, 'title': incident.title, 'task': incident.task,
             'cpu': incident.cpu, 'us': incident.us,
             **({'error_stack_symbols': symbols} if symbols else {})})


def merge(found):
    """Return the first one of equal findings; it says how many there are."""
    kept = {}
    for f in found:
        same = kept.setdefault(f.exact, f)
        if same is not f:
            same.blocks += 1
    for f in kept.values():
        if f.blocks > 1:
            f.text += f'\n    {f.blocks} reports like this one'
    return list(kept.values())


def with_console(of_log, of_console, last):
    """Return the incidents of a log that ended at LAST (ns) because the VM was
    lost, and those that only its console has, or has to their ends."""
    more = [i for i in of_console if i.ns[1] > last]
    begins = {i.ns[0] // 1000 for i in more}
    return [i for i in of_log if i.ns[0] // 1000 not in begins] + more


def log_rows(vm, state):
    """Return the rows of ka log."""
    try:
        rows = [r.raw for r in vm.run('log', '-n', MOST_ROWS, wanted=('log',))
                ] if vm else []
        state['health.why'] = '' if rows else 'it has no lines'
    except KaError as e:
        rows, state['health.why'] = [], str(e)
    return rows


def findings(vm, state, console, lost=False):
    """Return what the kernel of a VM or journal (scripts/ka.py) reported; VM is
    None if there is neither. If ka has no log, or if the VM is LOST, the text
    that CONSOLE() returns is read, too: programs of the guest can write to that
    as well. STATE gets what is not known."""
    rows = log_rows(vm, state)
    lines = health_lines.read_rows(rows)
    found, dropped = read(lines)
    if lost or not rows:
        last = max((line.ns for line in lines if line.ns), default=-1)
        more, more_dropped = read(health_lines.read_console(console()))
        found, dropped = with_console(found, more, last), dropped + more_dropped
    state['health.dropped'] = dropped
    state['health.unread'] = sum(r.get('lost', 0) for r in rows) + \
        (rows[0]['number'] - 1 if rows else 0)
    return merge(map(from_incident, found))


def warnings(state):
    """Yield what may be missing, of the STATE that findings() filled."""
    if state.get('health.why'):
        yield "health: the console was read in place of the kernel's log: " + \
              state['health.why']
    if state.get('health.dropped'):
        yield f"health: {state['health.dropped']} more reports of the kernel " \
              f'were not kept, at most {MOST_INCIDENTS} are'
    if state.get('health.unread'):
        yield f"health: {state['health.unread']} lines of the kernel's log " \
              'were not read'


@contextlib.contextmanager
def console_of_lost(guest, report):
    """If the VM is lost in the block, keep its console: its folder is
    removed."""
    try:
        yield
    except GuestError:
        report.console = guest.console
        raise
