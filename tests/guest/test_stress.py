#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A storm of allocations on all vCPUs, while the tracer is asked without
pause, gdb stops the VM each second, and a debugger steps through hooked
instructions. The tracer's own checks pass (check=on), and no error is
reported.

Oracle: the module in the guest, which counts its live blocks; and in windows
of some seconds the guest's own trace, whose events must be in the journal.
With --savevm the VM goes back in time each minute, in the middle of a window:
what happened before and what happened instead are both compared.

With --access all accesses are checked (access=on). None is an error, until a
module makes wrong ones at the end, which are counted one by one.

usage: test_stress.py [--short] [--kernel K]... [--cpus N] [--minutes M]
                      [--savevm] [--access]
"""
import os
import re
import tempfile
import time
from collections import Counter, defaultdict

from lib import explained, ftrace, ksyms, oracle, programs, stale, windows
from lib.disturb import Disturbance
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch
from scripts.lib.snapshot_disk import NODE, drive, make_disk
import test_snapshot as snapshot

BUFFER_KB = 16384       # of the guest's trace, for each vCPU
LOAD_EVERY = 60         # seconds from one savevm to the next
# QEMU's time stamp counter does not go back with a load. The guest sees a jump
# of the time that was undone; from 20 s on it would report stuck CPUs.
WORDS_OF_LOADED = 'nosoftlockup'
# Function of the module that allocates -> kind of the block.
SITES = {
    'ka_stress_kmalloc': 'kmalloc', 'ka_stress_krealloc': 'kmalloc',
    'ka_stress_large': 'large', 'ka_stress_cache': 'cache',
    'ka_stress_bulk': 'cache', 'ka_stress_vmalloc': 'vmalloc',
    'ka_stress_percpu': 'percpu',
}
# Counters that must be 0: dropped or wrong events.
ZERO = ('check.violations', 'errors.recorded', 'call.dropped',
        'call.unreadable', 'bulk.unreadable', 'block.dropped',
        'stack.dropped', 'error.dropped', 'cache.dropped', 'journal.lost',
        'free.unknown', 'gaps', 'call.stale', 'access.disagreed',
        'access.unseen_alloc')


# --- what is live ------------------------------------------------------------

def live_by_guest(text):
    """{kind: (blocks, bytes, sum)}"""
    return {kind: tuple(map(int, numbers)) for kind, *numbers in
            re.findall(r'^(\w+) (\d+) (\d+) (\d+)$', text, re.M)}


def live_by_tracer(ask, symbols):
    """Return the same for blocks whose first frame is one of the sites, without
    those that were passed to kfree_rcu()."""
    sums = defaultdict(lambda: [0, 0, 0])
    ranges = {site: symbols.range(site) for site in SITES}
    for site, (lo, hi) in ranges.items():
        text = ask(f'ka alloc {lo:x}-{hi:x} --state A -n 0 -x')
        for va, req, frame, rest in re.findall(
                r'A ([0-9a-f]{16})-[0-9a-f]{16} \( *([0-9a-f]+)/ *[0-9a-f]+\) '
                r'alloc\[([0-9a-f]+)(.*)$', text, re.M):
            if lo <= int(frame, 16) <= hi and ' rcu[' not in rest:
                row = sums[SITES[site]]
                row[0] += 1
                row[1] += int(req, 16)
                row[2] += int(va, 16)
    return {kind: (n, size, total % (1 << 64))
            for kind, (n, size, total) in sums.items()}


def same_live(theirs, ask, symbols, seconds=120):
    """Compare until both agree, because vfree() in an interrupt defers to a
    worker. Return ours."""
    end = time.monotonic() + seconds
    while True:
        ours = live_by_tracer(ask, symbols)
        if all(ours.get(kind, (0, 0, 0)) == row
               for kind, row in theirs.items()) or time.monotonic() > end:
            return ours
        time.sleep(0.5)


# --- one run -----------------------------------------------------------------

def losses(stat):
    return {name: stat[name] for name in ZERO if stat.get(name)}


class Run:
    """A VM in a storm.

    saved    events.checked at each savevm whose state was loaded
    lost     what was dropped or wrong after a window, or before a load
    """

    def __init__(self, tap, guest, kernel, args, tmp):
        self.tap, self.guest, self.args, self.tmp = tap, guest, args, tmp
        self.arch = kernel_arch(kernel)
        self.number, self.windows, self.saved = 0, [], []
        self.live = Counter()
        self.lost = []

    def script(self, *words):
        words = ' '.join(map(str, words))
        text = self.guest.shell(f'sh /share/stress-window.sh {words} 2>&1',
                                timeout=self.guest.timeout)
        assert text.rstrip().endswith('ok'), f'{words}: {text}'
        return text

    def go_on(self):
        self.guest.shell('echo 1 >/sys/module/ka_stress/parameters/run')

    def collect(self, name):
        """Unpack what the guest has just sent, to a folder."""
        self.guest.out = os.path.join(self.tmp, name)
        return self.guest.collect()

    def load(self):
        self.script('load', self.args.pace, self.args.low_mb)
        files = ftrace.read_out(self.collect('symbols'))
        return ksyms.Symbols(files['proc.kallsyms'])

    # --- windows -------------------------------------------------------------

    def check(self, when, stat, ask):
        bad = losses(stat)
        if bad:
            self.lost.append(f'{when}: {bad} ' + ask('ka error -s -n 5'))

    def window(self, disturbance):
        self.number += 1
        self.script('begin', self.number, BUFFER_KB)
        time.sleep(self.args.window)
        self.end(disturbance)

    def window_twice(self, disturbance):
        """Run a window with a savevm in its middle. After its end the storm
        continues, until a loadvm goes back: the window ends a second time."""
        self.number += 1
        self.script('begin', self.number, BUFFER_KB)
        time.sleep(self.args.window / 2)
        before = self.save(disturbance)
        time.sleep(self.args.window / 2)
        self.end(disturbance)
        self.go_on()
        time.sleep(self.args.window)
        self.go_back(disturbance, before)
        time.sleep(self.args.window / 2)
        self.end(disturbance, True)

    def end(self, disturbance, again=False):
        name = f'window {self.number}' + again * ' again'
        theirs = live_by_guest(self.script('end', self.number + windows.END))
        ours = same_live(theirs, disturbance.ask, disturbance.symbols)
        self.live['same' if ours == theirs else 'different'] += 1
        if ours != theirs:
            self.tap.note(f'{name}: live by the guest {theirs}, '
                          f'by the tracer {ours}')
        folder = self.collect(name.replace(' ', '-'))
        self.windows.append(windows.Window(self.number, folder, again))
        self.check(name, disturbance.stat(), disturbance.ask)

    # --- the VM's state ------------------------------------------------------

    def job(self, disturbance, command, **arguments):
        """Do what savevm and loadvm do, but only for the disk that has
        snapshots. The disk of the guest's trace has none."""
        disturbance.qmp(command, job_id='ka', tag='ka',
                        devices=[NODE], **arguments)
        end = time.monotonic() + self.guest.timeout
        while (found := disturbance.qmp('query-jobs')[0])['status'] != \
                'concluded':
            assert time.monotonic() < end, f'{command}: {found}'
            time.sleep(0.05)
        disturbance.qmp('job-dismiss', id='ka')
        assert not found.get('error'), f'{command}: {found}'

    def save(self, disturbance):
        """Save the state; return what the tracer says at that time."""
        with disturbance.standing():
            self.job(disturbance, 'snapshot-save', vmstate=NODE)
            with disturbance.lock:
                return snapshot.dump(self.guest)

    def go_back(self, disturbance, before):
        with disturbance.standing():
            self.check('before a load', disturbance.stat(), disturbance.ask)
            self.job(disturbance, 'snapshot-load', vmstate=NODE)
            with disturbance.lock:
                snapshot.assert_same(before, snapshot.dump(self.guest))
            self.job(disturbance, 'snapshot-delete')
        self.saved.append(before[-1]['events.checked'])

    # --- all of it -----------------------------------------------------------

    def storm(self, symbols):
        """Run windows, with the storm between them, until the time is over."""
        begin = time.monotonic()
        end = begin + 60 * self.args.minutes
        back = begin + self.args.every if self.args.savevm else float('inf')
        with Disturbance(self.guest, symbols) as disturbance:
            while not self.windows or time.monotonic() < end:
                if time.monotonic() >= back:
                    back += LOAD_EVERY
                    self.window_twice(disturbance)
                else:
                    self.window(disturbance)
                self.go_on()
                now = time.monotonic()
                time.sleep(max(0, min(self.args.every - self.args.window,
                                      end - now, back - now)))
        self.tap.note(f'the storm took {time.monotonic() - begin:.0f} s')
        return disturbance.done()

    def finish(self, done, label):
        tap = self.tap
        self.script('rest')
        stat = self.guest.stat()
        check = self.guest.hmp_qmp('ka check').strip()
        work = self.guest.shell('cat /sys/module/ka_stress/parameters/done; '
                                'rmmod ka_stress; dmesg | grep -E '
                                '"BUG|Oops|WARNING|Call Trace"')
        tap.note(f'{label}: the module did {" ".join(work.split())}')
        tap.note(f'{label}: beside it {dict(done)}')
        tap.note(check)
        for name in sorted(stat):
            if name.startswith(('call.', 'return.', 'check.', 'events.',
                                'free.', 'cost.check', 'access.')):
                tap.note(f'{name} {stat[name]}')
        tap.ok(check.startswith('ok: ') and stat.get('check.rounds', 0) and
               stat.get('check.whole', 0),
               f"{label}: the tracer's state holds together", check)
        self.check('at the end', stat, self.guest.hmp_qmp)
        tap.ok(not self.lost, f'{label}: nothing is lost, no error is '
               'reported', '\n'.join(self.lost))
        tap.ok(self.live['same'] and not self.live['different'],
               f'{label}: what is live is what the module counts',
               dict(self.live))
        tap.ok(all(done[what] for what in ('query', 'gdb_stop', 'hmp_stop',
                                           'attach')),
               f'{label}: the VM was stopped and asked meanwhile', done)
        if self.args.savevm:
            tap.ok(self.saved and stat.get('vm.loads') == len(self.saved),
                   f'{label}: {len(self.saved)} times it went back, and the '
                   'map with it', stat.get('vm.loads'))
        tap.ok(not re.search('BUG|Oops|WARNING', work),
               f'{label}: the guest is as sound as before', work)
        if self.args.access:
            self.finish_access(label)
        tap.figures('stress-run', label=label, events=stat['events.checked'],
                    loads=len(self.saved), **done)

    def finish_access(self, label):
        """What was explained is known. Errors are still found after all this,
        and each of them."""
        text, known = self.guest.hmp_qmp('ka access -v'), explained.read()
        new = explained.new(text, self.arch, known)
        self.tap.note(text)
        self.tap.ok(not new, f'{label}: the functions of explained accesses '
                    'are on the list', '\n'.join(new))
        self.tap.note(f'{label}: on the list, but not seen: ' + ' '.join(
            explained.unseen(explained.seen(text), self.arch, known)))
        with self.tap.test(f'{label}: {stale.TIMES} wrong accesses of each '
                           f'thread are counted {stale.TIMES}'):
            self.guest.shell('insmod /share/ka_vcpus.ko')
            unjudged = stale.check(self.guest, self.args.cpus)
            self.tap.note(f'{label}: {unjudged} of them were not judged')


