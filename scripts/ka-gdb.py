# SPDX-License-Identifier: GPL-2.0-or-later
"""ka in gdb: `source scripts/ka-gdb.py` while attached to a traced VM.

  ka ...        a command of ka, as `monitor ka ...`; words that begin with $,
                &, * or ( are expressions of gdb: ka show $rdi,
                ka show (((struct file *)$rdi)->f_inode)
  ka goto ...   in a replay, go to this place; gdb's breakpoints are off then
  ka-bt VA      the stacks of the block at VA, as gdb shows frames: with
                arguments' names and lines when a vmlinux is loaded
  $_ka(VA)      the block at VA in one line, or "no block": for print, display
                and conditions, as in $_ka($rdi)[0] == 'F'
  $_ka_task()   the address of the task_struct of the task that the selected
  ka goto ...   in a replay, go to this place; breakpoints of gdb are off then
  set ka-trace on
                print at each stop what is new in the live trace (ka trace on)
  $_ka_struct("TYPE.MEMBER", VA)
                a member of the object at VA by the kernel's own types, without
                a vmlinux: a number, or text: $_ka_struct("file.f_flags", $rdi)
  ka symbols    load the symbols of the kernel, its modules and BPF programs
                that run now, with what gdb needs to walk their stacks

Unless gdb has a symbol file, it gets these symbols at once if it is attached,
else at the first stop, and new ones when modules have come or gone: `set
ka-auto-symbols off` ends this. With them, frames of interrupts and exceptions
are printed by name. A stack ends at the first frame of user code, unless gdb
has the symbols of that program.

Nothing of it is needed: all answers are the monitor's.
"""
import atexit
import base64
import gzip
import itertools
import json
import os
import re
import tempfile
import time

import gdb
from gdb.FrameDecorator import FrameDecorator

EXPRESSION = '$&*('
PIDS = 1 << 22          # the kernel's PID_MAX_LIMIT
STACK = 1 << 16         # the largest stack of a task
STACKS = (('alloc', 'allocated'), ('rcu', 'queued by kfree_rcu()'),
          ('free', 'freed'))


def qemu_monitor(line):
    try:
        text = gdb.execute('monitor ' + line, to_string=True)
    except gdb.error as e:
        raise gdb.GdbError(f'ka: {e}') from e
    return text.replace('\r', '')


def monitor(line):
    return qemu_monitor('ka ' + line)


def address_of(value, word):
    """Return a value of gdb as an address in hex. WORD: how it was written. A
    convenience variable that nobody has set is void."""
    if value.type.code == gdb.TYPE_CODE_VOID:
        raise gdb.GdbError(f'ka: {word} has no value')
    try:
        return f'{int(value) & 0xffffffffffffffff:x}'
    except (gdb.error, TypeError) as e:
        raise gdb.GdbError(f'ka: {word} is no address: {e}') from e


def evaluate(word):
    """Return the address that a gdb expression means, in hex."""
    try:
        value = gdb.parse_and_eval(word)
    except gdb.error as e:
        raise gdb.GdbError(f'ka: {word}: {e}') from e
    return address_of(value, word)


def split(text):
    """Split into words; blanks in parentheses and brackets do not split."""
    words, depth, word = [], 0, ''
    for c in text + ' ':
        depth += (c in '([') - (c in ')]')
        if c.isspace() and depth <= 0:
            words += [word] if word else []
            word = ''
        else:
            word += c
    return words


def as_word(word, of_tasks):
    """Return the value of an expression as a word of ka: in hex, but a pid in
    decimal."""
    value = int(evaluate(word), 16)
    return str(value) if of_tasks and value < PIDS else f'{value:x}'


def command_line(text):
    words = split(text)
    of_tasks = words[:1] in (['task'], ['files'])
    return ' '.join(as_word(w, of_tasks) if w[0] in EXPRESSION else w
                    for w in words)


def rows_of(line):
    """Return the JSON objects that a command prints; raise its error."""
    rows = [json.loads(text) for text in monitor(line + ' -j').splitlines()
            if text.startswith('{')]
    for row in rows:
        if 'fail' in row:
            raise gdb.GdbError('ka: ' + row['fail'])
    return rows


