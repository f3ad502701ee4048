#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest runs with KVM, that of the host or of a machine that QEMU emulates,
and is traced by breakpoints.

Oracle: the counters of what was not seen are 0; the guest's own console shows
no complaint about its text, which the breakpoints change; the blocks of the map
are those that commands list. The module kf_calls says how often it called a
function, and which calls failed; the module ka_errors which error it made.

In the long form, the guest's own trace of its allocators is compared with ours,
and its own tracers and probes run on hooked functions.

usage: test_kvm.py [--short] [--kernel K]... [--smp N]...
"""
import functools
import os
import re
import shutil
import tempfile
import time

import test_errors
import test_faults
import test_oracle_events
import test_oracle_stacks
import test_slab_check
from lib import oracle, programs
from lib.reset import reset
from lib.tap import Tap
from scripts.lib import outer
from scripts.lib.arches import KERNEL_VA

UNSEEN = ('call.stale', 'call.unreadable', 'call.dropped', 'task.unknown',
          'cache.unknown', 'free.unknown', 'kvm.unseen', 'kvm.withdrawn')
COMPLAINTS = re.compile('WARNING:|BUG:|Oops|ftrace bug|int3: 0000|'
                        'general protect')
# Each character on the console leaves the guest; warnings are printed. Ticks of
# the timer come late, so no clock is right.
WORDS = 'no_hash_pointers loglevel=5 tsc=reliable nowatchdog'
# Half of the allocations of a boot are for the files of tracing, and for
# attributes of caches.
QUICK = ('8250.nr_uarts=1 cryptomgr.notests '
         'initcall_blacklist=tracer_init_tracefs,slab_sysfs_init')
# A kernel has one of them: the second since 6.10.
KMALLOC = '__kmalloc', '__kmalloc_noprof'
TIMEOUT = 1500          # a boot takes a minute of a processor


def figures(stat):
    return {name: stat[name] for name in
            ('events.alloc', 'events.free', 'kvm.hits', 'kvm.breakpoints',
             'return.foreign')}


def check_counters(g):
    stat = g.stat()
    for name in UNSEEN:
        assert not stat.get(name), \
            f'{name} is {stat[name]}: {stat.get("tracing.unseen")}'
    assert stat['events.alloc'] > 10000, stat['events.alloc']
    assert stat['events.free'] > 1000, stat['events.free']
    assert stat['kvm.breakpoints'] > 50, stat['kvm.breakpoints']
    return figures(stat)


def a_block(g):
    return g.hmp_qmp('ka 0-ffffffffffffffff --layer kmalloc -n 1')


def check_lists(g):
    text = g.hmp_qmp('ka error')
    assert text.startswith('no errors'), text
    assert re.search(' A ' + KERNEL_VA.pattern, a_block(g)), a_block(g)
    assert g.hmp_qmp('ka check').startswith('ok'), g.hmp_qmp('ka check')


def check_console(console):
    bad = [line for line in console.splitlines() if COMPLAINTS.search(line)]
    assert not bad, bad


# --- commands --------------------------------------------------------------

def modules(w):
    """A module is known while it is loaded."""
    w.guest.shell('insmod /share/kf_calls.ko')
    assert 'kf_calls' in w.guest.hmp_qmp('ka mod'), w.guest.hmp_qmp('ka mod')


def calls(w):
    """Each call of the module is recorded, with its result."""
    for name in KMALLOC:
        w.guest.hmp_qmp(f'ka calls add {name} --module kf_calls')
    w.calls('kmalloc', 320, n=7)
    rows = [r for r in w.guest.rows('ka calls -n 0') if r.get('type') == 'call']
    assert len(rows) == 7, w.guest.hmp_qmp('ka calls')
    for row in rows:
        assert KERNEL_VA.fullmatch(row['result'].removeprefix('0x')), row
    points = w.guest.hmp_qmp('ka calls points')
    w.guest.hmp_qmp('ka calls del all')
    w.calls('kmalloc', 320, n=7)
    assert w.guest.rows('ka calls -n 0') == rows, points
    w.guest.hmp_qmp('ka calls clear')


def faults(w):
    """Rules make the module's calls fail, and no others."""
    test_faults.check_rule(w, 'kmalloc --module kf_calls', 'F' * 10,
                           'kmalloc', 320)
    test_faults.check_rule(w, 'kmalloc --module kf_calls --times 2',
                           'FF' + '.' * 8, 'kmalloc', 320)


def stops(w):
    """A rule stops the VM at a call, which goes on afterwards."""
    number = w.add('kmalloc --module kf_calls --do stop --times 1')
    w.guest.type("echo 'kmalloc 320 0 1' >/proc/kf_calls\n")
    end = time.monotonic() + 60
    while w.guest.qmp('query-status')['running']:
        assert time.monotonic() < end, 'the VM did not stop'
        time.sleep(0.2)
    assert '__kmalloc' in w.guest.hmp_qmp('ka bt'), w.guest.hmp_qmp('ka bt')
    w.guest.qmp('cont')
    assert w.guest.shell('echo on').strip() == 'on'
    assert w.rule(number)['done'] == 1, w.rule(number)
    w.clear()


