#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The scripts work, without a guest: in a tree in which set-up and QEMU are
replaced by stand-ins; and functions of scripts/sweep, called directly. Oracle:
the arguments and messages that are expected.
"""
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest.mock

from lib.tap import Tap
from scripts import ka
from scripts.lib import accel, docs, files, statuses
from scripts.lib.findings import (
    baseline, ends, finding, hang, scenario, suppress)
from scripts.lib.guest import Guest
from scripts.lib.prepared import ROOT
from scripts.lib.qmp import GuestError
from scripts.lib.signals import hear_hangups

tap = Tap()
work = tempfile.mkdtemp(prefix='ka-scripts.')


def load_sweep():
    """Load scripts/sweep as a module, without writing bytecode."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(
        'sweep', os.path.join(ROOT, 'scripts', 'sweep'))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader('sweep', loader))
    loader.exec_module(module)
    return module


def until(true):
    """Wait until TRUE() is true, at most 20 s; return its value."""
    end = time.monotonic() + 20
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


sweep = load_sweep()


class Vm:
    """A VM that runs; its console does not change."""

    ka = None

    def __init__(self, console):
        self.console = console

    def qmp(self, _):
        return {'running': True, 'status': 'running'}


def waited(console, marker=None, timeout=0.01, until_timeout=True):
    """Return the end of a guest that runs on."""
    args = types.SimpleNamespace(timeout=timeout, marker=marker,
                                 console=False, max_growth=[],
                                 until_timeout=until_timeout)
    end = ends.wait(Vm(console), args)
    return end.why, end.problem


PANIC = '[    1.0] Kernel panic - not syncing: sysrq triggered crash\n'

with tap.test('sweep: a guest that has panicked is reported so at the timeout'):
    assert waited('login:\n') == ('timeout', None)
    why, problem = waited(PANIC)
    assert why == 'panic', why
    assert 'Kernel panic - not syncing: sysrq' in problem, problem

with tap.test('sweep: a panic in which the guest stays ends the wait'):
    why, problem = waited(PANIC + '---[ end Kernel panic - not syncing: ]---',
                          timeout=10)
    assert why == 'panic' and 'sysrq' in problem, (why, problem)

with tap.test('sweep: a marker does not hide a panic'):
    why, problem = waited(PANIC + 'marked\n', marker='marked')
    assert why == 'marker' and 'sysrq' in problem, (why, problem)
    assert waited('marked\n', marker='marked') == ('marker', None)

with tap.test('sweep: a guest that runs on is hung, unless it is meant to'):
    args = types.SimpleNamespace(timeout=0.01, marker=None, console=False,
                                 max_growth=[], until_timeout=False)
    end = ends.wait(Vm('login:\n'), args)
    assert (end.why, end.problem, end.hung) == ('timeout', None, True), end
    args.until_timeout = True
    end = ends.wait(Vm('login:\n'), args)
    assert (end.why, end.problem, end.hung) == ('timeout', None, False), end

with tap.test('sweep: a text that is expected is a finding, or a problem'):
    args = types.SimpleNamespace(expect=['passed', 'login'])
    for end, found, problems_ in (
            (ends.End('end', None, 'login:'), 1, 0),
            (ends.End('end', None, 'login: passed'), 0, 0),
            (ends.End('panic', 'the guest panicked', 'login:'), 0, 1),
            (ends.End('timeout', None, 'login:', hung=True), 0, 1)):
        made = ends.expect_findings(args, end)
        assert len(made) == found, (end, made)
        assert len([*ends.why_not_expected(args, end)]) == problems_, end
    one, = ends.expect_findings(args, ends.End('end', None, 'login'))
    assert one.title == 'expected text is missing: passed', one

