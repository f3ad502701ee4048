#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The journal answers as the running VM did. After kill -9, and on a full
disk, it opens, answers, and says what is missing. `ka -q` asks the VM.

Oracle: the VM. Each answer of the file is compared with what the monitor
printed while the guest was stopped.
"""
import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import tempfile
import time

from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import paths

LOST = re.compile(r'the last (\d+) bytes and at least (\d+) events are missing')
# Events of the busiest guest in a little more than a second.
FLUSH_SECONDS, EVENTS_A_SECOND = 3, 400000


def program():
    return os.path.join(paths()['build'], 'monitor-cmds', 'ka')


def ka(*words):
    """Run ka; return (status, standard output, standard error)."""
    done = subprocess.run([program(), *words], capture_output=True, text=True,
                          timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def from_file(path, command, *options):
    return ka('-f', path, *options, *command.split())


def commands(g):
    """Return the commands, with the addresses and times of this guest."""
    rows = g.hmp_qmp('ka --cache task_struct -j -n 3').splitlines()
    va = json.loads(rows[0])['va'][2:]
    pages = f'{va[:-5]}00000-{va[:-5]}fffff'
    g.hmp_qmp('ka mark here')
    return ['', 'help', 'help show', 'top', 'top -s -n 100', 'top -v -n 0 -j',
            'top --by stack -n 0', 'top --by cache -n 0 --sort slack',
            'top --by task -n 0', 'top --by module -n 0',
            'top --by size -n 0 --sort life', 'top --task init -n 0 -s',
            'top --since 1000000 --until 3000000', 'top --stray', 'mark',
            'diff here', 'diff nosuch', 'diff here -j --by stack',
            'stat', 'stat -v', 'stat -j -v',
            'error', 'error -s', 'error -j', f'show {va}', f'show {va} -s -v',
            f'show {va} -j -s -n 40', f'{va} --history -s', pages + ' -s -v',
            pages + ' 100-1000 -j', 'alloc kernel_clone -s -n 50',
            'alloc copy_process -v -n 20', 'free do_exit -s -n 100',
            'free kfree -j -n 20', '--cache task_struct -s',
            '--layer vmalloc -s -v', '--task init -n 100 -v',
            '--since 1000000 --until 3000000 -n 30', '--state F -n 300 -s',
            'show', 'show nosuch', 'alloc kmem_cache_aloc', '--cache nosuch',
            '-n x', 'nonsense']


def without_members(text):
    """Remove the members of structs from `ka stat -v`: a journal has no
    types."""
    text = re.sub(r"\nmembers of the kernel's structs, .*(\n  member\..*)+", '',
                  text)
    return re.sub(r',"member\.[^"]*":[^,}]*', '', text)


def members_are_listed(tap, g):
    """`ka stat -v` of the VM has the members of structs, by its kernel's
    types."""
    rows = [json.loads(row) for row in g.hmp_qmp('ka stat -v -j').splitlines()]
    stat = next(row for row in rows if row['type'] == 'stat')
    tap.ok((stat.get('member.task_struct.pid') or 0) > 0 and
           'member.kmem_cache.name' in stat,
           'ka stat -v lists the members of structs', f'{list(stat)}')


def answers_alike(tap, g, journal, label, wanted):
    for command in wanted:
        live = g.hmp_qmp('ka ' + command)
        if command.startswith('stat'):
            live = without_members(live)
        status, text, _ = from_file(journal, command)
        if not command:
            text = re.sub(r'journal: .*\n$', '', text)
        tap.ok(text == live and status < 2,
                  f'{label}: "ka {command}" has the same answer from the file',
                  f'status {status}, live:\n{live[:2000]}\nfile:\n'
                  f'{text[:2000]}')


def counts_alike(tap, g, journal):
    """The number of events that are listed is that of checked events."""
    _, text, _ = from_file(journal, 'events -j')
    listed = sum('"type":"event"' in line for line in text.splitlines())
    tap.ok(listed == g.stat()['events.checked'],
              'every event is listed', f'{listed} of {g.stat()}')


def refuses(tap, journal):
    for word in 'on', 'off', 'clear':
        status, text, _ = from_file(journal, word)
        tap.ok(status == 1 and text.count('\n') == 1 and word in text,
                  f'"{word}" is refused on a file in one line', text)


def at_a_time(tap, g, journal):
    """The state at an earlier time is the same after the guest continued."""
    wanted = ['--cache task_struct -s', '--layer vmalloc', '--state F -n 200']
    then = g.stat()['events.last_us']
    seen = [g.hmp_qmp('ka ' + command) for command in wanted]
    g.qmp('cont')
    time.sleep(3)
    g.qmp('stop')
    for command, live in zip(wanted, seen):
        status, text, err = from_file(journal, command, '--at', str(then))
        tap.ok((status, text) == (0, live),
                  f'--at: "ka {command}" as it was then',
                  f'{status} {err}\nlive:\n{live[:1000]}\nfile:\n'
                  f'{text[:1000]}')


def alike(tap, kernel):
    with tempfile.TemporaryDirectory(prefix='ka-journal.') as tmp:
        journal = os.path.join(tmp, 'j')
        with Guest(kernel=kernel, run='work', n=1, journal=journal,
                   name='journal', timeout=300) as g:
            g.wait_done()
            g.qmp('stop')
            wanted = commands(g)
            answers_alike(tap, g, journal, 'after the workload', wanted)
            counts_alike(tap, g, journal)
            members_are_listed(tap, g)
            refuses(tap, journal)
            at_a_time(tap, g, journal)
            g.qmp('set_action', reboot='reset')
            g.hmp_qmp('system_reset')
            g.qmp('cont')
            g.qmp('stop')
            answers_alike(tap, g, journal, 'after a reset', wanted)
            g.qmp('quit')
            g.wait_exit()
        status, text, err = from_file(journal, '')
        tap.ok((status, err) == (0, '') and 'closed in order' in text,
                  'a VM that ends closes its file', text + err)


def by_qmp(tap, kernel):
    """Use a second QMP socket: the first one is in use."""
    with tempfile.TemporaryDirectory(prefix='ka-journal.') as tmp:
        sock = os.path.join(tmp, 'q')
        with Guest(kernel=kernel, name='journal-qmp', timeout=300,
                   qemu=['-qmp', f'unix:{sock},server=on,wait=off']) as g:
            g.wait_marker('KA-READY')
            g.qmp('stop')
            for command in 'stat', 'error', '--cache task_struct -s -n 5':
                got = ka('-q', sock, *command.split())
                tap.ok(got == (0, g.hmp_qmp('ka ' + command), ''),
                          f'ka -q: "{command}" as the monitor prints it',
                          repr(got))
            status, text, _ = ka('-q', sock, 'nonsense')
            tap.ok(status == 1 and text.startswith('ka: '),
                      'ka -q: bad input is reported', text)
        status, text, err = ka('-q', sock, 'stat')
        tap.ok((status, text, err.count('\n')) == (2, '', 1),
                  'ka -q: no QEMU there, one line', err)


# --- loss --------------------------------------------------------------------

def one_kill(tap, kernel, i, seed):
    """Ask, let the VM run for a while, kill it. The file has all that was known
    at the time of the question; at most the events of a moment are missing."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix='ka-journal.') as tmp:
        journal = os.path.join(tmp, 'j')
        with Guest(kernel=kernel, run='work', n=24, journal=journal,
                   name='journal-kill', timeout=300) as g:
            g.wait_marker('KA-READY')
            time.sleep(rng.random() * 3)
            known = g.stat()['events.checked']
            time.sleep(rng.random() * 5)
            g.proc.send_signal(signal.SIGKILL)
            g.wait_exit()
        status, text, err = from_file(journal, 'stat -j')
        numbers = json.loads(text) if status == 0 else {}
        lost = LOST.search(err)
        well = lost and numbers['events.checked'] >= known and \
            int(lost.group(2)) < FLUSH_SECONDS * EVENTS_A_SECOND
        tap.ok(well, f'kill -9 number {i}: the file answers and tells what '
                  'is missing',
                  f'seed {seed}, status {status}, {known} events known\n'
                  f'{err}\n{text[:500]}')
        print(f'# {numbers.get("events.checked")} events, {err.strip()}')
        status, text, _ = from_file(journal, '--cache task_struct -s -n 5')
        tap.ok(status == 0 and 'copy_process' in text,
                  f'kill -9 number {i}: with symbols', text)