def off_and_on(w):
    """Without recording hardly a breakpoint is left; then all are back."""
    before = w.guest.stat()
    w.guest.hmp_qmp('ka off')
    w.guest.shell('true')
    off = w.guest.stat()
    w.guest.shell('ls -lR /proc/sys >/dev/null')
    later = w.guest.stat()
    w.guest.hmp_qmp('ka on')
    w.guest.shell('ls /proc/sys')
    on = w.guest.stat()
    assert off['kvm.breakpoints'] < 20, off['kvm.breakpoints']
    assert later['kvm.hits'] - off['kvm.hits'] < 100, \
        later['kvm.hits'] - off['kvm.hits']
    assert later['events.alloc'] == off['events.alloc']
    assert on['kvm.breakpoints'] == before['kvm.breakpoints']
    assert on['events.alloc'] > later['events.alloc']


def removal(w):
    """A module that is unloaded has freed what it allocated."""
    w.guest.shell('rmmod kf_calls')
    text = w.guest.hmp_qmp('ka leak module')
    assert re.search('module kf_calls unloaded@[0-9]+us: no leaks', text), text


def leaks(w):
    """The scan of the guest's memory reaches what is in use."""
    text = w.guest.hmp_qmp('ka leak scan')
    assert re.search('^ *0 leaked blocks', text, re.MULTILINE), text
    return text


def accesses(w):
    """What needs TCG says so."""
    for line in 'ka access on', 'ka access':
        text = w.guest.hmp_qmp(line)
        assert 'use -accel tcg' in text, f'{line}: {text}'
    block = KERNEL_VA.search(a_block(w.guest)).group()
    text = w.guest.hmp_qmp(f'ka access watch {block}')
    assert 'use -accel tcg' in text, text


# The error comes before recording is switched off: afterwards a call may have
# handed out memory unseen, so that a second free is no certain error.
def loaded(w):
    """A VM that is loaded is traced further."""
    for line in 'savevm a', 'loadvm a':
        text = w.guest.hmp_qmp(line)
        assert not text.strip(), f'{line}: {text}'
    before = w.guest.stat()
    w.guest.shell('ls -lR /proc/sys >/dev/null')
    stat = w.guest.stat()
    assert stat['kvm.breakpoints'] > 50, stat['kvm.breakpoints']
    assert stat['events.alloc'] > before['events.alloc'] + 100, stat
    assert not stat.get('kvm.unseen'), stat.get('tracing.unseen')


def resets(w):
    """The next boot is traced from its beginning."""
    before = w.guest.stat()
    reset(w.guest)
    stat = w.guest.stat()
    for name in UNSEEN:
        assert stat.get(name) == before.get(name), (name, stat[name])
    assert stat['events.alloc'] > before['events.alloc'] + 10000, stat
    assert stat['kvm.breakpoints'] > 50, stat
    return figures(stat)


def slabs(w):
    """The lists of free objects have no object that is in use."""
    return test_slab_check.check_clean(w.guest)


# The kernel patches the first instruction of each function for them, or puts
# its own breakpoint there. They see all calls; so does ka.
TRACED = 50
TRACERS = f"""cd /sys/kernel/tracing
echo 0 >tracing_on
echo kfree >set_ftrace_filter
echo p:entry kfree >kprobe_events
echo r:result __kmalloc >>kprobe_events ||
    echo r:result __kmalloc_noprof >>kprobe_events
echo function >current_tracer
echo 1 >events/kprobes/enable
echo 1 >tracing_on
echo kmalloc 320 0 {TRACED} >/proc/kf_calls
echo 0 >tracing_on
for what in 'kfree <-' entry: 'kfree <-call_kmalloc' 'result:.*kf_calls'; do
    echo "traced $(grep -c "$what" trace)"
done
echo 0 >events/kprobes/enable
echo nop >current_tracer
echo >set_ftrace_filter
echo >kprobe_events
"""


def tracers(w):
    """The guest's own tracers see each call of functions that are hooked."""
    text = w.guest.shell('sh /share/tracers.sh 2>&1')
    counts = [int(n) for n in re.findall(r'^traced (\d+)$', text, re.M)]
    assert len(counts) == 4 and counts[0] == counts[1] >= TRACED, text
    assert counts[2:] == [TRACED, TRACED], text
    return check_counters(w.guest)


def own_int3(w):
    """A program under a debugger has its own breakpoints."""
    text = w.guest.shell('/share/ka-int3 200')
    assert text.strip() == 'int3: 200 breakpoints, status 0', text
    return check_counters(w.guest)