with tap.test('sweep: in which phase a guest hangs'):
    for text, calls, tasks, want in (
            ('', [], [], 'no kernel'),
            ('[ 0.0] Linux version 6.12\n', [], [], 'was booting'),
            ('Linux version 6\n', ['do_initcalls+0x1'],
             [{'pid': 1, 'mm': '0x0'}], 'was booting'),
            ('Linux version 6\n Run /init as init process\n', [], [],
             'user space'),
            ('', [], [{'pid': 1, 'mm': '0xffff888000001000'}], 'user space'),
            ('KA-READY\n', ['device_shutdown+0x10', 'kernel_power_off+0x2'],
             [], 'shutting down'),
            ('KA-READY\n[ 9.0] reboot: Power down\n', [], [],
             'shutting down'),
            ('KA-READY\n', [], [{'pid': 70, 'comm': 'poweroff'}],
             'shutting down'),
            ('KA-READY\n', ['kernel_power_off_late+0x1'], [], 'user space')):
        found = hang.phase(hang.Signs(text, calls, tasks))
        assert want in found, (text, calls, tasks, found)



class Hung:
    """A stand-in for a guest that is stopped. ANSWERS: {command: its text}."""

    def __init__(self, **answers):
        self.answers = answers

    @property
    def ka(self):
        return ka.Monitor(self.hmp_qmp)

    def hmp_qmp(self, line):
        return self.answers.get(line.split()[1], '{"fail":"not now"}')


def json_lines(*rows):
    return ''.join(json.dumps(row) + '\n' for row in rows)


with tap.test('sweep: what a guest that hangs did is told, and has limits'):
    tasks = [{'type': 'task', 'pid': n, 'state': 'D', 'text': f'task {n}'}
             for n in range(1, 100)]
    where, text = hang.describe(Hung(
        bt=json_lines(
            {'type': 'vcpu_stack', 'cpu': 0, 'stop': 'user', 'stack': []},
            {'type': 'vcpu_stack', 'cpu': 1, 'stop': 'end', 'stack_symbols':
             [f'f{n}+0x1' for n in range(99)]},
            {'type': 'vcpu_stack', 'cpu': 2, 'stop': 'user',
             'stack_symbols': ['in_a_call+0x1']}),
        task=json_lines(*tasks), log=json_lines(
            {'type': 'log', 'text': 'Run /init as init process'})),
        'a line\n' * 1000 + 'the last one\n')
    lines = text.split('\n')
    assert where == 'user space was running', where
    assert lines[:3] == ['vcpu0 runs user code', 'vcpu1 99 frames, end',
                         '  f0+0x1'], lines
    assert 'vcpu2 1 frames, user' in lines, lines
    assert '  (59 more frames)' in lines and '  (79 more tasks)' in lines
    assert lines[-1] == '  the last one' and len(lines) < 90, lines

with tap.test('sweep: without stacks a guest that hangs has its counters'):
    where, text = hang.describe(Hung(registers=(
        'RAX=0 RIP=ffffffff81000010 RFL=1\nRIP=00007f0000000020 RFL=2\n')),
        '')
    assert where == 'no kernel was running yet', where
    assert text.split('\n') == [
        'ka bt: not now', 'vcpu0 at ffffffff81000010',
        'vcpu1 at 00007f0000000020'], text

REPORT = 'KA-DONE %s %s\n'


def scenario_of(*words):
    made = scenario.Scenario(sweep.parse_args(words)[0])
    return made, made.token


with tap.test('sweep: a script that fails is a finding, with what insmod said'):
    made, token = scenario_of('--run', 'x.sh')
    assert made.words[0] == 'ka.token=' + token
    for said, want in (
            ("insmod: can't insert '/share/x.ko': Invalid argument", 'insmod '
             'x.ko: Invalid argument'),
            ("insmod: can't insert 'gone.ko': No such file or directory",
             'insmod gone.ko: No such file or directory'),
            ('insmod: ERROR: could not insert module /m/x.ko: Invalid module '
             'format', 'insmod x.ko: Invalid module format'),
            ("modprobe: ERROR: could not insert 'x': Unknown symbol in "
             'module', 'modprobe x: Unknown symbol in module'),
            ('modprobe: FATAL: Module xyz not found in directory /lib/modules',
             'modprobe xyz: module not found'),
            ('modprobe: module xyz not found in modules.dep',
             'modprobe xyz: module not found'), ('ls: x: no', '')):
        console = f'boot\nKA-BEGIN {token}\n{said}\n' + REPORT % (1, token)
        one, = made.findings(console)
        assert one.title == 'scenario failed: status 1' + (
            want and ': ' + want), one
        assert said in one.text and 'boot' not in one.text, one.text
        assert not [*made.why_not_known(console)]
    one, = made.findings(REPORT % (139, token))
    assert one.title == 'scenario failed: status 139 (SIGSEGV)', one