def block_at(va):
    """Return the row of the block at VA, or None. If an object and the pages
    that contain it are both blocks, return the object."""
    rows = []
    for line in monitor(f'{va} -j -s -v').splitlines():
        row = json.loads(line) if line.startswith('{') else {}
        if 'fail' in row:
            raise gdb.GdbError('ka: ' + row['fail'])
        if row.get('type') == 'block':
            rows.append(row)
    return min(rows, key=lambda r: r['layer'] == 'pages', default=None)


# --- a replay ----------------------------------------------------------------

# ID, name, size, date, clock of the VM, number of instructions.
STATE = re.compile(r'^\S+ +(ka-\S+) .* (\d+):(\d\d):(\d\d)\.(\d{3}) +(\d+) *$',
                   re.MULTILINE)
ROUNDS = 4              # accesses need two; the VM may stop earlier


def nearest_state(us):
    """Return (time, number of instructions, name) of the last VM state before
    US, else of the first one. Clocks are rounded down."""
    states = [(0, 0, 'ka-begin')]
    for found in STATE.finditer(qemu_monitor('info snapshots')):
        hours, minutes, seconds, ms, count = map(int, found.groups()[1:])
        ms += 1000 * (seconds + 60 * (minutes + 60 * hours))
        states += [(1000 * ms + 999, count, found[1])] if count else []
    return max([s for s in states if s[0] < us] or states[:1])


def load_state(state):
    """QEMU does not continue a VM that has reached the end of its recording,
    but replay_seek goes back from there."""
    if '(shutdown)' in qemu_monitor('info status'):
        qemu_monitor(f'replay_seek {state[1]}')
        while 'running' in qemu_monitor('info status'):
            time.sleep(0.02)
        # On a busy host the VM was seen to stop once more after it.
        qemu_monitor('replay_delete_break')
    elif problem := qemu_monitor('loadvm ' + state[2]).strip():
        raise gdb.GdbError('ka: ' + problem)
    gdb.execute('maintenance flush register-cache', to_string=True)


def go_to(line):
    """Go to a place of a replay, and print it."""
    before, moved = qemu_monitor('info replay'), False
    for _ in range(ROUNDS):
        row = (rows_of('goto' if moved else line) or [{}])[-1]
        if row.get('way', 'here') == 'here':
            break
        state = nearest_state(row['us'])
        if row['way'] == 'behind' or row['now_us'] < state[0] < row['us']:
            load_state(state)
        gdb.execute('continue', to_string=True)
        moved = True
    gdb.write(monitor('goto' if moved else line))
    if moved:
        begin, end = (int(text.split('= ')[1]) for text in
                      (before, qemu_monitor('info replay')))
        gdb.write(f'went {abs(end - begin)} instructions '
                  f'{"back" if end < begin else "forward"}\n')


def go_without_breakpoints(line):
    enabled = ' '.join(str(b.number) for b in gdb.breakpoints() if b.enabled)
    gdb.execute('disable breakpoints')
    try:
        go_to(line)
    finally:
        gdb.execute('enable ' + enabled if enabled else 'disable')


# --- frames ------------------------------------------------------------------

def arguments(va):
    """Return the parameter names of the function at VA, from gdb."""
    try:
        block = gdb.block_for_pc(va)
    except (gdb.error, RuntimeError):
        return ''
    while block and not block.function:
        block = block.superblock
    return ', '.join(s.name for s in block or () if s.is_argument)


def frame(i, va, symbol):
    """Format one frame. Look up the instruction before a return address: the
    call."""
    line = gdb.find_pc_line(va - 1)
    if not line.symtab:
        return f'#{i:<3}0x{va:016x} in {symbol or "??"}'
    name = (symbol or '??').split('+')[0]
    return (f'#{i:<3}0x{va:016x} in {name} ({arguments(va - 1)}) at '
            f'{line.symtab.filename}:{line.line}')


