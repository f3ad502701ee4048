# SPDX-License-Identifier: GPL-2.0-or-later
"""Which accelerator runs a guest, and why. All programs that start guests ask
choose(); scripts/ka-run executes this file:

    accel.py WANTED ARCH QEMU KERNEL PLUGIN-OPTIONS [QEMU-ARGUMENT...]
"""
import errno
import fcntl
import hashlib
import os
import platform
import re
import subprocess
import sys
import typing

sys.path.insert(0, os.path.realpath(os.path.join(os.path.dirname(
    os.path.realpath(__file__)), '..', '..')))
# pylint: disable=wrong-import-position
from scripts.lib.prepared import (          # noqa: E402
    cache_folder, default_kernel, kernel_arch, paths)

WORDS = 'auto', 'kvm', 'tcg'
DEVICE = '/dev/kvm'
PROBE_SECONDS = 30
NO_KERNEL = 'there is no kernel to try KVM with'

# ioctl() of KVM, and what QEMU's code hooks need: number of the capability, and
# what the host's Linux lacks without it.
KVM_CHECK_EXTENSION = 0xae03
NEEDED = ((23, 'breakpoints'), (74, 'registers in shared memory'),
          (189, 'a filter of MSRs; Linux 5.10 has one'))

HELP = 'tcg (default, or the variable KA_ACCEL); auto: KVM if a guest really ' \
       'runs in it here and nothing needs TCG; kvm: KVM or an error; see ' \
       'docs/kvm.md'
HINT = 'accelerator: TCG (the default; --accel auto takes KVM if it works)'


class CannotRun(Exception):
    """KVM was asked for, and cannot run this guest; the text is one line."""


class Choice(typing.NamedTuple):
    """name: kvm or tcg; why: for the user."""
    name: str
    why: str

    @property
    def line(self):
        return f'accelerator: {self.name.upper()} ({self.why})'


# --- what a guest needs ------------------------------------------------------

def needs_tcg(arch, plugin_options='', words=()):
    """Return why a guest needs TCG, or None."""
    if arch != 'x86_64':
        return f'{arch} guests are traced with TCG only'
    if '-icount' in words:
        return 'only TCG counts instructions, for -icount, records and replays'
    if re.search(r'(^|,)access=', plugin_options or ''):
        return 'access checks need TCG'
    return None


def loads_state(words):
    """Return why a guest should run with TCG, or None: the accelerator that
    saved a state should load it."""
    if {'-loadvm', '-incoming'} & set(words):
        return 'a state is loaded; one that KVM has saved needs --accel kvm'
    return None


# --- what the host has -------------------------------------------------------

def why_no_device():
    """Return why /dev/kvm cannot be used, or None. It takes no time, and does
    not say whether a guest runs."""
    if platform.machine() != 'x86_64':
        return f'this machine is {platform.machine()}, not x86_64'
    try:
        with open(DEVICE, 'r+b', buffering=0) as f:
            for number, lack in NEEDED:
                if fcntl.ioctl(f, KVM_CHECK_EXTENSION, number) <= 0:
                    return f'KVM of this machine lacks {lack}'
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
            return f'there is no {DEVICE}'
        return f'{DEVICE} cannot be opened: {e.strerror}'
    return None


def probe_kernel(kernel):
    """Return a kernel file to try KVM with: the default one, or that of the
    guest."""
    name = default_kernel()
    folder = paths().get('kernel-' + name)
    for path in (os.path.join(folder, 'vmlinuz') if folder else name, kernel):
        if path and os.path.isfile(path) and os.access(path, os.R_OK):
            return path
    return None


