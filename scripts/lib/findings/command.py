# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of scripts/sweep."""
import argparse
import math

from .. import accel, statuses
from ..prepared import KERNEL_HELP, command
from . import growth, sarif

DESCRIPTION = 'Boot a VM under the tracer, wait, and report every allocation ' \
              'error.'
MOST_SECONDS = 1000000

# Options that exclude each other.
EITHER = (
    ('marker', 'until_timeout', 'the one says that the guest ends before the '
                                'time is over, the other that it does not'),
    ('run', 'marker', 'the end of the script ends the run'),
    ('run', 'disk_boot', 'the guest gets the script in its initramfs'),
    ('record', 'journal', 'a recording has its journal in its folder'),
)

EPILOG = """\
The program reads the guest's console, its first serial port; --console prints
it. The sweep happens when the first of these is true: the VM has ended, a
console line contains the marker, the kernel has panicked ("Kernel panic - not
syncing"), or the time is over. The VM is paused for the sweep and then ended.
If the time is over and --until-timeout is not given, the run is not complete:
the report says how far the guest was, and has the stacks of its vCPUs.

The script of --run has the files of --share in /share, which is its folder, and
ends the guest with it. If its exit status is not 0, that is a finding. An
initramfs of your own has to run "sh /share/ka-sweep.sh" and to power off.

The VM has ended if the guest powered off, or if it rebooted and its console
shows "reboot: Restarting system". For QEMU a reboot and the reset after a
panic are the same, so a reset without that line counts as a panic. If a guest
prints nothing until the time is over, a panic cannot be excluded. The errors
of an earlier boot are not known: a guest that starts another kernel (kexec,
kdump) is swept, but not reported as clean.

A suppression file has one pattern on each line:
  KIND [FUNCTION]     a kind of error as `ka error` prints it, or of a finding
                      as `ka slab check` does, or leak, growth, scenario or
                      expect, and a function in the stack of the error or of
                      its block. Both may contain * ? and [...]; "*" alone
                      means any. A function of a module can be written as
                      module:function.
  # ...               a comment
Suppressions that matched nothing are reported.

A baseline is the list of findings of an earlier run: findings that it has do
not change the exit status. docs/ci.md explains it, the formats of reports, and
how findings of two runs are told to be the same.

With --access the guest is slower. Its kernel must have types (BTF).

{statuses}
Lines of the report that begin with "warning: " say what else the tracer may
have missed.
"""


def some_text(text):
    if not text.strip():
        raise argparse.ArgumentTypeError('the text is empty')
    return text


def seconds(text):
    value = float(text)
    if not (math.isfinite(value) and 0 < value <= MOST_SECONDS):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not more than 0 and at most {MOST_SECONDS}")
    return value