def print_stacks(row):
    for key, what in STACKS:
        frames = row.get(key)
        if not frames:
            continue
        names = row.get(key + '_symbols') or [None] * len(frames)
        gdb.write(f'{what} at {row.get(key + "_us", "?")} us:\n')
        for i, (va, name) in enumerate(zip(frames, names)):
            gdb.write(frame(i, int(va, 16), name) + '\n')


def summary(row, va):
    place = int(va, 16) - int(row['va'], 16)
    of = row.get('cache') or row.get('layer') or ''
    return (f'{row["state"]} {row["va"]}-{row["end"]} '
            f'({row["requested"]}/{row["actual"]}) {of} +0x{place:x}')


# --- tasks -------------------------------------------------------------------

def tasks(words):
    """Return the rows of `ka task` with these words."""
    return [row for row in rows_of(f'task {words} -v -n 0')
            if row.get('type') == 'task']


def on_stack(row):
    """Is the stack pointer on the stack of the task?"""
    sp = int(gdb.parse_and_eval('$sp')) & 0xffffffffffffffff
    return row['stack'] and 0 <= sp - int(row['stack'], 16) < STACK


def current_task():
    """Return the task that the selected vCPU executes. While the kernel
    switches from one task to the next, both say that a CPU executes them."""
    vcpu = gdb.selected_thread().num - 1
    found = [row for row in tasks('--threads')
             if row['running'] == 'yes' and row['cpu'] == vcpu]
    if len(found) > 1:
        found = [row for row in found if on_stack(row)]
    if len(found) != 1:
        raise gdb.GdbError(f'ka: the task of vCPU {vcpu} is not known')
    return found[0]


# --- symbols -----------------------------------------------------------------

class KaAutoSymbols(gdb.Parameter):
    """Load symbols of the running kernel when the VM stops."""

    set_doc = 'Set whether gdb loads symbols of ka when the VM stops.'
    show_doc = 'Show whether gdb loads symbols of ka when the VM stops.'

    def __init__(self):
        super().__init__('ka-auto-symbols', gdb.COMMAND_FILES,
                         gdb.PARAM_BOOLEAN)
        self.value = True

    def get_set_string(self):
        return ''

    def get_show_string(self, value):
        return f'gdb loads symbols of ka when the VM stops: {value}'


class Symbols:
    """The file of `ka symbols`, which gdb has loaded.

    gdb reads parts of the file later, so it stays until it is replaced or gdb
    ends.
    """

    FIRST = re.compile(r'-- symbols (\d+): (.*)')

    def __init__(self, auto):
        self.auto = auto
        self.numbers = itertools.count()
        self.stamp = self.path = self.folder = None
        self.busy = False

    def load(self, words=''):
        """Load the file, unless it is loaded and nothing has changed. Return
        what ka says of it."""
        after = f'--after {self.stamp} ' if self.stamp and not words else ''
        text = monitor(f'symbols {after}{words}')
        first, _, packed = text.partition('\n')
        found = self.FIRST.match(first)
        if not found:
            raise gdb.GdbError(text.rstrip('\n'))
        if packed.strip():
            self.replace(gzip.decompress(base64.b64decode(packed)))
            # 0: ka could not read all code, so ask again at the next stop.
            self.stamp = found[1] if found[1] != '0' else None
        return found[2]

    def replace(self, data):
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix='ka-gdb-')
            atexit.register(self.remove_all)
        path = os.path.join(self.folder, f'kernel-{next(self.numbers)}')
        with open(path, 'wb') as f:
            f.write(data)
        self.remove()
        gdb.execute('add-symbol-file ' + path, to_string=True)
        self.path = path

    def remove(self):
        if self.path:
            gdb.execute('remove-symbol-file ' + self.path, to_string=True)
            os.unlink(self.path)
            self.path = None

    def remove_all(self):
        if self.path:
            os.unlink(self.path)
        os.rmdir(self.folder)

    def begin(self):
        """Load the symbols of a VM to which gdb is attached already, and say
        what was loaded, or why nothing."""
        if not gdb.selected_thread() or not self.auto.value or \
                gdb.current_progspace().filename:
            return
        try:
            gdb.write(f'ka: {self.load()}\n')
        except gdb.GdbError as e:
            gdb.write(f'{e}\n')

    def on_stop(self, event):
        """Load what is new. A VM without ka, or whose kernel is not found yet,
        is no error here."""
        del event
        if self.busy or not self.auto.value or \
                gdb.current_progspace().filename:
            return
        self.busy = True
        try:
            self.load()
        except (gdb.error, gdb.GdbError):
            pass
        finally:
            self.busy = False


