# SPDX-License-Identifier: GPL-2.0-or-later
"""What the oracles share: run a traced guest, and match the guest's own trace
with the tracer's journal. tests/guest/README.md describes the matching.
"""

import bisect
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter, defaultdict, namedtuple

from scripts.lib import mkinitramfs
from scripts.lib.arches import ARCHES
from scripts.lib.guest import Guest
from scripts.lib.prepared import ROOT, cache_folder, kernel_arch, kernel_file

from . import ftrace, journal, ksyms

INSIDE = os.path.join(ROOT, 'tests', 'guest', 'inside')
BUILD = os.path.join(INSIDE, 'kmod', 'build.sh')
CALL_WORDS = ',initcall:initcall_start,initcall:initcall_finish'
# Before 6.1 functions with a node have separate events; later kernels warn that
# these do not exist.
TRACE_WORDS = ('trace_event=kmem:kmalloc,kmem:kfree,kmem:kmem_cache_alloc,'
               'kmem:kmem_cache_free,kmem:kmalloc_node,'
               f'kmem:kmem_cache_alloc_node{CALL_WORDS} '
               'trace_clock=counter no_hash_pointers')
ZERO_SIZE_PTR = 16
TOOLS = 'ka_out', 'ka_slabs', 'ka_bpf', 'ka_kexec', 'ka_fexit', 'ka_perf'
# The journal must have this many first events of a boot in a row. No other
# place of a boot has the same events.
RUN = 48
# An early_initcall() of the kernel's tracing: it switches each event of the
# command line off and on again, and allocates meanwhile. The guest traces when
# it was called and when it returned. A kernel that clang links with LTO calls
# it through a stub, whose name has the function's.
SWITCHING = 'event_trace_enable_again'

# Bits 55 to 52 of arm64's kernel addresses are set. A kernel with KASAN_SW_TAGS
# or KASAN_HW_TAGS keeps a tag in the bits above.
TAG, KERNEL = 0xff << 56, 0xf << 52

# Flags of the journal: the address may be live (bulk calls), or is removed from
# what is live.
PAGES_UNTRACED = 1 | 2
PUT_BACK = '__putback_isolated_page'

# Architecture -> function at which the kernel's own walk ends too early. On
# riscv64 it does not follow a switch of stacks (walk_stackframe(),
# fp_is_valid()).
OWN_WALK_ENDS = {'riscv64': 'call_on_irq_stack'}

Run = namedtuple('Run', 'guest ours symbols stat switched')


# --- the guest ---------------------------------------------------------------

def build_tool(name, kernel):
    """Return the path of a static program of inside/, built for the guest.
    Programs are cached by a hash of their source."""
    arch = kernel_arch(kernel)
    source = os.path.join(INSIDE, name + '.c')
    with open(source, 'rb') as f:
        key = hashlib.sha256(f.read()).hexdigest()[:16]
    path = os.path.join(cache_folder('tools'),
                        f'{name}-{arch}-{key}')
    if not os.path.exists(path):
        new = f'{path}.{os.getpid()}'
        subprocess.run([ARCHES[arch].cc, '-O2', '-Wall', '-static', '-o',
                        new, source], check=True)
        os.rename(new, path)
    return path


NO_HEADERS = 77     # status of build.sh


def build_modules(kernel, name='kmod'):
    """Build the test modules in the folder inside/NAME for a prepared kernel;
    return the folder of the built ones."""
    out = os.path.join(cache_folder('modules'), f'{name}-{kernel}')
    subprocess.run([BUILD, kernel_file(kernel, ''), out,
                    os.path.join(INSIDE, name)], check=True)
    return out


def can_build_modules(kernel):
    """Return false if the headers of a kernel are missing: the archive keeps
    a kernel longer."""
    try:
        build_modules(kernel)
    except subprocess.CalledProcessError as e:
        if e.returncode == NO_HEADERS:
            return False
        raise
    return True