with tap.test('sweep: only its own token reports a status'):
    made, token = scenario_of('--run', 'x.sh')
    other, _ = scenario_of('--append', 'ka.run=work')
    for console in ('KA-DONE 1\n', REPORT % (1, 'f' * 16),
                    f'Command line: ka.token={token} ka.run=ka-sweep\n',
                    f'+ printf KA-DONE $status {token}\n'):
        assert not made.findings(console), console
        why, = made.why_not_known(console)
        assert 'never began' in why, why
        assert not [*other.why_not_known(console)]
    assert not made.findings(REPORT % (0, token))
    why, = made.why_not_known(f'KA-BEGIN {token}\n')
    assert 'did not come to its end' in why
    one, = other.findings(REPORT % (99, other.token))
    assert one.kind == 'scenario'
    assert scenario_of()[0].words == []

with tap.test('sweep: the script and the folder of --share are in /share'):
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + '/x.sh', 'w', encoding='ascii') as f:
            f.write('exit 7\n')
        made, token = scenario_of('--run', folder + '/x.sh', '--share', folder)
        made.make_share(folder + '/made')
        assert sorted(os.listdir(folder + '/made')) == [
            'ka-scenario.sh', 'ka-sweep.sh', 'x.sh']
        with open(folder + '/made/ka-sweep.sh', encoding='ascii') as f:
            text = f.read().replace('/share', folder + '/made')
        done = subprocess.run(['sh', '-c', text.replace('sleep 2', ':')],
                              text=True, capture_output=True, check=False)
        assert done.returncode == 7 and not done.stderr, done
        one, = made.findings(done.stdout)
        assert one.title == 'scenario failed: status 7', one

with tap.test('sweep: the line of a marker is read to its end'):
    class Slow(Vm):
        """A guest that prints a line in two parts."""
        parts = ['KA-DO', 'KA-DONE', 'KA-DONE 1 token\n']

        def __init__(self):     # pylint: disable=super-init-not-called
            pass

        @property
        def console(self):
            return self.parts.pop(0) if len(self.parts) > 1 else self.parts[0]

    args = types.SimpleNamespace(timeout=10, marker='KA-DONE', console=False,
                                 max_growth=[], until_timeout=False)
    end = ends.wait(Slow(), args)
    assert end.why == 'marker' and end.console == 'KA-DONE 1 token\n', end

with tap.test('sweep: of a guest that prints nothing a panic is not known'):
    why, problem = waited('\n')
    assert why == 'timeout' and 'printed nothing' in problem, (why, problem)

STAT = {'tracing.state': 'on', 'tracing.kernel': 'recognised',
        'blocks.previous_boot': 0, 'complete': True,
        'double_frees': True}


NO_MARKER = types.SimpleNamespace(marker=None, max_growth=[])


def problems(marker=None, why='end', **stat):
    """Return the reasons for a guest whose `ka stat` differs like this from a
    good one."""
    args = types.SimpleNamespace(marker=marker, max_growth=[])
    return list(sweep.why_not_all(args, why, {**STAT, **stat}))


with tap.test('sweep: where errors were lost a guest is not clean'):
    assert problems() == []
    for stat, want in (
            ({'error.dropped': 3}, '3 more errors'),
            ({'double_frees': False}, 'allocating calls were dropped'),
            ({'tracing.state': 'off'}, 'tracing was switched off'),
            ({'tracing.kernel': 'not recognised'}, 'not recognised'),
            ({'blocks.previous_boot': 1}, 'booted again')):
        text, = problems(**stat)
        assert want in text, text