def is_user(frame):
    return not frame.pc() >> 63 & 1


class NamedFrame(FrameDecorator):
    """A frame by its name, where gdb prints <signal handler called>."""

    def function(self):
        frame = self.inferior_frame()
        if frame.type() == gdb.SIGTRAMP_FRAME and is_user(frame):
            return super().function()
        return frame.name() or '??'


def until_unknown(frames):
    """Yield frames up to the first one of user code that gdb has no symbol
    for. Without the program's symbols gdb guesses all callers of it."""
    for shown in frames:
        yield shown
        frame = shown.inferior_frame()
        if is_user(frame) and not frame.name():
            return


class NamedFrames:
    """Prints frames of interrupts, exceptions and system calls by name, and
    ends a stack in user space."""

    def __init__(self):
        self.name, self.priority, self.enabled = 'ka', 100, True
        gdb.frame_filters[self.name] = self

    @staticmethod
    def filter(frames):
        return map(NamedFrame, until_unknown(frames))


# --- structs -----------------------------------------------------------------

def member_names(expression):
    """Return the names of the members of a struct, or of one that a pointer
    leads to."""
    rows = [r for r in rows_of(f'struct {expression} --depth 1')
            if r.get('type') == 'member']
    pointed = re.fullmatch(r'(?:const |volatile )*(?:struct|union) (\w+) \*+',
                           rows[0]['ctype']) if len(rows) == 1 else None
    if pointed:
        return member_names(pointed[1])
    last = expression.rpartition('.')[2]
    inside = last + '.' if '.' in expression else ''
    return {re.match(r'\w*', r['member'][len(inside):] if
                     r['member'].startswith(inside) else r['member'])[0]
            for r in rows}


def struct_words(word):
    """Return what can complete the first word of `ka struct`."""
    of, dot, _ = word.rpartition('.')
    try:
        if dot:
            return [f'{of}.{name}' for name in sorted(member_names(of))]
        return [row['name'] for row in rows_of(f'struct {word}*')
                if 'name' in row]
    except gdb.GdbError:
        return []


def value_of(rows):
    """Return a member as a number or a text; of several, all as text."""
    members = [r for r in rows if r.get('type') == 'member']
    if len(members) == 1:
        row = members[0]
        return row['number'] if 'number' in row else row['value'].strip('"')
    if not members:
        return next((r['text'] for r in rows if r.get('va') is None and
                     r.get('type') == 'struct'), '')
    return ' '.join(f'{r["member"]}={r["value"]}' for r in members)


# --- what gdb sees -----------------------------------------------------------

def words_of_help(text):
    """The first words of the commands on the screen of ka help: one at the
    start of a line, or several behind "also:"."""
    words = set()
    for line in text.partition('\nka help ')[0].splitlines():
        if line.startswith('  '):
            names = line.removeprefix('  also: ').strip()
            names = names.split(', ') if 'also: ' in line[:8] else [names]
            words.update(name.split()[0] for name in names
                         if name[0].isalpha())
    return words