def build_sample(kernel, path):
    """Build a module of the kernel's own samples/ for a prepared kernel: PATH
    is its source below the top of the kernel's. Return the path of the module,
    None if no source of a kernel is in the cache: scripts/setup unpacks it
    before it builds a kernel. The module prints addresses as they are; before
    5.12 there is no option of the kernel for that."""
    found = sorted(glob.glob(os.path.join(cache_folder('kernel-sources'),
                                          '*', path)))
    if not found:
        return None
    name = os.path.basename(path)[:-len('.c')]
    out = os.path.join(cache_folder('modules'), f'sample-{name}-{kernel}')
    with tempfile.TemporaryDirectory(prefix='ka-sample.') as tmp:
        with open(found[-1], encoding='utf-8') as f:
            text = re.sub(r'%p\b', '%px', f.read())
        with open(os.path.join(tmp, name + '.c'), 'w', encoding='utf-8') as f:
            f.write(text)
        with open(os.path.join(tmp, 'Kbuild'), 'w', encoding='ascii') as f:
            f.write(f'obj-m := {name}.o\n')
        subprocess.run([BUILD, kernel_file(kernel, ''), out, tmp], check=True)
    return os.path.join(out, name + '.ko')


def add_drivers(share, kernel, *names):
    """Copy the modules NAMES of a prepared kernel, and the modules that they
    need, to SHARE/modules. Their file names sort in the order in which they
    must be loaded. Modules that are built in are skipped."""
    found = mkinitramfs.find_modules(kernel_file(kernel, 'modules'))
    wanted = []
    for name in names:
        mkinitramfs.with_needed(name, found, wanted)
    folder = os.path.join(share, 'modules')
    os.makedirs(folder)
    for i, (name, data) in enumerate(wanted):
        with open(os.path.join(folder, f'{i:03}-{name}.ko'), 'wb') as f:
            f.write(data)


def make_share(folder, scripts, kernel='6.12', modules=False):
    """Fill a folder for the guest's /share: tools, scripts, modules."""
    os.makedirs(folder, exist_ok=True)
    for tool in TOOLS:
        shutil.copy(build_tool(tool, kernel),
                    os.path.join(folder, tool.replace('_', '-')))
    for script in scripts:
        shutil.copy(os.path.join(INSIDE, script), folder)
    if modules:
        built = build_modules(kernel)
        for name in os.listdir(built):
            if name.endswith('.ko'):
                shutil.copy(os.path.join(built, name), folder)
    return folder


def traced_run(kernel, smp, n, stacks, buffer, words=TRACE_WORDS,
               workload='oracle-trace', mem='4G', then=None, load=None,
               modules=False, start=None, **guest_args):
    """Boot with the guest's own tracing on, run the workload, and return
    the events of both sides. THEN(guest, path of the journal) is called before
    the guest ends. LOAD is a script of inside/ that oracle-trace runs instead
    of its own workload. MODULES: the share has the test modules. START
    makes the guest instead of Guest, without a journal: THEN writes that."""
    with tempfile.TemporaryDirectory(prefix='ka-oracle.') as tmp:
        share = make_share(os.path.join(tmp, 'share'), [workload + '.sh'],
                           kernel, modules)
        if load:
            shutil.copy(os.path.join(INSIDE, load + '.sh'),
                        os.path.join(share, 'load.sh'))
        log = os.path.join(tmp, 'journal')
        words += f' trace_buf_size={buffer}'
        if stacks:
            words += ' trace_options=stacktrace'
        guest_args = {'kaslr': has_option(kernel, 'KALLSYMS'), 'timeout': 900,
                      **guest_args}
        if not start:
            guest_args['journal'] = log
        with (start or Guest)(
                kernel=kernel, smp=smp, run=workload, n=n, share=share,
                out=os.path.join(tmp, 'out'), mem=mem, cmdline=words,
                **guest_args, name=f'oracle-{kernel}-{smp}') as g:
            status = g.wait_done()
            assert status == 0, f'the workload ended with status {status}'
            stat = g.hmp_qmp('ka stat')
            files = ftrace.read_out(g.collect())
            if then:
                then(g, log)
        guest = ftrace.load(files)
        expected = ftrace.expected_entries(files)
        entries = len(guest) + sum(e.stack is not None for e in guest)
        assert entries == expected, \
            f'{entries} entries decoded, the guest counts {expected}'
        ours = list(our_events(log))
    symbols = symbols_of(kernel, files)
    if has_tags(kernel):
        guest = [e._replace(va=untagged(e.va)) for e in guest]
    calls = [e for e in guest if e.name in ftrace.TRACED_CALLS]
    guest = [e for e in guest if e.name not in ftrace.TRACED_CALLS]
    return Run(guest, ours, symbols, stat, switched(calls, symbols))


