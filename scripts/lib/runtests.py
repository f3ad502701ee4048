#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run test programs that print TAP, and count their results.

scripts/test calls this program. The variable KA_BUILD is the build folder.
"""
import argparse
import concurrent.futures
import contextlib
import glob
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
CHECK = os.path.join(ROOT, 'scripts', 'check')
PYTHON = '/usr/bin/python3'
SHOWN_LINES = 60        # of the output of a test that failed

TEST_LINE = re.compile(r'(not )?ok\b\s*\d*\s*-?\s*(.*)')
PLAN_LINE = re.compile(r'1\.\.(\d+)')
SKIP_WORD = re.compile(r'\s*#\s*(skip|todo)\b\s*(.*)', re.I)


# --- suites ------------------------------------------------------------------

def meson_programs(suite, build='KA_BUILD'):
    """Yield the test programs that the build declares for a suite."""
    build = os.environ.get(build, '')
    if not os.path.exists(os.path.join(build, 'build.ninja')):
        return []
    out = subprocess.run(['meson', 'introspect', '--tests', build],
                         check=True, capture_output=True, text=True).stdout
    for t in json.loads(out):
        if any(s.split(':')[-1] == suite for s in t['suite']):
            yield t['name'], t['cmd'], t['env'], t['timeout'] or 300


def address_programs():
    """Yield the unit tests and the corpus of the fuzzers, under ASan and
    UBSan."""
    env = {'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',
           'G_SLICE': 'always-malloc'}
    if SHORT:       # the first kernel; the suite unit reads all
        kernels = os.environ.get('KA_TEST_KERNELS', '')
        env['KA_TEST_KERNELS'] = kernels.split(':')[0]
    for suite in ('unit', 'corpus'):
        for name, command, own, timeout in meson_programs(suite,
                                                          'KA_BUILD_ASAN'):
            yield name, command, {**own, **env}, timeout * 2


def starts_threads(name):
    path, = glob.glob(os.path.join(ROOT, 'tests', 'unit', '**',
                                   f'test-{name}.c'), recursive=True)
    return contains(path, r'g_thread_new|pthread_create')


def thread_programs():
    """Yield the unit tests that start threads, under TSan."""
    # Older versions of TSan fail with the memory layout of newer kernels.
    fixed = ['setarch', '-R'] if subprocess.run(
        ['setarch', '-R', 'true'], check=False).returncode == 0 else []
    for name, command, own, timeout in meson_programs('unit',
                                                      'KA_BUILD_TSAN'):
        # TSan does not see what orders accesses to GLib's slices: no slices.
        if starts_threads(name):
            yield (name, [*fixed, *command],
                   {**own, 'G_SLICE': 'always-malloc'}, timeout * 4)


# These compare times, or use all CPUs: no other program runs beside them.
ALONE = 'limits:test_limits', 'stress:test_access_storm', 'stress:test_stress'

# Programs at once: one more than CPUs, as each waits now and then.
JOBS = min((os.cpu_count() or 1) + 1, 5)

SHORT = False       # --short: run the quick form of programs that have one
KERNELS = ()        # --kernel: for the programs that accept a kernel
TAKES_SHORT = r"'--short'|kernel_options\(|programs\.arguments\("
TAKES_KERNEL = r"add_argument\('--kernel'|kernel_options\(|" \
               r"programs\.arguments\("


def contains(path, pattern):
    with open(path, encoding='utf-8') as f:
        return re.search(pattern, f.read())


def options_for(path):
    if SHORT and contains(path, TAKES_SHORT):
        yield '--short'
    for kernel in KERNELS:
        yield from ('--kernel', kernel)


def python_programs(*patterns, timeout=1800):
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
            if KERNELS and not contains(path, TAKES_KERNEL):
                continue
            name = os.path.basename(path)[:-3]
            yield name, [PYTHON, path, *options_for(path)], {}, timeout


# Programs for other architectures: the oracles, modules, interrupts, commands
# that read data structures of the guest's kernel, and calls that fail.
ARCH_KERNELS = 'arm64-6.12', 'riscv64-6.12'
ARCH_PROGRAMS = ('test_oracle_events', 'test_oracle_stacks',
                 'test_oracle_state', 'test_modules', 'test_interrupts',
                 'test_errors', 'test_module_leaks', 'test_regs',
                 'test_whatis', 'test_from_file')
ARCH_LONG = ('test_accounts', 'test_faults')    # not in the quick form


def arch_programs():
    for kernel in KERNELS or ARCH_KERNELS:
        for name in ARCH_PROGRAMS + (() if SHORT else ARCH_LONG):
            path = os.path.join(ROOT, 'tests', 'guest', name + '.py')
            quick = ['--short'] if SHORT else []
            yield (f'{name}-{kernel}',
                   [PYTHON, path, *quick, '--kernel', kernel], {}, 3600)


# Kernels without BTF, as people build them (see scripts/lib/kernel.sh), and
# their programs, with options of the quick form.
BUILT_KERNELS = 'nobtf-6.12', 'noall-6.12', 'fp-6.12'
BUILT_PROGRAMS = (('test_oracle_events', ['--short']),
                  ('test_errors', ['--short', '--no-cases', '--smp', '1']))
BUILT_LONG = 'test_oracle_stacks',


def built_programs():
    programs = BUILT_PROGRAMS if SHORT else \
        [(name, []) for name, _ in BUILT_PROGRAMS] + \
        [(name, []) for name in BUILT_LONG]
    for kernel in KERNELS or BUILT_KERNELS[:1 if SHORT else None]:
        for name, options in programs:
            path = os.path.join(ROOT, 'tests', 'guest', name + '.py')
            yield (f'{name}-{kernel}',
                   [PYTHON, path, *options, '--kernel', kernel], {}, 3600)


def style_programs():
    for name in ('layers', 'style'):
        yield (f'check-{name}', [CHECK, name, '--tap'], {}, 120)
    path = os.path.join(ROOT, 'tests', 'style', 'test_layers.py')
    yield 'test_layers', [PYTHON, path], {}, 300


# Suite -> its programs of tests/guest, and the seconds that one may take.
GUEST_SUITES = {
    'access': (('test_access', 'test_access_in', 'test_access_silence',
                'test_access_verify', 'test_access_watch', 'test_quarantine'),
               7200),
    'farm': (('test_farm', 'test_farm_boots', 'test_farm_engines',
              'test_farm_use', 'test_farm_vms', 'test_farm_work'), 7200),
    'hostile': (('test_hostile', 'test_page_tables', 'test_scribble'), 1800),
    'faults': (('test_faults', 'test_fault_storm', 'test_scenarios'), 3600),
    'fault-sweep': (('test_fault_sweep', 'test_fault_sweep_parts'), 3600),
    'install': (('test_install', 'test_packages', 'test_qemu_wrapper',
                 'test_vng'), 10800),
    'journal': (('test_journal',), 3600),
    'leaks': (('test_leaks', 'test_leaks_called', 'test_module_leaks',
               'test_unloaded'), 3600),
    'limits': (('test_limits',), 3600),
    'log': (('test_log',), 3600),
    'oracle-events': (('test_oracle_events',), 3600),
    'oracle-stacks': (('test_oracle_stacks', 'test_tracers'), 3600),
    'oracle-state': (('test_oracle_state',), 3600),
    'accounts': (('test_accounts',), 3600),
    'calls': (('test_calls', 'test_derefs', 'test_kedr'), 3600),
    'errors': (('test_errors', 'test_free_pairs'), 3600),
    'stress': (('test_access_storm', 'test_stress'), 7200),
    'objects': (('test_block_types', 'test_slab_check', 'test_slabs',
                 'test_struct', 'test_symbols', 'test_tasks', 'test_trace'),
                3600),
    'reports': (('test_export_sums', 'test_findings', 'test_identity',
                 'test_syzkaller'), 1800),
    'options': (('test_boot_options', 'test_few_symbols'), 7200),
    'snapshot': (('test_snapshot',), 7200),
}
# Not in the quick form: they take long, or need programs that are big.
LONG_PROGRAMS = ('test_access_storm', 'test_farm_boots', 'test_packages',
                 'test_scribble', 'test_syzkaller', 'test_vng')
# In no suite: its kernel is built from source.
BY_HAND = ('test_kmemleak',)


def suite_programs(suite):
    names, timeout = GUEST_SUITES[suite]
    return python_programs(*(f'tests/guest/{name}.py' for name in names
                             if not (SHORT and name in LONG_PROGRAMS)),
                           timeout=timeout)


def guest_programs():
    """The programs of tests/guest that are in no other suite."""
    others = {name for names, _ in GUEST_SUITES.values() for name in names}
    return (program for program in python_programs('tests/guest/test_*.py')
            if program[0] not in others and program[0] not in BY_HAND)


def health_programs():
    """What of a build can be checked without a guest."""
    include = os.path.join(os.path.dirname(os.environ.get('KA_QEMU', '')),
                           'include')
    yield ('check-plugin', [CHECK, 'plugin', '--tap', '--qemu-include',
                            include], {}, 1200)
    changed = ['--changed'] if SHORT else []
    yield 'check-tidy', [CHECK, 'tidy', '--tap', *changed], {}, 3600


# name -> its programs: (name, command, environment, seconds)
SUITES = {
    'style': style_programs,
    'health': health_programs,
    'unit': lambda: meson_programs('unit'),
    'unit-asan': address_programs,
    'unit-tsan': thread_programs,
    'replay': lambda: meson_programs('replay'),
    'corpus': lambda: meson_programs('corpus'),
    'guest': guest_programs,
    **{suite: lambda s=suite: suite_programs(s) for suite in GUEST_SUITES},
    'reports': lambda: [*meson_programs('reports'),
                        *suite_programs('reports')],
    'arches': arch_programs,
    'kernels': built_programs,
}


# --- one program -------------------------------------------------------------

class Result:
    """The result of one program, from its TAP. If LIVE, print it as it
    arrives; else collect it in .lines."""

    def __init__(self, label, verbose, live):
        self.label, self.verbose, self.live = label, verbose, live
        self.lines = []
        self.passed = self.failed = self.skipped = 0
        self.plan = self.skip_all = None
        self.seconds = self.cpu = 0     # by the clock, and of all CPUs
        self.before = []        # output since the last test line
        self.shown = 0          # lines still to show after a failure

    def put(self, text):
        if self.live:
            print(text, flush=True)
        else:
            self.lines.append(text)

    def line(self, text):
        plan = PLAN_LINE.match(text)
        test = TEST_LINE.match(text)
        if test:
            self.test(bool(test.group(1)), test.group(2))
        elif plan:
            self.plan = int(plan.group(1))
            skip = SKIP_WORD.search(text)
            if skip and self.plan == 0:
                self.skip_all = skip.group(2)
        elif text.startswith('Bail out!') and not self.failed:
            self.fail(text)
        elif self.shown > 0:
            self.shown -= 1
            self.put('    ' + text)
        else:
            self.before.append(text)
            if self.verbose and text.startswith('# '):
                self.put('    ' + text)

    def test(self, bad, name):
        word = SKIP_WORD.search(name)
        if word and (bad or word.group(1).lower() == 'skip'):
            self.skipped += 1
            self.say('skip', name[:word.start()] + ': ' + word.group(2))
        elif bad:
            self.fail(name)
            return
        else:
            self.passed += 1
            if self.verbose:
                self.say('ok', name)
        self.shown = 0
        self.before.clear()

    def fail(self, name):
        self.failed += 1
        self.say('FAIL', name)
        for text in self.before[-SHOWN_LINES:]:
            self.put('    ' + text)
        self.before.clear()
        self.shown = SHOWN_LINES

    def say(self, word, name):
        self.put(f'  {word:4} {self.label}: {name}')

    def end(self, status):
        """The program ended. Count what its TAP does not say: a bad exit
        status, or a plan that does not match."""
        seen = self.passed + self.failed + self.skipped
        if status == 77 and not self.failed:
            self.skipped += not seen
        elif status and not self.failed:
            self.fail(f'ended with status {status}')
        elif self.skip_all is not None:
            self.skipped += 1
            self.say('skip', f'all: {self.skip_all}')
        elif not seen:
            self.fail('ran no test')
        elif self.plan is None and not self.failed:
            self.fail('printed no plan')
        elif self.plan is not None and self.plan != seen and not self.failed:
            self.fail(f'planned {self.plan} tests, ran {seen}')


RUNNING = set()


def kill(proc):
    """End a program by SIGTERM, so that it ends its guests: these have their
    own process groups. After 30 s use SIGKILL."""
    for sig, seconds in (signal.SIGTERM, 30), (signal.SIGKILL, None):
        with contextlib.suppress(ProcessLookupError,
                                 subprocess.TimeoutExpired):
            os.killpg(proc.pid, sig)
            proc.wait(seconds)


def run_program(label, command, env, timeout, verbose, live):
    result, begin = Result(label, verbose, live), time.monotonic()
    late = threading.Event()

    def stop():
        late.set()
        kill(proc)

    with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, **env}, cwd=ROOT,
            start_new_session=True) as proc:
        RUNNING.add(proc)
        timer = threading.Timer(timeout, stop)
        timer.start()
        try:
            for raw in proc.stdout:
                result.line(raw.decode('utf-8', 'replace').rstrip('\r\n'))
            _, status, used = os.wait4(proc.pid, 0)
            proc.returncode = os.waitstatus_to_exitcode(status)
            result.cpu = used.ru_utime + used.ru_stime
        except BaseException:
            kill(proc)
            raise
        finally:
            RUNNING.discard(proc)
            timer.cancel()
    if late.is_set():
        result.fail(f'stopped after {timeout} s')
    result.end(proc.returncode)
    result.seconds = time.monotonic() - begin
    result.put(f'{label}: {result.passed} passed, {result.failed} failed, '
               f'{result.skipped} skipped in {result.seconds:.1f} s, '
               f'{result.cpu:.1f} s of CPU')
    if not live:
        print('\n'.join(result.lines), flush=True)
    return result


# --- all of them -------------------------------------------------------------

class Durations:
    """Seconds that each program took in the last run, kept in the cache. The
    longest start first: then no long one is left alone at the end."""

    def __init__(self):
        base = os.environ.get('KA_CACHE') or os.path.join(
            os.environ.get('HOME') or '/root', '.cache', 'ka')
        self.path = os.path.join(base, 'durations.json')
        self.seconds = {}
        with contextlib.suppress(OSError, ValueError):
            with open(self.path, encoding='utf-8') as f:
                self.seconds = json.load(f)

    @staticmethod
    def key(label):
        return label + (' --short' if SHORT else '')

    def add(self, result):
        self.seconds[self.key(result.label)] = round(result.seconds, 1)

    def longest_first(self, programs):
        """Programs that never ran come first: they may be long."""
        return sorted(programs, key=lambda p: -self.seconds.get(
            self.key(p[0]), float('inf')))

    def save(self):
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(self.path + '.new', 'w', encoding='utf-8') as f:
                json.dump(self.seconds, f, indent=1, sort_keys=True)
            os.replace(self.path + '.new', self.path)


class Total:
    """Sums over all programs."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, r):
        self.passed += r.passed
        self.failed += r.failed
        self.skipped += r.skipped


