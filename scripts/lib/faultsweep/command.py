# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of scripts/fault-sweep."""
import argparse
import collections
import math
import os
import re
import shlex

from .. import accel, statuses
from ..prepared import KERNEL_HELP, command, default_kernel
from . import numbers
from .scenario import AUTO, MODULE_POINTS, POINTS, Scenario

EPILOG = """\
The scenario is a shell script. The guest boots, waits, and its state is saved.
The script is run twice without a fault, to record which stacks call the
points; then once for each stack, from the same state, with one fault. By
default these are the calls of the scenario's processes; with --module those
that have one of the modules on their stack, of any process.

Verdicts, worst first: panic, oops, ka-error (ka error, such as a double free),
bug, hang, warn, stuck-module (one that cannot be unloaded afterwards), leak;
and, no findings: init (the guest's first process was killed), masked (the
scenario ended as without the fault), clean, not-reached (the call was not made:
nothing is known). A fault that leads to a finding is made twice; it is flaky if
both differ. Faults that lead to the same bug are one finding. What the scenario
shows without a fault is none.

{statuses}
docs/fault-sweep.md has more.
"""


def seconds(text):
    value = float(text)
    if not (math.isfinite(value) and 0 < value <= 1e6):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds")
    return value


def stackid(text):
    if not re.fullmatch('0x[0-9a-f]{1,16}', text):
        raise argparse.ArgumentTypeError(f"'{text}' is no hash of a stack, "
                                         'such as 0xc71285665038d13f')
    return text


def add_guest_options(ap):
    ap.add_argument('--kernel', metavar='K', help=KERNEL_HELP)
    ap.add_argument('--initrd', metavar='I', help='initramfs')
    ap.add_argument('--append', metavar='TEXT', action='append', default=[],
                    help='add words to the kernel command line')
    ap.add_argument('--smp', type=int, default=1, metavar='N',
                    help='vCPUs (default 1; with more of them the time of the '
                         'guest is that of the host, and runs differ more)')
    ap.add_argument('--mem', default='512M', metavar='SIZE')
    ap.add_argument('--accel', choices=accel.WORDS, metavar='A',
                    help=accel.HELP +
                    '; one vCPU needs TCG')
    ap.add_argument('--run', required=True, metavar='SCRIPT',
                    help='the scenario, a script for the shell of the guest')
    ap.add_argument('--share', metavar='FOLDER',
                    help='files that the scenario finds in /share')
    ap.add_argument('--plug', metavar='DEVICE', action='append', default=[],
                    help='plug a device of QEMU in before each run: one that '
                         'cannot be saved, such as usb-serial')


def add_fault_options(ap):
    ap.add_argument('--point', action='append', metavar='P',
                    help='what fails: a point, @set or function as for ka '
                         f"fault add (default {', '.join(POINTS)}; with "
                         f"--module {MODULE_POINTS[-1]}, too)")
    ap.add_argument('--module', action='append', default=[], metavar='M',
                    help='only calls with this module on their stack')
    ap.add_argument('--task', metavar='T',
                    help='only calls of tasks with this name, or "all" '
                         '(default without --module: the scenario)')
    ap.add_argument('--if', dest='condition', metavar='COND',
                    help='only calls for which this is true')
    ap.add_argument('--n', type=numbers.parse, default=AUTO, metavar='LIST',
                    help='which calls of a stack fail, one a run: 1..3 or '
                         '1,2; all: each call, in one run; auto (the '
                         'default): the first two, the last, those between '
                         'calls with different results, and all if a call is '
                         f'tried again; at most {numbers.MOST} of a stack')
    ap.add_argument('--access', action='store_true',
                    help='check each access to allocated memory, too: finds a '
                         'use after free that does not crash (slower)')
    ap.add_argument('--only', type=stackid, action='append', default=[],
                    metavar='HASH', help='only this stack')
    ap.add_argument('--exclude', metavar='FILE',
                    help='stacks to leave out: lines "HASH REASON"')


