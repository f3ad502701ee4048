#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run test programs that print TAP, and count their results. TABLE has all of
them. scripts/test calls this program after set-up."""
import argparse
import os
import resource
import signal
import sys
import time

from testrun import ROOT, bare, cache_folder, used
from testrun.choice import LEVELS, Choice, ChoiceError, Table, later_only
from testrun.durations import Durations
from testrun.needs import SetUp, all_paths
from testrun.process import kill_all
from testrun.repeat import repeat_job
from testrun.schedule import Run, flaky_lines
from testrun.screen import Screen

# More words for the kernels of guests. Their search for serial ports and their
# tests of ciphers are a tenth of a boot, and nothing here is about them.
LESS = '8250.nr_uarts=1 cryptomgr.notests'

# A row is a suite, a program, the minutes that it may take, the lowest level
# that runs it, and what it needs beside scripts/setup: steps, and kernels as
# "k:NAME". A need with /LEVEL is one from that level on. A program is
#     NAME         of tests/guest or tests/style, or a row of COMMANDS
#     NAME@KERNEL  the same, with --kernel
#     *            all tests of the suite that the build declares, except those
#                  that have a row; each has its own limit
# A line that begins with a blank continues the one before. The levels default
# and full give --short to programs that accept it; OPTIONS has exceptions.
TABLE = '''
style         check-layers              2   default
style         check-style               2   default
style         test_layers               5   default
style         test_page_commands        5   default
style         test_runtests             5   default
health        check-plugin              20  full     clang
health        check-tidy                60  full     clang-tidy
unit          *                         -   default
unit-asan     *                         -   full     build-asan
unit-tsan     *                         -   full     build-tsan
replay        *                         -   default
replay        shells                    5   full     shells
corpus        *                         -   default
guest         test_accel                30  default
guest         test_baremetal            30  full     qemu-source qemu-aarch64
              qemu-riscv64 cross-arm64 cross-riscv64 lldb
guest         test_boot                 30  default
guest         test_changes              30  full     k:6.12-rt
guest         test_coherent             30  full
guest         test_debugger             30  full
guest         test_disk                 30  full
guest         test_dump                 30  full     drgn
guest         test_efi                  30  full     efi k:arm64-6.12
guest         test_flavours             30  full     k:6.12-rt
guest         test_forced_return        30  full     qemu-source qemu-aarch64
              qemu-riscv64 cross-arm64 cross-riscv64
guest         test_from_file            30  full
guest         test_gdb_helper           30  default
guest         test_hibernate            30  full
guest         test_hotplug              30  full
guest         test_interrupts           30  full
guest         test_kexec                30  full
guest         test_learned              30  full
guest         test_lldb                 30  full     lldb
guest         test_matching             30  default
guest         test_module_names         30  full
guest         test_modules              30  default
guest         test_nothing_set          30  full
guest         test_pages                30  full
guest         test_panic                30  full
guest         test_regs                 30  full
guest         test_removed              90  full
guest         test_rules                30  full
guest         test_script               30  full
guest         test_scripts              30  full
guest         test_sums                 30  full
guest         test_sweep                30  full
guest         test_sweep_ends           30  full
guest         test_text_unchanged       30  full
guest         test_types                30  full
guest         test_whatis               30  default
access        test_access               120 full     k:kasan-6.12/long
              k:kasan-6.1/long
access        test_access_in            120 default  k:5.10/long
access        test_access_silence       120 full     k:6.18/long k:7.3/long
              k:arm64-6.12/long k:riscv64-6.12/long
access        test_access_verify        120 full
access        test_access_watch         120 full     k:arm64-6.12/long
              k:riscv64-6.12/long
access        test_former                15 full
access        test_quarantine           120 full
farm          test_farm                 120 default  farm
farm          test_farm_boots           120 long     farm
farm          test_farm_bugs            120 default  farm
farm          test_farm_docs            120 full     farm
farm          test_farm_engines         120 full     farm slurm
farm          test_farm_pages           120 full     farm
farm          test_farm_sick            120 long     farm k:lockdep-6.12
farm          test_farm_use             120 default  farm
farm          test_farm_vms             120 full     farm slurm
farm          test_farm_work            120 full     farm
hostile       test_hostile              30  full     k:arm64-6.12
hostile       test_page_tables          30  default
hostile       test_scribble             30  long
faults        test_fail_nth             60  long     k:allocinfo-6.12
faults        test_fault_storm          60  full
faults        test_faults               60  default
faults        test_scenarios            60  full     k:6.12-rt/long
fault-sweep   test_fault_sweep          60  full
fault-sweep   test_fault_sweep_parts    60  default
fault-sweep   test_fault_sweep_planted  60  full
install       test_install              180 default  man
install       test_packages             180 long     package container
install       test_qemu_wrapper         180 full
install       test_vng                  180 long     vng k:6.12-generic
journal       test_journal              60  default
leaks         test_leaks                60  full     k:arm64-6.12 k:riscv64-6.12
leaks         test_leaks_called         60  full     k:6.18/long k:7.3/long
              k:5.10/long
leaks         test_module_leaks         60  default
leaks         test_unloaded             60  full
limits        test_limits               60  full
log           test_log                  60  default  k:5.10/long k:7.3/long
oracle-events test_oracle_events        60  default
oracle-stacks test_oracle_stacks        60  default
oracle-stacks test_tracers              60  full
oracle-state  test_oracle_state         60  default
accounts      test_accounts             60  default
accounts      test_allocinfo            60  long     k:allocinfo-6.12
calls         test_calls                60  default
calls         test_derefs               60  full
calls         test_kedr                 60  full
errors        test_errors               60  default
errors        test_free_pairs           60  full
stress        test_access_storm         120 long
stress        test_stress               120 full
objects       test_block_types          60  full     more-kernels/long
objects       test_bt                   60  full     more-kernels/long
objects       test_slab_check           60  full     more-kernels/long
objects       test_slabs                60  full     drgn more-kernels/long
              drgn-newer/long
objects       test_struct               60  full     drgn more-kernels/long
objects       test_symbols              60  full     lldb clang k:6.12-rt/long
              more-kernels/long
objects       test_tasks                60  default  drgn/full k:nobtf-6.12/long
              k:dwarf-6.12/long more-kernels/long
objects       test_trace                60  full     more-kernels/long
reports       *                         -   default
reports       export-names              5   full     heaptrack
reports       heaptrack                 5   full     heaptrack
reports       lines                     5   full     clang
reports       openmetrics               5   full     openmetrics viewers/long
reports       page-axe                  5   long     browser readers
reports       page-browser              5   long     browser
reports       page-model                5   full     readers
reports       pprof                     5   full     readers viewers/long
reports       speedscope                5   full     readers
reports       test_export_sums          30  full     readers heaptrack
              k:arm64-6.12/long
reports       test_findings             30  full     findings multitool/long
reports       test_health               30  default  syzkaller/long
reports       test_identity             30  full
reports       test_sick                 120 full     k:5.10/long
              k:6.18/long k:7.3/long k:arm64-6.12/long k:lockdep-6.12/long
              syzkaller/long
reports       test_syzkaller            30  long     syzkaller
options       test_boot_options         120 full
options       test_few_symbols          120 default
snapshot      test_snapshot             120 full
replay-vm     test_goto                 60  full     k:6.1/long
              k:arm64-6.12/long k:riscv64-6.12/long
replay-vm     test_recording            90  full     k:6.1/long
              k:arm64-6.12/long k:riscv64-6.12/long
arches        test_oracle_events@arm64-6.12    60 default
arches        test_errors@arm64-6.12           60 default
arches        test_regs@arm64-6.12             60 default
arches        test_oracle_stacks@arm64-6.12    60 full
arches        test_oracle_state@arm64-6.12     60 full
arches        test_modules@arm64-6.12          60 full
arches        test_interrupts@arm64-6.12       60 full
arches        test_module_leaks@arm64-6.12     60 full
arches        test_whatis@arm64-6.12           60 full
arches        test_coherent@arm64-6.12         60 full
arches        test_removed@arm64-6.12          150 long
arches        test_from_file@arm64-6.12        60 full
arches        test_accounts@arm64-6.12         60 long
arches        test_faults@arm64-6.12           60 long
arches        test_oracle_events@riscv64-6.12  60 full
arches        test_errors@riscv64-6.12         60 full
arches        test_regs@riscv64-6.12           60 full
arches        test_oracle_stacks@riscv64-6.12  60 full
arches        test_oracle_state@riscv64-6.12   60 full
arches        test_modules@riscv64-6.12        60 full
arches        test_interrupts@riscv64-6.12     60 full
arches        test_module_leaks@riscv64-6.12   60 full
arches        test_whatis@riscv64-6.12         60 long
arches        test_from_file@riscv64-6.12      60 full
arches        test_accounts@riscv64-6.12       60 long
arches        test_faults@riscv64-6.12         60 long
kernels       test_oracle_events@nobtf-6.12    60 full
kernels       test_errors@nobtf-6.12           60 full
kernels       test_oracle_stacks@nobtf-6.12    60 long
kernels       test_rules@notrace-6.1           60 long
kernels       test_errors@notrace-6.1          60 long
kernels       test_rules@slab-6.1              60 long
kernels       test_errors@slab-6.1             60 long
kernels       test_leaks@slab-6.1              60 long
kernels       test_access@slab-6.1             60 long
kernels       test_errors@slob-6.1             60 long
kernels       test_oracle_events@noall-6.12    60 long
kernels       test_errors@noall-6.12           60 long
kernels       test_oracle_stacks@noall-6.12    60 long
kernels       test_oracle_events@fp-6.12       60 long
kernels       test_errors@fp-6.12              60 long
kernels       test_oracle_stacks@fp-6.12       60 long
kvm           test_kvm                  60  full
kvm           test_kvm_errors           90  long
kvm           test_kvm_moves            90  long
kvm           test_kvm_same             120 long
kvm           test_kvm_storm            180 long
'''
ALIASES = {'more-kernels': 'k:5.10 k:6.18 k:7.3 k:arm64-6.12 k:riscv64-6.12'}

# In no suite: its kernel is built from source.
BY_HAND = ('test_kmemleak',)

# These compare times, or use all CPUs: no other program runs beside them.
ALONE = ('limits:test_limits', 'stress:test_access_storm',
         'stress:test_stress')

CHECK = os.path.join(ROOT, 'scripts', 'check')
COMMANDS = {
    'check-layers': lambda quick: [CHECK, 'layers', '--tap'],
    'check-style': lambda quick: [CHECK, 'style', '--tap'],
    'check-plugin': lambda quick: [
        CHECK, 'plugin', '--tap', '--qemu-include',
        os.path.join(os.path.dirname(os.environ.get('KA_QEMU', '')),
                     'include'), '--build', os.environ.get('KA_BUILD', '')],
    'check-tidy': lambda quick: [CHECK, 'tidy', '--tap',
                                 *(['--changed'] if quick else [])],
}
# Options of the quick form, instead of --short.
OPTIONS = {
    'kernels:test_errors@nobtf-6.12': '--short --no-cases --smp 1',
}
ALL = Table(TABLE, ALIASES, COMMANDS, OPTIONS, ALONE)

# Programs at once: one more than CPUs, as each waits now and then.
THREADS = min((os.cpu_count() or 1) + 1, 5)


# --- the run -----------------------------------------------------------------

def read_paths(level):
    """Put into the environment where everything is now. From KA_PATHS
    scripts/setup knows it without a search."""
    text = all_paths()
    path = dict(line.split('=', 1) for line in text.splitlines())

    def kernel_files(*names):
        files = [os.path.join(path['kernel-' + n], 'vmlinuz') for n in names]
        return ':'.join(os.path.realpath(f) for f in files
                        if os.path.exists(f))

    os.environ.update(
        KA_NO_SETUP='1', KA_ACCEL='tcg', KA_BUILD=path['build'],
        KA_QEMU=path['qemu'], KA_APPEND=LESS,
        KA_BUILD_ASAN=path['build-asan'], KA_BUILD_TSAN=path['build-tsan'],
        KA_READERS=path['readers'],
        KA_TEST_KERNELS=kernel_files('6.12', '6.1'),
        KA_TEST_ARCH_KERNELS=kernel_files('arm64-6.12', 'riscv64-6.12')
        if level == 'long' else '',
        KA_PATHS=f'{ROOT}|{os.path.abspath(cache_folder())}|{path["build"]}\n'
                 + text.rstrip())


def results_folder():
    return os.path.join(cache_folder(), 'results',
                        time.strftime('%Y%m%d-%H%M%S') + f'-{os.getpid()}')


def needed(jobs, durations):
    """Return what jobs need, that of the longest job first."""
    return list(dict.fromkeys(
        word for job in durations.longest_first(jobs) for word in job.needs))


def phases(args, choice):
    """Return lists of jobs, which run one after the other."""
    jobs = choice.jobs(args.suite)
    if not args.default_first:
        return [jobs]
    first = Choice(ALL, LEVELS[0], args.kernel).jobs(args.suite)
    return [first, later_only(jobs, first)]


def run_phases(run, lists, threads):
    for number, jobs in enumerate(lists):
        if number:
            run.screen.say(f'# level default: {run.total().sums()}; now the '
                           f'{len(jobs)} programs of --full that did not run '
                           'in the same form')
        run.together(run.durations.longest_first(
            [j for j in jobs if not j.alone]), threads)
        run.together([j for j in jobs if j.alone], 1)


def run_jobs(lists, args):
    """Run all; print the end of the output. Return if all is well."""
    screen, durations = Screen(), Durations()
    jobs = [job for some in lists for job in some]
    setup = SetUp([w for some in lists for w in needed(some, durations)],
                  screen, lambda: read_paths(args.level))
    run = Run(jobs, setup, screen, os.environ['KA_RESULTS'], durations, args.v)
    stopped, before = '', cpu_seconds()
    setup.start()
    try:
        run_phases(run, lists, args.jobs)
        run.again()
    except KeyboardInterrupt:
        stopped = f'# interrupted: {len(jobs) - len(run.results)} of ' \
                  f'{len(jobs)} programs did not run to their end'
    finally:
        kill_all()
        durations.save()
    screen.say(busy_line(time.monotonic() - screen.begin,
                         cpu_seconds() - before),
               *flaky_lines(run.flaky), *filter(None, [stopped]),
               run.total().sums())
    total = run.total()
    return bool(total.passed and not total.failed and not stopped)


def repeat_all(jobs, args):
    """Run one program args.repeat times. Return if it never failed."""
    if len(jobs) != 1:
        raise ChoiceError('--repeat needs one SUITE:PROGRAM')
    screen = Screen()
    setup = SetUp(jobs[0].needs, screen, lambda: read_paths(args.level))
    setup.start()
    setup.thread.join()
    if failure := setup.failure(jobs[0].needs):
        raise ChoiceError(failure)
    return repeat_job(jobs[0], args.repeat, os.environ['KA_RESULTS'], screen)


def show_uses(jobs, args):
    """Compare what programs use with their rows. Return if no row lacks
    anything."""
    screen = Screen()
    setup = SetUp(dict.fromkeys(['strace', *needed(jobs, Durations())]),
                  screen, lambda: read_paths(args.level))
    setup.start()
    setup.thread.join()
    return used.check_all(jobs, screen, os.environ['KA_RESULTS'])


def cpu_seconds():
    """Return what all programs that have ended used. Set-up, which this
    process did before it was Python, is part of it."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def busy_line(wall, cpu):
    """How long the run took, and how busy it kept the CPUs."""
    return f'# {wall:.0f} s; the CPUs were ' \
           f'{cpu / (wall * (os.cpu_count() or 1)):.0%} busy'