with tap.test('sweep: what else is not known is warned of'):
    assert not list(sweep.unseen(STAT))
    for stat in {'gaps': 1}, {'block.dropped': 1}, {'complete': False}, \
            {'journal.lost': 1}:
        text, = sweep.unseen({**STAT, **stat})
        assert not problems(**stat), stat


class Answers:
    """A stand-in for the monitor of a guest."""

    def __init__(self, **answers):
        self.answers = answers

    def qmp(self, _):
        return {}

    @property
    def ka(self):
        return ka.Monitor(self.hmp_qmp)

    def hmp_qmp(self, command):
        words = command.split()
        if words[1] == 'leak':
            return self.answers['_'.join(words[1:3])]
        return self.answers[words[1] + ('_json' if '-j' in words else '')]


def swept(*words, **answers):
    """Sweep a stand-in with these options; return (findings, stat)."""
    return sweep.sweep(Answers(
        stat_json='{"type":"stat","events.checked":7}', **answers),
        sweep.parse_args(['--no-health', *words])[0])


with tap.test('sweep: a line of what is not known is no error'):
    found, state = swept(
        error_json='{"type":"incomplete","complete":"no",'
                   '"double_frees":"unknown"}\n'
                   '{"type":"error","error":"double-free","title":"t"}',
        error='not all errors are known: ...\nerror[double-free]')
    assert [(f.kind, f.title, f.text) for f in found] == [
        ('double-free', 't', 'error[double-free]')], found
    assert not state['complete'], state
    assert not state['double_frees'], state

NO_ERROR = '{"type":"clean"}'

with tap.test('sweep: --slab-check adds findings, with their blocks'):
    found, state = swept(
        '--slab-check', error_json=NO_ERROR,
        slab_json='{"type":"finding","kind":"cycle","object":"0x40",'
                  '"cache":"c","text":"! cycle"}\n'
                  '{"type":"block","state":"A","va":"0x40",'
                  '"alloc_symbols":["f+0x1 [m]"]}\n'
                  '{"type":"finding","kind":"count","object":null,'
                  '"text":"! count"}\n'
                  '{"type":"none","text":"why not"}\n'
                  '{"type":"slab_check","findings":2,"why":"off"}')
    assert [f.title for f in found] == [
        'cycle in c', 'count in an unknown cache'], found
    assert list(suppress.functions(found[0].row)) == ['f', 'm:f'], found
    assert [f.text for f in found] == ['! cycle\n    A 0x40', '! count']
    assert 'were not compared' in list(sweep.unseen(state))[0], state

LEAK = '{"type":"block","leak":"lost","va":"0x40","requested":8,' \
       '"title":"leak in f","fold":"%s","exact":"%s","same_stack":2,' \
       '"alloc_symbols":["f+0x1[m]"]}\n'

with tap.test('sweep: a leak of a scan and of a module is one finding'):
    found, state = swept(
        '--leaks', '--module-leaks', error_json=NO_ERROR,
        leak_module=(
            '{"type":"module","name":"m","blocks":2,"leaked":1}\n' +
            LEAK % ('a', 'b') + '{"type":"block","kept":"data","va":"0x1"}'),
        leak_scan=LEAK % ('a', 'b') + LEAK % ('c', 'd') +
        '{"type":"scan","missing":3}')
    assert [f.fold for f in found] == ['a', 'c'], found
    assert 'left by module m' in found[0].text, found[0].text
    assert found[0].blocks == 3
    assert '3 things' in list(sweep.unseen(state))[0], state
    assert not list(sweep.why_not_all(NO_MARKER, 'end', {**STAT, **state}))

