#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels boot with options that change how memory is allocated, and run a
workload of files and processes: no error is reported.

Oracle: the options are no errors of the guest, so each report is false. In the
long form also the guest's own trace of its allocators, as in
test_oracle_events.py.

usage: test_boot_options.py [--short] [--kernel K]... [--smp N]...
                            [--option O]...
"""
import json
import os
import re
import tempfile
from collections import namedtuple

from lib import ksyms, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

# name: of the test. words: of the kernel's command line. config: what the
# kernel must have been built with. load: the workload, a script of inside/
# instead of that of the initramfs. cpu: the CPU model, as for ka-run.
Option = namedtuple('Option', 'name words config load cpu',
                    defaults=('', None, None, None))

OPTIONS = (
    Option('slub_debug', 'slub_debug=FZPU', 'SLUB_DEBUG'),
    Option('slab_nomerge', 'slab_nomerge'),
    Option('init_on_free', 'init_on_free=1'),
    Option('page_owner', 'page_owner=on', 'PAGE_OWNER'),
    Option('kfence', 'kfence.sample_interval=1', 'KFENCE'),
    Option('nosmp', 'nosmp', 'SMP'),
    Option('maxcpus', 'maxcpus=1', 'SMP'),
    Option('hugepages', 'hugepages=32 transparent_hugepage=always',
           'HUGETLBFS'),
    Option('cgroup', '', 'MEMCG', 'cgroup'),
    Option('hotplug', 'memhp_default_state=online_kernel',
           'ACPI_HOTPLUG_MEMORY'),
    # x86-64: page tables of 5 levels, so other addresses of the direct map
    Option('la57', cpu='max'),
)
# Of the quick form: slots that are larger than what they have, and a second
# allocator.
SHORT = 'slub_debug', 'kfence'

DIMM = 256 << 20
SLOTS = ',slots=2,maxmem=8G'
BLOCKS = '/sys/devices/system/memory/memory'


def is_known(option, kernel):
    return not option.config or oracle.has_option(kernel, option.config)


def errors_of(guest):
    lines = guest.hmp_qmp('ka error -n 0 -j -v').splitlines()
    return [row for row in map(json.loads, lines)
            if row.get('type') == 'error']


def plug_memory(guest):
    """Plug a module of memory and let the guest's kernel use it."""
    before = guest.shell(f'ls -d {BLOCKS}* | wc -l')
    guest.qmp('object-add', qom_type='memory-backend-ram', id='more',
              size=DIMM)
    guest.qmp_connection.cmd('device_add', {'driver': 'pc-dimm', 'id': 'dimm',
                                            'memdev': 'more'})
    guest.shell(f'while [ $(ls -d {BLOCKS}* | wc -l) = {before.strip()} ]; '
                'do sleep 0.1; done')
    guest.shell(f'for b in {BLOCKS}*/state; do grep -q offline $b && '
                'echo online_kernel >$b; done')
    assert 'offline' not in guest.shell(f'cat {BLOCKS}*/state')
    guest.shell('sh /ka/work.sh 2')


def has_5_levels(guest):
    """Return whether the vCPU uses page tables of 5 levels (CR4.LA57)."""
    cr4 = re.search(r'CR4=([0-9a-f]+)', guest.hmp('info registers'))
    return not cr4 or int(cr4.group(1), 16) & 1 << 12


def clean(option, kernel, smp):
    """Boot, run the workload; return the events that were checked."""
    plugs = option.name == 'hotplug'
    with tempfile.TemporaryDirectory(prefix='ka-options.') as tmp:
        scripts = [option.load + '.sh'] if option.load else []
        with Guest(kernel=kernel, smp=smp, run=option.load or 'work', n=2,
                   cmdline=option.words, timeout=600,
                   share=oracle.make_share(os.path.join(tmp, 'share'),
                                           scripts, kernel),
                   end='shell' if plugs else 'wait',
                   options=cpu_options(option),
                   qemu=['-m', '1G' + SLOTS] if plugs else (),
                   name=f'option-{option.name}-{kernel}-{smp}') as g:
            assert g.wait_done() == 0
            if plugs:
                plug_memory(g)
            if option.name == 'la57':
                assert has_5_levels(g), 'the CPU has no 57-bit addresses'
                assert not g.stat()['cache.unknown']
            errors = errors_of(g)
            assert not errors, f'{len(errors)} errors\n' + '\n'.join(
                json.dumps(e) for e in errors[:5])
            return g.stat()['events.checked']


def cpu_options(option):
    return ['--cpu', option.cpu] if option.cpu else ()


def module_of_memory():
    """Return QEMU's words for a module of memory that is there at boot. No
    firmware lists it, so the kernel adds it as one that is plugged later, but
    while it traces."""
    return ['-m', '4G' + SLOTS,
            '-object', f'memory-backend-ram,id=more,size={DIMM}',
            '-device', 'pc-dimm,memdev=more,id=dimm']


def events(option, kernel, smp):
    """Compare the events with the guest's own trace."""
    hotplug = option.name == 'hotplug'
    run = oracle.traced_run(kernel, smp, 2, stacks=False,
                            buffer='192M' if smp == 1 else '96M',
                            words=f'{oracle.TRACE_WORDS} {option.words}',
                            load='hotplug' if hotplug else option.load,
                            options=cpu_options(option),
                            qemu=module_of_memory() if hotplug else ())
    match = oracle.Matching(run.guest, run.ours, run.symbols,
                            ksyms.HookTable(), run.switched,
                            red_zones=option.name == 'slub_debug',
                            types=oracle.has_types(kernel))
    for what in 'missing', 'unexplained':
        found = getattr(match, what)
        assert not found, f'{len(found)} {what}\n' + '\n'.join(
            oracle.describe(e, run.symbols) for e in found[:10])
    return len(match.pairs)


def main():
    names = [o.name for o in OPTIONS]
    ap = programs.arguments(__doc__, short='two options, clean boots only')
    ap.add_argument('--option', action='append', choices=names)
    args, tap = programs.parse(ap, kernels=programs.KERNELS[:1]), Tap()
    wanted = args.option or (SHORT if args.short else names)

    def boots(tap, kernel, smp, label):
        for option in (o for o in OPTIONS if o.name in wanted):
            name = f'{label}, {option.name}'
            if not is_known(option, kernel):
                tap.skip(name, f'the kernel has no {option.config}')
                continue
            with tap.test(f'{name}: no error is reported'):
                tap.note(f'{name}: {clean(option, kernel, smp)} events')
            if args.short:
                continue
            with tap.test(f"{name}: the events are the guest's"):
                tap.note(f'{name}: {events(option, kernel, smp)} matched')

    programs.run_over(tap, args.kernel, args.smp, boots, test=None)
    tap.done()


if __name__ == '__main__':
    main()
