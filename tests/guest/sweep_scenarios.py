#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run scripts/fault-sweep on scenarios of inside/scenarios/, one after
another: each gets the modules and programs that it needs. The reports of each
are FOLDER/NAME.txt and NAME.json, its results are in FOLDER/NAME; so a sweep
that was interrupted is resumed. No test: the findings are those of the kernel.

usage: sweep_scenarios.py --out FOLDER [--scenario NAME]...
                          [-- OPTION OF fault-sweep...]
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

from lib import scenarios
from scripts.lib.prepared import ROOT

PROGRAM = os.path.join(ROOT, 'scripts', 'fault-sweep')


def command(scenario, kernel, share, out, more):
    base = os.path.join(out, scenario.name)
    words = [PROGRAM, '--kernel', kernel, '--share', share,
             '--run', scenario.path, '--resume', base]
    for kind in 'txt', 'json':
        words += ['--report', f'{base}.{kind}']
    for module in scenario.sweep:
        words += ['--module', module]
    if scenario.functions:
        words += ['--task', 'all', '--if', scenarios.condition(scenario)]
    for device in scenario.plug:
        words += ['--plug', device]
    return [*words, *more, '--', *scenario.qemu]


def sweep(name, args, tmp):
    """Sweep one scenario; return the exit status."""
    scenario = scenarios.read(name)
    kernel = args.kernel or scenario.kernel
    share = scenarios.make_share(os.path.join(tmp, name), scenario, kernel)
    begin = time.monotonic()
    status = subprocess.run(
        command(scenario, kernel, share, args.out, args.more),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        check=False).returncode
    print(f'{name}: status {status} after {time.monotonic() - begin:.0f} s',
          flush=True)
    return status


def main():
    ap = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    ap.add_argument('--out', required=True, help='folder of the reports')
    ap.add_argument('--kernel', help='another kernel than that of a scenario')
    ap.add_argument('--scenario', action='append', choices=scenarios.names(),
                    metavar='NAME', help='only this one')
    ap.add_argument('more', nargs='*', help='options of fault-sweep')
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='ka-sweeps.') as tmp:
        worst = max(sweep(name, args, tmp)
                    for name in args.scenario or scenarios.names())
    sys.exit(worst)


if __name__ == '__main__':
    main()
