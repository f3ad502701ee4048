# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run means: the worst that was seen in it, and where. Symptoms that
the control run shows as well do not count."""
import collections
import re

# Worst first. The second word says whether it is a finding.
ORDER = {
    'panic': True, 'oops': True, 'ka-error': True, 'bug': True, 'hang': True,
    'warn': True, 'leak': True, 'died': False, 'init': False, 'masked': False,
    'clean': False, 'not-reached': False,
}
MEANING = {
    'panic': 'the kernel panicked', 'oops': 'the kernel oopsed',
    'ka-error': 'ka found an error', 'bug': 'the kernel reported a bug',
    'hang': 'the scenario did not end', 'warn': 'the kernel warned',
    'leak': 'memory leaked', 'died': 'QEMU ended',
    'init': 'the first process of the guest was killed',
    'masked': 'the scenario ended as without the fault',
    'clean': 'the fault was handled',
    'not-reached': 'the call was not made, so nothing was tested',
}

# name; symptom: the line or error that shows it; stack: its frames, innermost
# first; more: further lines.
Verdict = collections.namedtuple('Verdict', 'name symptom stack more',
                                 defaults=('', (), ()))

PANIC = re.compile('Kernel panic - not syncing')
INIT = re.compile('Attempted to kill init')
OOPS = re.compile(
    'Oops|BUG: (kernel NULL pointer|unable to handle)|Unable to handle kernel|'
    'general protection fault|double fault:|Internal error: (?!Oops - BUG)')
OOPS_OF_BUG = re.compile(r'Oops: invalid opcode|Oops - BUG|Kernel BUG \[#')
BUG = re.compile(
    r'kernel BUG at|BUG: |BUG \S+ \(|UBSAN: |INFO: task .* blocked for more|'
    r'detected stalls|self-detected stall|possible (circular|recursive) lock')
BLOCKED = re.compile('blocked for more')
# A frame that the kernel prints; those with ? are guesses.
TRACE = re.compile(r' +(\? )?([\w.]+)\+(0x[0-9a-f]+)/0x[0-9a-f]+'
                   r'(?: (\[\w+\]))?')
WARN = re.compile(r'WARNING: |refcount_t: |list_(add|del) corruption')

# Frames between an exception and what prints its line.
EXCEPTION = re.compile(r'asm_exc_|el1h?_64_|handle_exception|do_trap_')
PRINTING = re.compile(r'_?v?printk|vprintk_|_dev_|__?warn|warn_|dump_stack')


def function(frame):
    return frame.partition('+')[0]


def code_stack(stack):
    """Return the frames of what a line of the log is about: those below the
    exception, if there is one, else those below printk()."""
    at = [i for i, f in enumerate(stack) if EXCEPTION.match(f)]
    if at:
        return list(stack[at[-1] + 1:])
    return [f for i, f in enumerate(stack)
            if not all(PRINTING.match(g) for g in stack[:i + 1])]


def line_key(line):
    """Return what is the same each time a line is printed."""
    return re.sub(r'0x[0-9a-f]+|[0-9a-f]{8,}|\d+', '#', line['text'])


def find_line(run, control, pattern, but=None):
    known = {line_key(line) for line in (control or {}).get('log', ())}
    for line in run['log']:
        if pattern.search(line['text']) and \
                not (but and but.search(line['text'])) and \
                line_key(line) not in known:
            return line
    return None


def of_line(name, line):
    return Verdict(name, line['text'], code_stack(line['stack']))


def stack_key(stack):
    return tuple(stack or ())


def error_key(error):
    return error['error'], stack_key(error['error_stack_symbols'])


def new_leaks(run, control):
    known = {stack_key(b['stack']) for b in (control or {}).get('leaks', ())}
    return [b for b in run['leaks'] if stack_key(b['stack']) not in known]


# --- each kind, worst first --------------------------------------------------

def judge_panic(run, control):
    if run['end'] != 'stopped':
        return None
    line = find_line(run, None, PANIC)
    if not line:
        return Verdict('panic', f"the VM has ended: {run['why']}")
    if INIT.search(line['text']) and not judge_oops(run, control):
        return of_line('init', line)
    oops = judge_oops(run, control) or judge_bug(run, control)
    return Verdict('panic', line['text'], oops.stack if oops else
                   code_stack(line['stack']), (oops.symptom,) if oops else ())


def judge_oops(run, control):
    line = find_line(run, control, OOPS, OOPS_OF_BUG)
    return line and of_line('oops', line)


def judge_error(run, control):
    known = {error_key(e) for e in (control or {}).get('errors', ())}
    new = [e for e in run['errors'] if error_key(e) not in known]
    if not new:
        return None
    more = [f"{name}: {' '.join(new[0][key])}" for name, key in (
        ('allocated', 'alloc_symbols'), ('freed before', 'free_symbols'))
            if new[0].get(key)]
    if len(new) > 1:
        more.append(f'{len(new) - 1} more errors')
    return Verdict('ka-error', new[0]['error'],
                   new[0]['error_stack_symbols'] or [], more)


def task_stack(run, line):
    """Return the stack of a task, which the kernel prints below LINE."""
    found = []
    for below in run['log'][run['log'].index(line) + 1:]:
        frame = TRACE.fullmatch(below['text'])
        if found and not frame:
            break
        if frame and not frame[1]:
            found.append(f"{frame[2]}+{frame[3]}{frame[4] or ''}")
    return found


def judge_bug(run, control):
    line = find_line(run, control, BUG)
    if not line:
        return None
    found = of_line('bug', line)
    if BLOCKED.search(line['text']):
        found = found._replace(stack=task_stack(run, line) or found.stack)
    return found


def judge_hang(run, _):
    if run['end'] not in ('limit', 'host-limit'):
        return None
    last = run['faults'][-1]['frames'].split() if run['made'] > 1 else None
    busy = [s for s in run['vcpus'] if s and 'idle' not in ' '.join(s)]
    stack = last or (busy[0] if busy else [])
    more = (f"{run['made']} calls were made to fail; the stack is that of the "
            'last',) if last else ()
    return Verdict('hang', run['why'], stack, more)


def judge_warn(run, control):
    line = find_line(run, control, WARN)
    return line and of_line('warn', line)


def judge_leak(run, control):
    new = new_leaks(run, control)
    if not new:
        return None
    size = sum(b['size'] or 0 for b in new)
    text = f'{len(new)} block{"s" * (len(new) > 1)}, {size} bytes; the ' \
        f"first: {new[0]['size']} bytes" + \
        (f" of {new[0]['cache']}" if new[0]['cache'] else '') + \
        f", {new[0]['where']}"
    stacks = {stack_key(b['stack']) for b in new}
    more = [f'allocated, too: {" ".join(s)}' for s in
            sorted(stacks - {stack_key(new[0]['stack'])})]
    return Verdict('leak', text, new[0]['stack'], more)


def judge_rest(run, control):
    if run['end'] == 'died':
        return Verdict('died', run['why'])
    if control and run['status'] == control['status']:
        return Verdict('masked')
    return Verdict('clean')


JUDGES = (judge_panic, judge_oops, judge_error, judge_bug, judge_hang,
          judge_warn, judge_leak, judge_rest)


def judge(run, control=None):
    """Return the Verdict of a run that should have had a fault."""
    if not run['made'] and run['end'] != 'died':
        return Verdict('not-reached')
    return next(v for v in (j(run, control) for j in JUDGES) if v)


def judge_control(run):
    """Return a Verdict of a run without a fault: of what it shows by itself."""
    return next(v for v in (j(run, None) for j in JUDGES) if v)


def is_finding(verdict):
    return ORDER[verdict.name]


def worst(verdicts):
    return min(verdicts, key=lambda v: list(ORDER).index(v.name))


def place(verdict):
    """Return what two runs of one fault have in common."""
    return verdict.name, function(verdict.stack[0]) if verdict.stack else ''