def boots(qemu, kernel, accel=('kvm', '-cpu', 'host'), seconds=PROBE_SECONDS):
    """Return why a kernel does not boot to where it misses its disk, or
    None."""
    args = ['setpriv', '--pdeathsig', 'KILL', qemu,
            '-L', '/usr/share/seabios', '-L', '/usr/share/qemu',
            '-accel', *accel, '-machine', 'q35', '-m', '256', '-nodefaults',
            '-no-user-config', '-display', 'none', '-no-reboot',
            '-serial', 'stdio', '-kernel', kernel,
            '-append', 'console=ttyS0 no_timer_check panic=-1']
    try:
        done = subprocess.run(args, stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f'a kernel that was tried in it did not boot in {seconds} s'
    except OSError as e:
        return f'{qemu}: {e.strerror}'
    if done.returncode == 0 and b'Unable to mount root fs' in done.stdout:
        return None
    lines = done.stderr.decode('utf-8', 'replace').split('\n')
    return 'a kernel that was tried in it did not boot' + (
        f': {lines[0]}' if lines[0] else '')


def cache_file(qemu):
    """Return the file that has the result of boots() for this boot of the
    host, this KVM and this QEMU."""
    with open('/proc/sys/kernel/random/boot_id', encoding='ascii') as f:
        facts = [f.read()]
    for path in DEVICE, qemu:
        info = os.stat(path)
        facts += [path, info.st_mtime_ns if path == qemu else info.st_rdev]
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    return os.path.join(cache_folder('accel'), digest)


def probe(qemu, kernel=None, again=False, say=None):
    """Return why a guest does not run with KVM, or None. The answer is kept
    until the host boots; AGAIN: a guest that did not run is tried again."""
    why = why_no_device()
    if why:
        return why
    try:
        with open(cache_file(qemu), 'a+', encoding='utf-8') as f:
            fcntl.flock(f, fcntl.LOCK_EX)       # one process tries it
            f.seek(0)
            kept = f.read()
            if kept == 'works' or (kept and not again):
                return None if kept == 'works' else kept
            why = try_kernel(qemu, kernel, say)
            if why != NO_KERNEL:
                f.truncate(0)
                f.write(why or 'works')
            return why
    except OSError:                     # there is no cache
        return try_kernel(qemu, kernel, say)


def try_kernel(qemu, kernel, say):
    path = probe_kernel(kernel)
    if not path:
        return NO_KERNEL
    if say:
        say(f'trying KVM, for at most {PROBE_SECONDS} s, once until this '
            'machine boots')
    return boots(qemu, path)


# --- the choice --------------------------------------------------------------

def choose(wanted, check, needs=None, prefers=None, option='--accel '):
    """Return the Choice. CHECK: probe(), as a function of AGAIN. NEEDS,
    PREFERS: why the guest needs TCG, or should have it. OPTION: how the user
    said what is wanted."""
    if wanted not in WORDS:
        raise CannotRun(f"accelerator '{wanted}': auto, kvm or tcg")
    if wanted == 'tcg':
        return Choice('tcg', 'asked for')
    why = needs or (prefers if wanted == 'auto' else None) or \
        check(wanted == 'kvm')
    if wanted == 'auto':
        return Choice('tcg', why) if why else Choice(
            'kvm', 'a kernel boots with it; docs/kvm.md says what needs TCG')
    if why:
        raise CannotRun(f'{option}kvm: {why}')
    return Choice('kvm', 'asked for')


def for_guest(wanted, arch, qemu, *, kernel=None, plugin_options='', words=(),
              needs=None, say=None):
    """Return the Choice for a guest. QEMU: the program; WORDS: more of its
    arguments; NEEDS: another reason to need TCG; SAY prints a line if this
    takes time."""
    return choose(wanted, lambda again: probe(qemu, kernel, again, say),
                  needs_tcg(arch, plugin_options, words) or needs,
                  loads_state(words))


def for_command(wanted, arch, qemu, words, plugin_options, say):
    """Return the Choice for a command line of QEMU that asks for KVM."""
    return choose(wanted, lambda again: probe(qemu, None, again, say),
                  needs_tcg(arch, ','.join(plugin_options), words),
                  option='KA_ACCEL=')


def for_sweep(wanted, kernel, say, plugin_options='', words=(), needs=None):
    """Return kvm or tcg, for a program whose default is TCG, and say why. It
    says nothing if it was told to take TCG; if it was not told, it says at a
    terminal that there is KVM, too."""
    told = wanted or os.environ.get('KA_ACCEL')
    if told == 'tcg':
        return 'tcg'
    if not told:
        if sys.stderr and sys.stderr.isatty() and not why_no_device():
            say(HINT)
        return 'tcg'
    choice = for_guest(told, kernel_arch(kernel), paths()['qemu'],
                       kernel=kernel, plugin_options=plugin_options,
                       words=words, needs=needs, say=say)
    say(choice.line)
    return choice.name


def main():
    wanted, arch, qemu, kernel, options, *words = sys.argv[1:]

    def say(text):
        print(f'ka-run: {text}', file=sys.stderr, flush=True)

    try:
        choice = for_guest(wanted, arch, qemu, kernel=kernel,
                           plugin_options=options, words=words, say=say)
    except CannotRun as e:
        say(e)
        return 2
    print(choice.line, file=sys.stderr, flush=True)
    print(choice.name)
    return 0


if __name__ == '__main__':
    sys.exit(main())