def list_jobs(jobs):
    for job in jobs:
        print(f'{job.label:40} {job.level:8} {" ".join(job.needs)}'.rstrip())


def read_arguments():
    ap = argparse.ArgumentParser(prog='scripts/test', allow_abbrev=False,
                                 usage='see scripts/test --help')
    level = ap.add_mutually_exclusive_group()
    for name, word in (('--full', 'full'), ('--short', 'full'),
                       ('--long', 'long')):
        level.add_argument(name, dest='level', action='store_const',
                           const=word)
    for name in ('--list', '--check-names', '--times', '--uses',
                 '--default-first', '-v'):
        ap.add_argument(name, action='store_true')
    ap.add_argument('--kernel', action='append', default=[])
    ap.add_argument('--jobs', type=int, default=THREADS)
    ap.add_argument('--repeat', type=int)
    ap.add_argument('suite', nargs='*')
    args = ap.parse_args()
    for word in args.suite:
        if word.split(':')[0] not in ALL.suites:
            ap.error(f"no suite '{word}'; there are: " + ' '.join(ALL.suites))
    # Who names a suite wants more of it than its heart.
    args.level = args.level or LEVELS[bool(args.suite)]
    return args


def main():
    if '--bare' in sys.argv:
        bare.main(ALL.suites)
    args = read_arguments()
    if args.check_names:
        return
    read_paths(args.level)
    os.environ['KA_RESULTS'] = results_folder()
    lists = phases(args, Choice(ALL, args.level, args.kernel))
    if args.list:
        list_jobs(sum(lists, []))
    elif args.times:
        print(*Durations().table(sum(lists, [])), sep='\n')
    elif args.uses:
        sys.exit(0 if show_uses(sum(lists, []), args) else 1)
    elif args.repeat:
        sys.exit(0 if repeat_all(sum(lists, []), args) else 1)
    else:
        sys.exit(0 if run_jobs(lists, args) else 1)


if __name__ == '__main__':
    for number in signal.SIGTERM, signal.SIGHUP:
        if signal.getsignal(number) != signal.SIG_IGN:      # nohup stays
            signal.signal(number, lambda n, _: sys.exit(128 + n))
    try:
        main()
    except ChoiceError as e:
        sys.exit(f'scripts/test: {e}')
    finally:
        kill_all()