def sarif_uri(text):
    try:
        return sarif.file_uri(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from e


def default_uri(suppress):
    try:
        return sarif.file_uri(suppress or sarif.FILE)
    except ValueError:
        return sarif.FILE


def parse_args(argv):
    qemu = []
    if '--' in argv:
        cut = argv.index('--')
        argv, qemu = argv[:cut], argv[cut + 1:]
    ap = argparse.ArgumentParser(
        prog=command('sweep'), description=DESCRIPTION,
        epilog=EPILOG.format(statuses=statuses.help_text('sweep')),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=command('sweep') + ' [OPTION]... [-- QEMU-ARGUMENT...]')
    ap.add_argument('--kernel', metavar='K', help=KERNEL_HELP)
    ap.add_argument('--initrd', metavar='I', help='initramfs, or "none"')
    ap.add_argument('--append', metavar='TEXT', action='append', default=[],
                    help='add words to the kernel command line')
    ap.add_argument('--disk-boot', action='store_true',
                    help='the guest boots from its disk, not by --kernel')
    ap.add_argument('--share', metavar='FOLDER',
                    help='copy the files of FOLDER into the guest, as /share')
    ap.add_argument('--smp', type=int, default=1, metavar='N')
    ap.add_argument('--mem', default='1G', metavar='SIZE')
    ap.add_argument('--accel', choices=accel.WORDS, metavar='A',
                    help=accel.HELP)
    ap.add_argument('--timeout', type=seconds, default=600, metavar='S',
                    help='end the run after S seconds (default 600): the guest '
                         'hangs, unless --until-timeout is given')
    ap.add_argument('--until-timeout', action='store_true',
                    help='the guest is meant to run until then')
    ap.add_argument('--run', metavar='SCRIPT',
                    help='run this script in the shell of the guest, then '
                         'power off; it must end with status 0')
    ap.add_argument('--marker', metavar='TEXT', type=some_text,
                    help='sweep when the console shows this text')
    ap.add_argument('--expect', metavar='TEXT', type=some_text,
                    action='append', default=[],
                    help='it is a finding if the console has not shown this '
                         'text until the end; can be given several times')
    ap.add_argument('--no-health', dest='health', action='store_false',
                    help="do not report what the guest's kernel says of itself "
                         'in its log: oops, warning, lockup and so on')
    ap.add_argument('--slab-check', action='store_true',
                    help="also compare the kernel's lists of free objects with "
                         "the blocks (ka slab check)")
    ap.add_argument('--access', action='store_true',
                    help='also check accesses to freed memory, and behind '
                         'blocks (access=on)')
    ap.add_argument('--leaks', action='store_true',
                    help='also search for leaks at the end (ka leak scan)')
    ap.add_argument('--leak-rules', metavar='FILE',
                    help='rules of this search, see docs/leaks.md')
    ap.add_argument('--module-leaks', action='store_true',
                    help='also report what modules did not free before they '
                         'were unloaded (ka leak module)')
    ap.add_argument('--max-growth', metavar=('MARK', 'SIZE'), nargs=2,
                    action='append', default=[],
                    help='also report if live bytes are more than SIZE above '
                         'those when the console showed the text MARK; can be '
                         'given several times')
    ap.add_argument('--suppress', metavar='FILE')
    ap.add_argument('--baseline', metavar='FILE',
                    help='findings of this file do not count')
    ap.add_argument('--write-baseline', metavar='FILE',
                    help='write such a file, with all findings')
    ap.add_argument('--junit', metavar='FILE', help='write JUnit XML')
    ap.add_argument('--ktap', metavar='FILE', help='write KTAP, which is TAP')
    ap.add_argument('--sarif', metavar='FILE', help='write SARIF')
    ap.add_argument('--json', metavar='FILE',
                    help='write all of it as a JSON object')
    ap.add_argument('--top', type=int, default=0, metavar='N',
                    help='with --json: the N stacks with most live bytes, too')
    ap.add_argument('--sarif-uri', metavar='PATH', type=sarif_uri,
                    help='file in the repository where SARIF has its findings '
                         f'(default: that of --suppress, or {sarif.FILE})')
    ap.add_argument('--vmlinux', metavar='FILE',
                    help="the kernel's file with debug information, for lines "
                         'of source in SARIF and JUnit XML, or "auto" '
                         '(docs/lines.md)')
    ap.add_argument('--modules', metavar='DIR',
                    help='the same: files of modules are in DIR or below')
    ap.add_argument('--journal', metavar='FILE',
                    help='write every event to FILE, for the program ka')
    ap.add_argument('--record', metavar='FOLDER',
                    help='record the run, for ka-run --replay FOLDER: each '
                         'finding says how to go there')
    ap.add_argument('--html', metavar='FILE',
                    help='write the page of ka report: of the journal, or '
                         'without one of the VM')
    ap.add_argument('--kasan-text', metavar='FILE',
                    help='write errors as KASAN does, and leaks of --leaks as '
                         'kmemleak does')
    ap.add_argument('--console', action='store_true',
                    help="print the guest's console")
    args = ap.parse_args(argv)
    try:
        args.max_growth = [growth.read_limit(*g) for g in args.max_growth]
    except ValueError as e:
        ap.error(f'argument --max-growth: {e}')
    for first, second, why in EITHER:
        if getattr(args, first) and getattr(args, second):
            ap.error(f"--{first} and --{second.replace('_', '-')}: {why}")
    if args.record and args.smp != 1:
        ap.error('--record: one vCPU is recorded, no more')
    args.sarif_uri = args.sarif_uri or default_uri(args.suppress)
    return args, qemu