with tap.test('sweep: a search for leaks that is refused is a problem'):
    found, state = swept(
        '--leaks', '--module-leaks', error_json=NO_ERROR,
        leak_module='{"type":"module","name":"m","blocks":2}\n'
                    '{"type":"block","va":"0x1"}',
        leak_scan='{"fail":"no stacks"}')
    assert not found
    text = list(sweep.why_not_all(NO_MARKER, 'end', {**STAT, **state}))
    assert len(text) == 2 and 'no stacks' in text[0], text
    assert 'which blocks are in use' in text[1], text

with tap.test('sweep: suppressions and the baseline hide findings'):
    made = [finding.from_leak(json.loads(LEAK % (fold, 'x')), fold)
            for fold in ('a' * 8, 'b' * 8, 'c' * 8)]
    made[0].row['alloc_symbols'] = ['g+0x1']
    sweep.Known([suppress.Suppression('leak g', 1)],
                baseline.Baseline('bbbbbbbb leak in f\n')).hide(made)
    assert [f.hidden for f in made] == [
        'suppressed by: leak g', 'known: bbbbbbbb', None]


with tap.test('sweep: SARIF has its place in the file of suppressions'):
    def uri_of(*words):
        return sweep.parse_args(words)[0].sarif_uri

    assert uri_of() == 'ka-suppressions.txt'
    assert uri_of('--suppress', 'ci/known') == 'ci/known'
    assert uri_of('--suppress', '/tmp/known') == 'ka-suppressions.txt'
    assert uri_of('--suppress', 'x', '--sarif-uri', './y') == 'y'


with tap.test('sweep: each --append adds words, as those of ka-run do'):
    options, _ = sweep.parse_args(['--append', 'quiet', '--append', 'panic=0'])
    with unittest.mock.patch.object(sweep, 'Guest', dict):
        assert sweep.start(options, [])['cmdline'] == 'quiet panic=0'
        options, _ = sweep.parse_args([])
        assert sweep.start(options, [])['cmdline'] == ''
        assert sweep.start(options, [], ['a=b'])['cmdline'] == 'a=b'


with tap.test('sweep: the command lines of docs/ci.md and README.md are right'):
    lines = []
    for page in 'docs/ci.md', 'README.md':
        with open(os.path.join(ROOT, page), encoding='utf-8') as f:
            text = f.read()
        lines += re.findall(r'^    (scripts/sweep (?!\.\.\.).*)', text, re.M)
    assert len(lines) == 2, lines
    for line in lines:
        options, qemu = sweep.parse_args(shlex.split(line)[1:])
        assert options.junit == 'ka.xml' and options.kernel == 'vmlinuz', line

with tap.test('the exit statuses of docs/ and --help are those of the code'):
    for program, page in ('sweep', 'ci'), ('fault-sweep', 'fault-sweep'):
        with open(os.path.join(ROOT, 'docs', page + '.md'),
                  encoding='utf-8') as f:
            assert f.read() == docs.with_tables(page + '.md'), page
        text = subprocess.run(
            [os.path.join(ROOT, 'scripts', program), '--help'], text=True,
            capture_output=True, check=True).stdout
        assert statuses.help_text(program) in text, text
    table = [row.status for row in statuses.rows('sweep')]
    for holds, row in zip(((1, 1, 1), (0, 1, 1), (0, 0, 1), (0, 0, 0)), table):
        assert statuses.status(*holds) == row, holds

# --- files -------------------------------------------------------------------


def fails_to_write(path, text, limit=None):
    """Write a file in a process whose files may be so large; return the
    message."""
    code = 'import resource, sys\n' \
           'sys.path.insert(0, sys.argv[1])\n' \
           'from scripts.lib import files\n' \
           'n = int(sys.argv[4])\n' \
           'if n: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))\n' \
           'try: files.write_whole(sys.argv[2], sys.argv[3])\n' \
           'except OSError as e: print(e.strerror)\n'
    return subprocess.run(
        [sys.executable, '-B', '-c', code, ROOT, path, text, str(limit or 0)],
        text=True, stdout=subprocess.PIPE, check=True).stdout.strip()