def symbols_of(kernel, files):
    """Return the symbols that the guest listed. A kernel without kallsyms was
    built here and runs where it was linked: its System.map has them."""
    if has_option(kernel, 'KALLSYMS'):
        return ksyms.Symbols(files['proc.kallsyms'])
    with open(kernel_file(kernel, 'System.map'), 'rb') as f:
        return ksyms.Symbols(f.read())


def switched(calls, symbols):
    """Return (begin, end) of the call of SWITCHING, on the guest's clock; None
    if the guest emptied its trace later."""
    if not calls:
        return None
    begin, end = (e.ts for e in calls if SWITCHING in symbols.name(e.site))
    return begin, end


def types(stat):
    """Return where the kernel's types are from, from the text of `ka stat`."""
    found = re.search(r'kernel\.types +(.*)', stat)
    return found.group(1) if found else ''


def has_unwinder(stat):
    """Return whether the tracer has something to walk stacks by, from the text
    of `ka stat`. If not, each backtrace is the caller alone."""
    return not re.search(r'kernel\.unwind +none', stat)


def banner(stat):
    """Return the kernel's banner from the text of `ka stat`, which wraps long
    lines."""
    found = re.search(r'kernel\.banner +(.*(?:\n {8}.*)*)', stat)
    return ' '.join(found.group(1).split()) if found else ''


def our_events(path):
    """Yield the journal's events of blocks, in their order."""
    with journal.Journal(path) as log:
        yield from log.events()


# --- matching ----------------------------------------------------------------

def tracepoint(event):
    """Return the guest's tracepoint for our event, None if it has none."""
    if event.layer == 'pages':
        # Bulk calls and compaction have no tracepoint.
        return None if event.flags & PAGES_UNTRACED else 'mm_page_alloc'
    if event.family == 'pages':
        return None if event.hook == PUT_BACK else 'mm_page_free'
    if 'bulk' in event.hook or 'nolock' in event.hook or \
            event.hook.startswith('rcu_free_sheaf'):
        return None
    if event.kind == 'alloc':
        return {'kmalloc': 'kmalloc', 'large': 'kmalloc',
                'cache': 'kmem_cache_alloc'}.get(event.layer)
    if event.kind == 'free':
        return {'kfree': 'kfree',
                'cache': 'kmem_cache_free'}.get(event.family)
    return None


def has_unknown_size(our):
    """Return whether an allocation of a slab object has no size: the tracer
    writes 0 bytes if it does not know the cache."""
    return our.kind == 'alloc' and our.layer in ('kmalloc', 'cache') and \
        not (our.req and our.act)


def has_option(kernel, name):
    """Return whether a prepared kernel was built with CONFIG_NAME."""
    with open(kernel_file(kernel, 'config'), encoding='utf-8') as f:
        return f'CONFIG_{name}=y\n' in f


def has_types(kernel):
    """Return whether a prepared kernel has BTF."""
    return has_option(kernel, 'DEBUG_INFO_BTF')


def has_tags(kernel):
    """Return whether a prepared kernel keeps tags in its pointers. Its own
    trace has them, the tracer's addresses must not."""
    return has_option(kernel, 'KASAN_SW_TAGS') or \
        has_option(kernel, 'KASAN_HW_TAGS')


def untagged(va):
    """Return an address without its tag."""
    return va | TAG if va & KERNEL == KERNEL else va