class Ka(gdb.Command):
    """A command of ka, the kernel allocation tracer: `ka` alone lists them."""

    def __init__(self):
        super().__init__('ka', gdb.COMMAND_DATA)
        self.words = None

    def invoke(self, argument, from_tty):
        del from_tty
        words = split(argument)
        if words and words[0] == 'symbols':
            gdb.write(SYMBOLS.load(' '.join(words[1:])) + '\n')
        elif words[:1] == ['goto'] and words[1:] and '-j' not in words:
            go_without_breakpoints(command_line(argument))
        else:
            gdb.write(monitor(command_line(argument)))

    def complete(self, text, word):
        """Complete a command, or the options of one; ka lists them. For gdb
        a word begins after its dashes."""
        words = text.split()
        last = words.pop() if text and not text[-1].isspace() else ''
        cut = len(last) - len(word or '')
        if not words:
            known = self.commands()
        elif words == ['struct'] and not last.startswith('-'):
            known = struct_words(last)
        elif words[0] in self.commands():
            known = re.findall(r'^\s+(--[a-z-]+|-[a-z])\b',
                               monitor('help ' + words[0]), re.MULTILINE)
        else:
            return gdb.COMPLETE_NONE
        return [w[cut:] for w in known if w.startswith(last)]

    def commands(self):
        if self.words is None:
            self.words = sorted(words_of_help(monitor('help')))
        return self.words


class KaBacktrace(gdb.Command):
    """Print the stacks of a block, as gdb prints frames: ka-bt VA."""

    def __init__(self):
        super().__init__('ka-bt', gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        del from_tty
        words = split(argument)
        if len(words) != 1:
            raise gdb.GdbError('ka-bt: one address is wanted: ka-bt VA')
        va = command_line(argument)
        row = block_at(va)
        if not row:
            raise gdb.GdbError(f'ka-bt: no block at {va}')
        gdb.write(f'{row["state"]} {row["va"]}-{row["end"]}\n')
        print_stacks(row)


class KaFunction(gdb.Function):
    """The block at an address in one line, or "no block": $_ka(VA)."""

    def __init__(self):
        super().__init__('_ka')

    def invoke(self, address):
        va = address_of(address, '$_ka(): the argument')
        row = block_at(va)
        return summary(row, va) if row else 'no block'


class KaTask(gdb.Function):
    """The address of a task_struct: $_ka_task() of the task that the selected
    vCPU executes, $_ka_task(PID) or $_ka_task("comm") of another one."""

    def __init__(self):
        super().__init__('_ka_task')

    def invoke(self, *which):
        if not which:
            row = current_task()
        elif which[0].type.code in (gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_PTR):
            row = tasks(which[0].string())[0]
        else:
            row = tasks(int(which[0]))[0]
        return gdb.Value(int(row['va'], 16)).cast(
            gdb.lookup_type('unsigned long'))


class KaTrace(gdb.Parameter):
    """Print at each stop what is new in the live trace of `ka trace on`. What
    others read with `ka trace` is printed here, too."""

    set_doc = 'Set whether each stop prints what is new in the live trace.'
    show_doc = 'Show whether each stop prints what is new in the live trace.'

    def __init__(self):
        super().__init__('ka-trace', gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
        self.value = False
        self.place = '0'
        gdb.events.stop.connect(self.on_stop)

    def get_set_string(self):
        return ''

    def on_stop(self, event):
        del event
        if not self.value:
            return
        text = monitor(f'trace -s --after {self.place}')
        end = re.search(r'^-- next (\d+) more 0 overwritten (\d+)\n', text,
                        re.MULTILINE)
        if end:
            self.place = end[1]
            text = text[:end.start()]
            if end[2] != '0':
                text += f'{end[2]} events were overwritten\n'
        gdb.write(text)


class KaStructFunction(gdb.Function):
    """A member of an object: $_ka_struct("TYPE.MEMBER", VA)."""

    def __init__(self):
        super().__init__('_ka_struct')

    def invoke(self, expression, address):
        va = address_of(address, '$_ka_struct(): the address')
        value = value_of(rows_of(f'struct {expression.string()} {va} --zero'))
        if isinstance(value, str):
            return value
        return gdb.parse_and_eval(f'{value}UL')


SYMBOLS = Symbols(KaAutoSymbols())
NamedFrames()
gdb.events.stop.connect(SYMBOLS.on_stop)
SYMBOLS.begin()
Ka()
KaBacktrace()
KaFunction()
KaTask()
KaTrace()
KaStructFunction()
