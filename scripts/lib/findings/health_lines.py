# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of a guest kernel's log, from `ka log -j` or from a console."""
import dataclasses
import re

MOST_LINE = 1000        # characters of a line that count

# <6>[    1.234567][   T42] text: each of the first three may be missing.
CONSOLE = re.compile(
    r'(?:.*? login: )?(?:<(?P<level>\d{1,3})>)?'
    r'\[ *(?P<s>\d{1,9})\.(?P<us>\d{6})\](?:\[ *(?P<writer>[TC]\d{1,9})\])? ?')


@dataclasses.dataclass(frozen=True)
class Line:
    """A line that the kernel printed.

    writer  T42 is the task with that pid, C1 an interrupt on CPU 1; '' if the
            log does not say
    index   position of the line in its source
    ns      the kernel's time, or None
    boot    0, 1, ...: grows with each reset of the VM
    task    name and pid of the task, if known; in an interrupt the task that
            was interrupted
    cpu     or None
    us      the VM's clock, or None
    """
    text: str
    writer: str = ''
    index: int = 0
    ns: int = None
    boot: int = 0
    task: str = ''
    cpu: int = None
    us: int = None

    @property
    def printed(self):
        """The line as a console has it."""
        if self.ns is None:
            return self.text
        us = self.ns // 1000
        return f'[{us // 10**6:5}.{us % 10**6:06}] {self.text}'


def read_row(row, index):
    """Return the line of a row of `ka log -j`."""
    interrupt = 'caller_cpu' in row
    writer = f"C{row['caller_cpu']}" if interrupt else \
        f"T{row['caller_pid']}" if 'caller_pid' in row else ''
    return Line(row['text'][:MOST_LINE], writer, index, row.get('ns'),
                row.get('boot', 0),
                f"{row['comm']}-{row['pid']}" if 'comm' in row else '',
                row.get('cpu', row.get('caller_cpu')), row.get('us'))


def read_rows(rows):
    """Return the lines that the kernel itself printed. Those that programs
    wrote to /dev/kmsg have a facility: the kernel lets no program use its
    own, 0."""
    return [read_row(row, i) for i, row in enumerate(rows)
            if row.get('type', 'log') == 'log' and not row.get('facility')]


def read_console(console, after_ns=-1):
    """Return the lines of a console that are younger than AFTER_NS. A line
    without the kernel's time, as programs print, is none of the kernel's,
    unless no line has a time."""
    lines, boot = [], -1
    times = CONSOLE.search(console) is not None
    for index, raw in enumerate(console.split('\n')):
        raw = raw[:MOST_LINE].rstrip('\r')
        m = CONSOLE.match(raw)
        if not m:
            if not times and raw:
                lines.append(Line(raw, '', index))
            continue
        if m['level'] and int(m['level']) >= 8:
            continue            # of a program
        ns = int(m['s']) * 10**9 + int(m['us']) * 1000
        text = raw[m.end():]
        boot += text.startswith('Linux version ')
        if ns > after_ns:
            lines.append(Line(text, m['writer'] or '', index, ns,
                              max(boot, 0)))
    return lines