def full_disk(tap, kernel):
    """Simulate a full disk by a limit on the size of files."""
    with tempfile.TemporaryDirectory(prefix='ka-journal.') as tmp:
        journal = os.path.join(tmp, 'j')
        with Guest(kernel=kernel, run='work', n=4, journal=journal,
                   name='journal-full', timeout=300) as g:
            g.wait_marker('KA-READY')
            g.stat()
            room = os.path.getsize(journal) + 20000, resource.RLIM_INFINITY
            resource.prlimit(g.proc.pid, resource.RLIMIT_FSIZE, room)
            status = g.wait_done()
            lost = g.stat().get('journal.lost', 0)
            tap.ok(status == 0 and lost > 0, 'a full disk: the guest goes '
                      'on and the loss is counted', str(lost))
            status, text, err = from_file(journal, 'stat -j')
            told = int(LOST.search(err).group(2)) + sum(
                int(n) for n in re.findall(r': (\d+) events were not', err))
            tap.ok(status == 0 and told >= lost,
                      'a full disk: the file says how much is missing',
                      f'{told} of {lost}\n{err}{text}')
            resource.prlimit(g.proc.pid, resource.RLIMIT_FSIZE,
                             (resource.RLIM_INFINITY,) * 2)
            time.sleep(2)
            lost = g.stat()['journal.lost']
            g.qmp('quit')
            g.wait_exit()
        status, text, err = from_file(journal, 'stat -j')
        tap.ok(status == 0 and f'{lost} events were not written' in err,
                  'room again: the file goes on, and says what it lacks',
                  f'{lost}\n{err}{text}')


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('--kernel', action='append')
    ap.add_argument('--short', action='store_true',
                    help='few runs')
    ap.add_argument('--runs', type=int, help='so many times kill -9')
    ap.add_argument('--only', choices=('alike', 'qmp', 'kill', 'full'))
    ap.add_argument('--seed', type=int, default=random.randrange(1 << 30))
    args = ap.parse_args()
    runs = args.runs or (3 if args.short else 10)
    tap = Tap()
    for kernel in args.kernel or ['6.12']:
        parts = {'alike': lambda k=kernel: alike(tap, k),
                 'qmp': lambda k=kernel: by_qmp(tap, k),
                 'full': lambda k=kernel: full_disk(tap, k)}
        for name, run in parts.items():
            if args.only in (None, name):
                run()
        for i in range(runs if args.only in (None, 'kill') else 0):
            one_kill(tap, kernel, i + 1, args.seed + i)
    tap.done()


if __name__ == '__main__':
    main()