with tap.test('a file is written whole or not at all'):
    folder = tempfile.mkdtemp(dir=work)
    path, link = os.path.join(folder, 'a'), os.path.join(folder, 'link')
    os.symlink('a', link)
    for text in 'old', 'new':
        files.write_whole(link, text)
    with open(path, encoding='ascii') as f:
        assert f.read() == 'new' and os.path.islink(link)
    assert fails_to_write(path, 'x' * 9999, 4096) == 'File too large'
    assert fails_to_write('/dev/full', 'x') == 'No space left on device'
    with open(path, encoding='ascii') as f:
        assert f.read() == 'new'
    assert sorted(os.listdir(folder)) == ['a', 'link']
    files.claim(path, keep=True)
    assert sorted(os.listdir(folder)) == ['a', 'link']
    files.claim(path)
    assert os.listdir(folder) == ['link']

# Replaces scripts/ka-run --dir FOLDER: it prints, and the log cannot be
# written.
NO_LOG = """#!/usr/bin/python3
import os, socket, sys
os.chdir(sys.argv[2])
os.symlink('none/log', 'serial.log')
s = socket.socket(socket.AF_UNIX)
s.bind('serial.sock')
s.listen()
s.accept()[0].sendall(b'text')
s.accept()
"""


def why_no_console(guest):
    try:
        guest.settled_console()
    except GuestError as e:
        return str(e)
    return ''


with tap.test('a console that cannot be kept is no silent guest'):
    path = os.path.join(work, 'no-log')
    with open(path, 'w', encoding='ascii') as f:
        f.write(NO_LOG)
    os.chmod(path, 0o755)
    with unittest.mock.patch('scripts.lib.guest.RUN', path), \
            Guest(arch='x86_64') as vm:
        assert 'No such file' in until(lambda: why_no_console(vm)), 'lost'


with tap.test('a failure is reported if its logs cannot be kept'):
    for results in '/dev/null/none', '/proc/none':
        try:
            with unittest.mock.patch('scripts.lib.guest.RUN', '/bin/false'), \
                    unittest.mock.patch.dict(os.environ, KA_RESULTS=results), \
                    Guest(arch='x86_64') as vm:
                vm.wait_exit()
                raise GuestError('this')
        except GuestError as e:
            assert str(e) == 'this', e


# --- scripts/ka-run ----------------------------------------------------------

# A set-up that writes down its arguments; before the first call there is no
# tracer. A QEMU that prints its arguments, one a line.
SETUP = """#!/bin/sh
cd "$(dirname "$0")/.." || exit
if [ "$1" = --paths ]; then
    sed "s|^[a-z0-9.-]*=|&$PWD/|" paths
    [ ! -e calls ] || echo "plugin=$PWD/libka.so"
    echo kernel-6.1=
    echo arch-6.12=x86_64
    echo arch-riscv64-6.12=riscv64
else
    echo "$*" >>calls
fi
"""
PATHS = """qemu=qemu
qemu-riscv64=qemu
plugin=none/libka.so
opensbi=opensbi
kernel-6.12=6.12
initrd-6.12=6.12/initrd
kernel-riscv64-6.12=6.12
initrd-riscv64-6.12=6.12/initrd
"""
QEMU = """#!/bin/sh
printf '%s\\n' "$@"
"""
FILES = {'scripts/setup': SETUP, 'paths': PATHS, 'qemu': QEMU, 'libka.so': '',
         'scripts/no-stdout': '#!/bin/sh\nexec "$@" >&-\n',
         'Image': '', 'cpio': '12345', '6.12/vmlinuz': '', '6.12/initrd': ''}


def make_tree():
    """Make a tree with our scripts and stand-ins for set-up and QEMU."""
    tree = tempfile.mkdtemp(dir=work)
    os.symlink(os.path.join(ROOT, 'tests'), os.path.join(tree, 'tests'))
    os.mkdir(os.path.join(tree, 'scripts'))
    for name in set(os.listdir(os.path.join(ROOT, 'scripts'))) - {'setup'}:
        os.symlink(os.path.join(ROOT, 'scripts', name),
                   os.path.join(tree, 'scripts', name))
    for name, text in FILES.items():
        path = os.path.join(tree, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='ascii') as f:
            f.write(text)
        os.chmod(path, 0o755)
    return tree