def add_run_options(ap):
    ap.add_argument('--jobs', type=int, default=os.cpu_count() or 1,
                    metavar='N', help='VMs at once (default: CPUs)')
    ap.add_argument('--limit', type=seconds, metavar='S',
                    help='a run that takes longer is a hang, in seconds of '
                         'the guest (default: three times as long as without '
                         'a fault, and at least 15)')
    ap.add_argument('--host-limit', type=seconds, default=120, metavar='S',
                    help='the same in seconds of the host (default 120)')
    ap.add_argument('--resume', metavar='DIR',
                    help='keep results in DIR, and continue with those there')
    ap.add_argument('--keep', action='store_true',
                    help='with --only: leave the VM paused at the symptom, '
                         'for gdb')
    ap.add_argument('--record', metavar='FOLDER',
                    help='repeat a fault of each finding in a run that is '
                         'recorded, FOLDER/1 and so on, for ka-run --replay')
    ap.add_argument('--report', action='append', default=[], metavar='FILE',
                    help='write FILE: .json, .xml (JUnit), else text')


def points(args):
    return tuple(args.point or (MODULE_POINTS if args.module else POINTS))


def parse(argv):
    """Return the arguments, with .scenario."""
    whole, qemu = argv, []
    if '--' in argv:
        cut = argv.index('--')
        argv, qemu = argv[:cut], argv[cut + 1:]
    ap = argparse.ArgumentParser(
        prog=command('fault-sweep'), allow_abbrev=False,
        epilog=EPILOG.format(statuses=statuses.help_text('fault-sweep')),
        description='Make each call of a scenario fail once, each from the '
                    'same state of the VM, and report what breaks.',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=command('fault-sweep') + ' [OPTION]... --run SCRIPT '
                                       '[-- QEMU-ARGUMENT...]')
    for add in add_guest_options, add_fault_options, add_run_options:
        add(ap)
    args = ap.parse_args(argv)
    if args.keep and not (len(args.only) == 1 and args.n != AUTO and
                          len(args.n) == 1):
        ap.error('--keep needs --only with one HASH, and --n with one number '
                 'or "all"')
    if args.record and (args.keep or args.plug or args.smp != 1):
        ap.error('--record: one vCPU is recorded, without --plug and --keep')
    if args.jobs < 1 or args.smp < 1:
        ap.error('--jobs and --smp are at least 1')
    args.kernel = args.kernel or default_kernel()
    if not args.kernel:
        ap.error('no kernel can be read in /boot: name one by --kernel')
    args.scenario = Scenario(
        kernel=args.kernel, run=args.run, initrd=args.initrd,
        share=args.share, append=' '.join(args.append), smp=args.smp,
        mem=args.mem, points=points(args), modules=tuple(args.module),
        task=args.task, condition=args.condition, numbers=args.n,
        access=args.access, qemu=tuple(qemu), plug=tuple(args.plug))
    args.command = again(whole)
    return args


# The command line that shows one fault: its options go between these parts.
# recorded: {(stackid, n): line about the recording}.
Command = collections.namedtuple('Command', 'options qemu recorded')

# Options of a sweep that the command for one fault has not; 1: with a value.
DROPPED = {'--n': 1, '--only': 1, '--keep': 0, '--report': 1, '--resume': 1,
           '--jobs': 1, '--exclude': 1, '--record': 1}


def again(argv):
    """Return the Command that shows one fault of the same scenario."""
    words, rest = [command('fault-sweep')], list(argv)
    tail = []
    if '--' in rest:
        cut = rest.index('--')
        rest, tail = rest[:cut], rest[cut:]
    while rest:
        word = rest.pop(0)
        name, equal, _ = word.partition('=')
        if name not in DROPPED:
            words.append(word)
        elif DROPPED[name] and not equal and rest:
            rest.pop(0)
    return Command(' '.join(map(shlex.quote, words)),
                   ''.join(' ' + shlex.quote(w) for w in tail), {})