class Matching:
    """Pairs of (the guest's event, ours), and the events without a partner.

    missing      guest events that the journal does not have
    skipped      guest events that the tracer does not record: {reason: n}
    extra        our events that the guest does not trace: {reason: n}
    unexplained  our events that the guest should have traced

    RED_ZONES: the guest runs with slub_debug=Z. Its reserved size has the red
    zone before the object, which ours has not; the zone is a power of two.
    TYPES: the kernel has types. If it has none, sizes that are unknown to the
    tracer match any, and such pairs are counted in .unsized.
    """

    def __init__(self, guest, ours, symbols, hooks, switching=None,
                 red_zones=False, types=True):
        self.pairs, self.missing, self.unexplained = [], [], []
        self.skipped, self.extra = Counter(), Counter()
        self.symbols, self.hooks = symbols, hooks
        self.switching, self.red_zones = switching, red_zones
        self.types, self.unsized = types, 0
        guest = [e for e in guest if self._counts(e)]
        guest = self._once(guest, hooks)
        traced = []
        for event in ours:
            point = tracepoint(event)
            if point:
                traced.append((point, event))
            else:
                self.extra[f'no tracepoint: {event.kind} {event.hook}'] += 1
        first = self._first(guest, traced)
        self.extra['before tracing began'] += first
        self._match(guest, traced[first:])

    def _counts(self, event):
        if event.va > ZERO_SIZE_PTR:
            return True
        what = 'free' if 'free' in event.name else 'allocation'
        which = 'ZERO_SIZE_PTR' if event.va else 'NULL'
        self.skipped[f'{what}: {which}'] += 1
        return False

    def _once(self, guest, hooks):
        """Drop the inner of two events of one large block: __kmalloc() and
        its relatives trace it twice (mm/slub.c: __do_kmalloc_node() traces
        what __kmalloc_large_node() has traced)."""
        once, later = [], {}
        for event in reversed(guest):
            after = later.get(event.va)
            later[event.va] = event
            if after and event.name == after.name == 'kmalloc' and \
                    (event.req, event.act) == (after.req, after.act) and \
                    hooks.is_hook(self.symbols.name(event.site)):
                self.skipped['large kmalloc: traced twice'] += 1
            else:
                once.append(event)
        once.reverse()
        return once

    def _first(self, guest, traced):
        """Return the index of our event where the guest's trace begins. At
        that time one CPU runs, with interrupts off, so both sides have the
        same order. The guest begins to trace its kinds of events one after
        another: drop what it did not trace meanwhile."""
        first, early = self._find_run(guest[:RUN], traced, set())
        assert first is not None, "the beginning of the guest's trace is " \
            'not in the journal'
        self.extra['before its kind was traced'] += len(early)
        for i in reversed(early):
            del traced[i]
        return first

    @staticmethod
    def _find_run(events, traced, kinds):
        """Return the index in TRACED where EVENTS are in a row, or None. The
        guest traces KINDS, and each other kind from its first event on: return
        the indices of earlier ones, too."""
        head = [(e.name, e.va) for e in events]
        for i, (point, event) in enumerate(traced):
            if (point, event.va) != head[0]:
                continue
            at, seen, early = i, set(kinds), []
            for name, va in head:
                while at < len(traced) and traced[at][0] not in seen | {name}:
                    early.append(at)
                    at += 1
                if at == len(traced) or \
                        (traced[at][0], traced[at][1].va) != (name, va):
                    break
                seen.add(name)
                at += 1
            else:
                return i, early
        return None, []

    def _resumed(self, guest, traced):
        """Return the index of our event where the guest's trace goes on after
        it was switched off and on. Other CPUs are not running yet. Return 0 if
        that place is not found: then only the order at each address says which
        of our events are older."""
        if self.switching is None:
            return 0
        after = [e for e in guest if e.ts > self.switching[1]][:RUN]
        kinds = {point for point, _ in traced}
        return len(after) == RUN and \
            self._find_run(after, traced, kinds)[0] or 0

    def _match(self, guest, traced):
        by_va = defaultdict(list)
        for i, (point, event) in enumerate(traced):
            by_va[event.va].append((point, event, i))
        at = Counter()
        when = [None] * len(traced)
        resumed = self._resumed(guest, traced)
        for event in guest:
            rows = by_va.get(event.va, ())
            start = at[event.va]
            if resumed and event.ts > self.switching[1]:
                start = max(start, bisect.bisect_left(rows, resumed,
                                                      key=lambda r: r[2]))
            i = self._row_of(event, rows, start)
            if i is None:
                self.missing.append(event)
                continue
            at[event.va] = i + 1
            when[rows[i][2]] = event.ts
            self.pairs.append((event, rows[i][1]))
            self.unsized += has_unknown_size(rows[i][1])
        last = max((i for i, ts in enumerate(when) if ts is not None),
                   default=-1)
        self.extra['after tracing ended'] += len(traced) - 1 - last
        off = self._off(traced, when)
        self.extra['while the guest switched its tracing'] += len(off)
        self.unexplained += [traced[i][1] for i in range(last)
                             if when[i] is None and i not in off]

    def _row_of(self, event, rows, start):
        """Return the index of the row, from START on, that matches EVENT.
        Prefer a row with the same call site. Else take the first row of the
        same kind. Rows before the match must then be explained."""
        first = None
        for i in range(start, len(rows)):
            if not self._same(event, *rows[i][:2]):
                continue
            if site_class(event, rows[i][1], self.symbols, self.hooks):
                return i
            if first is None:
                first = i
        return first

    def _off(self, traced, when):
        """Return the indices of our events without a match whose tracepoint
        was off. The guest switches each tracepoint off and on once, between
        the last event that it traced before and the first one after. In that
        range these are, for each tracepoint, the events from the first one
        without a match to the next one with a match."""
        if self.switching is None:
            return set()
        begin, end = self.switching
        first = 1 + max((i for i, ts in enumerate(when)
                         if ts is not None and ts < begin), default=-1)
        behind = min((i for i, ts in enumerate(when)
                      if ts is not None and ts > end), default=0)
        off, went, came = set(), set(), set()
        for i in range(first, behind):
            point = traced[i][0]
            if when[i] is not None:
                came |= went & {point}
            elif point not in came:
                went.add(point)
                off.add(i)
        return off

    def _same(self, event, point, our):
        if event.name != point:
            return False
        if our.kind != 'alloc' and our.family != 'pages':
            return True
        if not self.types and has_unknown_size(our):
            return our.req in (0, event.req) and our.act in (0, event.act)
        before = event.act - our.act
        if self.red_zones and before >= 8 and not before & (before - 1):
            before = 0
        return event.req == our.req and not before