def with_state(kernel, share, tmp):
    """Return more arguments for a guest whose state can be saved. QEMU cannot
    save the state of an NVMe disk, which Guest(out=) uses. So the guest
    writes its trace to a disk of another kind, in the file "image"."""
    oracle.add_drivers(share, kernel, 'virtio_pci', 'virtio_blk')
    image = os.path.join(tmp, 'image')
    with open(image, 'wb') as f:
        f.truncate(2 << 30)
    disk = make_disk(os.path.join(tmp, 'disk'))
    return {'qemu': [
        *drive(disk), '-drive', f'if=none,id=out,format=raw,'
        f'file={image}', '-device', 'virtio-blk-pci,drive=out']}


def run(tap, kernel, args):
    label = f'{kernel}, {args.cpus} vCPU'
    with tempfile.TemporaryDirectory(prefix='ka-stress.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'),
                                  ['stress-window.sh'], kernel, modules=True)
        journal = os.path.join(tmp, 'journal')
        more = with_state(kernel, share, tmp) if args.savevm else \
            {'out': os.path.join(tmp, 'out')}
        with Guest(kernel=kernel, smp=args.cpus, end='shell', share=share,
                   journal=journal, **more,
                   plugin_opts='check=on' + args.access * ',access=on',
                   timeout=600,
                   cmdline=WORDS_OF_LOADED if args.savevm else '',
                   mem=f'{512 + 64 * args.cpus}M',
                   name=f'stress-{kernel}-{args.cpus}') as g:
            if args.savevm:
                g.image = os.path.join(tmp, 'image')
            g.wait_marker('KA-END')
            r = Run(tap, g, kernel, args, tmp)
            r.finish(r.storm(r.load()), label)
            tap.ok('check:' not in g.qemu_log, f'{label}: QEMU is quiet',
                   g.qemu_log)
            g.qmp('quit')       # the journal is closed in order
            g.wait_exit()
        windows.compare(tap, journal, r.windows, r.saved, label)


