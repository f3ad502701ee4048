#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/ka-qemu, which stands in for QEMU: what it changes of a command
line, and a boot by it.

Oracle: tables of command lines; QEMU's own list of its options; the journal of
a guest that was started by the wrapper.

usage: test_qemu_wrapper.py [--short] [--kernel K]...
"""
import os
import re
import shlex
import subprocess
import tempfile

from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib import qemuline
from scripts.lib.prepared import ROOT, kernel_arch, kernel_file, paths

WRAPPER = os.path.join(ROOT, 'scripts', 'ka-qemu')
PLUGIN = '/x/libka.so'
ADDED = f'-plugin {PLUGIN}'

# A command line -> the same without KVM, with "+" if the plugin is added.
TABLE = (
    ('-m 1G', '-m 1G +'),
    ('-enable-kvm -m 1G', '-m 1G +'),
    ('--enable-kvm', '+'),
    ('-accel kvm', '+'),
    ('-accel kvm,kernel-irqchip=split', '+'),
    ('-accel kvm -accel tcg,thread=multi', '-accel tcg,thread=multi +'),
    ('-accel accel=kvm', '+'),
    ('-accel hvf', '+'),
    ('-machine accel=kvm', '+'),
    ('-machine q35,accel=kvm', '-machine q35 +'),
    ('-M q35,accel=kvm:tcg,kernel_irqchip=on', '-M q35,accel=tcg +'),
    ('-machine accel=kvm:xen,type=virt', '-machine type=virt +'),
    ('-cpu host', '-cpu max +'),
    ('-cpu host,migratable=off', '-cpu max,migratable=off +'),
    ('-cpu hostile', '-cpu hostile +'),
    ('-cpu Skylake-Client', '-cpu Skylake-Client +'),
    # Values that look like options.
    ('-append -enable-kvm', '-append -enable-kvm +'),
    ("-append 'a -accel kvm' -s", "-append 'a -accel kvm' -s +"),
    ('-name help', '-name help +'),
    ('-append help', '-append help +'),
    ('disk.img -enable-kvm', 'disk.img +'),
    ('-nographic -enable-kvm -S', '-nographic -S +'),
    ('-drive file=a,,accel=kvm', '-drive file=a,,accel=kvm +'),
    ('-machine q35,firmware=a,,b,accel=kvm', '-machine q35,firmware=a,,b +'),
    # QEMU prints something and ends, or has no guest.
    ('--version', '--version'),
    ('-h', '-h'),
    ('-L help', '-L help'),
    ('-machine help', '-machine help'),
    ('-accel help', '-accel help'),
    ('-cpu ?', "-cpu '?'"),
    ('-device virtio-net-pci,help', '-device virtio-net-pci,help'),
    ('-S -machine none,accel=kvm:tcg -qmp stdio',
     '-S -machine none,accel=tcg -qmp stdio'),
    # The tracer is there already; another plugin is no reason.
    ('-plugin /y/libka.so,mem=64M', '-plugin /y/libka.so,mem=64M'),
    ('-plugin file=/y/libka.so', '-plugin file=/y/libka.so'),
    ('-plugin /y/other.so', '-plugin /y/other.so +'),
    # A line that is not complete is QEMU's to refuse.
    ('-m', '-m +'),
    ('-cpu', '-cpu +'),
)
REFUSED = ('-object sev-guest,id=a', '-xen-attach',
           '-object tdx-guest,id=a -m 1G')

tap = Tap()
kernels = [k for k in kernel_options() if kernel_arch(k) == 'x86_64']


def rewritten(line, arch='x86_64', **more):
    return shlex.join(qemuline.rewrite(shlex.split(line), arch,
                                       more.pop('plugin', PLUGIN), **more))


def qemu_of(arch):
    return paths()['qemu' if arch == 'x86_64' else 'qemu-' + arch]


def call(*words, program=WRAPPER, **env):
    return subprocess.run([program, *words], check=False, text=True,
                          capture_output=True, timeout=300,
                          env={**os.environ, **env})


for before, after in TABLE:
    wanted = after.replace(' +', ' ' + ADDED)
    wanted = ADDED if wanted == '+' else wanted
    tap.ok(rewritten(before) == wanted, f'qemu {before}', rewritten(before))

for line in REFUSED:
    with tap.test(f'qemu {line}: refused in one line'):
        try:
            assert False, rewritten(line)
        except qemuline.CannotRun as e:
            assert '\n' not in str(e)

# Files of -readconfig, and what the command line is with such a file.
CONFIGS = (
    ('[machine]\n  type = "q35"\n', '-readconfig FILE'),
    ('[machine]\n  accel = "kvm:tcg"\n', '-readconfig FILE'),
    ('[machine]\n  type = "q35"\n  accel = "kvm"\n  kernel-irqchip = "on"\n',
     '-readconfig FILE -machine accel=tcg'),
    ('[accel]\n  accel="kvm"\n', '-accel tcg -readconfig FILE'),
)

for text, wanted in CONFIGS:
    with tap.test(f'-readconfig {text.split()}: {wanted}; QEMU accepts it'), \
            tempfile.NamedTemporaryFile('w', encoding='ascii') as file:
        file.write(text)
        file.flush()
        found = rewritten('-readconfig ' + file.name, plugin=None)
        assert found == wanted.replace('FILE', file.name), found
        done = subprocess.run(
            [WRAPPER, 'x86_64', '-readconfig', file.name, '-S', '-display',
             'none', '-nic', 'none', '-monitor', 'stdio'],
            input='quit\n', text=True, capture_output=True, check=False,
            timeout=60, env={**os.environ, 'KA_PLUGIN_OPTS': 'off'})
        assert done.returncode == 0, done

with tap.test('options of the plugin: variable, file, %i, commas, none'):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'ka', 'plugin-opts')
        os.mkdir(os.path.dirname(path))
        with open(path, 'w', encoding='ascii') as f:
            f.write('# a comment\njournal=/a,b/%i\n\nmem=64M\n')
        for env, found in (
                ({}, []), ({'KA_PLUGIN_OPTS': ''}, []),
                ({'KA_PLUGIN_OPTS': 'off'}, None),
                ({'KA_PLUGIN_OPTS': 'journal=/x-%i-100%%i,mem=1G'},
                 ['journal=/x-7-100%i,mem=1G']),
                ({'KA_PLUGIN_OPTS': '@' + path}, ['journal=/a,,b/7',
                                                  'mem=64M']),
                ({'XDG_CONFIG_HOME': folder}, ['journal=/a,,b/7', 'mem=64M'])):
            assert qemuline.plugin_options(env, 7) == found, env
    assert rewritten('-s', plugin_options=['a=1', 'b=2']) == \
        f'-s {ADDED},a=1,b=2'
    assert rewritten('-s', plugin=None) == '-s'

for arch in 'x86_64', 'aarch64', 'riscv64':
    if not os.path.exists(qemu_of(arch)):
        tap.skip(f'{arch}: each option of QEMU without a value is known',
                 'no such QEMU')
        continue
    with tap.test(f'{arch}: each option of QEMU without a value is known'):
        text = subprocess.run([qemu_of(arch), '-help'], check=True, text=True,
                              capture_output=True).stdout
        plain = re.findall(r'^--?([\w-]+)(?:$|(?:\t| {2,})(?!file\b))', text,
                           re.M)
        unknown = set(plain) - qemuline.PLAIN - {'dtb'}     # -dtb   file
        assert len(plain) > 10 and not unknown, unknown

# What docs/install.md says of options whose value is one of a list: the words
# that print the list.
LISTS = {'-accel': ('-accel', 'help'), '-device': ('-device', 'help'),
         '-display': ('-display', 'help'), '-drive': ('-drive', 'format=help'),
         '-netdev': ('-netdev', 'help'), '-vga': ('-vga', 'help')}
# What is in QEMU's list, or in its help, although it is left out -> words that
# use it, and QEMU's answer.
LEFT_OUT = {
    '-netdev vhost-user': ('-netdev vhost-user,id=a,chardev=c',
                           'is not compiled into this binary'),
    '-sandbox': ('-sandbox on', 'support is not enabled')}


def ask(*words):
    """Return what QEMU prints, and ends."""
    return subprocess.run(
        [qemu_of('x86_64'), '-machine', 'none', '-display', 'none', '-monitor',
         'stdio', *words], check=False, text=True, input='quit\n', timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def is_there(words, texts):
    """Does QEMU have this option, or this value of it?"""
    if words in LEFT_OUT:
        line, answer = LEFT_OUT[words]
        return answer not in ask(*line.split())
    option, _, value = words.partition(' ')
    if option in LISTS:
        value = value.removeprefix('format=')
        return bool(re.search(rf'(?<![\w-]){re.escape(value)}(?![\w-])',
                              texts[option]))
    return bool(re.search(rf'^{re.escape(option)}\b', texts['-help'], re.M))


def wrong_in_install():
    """Return what docs/install.md says of QEMU that is not so."""
    with open(os.path.join(ROOT, 'docs', 'install.md'), encoding='utf-8') as f:
        part = f.read().split('### What the emulators lack')[1].split('###')[0]
    texts = {option: ask(*words) for option, words in LISTS.items()}
    texts['-help'] = ask('-help')
    rows = [line.split('|')[2:4] for line in part.splitlines()
            if line.startswith('| ') and 'there is' not in line]
    claims = [(words, wanted) for row in rows
              for wanted, cell in zip((True, False), row)
              for words in re.findall(r'`(-[^`]+)`', cell)]
    assert len(claims) > 40, claims
    return [words for words, wanted in claims
            if is_there(words, texts) != wanted]


with tap.test('QEMU has, and lacks, what docs/install.md says'):
    wrong = wrong_in_install()
    assert not wrong, wrong

with tap.test('--version, -machine help and errors are those of QEMU'):
    for words in ['--version'], ['-machine', 'help'], ['-no-such-option']:
        mine = call('x86_64', *words)
        its = subprocess.run([qemu_of('x86_64'), *words], check=False,
                             text=True, capture_output=True)
        assert (mine.returncode, mine.stdout) == (its.returncode, its.stdout)

with tap.test('a link that is named as QEMU; --print'):
    with tempfile.TemporaryDirectory() as folder:
        link = os.path.join(folder, 'qemu-system-x86_64')
        os.symlink(WRAPPER, link)
        text = subprocess.run(
            [link, '--print', '-enable-kvm', '-name', 'a b'], check=True,
            text=True, capture_output=True).stdout
        words = shlex.split(text)
        assert words[0] == qemu_of('x86_64'), text
        assert words[1:4] == ['-name', 'a b', '-plugin'], text

with tap.test('another architecture, and a file that is missing'):
    for words, env in ((['sparc'], {}),
                       (['x86_64', '-m', '1G'], {'KA_PLUGIN_OPTS': '@/none'})):
        done = call(*words, **env)
        assert done.returncode == 2 and done.stderr.count('\n') == 1, done

for name in kernels:
    with tap.test(f'{name} boots by a command line for KVM'), \
            tempfile.TemporaryDirectory() as folder:
        journal = os.path.join(folder, 'run-%i.journal')
        program = os.path.join(folder, 'ka-qemu-system-x86_64')
        os.symlink(WRAPPER, program)
        done = call('-enable-kvm', '-cpu', 'host', '-machine',
                    'q35,accel=kvm', '-m', '512M', '-display', 'none',
                    '-serial', 'stdio', '-no-reboot', '-net', 'none',
                    '-kernel', kernel_file(name), '-initrd',
                    paths()[f'initrd-{name}'], '-append',
                    'console=ttyS0 panic=-1 ka.end=poweroff', program=program,
                    KA_PLUGIN_OPTS=f'journal={journal},report=kasan')
        os.unlink(program)
        assert done.returncode == 0 and 'KA-END' in done.stdout, done
        found, = os.listdir(folder)
        assert re.fullmatch(r'run-\d+\.journal', found), found
        text = subprocess.run(
            [paths()['program'], '-f', os.path.join(folder, found), 'stat',
             '-j'], check=True, text=True, capture_output=True).stdout
        assert re.search(r'"events.checked":[1-9]\d{4}', text), text
tap.done()