def site_class(event, our, symbols, hooks):
    """Return where the guest's call_site is in our backtrace, None if it is not
    there."""
    frames = our.frames
    if frames and frames[0] == event.site:
        return 'first frame'
    if event.site in frames:
        return 'explicit caller, a later frame'
    if hooks.is_wrapper(symbols.name(event.site)):
        return 'inside a wrapper, not a frame of ours'
    return None


def kernel_frames(event, symbols, hooks):
    """Return the kernel's own backtrace as ours should be: without its tracing
    functions, the traced function, and the wrappers that called it."""
    frames = list(event.stack)
    i = 0
    while i < len(frames) and symbols.name(frames[i]).startswith(
            ('trace_', '__traceiter_', '__bpf_trace_')):
        i += 1
    if i < len(frames) and hooks.is_hook(symbols.name(frames[i])):
        i += 1
    while i < len(frames) and hooks.is_wrapper(symbols.name(frames[i])):
        i += 1
    return tuple(frames[i:])


def own_walk_ends(frames, symbols, arch):
    """Return whether the kernel's own walk ended too early, behind FRAMES."""
    return bool(frames) and \
        symbols.name(frames[-1]) == OWN_WALK_ENDS.get(arch)


def as_far_as_it_goes(theirs, ours, symbols, arch):
    """Return whether the frames of the kernel's walk are ours, up to the place
    where its walk ends early."""
    return theirs == ours[:len(theirs)] and \
        own_walk_ends(theirs, symbols, arch)


def stack_difference(ours, theirs, symbols):
    """Say in a few fixed words, for counting, how two backtraces differ."""
    n = 0
    while n < min(len(ours), len(theirs)) and ours[n] == theirs[n]:
        n += 1
    if n == len(ours):
        what = f'ours ends early, before {symbols.name(theirs[n])}'
    elif n == len(theirs):
        what = f"the kernel's ends early, before {symbols.name(ours[n])}"
    else:
        what = f'{symbols.name(ours[n])}, not {symbols.name(theirs[n])}'
    after = symbols.name(ours[n - 1]) if n else 'the call'
    return f'{what} (after {after})'


def describe(event, symbols):
    """Format an event of either side for a message."""
    if hasattr(event, 'site'):
        return (f'{event.name} {event.va:#x} {event.req}/{event.act} at '
                f'{symbols.offset(event.site)} cpu {event.cpu}')
    frames = ' '.join(symbols.offset(f) for f in event.frames[:3])
    return (f'{event.kind} {event.hook} {event.va:#x} {event.req}/'
            f'{event.act} seq {event.seq} cpu {event.cpu} [{frames}]')