def main(doc=__doc__, **defaults):
    """Another program may call this with other defaults of the arguments."""
    ap = programs.arguments(doc, short='one kernel, 4 vCPUs, half a minute',
                            smp=False)
    ap.add_argument('--cpus', type=int, default=4, help='vCPUs, 1 to 16')
    ap.add_argument('--minutes', type=float, help='1 if not given')
    ap.add_argument('--savevm', action='store_true',
                    help='a savevm each minute, some seconds of storm, and a '
                    'loadvm')
    ap.add_argument('--access', action='store_true',
                    help='check all accesses; needs 4 vCPUs or more')
    ap.add_argument('--window', type=float, default=3,
                    help='seconds that the guest traces itself')
    ap.add_argument('--every', type=float, default=20,
                    help='seconds from one such window to the next')
    ap.add_argument('--pace', type=int, default=2000,
                    help='microseconds that each thread rests after 32 steps')
    ap.add_argument('--low-mb', type=int, default=96,
                    help="the guest's memory is taken until so many MiB are "
                    'left')
    ap.set_defaults(**defaults)
    args = programs.parse(ap)
    args.minutes = args.minutes or (0.5 if args.short else 1)
    if args.access and args.cpus < stale.READERS:
        ap.error(f'--access needs --cpus {stale.READERS} or more')
    if not 1 <= args.cpus <= 16:
        ap.error(f'--cpus {args.cpus}: 1 to 16 are possible')
    tap = Tap()
    for kernel in args.kernel:
        with tap.test(f'{kernel}: runs and is read'):
            run(tap, kernel, args)
    tap.done()


if __name__ == '__main__':
    main()