def start(tree, script, *args, **more):
    """Start a script of the tree, in the tree, with the cache there. MORE is
    added to its environment."""
    env = {k: v for k, v in os.environ.items() if k != 'KA_NO_SETUP'}
    return subprocess.Popen(
        [os.path.join(tree, 'scripts', script), *args], cwd=tree, text=True,
        env={**env, 'KA_CACHE': os.path.join(tree, 'cache'), **more},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, preexec_fn=hear_hangups)


def call(tree, script, *args, **more):
    """Run a script; return (status, standard output, standard error)."""
    with start(tree, script, *args, **more) as proc:
        out, err = proc.communicate(timeout=60)
    return proc.returncode, out, err


def ka_run(tree, *args, **more):
    """Run ka-run; return the arguments of QEMU."""
    status, out, err = call(tree, 'ka-run', *args, **more)
    assert status == 0, err
    return out.splitlines()


def set_up_calls(tree):
    with open(os.path.join(tree, 'calls'), encoding='ascii') as f:
        return f.read().splitlines()


with tap.test('ka-run: the first run with a kernel of its own has the tracer'):
    for initrd in 'none', 'cpio':
        folder = make_tree()
        argv = ka_run(folder, '--kernel', 'Image', '--initrd', initrd)
        assert f'{folder}/libka.so' in argv, argv
        assert set_up_calls(folder) == [''], set_up_calls(folder)

with tap.test('ka-run: firmware of riscv64 is prepared for any kernel'):
    folder = make_tree()
    argv = ka_run(folder, '--arch', 'riscv64', '--kernel', 'Image',
                  '--initrd', 'none')
    assert f'{folder}/opensbi' in argv, argv
    assert '--only opensbi' in set_up_calls(folder)[-1], set_up_calls(folder)

with tap.test('ka-run: a folder whose name has a comma'):
    folder = make_tree()
    argv = ka_run(folder, '--dir', 'a,b')
    assert f'socket,id=gdb,path={folder}/a,,b/gdb.sock,server=on,wait=off' \
        in argv, argv


with tap.test('ka-run: a user without a folder of the session'):
    folder = make_tree()
    os.mkdir(os.path.join(folder, 'a b'))
    argv = ka_run(folder, XDG_RUNTIME_DIR='/none', TMPDIR=folder + '/a b')
    assert any(f'path={folder}/a b/ka-run.' in word for word in argv), argv

with tap.test('ka-run: a QEMU in which no kernel boots with KVM'):
    # There is no KVM, or the stand-in for QEMU shows no kernel that boots.
    folder = make_tree()
    status, out, text = call(folder, 'ka-run', '--accel', 'auto')
    assert status == 0 and 'accelerator: TCG (' in text, text
    assert 'tcg,thread=multi' in out.splitlines(), out
    assert 'max,la57=off' in out.splitlines(), out
    status, out, text = call(folder, 'ka-run', '--accel', 'kvm')
    assert status == 2 and not out, text
    assert text.splitlines()[-1].startswith('ka-run: --accel kvm: '), text

if accel.why_no_device():
    tap.skip('ka-run: KVM works', accel.why_no_device())
else:
    with tap.test('ka-run: KVM works'):
        folder = make_tree()
        with open(os.path.join(folder, 'qemu'), 'a', encoding='ascii') as f:
            f.write('echo Unable to mount root fs\n')
        for words, why in ([], 'boots with it'), (['--accel', 'kvm'],
                                                  'asked for'):
            status, out, text = call(folder, 'ka-run', *words, KA_ACCEL='auto')
            out = out.splitlines()
            assert status == 0 and 'accelerator: KVM (' in text, text
            assert why in text and text.count('trying KVM') == (not words), text
            assert out[out.index('-accel') + 1] == 'kvm', out
            assert out[out.index('-cpu') + 1] == 'host', out
        out = ka_run(folder, '--cpu', 'max', '--accel', 'auto')
        assert out[out.index('-cpu') + 1] == 'max', out
        for words in (['--icount'], ['--plugin-opts', 'access=on'],
                      ['--arch', 'riscv64'], ['--', '-loadvm', 'a']):
            out = ka_run(folder, '--accel', 'auto', *words)
            assert out[out.index('-accel') + 1].startswith('tcg,'), out

