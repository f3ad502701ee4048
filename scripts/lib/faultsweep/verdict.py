# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run means: the worst that was seen in it, and where. Symptoms that
the control run shows as well do not count."""
import collections

from . import modules
from ..findings import (
    finding, health, health_frames, health_kinds, health_lines)
from ..findings.finding import Finding, hash_words, read_frame

# Worst first. The second word says whether it is a finding.
ORDER = {
    'panic': True, 'oops': True, 'ka-error': True, 'bug': True, 'hang': True,
    'warn': True, 'stuck-module': True, 'leak': True, 'died': False,
    'init': False, 'masked': False, 'clean': False, 'not-reached': False,
}
MEANING = {
    'panic': 'the kernel panicked', 'oops': 'the kernel oopsed',
    'ka-error': 'ka found an error', 'bug': 'the kernel reported a bug',
    'hang': 'the scenario did not end', 'warn': 'the kernel warned',
    'stuck-module': 'a module could not be unloaded',
    'leak': 'memory leaked', 'died': 'QEMU ended',
    'init': 'the first process of the guest was killed',
    'masked': 'the scenario ended as without the fault',
    'clean': 'the fault was handled',
    'not-reached': 'the call was not made, so nothing was tested',
}
# Kinds of reports of the kernel whose verdict is not bug.
KINDS = {'panic': 'panic', 'oops': 'oops', 'warning': 'warn',
         'refcount': 'warn', 'kobject': 'warn', 'list-corruption': 'warn',
         'oom-kill': 'warn'}
MOST_STACKS = 20        # of leaked blocks that a report has
# Of a run that does not end it is a part; else the guest was only slow.
HUNG = 'hung-task'

# name; symptom: the line or error that shows it; stack: its frames, innermost
# first; more: further lines; causes: findings, one of which is what went wrong
# first.
Verdict = collections.namedtuple('Verdict', 'name symptom stack more causes',
                                 defaults=('', (), (), ()))


def function(frame):
    return frame.partition('+')[0]


def frames(found):
    """Return the stack of a finding of the kernel's log, or None."""
    return found.row.get('error_stack_symbols')


# --- what a run shows and the control does not -------------------------------

Report = collections.namedtuple('Report', 'incident finding verdict stack')


def read_log(run):
    """Return the reports of the kernel, in their order. A report without a
    stack gets the one that ka walked when its first line was printed."""
    if not run:
        return []
    found = []
    for incident in health.incidents(health_lines.read_rows(run['log'])):
        of_log = health.from_incident(incident)
        walked = run['log'][incident.first].get('stack') or ''
        found.append(Report(incident, of_log,
                            KINDS.get(incident.kind, 'bug'),
                            frames(of_log) or walked.split()))
    return found


def reports(run, control):
    """Return the reports of the kernel that the control has not."""
    known = {r.finding.title for r in read_log(control)}
    return [r for r in read_log(run) if r.finding.title not in known]


def stack_key(stack):
    return tuple(stack or ())


def error_key(error):
    return error['error'], stack_key(error['error_stack_symbols'])


def new_errors(run, control):
    known = {error_key(e) for e in (control or {}).get('errors', ())}
    return [e for e in run['errors'] if error_key(e) not in known]


def new_leaks(run, control):
    known = {stack_key(b['stack']) for b in (control or {}).get('leaks', ())}
    return [b for b in run['leaks'] if stack_key(b['stack']) not in known]


# --- each kind, worst first --------------------------------------------------

def of_report(name, report):
    line = report.incident.text.partition('\n')[0]
    return Verdict(name, line, report.stack, causes=(report.finding,))


def first_report(run, control, name):
    return next((of_report(name, r) for r in reports(run, control)
                 if r.verdict == name and r.incident.kind != HUNG), None)


def judge_panic(run, control):
    if run['end'] != 'stopped':
        return None
    found = [r for r in read_log(run) if
             health_kinds.PANIC.search(r.incident.text)]
    if not found:
        text = f"the VM has ended: {run['why']}"
        return Verdict('panic', text, causes=(own('panic', text, ()),))
    init = found[0].verdict == 'panic' and 'kill init' in found[0].finding.title
    if init and not judge_oops(run, control):
        return of_report('init', found[0])
    return of_report('panic', found[0])


def judge_oops(run, control):
    return first_report(run, control, 'oops')


def judge_bug(run, control):
    return first_report(run, control, 'bug')


def judge_warn(run, control):
    return first_report(run, control, 'warn')


def judge_error(run, control):
    new = new_errors(run, control)
    if not new:
        return None
    more = [f"{name}: {' '.join(new[0][key])}" for name, key in (
        ('allocated', 'alloc_symbols'), ('freed before', 'free_symbols'))
            if new[0].get(key)]
    if len(new) > 1:
        more.append(f'{len(new) - 1} more errors')
    return Verdict('ka-error', new[0]['error'],
                   new[0]['error_stack_symbols'] or [], more,
                   tuple(finding.from_error(e, '') for e in new))


def own(kind, title, stack):
    """Return a finding of this program, of which the title is the identity."""
    return Finding(kind=kind, title=title, fold=hash_words(kind, title),
                   row={'error': kind, 'error_stack_symbols': list(stack)})


def place_of(stack):
    """Return the function that a stack is named after, or None: of a module, if
    one is there."""
    known = [read_frame(f) for f in stack]
    first = next((f for f in known if f.module), known[0] if known else None)
    return first and health.source_function(first.function)