COMMANDS = modules, calls, faults, stops, leaks, accesses
LONG = slabs, tracers, own_int3
LAST = off_and_on, removal


def error(g, share):
    text = g.shell('dmesg -c >/dev/null; '
                   'sh /share/errors.sh double-free brief; dmesg')
    # The module mends links in freed blocks, which access checks report.
    errors = [e for e in test_errors.errors_of(g)
              if e['error'] != 'use-after-free']
    test_errors.check_report('double-free', text, errors, share)


# --- the guest's own trace -------------------------------------------------

def events_and_stacks(tap, kernel, smp, label):
    """The guest's own trace of its allocators has the same events, with the
    same backtraces."""
    words = f'{oracle.TRACE_WORDS} {WORDS} {QUICK}'.replace(
        'tracer_init_tracefs,', '')
    run = oracle.traced_run(kernel, smp, 1, stacks=True, buffer='48M',
                            words=words, mem=512, start=outer.start,
                            then=outer.fetch_journal, timeout=TIMEOUT)
    test_oracle_events.check(tap, run, label, kernel)
    test_oracle_stacks.check(tap, run, kernel, label)


# --- runs ------------------------------------------------------------------

def make_share(folder, kernel):
    """Fill a folder with the modules that are loaded here: each file is copied
    by the guest when it boots."""
    os.makedirs(folder)
    shutil.copy(os.path.join(oracle.INSIDE, 'errors.sh'), folder)
    with open(os.path.join(folder, 'tracers.sh'), 'w', encoding='ascii') as f:
        f.write(TRACERS)
    shutil.copy(oracle.build_tool('ka_int3', kernel),
                os.path.join(folder, 'ka-int3'))
    built = oracle.build_modules(kernel)
    for name in 'kf_calls.ko', 'ka_errors.ko':
        shutil.copy(os.path.join(built, name), folder)
    return folder


def run_commands(tap, guest, label, commands):
    w = test_faults.World(guest)
    for command in commands:
        with tap.test(f'{label}: {command.__name__.replace("_", " ")}'):
            tap.note(command(w) or '')


def run(tap, kernel, smp, label, quick):
    work = None if quick else 'work'
    words = f'{WORDS} {QUICK if quick else ""}'
    with tempfile.TemporaryDirectory(prefix='ka-kvm.') as tmp:
        share = make_share(os.path.join(tmp, 'share'), kernel)
        with outer.worked(kernel=kernel, smp=smp, run=work, end='shell',
                          share=share, timeout=TIMEOUT, cmdline=words,
                          la57=not quick, name=f'kvm-{kernel}-{smp}') as g:
            with tap.test(f'{label}: all calls are seen'):
                assert g.wait_done() == 0
                tap.note(check_counters(g))
                check_lists(g)
            run_commands(tap, g, label, COMMANDS + (() if quick else LONG))
            with tap.test(f'{label}: the console is as without breakpoints'):
                check_console(g.console)
            with tap.test(f'{label}: an error is reported'):
                error(g, share)
            run_commands(tap, g, label, LAST)
            if not quick:       # a snapshot takes four minutes
                run_commands(tap, g, label, [loaded, resets])
            tap.note(figures(g.stat()))


def run_chosen(doc, cases, run):
    """Be the main function of another program: call run(tap, kernel, smp,
    label, chosen) with those of the names CASES that --case chose, or all."""
    tap = Tap()
    ap = programs.arguments(doc, short='6.1 on 1 vCPU only')
    ap.add_argument('--case', action='append', choices=cases)
    args = programs.parse(ap, kernels=('6.1', '6.12'), short_kernels=('6.1',),
                          smps=(1, 2))
    programs.run_over(tap, args.kernel, args.smp,
                      lambda *a: run(*a, args.case or cases), test=None)
    tap.done()


def run_case(tap, label, case, *args):
    """Call case(*ARGS, share), with the name of a folder that may be made."""
    with tempfile.TemporaryDirectory(prefix='ka-kvm.') as tmp:
        with tap.test(f'{label}: {case.__name__}'):
            tap.note(case(*args, os.path.join(tmp, 'share')) or '')


def main():
    tap = Tap()
    ap = programs.arguments(__doc__, short='6.1 on 1 vCPU only')
    args = programs.parse(ap, kernels=('6.1', '6.12'), short_kernels=('6.1',),
                          smps=(1, 2))
    tap.note('KVM: that of ' + ('the host' if outer.has_kvm() else
                                'an emulated machine'))
    programs.run_over(tap, args.kernel, args.smp,
                      functools.partial(run, quick=args.short), test=None)
    if not args.short:
        programs.run_over(tap, args.kernel, args.smp, events_and_stacks,
                          test=None)
    tap.done()


if __name__ == '__main__':
    main()