def programs_of(words, total):
    """Yield the arguments of run_program() without the last two, for each
    program that a word SUITE or SUITE:PROGRAM names."""
    for word in words:
        suite, _, only = word.partition(':')
        programs = [p for p in SUITES[suite]() if only in ('', p[0])]
        if not programs:
            print(f'  FAIL {suite}: no program' + (f' {only}' if only else ''))
            total.failed += 1
        for name, *rest in programs:
            yield f'{suite}:{name}', *rest


def run_together(programs, jobs, verbose, totals):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        try:
            todo = [pool.submit(run_program, *p, verbose, jobs == 1)
                    for p in programs]
            for done in concurrent.futures.as_completed(todo):
                for total in totals:
                    total.add(done.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for proc in list(RUNNING):
                kill(proc)
            raise


def run_all(words, jobs, verbose):
    total, durations = Total(), Durations()
    begin = time.monotonic()
    programs = list(programs_of(words, total))
    together = [p for p in programs if p[0] not in ALONE]
    run_together(durations.longest_first(together), jobs, verbose,
                 (total, durations))
    run_together([p for p in programs if p[0] in ALONE], 1, verbose,
                 (total, durations))
    durations.save()
    print_times(time.monotonic() - begin)
    print(f'{total.passed} passed, {total.failed} failed, '
          f'{total.skipped} skipped', flush=True)
    return total.passed and not total.failed


def print_times(wall):
    """How long the run took, and how busy it kept the CPUs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = (used.ru_utime + used.ru_stime) / (wall * (os.cpu_count() or 1))
    print(f'# {wall:.0f} s; the CPUs were {busy:.0%} busy')


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('--list', action='store_true')
    ap.add_argument('--check-names', action='store_true')
    ap.add_argument('--short', action='store_true')
    ap.add_argument('--kernel', action='append', default=[])
    ap.add_argument('-v', action='store_true')
    ap.add_argument('--jobs', type=int, default=JOBS)
    ap.add_argument('suite', nargs='*')
    args = ap.parse_args()
    global SHORT, KERNELS   # pylint: disable=global-statement
    SHORT, KERNELS = args.short, args.kernel
    for word in args.suite:
        if word.split(':')[0] not in SUITES:
            sys.exit(f"scripts/test: no suite '{word}'; there are: "
                     + ' '.join(SUITES))
    if args.check_names:
        return
    if args.list:
        for suite, programs in SUITES.items():
            print(suite + ''.join(' ' + p[0] for p in programs()))
        return
    sys.exit(0 if run_all(args.suite or SUITES, args.jobs, args.v) else 1)


if __name__ == '__main__':
    for number in signal.SIGTERM, signal.SIGHUP:
        if signal.getsignal(number) != signal.SIG_IGN:      # nohup stays
            signal.signal(number, lambda n, _: sys.exit(128 + n))
    main()