with tap.test('ka-run: a kernel that is not prepared, without set-up'):
    status, _, text = call(make_tree(), 'ka-run', '--kernel', '6.1',
                           KA_NO_SETUP='1')
    assert status == 1 and 'scripts/setup --kernel 6.1' in text, text


def initrd_with_share(*args):
    folder = make_tree()
    os.mkdir(os.path.join(folder, 'files'))
    with open(os.path.join(folder, 'files', 'word'), 'w', encoding='ascii'):
        pass
    argv = ka_run(folder, '--dir', 'run', '--share', 'files', *args)
    with open(argv[argv.index('-initrd') + 1], 'rb') as f:
        return f.read()


with tap.test('ka-run: --share, behind an initramfs of any size and alone'):
    cpio = initrd_with_share('--initrd', 'none')
    assert cpio.startswith(b'070701') and b'share/word' in cpio, cpio
    assert b'0share\0' in cpio, cpio
    assert initrd_with_share('--initrd', 'cpio') == b'12345\0\0\0' + cpio
    status, _, text = call(make_tree(), 'ka-run', '--disk-boot', '--share',
                           '.')
    assert status == 2 and text.count('\n') == 1, text


# --- kernels that are built --------------------------------------------------

OBJECTS = """. scripts/lib/common.sh; . scripts/lib/kernel-build.sh
kernel_objects /sources/linux-1 x86-gcc"""


def kernel_objects(cache):
    """Begin a build; return the folder of the objects and what is in it."""
    path = subprocess.run(
        ['bash', '-c', OBJECTS], cwd=ROOT, check=True, text=True,
        env={**os.environ, 'KA_CACHE': cache}, stdout=subprocess.PIPE).stdout
    return path.strip(), os.listdir(path.strip())


with tap.test('setup: a kernel is built with the objects of a complete build '
              'only'):
    folder = tempfile.mkdtemp(dir=work)
    for files, kept in (('a.o',), []), (('a.o', 'complete'), ['a.o']):
        objects, found = kernel_objects(folder)
        assert found == [], found
        for name in files:
            with open(os.path.join(objects, name), 'wb'):
                pass
        assert kernel_objects(folder) == (objects, kept), (files, kept)


# --- scripts/sweep, a process ------------------------------------------------

# The real set-up code, with one step that takes long. The process that the step
# starts runs in the work folder too.
LONG_SETUP = """#!/bin/bash
. "$(dirname "$0")/lib/common.sh"
long() { cd "$KA_ROOT"; touch began; sleep 100; }
step long "take a long time" long
"""


def processes_in(folder):
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            if os.readlink(f'/proc/{pid}/cwd') == folder:
                found.append(pid)
    return found


with tap.test('sweep: standard output that is closed'):
    status, _, text = call(make_tree(), 'no-stdout', 'scripts/sweep',
                           '--suppress', 'none')
    assert status == 2 and text.count('\n') == 1, text

with tap.test('sweep: what ends it ends the set-up, with its steps'):
    folder = make_tree()
    with open(os.path.join(folder, 'scripts', 'setup'), 'w',
              encoding='ascii') as f:
        f.write(LONG_SETUP)
    for number in signal.SIGTERM, signal.SIGHUP:
        with start(folder, 'sweep') as proc:
            until(lambda: os.path.exists(folder + '/began'))
            proc.send_signal(number)
            said = proc.communicate(timeout=60)[1]
        os.remove(folder + '/began')
        assert proc.returncode == 2 and 'ended from outside' in said, said
        assert until(lambda: not processes_in(folder)), processes_in(folder)

shutil.rmtree(work)
tap.done()