def about(number):
    """Return a number in words that are the same in the next run of a loop,
    which ends by the time."""
    return str(number) if number < 100 else \
        f'more than {10 ** (len(str(number)) - 1)}'


def hang_stack(run):
    """Return (stack, line about it) of what does not end: a task that waits,
    the last call that failed, a vCPU that does not idle."""
    hung = [r for r in read_log(run) if r.incident.kind == HUNG]
    if hung:
        head, *lines = hung[0].incident.text.split('\n')
        sure = [line for line in lines if not health_frames.GUESS.search(line)]
        return [f.text for f in health_frames.trace_of(sure)] or \
            hung[0].stack, head.strip()
    if run['made'] > 1:
        return run['faults'][-1]['frames'].split(), \
            f"{about(run['made'])} calls were made to fail; the stack is " \
            'that of the last'
    busy = [s for s in run['vcpus'] if s and 'idle' not in ' '.join(s)]
    return (busy[0], 'the stack is that of a vCPU') if busy else ((), '')


def after(run):
    """Return words for the title of what has no place: it is not known to be
    the same as what another fault led to."""
    stack = run['faults'][-1]['frames'].split() if run['faults'] else ()
    return f'after a fault in {place_of(stack) or "?"}'


def why_endless(run):
    """Return why a run would not end, or None. When the log of faults is full,
    calls do not fail any more, and a loop that tries again ends."""
    if run['end'] in ('limit', 'host-limit'):
        return run['why']
    if run['full'] and run['made'] > run['usual']:
        return f"{run['made']} calls failed, and were tried again"
    return None


def judge_hang(run, _):
    why = why_endless(run)
    if why is None:
        return None
    stack, more = hang_stack(run)
    title = f'hang in {place_of(stack)}' if stack else f'hang {after(run)}'
    return Verdict('hang', why, stack, (more,) if more else (),
                   (own('hang', title, stack),))


def stuck_text(module):
    text = f"{module['name']} is {module['state']}"
    if module['refs'] is not None:
        text += f", its reference count is {module['refs']}"
    if module['users'] not in (None, 'none'):
        text += f", used by {module['users']}"
    return text + ('' if module['back'] else '; rmmod does not return')


def judge_stuck(run, control):
    if not run['stuck']:
        return None
    # A module that another one uses is held by that one.
    first = next((m for m in run['stuck'] if m['users'] in (None, 'none')),
                 run['stuck'][0])
    held = modules.holders(run, control or {}, first['name'])
    stack = held[0][1] if held else ()
    title = f"stuck module {first['name']} " + \
        (f'held by {place_of(stack)}' if stack else after(run))
    more = [f"{words}: {' '.join(s)}" for words, s in held] or \
        ['who holds it is not known']
    more += [f'as well: {stuck_text(m)}' for m in run['stuck']
             if m is not first]
    return Verdict('stuck-module', stuck_text(first), stack, more,
                   (own('stuck-module', title, stack),))


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
    others = sorted(stacks - {stack_key(new[0]['stack'])})
    more = [f'allocated, too: {" ".join(s)}' for s in others[:MOST_STACKS]]
    if len(others) > MOST_STACKS:
        more.append(f'{len(others) - MOST_STACKS} more stacks')
    return Verdict('leak', text, new[0]['stack'], more, tuple(
        finding.from_leak({**b, 'alloc_symbols': b['stack']}, '')
        for b in new))


def judge_rest(run, control):
    if run['end'] == 'died':
        return Verdict('died', run['why'])
    if control and run['status'] == control['status']:
        return Verdict('masked')
    return Verdict('clean')


JUDGES = (judge_panic, judge_oops, judge_error, judge_bug, judge_hang,
          judge_warn, judge_stuck, judge_leak, judge_rest)


# --- a run -------------------------------------------------------------------

def causes_of(run, control, verdict):
    """Return the causes of a verdict: an error that ka found comes before what
    the kernel reports of it, and its first report before the others."""
    found = judge_error(run, control)
    if found:
        return found.causes
    if verdict.name in ('hang', 'init'):
        return verdict.causes
    first = [r.finding for r in reports(run, control)
             if r.incident.kind != HUNG]
    return tuple(first[:1]) or verdict.causes


def judge(run, control=None):
    """Return the Verdict of a run that should have had a fault."""
    if not run['made'] and run['end'] != 'died':
        return Verdict('not-reached')
    found = judge_control(run, control)
    if not is_finding(found):
        return found
    return found._replace(causes=causes_of(run, control, found))


def judge_control(run, control=None):
    """Return a Verdict of a run without a fault: of what it shows by itself."""
    return next(v for v in (j(run, control) for j in JUDGES) if v)


def is_finding(verdict):
    return ORDER[verdict.name]


def worst(verdicts):
    return min(verdicts, key=lambda v: list(ORDER).index(v.name))


def place(verdict):
    """Return what two runs of one fault have in common. Who holds a module is
    known of the second one only."""
    if verdict.name == 'stuck-module':
        return verdict.name, verdict.symptom
    return verdict.name, function(verdict.stack[0]) if verdict.stack else ''


def outcome(verdict):
    """Return what the runs of several calls of one stack have in common."""
    return (verdict.name, *sorted(c.fold for c in verdict.causes)) \
        if is_finding(verdict) else None
